"""The vector store of LangChain: updates, deletions, filters, hostile keys, texts and metadata, and what is on disk."""

import asyncio
import datetime
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import TITLES, Letters

from antisparse import Index, InputError, InputTypeError, LearnedEncoder, LockedError, UnsupportedError

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from antisparse.connect.langchain import AntisparseVectorStore

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"
HOSTILE = [
    "'; DROP TABLE x; --",
    'a "quoted" id',
    "\0",
    "\n\t",
    "ключ",
    "🙂" * 50,
    " ",
    "%s",
    "{}",
    "../../x",
    "x" * 900,
]


class LetterEmbeddings(Embeddings):
    """Vectors of letters, as LangChain has them."""

    def __init__(self, model: str = "letters") -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return Letters().encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


EMBEDDING = LetterEmbeddings()
CODEC = LearnedEncoder(24, metric="cosine", effort=1, random_state=0).fit(Letters().encode(TITLES)).codec_
COLUMNS = {"lang": pa.string(), "year": pa.int64(), "a 'b' \"c\"": pa.string(), "day": pa.date32()}


def empty(**options: Any) -> AntisparseVectorStore:
    return AntisparseVectorStore.create(EMBEDDING, CODEC, **options)


def filled() -> AntisparseVectorStore:
    store = empty(columns=COLUMNS)
    metadatas = [{"lang": ("en", "de")[i % 2], "year": 1900 + i % 100, "tags": [i, "x"]} for i in range(200)]
    store.add_texts(TITLES[:200], metadatas, ids=[f"id {i}" for i in range(200)])
    return store


def test_it_finds_what_the_index_finds() -> None:
    store = filled()
    for query in ("crossing the river 7", "painting a harbour"):
        vector = EMBEDDING.embed_query(query)
        distances, ids = store.index.search(np.array(vector), 6)
        found = store.similarity_search_with_score(query, 6)
        assert [one.id for one, _ in found] == [f"id {i}" for i in ids]
        assert [distance for _, distance in found] == distances.tolist()
        assert [one.page_content for one, _ in found] == [TITLES[i] for i in ids]
        assert store.similarity_search(query, 6) == store.similarity_search_by_vector(vector, 6)
        scores = store.similarity_search_with_relevance_scores(query, 6)
        assert [score for _, score in scores] == pytest.approx([max(0, 1 - distance) for distance in distances])
    assert store.as_retriever(search_kwargs={"k": 2}).invoke(TITLES[3])[0].page_content == TITLES[3]


@pytest.mark.parametrize(
    ("filter", "allowed"),
    [
        ("lang = 'en' and year >= 1990", lambda i: i % 2 == 0 and i % 100 >= 90),
        ({"lang": "de", "year": 1903}, lambda i: i % 100 == 3),
        ({"id": "id 7"}, lambda i: i == 7),
        ({}, lambda i: True),
        ({"lang": "'; DROP TABLE x; --"}, lambda i: False),
        ({"lang": "en' or 'a' = 'a"}, lambda i: False),
        (lambda document: document.metadata["tags"][0] > 150, lambda i: i > 150),
        (lambda document: False, lambda i: False),
    ],
)
def test_filters_are_exact(filter: Any, allowed: Any) -> None:
    store = filled()
    wanted = [i for i in range(200) if allowed(i)]
    found = store.similarity_search("crossing the river", 200, filter=filter)
    assert sorted(int(one.id.split()[1]) for one in found) == wanted
    some = store.max_marginal_relevance_search("crossing the river", 3, filter=filter)
    assert {one.id for one in some} <= {f"id {i}" for i in wanted} and len(some) == min(3, len(wanted))


def test_filters_that_cannot_be_are_refused() -> None:
    store = filled()
    for filter, error in [
        ({"tags": "x"}, InputError),
        ({"lang": ["en"]}, InputTypeError),
        ({"year": None}, InputTypeError),
        ({"day": "1990-01-01' or 'a' = 'a"}, (InputError, InputTypeError)),
        ("tags = 1", InputError),
        (3, InputTypeError),
        ({3: 3}, InputError),
    ]:
        with pytest.raises(error, match="filter"):
            store.similarity_search("x", filter=filter)
    with pytest.raises(InputTypeError, match="no argument"):
        store.similarity_search("x", where="year = 1")


def test_a_column_with_a_hostile_name_and_hostile_values() -> None:
    store, name = empty(columns=COLUMNS), "a 'b' \"c\""
    values = [one for one in HOSTILE if one != "\0"]
    store.add_texts(TITLES[: len(values)], [{name: value} for value in values], ids=values)
    for value in values:
        (found,) = store.similarity_search("x", filter={name: value})
        assert found.metadata == {name: value} and found.id == value


def test_hostile_ids_texts_and_metadata_come_back() -> None:
    store = empty()
    texts = [f"{one} and words" for one in HOSTILE]
    metadatas = [{one: one, "null": None, "nested": {"a": [1, 2.5, True, one]}, "id": 3} for one in HOSTILE]
    assert store.add_texts(iter(texts), metadatas, ids=HOSTILE) == HOSTILE
    for one, text, metadata in zip(HOSTILE, texts, metadatas, strict=True):
        assert store.get_by_ids([one]) == [Document(text, id=one, metadata=metadata)]
        assert store.similarity_search(text, 1)[0].page_content == text
    assert store.get_by_ids(HOSTILE[::-1]) == store.get_by_ids(HOSTILE)[::-1]
    store.delete(HOSTILE[:3])
    assert len(store) == len(HOSTILE) - 3 and store.get_by_ids(HOSTILE[:3]) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"texts": "text"}, InputTypeError),
        ({"texts": [1]}, InputTypeError),
        ({"texts": ["\ud800"]}, InputError),
        ({"ids": ["a", "a"]}, InputError),
        ({"ids": ["a"]}, InputError),
        ({"ids": [1, 2]}, InputTypeError),
        ({"ids": ["\ud800", "b"]}, InputError),
        ({"ids": ["x" * 100_000, "b"]}, InputError),
        ({"metadatas": [{}]}, InputError),
        ({"metadatas": [{}, 3]}, InputTypeError),
        ({"metadatas": [{}, {"a": object()}]}, InputTypeError),
        ({"metadatas": [{}, {"a": float("nan")}]}, InputTypeError),
        ({"metadatas": [{}, {3: "keys of text alone"}]}, InputTypeError),
        ({"metadatas": [{}, {"a": (1, 2)}]}, InputTypeError),
        ({"metadatas": [{}, {"year": "no number"}]}, InputTypeError),
        ({"metadatas": [{}, {"year": 2**70}]}, InputTypeError),
        ({"other": 3}, InputTypeError),
    ],
)
def test_what_cannot_be_stored_changes_nothing(arguments: dict[str, Any], error: type[Exception]) -> None:
    store = filled()
    before = store.index.items()
    with pytest.raises(error):
        store.add_texts(**{"texts": ["one", "two"], "ids": ["id 1", "new"], **arguments})
    assert store.index.items() == before


def test_ids_are_drawn_and_updates_replace_all_of_a_document() -> None:
    store = filled()
    (drawn,) = store.add_texts(["a text"])
    assert len(store) == 201 and store.get_by_ids([drawn])[0].page_content == "a text"
    day = datetime.date(2020, 1, 31)
    store.add_documents([Document("another", id="id 5", metadata={"day": day}), Document("one more")])
    assert len(store) == 202
    assert store.get_by_ids(["id 5"]) == [Document("another", id="id 5", metadata={"day": day})]
    assert store.similarity_search("another", 1)[0].id == "id 5"
    assert store.add_texts([]) == []
    with pytest.raises(InputError, match="ids is None"):
        store.delete()
    assert store.delete(["id 5", "id 5", "never there"]) and len(store) == 201


def test_documents_that_are_near_and_unlike_each_other() -> None:
    store = empty()
    near = ["the river", "the river", "the river", "a river bank", "the riverside"]
    store.add_texts(near, ids=list("abcde"))
    plain = {one.page_content for one in store.similarity_search("the river", 3)}
    spread = {one.page_content for one in store.max_marginal_relevance_search("the river", 3, lambda_mult=0.1)}
    assert plain == {"the river"} and len(spread) == 3


def test_a_store_on_disk_is_found_again(tmp_path: Path) -> None:
    documents = [Document(title, id=f"k{i}", metadata={"lang": "en", "n": i}) for i, title in enumerate(TITLES[:300])]
    path = tmp_path / "store"
    options = {"n_bytes": 16, "effort": 1, "random_state": 0, "columns": {"lang": pa.string()}}
    store = AntisparseVectorStore.from_documents(documents, EMBEDDING, path=path, **options)
    store.add_texts(["a text of tomorrow"], ids=["tomorrow"])
    wanted = store.similarity_search_with_score("leaving the desert", 5)
    with pytest.raises(LockedError):
        AntisparseVectorStore.open(path, EMBEDDING)
    store.close()
    again = AntisparseVectorStore.open(path, LetterEmbeddings("anyone/letters"))
    assert again.similarity_search_with_score("leaving the desert", 5) == wanted and len(again) == 301
    assert again.get_by_ids(["k7", "tomorrow"])[0] == documents[7]
    again.close()
    with pytest.raises(InputError, match="'letters'"):
        AntisparseVectorStore.open(path, LetterEmbeddings("another model"))
    with Index.open(path, model=Letters()) as index:  # as any index
        assert index.search("leaving the desert", 5, items=True)["id"].to_pylist() == [one.id for one, _ in wanted]


def test_an_index_of_a_table_is_a_store() -> None:
    table = pa.table(
        {"isbn": [f"978-{i}" for i in range(300)], "title": TITLES[:300], "year": [None, *range(1, 300)]}
        | {"v": list(Letters().encode(TITLES[:300]))}
    )
    named = {"key": "isbn", "columns": ["title", "year"], "vector": "v", "metric": "cosine"}
    index = Index.build(table, 16, effort=1, random_state=0, **named)
    store = AntisparseVectorStore(index, EMBEDDING, text="title")
    assert store.get_by_ids(["978-0"]) == [Document(TITLES[0], id="978-0", metadata={})]
    assert store.similarity_search(TITLES[9], 1, filter="year > 5")[0].metadata["year"] > 5
    store.add_texts(["a title"], [{"year": 7}], ids=["978-new"])
    assert store.get_by_ids(["978-new"]) == [Document("a title", id="978-new", metadata={"year": 7})]
    with pytest.raises(InputError, match="no column"):
        store.add_texts(["a title"], [{"other": 7}])
    with pytest.raises(InputError, match="is no column"):
        AntisparseVectorStore(index, EMBEDDING)
    plain = Index.build(table.select(["v"]), 8, effort=1)
    with pytest.raises(UnsupportedError, match="text keys"):
        AntisparseVectorStore(plain, EMBEDDING)
    for wrong in (None, 3, LetterEmbeddings, Letters()):
        with pytest.raises(InputTypeError, match="embedding"):
            AntisparseVectorStore(index, wrong, text="title")


@pytest.mark.parametrize(
    "columns", [{"text": pa.string()}, {"id": pa.string()}, {"rank": pa.int64()}, {"a": "string"}, 3]
)
def test_columns_that_cannot_be(columns: Any) -> None:
    with pytest.raises((InputError, InputTypeError), match="columns"):
        empty(columns=columns)


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("add"), st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(TITLES), max_size=4)
            ),
            st.tuples(st.just("delete"), st.lists(st.sampled_from("abcdefgh"), max_size=4)),
        ),
        max_size=8,
    )
)
def test_any_order_of_changes_leaves_what_a_dict_would_hold(changes: list[tuple[str, Any]]) -> None:
    store, model = empty(), {}
    for change, what in changes:
        if change == "add":
            store.add_texts(list(what.values()), [{"n": len(model)}] * len(what), ids=list(what))
            model |= {key: (text, {"n": len(model)}) for key, text in what.items()}
        else:
            store.delete(what)
            model = {key: value for key, value in model.items() if key not in what}
        assert len(store) == len(model)
        found = store.get_by_ids(list("abcdefgh"))
        assert {one.id: (one.page_content, one.metadata) for one in found} == model
        assert {one.id for one in store.similarity_search("the river", 10)} == set(model)


def test_threads_that_add_the_same_ids_lose_nothing() -> None:
    store = empty()

    def add(number: int) -> None:
        for at in range(0, 20, 5):
            store.add_texts([f"{number} {i}" for i in range(at, at + 5)], ids=[f"id {i}" for i in range(at, at + 5)])

    threads = [threading.Thread(target=add, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 20
    assert {one.page_content.split()[1] for one in store.get_by_ids([f"id {i}" for i in range(20)])} == set(
        map(str, range(20))
    )


def test_it_may_be_awaited() -> None:
    async def ask() -> list[Document]:
        store = empty()
        await store.aadd_texts(TITLES[:20], ids=[str(i) for i in range(20)])
        await store.adelete(["3"])
        assert await store.aget_by_ids(["3"]) == []
        return await store.asimilarity_search(TITLES[5], 1)

    assert asyncio.run(ask())[0].id == "5"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"embedding": EMBEDDING}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(block, namespace)
    assert capsys.readouterr().out.strip()
