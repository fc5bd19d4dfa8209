import contextlib
import json
import os
import tracemalloc
import zlib

import numpy as np
import pyarrow as pa
import pytest
from models import POOL, QUERIES, fitted
from mutation import bent, bent_codec, mutated

from antisparse import (
    AntisparseError,
    FormatError,
    Index,
    InputError,
    LearnedEncoder,
    LSHEncoder,
    Split,
    StorageError,
)
from antisparse.index import manifest as manifest_module
from antisparse.index.store import FolderStore

ALL_FLIPS = "ANTISPARSE_FLIPS" in os.environ  # every bit of every file
MUTATIONS = int(os.environ.get("ANTISPARSE_MUTATIONS", "2000"))  # 100,000 in CI


def contents(path):
    """The bytes of the files of an index, by name."""
    return {name: (path / name).read_bytes() for name in sorted(os.listdir(path)) if name != ".lock"}


# Few bytes each, and every kind of column between them: floats of scales; cells, a scale byte and a bias byte; a bias
# nibble of each cell.
TINY = {
    "lsh": LSHEncoder(4, random_state=0),
    "scale cells": LearnedEncoder(4, split=Split("signs", cells=2, scale=True), effort=1, random_state=0),
    "nibble cells": LearnedEncoder(2, split=Split("codebooks", cells=2, bias="nibble"), effort=1, random_state=0),
}


TEXTS = {"key": ["a", "b", "c", "d", "e", "f", "g", "h"], "text": ["x", None, "é", "", "yy", "zz", "q", "r"]}


def texts(start, end):
    return {name: values[start:end] for name, values in TEXTS.items()}


@pytest.fixture(params=[*TINY, "items"])
def tiny(request, tmp_path):
    """An index of two segments, one with deletions, of few bytes."""
    path = tmp_path / "index"
    if request.param == "items":
        schema = pa.schema([("key", pa.string()), ("text", pa.string())])
        with Index.create(path, TINY["lsh"].fit(POOL[:, :3]), items=schema, key="key") as index:
            index.add(POOL[:5, :3], items=texts(0, 5))
            index.remove(["b", "d"])
            index.add(POOL[5:8, :3], items=texts(5, 8))
        return path
    with Index.create(path, TINY[request.param].fit(POOL[:, :3])) as index:
        index.add(POOL[:5, :3])
        index.remove([1, 3])
        index.add(POOL[5:8, :3], [9, 8, 7])
    return path


def opens(path, verify=False):
    return FolderStore(path, read_only=True).open(verify=verify)


def header_bytes(data):
    return 8 + int.from_bytes(data[:8], "little")


def test_every_flipped_bit_is_found(tiny) -> None:
    opens(tiny, verify=True)
    for name, whole in contents(tiny).items():
        start = header_bytes(whole) if name.startswith("segment") else len(whole)  # of what only `verify` reads
        start = 0 if name.startswith("items") else start
        always, payload = range(8 * start), range(8 * start, 8 * len(whole))
        if not ALL_FLIPS:
            always = always if name == manifest_module.NAME else always[::5]
            payload = payload[::17]
        descriptor = os.open(tiny / name, os.O_RDWR)
        for bits, verify in ((always, False), (payload, True)):
            for bit in bits:
                os.pwrite(descriptor, bytes([whole[bit // 8] ^ 1 << bit % 8]), bit // 8)
                with pytest.raises(FormatError):
                    opens(tiny, verify)
                os.pwrite(descriptor, whole[bit // 8 : bit // 8 + 1], bit // 8)
        os.close(descriptor)
    opens(tiny, verify=True)


def test_a_flipped_bit_of_the_codes_is_found_by_verify(tiny) -> None:
    index = Index.open(tiny)
    index.verify()
    path = next(tiny.glob("segment-*"))
    data = bytearray(path.read_bytes())
    data[header_bytes(data)] ^= 1
    with path.open("r+b") as file:  # in place, as a disk does
        file.write(data)
    for check in (index.verify, lambda: Index.open(tiny, read_only=True, verify=True)):
        with pytest.raises(FormatError, match=r"segment-.*checksum.*damaged"):
            check()
    Index.open(tiny, read_only=True).search(QUERIES[:, :3], 3)  # of some codes


def test_opening_does_not_read_what_verify_compares(tiny) -> None:
    forger = Forger(tiny)
    manifest = json.loads(json.dumps(forger.manifest))
    manifest["segments"].append(manifest["segments"][1])
    forger.write(manifest=manifest)
    opens(tiny)
    with pytest.raises(FormatError, match="an id in two segments"):
        opens(tiny, verify=True)


def test_every_truncation_and_what_is_too_long_is_found(tiny) -> None:
    for name, whole in contents(tiny).items():
        for length in reversed(range(len(whole))):
            os.truncate(tiny / name, length)
            with pytest.raises(FormatError):
                opens(tiny)
        for more in (b"\0", b" ", whole):
            (tiny / name).write_bytes(whole + more)
            with pytest.raises(FormatError):
                opens(tiny)
        (tiny / name).write_bytes(whole)
    opens(tiny, verify=True)


def test_a_missing_file_is_named(tiny) -> None:
    for name, whole in contents(tiny).items():
        (tiny / name).unlink()
        with pytest.raises(FormatError, match=name):
            Index.open(tiny)
        (tiny / name).mkdir()
        with pytest.raises(FormatError, match=f"{name} is not a regular file"):
            Index.open(tiny)
        (tiny / name).rmdir()
        (tiny / name).write_bytes(whole)


def test_what_is_no_index(tmp_path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Index.open(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="no such folder"):
        Index.open(tmp_path / "file")
    for read_only in (True, False):
        with pytest.raises(FormatError, match=r"is not an index: it has no manifest\.json"):
            Index.open(tmp_path, read_only=read_only)
    assert os.listdir(tmp_path) == ["file"]  # no lock either
    for data in (b"", b"{}", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000, b'{"manifest": 3}', b'{"manifest": {}}'):
        (tmp_path / "manifest.json").write_bytes(data)
        with pytest.raises(FormatError, match=r"manifest\.json"):
            Index.open(tmp_path)


# Files that pass their checksums and say something else.


FORGED = ("spread", "signs", "signs cells scale", "codebooks cells nibble", "many cells", "codebooks ip", "spectral")


class Forger:
    """Makes files that agree with each other's sizes and checksums, from changed ones."""

    def __init__(self, path):
        self.path = path
        self.whole = contents(path)
        self.there = dict(self.whole)
        self.manifest = json.loads(self.whole[manifest_module.NAME])["manifest"]
        self.named = {}  # by the file, where the manifest speaks of it
        self.kinds = {"codec": [], "segment": [], "deleted": [], "items": []}
        for entry in self._entries(self.manifest):
            self.kinds[entry["file"].split("-")[0]].append(entry["file"])

    @staticmethod
    def _entries(manifest):
        parts = [manifest["codec"], *(s["codes"] for s in manifest["segments"])]
        return [*parts, *(s[kind] for s in manifest["segments"] for kind in ("deleted", "items") if s.get(kind))]

    def write(self, changed=(), manifest=None):
        """Files changed, and a manifest (or the one there was) that agrees with them."""
        changed = dict(changed)
        if manifest is None:
            manifest = json.loads(json.dumps(self.manifest))
            for entry in self._entries(manifest):
                data = changed.get(entry["file"])
                if data is not None:
                    whole = entry["file"].startswith(("codec", "items"))
                    entry |= {"size": len(data), "crc32": zlib.crc32(data if whole else data[: header_bytes(data)])}
        text = manifest_module._spell(manifest)
        changed[manifest_module.NAME] = manifest_module._spell({"crc32": zlib.crc32(text), "manifest": manifest})
        for name, data in self.whole.items():
            self.put(name, changed.get(name, data))

    def put(self, name, data):
        if self.there[name] != data:
            (self.path / name).write_bytes(data)
            self.there[name] = data

    def header(self, name):
        data = self.whole[name]
        return json.loads(data[8 : header_bytes(data)]), data[header_bytes(data) :]

    @staticmethod
    def with_header(header, payload):
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + payload


def forge(forger, random):
    """One mutation of one file, with checksums that say it is sound."""
    kinds = ["manifest", "manifest text", "codec", "segment", "header", "header", "values", "values", "deleted"]
    kinds += ["items"] * 9 * bool(forger.kinds["items"])
    kind = kinds[random.integers(len(kinds))]
    if kind == "manifest":
        return forger.write(manifest=bent(forger.manifest, random))
    if kind == "manifest text":
        forger.write()
        return forger.put(manifest_module.NAME, mutated(forger.whole[manifest_module.NAME], random))
    files = forger.kinds.get("segment" if kind in ("header", "values") else kind)
    name = files[random.integers(len(files))]
    if kind in ("segment", "items") or (kind == "deleted" and random.random() < 0.3):
        return forger.write({name: mutated(forger.whole[name], random)})
    if kind == "codec":
        return forger.write({name: bent_codec(forger.whole[name], random)})
    header, payload = forger.header(name)
    if kind == "header" or (kind == "deleted" and random.random() < 0.5):
        if random.random() < 0.2:
            header["__metadata__"] = bent(header["__metadata__"], random)
        else:
            header = bent(header, random)
        return forger.write({name: forger.with_header(header, payload)})
    payload = bytearray(payload)  # values that arrays of their type may have
    arrays = {key: entry for key, entry in header.items() if key != "__metadata__"}
    entry = arrays[random.choice(list(arrays))]
    begin, end = entry["data_offsets"]
    kind = entry["dtype"]
    dtype = np.dtype({"U8": "u1", "I64": "i8", "U32": "u4", "U64": "u8", "F32": "f4"}[kind])
    values = np.frombuffer(payload, dtype, (end - begin) // dtype.itemsize, begin)
    extreme = [0, 1, 31, 255]
    extreme += {"I64": [-1, -2, 2**40, 2**63 - 1, -(2**63)], "U32": [2**31, 2**32 - 1], "U64": [2**64 - 1]}.get(
        kind, []
    )
    extreme += [np.nan, np.inf, -np.inf, -1e-40, -1, -3e38] if kind == "F32" else []
    for _ in range(random.integers(1, 4)):
        other = extreme if random.random() < 0.7 else values
        values[random.integers(len(values))] = other[random.integers(len(other))]
    del values
    sums = {key: zlib.crc32(payload[slice(*entry["data_offsets"])]) for key, entry in arrays.items()}
    header["__metadata__"]["crc32"] = json.dumps(sums)
    return forger.write({name: forger.with_header(header, bytes(payload))})


def use(path, Q):
    """Everything an index can be asked, of one that may not be sound."""
    index = Index.open(path, read_only=True)
    asked = [
        lambda: index.search(Q, 4),
        lambda: index.search(Q[0], 4),
        lambda: index.search(Q, 3, method="hamming"),
        lambda: index.search(Q, 3, method="asymmetric", query="spread"),
        lambda: index.search(Q, 3, shortlist=5, filter=[0, 2, 7]),
        lambda: index.search(Q, 2, filter=np.ones(9, bool), probes=2),
        lambda: index.search(Q, 2, rerank=lambda ids: np.zeros((len(ids), Q.shape[1]))),
        lambda: index.range_search(Q, 2.0),
        lambda: index.codec.encode(Q),
        lambda: index.reconstruct(index.ids),
        lambda: (len(index), 3 in index, index.stats()),
        lambda: index.items().to_pylist(),
        lambda: index.items(["key 3", "key 42"]).to_pylist(),
        lambda: ("key 3" in index, "a" in index),
        lambda: index.search(Q, 4, items=True).to_pylist(),
        lambda: index.search(Q, 3, filter="text != 'text 3'"),
        lambda: index.search(Q, 3, filter="note != 'note 3'"),
        index.verify,
    ]
    for ask in asked:
        with contextlib.suppress(AntisparseError):
            ask()


def sample_of_items(path, name):
    """The same with keys, texts, lists and numbers beside the codes."""
    columns = {"key": pa.string(), "text": pa.string(), "tags": pa.list_(pa.string()), "n": pa.int32(), "b": pa.bool_()}

    def items(start, end):
        rows = range(start, end)
        texts = [None if i % 7 == 0 else f"text {i}" for i in rows]
        tags = [None if i % 5 == 0 else [f"t{i}"] * (i % 3) for i in rows]
        lists = {
            "key": [f"key {i}" for i in rows],
            "text": texts,
            "tags": tags,
            "n": list(rows),
            "b": [None] * len(rows),
        }
        return pa.table(lists, pa.schema(columns))

    with Index.create(path, fitted(name), items=pa.schema(columns), key="key") as index:
        index.add(POOL[:40], items=items(0, 40))
        index.remove(["key 1", "key 3", "key 39"])
        index.add(POOL[40:45], items=items(40, 45))
    return Forger(path)


def sample(path, name):
    """Two segments, the first with deletions."""
    with Index.create(path, fitted(name)) as index:
        index.add(POOL[:40])
        index.remove([1, 3, 39])
        index.add(POOL[40:45], [99, 98, 97, 96, 95])
    return Forger(path)


# One of each kind of column and of symbols: with all of the zoo there were too few mutations of each.
@pytest.mark.parametrize(("name", "make"), [*((name, sample) for name in FORGED), ("signs", sample_of_items)])
def test_forged_files_are_refused_or_searched(in_memory, name: str, make) -> None:
    random = np.random.default_rng(MUTATIONS)
    forger = make(in_memory / "index", name)
    opened = 0
    for _ in range(MUTATIONS // len(FORGED)):
        forge(forger, random)
        try:
            opens(forger.path)
        except (FormatError, StorageError):
            continue
        opened += 1
        with np.errstate(all="ignore"):  # what damaged numbers make of themselves
            use(forger.path, QUERIES)
    assert 0 < opened < MUTATIONS // len(FORGED)


@pytest.mark.parametrize("name", ["signs cells scale", "spread", "codebooks cells nibble"])
def test_reading_forged_files_takes_no_more_memory_than_they_do(tmp_path, name: str) -> None:
    random = np.random.default_rng(1)
    forger = sample(tmp_path / "index", name)
    most = 2 * sum(map(len, forger.whole.values())) + (1 << 20)
    opens(forger.path)
    tracemalloc.start()
    for _ in range(150):
        forge(forger, random)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(FormatError, StorageError):
            opens(forger.path, verify=True)
        assert tracemalloc.get_traced_memory()[1] - before < most
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version=3), r"format 3, written by antisparse .*reads format 2; upgrade antisparse"),
        (lambda m: m.update(version="2", segments={"new": "shape"}), "format 2"),
        (lambda m: m.update(version=9, writer="7.5", segments={"new": "shape"}), r"written by antisparse 7\.5"),
        (lambda m: m.update(version=1), r"written by antisparse 0\.1"),
        (lambda m: m.update(format="x"), "not the manifest of an index"),
        (lambda m: m.update(writer=3), "writer is missing"),
        (lambda m: m.pop("writer"), "not a sound manifest"),
        (lambda m: m.update(bit_order="lsb"), "bit order"),
        (lambda m: m.update(more=1), "checksum"),
        (lambda m: m.update(next_id=True), "not a number of anything"),
        (lambda m: m.update(generation=-1), "not a number of anything"),
        (lambda m: m["codec"].update(file="../codec"), "names the file"),
        (lambda m: m["codec"].update(file="/etc/passwd"), "names the file"),
        (lambda m: m["codec"].update(file="codec-\0.safetensors"), "names the file"),
        (lambda m: m["codec"].update(file="manifest.json"), "names the file"),
        (lambda m: m["codec"].update(size=2**62), "where the manifest says"),
        (lambda m: m["segments"][0].update(rows=4), "number of codes|a batch of 5 rows, where 4 belong"),
        (lambda m: m["segments"][0].update(deleted_rows=1), "deletions"),
        (lambda m: m["segments"][0].update(deleted=None), "deletions are missing"),
        (lambda m: m["segments"][0].update(codes=m["segments"][0]["deleted"]), "not a sound segment"),
        (lambda m: m["segments"][0].update(deleted=m["segments"][0]["codes"]), "not a sound segment"),
        (lambda m: m["segments"].append(m["segments"][1]), "an id in two segments"),
        (lambda m: m.update(next_id=3), "never given out"),
    ],
)
def test_a_forged_manifest_is_refused(tiny, change, message: str) -> None:
    forger = Forger(tiny)
    manifest = json.loads(json.dumps(forger.manifest))
    change(manifest)
    forger.write(manifest=manifest)
    with pytest.raises(FormatError, match=message):
        Index.open(tiny, verify=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["cell_ends"].update(shape=[float("inf")]), "header is not sound"),
        (lambda h: h["cell_ends"].update(shape=[0, 2**70], data_offsets=[0, 0]), "header is not sound"),
        (
            lambda h: h["cell_ends"].update(data_offsets=[at - 4 for at in h["cell_ends"]["data_offsets"]]),
            "begins where its type may not",
        ),
        (lambda h: h["cell_ends"].update(data_offsets=[0, 2**40], shape=[2**37]), "does not fit"),
        (lambda h: h["__metadata__"].update(rows="4"), "number of codes is not the manifest's"),
        (lambda h: h["__metadata__"].pop("rows"), "number of codes is not the manifest's"),
        (lambda h: h["__metadata__"].update(crc32="[]"), "checksum"),
        (lambda h: h["__metadata__"].update(crc32="3"), "header is not sound"),
        (lambda h: h.update(bias=h["cell_ends"]), "an array that is none of a segment's"),
        (lambda h: h.update(scales=h["cell_ends"]), r"scales has shape|scales is missing, or one too many"),
        (lambda h: h.update(cell_ends=h["blocks"]), "cell_ends has shape"),
        (lambda h: h.pop("cell_ends"), "cell_ends is missing"),
        (lambda h: h.pop("blocks"), "not a sound segment"),
        (lambda h: h.update(id_words=h["cell_ends"]), "not a sound segment"),
        (lambda h: h["__metadata__"].pop("lowest"), "not a sound segment"),
        (lambda h: h["__metadata__"].update(highest="x"), "not a sound segment"),
        (lambda h: h["__metadata__"].update(highest="7"), "not a sound segment|its ids"),
        (lambda h: h["__metadata__"].update(lowest="-1"), "not a sound segment"),
        (lambda h: h["__metadata__"].update(highest=str(2**70)), "out of range"),
        (lambda h: h.pop("__metadata__"), "header is not sound"),
    ],
)
def test_a_forged_header_is_refused(tiny, change, message: str) -> None:
    forger = Forger(tiny)
    name = forger.kinds["segment"][0]
    header, payload = forger.header(name)
    change(header)
    text = json.dumps(header)
    text += " " * (-(8 + len(text)) % 64)
    forger.write({name: len(text).to_bytes(8, "little") + text.encode() + payload})
    with pytest.raises(FormatError, match=message):
        Index.open(tiny, verify=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(features=["items", "wings"]), r"the index uses wings, which this antisparse .*upgrade"),
        (lambda m: m.update(features=["packed ids"]), "checksum"),
        (lambda m: m.update(features=["items"]), r"a version before 0\.2"),
        (lambda m: m.pop("features"), r"a version before 0\.2"),
        (lambda m: m["items"].update(schema="?"), "schema of its items is not sound"),
        (lambda m: m["items"].update(schema=""), "schema of its items is not sound"),
        (lambda m: m["items"].update(key="text"), "a key is null"),
        (lambda m: m["items"].update(key="nothing"), "not sound"),
        (lambda m: m["items"].update(key_kind="integer"), "not sound"),
        (lambda m: m["items"].update(key_kind="float"), "unknown kind"),
        (lambda m: m["items"].update(key=None), "unknown kind"),
        (lambda m: m["items"].update(vector=3), "what it says of items"),
        (lambda m: m["segments"][0].update(items=None), "items of a segment are missing"),
        (lambda m: m["segments"][0].update(items=m["segments"][1]["items"]), "does not match|belong|items"),
        (lambda m: m["segments"][0].update(items=m["segments"][0]["codes"]), "not a sound Arrow file|damaged"),
        (lambda m: m["segments"][0]["items"].update(file="../items-00000001-00000000.arrow"), "names the file"),
    ],
)
def test_a_manifest_that_lies_about_items_is_refused(tmp_path, change, message: str) -> None:
    forger = sample_of_items(tmp_path / "index", "signs")
    manifest = json.loads(json.dumps(forger.manifest))
    change(manifest)
    forger.write(manifest=manifest)
    with pytest.raises(FormatError, match=message):
        Index.open(forger.path, verify=True)


def test_a_key_that_stands_twice_is_found_by_verify(tmp_path) -> None:
    schema, codec = pa.schema([("key", pa.string())]), fitted("signs")
    with Index.create(tmp_path / "index", codec, items=schema, key="key") as index:
        index.add(POOL[:3], items={"key": ["a", "b", "c"]})
        index.remove("b")
        index.add(POOL[3:5], items={"key": ["b", "d"]})
        index.verify()
    forger = Forger(tmp_path / "index")
    manifest = json.loads(json.dumps(forger.manifest))
    manifest["segments"][0] |= {"deleted": None, "deleted_rows": 0}
    forger.write(manifest=manifest)
    with pytest.raises(FormatError, match="a key twice"):
        Index.open(tmp_path / "index", verify=True)
