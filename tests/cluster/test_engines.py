"""The lines of docs/engines.md, for every engine that is installed. `make test-cluster`."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from lake import assert_equal_indexes, codec, files_of, vectors, write_lake

from antisparse import Index
from antisparse.cluster import build

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()
BLOCKS = dict(re.findall(r"^## ([^\n]+)\n.*?^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
ENGINES = {"Dask": "distributed", "Spark": "pyspark", "Daft": "daft"}


@pytest.mark.skipif(
    os.environ.get("ANTISPARSE_CLUSTER") is None, reason="other engines: `make test-cluster` runs these"
)
@pytest.mark.parametrize("name", ENGINES)
def test_other_engines(name: str, tmp_path: Path) -> None:
    if find_spec(ENGINES[name]) is None:
        pytest.skip(f"{name} is not installed")
    write_lake(tmp_path / "lake", 4000, 4, 500)
    (tmp_path / "lines.py").write_text(BLOCKS[name])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "lines.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "4000"
    build(tmp_path / "lake", tmp_path / "here", 8, key="key", columns=["year"], unit_rows=1000, engine=map)
    assert len(files_of(tmp_path / "here")) == 8
    assert_equal_indexes(tmp_path / "index", tmp_path / "here", vectors(20, 5))


def test_tasks_that_stage_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Index.create("index", codec()).close()
    X = vectors(300)
    exec(
        BLOCKS["Without files of tables"],
        {"parts": [(X[at : at + 100], np.arange(at, at + 100)) for at in (0, 100, 200)]},
    )
    assert len(Index.open("index", read_only=True, verify=True)) == 300
