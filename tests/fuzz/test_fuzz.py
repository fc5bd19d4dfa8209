"""Mutated files through every reader: typed errors or an answer, no crash, no other file touched, memory bounded."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from readers import CORPUS, READERS

from antisparse.errors import AntisparseError

FILES = int(os.environ.get("ANTISPARSE_FUZZ", "3200"))  # of all readers; half a million in `make test-long`
SEED = int(os.environ.get("ANTISPARSE_FUZZ_SEED", "0"))
BATCH = 20_000  # files a process
PEAK = 1_500_000  # kB
WORKER = Path(__file__).parent / "worker.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of a process, which Windows lacks")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        yield Path(place)


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("reader", READERS)
def test_the_corpus_is_read(reader: str, tmp_path: Path) -> None:
    read, names = READERS[reader]
    for name in names:
        (tmp_path / name).write_bytes((CORPUS / name).read_bytes())
        if reader == "manifest":  # whose files are not beside it
            with pytest.raises(AntisparseError, match="codec"):
                read(tmp_path / name)
        else:
            read(tmp_path / name)


@pytest.mark.parametrize("reader", READERS)
def test_mutated_files(reader: str, folder: Path) -> None:
    inner, count = folder / "inner", max(FILES // len(READERS), 1)
    inner.mkdir()
    (folder / "beside").write_bytes(b"not yours")
    before = content(CORPUS)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        command = [sys.executable, str(WORKER), reader, *map(str, (SEED, first, size, inner))]
        environment = os.environ | {"PYTHONPATH": str(WORKER.parent.parent)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=environment)
        at = (inner / "at").read_text().strip() if (inner / "at").exists() else "the start"
        again = f"PYTHONPATH=tests python tests/fuzz/worker.py {reader!r} {SEED} {at} 1 FOLDER"
        assert done.returncode == 0, f"mutation {at} of {reader}: {again}\n{done.stderr[-3000:]}"
        assert int(done.stdout.split()[-1]) < PEAK, again
    assert content(CORPUS) == before
    assert sorted(os.listdir(folder)) == ["beside", "inner"] and (folder / "beside").read_bytes() == b"not yours"
    assert set(os.listdir(inner)) <= {"at", *READERS[reader][1]}
