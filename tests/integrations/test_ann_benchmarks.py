"""The module for ann-benchmarks, run as its runner does; a stand-in takes the place of its base class."""

import importlib
import re
import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest
import yaml

from antisparse.evaluation import exact_neighbors, intersection_recall

HERE = Path(__file__).parents[2]
FOLDER = HERE / "integrations" / "ann_benchmarks"
COUNT = 10


class BaseANN:
    """What the module inherits from theirs."""

    def done(self):
        self.is_done = True

    def get_memory_usage(self):
        return 0.0


@pytest.fixture(autouse=True)
def ann_benchmarks(monkeypatch):
    """Their package, with our folder among their algorithms."""
    packages = {name: ModuleType(name) for name in ("ann_benchmarks", "ann_benchmarks.algorithms")}
    packages["ann_benchmarks"].__path__ = []
    packages["ann_benchmarks.algorithms"].__path__ = [str(FOLDER)]
    for name in ("ann_benchmarks.algorithms.base", "ann_benchmarks.algorithms.base.module"):
        packages[name] = ModuleType(name)
    packages["ann_benchmarks.algorithms.base"].__path__ = []
    packages["ann_benchmarks.algorithms.base.module"].BaseANN = BaseANN
    for name, module in packages.items():
        monkeypatch.setitem(sys.modules, name, module)
    yield
    for name in [name for name in sys.modules if name.startswith("ann_benchmarks.algorithms.antisparse")]:
        del sys.modules[name]


def combinations(arguments):
    """Every choice of one entry of each list: what they make of lists, and of the values of a mapping."""
    if isinstance(arguments, dict):
        values = [value if isinstance(value, list) else [value] for value in arguments.values()]
        return [dict(zip(arguments, chosen, strict=True)) for chosen in product(*values)]
    return [list(chosen) for chosen in product(*(each if isinstance(each, list) else [each] for each in arguments))]


def definitions(metric, group=None):
    """The arguments of the constructor, and those of queries, that their reading of our config.yml gives."""
    (algorithm,) = yaml.safe_load((FOLDER / "antisparse" / "config.yml").read_text())["float"]["any"]
    assert algorithm["module"] == "ann_benchmarks.algorithms.antisparse"
    assert algorithm["docker_tag"] == "ann-benchmarks-antisparse" and not algorithm["disabled"]
    constructor = getattr(importlib.import_module(algorithm["module"] + ".module"), algorithm["constructor"])
    for name, runs in algorithm["run_groups"].items():
        if group in (None, name):
            groups = [combinations(each) if isinstance(each, dict) else each for each in runs["arg_groups"]]
            for chosen in combinations(groups):
                arguments = [metric if each == "@metric" else each for each in algorithm["base_args"]] + chosen
                yield constructor, arguments, combinations(runs["query_args"])


def data_set(path, metric, n=1500, d=8):
    """A file in their format; a vector of zeros is in it."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((20, d))
    train, test = (centres[rng.integers(0, 20, size)] + rng.standard_normal((size, d)) for size in (n, 20))
    rows = np.arange(n)
    if metric == "angular":
        train[7], rows = 0, np.delete(rows, 7)
    distances, neighbors = exact_neighbors(train[rows], test, 100, metric="l2" if metric == "euclidean" else "cosine")
    with h5py.File(path, "w") as file:
        file.attrs.update({"type": "dense", "distance": metric, "dimension": d, "point_type": "float"})
        for name, array in {"train": train, "test": test, "distances": distances}.items():
            file[name] = array.astype(np.float32)
        file["neighbors"] = rows[neighbors]
    return path


def run(constructor, arguments, query_groups, path, batch):
    """A run of theirs: the attributes that they store, and the recall, for each group of arguments of queries."""
    with h5py.File(path) as file:
        train, test, neighbors = (file[name][:] for name in ("train", "test", "neighbors"))
    algorithm = constructor(*arguments)
    found = []
    try:
        before = algorithm.get_memory_usage()
        algorithm.fit(train)
        size = algorithm.get_memory_usage() - before
        for chosen in query_groups:
            algorithm.set_query_arguments(*chosen)
            if batch:
                algorithm.batch_query(test, COUNT)
                results = algorithm.get_batch_results()
            else:
                results = [algorithm.query(query, COUNT) for query in test]
            for each in results:
                assert len(each) == len(set(each)) <= COUNT
            ids = np.array([[*map(int, each), *[-1] * (COUNT - len(each))] for each in results])
            attributes = {"name": str(algorithm), "index_size": size, **algorithm.get_additional()}
            found.append((attributes, intersection_recall(ids, neighbors, COUNT), ids))
    finally:
        algorithm.done()
    assert algorithm.is_done
    return found


def test_all_definitions_are_made() -> None:
    made = [
        (str(constructor(*arguments)), len(queries)) for constructor, arguments, queries in definitions("euclidean")
    ]
    assert len(made) == len(set(made)) == 9  # bits, and bits times cells
    assert {count for _, count in made} == {6, 24}
    assert made[0] == ("Antisparse(bits=1, cells=1, probes=all)", 6)


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_the_scan_runs_as_their_runner_runs_it(metric: str, tmp_path: Path) -> None:
    path = data_set(tmp_path / "small.hdf5", metric)
    *_, (constructor, arguments, queries) = definitions(metric, "scan")
    assert arguments == [metric, {"bits": 4, "cells": 1}]
    batch = run(constructor, arguments, queries, path, batch=True)
    recalls = [recall for _, recall, _ in batch]
    assert [queries[0], queries[-1]] == [["all", 0], ["all", 500]]
    assert 0.5 < recalls[0] < 1 and recalls[-1] == 1 and recalls == sorted(recalls)
    assert batch[0][0] == {"name": "Antisparse(bits=4, cells=1, probes=all)", "index_size": 0, "bytes_per_vector": 4}
    assert batch[-1][0]["name"] == "Antisparse(bits=4, cells=1, probes=all, rescored=500)"
    for one, other in zip(run(constructor, arguments, queries[:2], path, batch=False), batch, strict=False):
        np.testing.assert_array_equal(one[2], other[2])
    if metric == "angular":
        assert not any((ids == 7).any() for _, _, ids in batch)


def test_cells_are_visited_as_the_arguments_say(tmp_path: Path) -> None:
    path = data_set(tmp_path / "small.hdf5", "euclidean")
    constructor, arguments, queries = next(definitions("euclidean", "cells"))
    assert arguments == ["euclidean", {"bits": 1, "cells": 1024}] and queries[-1] == [128, 200]
    found = run(constructor, arguments, [[1, 0], [16, 200], [128, 200], ["all", 1500]], path, batch=True)
    recalls = [recall for _, recall, _ in found]
    assert (found[0][2] == -1).any() and recalls == sorted(recalls) and recalls[0] < 0.5 and recalls[-1] == 1
    assert found[1][0]["name"] == "Antisparse(bits=1, cells=1024, probes=16, rescored=200)"


def test_a_query_of_zeros_and_a_metric_that_is_not_there(tmp_path: Path) -> None:
    constructor, arguments, _ = next(definitions("angular", "scan"))
    algorithm = constructor(*arguments)
    with h5py.File(data_set(tmp_path / "small.hdf5", "angular")) as file:
        algorithm.fit(file["train"][:])
    assert len(algorithm.query(np.zeros(8, np.float32), COUNT)) == COUNT
    with pytest.raises(NotImplementedError, match="jaccard"):
        constructor("jaccard", {"bits": 1, "cells": 1})


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    data_set("data/sift-128-euclidean.hdf5", "euclidean")
    page = (HERE / "docs" / "ann_benchmarks.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(block, "ann_benchmarks.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        "Antisparse(bits=1, cells=1, probes=all)",
        "Antisparse(bits=1, cells=1, probes=all, rescored=100)",
    ]
    for folder in re.findall(r"integrations/\w+/\w+", page):
        assert {"module.py", "Dockerfile"} < {file.name for file in (HERE / folder).iterdir()}
