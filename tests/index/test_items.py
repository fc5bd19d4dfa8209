"""Items beside the codes: what they may be, what keys do, and what is refused."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from models import POOL, fitted

from antisparse import FormatError, Index, InputError, InputTypeError, UnsupportedError
from antisparse.index import items as items_module
from antisparse.index import writer as writer_module
from antisparse.index.item_schema import key_hashes

TEXT = pa.schema([("key", pa.string()), ("text", pa.string()), ("year", pa.int64())])


def table(start, end, **columns):
    rows = range(start, end)
    made = {"key": [f"key {i}" for i in rows], "text": [f"text {i}" for i in rows], "year": [2000 + i for i in rows]}
    return pa.table(made | columns)


def with_vectors(start, end, **columns):
    return table(start, end, **columns).append_column("embedding", pa.array(list(POOL[start:end])))


@pytest.fixture(params=["memory", "folder"])
def index(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "index"
    with Index.create(path, fitted("signs"), items=TEXT, key="key") as made:
        made.add(with_vectors(0, 20))
        made.add(POOL[20:30], items=table(20, 30))
        yield made


def test_keys_are_spoken_everywhere(index) -> None:
    assert index.stats()["key"] == "key" and index.stats()["columns"] == "text, year"
    assert len(index) == 30 and "key 7" in index and "nothing" not in index and "" not in index
    assert index.items(["key 25", "key 3"]).to_pylist() == [
        {"key": "key 25", "text": "text 25", "year": 2025},
        {"key": "key 3", "text": "text 3", "year": 2003},
    ]
    for one in ("key 3", ["key 3"], {"key 3"}, np.array(["key 3"]), pd.Series(["key 3"]), pl.Series(["key 3"]), [3], 3):
        assert index.items(one).column("text").to_pylist() == ["text 3"]
        np.testing.assert_array_equal(index.codes(one), index.codes([3]))
    assert index.items([]).num_rows == 0 and index.items([]).schema.names == ["key", "text", "year"]
    index.remove(["key 3", "key 25"])
    assert "key 3" not in index and 3 not in index and len(index) == 28
    index.add(with_vectors(3, 4))  # a key that was removed comes back under another id
    assert index.items("key 3").to_pylist() == [{"key": "key 3", "text": "text 3", "year": 2003}]
    assert "key 3" in index and 3 not in index and 30 in index


def test_an_update_keeps_items_or_replaces_them(index) -> None:
    before = index.codes(["key 1", "key 2"])
    index.update(POOL[50:52], ["key 1", "key 2"])
    assert (index.codes(["key 1", "key 2"]) != before).any()
    assert index.items(["key 2", "key 1"]).column("text").to_pylist() == ["text 2", "text 1"]
    index.update(with_vectors(1, 3, text=["new", None]))
    np.testing.assert_array_equal(index.codes(["key 1", "key 2"]), before)
    assert index.items(["key 1", "key 2"]).column("text").to_pylist() == ["new", None]
    index.update(POOL[60:61], items=table(5, 6, year=[1]))
    assert index.items("key 5").column("year").to_pylist() == [1]
    index.verify()


@pytest.mark.parametrize("make", [lambda t: t, pl.DataFrame, lambda t: t.to_pandas(), lambda t: t.to_batches()[0]])
def test_tables_of_every_kind(index, make) -> None:
    index.add(make(with_vectors(30, 40)))
    index.add(POOL[40:50], items=make(table(40, 50)))
    assert index.items([f"key {i}" for i in range(50)]).equals(table(0, 50).cast(index.items([]).schema))


def test_answers_are_tables(index) -> None:
    index.remove(["key 4"])
    distances, ids = index.search(POOL[:6], 3)
    found = index.search(POOL[:6], 3, items=True)
    assert found.column_names == ["query", "rank", "distance", "key", "text", "year"]
    assert found["query"].to_pylist() == np.repeat(np.arange(6), 3).tolist()
    assert found["rank"].to_pylist() == [1, 2, 3] * 6
    np.testing.assert_array_equal(found["distance"].to_numpy(), distances.reshape(-1))
    assert found["text"].to_pylist() == [f"text {i}" for i in ids.reshape(-1)]
    one = index.search(POOL[0], 3, items=True)
    assert one.equals(found.slice(0, 3))
    few = index.search(POOL[:2], 9, filter=["key 1", "key 2", "key 99"], items=True)  # what is not found has no row
    assert sorted(few["key"].to_pylist()) == ["key 1", "key 1", "key 2", "key 2"]
    assert index.search(POOL[:2], 3, filter=set(), items=True).num_rows == 0


def test_filters_by_keys(index) -> None:
    keys = ["key 1", "key 22", "key 7", "not there"]
    wanted = index.search(POOL[:4], 3, filter=[1, 22, 7])
    for given in (keys, set(keys), np.array(keys), pl.Series(keys)):
        for mine, right in zip(index.search(POOL[:4], 3, filter=given), wanted, strict=True):
            np.testing.assert_array_equal(mine, right)
    limits, _, ids = index.range_search(POOL[:4], 1e9, filter=keys)
    assert limits.tolist() == [0, 3, 6, 9, 12] and set(ids) == {1, 7, 22}


def test_integers_that_are_keys_are_the_ids(tmp_path) -> None:
    schema = pa.schema([("id", pa.int32()), ("text", pa.string())])
    with Index.create(tmp_path / "index", fitted("signs"), items=schema, key="id") as index:
        made = pa.table({"id": pa.array([7, 3, 11], pa.int16()), "text": ["a", None, "c"]})
        np.testing.assert_array_equal(index.add(POOL[:3], items=made), [7, 3, 11])
        assert index.items([11, 3]).to_pylist() == [{"id": 11, "text": "c"}, {"id": 3, "text": None}]
        assert 7 in index and "7" not in index
        with pytest.raises(InputError, match="id 7 is there already"):
            index.add(POOL[:3], items=made)
        with pytest.raises(InputError, match="integer keys are from 0 on"):
            index.add(POOL[:1], items={"id": [-1], "text": ["a"]})
        with pytest.raises(InputTypeError, match="the keys of this index are integers"):
            index.add(POOL[:1], items={"id": ["x"], "text": ["a"]})
        with pytest.raises(InputError, match="ids cannot be given where items have a key"):
            index.add(POOL[:1], [4], items={"id": [4], "text": ["a"]})
        assert index.search(POOL[:1], 1, items=True).column_names == ["query", "rank", "distance", "id", "text"]


def test_a_key_alone_and_columns_alone(tmp_path) -> None:
    for key, kind in (("id", pa.int64()), ("id", pa.string())):
        path = tmp_path / str(kind)
        values = [5, 6] if kind == pa.int64() else ["a", "b"]
        with Index.create(path, fitted("signs"), items=pa.schema([(key, kind)]), key=key) as index:
            index.add(POOL[:2], items={"id": values})
            index.compact()
        with Index.open(path, verify=True) as index:
            assert index.items().to_pylist() == [{"id": value} for value in values]
            assert index.search(POOL[1], 1, items=True)["id"].to_pylist() == values[1:]
    with Index.create(None, fitted("signs"), items=pa.schema([("text", pa.string())])) as index:
        index.add(POOL[:2], [9, 4], items={"text": ["a", "b"]})
        assert index.search(POOL[1], 1, items=True).to_pylist()[0].items() >= {"id": 4, "text": "b"}.items()
        assert index.items([9]).to_pylist() == [{"text": "a"}]


TYPES = {
    "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
    "lists": pa.array([["a"], [], None]),
    "fixed lists": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int8(), 2)),
    "struct": pa.array([{"a": "x", "b": [1]}, None, {"a": None, "b": None}]),
    "dates": pa.array([1, 2, None], pa.date32()),
    "timestamps": pa.array([1, 2, None], pa.timestamp("us", "Europe/Paris")),
    "decimals": pa.array([None, 1, 2], pa.decimal128(9, 2)),
    "binary": pa.array([b"\0", b"", None]),
    "bool": pa.array([True, None, False]),
    "nulls": pa.nulls(3),
    "half": pa.array(np.array([1, 2, 3], np.float16)),
    "durations": pa.array([1, 2, None], pa.duration("s")),
}


if hasattr(pa, "uuid"):  # of pyarrow 18, which casts views too
    TYPES["uuid"] = pa.array([b"0" * 16, b"1" * 16, None], pa.uuid())
    TYPES["view"] = pa.array(["a", "b", None]).cast(pa.string_view())


@pytest.mark.parametrize("kind", TYPES)
def test_columns_of_every_type(tmp_path, kind: str) -> None:
    column = TYPES[kind]
    schema = pa.schema([("key", pa.string()), ("x", column.type)])
    with Index.create(tmp_path / "index", fitted("signs"), items=schema, key="key") as index:
        for name in "ab":
            index.add(POOL[:3], items=pa.table({"key": [f"{name}{i}" for i in range(3)], "x": column}))
        index.remove(["a1"])
        index.compact()
    with Index.open(tmp_path / "index", verify=True) as index:
        plain = getattr(column, "storage", column).to_pylist()
        assert index.items(["b2", "a0", "b1"]).column("x").to_pylist() == [plain[2], plain[0], plain[1]]


def test_what_is_refused_and_changes_nothing(index) -> None:
    before = index.items()
    for wrong, message in (
        (lambda: index.add(POOL[:2]), "items is missing"),
        (lambda: index.add(POOL[:2], items=table(50, 53)), "items has 3 rows for 2 vectors"),
        (lambda: index.add(POOL[:2], items={"key": ["x", "y"]}), "has 0 columns 'text'"),
        (lambda: index.add(POOL[:2], items=table(50, 52, year=["a", "b"])), "does not fit int64"),
        (lambda: index.add(POOL[:2], items=table(50, 52, key=["x", None])), "has nulls"),
        (lambda: index.add(POOL[:2], items=table(50, 52, key=["x", "x"])), "key 'x' stands twice"),
        (lambda: index.add(POOL[:2], items=table(50, 52, key=[1, 2])), "the keys of this index are text"),
        (lambda: index.add(POOL[:2], items=table(50, 52, key=["x" * 70000, "b"])), "70000 bytes"),
        (lambda: index.add(POOL[:2], items=table(28, 30)), "key 'key 28' is there already"),
        (lambda: index.add(POOL[:2], items=3), "items must be a table"),
        (lambda: index.add(POOL[:2], [50, 51], items=table(50, 52)), "ids cannot be given"),
        (lambda: index.add(iter([with_vectors(50, 52)]), items=table(50, 52)), "beside an iterator"),
        (lambda: index.add(iter([with_vectors(50, 52), with_vectors(51, 53)])), "key 'key 51' is there already"),
        (lambda: index.add(table(50, 52)), "0 columns of vectors"),
        (lambda: index.update(with_vectors(50, 52)), "key 'key 50' is not in the index"),
        (lambda: index.update(POOL[:1]), "ids is missing"),
        (lambda: index.update(POOL[:1], ["key 1", "key 2"]), "ids has 2 entries for 1 vectors"),
        (lambda: index.update(POOL[:2], ["key 1", "key 1"]), "twice"),
        (lambda: index.update(POOL[:1], ["key 1"], items=table(1, 2)), "ids cannot be given beside items"),
        (lambda: index.remove(["key 1", "nothing"]), "key 'nothing' is not in the index"),
        (lambda: index.remove(["key 1", 2]), "ids holds text and int; all must be text"),
        (lambda: index.items(["x" * 1000]), "is not in the index"),
    ):
        with pytest.raises((InputError, InputTypeError), match=message) as raised:
            wrong()
        assert len(str(raised.value)) < 400
        assert index.items().equals(before) and len(index) == 30
    index.verify()


@pytest.mark.parametrize(
    ("schema", "key", "message"),
    [
        (TEXT, "nothing", "key names 'nothing'"),
        (TEXT, 3, "key must be the name of a column"),
        (None, "key", "items is None"),
        ({"key": "string"}, "key", "must be a pyarrow.Schema"),
        (pa.schema([("key", pa.float64())]), "key", "keys are integers or text"),
        (pa.schema([("query", pa.string())]), None, "a column of every answer"),
        (pa.schema([("id", pa.string())]), None, "a column of every answer"),
        (pa.schema([("a", pa.string()), ("a", pa.string())]), None, "twice"),
        (pa.schema([("a", pa.dense_union([pa.field("b", pa.int8())]))]), None, "items cannot have"),
    ],
)
def test_schemas_that_are_refused(schema, key, message: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=message):
        Index.create(None, fitted("signs"), items=schema, key=key)


def test_an_index_without_items_says_so() -> None:
    index = Index.create(None, fitted("signs"))
    index.add(POOL[:5])
    for wrong in (
        lambda: index.items([1]),
        lambda: index.search(POOL[:1], 2, items=True),
        lambda: index.add(POOL[:1], items={"a": [1]}),
    ):
        with pytest.raises(UnsupportedError, match="keeps no items"):
            wrong()


def test_copies_carry_items(index, tmp_path) -> None:
    index.remove("key 5")
    index.save(tmp_path / "copy")
    with Index.open(tmp_path / "copy", verify=True) as copy:
        assert copy.items().equals(index.items())
        copy.add(with_vectors(5, 6))
    with Index.open(tmp_path / "copy", read_only=True, memory=True) as copy:
        assert copy.items("key 5").num_rows == 1 and len(copy) == 30
    if "memory" in repr(index):
        again = pickle.loads(pickle.dumps(index))
        assert again.items().equals(index.items()) and again.snapshot.next_id == index.snapshot.next_id


def test_keys_of_one_hash_are_told_apart(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 bits do not collide by chance; here all keys share a few hashes."""

    def few(keys):
        return key_hashes(keys) % np.uint64(3)

    for module in ("writer", "snapshot", "segment"):
        monkeypatch.setattr(f"antisparse.index.{module}.key_hashes", few)
    with Index.create(tmp_path / "index", fitted("signs"), items=TEXT, key="key") as index:
        index.add(with_vectors(0, 40))
        index.add(with_vectors(40, 70))
        index.remove([f"key {i}" for i in range(0, 70, 4)])
        keys = [f"key {i}" for i in range(80)]
        for _ in range(2):
            assert [key in index for key in keys] == [i % 4 != 0 and i < 70 for i in range(80)]
            index.verify()
            index.compact()
        with pytest.raises(InputError, match="is there already"):
            index.add(with_vectors(1, 2))


def test_many_batches_and_segments(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows across batches of a file, segments cut by the bytes of items, merges that gather from many."""
    monkeypatch.setattr(items_module, "BATCH", 7)
    monkeypatch.setattr(writer_module, "_SEGMENT_ITEMS", 2000)
    with Index.create(tmp_path / "index", fitted("signs"), items=TEXT, key="key") as index:
        index.add(with_vectors(at, at + 3) for at in range(0, 120, 3))
        assert len(index.snapshot.segments) > 1
        index.remove([f"key {i}" for i in range(0, 120, 5)])
        for at in range(120, 150):
            index.add(with_vectors(at, at + 1))
        wanted = [f"key {i}" for i in range(149, -1, -1) if i % 5 or i >= 120]
        for _ in range(2):
            assert index.items(wanted).column("text").to_pylist() == [key.replace("key", "text") for key in wanted]
            index.verify()
            index.compact()
    with Index.open(tmp_path / "index") as index:
        assert index.items(wanted).column("key").to_pylist() == wanted


def test_damage_is_found_where_it_is_read(tmp_path) -> None:
    with Index.create(tmp_path / "index", fitted("signs"), items=TEXT, key="key") as index:
        index.add(with_vectors(0, 20))
    path = next((tmp_path / "index").glob("items-*"))
    data = bytearray(path.read_bytes())
    at = data.find(b"text 7")
    data[at] = 0xFF  # which is no text
    path.write_bytes(data)
    index = Index.open(tmp_path / "index", read_only=True)
    assert index.search(POOL[:2], 3)[1].shape == (2, 3)
    with pytest.raises(FormatError, match="its items are damaged"):
        index.search(POOL[:2], 3, items=True)
    with pytest.raises(FormatError, match="checksum"):
        index.verify()


def test_without_items_pyarrow_is_not_imported(tmp_path) -> None:
    with Index.create(tmp_path / "index", fitted("signs")) as index:
        index.add(POOL[:20])
    code = (
        "import sys, numpy as np; from antisparse import Index\n"
        f"index = Index.open({str(tmp_path / 'index')!r}, verify=True)\n"
        "index.add(np.ones((3, 10))); index.search(np.ones((3, 10)), 2, filter=[1, 2])\n"
        "index.remove([3]); index.compact()\n"
        "assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert '"features":["packed ids"]' in (tmp_path / "index" / "manifest.json").read_text()
