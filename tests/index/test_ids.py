"""Ids of every kind, forged with checksums that are right: read within bounds, and refused under verify."""

import contextlib
import json
import zlib

import numpy as np
import pyarrow as pa
import pytest
from models import POOL, QUERIES, fitted
from test_damage import Forger, opens, use

from antisparse import FormatError, Index
from antisparse.index import ids as ids_module

# What is stored of each kind of ids.
FLAT, CELLS = ("id_firsts", "id_starts", "id_words"), tuple(ids_module.ARRAYS)
KINDS = {
    "flat, consecutive": ("signs", np.arange(40), ()),
    "flat": ("signs", 3 * np.arange(40), FLAT),
    "flat, 64 bits": ("signs", 2**35 * np.arange(40), FLAT),
    "cells, consecutive": ("signs cells scale", np.arange(40), CELLS),
    "cells": ("codebooks cells nibble", 3 * np.arange(40), CELLS),
    "cells, 64 bits": ("codebooks cells nibble", 2**35 * np.arange(40), CELLS),
}
DTYPES = {"U8": "u1", "I64": "i8", "U32": "u4", "U64": "u8", "F32": "f4"}
ITEMS = pa.schema([("note", pa.string())])


def forger_of(path, kind, items=False):
    name, ids, _ = KINDS[kind]
    options = {"items": ITEMS} if items else {}
    with Index.create(path, fitted(name), **options) as index:
        index.add(POOL[:40], ids, **({"items": {"note": [f"note {i}" for i in range(40)]}} if items else {}))
    return Forger(path)


def forged(forger, name, change):
    """The segment with an array changed in place, and every checksum as it should be."""
    file = forger.kinds["segment"][0]
    header, payload = forger.header(file)
    payload = bytearray(payload)
    begin, end = header[name]["data_offsets"]
    dtype = np.dtype(DTYPES[header[name]["dtype"]])
    values = np.frombuffer(payload, dtype, (end - begin) // dtype.itemsize, begin)
    before = values.copy()
    change(values)
    changed = not np.array_equal(before, values)
    del values
    arrays = {key: entry for key, entry in header.items() if key != "__metadata__"}
    sums = {key: zlib.crc32(payload[slice(*entry["data_offsets"])]) for key, entry in arrays.items()}
    header["__metadata__"]["crc32"] = json.dumps(sums)
    text = json.dumps(header)
    text += " " * (-(8 + len(text)) % 64)
    forger.write({file: len(text).to_bytes(8, "little") + text.encode() + bytes(payload)})
    return changed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("items", [False, True])
def test_every_kind_is_stored_as_it_says(tmp_path, kind: str, items: bool) -> None:
    forger = forger_of(tmp_path / "index", kind, items)
    header, _ = forger.header(forger.kinds["segment"][0])
    stored = {name for name in header if name.startswith(("id_", "cell_s"))}
    assert stored == set(KINDS[kind][2])
    assert ("order" in header) == (items and "cells" in kind)
    assert ("id_firsts" not in header) or (header["id_firsts"]["dtype"] == "U64") == ("64" in kind)
    with Index.open(tmp_path / "index", verify=True) as index:
        np.testing.assert_array_equal(index.ids, KINDS[kind][1])
        for i, one in enumerate(KINDS[kind][1].tolist()):
            assert one in index and (one + 1 in index) == (one + 1 in KINDS[kind][1])
            if items:
                assert index.items([one]).column("note").to_pylist() == [f"note {i}"]


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][2]])
def test_forged_ids_are_read_within_bounds_and_refused_by_verify(tmp_path, kind: str, items: bool) -> None:
    forger = forger_of(tmp_path / "index", kind, items)
    random = np.random.default_rng(0)
    for name in (*KINDS[kind][2], *(["order"] if items and "cells" in kind else [])):
        for value in (0, 31, 64, 2**31, 2**32 - 1, 2**64 - 1):

            def one(values, value=value):
                if value <= np.iinfo(values.dtype).max:
                    values[random.integers(len(values))] = value

            def every(values, value=value):
                values[:] = min(value, np.iinfo(values.dtype).max)

            for change in (one, every):
                if not forged(forger, name, change):
                    continue
                try:
                    snapshot = opens(forger.path, verify=True)
                except FormatError:
                    use(forger.path, QUERIES)
                else:  # other ids, as sound as these
                    assert name == "id_words" and change is one
                    assert len(snapshot.ids) == 40 and (np.diff(snapshot.ids) > 0).all()
                    assert snapshot.contains(snapshot.ids).all()


@pytest.mark.parametrize(
    ("kind", "name", "at"), [("flat", "id_firsts", 1), ("cells", "id_starts", None), ("cells", "id_words", None)]
)
def test_a_writer_does_not_join_forged_ids(tmp_path, kind: str, name: str, at: int | None) -> None:
    forger = forger_of(tmp_path / "index", kind)

    def change(values):
        values[slice(None) if at is None else at] = 0

    assert forged(forger, name, change)
    with contextlib.suppress(FormatError), Index.open(forger.path) as index:
        index.add(POOL[40:45], np.arange(1000, 1005))
        index.remove([1001])
        with pytest.raises(FormatError, match="run verify"):
            index.compact()


def test_more_deletions_than_codes_are_refused(tmp_path) -> None:
    name, ids, _ = KINDS["cells"]
    with Index.create(tmp_path / "index", fitted(name)) as index:
        index.add(POOL[:40], ids)
        index.remove(ids[:5])
    forger = Forger(tmp_path / "index")
    file = forger.kinds["deleted"][0]
    header, _ = forger.header(file)
    places = np.arange(41, dtype=np.uint32).tobytes()
    header["places"] |= {"shape": [41], "data_offsets": [0, len(places)]}
    header["__metadata__"]["crc32"] = json.dumps({"places": zlib.crc32(places)})
    text = json.dumps(header)
    text += " " * (-(8 + len(text)) % 64)
    forger.manifest["segments"][0]["deleted_rows"] = 41
    forger.write({file: len(text).to_bytes(8, "little") + text.encode() + places})
    with pytest.raises(FormatError, match="more deletions than codes"):
        opens(forger.path)


@pytest.mark.parametrize("kind", KINDS)
def test_forged_ranges_of_ids_are_refused(tmp_path, kind: str) -> None:
    forger = forger_of(tmp_path / "index", kind)
    file = forger.kinds["segment"][0]
    lowest, highest = int(KINDS[kind][1][0]), int(KINDS[kind][1][-1])
    for low, high in [
        (lowest + 1, highest),
        (lowest, highest + 1),
        (lowest, highest - 1),
        (highest, lowest),
        (-1, highest),
        (lowest, 2**63 - 1),
        (2**62, 2**62 + 39),
        (-(2**63), 2**63 - 1),
    ]:
        header, payload = forger.header(file)
        header["__metadata__"] |= {"lowest": str(low), "highest": str(high)}
        text = json.dumps(header)
        text += " " * (-(8 + len(text)) % 64)
        forger.write({file: len(text).to_bytes(8, "little") + text.encode() + payload})
        with pytest.raises(FormatError):
            opens(forger.path, verify=True)
        try:
            opens(forger.path)
        except FormatError:
            continue
        use(forger.path, QUERIES)


def test_an_index_without_packed_ids_is_refused_and_named(tmp_path) -> None:
    forger = forger_of(tmp_path / "index", "flat")
    assert forger.manifest["features"] == ["packed ids"]
    manifest = {name: value for name, value in forger.manifest.items() if name != "features"}
    forger.write(manifest=manifest)
    with pytest.raises(FormatError, match=r"a version before 0\.2"):
        Index.open(tmp_path / "index")
