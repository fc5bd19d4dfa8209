"""What a command writes is never an index, nor what it reads."""

import os
from pathlib import Path

import numpy as np
import pytest

from antisparse import Index, LSHEncoder
from antisparse.cli import main
from antisparse.datasets import write_vectors

X = np.random.default_rng(0).standard_normal((120, 6)).astype(np.float32)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Index.create("ix", LSHEncoder(8, random_state=0).fit(X)) as index:
        index.add(X)
    for name in ("q.npy", "base.npy", "ids.npy", "q.distances.npy"):
        write_vectors(name, np.arange(5)[:, None] if name == "ids.npy" else X[:5])
    Path("data").mkdir()
    for name in ("base.npy", "query.npy"):
        write_vectors(f"data/{name}", X)
    os.symlink("ix", "link")
    os.symlink("q.npy", "other.npy")
    os.mkdir("lost")
    os.link(next(Path("ix").glob("codec-*")), "lost/" + next(Path("ix").glob("codec-*")).name)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "ix", "q.npy", "-o", "ix/manifest.json"], "lies in the index"),
        (["search", "ix", "q.npy", "-o", "ix/new.json"], "lies in the index"),
        (["search", "ix", "q.npy", "-o", "ix/new.npy"], "lies in the index"),
        (["search", "ix", "q.npy", "-o", "link/manifest.json"], "lies in the index"),
        (["search", "ix", "q.npy", "-o", "data/../ix/manifest.json"], "lies in the index"),
        (
            ["search", "ix", "q.npy", "-o", "lost/manifest.json"],
            "lies in the index",
        ),  # of an index without its manifest
        (["search", "ix", "q.npy", "-o", "q.npy"], "is what the command reads"),
        (["search", "ix", "q.npy", "-o", "other.npy"], "is what the command reads"),
        (["search", "ix", "q.distances.npy", "-o", "q.npy"], "is what the command reads"),  # by the file beside it
        (["search", "ix", "q.npy", "--filter", "ids.npy", "-o", "ids.npy"], "is what the command reads"),
        (["search", "ix", "q.npy", "--rerank", "base.npy", "-o", "base.npy"], "is what the command reads"),
        (["search", "ix", "data", "-o", "data/query.npy"], "is what the command reads"),
        (["build", "base.npy", "-o", "ix/inner"], "lies in the index"),
        (["build", "base.npy", "-o", "base.npy"], "exists already"),
        (["tune", "data", "--bytes", "2", "--plot", "ix/x.png"], "lies in the index"),
        (["paper", "--quick", "--only", "path", "-o", "ix"], "is an index"),
        (["paper", "--quick", "--only", "path", "-o", "ix/deeper/still"], "lies in the index"),
        (["paper", "--quick", "--only", "path", "--data", "data", "-o", "data"], "is what the command reads"),
    ],
)
def test_a_command_writes_neither_into_an_index_nor_over_what_it_reads(
    here: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(here)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert content(here) == before
    Index.open("ix", verify=True).close()


def test_new_names_beside_what_is_read_are_written(here: Path) -> None:
    assert main(["search", "ix", "data", "-k", "2", "-o", "data/found.npy"]) == 0
    assert main(["search", "ix", "data", "-k", "2", "-o", "data/found.npy"]) == 0  # and again
    assert {"found.npy", "found.distances.npy"} < set(os.listdir("data"))


def test_pipes_and_devices_are_no_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("pipe.npy", "pipe.txt", "pipe.h5"):
        os.mkfifo(name)
    os.symlink("/dev/zero", "zero.npy")
    for name in ("zero.txt", "zero.fvecs"):
        os.symlink("/dev/zero", name)
    for arguments in (
        ["search", "ix", "pipe.npy"],
        ["search", "ix", "zero.fvecs"],
        ["search", "ix", "q.npy", "--filter", "pipe.txt"],
        ["search", "ix", "q.npy", "--filter", "zero.txt"],
        ["search", "ix", "q.npy", "--filter", "zero.npy"],
        ["search", "ix", "q.npy", "--rerank", "pipe.h5"],
        ["eval", "ix", "q.npy", "pipe.npy"],
        ["add", "ix", "pipe.h5"],
        ["add", "ix", "base.npy", "--ids", "zero.txt"],
        ["remove", "ix", "pipe.txt"],
        ["build", "pipe.npy", "-o", "new"],
        ["build", "base.npy", "-o", "new", "--learn", "zero.npy"],
        ["tune", "pipe.npy", "--bytes", "2"],
        ["search", "ix", "q\0.npy"],
        ["search", "ix", "q.npy", "-o", "q\0.npy"],
    ):
        assert main(arguments) in (1, 2), arguments
        assert "Traceback" not in capsys.readouterr().err
    assert "new" not in os.listdir()
