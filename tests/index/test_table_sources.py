"""Indexes from tables: whatever they are in, the same index; read a batch at a time."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from antisparse import FormatError, Index, InputError, InputTypeError, MissingFileError
from antisparse.errors import AntisparseError

N, D = 900, 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32)
KEYS = [str(uuid.UUID(int=int(i) * 2**90 + 7)) for i in range(N)]
TABLE = pa.table(
    {
        "embedding": pa.array(list(X), pa.list_(pa.float32(), D)),
        "id": KEYS,
        "text": [f"text {i} é" for i in range(N)],
        "lang": [("en", "de", None)[i % 3] for i in range(N)],
        "unused": list(range(N)),
    }
)
NAMED = {"vector": "embedding", "key": "id", "columns": ["text", "lang"]}
QUICK = {"n_bytes": 2, "symbols": "signs", "effort": 1, "random_state": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    for name in ("parts", "parts/.hidden", "arrow"):
        (place / name).mkdir()
    for number, start in enumerate(range(0, N, 250)):
        pq.write_table(TABLE.slice(start, 250), place / "parts" / f"{number}.parquet", row_group_size=100)
        feather.write_feather(TABLE.slice(start, 250), place / "arrow" / f"{number}.arrow", compression="uncompressed")
    (place / "parts/.hidden/x.parquet").write_bytes(b"not for us")
    (place / "parts/readme.txt").write_bytes(b"nor this")
    pq.write_table(TABLE, place / "all.parquet", row_group_size=64)
    by_lang = TABLE.filter(pa.compute.is_valid(TABLE["lang"]))
    ds.write_dataset(by_lang, place / "hive", format="parquet", partitioning=["lang"], partitioning_flavor="hive")
    return place


SOURCES = {
    "table": lambda f: TABLE,
    "pandas": lambda f: TABLE.to_pandas(),
    "polars": lambda f: pl.DataFrame(TABLE),
    "batch": lambda f: TABLE.combine_chunks().to_batches()[0],
    "file": lambda f: f / "all.parquet",
    "text": lambda f: str(f / "all.parquet"),
    "folder": lambda f: f / "parts",
    "glob": lambda f: str(f / "parts" / "?.parquet"),
    "files": lambda f: sorted(str(file) for file in (f / "parts").glob("*.parquet")),
    "Arrow files": lambda f: f / "arrow",
    "address": lambda f: (f / "parts").as_uri(),
    "data set": lambda f: ds.dataset(f / "all.parquet"),
    "reader": lambda f: TABLE.to_reader(max_chunksize=77),
}


@pytest.fixture(scope="module")
def expected() -> Index:
    return Index.build(X, **QUICK)


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_index_of_every_source(kind: str, folder: Path, expected: Index, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with Index.build(SOURCES[kind](folder), path=path, **NAMED, **QUICK) as index:
        np.testing.assert_array_equal(index.codes(KEYS), expected.codes(np.arange(N)))
        assert index.items(KEYS).equals(TABLE.select(["id", "text", "lang"]).cast(index.items([]).schema))
        found = index.search(X[:5], 3, items=True)
        assert found["id"].to_pylist() == [KEYS[i] for i in expected.search(X[:5], 3)[1].reshape(-1)]
    with Index.open(path, verify=True) as index:
        index.remove(KEYS)
        added = index.add(SOURCES[kind](folder))  # the column of vectors is known from the beginning
        assert len(added) == len(index) == N
        np.testing.assert_array_equal(index.codes(KEYS), expected.codes(np.arange(N)))


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind not in ("table", "pandas", "polars", "batch")])
def test_without_key_and_columns_ids_are_rows(kind: str, folder: Path, expected: Index) -> None:
    index = Index.build(SOURCES[kind](folder), **QUICK)
    assert index.snapshot.schema is None
    np.testing.assert_array_equal(index.codes(np.arange(N)), expected.codes(np.arange(N)))
    index.add(SOURCES[kind](folder))
    np.testing.assert_array_equal(index.codes(N + np.arange(N)), expected.codes(np.arange(N)))


def test_partitions_are_columns(folder: Path) -> None:
    index = Index.build(folder / "hive", **NAMED, **QUICK)
    rows = [i for i in range(N) if i % 3 < 2]
    assert len(index) == len(rows)
    assert index.items([KEYS[i] for i in rows])["lang"].to_pylist() == [("en", "de")[i % 3] for i in rows]


def test_a_sample_is_drawn_from_all_of_a_file(folder: Path) -> None:
    """Not from its beginning: vectors that are sorted must not spoil what is learned."""
    ordered = np.sort(np.abs(X).sum(1))[:, None] * np.ones(D) + X / 10
    table = pa.table({"v": pa.array(list(ordered.astype(np.float32)))})
    pq.write_table(table, folder / "sorted.parquet")
    index = Index.build(folder / "sorted.parquet", train=100, **QUICK)
    mean = index.codec.reduction.mean
    assert abs(mean - ordered.mean(0)).max() < abs(mean - ordered[:100].mean(0)).max()


def test_a_key_that_is_an_integer_and_a_learned_set_apart(folder: Path) -> None:
    index = Index.build(TABLE, vector="embedding", key="unused", learn=X[:200], **QUICK)
    np.testing.assert_array_equal(index.ids, np.arange(N))
    assert index.items([5]).to_pylist() == [{"unused": 5}]


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("nowhere.parquet", {}, MissingFileError, "there is no such file"),
        ("*.nothing", {}, MissingFileError, "there are no such files"),
        ("bad.parquet", {}, FormatError, "could not be read"),
        ("x.txt", {}, InputError, "must be files of one of the kinds"),
        ("fifo.parquet", {}, InputTypeError, "not a regular file"),
        (["all.parquet", "x.txt"], {}, InputError, "must be files of one of the kinds"),
        (["file:///a", "file:///b"], {}, InputError, "several addresses"),
        ("nothing://x/y", {}, FormatError, "could not be read"),
        ("all.parquet", {"vector": "nothing"}, InputError, "vector = 'nothing' is no column"),
        ("all.parquet", {"vector": "text"}, InputTypeError, "column 'text' is of type"),
        ("all.parquet", {"key": "nothing"}, InputError, "key names 'nothing'"),
        ("all.parquet", {"columns": ["nothing"]}, InputError, "columns names 'nothing'"),
        ("all.parquet", {"columns": "text"}, InputTypeError, "columns must be a sequence"),
        ("all.parquet", {"key": "lang"}, InputError, "has nulls"),
        ("all.parquet", {"key": "embedding"}, InputError, "the key or the vector"),
        ("all.parquet", {"key": "id", "ids": np.arange(N)}, InputError, "ids cannot be given"),
        ("two.parquet", {}, InputError, "2 columns of vectors"),
        ("ragged.parquet", {}, InputError, "row 1 has 1 values"),
        ("nulls.parquet", {}, InputError, "missing entries"),
        ("twice.parquet", {"key": "id"}, InputError, "key 'a' stands twice"),
        ("empty.parquet", {}, InputError, "no rows"),
        (X, {"key": "id"}, InputTypeError, "X must be a table"),
    ],
)
def test_what_cannot_be_built(folder: Path, monkeypatch, tmp_path, source, options, error, message: str) -> None:
    monkeypatch.chdir(folder)
    if not Path("bad.parquet").exists():
        Path("bad.parquet").write_bytes(b"PAR1 and nothing else PAR1")
        Path("x.txt").write_bytes(b"text")
        os.mkfifo("fifo.parquet")
        for name, columns in {
            "two": {"a": [[1.0]], "b": [[1.0]]},
            "ragged": {"a": [[1.0, 2.0], [1.0]]},
            "nulls": {"a": [[1.0, 2.0], None]},
            "twice": {"a": [[1.0, 2.0]] * 2, "id": ["a", "a"]},
            "empty": {"a": pa.array([], pa.list_(pa.float32()))},
        }.items():
            pq.write_table(pa.table(columns), f"{name}.parquet")
    with pytest.raises(error, match=message):
        Index.build(source, path=tmp_path / "index", **QUICK, **options)
    assert os.listdir(tmp_path) == []


def test_a_file_that_breaks_off_changes_nothing(folder: Path, tmp_path: Path) -> None:
    data = bytearray((folder / "all.parquet").read_bytes())
    at = len(data) // 2
    data[at : at + 2000] = bytes(2000)
    (tmp_path / "broken.parquet").write_bytes(data)
    with Index.create(
        tmp_path / "index", Index.build(X, **QUICK).codec, items=TABLE.select(["id"]).schema, key="id"
    ) as index:
        index.add(X[:3], items={"id": ["a", "b", "c"]})
        with pytest.raises(AntisparseError):
            index.add(tmp_path / "broken.parquet")
        assert len(index) == 3
        index.verify()


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Three times the vectors and texts take little more memory to build: a part of them is held at a time."""
    rows, width = 4000, 512
    table = pa.table(
        {
            "v": pa.FixedSizeListArray.from_arrays(
                pa.array(RNG.standard_normal(rows * width).astype(np.float32)), width
            ),
            "text": [f"{i} " * 100 for i in range(rows)],
        }
    )
    for part in range(24):
        keys = pa.array([f"{part}-{i}" for i in range(rows)])
        (tmp_path / ("few" if part < 6 else "many")).mkdir(exist_ok=True)
        name = tmp_path / ("few" if part < 6 else "many") / f"{part}.parquet"
        pq.write_table(table.append_column("id", keys), name, row_group_size=1000)
    code = (
        "import resource, sys; from antisparse import Index\n"
        "quick = {'n_bytes': 4, 'symbols': 'signs', 'effort': 1, 'random_state': 0, 'train': 2000}\n"
        "named = {'vector': 'v', 'key': 'id', 'columns': ['text'], 'path': sys.argv[1] + '.index'}\n"
        "index = Index.build(sys.argv[1], **named, **quick)\n"
        "assert '5-3999' in index or '23-3999' in index\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    peaks = []
    for name in ("few", "many"):
        command = [sys.executable, "-c", code, name]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(run.stdout))
    more = 12 * rows * (width * 4 + 490) >> 20  # MB of what is more
    assert more > 100 and peaks[1] - peaks[0] < more * 0.8, peaks


def test_a_data_set_that_is_filtered(folder: Path) -> None:
    some = ds.dataset(folder / "all.parquet").filter(ds.field("unused") < 300)
    index = Index.build(some, **NAMED, **QUICK)
    assert index.items()["text"].to_pylist() == TABLE["text"].to_pylist()[:300]


@pytest.mark.parametrize("kind", ["Arrow", "batch", "pandas", "polars", "dict"])
def test_the_column_of_vectors_of_a_table_in_memory_is_found(kind: str) -> None:
    """As that of a file is: beside a key, a text with nulls, a year."""
    made = {
        "Arrow": lambda table: table,
        "batch": lambda table: table.combine_chunks().to_batches()[0],
        "pandas": lambda table: table.to_pandas(),
        "polars": pl.from_arrow,
        "dict": lambda table: dict(zip(table.column_names, table.columns, strict=True)),
    }[kind]
    table = TABLE.select(["id", "text", "lang", "embedding"])
    expected, index = Index.build(X, **QUICK), Index.build(made(table), **QUICK)
    assert index.codec == expected.codec
    index.add(made(table.slice(0, 20)))
    index.update(made(table.slice(20, 5)), [0, 1, 2, 3, 4])
    ids = np.r_[20:25, 5:N, :20]
    np.testing.assert_array_equal(index.codes(np.arange(N + 20)), expected.codes(ids))
    with pytest.raises(InputError, match="0 columns of vectors"):
        Index.build(made(table.select(["id", "text"])), **QUICK)


def test_texts_without_a_model() -> None:
    with pytest.raises(MissingFileError, match="'one': there is no such file; texts need model="):
        Index.build(["one", "two"], **QUICK)
    with pytest.raises(MissingFileError, match=r"there is no such file$"):
        Index.build(["one.parquet"], **QUICK)


def test_an_iterator_of_tables() -> None:
    expected = Index.build(TABLE, **NAMED, **QUICK)
    parts = [TABLE.slice(0, 300), TABLE.slice(300, 300).to_pandas(), pl.DataFrame(TABLE.slice(600))]
    index = Index.build(iter(parts), **NAMED, **QUICK)
    assert index.codec == expected.codec and index.items(KEYS) == expected.items(KEYS)
    np.testing.assert_array_equal(index.codes(np.arange(N)), expected.codes(np.arange(N)))
    with pytest.raises(InputError, match="X has no rows"):
        Index.build(iter([]), **NAMED, **QUICK)
    with pytest.raises(InputTypeError, match="X must be a table"):
        Index.build(iter([X]), **NAMED, **QUICK)
    with pytest.raises(FormatError, match="X could not be read"):
        Index.build(iter([TABLE, TABLE.select(["id"])]), **NAMED, **QUICK)
