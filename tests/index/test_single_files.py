"""One file that is written, replaced, read, linked or synced (`_files.py`): found by mutants of the code."""

import os
from pathlib import Path

import pytest
from models import POOL
from test_crash import FailingOS, RecordingOS

from antisparse import FormatError, InputError, StorageError
from antisparse import _files as files
from antisparse.datasets import read_vectors, write_vectors


def test_what_replaces_a_file_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RecordingOS()
    monkeypatch.setattr(files, "os", recorder)
    write_vectors(tmp_path / "x.npy", POOL)
    file, folder = (("sync", os.stat(path).st_ino) for path in (tmp_path / "x.npy", tmp_path))
    assert recorder.events == [file, ("name", "x.npy"), folder]


def test_a_file_is_replaced_or_not_whatever_call_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, turn, failed = tmp_path / "x.npy", 0, 0
    while failed == turn:
        turn += 1
        write_vectors(path, POOL[:3])
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", FailingOS(turn, "one"))
            try:
                write_vectors(path, POOL[:5])
            except StorageError as error:
                failed += "could not be written" in str(error)
        assert len(read_vectors(path)) == (3 if turn < 4 else 5)  # the third call renames
        assert os.listdir(tmp_path) == ["x.npy"]
    assert turn > 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_only_a_regular_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="only a regular file is replaced"), files.replacing(tmp_path / name):
            pass
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_what_waits_for_a_folder_does_not_leave_it_open(tmp_path: Path) -> None:
    free = os.dup(0)
    os.close(free)
    files.sync_folder(tmp_path)
    again = os.dup(0)
    os.close(again)
    assert again == free


def test_an_error_of_who_writes_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="mine") as found, files.replacing(tmp_path / "x"):
        raise OSError(5, "mine")
    assert type(found.value) is OSError and not os.listdir(tmp_path)


def test_a_file_is_read_up_to_a_size_and_must_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "x", os.fstat
    path.write_bytes(b"12345")
    assert files.read_file(path, 5) == b"12345"
    with pytest.raises(FormatError, match="has 5 bytes, more than the 4"):
        files.read_file(path, 4)

    def grows(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        with open(path, "ab") as file:
            file.write(b"6")
        return found

    monkeypatch.setattr(files.os, "fstat", grows)
    with pytest.raises(FormatError, match="changed while it was read"):
        files.read_file(path, 50)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_gets_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"x" * 100)
    if not links:
        monkeypatch.setattr(files.os, "link", refused)
    for _ in range(2):
        files.link_file(one, two)
        assert two.read_bytes() == one.read_bytes() and os.path.samefile(one, two) == links
    with pytest.raises(FileNotFoundError):
        files.link_file(tmp_path / "nowhere", two)
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]
