"""Texts as vectors: the model that embeds them, and its name, which an index keeps and checks."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line, real_array, shown, text_list
from antisparse._containers import package_of
from antisparse.errors import InputError, InputTypeError, MissingDependencyError
from antisparse.index.item_schema import pyarrow
from antisparse.index.manifest import ModelEntry
from antisparse.index.sources import TableSource
from antisparse.index.table_files import FORMATS

Array = npt.NDArray[Any]

TEXT = "text"  # the column of texts that come without a table
VECTOR = "vector of the text"  # the column of what the model makes of them
_MADE = {b"antisparse": b"embedded"}  # the metadata of that column
BATCH = 512  # texts that are embedded between two moves of a bar


@dataclass(eq=False)
class TextModel:
    """What makes vectors of texts: any object with a method `encode`, or a model of sentence-transformers by its name.

    Attributes
    ----------
    name : str
        What an index keeps, and compares.
    download : bool
        Whether a model that is only named may be downloaded.
    trusted : bool
        Whether the caller named it. A folder that an index alone names is not loaded: it may be anyone's.
    """

    name: str
    download: bool = False
    trusted: bool = True
    _encoder: Any = field(default=None, repr=False)
    _made: tuple[int, Any] | None = field(default=None, repr=False)  # the dimension and the type of its vectors

    @classmethod
    def of(cls, model: Any, kept: ModelEntry | None = None) -> "TextModel | None":
        """From what a caller passes; an index that keeps the name of a model takes that one alone."""
        if model is None:
            return None if kept is None else cls(kept.name, trusted=False)
        if isinstance(model, cls):
            found = model
        elif isinstance(model, str) and model:
            found = cls(model)
        elif not isinstance(model, type) and callable(getattr(model, "encode", None)) and not isinstance(model, str):
            found = cls(_name_of(model), _encoder=model)
        else:
            raise InputTypeError(
                f"model must be an object with a method encode, or the name of one of sentence-transformers, not "
                f"{shown(model)}"
            )
        if kept is not None and not _same(found.name, kept.name):
            raise InputError(
                f"model = {found.name!r}, but the vectors of this index are from {kept.name!r}; those of one model "
                "mean nothing to another"
            )
        return found

    def entry(self, column: str | None) -> ModelEntry:
        """What an index keeps of it; the column is that of the texts that it embeds there."""
        return ModelEntry(self.name, column)

    def documents(self, texts: list[str]) -> Array:
        """The vectors of texts that are searched."""
        return self._embed("encode_document", texts)

    def queries(self, texts: list[str]) -> Array:
        """The vectors of texts that are asked: some models put other words before them."""
        return self._embed("encode_query", texts)

    def _embed(self, method: str, texts: list[str]) -> Array:
        check_unicode(texts)
        if self._encoder is None:
            self._encoder = _load(self)
        encode = getattr(self._encoder, method, None)
        given = real_array((encode if callable(encode) else self._encoder.encode)(texts), "model", 2)
        if len(given) != len(texts) or not given.shape[1]:
            raise InputError(
                f"model gave vectors of shape {given.shape} for {len(texts)} texts; encode gives a row a text"
            )
        # A copy: models may use their memory again.
        vectors = np.array(given, np.float32 if given.dtype in (np.float16, np.float32) else np.float64, order="C")
        made = (vectors.shape[1], vectors.dtype)
        if self._made not in (None, made):
            raise InputError(f"model gave vectors of {made[0]} {made[1]} after some of {self._made[0]} {self._made[1]}")
        self._made = made
        return vectors


def _name_of(model: Any) -> str:
    """Its own name, if it has one; what it was loaded from, if it is of sentence-transformers; or its class."""
    found = getattr(model, "name", None)
    if not found and package_of(model) == "sentence_transformers":
        weights = next((part.auto_model for part in model if hasattr(part, "auto_model")), None)
        found = getattr(getattr(weights, "config", None), "name_or_path", None)
    return found if isinstance(found, str) and found else type(model).__qualname__


def _same(name: str, other: str) -> bool:
    """Whether two names are of one model: it may lie in any folder, and its publisher may be left out."""
    return PurePath(name).name.casefold() == PurePath(other).name.casefold()


def _load(model: TextModel) -> Any:
    """A model of sentence-transformers that is on this machine, unless it may be downloaded."""
    name = model.name
    here = os.path.lexists(name)
    if not model.trusted and (here or name.startswith(("/", "~", "."))):
        raise InputError(
            f"model = {name!r} is a folder that the index names, and may be anyone's; if you trust it, open the index "
            f"with model={name!r}, or --model on the command line"
        )
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingDependencyError(
            f"model = {name!r} needs sentence-transformers: pip install 'antisparse[text]'; or pass an object with a "
            "method encode"
        ) from None
    try:
        return SentenceTransformer(name, local_files_only=not model.download)
    except Exception as error:  # of whatever reads its files
        reason = first_line(error).rstrip(".")
        if here or model.download:
            raise InputError(f"model = {name!r} could not be loaded: {reason}") from error
        raise InputError(
            f"model = {name!r} is not on this machine ({reason}); nothing is downloaded unless you ask for it: pass "
            f"SentenceTransformer({name!r}), or --download on the command line"
        ) from error


def embedded_queries(Q: Any, model: TextModel | None) -> tuple[Any, list[str] | None]:
    """Queries as vectors, and their texts; other queries as they are, and None."""
    texts = text_list(Q, "Q")
    if texts is None:
        return Q, None
    vectors = needed(model, "Q").queries(texts)
    return (vectors[0] if isinstance(Q, str) else vectors), texts


def needed(model: TextModel | None, name: str) -> TextModel:
    """The model, which texts cannot do without."""
    if model is not None:
        return model
    raise InputTypeError(
        f"{name} holds text, and the index keeps the name of no model; pass vectors, or open it with model=, the one "
        "that made its vectors"
    )


def check_unicode(texts: list[str]) -> None:
    """Raise if a text has half a character, which neither models nor files take."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"texts hold {error.object[error.start]!r}, which is half a character; decode them anew"
        ) from None


def names_files(texts: list[str]) -> bool:
    """Whether texts are rather the names of files of tables."""
    return all("://" in text or PurePath(text).suffix.lower() in FORMATS for text in texts)


def text_table(texts: list[str], column: str = TEXT) -> Any:
    """Texts that came without a table as one."""
    check_unicode(texts)
    return pyarrow().table({column: texts})


class EmbeddedSource(TableSource):
    """A table that is read by batches, with a column more: the vectors that a model makes of the texts of one column.

    No text is embedded twice: the vectors of rows that were drawn to be learned from are kept until they are added.
    """

    def __init__(self, table: TableSource, column: str, model: TextModel) -> None:
        pa = pyarrow()
        if table.schema.names.count(column) != 1:
            listed = ", ".join(map(repr, table.schema.names))[:500]
            raise InputError(f"text = {column!r} is no column; the table has {listed}")
        if VECTOR in table.schema.names:
            raise InputError(f"X has a column {VECTOR!r}, which is the name of what is made here; rename it")
        schema = table.schema.append(pa.field(VECTOR, pa.list_(pa.float32())))
        super().__init__(table.name, schema, table.total, table.read)
        self.column = column
        self._table, self._model = table, model
        self._drawn = np.zeros(0, np.int64)  # rows whose vectors are kept
        self._vectors: Array | None = None

    def batches(self, columns: list[str], rows: npt.NDArray[np.int64] | None = None) -> Iterator[Any]:
        """Tables of the columns that are named; of some rows alone, ascending, if they are given."""
        wanted = [name for name in columns if name != VECTOR]
        read = [*wanted, *([] if self.column in wanted else [self.column])]
        parts, at = [], 0
        for whole in self._table.batches(read, rows):
            for start in range(0, whole.num_rows, BATCH):
                batch = whole.slice(start, BATCH)
                numbers = np.arange(at, at + batch.num_rows) if rows is None else rows[at : at + batch.num_rows]
                at += batch.num_rows
                vectors = self._embed(batch, numbers)
                if rows is not None:
                    parts.append(vectors)
                yield with_vectors(batch.select(wanted), vectors)
        if rows is not None and parts:
            self._drawn, self._vectors = rows, np.concatenate(parts)

    def _embed(self, batch: Any, numbers: npt.NDArray[np.int64]) -> Array:
        texts = column_texts(batch, self.column)
        if self._vectors is None:
            return self._model.documents(texts)
        places = np.searchsorted(self._drawn, numbers)
        known = places < len(self._drawn)
        known[known] = self._drawn[places[known]] == numbers[known]
        vectors = np.empty((len(texts), self._vectors.shape[1]), self._vectors.dtype)  # which the model keeps to
        vectors[known] = self._vectors[places[known]]
        if not known.all():
            vectors[~known] = self._model.documents([texts[i] for i in np.flatnonzero(~known)])
        return vectors


def column_texts(table: Any, column: str) -> list[str]:
    """The texts of a column, of which none may be missing."""
    values = table.column(column)
    if values.null_count:
        raise InputError(f"column {column!r} has nulls; every row needs a text")
    texts = text_list(values, f"column {column!r}") if len(values) else []
    if texts is None:
        raise InputTypeError(f"column {column!r} is of type {table.schema.field(column).type}; texts are wanted")
    return texts


def with_vectors(table: Any, vectors: Array) -> Any:
    """A table with the column of vectors."""
    pa = pyarrow()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    return table.append_column(pa.field(VECTOR, lists.type, metadata=_MADE), lists)


def is_embedded(schema: Any) -> bool:
    """Whether a table has a column of vectors that were made here, which is told by more than its name."""
    return VECTOR in schema.names and schema.field(VECTOR).metadata == _MADE
