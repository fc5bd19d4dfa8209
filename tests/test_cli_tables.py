"""The command on tables: built, added to, searched, answered with texts."""

import csv
import io
import json
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antisparse import Index
from antisparse.cli import main

N, D = 600, 8
X = np.random.default_rng(0).standard_normal((N + 50, D)).astype(np.float32)
KEYS = [str(uuid.UUID(int=i * 2**80)) for i in range(N + 50)]
TABLE = pa.table(
    {
        "id": KEYS,
        "text": [f"text [b]{i}[/b]\x1b[31m" for i in range(N + 50)],
        "tags": [["a", str(i)] for i in range(N + 50)],
        "embedding": pa.array(list(X)),
    }
)
QUICK = ["--bytes", "4", "--symbols", "signs", "--effort", "1"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    for number in range(4):
        pq.write_table(TABLE.slice(number * 150, 150), f"data/{number}.parquet")
    pq.write_table(TABLE.slice(N), "tomorrow.parquet")
    pq.write_table(TABLE.slice(3, 4), "queries.parquet")
    return tmp_path


def build(*more: str) -> int:
    return main(["build", "data/*.parquet", "-o", "index", *QUICK, "--key", "id", "--columns", "text,tags", *more])


def test_a_session(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert build() == 0
    assert "600 vectors of 8 dimensions, 4 bytes each" in capsys.readouterr().out
    assert main(["add", "index", "tomorrow.parquet"]) == 0
    assert "added 50 vectors" in capsys.readouterr().out
    assert main(["add", "index", "tomorrow.parquet"]) == 2
    assert f"key '{KEYS[N]}' is there already" in capsys.readouterr().err
    assert main(["search", "index", "queries.parquet", "-k", "2"]) == 0
    shown = capsys.readouterr().out
    assert "text [b]3[/b]" in shown and KEYS[3][:8] in shown and "\x1b" not in shown
    monkeypatch.setenv("COLUMNS", "60")  # a key that does not fit goes on in the next line
    assert main(["search", "index", "queries.parquet", "-k", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = [cell.strip() for cell in lines[1].split("┃")].index("id")
    cells = [line.split("│")[at].strip() for line in lines if line.startswith("│")]
    assert KEYS[3] in "".join(cells) and "…" not in "".join(lines)
    assert main(["remove", "index", KEYS[3]]) == 0
    assert "removed 1 vector" in capsys.readouterr().out
    assert main(["remove", "index", "nothing"]) == 2
    assert "key 'nothing' is not in the index" in capsys.readouterr().err
    Path("gone.txt").write_text("\n".join(KEYS[10:20]))
    assert main(["remove", "index", "gone.txt", KEYS[30]]) == 0
    with Index.open("index", verify=True) as index:
        assert len(index) == 650 - 12 and KEYS[15] not in index and KEYS[30] not in index
        assert index.items(KEYS[600])["tags"].to_pylist() == [["a", "600"]]
    assert main(["info", "index"]) == 0 and main(["verify", "index"]) == 0 and main(["compact", "index"]) == 0


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv", "json"])
def test_results_in_files(here: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert build() == 0
    out = f"found.{suffix}"
    assert main(["search", "index", "queries.parquet", "-k", "3", "-o", out, "--query-key", "id"]) == 0
    with Index.open("index", read_only=True) as index:
        wanted = index.search(X[3:7], 3, items=True).to_pylist()
    for row in wanted:
        row["query"] = KEYS[3 + row["query"]]
    if suffix == "parquet":
        rows = pq.read_table(out).to_pylist()
    elif suffix == "jsonl":
        rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    elif suffix == "json":
        rows = json.loads(Path(out).read_text())["results"]
    else:
        rows = list(csv.DictReader(io.StringIO(Path(out).read_text())))
        for row in rows:
            row |= {"rank": int(row["rank"]), "distance": float(row["distance"]), "tags": json.loads(row["tags"])}
    assert rows == wanted


def test_results_of_an_index_without_items(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "data", "-o", "plain", *QUICK]) == 0
    assert main(["add", "plain", "tomorrow.parquet"]) == 0
    distances, ids = Index.open("plain", read_only=True).search(X[3:7], 2)
    wanted = [
        {"query": q, "rank": r + 1, "distance": distances[q, r], "id": ids[q, r]} for q in range(4) for r in range(2)
    ]
    for suffix in ("jsonl", "csv"):
        assert main(["search", "plain", "queries.parquet", "-k", "2", "-o", f"found.{suffix}"]) == 0
    assert [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()] == wanted
    rows = list(csv.DictReader(io.StringIO(Path("found.csv").read_text())))
    assert [(int(row["query"]), int(row["id"])) for row in rows] == [(row["query"], row["id"]) for row in wanted]
    assert main(["search", "plain", "queries.parquet", "-k", "2", "--query-key", "id", "--json"]) == 0
    assert '"query": "' + KEYS[3] in capsys.readouterr().out.splitlines()[-1]


def test_filters_by_keys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build() == 0
    Path("allowed.txt").write_text("\n".join([*KEYS[50:60], "not there"]))
    capsys.readouterr()
    assert main(["search", "index", "queries.parquet", "-k", "20", "--filter", "allowed.txt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert {row["id"] for row in found} == set(KEYS[50:60]) and len(found) == 40
    search = ["search", "index", "queries.parquet", "-k", "20", "--json"]
    assert main([*search, "--filter-expr", f"'77' in tags or id = '{KEYS[5]}'"]) == 0
    assert {row["id"] for row in json.loads(capsys.readouterr().out)["results"]} == {KEYS[77], KEYS[5]}
    for wrong, words in (("tags =", "--filter-expr cannot be read at line 1"), ("x = 3", "'x' is no column")):
        assert main([*search, "--filter-expr", wrong]) == 2
        assert words in capsys.readouterr().err
    assert main([*search, "--filter-expr", "true", "--filter", "allowed.txt"]) == 2


def test_no_result_is_written_over_what_is_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build() == 0
    before = Path("data/1.parquet").read_bytes()
    for queries in ("data/*.parquet", "data", "data/1.parquet"):
        assert main(["search", "index", queries, "-k", "1", "-o", "data/1.parquet"]) == 2
        assert "is what the command reads" in capsys.readouterr().err
        assert main(["search", "index", queries, "-k", "1", "-o", "found.parquet"]) == 0
    assert Path("data/1.parquet").read_bytes() == before


def piped(data: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([sys.executable, "-m", "antisparse", *arguments], input=data, capture_output=True)


def test_standard_input(here: Path) -> None:
    assert build() == 0
    stream, file, npy = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE.slice(0, N), max_chunksize=90)
    with pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE.slice(N), max_chunksize=20)
    np.save(npy, X[:N])
    options = [*QUICK, "--key", "id", "--columns", "text,tags"]
    done = piped(stream.getvalue(), "build", "-", "-o", "piped", *options)
    assert done.returncode == 0, done.stderr
    done = piped(file.getvalue(), "add", "piped", "-")
    assert done.returncode == 0, done.stderr
    with Index.open("piped", verify=True) as index, Index.open("index") as other:
        np.testing.assert_array_equal(index.codes(KEYS[:N]), other.codes(KEYS[:N]))
        assert index.items(KEYS).equals(TABLE.select(["id", "text", "tags"]).cast(index.items([]).schema))
    done = piped(npy.getvalue(), "build", "-", "-o", "rows", *QUICK)
    assert done.returncode == 0, done.stderr
    with Index.open("rows", verify=True) as index, Index.open("index") as other:
        np.testing.assert_array_equal(index.codes(np.arange(N)), other.codes(KEYS[:N]))
    for data in (b"", b"neither", npy.getvalue()[:5000], npy.getvalue()[:20], stream.getvalue()[:9000]):
        done = piped(data, "add", "rows" if data[1:6] == b"NUMPY" else "piped", "-")
        assert done.returncode in (1, 2) and done.stderr.count(b"\n") == 1 and b"Traceback" not in done.stderr
    with Index.open("rows") as index:
        assert len(index) == N


def test_what_fails_says_so_in_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build() == 0
    np.save("x.npy", X[:3])
    capsys.readouterr()
    for arguments, words in (
        (["build", "data/*.parquet", "-o", "new", "--key", "nothing"], "--key names 'nothing'"),
        (["build", "data/*.parquet", "-o", "new", "--column", "text"], "column 'text' is of type"),
        (["build", "data/*.parquet", "-o", "new", "--columns", "a,b"], "--columns names 'a'"),
        (["build", "none/*.parquet", "-o", "new"], "there are no such files"),
        (["build", "x.npy", "-o", "new", "--key", "id"], "VECTORS must be a table"),
        (["add", "index", "x.npy"], "items is missing"),
        (["add", "index", "data/0.parquet", "--ids", "x.npy"], "ids"),
        (["search", "index", "x.npy", "--query-key", "id"], "is no table"),
        (["search", "index", "queries.parquet", "--query-key", "nothing"], "no one column 'nothing'"),
    ):
        assert main(arguments) in (1, 2), arguments
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1, error
    assert not Path("new").exists()
