"""Indexes of texts: embedded once, by a model whose name is kept and checked."""

import json
import pickle
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from letters import TITLES, Letters

from antisparse import FormatError, Index, InputError, InputTypeError, LearnedEncoder, MissingDependencyError
from antisparse._arrays import text_list
from antisparse.index import texts as module
from antisparse.index.manifest import read_manifest

N = len(TITLES)
QUICK = {"n_bytes": 6, "symbols": "signs", "effort": 1, "random_state": 0}
VECTORS, QUESTION = Letters().encode(TITLES), Letters().encode(["leaving a river"])[0]
TABLE = pa.table({"id": [f"k{i}" for i in range(N)], "title": TITLES, "year": [1900 + i % 100 for i in range(N)]})
NAMED = {"text": "title", "key": "id", "columns": ["title", "year"]}


@pytest.fixture
def model() -> Letters:
    return Letters()


@pytest.mark.parametrize(
    "texts",
    [TITLES, tuple(TITLES), np.array(TITLES), pd.Series(TITLES), pl.Series(TITLES), pa.array(TITLES)],
    ids=["list", "tuple", "numpy", "pandas", "polars", "Arrow"],
)
def test_texts_give_what_their_vectors_give(model, texts) -> None:
    index, plain = Index.build(texts, model=model, **QUICK), Index.build(VECTORS, **QUICK)
    assert index.codec == plain.codec
    np.testing.assert_array_equal(index.codes(index.ids), plain.codes(plain.ids))
    assert index.items()["text"].to_pylist() == TITLES
    assert sorted(model.embedded) == sorted(TITLES)  # each of them once
    for ours, theirs in zip(index.search("leaving a river", 4), plain.search(QUESTION, 4), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_column_of_texts_is_embedded_once_whatever_is_learned_from(model, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(TABLE.slice(number * N // 3, N // 3), tmp_path / f"{number}.parquet", row_group_size=70)
    index = Index.build(str(tmp_path / "*.parquet"), path=tmp_path / "index", model=model, train=300, **NAMED, **QUICK)
    assert sorted(model.embedded) == sorted(TITLES)
    same = Index.build(TABLE.to_reader(max_chunksize=90), model=Letters(), train=N, **NAMED, **QUICK)
    assert same.items().equals(index.items())
    with_all = Index.create(None, index.codec)
    with_all.add(VECTORS)
    np.testing.assert_array_equal(index.codes(index.ids), with_all.codes(with_all.ids))
    found = index.search("mapping the library 7", k=1, items=True).to_pylist()
    assert [(row["query"], row["title"]) for row in found] == [("mapping the library 7", "mapping the library 7")]
    index.close()


def test_more_texts_and_others_in_their_place(model, tmp_path: Path) -> None:
    index = Index.build(TITLES, path=tmp_path / "index", model=model, **QUICK)
    ids = index.add(["zebra crossing", "penguin"])
    index.update(["a yak"], [3])
    assert index.items([*ids, 3])["text"].to_pylist() == ["zebra crossing", "penguin", "a yak"]
    np.testing.assert_array_equal(index.codes([3]), index.codec.encode(model.encode(["a yak"])))
    index.close()
    with Index.open(tmp_path / "index", model=model) as again:
        assert again.model == "letters" and again.stats()["text"] == "text"
        assert again.search(["penguin"], 1, items=True)["text"].to_pylist() == ["penguin"]
        again.verify()


def test_tables_of_texts_are_added_and_replace(model) -> None:
    index = Index.build(TABLE, model=model, **NAMED, **QUICK)
    more = pa.table({"id": ["new", "newer"], "title": ["a gnu", "an emu"], "year": [1, 2]})
    index.add(more.to_pandas())
    index.update(pa.table({"id": ["new"], "title": ["an ibis"], "year": [3]}))
    index.add(iter([pa.table({"id": [f"it{i}"], "title": [f"it {i}"], "year": [i]}) for i in range(3)]))
    assert index.items(["new", "newer", "it2"]).to_pylist() == [
        {"id": "new", "title": "an ibis", "year": 3},
        {"id": "newer", "title": "an emu", "year": 2},
        {"id": "it2", "title": "it 2", "year": 2},
    ]
    np.testing.assert_array_equal(index.codes(["new"]), index.codec.encode(model.encode(["an ibis"])))
    with pytest.raises(InputError, match="column 'id'"):
        index.add(["a text without a key"])
    with pytest.raises(InputError, match="column 'title' has nulls"):
        index.add(pa.table({"id": ["x"], "title": pa.array([None], pa.string()), "year": [1]}))


def test_vectors_that_a_model_made_elsewhere(model, tmp_path: Path) -> None:
    table = TABLE.append_column("embedding", pa.array(list(VECTORS)))
    index = Index.build(table, path=tmp_path / "i", model="letters", key="id", columns=["title"], **QUICK)
    assert index.model == "letters" and not model.embedded
    index.close()
    with Index.open(tmp_path / "i", model=model) as again:
        assert again.search("leaving the desert 9", 1, items=True)["title"].to_pylist() == ["leaving the desert 9"]
        np.testing.assert_array_equal(again.embed("a b c"), model.encode(["a b c"]))


def test_vectors_alone_and_texts_to_ask(model) -> None:
    index = Index.build(VECTORS, model=model, **QUICK)
    assert index.search(TITLES[:5], 1)[1][:, 0].tolist() == [0, 1, 2, 3, 4]
    limits, _, ids = index.range_search(TITLES[5], 0.1)
    assert limits.tolist() == [0, len(ids)] and 5 in ids


def test_texts_without_items_beside_codes(model) -> None:
    index = Index.build(TABLE, model=model, text="title", **QUICK)
    assert index.snapshot.schema is None
    index.add(["a heron"])
    index.add(TABLE.slice(0, 2))
    np.testing.assert_array_equal(index.codes([N, N + 1]), index.codec.encode(model.encode(["a heron", TITLES[0]])))


def test_an_index_made_first_and_filled_later(model, tmp_path: Path) -> None:
    encoder = LearnedEncoder(6, symbols="signs", effort=1, random_state=0).fit(VECTORS)
    schema = pa.schema({"id": pa.string(), "title": pa.string()})
    with Index.create(tmp_path / "i", encoder, items=schema, key="id", text="title", model=model) as index:
        index.add(TABLE)
        assert index.search(TITLES[9], 1, items=True)["id"].to_pylist() == ["k9"]
    with pytest.raises(InputError, match="pass model="):
        Index.create(None, encoder, text="title")


def test_a_copy_keeps_the_model(model, tmp_path: Path) -> None:
    index = Index.build(TITLES, model=model, **QUICK)
    index.save(tmp_path / "saved")
    assert read_manifest(tmp_path / "saved").model == index.snapshot.model
    copy = pickle.loads(pickle.dumps(index))
    assert copy.model == "letters" and copy.search(TITLES[3], 1)[1].tolist() == [3]
    copy.add(["one more"])
    copy.compact()
    assert copy.model == "letters"


@pytest.mark.parametrize(
    ("kept", "named", "same"),
    [
        ("letters", "letters", True),
        ("letters", "other", False),
        ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", True),
        ("publisher/model", "some/folder/model", True),
        ("publisher/model-a", "publisher/model-b", False),
    ],
)
def test_an_index_takes_the_model_of_its_vectors_alone(tmp_path: Path, kept: str, named: str, same: bool) -> None:
    Index.build(TITLES, path=tmp_path / "i", model=Letters(kept), **QUICK).close()
    if same:
        Index.open(tmp_path / "i", model=Letters(named)).close()
        return
    with pytest.raises(InputError, match=f"model = '{named}', but the vectors of this index are from '{kept}'"):
        Index.open(tmp_path / "i", model=Letters(named))
    Index.open(tmp_path / "i").close()  # no lock is left


class Prompts(Letters):
    """Says which of its ways was taken."""

    def encode_query(self, texts: list[str]) -> np.ndarray:
        return self.encode([f"query: {text}" for text in texts])

    def encode_document(self, texts: list[str]) -> np.ndarray:
        return self.encode([f"passage: {text}" for text in texts])


def test_models_that_tell_questions_from_what_is_searched() -> None:
    model = Prompts()
    index = Index.build(TITLES, model=model, **QUICK)
    assert set(model.embedded) == {f"passage: {title}" for title in TITLES}
    index.search("who?")
    assert model.embedded[-1] == "query: who?"


def test_what_a_model_may_not_be(model) -> None:
    for wrong in (3, Letters, object(), ""):
        with pytest.raises(InputTypeError, match="model must be an object with a method encode"):
            Index.build(TITLES, model=wrong, **QUICK)
    with pytest.raises(InputError, match="text = 'title' is embedded by a model"):
        Index.build(TABLE, text="title", **QUICK)
    with pytest.raises(InputError, match="text = 'name' is no column; the table has 'id', 'title', 'year'"):
        Index.build(TABLE, text="name", model=model, **QUICK)
    with pytest.raises(InputTypeError, match="column 'year' is of type int64; texts are wanted"):
        Index.build(TABLE, text="year", model=model, **QUICK)
    with pytest.raises(InputTypeError, match="X holds text and int; all must be text"):
        Index.build(["a", 1], model=model, **QUICK)
    with pytest.raises(InputTypeError, match="Q holds text, and the index keeps the name of no model"):
        Index.build(VECTORS, **QUICK).search("a question")
    with pytest.raises(InputTypeError, match="texts must be text"):
        Index.build(VECTORS, model=model, **QUICK).embed(3)


class Short(Letters):
    """Gives a vector too few."""

    def encode(self, texts: list[str]) -> np.ndarray:
        return super().encode(texts)[1:]


def test_a_model_that_gives_too_few_vectors() -> None:
    with pytest.raises(InputError, match=r"model gave vectors of shape \(511, 24\) for 512 texts"):
        Index.build(TITLES, model=Short(), **QUICK)


class Reusing(Letters):
    """Gives the same memory every time."""

    def __init__(self) -> None:
        super().__init__()
        self.out = np.zeros((N, 24), np.float32)

    def encode(self, texts: list[str]) -> np.ndarray:
        self.out[: len(texts)] = super().encode(texts)
        return self.out[: len(texts)]


@pytest.mark.parametrize("source", [lambda: TITLES, lambda: TABLE.to_reader(max_chunksize=90)], ids=["list", "reader"])
def test_a_model_may_use_its_memory_again(source) -> None:
    named = {} if source() is TITLES else {"text": "title"}
    index, plain = Index.build(source(), model=Reusing(), **named, **QUICK), Index.build(VECTORS, **QUICK)
    np.testing.assert_array_equal(index.codes(index.ids), plain.codes(plain.ids))


@pytest.mark.parametrize(
    "later", [lambda v: v[:, :20], lambda v: v[:, :1], lambda v: v.astype(np.float64), lambda v: (9 * v).astype(int)]
)
def test_a_model_that_changes_its_mind(later) -> None:
    class Changing(Letters):
        def encode(self, texts: list[str]) -> np.ndarray:
            first = len(self.embedded) < 700
            return super().encode(texts) if first else later(super().encode(texts))

    with pytest.raises(InputError, match="after some of 24 float32"):
        Index.build(TITLES, model=Changing(), train=600, **QUICK)


@pytest.mark.parametrize("cast", [np.float16, ">f4", np.float64, list], ids=str)
def test_vectors_of_any_type_that_a_model_gives(cast) -> None:
    class Typed(Letters):
        def encode(self, texts: list[str]) -> Any:
            vectors = super().encode(texts)
            return vectors.tolist() if cast is list else vectors.astype(cast)

    index = Index.build(TITLES, model=Typed(), **QUICK)
    assert index.search(TITLES[:9], 1)[1][:, 0].tolist() == list(range(9))


def test_names_of_files_are_not_taken_for_texts(model, tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(TABLE.slice(number * 600, 600), tmp_path / f"{number}.parquet")
    names = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    with pytest.raises(InputError, match="X holds names of files"):
        Index.build(names, model=model, **QUICK)
    index = Index.build(names, model=model, **NAMED, **QUICK)
    assert index.items()["title"].to_pylist() == TITLES
    with pytest.raises(InputError, match="X holds names of files"):
        index.add(names)
    by_name = Index.build(TITLES, text="name", model=model, **QUICK)  # texts are texts, whatever their column is called
    assert by_name.items()["name"].to_pylist() == TITLES


def test_columns_of_any_kind_of_text(model) -> None:
    frame = pl.DataFrame({"title": TITLES, "again": pl.Series(TITLES).cast(pl.Categorical)})
    plain = Index.build(VECTORS, **QUICK)
    for table in (frame, frame.to_pandas(), pa.table({"title": pa.array(TITLES).dictionary_encode()})):
        index = Index.build(table, text="title", columns=["title"], model=Letters(), train=700, **QUICK)
        assert index.items()["title"].to_pylist() == TITLES
        assert len(index.add(table)) == N
    index = Index.build(frame, text="again", columns=["again"], model=Letters(), **QUICK)
    np.testing.assert_array_equal(index.codes(index.ids), plain.codes(plain.ids))
    index = Index.build([pa.scalar(title) for title in TITLES], model=Letters(), **QUICK)
    np.testing.assert_array_equal(index.codes(index.ids), plain.codes(plain.ids))


def test_a_column_that_is_called_as_ours_is_not_ours(model) -> None:
    table = TABLE.append_column("embedding", pa.array(list(VECTORS)))
    index = Index.build(table, vector="embedding", key="id", **QUICK)
    other = pa.table({"id": ["new"], "embedding": list(VECTORS[:1]), module.VECTOR: list(VECTORS[9:10])})
    index.add(other, vector="embedding")
    index.add(other.set_column(0, "id", pa.array(["newer"])))
    np.testing.assert_array_equal(index.codes(["new", "newer"]), index.codec.encode(VECTORS[[0, 0]]))
    with pytest.raises(InputError, match=f"X has a column '{module.VECTOR}'"):
        Index.build(TABLE.append_column(module.VECTOR, pa.array(list(VECTORS))), text="title", model=model, **QUICK)


def test_texts_and_what_is_kept_beside_them(model) -> None:
    index = Index.build(TABLE, model=model, **NAMED, **QUICK)
    index.add(["a gnu"], items={"id": ["gnu"], "year": [7]})
    assert index.items(["gnu"]).to_pylist() == [{"id": "gnu", "title": "a gnu", "year": 7}]
    index.update(["an emu"], items={"id": ["gnu"], "year": [8]})
    assert index.items(["gnu"]).to_pylist() == [{"id": "gnu", "title": "an emu", "year": 8}]
    with pytest.raises(InputError, match="items, column 'title', holds other texts than X"):
        index.add(["a gnu"], items={"id": ["x"], "title": ["a yak"], "year": [7]})
    index.add({"id": ["dict"], "title": ["a dict"], "year": [9]})
    assert len(index.add(iter([TABLE.slice(0, 0)]))) == 0
    keyed = Index.build(TITLES, model=model, key="text", **QUICK)
    assert keyed.search(TITLES[4], 1, items=True)["text"].to_pylist() == [TITLES[4]]


def test_a_table_is_not_unpacked_to_see_whether_it_holds_texts() -> None:
    class Column:
        type = pa.list_(pa.float32())

        def to_pylist(self) -> None:
            raise AssertionError("unpacked")

    Column.__module__ = "pyarrow.lib"
    assert text_list(Column(), "X") is None
    assert text_list(TABLE, "X") is None and text_list(pl.DataFrame(TABLE), "X") is None


def test_a_folder_that_an_index_names_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil").mkdir()
    for name in ("evil", str(tmp_path / "evil"), "./nothing"):
        Index.build(VECTORS, path=tmp_path / "i", model=name, **QUICK).close()
        with Index.open(tmp_path / "i") as again, pytest.raises(InputError, match="may be anyone's; if you trust it"):
            again.search("hello")
        shutil.rmtree(tmp_path / "i")


def test_without_the_package_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Index.build(TITLES, path=tmp_path / "i", model=Letters(), **QUICK).close()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with Index.open(tmp_path / "i") as index, pytest.raises(MissingDependencyError, match=r"antisparse\[text\]"):
        index.search("a question")


def test_a_model_is_not_downloaded_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class SentenceTransformer(Letters):
        def __init__(self, name: str, local_files_only: bool) -> None:
            asked.append((name, local_files_only))
            if local_files_only:
                raise OSError("it is not here.\nmore")
            super().__init__(name)

    fake = type(sys)("sentence_transformers")
    fake.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    with pytest.raises(InputError, match=r"model = 'far' is not on this machine \(it is not here\); nothing is downl"):
        Index.build(TITLES, model="far", **QUICK)
    index = Index.build(TITLES, model=module.TextModel("far", download=True), **QUICK)
    assert asked == [("far", True), ("far", False)] and index.model == "far"


def test_what_the_manifest_says_of_a_model_is_not_trusted(tmp_path: Path) -> None:
    Index.build(TITLES, path=tmp_path / "i", model=Letters(), **QUICK).close()
    place = tmp_path / "i" / "manifest.json"
    content = json.loads(place.read_bytes())["manifest"]
    assert content["features"] == ["items", "model", "packed ids"] and content["model"] == {
        "name": "letters",
        "text": "text",
    }
    for wrong in ({"name": 3, "text": None}, {"name": "", "text": None}, {"name": "a", "text": 1}, {"name": "a"}, None):
        place.write_bytes(_spelled(content | {"model": wrong}))
        with pytest.raises(FormatError):
            Index.open(tmp_path / "i", read_only=True)


def _spelled(content: dict) -> bytes:
    def spell(value: dict) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    return spell({"crc32": zlib.crc32(spell(content)), "manifest": content})


def test_an_index_of_vectors_from_a_model_needs_no_pyarrow(tmp_path: Path) -> None:
    Index.build(VECTORS, path=tmp_path / "i", model="letters", **QUICK).close()
    code = (
        "import sys; sys.modules['pyarrow'] = None; sys.path.insert(0, 'tests')\n"
        "from letters import Letters; from antisparse import Index\n"
        f"index = Index.open({str(tmp_path / 'i')!r}, model=Letters())\n"
        f"print(index.search({TITLES[7]!r}, 1)[1].tolist())"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "[7]\n"
