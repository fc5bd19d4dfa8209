"""The module for big-ann-benchmarks, run as its runner does; stand-ins take the places of its base class and data."""

import importlib.util
import os
import shutil
import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from antisparse.datasets import read_vectors, write_vectors
from antisparse.evaluation import exact_neighbors, intersection_recall

FOLDER = Path(__file__).parents[2] / "integrations" / "big_ann_benchmarks" / "antisparse"
COUNT, RADIUS = 10, 9.0


class BaseANN:
    """What the module inherits from theirs."""

    def done(self):
        self.is_done = True

    def get_memory_usage(self):
        return 0.0

    def __str__(self):
        return self.name


class Blobs:
    """A data set in files, prepared, with the methods that theirs have."""

    def __init__(self, distance="euclidean", nb=3000, d=8):
        self.nb, self.d, self.nq, self._distance = nb, d, 15, distance
        rng = np.random.default_rng(0)
        centres = 3 * rng.standard_normal((20, d))
        for name, n in (("base", nb), ("query", self.nq)):
            X = centres[rng.integers(0, 20, n)] + rng.standard_normal((n, d))
            if not Path(f"{name}.fbin").exists():
                write_vectors(f"{name}.fbin", X.astype(np.float32))

    def get_dataset_iterator(self, bs=512, split=(1, 0)):
        parts, part = split
        first, last = self.nb * part // parts, self.nb * (part + 1) // parts
        X = read_vectors("base.fbin")
        for start in range(first, last, bs):
            yield X[start : min(start + bs, last)]

    def get_queries(self):
        return np.asarray(read_vectors("query.fbin"))

    def distance(self):
        return self._distance

    def short_name(self):
        return f"Blobs-{self.nb}-{self._distance}"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Our module among theirs, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names = ("benchmark", "benchmark.algorithms", "benchmark.algorithms.base", "benchmark.datasets")
    theirs = {name: ModuleType(name) for name in names}
    theirs["benchmark.algorithms.base"].BaseANN = BaseANN
    theirs["benchmark.datasets"].DATASETS = {
        "random-xs": Blobs,
        "text2image-10M": lambda: Blobs("ip"),
        "bigann-10M": lambda: Blobs("angular"),
    }
    for name, each in theirs.items():
        monkeypatch.setitem(sys.modules, name, each)
    spec = importlib.util.spec_from_file_location("neurips23_ood_antisparse", FOLDER / "module.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def definition(dataset):
    """The arguments of the constructor, and those of queries, that their reading of our config.yaml gives."""
    algorithm = yaml.safe_load((FOLDER / "config.yaml").read_text())[dataset]["antisparse"]
    assert algorithm["docker-tag"] == "neurips23-ood-antisparse" and algorithm["constructor"] == "Antisparse"
    assert algorithm["module"] == "neurips23.ood.antisparse.module"
    (runs,) = algorithm["run-groups"].values()
    (arguments,), queries = ([list(chosen) for chosen in product(*runs[name])] for name in ("args", "query-args"))
    return algorithm["base-args"] + arguments, queries


def run(module, dataset, arguments, queries, search="knn", rebuild=False):
    """A run of theirs: whether the index was built, and what each group of arguments of queries gave."""
    data = module.DATASETS[dataset]()
    algorithm = module.Antisparse(*[data.distance() if each == "@metric" else each for each in arguments])
    found = []
    try:
        built = rebuild or not algorithm.load_index(dataset)
        if built:
            algorithm.fit(dataset)
        for chosen in queries:
            algorithm.set_query_arguments(*chosen)
            X = data.get_queries()
            if search == "knn":
                algorithm.query(X, COUNT)
                results = algorithm.get_results()
                assert results.shape == (len(X), COUNT)
            else:
                algorithm.range_query(X, RADIUS)
                results = algorithm.get_range_results()
            found.append(results)
        assert str(algorithm) == algorithm.name and algorithm.get_additional()["bytes_per_vector"] > 0
    finally:
        algorithm.done()
    return built, found


def recalls(data, found):
    metric = {"euclidean": "l2", "angular": "cosine", "ip": "ip"}[data.distance()]
    truth = exact_neighbors(read_vectors("base.fbin"), data.get_queries(), COUNT, metric=metric)[1]
    return [intersection_recall(ids, truth, COUNT) for ids in found]


def test_an_entry_is_built_stored_and_found_again(module) -> None:
    arguments, queries = definition("random-xs")
    assert arguments == ["@metric", {"n_bytes": 16, "cells": 1}] and queries == [[{"probes": "all"}]]
    built, found = run(module, "random-xs", arguments, queries)
    assert built and recalls(Blobs(), found)[0] > 0.75
    built, again = run(module, "random-xs", arguments, queries)
    assert not built
    np.testing.assert_array_equal(again[0], found[0])
    assert run(module, "random-xs", arguments, queries, rebuild=True)[0]


@pytest.mark.parametrize("dataset", ["text2image-10M", "bigann-10M"])
def test_cells_and_metrics(module, dataset: str) -> None:
    arguments, queries = definition(dataset)
    assert arguments[1]["cells"] == 4096 and len(queries) == 6 and queries[0] == [{"probes": 8}]
    small = ["@metric", arguments[1] | {"n_bytes": 12, "cells": 64}]
    _, found = run(module, dataset, small, [[{"probes": 1}], [{"probes": 8}], [{"probes": "all"}]])
    found = recalls(module.DATASETS[dataset](), found)
    assert found == sorted(found) and found[0] < found[-1] and found[-1] > 0.75
    with pytest.raises(NotImplementedError, match="squared Euclidean"):
        run(module, dataset, small, [[{}]], search="range")


def test_range_search(module) -> None:
    arguments, queries = definition("random-xs")
    _, ((limits, distances, ids),) = run(module, "random-xs", arguments, queries, search="range")
    data = Blobs()
    exact = ((data.get_queries()[:, None, :].astype(float) - read_vectors("base.fbin")) ** 2).sum(-1)
    assert len(limits) == data.nq + 1 and limits[-1] == len(ids) == len(distances) and (distances <= RADIUS).all()
    within = {(query, i) for query in range(data.nq) for i in ids[limits[query] : limits[query + 1]]}
    true = set(zip(*np.nonzero(exact <= RADIUS), strict=True))
    assert len(true) > 200 and len(within & true) / len(within | true) > 0.8


def test_the_archive_of_an_index_is_an_index(module) -> None:
    arguments, queries = definition("random-xs")
    _, found = run(module, "random-xs", arguments, queries)
    algorithm = module.Antisparse("euclidean", arguments[1])
    folder, prefix, components = algorithm.index_files_to_store("random-xs")
    assert Path(folder) == Path("data/indices/ood/antisparse-euclidean-16-1/Blobs-3000-euclidean")
    files = [os.path.join(folder, prefix + component) for component in components]
    assert all(map(os.path.isfile, files))
    shutil.rmtree(os.path.join(folder, prefix))  # another machine, to which the archive is downloaded
    assert algorithm.index_files_to_store("random-xs") == (folder, prefix, components)
    built, again = run(module, "random-xs", arguments, queries)
    assert not built
    np.testing.assert_array_equal(again[0], found[0])


def test_vectors_of_all_parts_of_a_large_set_are_learned_from(module, monkeypatch: pytest.MonkeyPatch) -> None:
    X = module.sample(Blobs())
    np.testing.assert_array_equal(X, read_vectors("base.fbin"))
    monkeypatch.setattr(module, "BLOCK", 500)
    X = module.sample(Blobs())
    np.testing.assert_array_equal(X, read_vectors("base.fbin").reshape(50, 60, 8)[:, :10].reshape(500, 8))


def test_a_metric_that_is_not_there(module) -> None:
    with pytest.raises(NotImplementedError, match="hamming"):
        module.Antisparse("hamming", {"n_bytes": 8, "cells": 1})
