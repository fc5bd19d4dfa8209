"""What the folder of an index holds and allows, where no other test would notice: found by mutants of the code."""

import json
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from models import POOL, fitted

from antisparse import FormatError, Index, StorageError
from antisparse import _files as files
from antisparse.index.files import ArrayFile, pack_arrays
from antisparse.index.manifest import FileEntry, Manifest, ModelEntry, parse_manifest
from antisparse.index.store import FolderStore


@pytest.fixture
def index(tmp_path: Path):
    with Index.create(tmp_path / "index", fitted("signs"), n_threads=1) as made:
        made.add(POOL[:20])
        made.remove([3])
        yield made


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o000, 0o027])
def test_files_have_the_permissions_that_the_mask_leaves(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with Index.create(tmp_path / "index", fitted("signs"), n_threads=1) as made:
            made.add(POOL[:5])
            made.remove([1])
        fitted("signs").save(tmp_path / "one.codec")
    finally:
        os.umask(before)
    written = [path for path in (tmp_path / "index").iterdir() if path.name != ".lock"] + [tmp_path / "one.codec"]
    assert len(written) == 5
    assert {path.stat().st_mode & 0o777 for path in written} == {0o666 & ~mask}


def test_a_creation_that_fails_lets_go_of_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when the exception, whose frames hold the lock, is forgotten."""
    (tmp_path / "index").mkdir()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "write", full)
        with pytest.raises(StorageError) as held:
            Index.create(tmp_path / "index", fitted("signs"))
    Index.create(tmp_path / "index", fitted("signs")).close()
    assert "No space left" in str(held.value)


@pytest.mark.parametrize("name", ["next_id", "generation", "rows", "size"])
@pytest.mark.parametrize("value", [2**63, -1, True, 1.0, None])
def test_a_manifest_counts_up_to_63_bits(index: Index, tmp_path: Path, name: str, value: object) -> None:
    outer = json.loads((tmp_path / "index" / "manifest.json").read_text())
    content = outer["manifest"]
    first = content["segments"][0]
    {"rows": first, "size": first["codes"]}.get(name, content)[name] = value

    def spelled(what: object) -> bytes:
        return json.dumps(what, sort_keys=True, separators=(",", ":")).encode()

    data = spelled({"crc32": zlib.crc32(spelled(content)), "manifest": content})
    with pytest.raises(FormatError, match=r"is not a number of anything"):
        parse_manifest(data, "here")


@pytest.mark.parametrize("model", [ModelEntry("", None), ModelEntry(3, None), ModelEntry("m", 3)])
def test_a_manifest_names_its_model_by_text(model: ModelEntry) -> None:
    codec = FileEntry("codec-01234567.safetensors", 1, 1)
    for sound in (ModelEntry("m", None), ModelEntry("m", "text")):
        assert parse_manifest(Manifest(codec, model=sound).dumps(), "here") == Manifest(codec, model=sound)
    with pytest.raises(FormatError, match="what it says of its model is not sound"):
        parse_manifest(Manifest(codec, model=model).dumps(), "here")


def test_a_file_is_named_by_the_change_that_wrote_it(tmp_path: Path, index: Index) -> None:
    index.close()
    with Index.open(tmp_path / "index") as again:
        again.add(POOL[20:30])
        again.add(POOL[30:40])
    written = sorted(path.name[:16] for path in (tmp_path / "index").glob("segment-*"))
    assert written == ["segment-00000002", "segment-00000004", "segment-00000005"]


def test_an_add_leaves_the_other_files_as_they_are(tmp_path: Path, index: Index) -> None:
    index.add(POOL[20:30])  # a segment without deletions, after one with them
    before = set(os.listdir(tmp_path / "index"))
    index.add(POOL[30:40])
    after = set(os.listdir(tmp_path / "index"))
    assert before < after and len(after - before) == 1


def test_a_creation_removes_what_one_who_died_left(tmp_path: Path) -> None:
    (tmp_path / ".tmp-0123").write_bytes(b"x")
    Index.create(tmp_path, fitted("signs")).close()
    assert not list(tmp_path.glob(".tmp-*"))


@pytest.mark.parametrize("there", [False, True])
def test_a_creation_that_gets_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    path = tmp_path / "index"
    if there:
        path.mkdir()

    def refused(_: FolderStore) -> None:
        raise StorageError("no")

    monkeypatch.setattr(FolderStore, "lock", refused)
    with pytest.raises(StorageError, match="no"):
        Index.create(path, fitted("signs"))
    assert path.exists() == there


def test_headers_that_the_manifest_agrees_with(tmp_path: Path) -> None:
    """A length that the file is too short for, by one byte or by its highest one."""
    (header, values), crc = pack_arrays({"a": np.arange(3)}, {})
    path, size = tmp_path / "x", len(header) + len(values)
    path.write_bytes(header + values.tobytes())
    np.testing.assert_array_equal(ArrayFile(path, size, crc).arrays["a"], np.arange(3))
    wrong = header[:7] + b"\1" + header[8:]
    for data, of in ((wrong + values.tobytes(), wrong), *((b"\0" * n, b"\0" * n) for n in range(9))):
        path.write_bytes(data)
        with pytest.raises(FormatError):
            ArrayFile(path, len(data), zlib.crc32(of))
