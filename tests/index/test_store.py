"""What the folder of an index holds and allows, where no other test would notice: found by mutants of the code."""

import json
import os
import zlib
from pathlib import Path

import pytest
from models import POOL, fitted

from antisparse import FormatError, Index, StorageError
from antisparse import _files as files
from antisparse.index.manifest import parse_manifest


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
