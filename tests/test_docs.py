"""What the documentation shows must run and say what it says."""

import doctest
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from matplotlib import pyplot

from antisparse import datasets, evaluation

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in (README, *sorted(README.parent.glob("docs/*.md"))) if BLOCK.search(page.read_text())]
# Those that need a server, Ray, other engines or models: tests/index/test_objects.py, tests/{cluster,connect,serve}.
ELSEWHERE = ("objects.md", "cluster.md", "databases.md", "engines.md", "serve.md")
ELSEWHERE += ("langchain.md", "mteb.md", "sentence_transformers.md")
ELSEWHERE += ("ann_benchmarks.md", "from_faiss.md")  # tests/integrations, tests/connect/test_faiss.py
ELSEWHERE += ("tables.md",)  # tests/test_sessions.py, as all tutorials but from_faiss.md
PAGES = [page for page in PAGES if page.name not in ELSEWHERE]


def dataset_files() -> dict[str, Any]:
    """The files that the page on data sets reads, siftsmall among them as if it had been downloaded."""
    rng = np.random.default_rng(0)
    datasets.write_vectors("base.fvecs", rng.standard_normal((100, 8)).astype(np.float32))
    with h5py.File("sift-128-euclidean.hdf5", "w") as file:
        file["train"], file["test"] = rng.standard_normal((100, 8)), rng.standard_normal((5, 8))
        file["neighbors"] = rng.integers(0, 100, (5, 10))
    folder = Path(os.environ["ANTISPARSE_DATA"], "siftsmall")
    folder.mkdir(parents=True)
    for part, n in {"base": 10_000, "learn": 25_000, "query": 100}.items():
        datasets.write_vectors(folder / f"siftsmall_{part}.fvecs", np.zeros((n, 128), np.float32))
    datasets.write_vectors(folder / "siftsmall_groundtruth.ivecs", np.zeros((100, 100), np.int32))
    return {}


def found_neighbors() -> dict[str, Any]:
    base, queries = datasets.synthetic(500, queries=20, random_state=0).base, np.ones((20, 16))
    return {"base": base, "queries": queries, "ids": evaluation.exact_neighbors(base, queries, k=100)[1]}


def vectors_to_tune() -> dict[str, Any]:
    return {"X": np.random.default_rng(0).standard_normal((1500, 8))}


# What the examples of a page take as given.
PREPARED: dict[str, Callable[[], dict[str, Any]]] = {
    "datasets.md": dataset_files,
    "evaluation.md": found_neighbors,
    "tuning.md": vectors_to_tune,
}


@pytest.mark.parametrize(
    "name",
    [
        "antisparse.spread.problem",
        "antisparse.spread.path",
        "antisparse.spread.batch",
        "antisparse.encoders.learned",
        "antisparse.index.index",
        "antisparse.scan.code_base",
        "antisparse.datasets.named",
        "antisparse.connect.sklearn",
    ],
)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a page run, in order and in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTISPARSE_DATA", str(tmp_path / "cache"))
    pyplot.switch_backend("agg")
    namespace = PREPARED.get(page.name, dict)()
    try:
        for match in BLOCK.finditer(page.read_text()):
            line = page.read_text()[: match.start(1)].count("\n")
            exec(compile("\n" * line + match[1], str(page), "exec"), namespace)  # errors name the page's line
    finally:
        pyplot.close("all")


def test_examples_are_found_and_nothing_is_prepared_for_a_page_without() -> None:
    assert {"README.md", "spread.md", "solver.md"} <= {page.name for page in PAGES}
    assert PREPARED.keys() <= {page.name for page in PAGES}


def test_the_map_and_the_links_of_the_readme_exist() -> None:
    text = README.read_text()
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (README.parent / link).exists(), link
    for module in re.findall(r"^  ([\w/]+\.(?:py|cpp|hpp)) ", text, re.MULTILINE):
        assert (README.parent / "src/antisparse" / module).exists() or (README.parent / "native" / module).exists()
