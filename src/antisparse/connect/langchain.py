"""A vector store of LangChain on an index: texts and metadata are items beside the codes, ids are keys."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from antisparse._arrays import finite_number, integer, shown, texts
from antisparse.connect.documents import (
    KEY,
    METADATA,
    TEXT,
    document_keys,
    document_schema,
    document_table,
    listed_metadatas,
    listed_texts,
)
from antisparse.errors import InputError, InputTypeError, MissingDependencyError, UnsupportedError
from antisparse.index.index import Index
from antisparse.index.item_schema import pyarrow
from antisparse.metrics import MetricName

try:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
except ImportError:
    raise MissingDependencyError(
        "antisparse.connect.langchain needs langchain-core: pip install 'antisparse[langchain]'"
    ) from None

__all__ = ["AntisparseVectorStore"]

_SCALARS = (str, int, float, bool)

Scored = list[tuple[Document, float]]


class AntisparseVectorStore(VectorStore):  # type: ignore[misc]
    """Documents of LangChain in an index, which keeps codes of their embeddings and no floats.

    `from_texts` and `from_documents` learn codes from the texts that they add, `create` makes a store without documents
    for codes that were learned before, `open` opens one that is on disk.

    Parameters
    ----------
    index : Index
        With text keys and a column of texts. Its other columns are metadata; what has no column of its own is kept as
        JSON in the column "metadata", if there is one.
    embedding : Embeddings
        Of LangChain.
    text : str
        The column of texts: what becomes the content of documents.
    """

    def __init__(self, index: Index, embedding: Any, *, text: str = TEXT) -> None:
        _Embedder.check(embedding)
        if not isinstance(index, Index):
            raise InputTypeError(f"index must be an Index, not {shown(index)}; open one by AntisparseVectorStore.open")
        schema = index.snapshot.schema
        if schema is None or not schema.key_is_text:
            raise UnsupportedError("index keeps no text keys, which are the ids of documents; build it with key=")
        if text not in schema.columns:
            raise InputError(f"text = {shown(text)} is no column of the index; it has {', '.join(schema.columns)}")
        self.index = index
        self._embedding = embedding
        self._key, self._text = str(schema.key), text
        self._columns = [name for name in schema.columns if name not in (text, METADATA)]
        self._has_json = METADATA in schema.columns
        self._types = {field.name: field.type for field in schema.stored}

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Any,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        n_bytes: int = 48,
        path: str | Path | None = None,
        columns: Mapping[str, Any] | None = None,
        metric: MetricName = "cosine",
        **options: Any,
    ) -> Self:
        """A store of some texts, from whose embeddings codes are learned.

        Parameters
        ----------
        texts : list of str
        embedding : Embeddings
        metadatas : list of dict, optional
        ids : list of str, optional
        n_bytes : int
            Of a code.
        path : path, optional
            A folder that does not exist; by default the store is in memory.
        columns : mapping of str to pyarrow.DataType, optional
            Metadata to keep in columns of their own, which filters can name: ``{"year": pyarrow.int64()}``.
        metric : {"cosine", "l2", "ip"}
        options
            More of `Index.build`: ``random_state``, ``effort``, ...
        """
        schema = document_schema(columns)
        listed = listed_texts(texts)
        keys = document_keys(ids, len(listed))
        table = document_table(schema, keys, listed, listed_metadatas(metadatas, len(listed)))
        index = Index.build(
            table,
            n_bytes,
            path=path,
            metric=metric,
            key=KEY,
            columns=[name for name in schema.names if name != KEY],
            text=TEXT,
            model=_Embedder(embedding),
            **options,
        )
        return cls(index, embedding)

    @classmethod
    def create(
        cls, embedding: Any, codec: Any, *, path: str | Path | None = None, columns: Mapping[str, Any] | None = None
    ) -> Self:
        """A store without documents, for a codec or a fitted encoder; the rest as for `from_texts`."""
        index = Index.create(
            path, codec, items=document_schema(columns), key=KEY, text=TEXT, model=_Embedder(embedding)
        )
        return cls(index, embedding)

    @classmethod
    def open(cls, path: str | Path, embedding: Any, *, text: str = TEXT, **options: Any) -> Self:
        """A store on disk, or any index with text keys; options as for `Index.open`.

        An index that keeps the name of the model that made its vectors takes no other.
        """
        index = Index.open(path, model=_Embedder(embedding), **options)
        try:
            return cls(index, embedding, text=text)
        except BaseException:
            index.close()
            raise

    @property
    def embeddings(self) -> Any:
        """What makes vectors of texts."""
        return self._embedding

    def __len__(self) -> int:
        return len(self.index)

    def close(self) -> None:
        """Let other processes write. The store can still be searched."""
        self.index.close()

    # Changes.

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose ids are there: all of them or, if one cannot be, none. Returns their ids.

        Parameters
        ----------
        texts : iterable of str
        metadatas : list of dict, optional
        ids : sequence of str, optional
            Drawn where they are left out, or None.
        """
        _no_more(kwargs)
        listed = listed_texts(texts)
        keys = document_keys(ids, len(listed))
        own = listed_metadatas(metadatas, len(listed))
        names = [self._key, self._text, *self._columns, *([METADATA] if self._has_json else [])]
        schema = pyarrow().schema([(name, self._types[name]) for name in names])
        table = document_table(schema, keys, listed, own, self._key, self._text)
        if not listed:
            return []
        vectors = np.array(_Embedder(self._embedding).encode_document(listed))
        with self.index.batch():  # others wait, so that what is there stays so
            there = np.array([key in self.index for key in keys])
            if there.any():
                self.index.update(vectors[there], items=table.filter(pyarrow().array(there)))
            if not there.all():
                self.index.add(vectors[~there], items=table.filter(pyarrow().array(~there)))
        return keys

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by their ids; those that are not there are passed over."""
        _no_more(kwargs)
        if ids is None:
            raise InputError("ids is None; say which documents to delete: store.get_by_ids finds them")
        wanted = dict.fromkeys(texts(ids, "ids"))
        with self.index.batch():
            there = [key for key in wanted if key in self.index]
            if there:
                self.index.remove(there)
        return True

    # Questions.

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of some ids, in their order; those that are not there are passed over."""
        wanted = list(dict.fromkeys(texts(ids, "ids")))
        snapshot = self.index.snapshot  # one state, whatever others delete meanwhile
        found = snapshot.find_keys(wanted)
        return [self._document(row) for row in snapshot.items(found[found >= 0]).to_pylist()]

    def similarity_search(self, query: str, k: int = 4, *, filter: Any = None, **kwargs: Any) -> list[Document]:
        """The k documents nearest to a text; `filter` as for `similarity_search_with_score_by_vector`."""
        return [one for one, _ in self.similarity_search_with_score(query, k, filter=filter, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, *, filter: Any = None, **kwargs: Any) -> Scored:
        """The k documents nearest to a text, and their distances: the smaller, the nearer."""
        return self.similarity_search_with_score_by_vector(self._asked(query), k, filter=filter, **kwargs)

    def similarity_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, *, filter: Any = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents nearest to a vector."""
        return [one for one, _ in self.similarity_search_with_score_by_vector(embedding, k, filter=filter, **kwargs)]

    def similarity_search_with_score_by_vector(
        self, embedding: Sequence[float], k: int = 4, *, filter: Any = None, **kwargs: Any
    ) -> Scored:
        """The k documents nearest to a vector, and their distances: the smaller, the nearer.

        Parameters
        ----------
        embedding : array of shape (d,)
        k : int
        filter : str, dict or callable, optional
            An expression on columns, ``"lang = 'en' and year >= 2020"``; a dict of columns and the values that they
            have; or a function of a document, which is asked of every one in the store.
        kwargs
            More of `Index.search`: ``probes``, ``shortlist``, ``n_threads``, ...
        """
        allowed: str | list[Any] | None
        if isinstance(filter, str | Mapping) or filter is None:
            allowed = self._expression(filter)
        elif callable(filter):
            rows = self.index.items().to_pylist()
            allowed = [row[self._key] for row in rows if filter(self._document(row))]
            if not allowed:
                return []
        else:
            raise InputTypeError(
                f"filter must be an expression, a dict or a function of documents, not {shown(filter)}"
            )
        found = self.index.search(embedding, integer(k, "k", 1), filter=allowed, items=True, **_searched(kwargs))
        return [(self._document(row), row["distance"]) for row in found.to_pylist()]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Any = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Documents near to a text, and unlike each other: k of the `fetch_k` nearest, by their rebuilt vectors."""
        return self.max_marginal_relevance_search_by_vector(
            self._asked(query), k, fetch_k, lambda_mult, filter=filter, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Any = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`, for a vector."""
        integer(k, "k", 1)
        weight = finite_number(lambda_mult, "lambda_mult")
        found = self.similarity_search_by_vector(embedding, integer(fetch_k, "fetch_k", 1), filter=filter, **kwargs)
        snapshot = self.index.snapshot
        places = snapshot.find_keys([one.id for one in found]) if found else np.zeros(0, np.int64)
        found = [one for one, place in zip(found, places, strict=True) if place >= 0]  # if others deleted some since
        if not found:
            return []
        rebuilt = snapshot.codec.decode(snapshot.codes(places[places >= 0]))
        chosen = maximal_marginal_relevance(np.asarray(embedding, np.float64), list(rebuilt), weight, k)
        return [found[place] for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Distances as scores between 0 and 1: the cosine, and what LangChain takes for other metrics."""
        if self.index.metric == "cosine":
            return lambda distance: max(0.0, 1.0 - distance)
        if self.index.metric == "l2":
            return lambda distance: max(0.0, float(self._euclidean_relevance_score_fn(distance**0.5)))
        return lambda distance: float(self._max_inner_product_relevance_score_fn(distance))

    def _asked(self, query: Any) -> Any:
        if not isinstance(query, str):
            raise InputTypeError(f"query must be text, not {shown(query)}")
        return _Embedder(self._embedding).encode_query([query])[0]

    def _expression(self, given: Any) -> str | None:
        """A filter as an expression."""
        if not isinstance(given, Mapping):
            return given or None
        parts = []
        for name, value in given.items():
            if name not in (*self._columns, self._key, self._text):
                raise InputError(
                    f"filter names {shown(name)}, which is no column; make the store with columns={{{name!r}: ...}} or "
                    "pass a function of documents"
                )
            if not isinstance(value, _SCALARS):
                raise InputTypeError(f"filter: {name!r} is {shown(value)}; pass text or a number, or an expression")
            column = '"' + str(name).replace('"', '""') + '"'
            quoted = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
            parts.append(f"{column} = {quoted}")
        return " and ".join(parts) or None

    def _document(self, row: dict[str, Any]) -> Document:
        """An item as a document."""
        own = {name: row[name] for name in self._columns if row[name] is not None}
        if self._has_json and row[METADATA] is not None:
            try:
                rest = json.loads(row[METADATA])
            except ValueError:
                rest = row[METADATA]
            own |= rest if isinstance(rest, dict) else {METADATA: rest}  # of a table that was not made here
        return Document(id=row[self._key], page_content=row[self._text] or "", metadata=own)


class _Embedder:
    """Embeddings of LangChain as what an index takes for a model."""

    def __init__(self, embedding: Any) -> None:
        self.check(embedding)
        self._embedding = embedding
        names = (getattr(embedding, name, None) for name in ("name", "model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(embedding).__qualname__)

    @staticmethod
    def check(embedding: Any) -> None:
        """Raise unless it embeds."""
        if isinstance(embedding, type) or not all(
            callable(getattr(embedding, name, None)) for name in ("embed_documents", "embed_query")
        ):
            raise InputTypeError(f"embedding must be Embeddings of LangChain, not {shown(embedding)}")

    def encode(self, given: list[str]) -> Any:
        return self.encode_document(given)

    def encode_document(self, given: list[str]) -> Any:
        return self._embedding.embed_documents(given)

    def encode_query(self, given: list[str]) -> Any:
        return [self._embedding.embed_query(text) for text in given]


def _no_more(kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise InputTypeError(f"{next(iter(kwargs))!r} is no argument here")


def _searched(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What `Index.search` takes besides."""
    taken = ("method", "probes", "shortlist", "shortlist_method", "n_threads")
    _no_more({name: value for name, value in kwargs.items() if name not in taken})
    return kwargs
