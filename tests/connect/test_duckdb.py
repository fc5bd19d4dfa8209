"""Codes in DuckDB: what docs/databases.md shows, against the package itself."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antisparse import CodeBase

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "databases.md"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the block of the page leaves behind; it may read and write its own database and nothing else."""
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda name: connect(name, config={"enable_external_access": "false"}))
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text().split("\n## DuckDB\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    return namespace


def test_the_recipe_finds_what_two_stages_in_process_find(recipe: dict[str, Any]) -> None:
    codec, X = recipe["codec"], recipe["X"]
    german = sorted(range(1, 1000, 2), key=lambda row: f"doc {row}")  # equal bits go by the key
    base = CodeBase(codec, codec.encode(X[german]))
    distances, rows = base.search(X[7], 5, shortlist=100)
    assert [recipe["keys"][place] for place in recipe["places"]] == [f"doc {german[row]}" for row in rows]
    np.testing.assert_array_equal(recipe["distances"], distances)
    assert recipe["keys"][recipe["places"][0]] == "doc 7"


def test_its_distances_are_those_of_the_bits(recipe: dict[str, Any]) -> None:
    codec, X, signs = recipe["codec"], recipe["X"], recipe["signs"]
    base = CodeBase(codec, codec.encode(X))
    with duckdb.connect("documents.duckdb") as database:
        for query in X[:5]:
            asked = signs(codec, codec.encode(query[None]))[0]
            counted = "SELECT key, bit_count(xor(bits, ?::BIT)) FROM documents"
            found = dict(database.execute(counted, [asked]).fetchall())
            distances, rows = base.search(query, 1000, method="hamming")
            assert [found[f"doc {row}"] for row in rows] == distances.tolist()
