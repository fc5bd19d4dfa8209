"""What building an index takes: vectors to learn from and to add, a codec, a folder that appears when it is whole."""

import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import integer, optional_name, random_numbers, real_array, renamed, shown, text_list, texts
from antisparse._files import TEMPORARY, sync_folder
from antisparse._progress import bar
from antisparse.codec.cells import MOST_CELLS
from antisparse.codec.codec import Codec, codec_of
from antisparse.errors import InputError, StorageError
from antisparse.index.item_schema import ItemSchema, pyarrow
from antisparse.index.sources import TableSource, is_source, source_of
from antisparse.index.state import distinct, id_array
from antisparse.index.tables import is_mixed, vector_column, vector_columns, vectors_of
from antisparse.index.texts import TEXT, VECTOR, EmbeddedSource, TextModel, names_files, text_table
from antisparse.learning.split import sample_size
from antisparse.metrics import MetricName

Array = npt.NDArray[Any]

_FLAT = 1_000_000  # below so many vectors cells are not worth their bytes for speed
_MOST_CELLS, _PER_CELL = 1 << 16, 40  # by themselves; training vectors that a cell needs
_TRAIN = 100_000
BATCH = 4096  # vectors encoded between two moves of the bar


@dataclass(frozen=True)
class Learning:
    """How codes are learned: the arguments of `Index.build` that say so."""

    n_bytes: int = 16
    metric: MetricName = "l2"
    cells: int | Literal["auto"] = "auto"
    symbols: str = "auto"
    effort: Literal[1, 2, 3] = 2
    dimensions: int | None = None
    train: int = _TRAIN
    random_state: Any = None

    def sample(self, total: int | None) -> int:
        """How many of `total` vectors are learned from at most: more than `train` where that allows many cells."""
        most = integer(self.train, "train", 1)
        if most < _TRAIN and _by_itself(self.cells):
            return most
        return sample_size(most, cell_count(self.cells, total, 1 << 40) or 1)

    def codec(self, vectors: Array, name: str, total: int | None, progress: bool, n_threads: int | None) -> Codec:
        """A codec for `total` vectors, learned from some; `name` is the argument that these were."""
        from antisparse.encoders.learned import LearnedEncoder

        encoder = LearnedEncoder(
            self.n_bytes,
            metric=self.metric,
            symbols=self.symbols,
            cells=cell_count(self.cells, total, min(len(vectors), self.sample(total))),
            effort=self.effort,
            dimensions=self.dimensions,
            train=self.train,
            verbose=progress,
            random_state=self.random_state,
            n_threads=n_threads,
        )
        with renamed(X=name):
            encoder.fit(vectors)
        return codec_of(encoder, None)


@dataclass(frozen=True)
class Source:
    """Vectors to learn from, and to add.

    Attributes
    ----------
    train : ndarray of shape (n, d)
        What a training sample is drawn from.
    name : str
        The argument that these were.
    total : int or None
        How many vectors there are in all, if that is known.
    batches : iterable of ndarray
        All of them, a batch at a time, once.
    schema : ItemSchema or None
        What is kept beside the codes.
    """

    train: Array
    name: str
    total: int | None
    batches: Iterable[Array]
    schema: ItemSchema | None = None

    @classmethod
    def chosen(cls, X: Any, table: "TableToBuild | None", learning: Learning, learn: Any, progress: bool) -> "Source":
        """From whatever X is, an array or a table."""
        if table is None:
            return cls.of(X, learning.sample(None), learn)
        most = learning.sample(table.table.total)
        return cls.of_table(table, most, learn, random_numbers(learning.random_state), progress)

    @classmethod
    def of(cls, X: Any, train: int, learn: Any = None) -> "Source":
        """From an array, or an iterator of arrays, of which the first `train` vectors are learned from.

        Or from vectors to `learn` from, apart from those that are added.
        """
        apart = _apart(learn)
        if not isinstance(X, Iterator):
            array = real_array(X, "X", 2)
            if apart is not None and apart.shape[1] != array.shape[1]:
                raise InputError(
                    f"learn has vectors of {apart.shape[1]} dimensions; those to add have {array.shape[1]}"
                )
            if apart is None and not len(array):
                raise InputError("X has no rows; an index is learned from vectors")
            batches = in_batches(array)
            return cls(array, "X", len(array), batches) if apart is None else cls(apart, "learn", len(array), batches)
        if apart is not None:
            return cls(apart, "learn", None, X)
        first: list[Array] = []
        while sum(map(len, first)) < train and (part := next(X, None)) is not None:
            first.append(real_array(part, "X", 2))
        if not sum(map(len, first)):
            raise InputError("X has no rows; an index is learned from vectors")
        if len({part.shape[1] for part in first}) > 1:
            raise InputError("X has arrays of different numbers of columns; all vectors must have the same dimension")

        return cls(np.concatenate(first)[:train], "X", None, chain(first, X))

    @classmethod
    def of_table(
        cls, made: "TableToBuild", train: int, learn: Any, random: np.random.RandomState, progress: bool
    ) -> "Source":
        """From a table that is read by batches: twice, to draw what is learned from, or once, if it can be no more."""
        table, vector, total = made.table, made.vector, made.table.total
        batches = table.batches(made.columns)
        apart = _apart(learn)
        if apart is not None:
            return cls(apart, "learn", total, made.given(batches), made.schema)
        first: list[Any] = []
        parts: list[Array] = []
        if total is None:
            while sum(map(len, parts)) < train and (batch := next(batches, None)) is not None:
                first.append(batch)
                parts.append(vectors_of(batch, vector))
        else:
            rows = np.arange(total) if total <= train else np.sort(random.choice(total, train, replace=False))
            read = with_bar(table.batches([vector], rows), len(rows), progress, "reading")
            parts = [_filled((vectors_of(batch, vector) for batch in read), len(rows), vector)]
            pyarrow().default_memory_pool().release_unused()
        if not sum(map(len, parts)):
            raise InputError("X has no rows; an index is learned from vectors")
        sample = parts[0] if len(parts) == 1 else _filled(iter(parts), sum(map(len, parts)), vector)
        return cls(sample[:train], "X", total, made.given(chain(first, batches)), made.schema)

    def check_ids(self, ids: Any) -> Any:
        """The ids of all vectors, if any are given: what is wrong with them is said before the work."""
        if ids is None:
            return None
        checked = id_array(ids, "ids")
        distinct(checked)
        if self.total is not None and len(checked) != self.total:
            raise InputError(f"ids has {len(checked)} entries, but X has {self.total} vectors")
        return checked

    def learned(self) -> "Source":
        """The same without the vectors to learn from, whose memory is free then."""
        return replace(self, train=self.train[:0].copy())

    def shown(self, progress: bool) -> Iterator[Array]:
        """The batches, with a progress bar."""
        return with_bar(self.batches, self.total, progress)


@dataclass(frozen=True)
class TableToBuild:
    """A table to make an index of: its column of vectors, and what is kept of the others, if anything is."""

    table: TableSource
    vector: str
    schema: ItemSchema | None

    @classmethod
    def of(
        cls, X: Any, vector: str | None, key: str | None, columns: Any, text: str | None, model: TextModel | None
    ) -> "TableToBuild | None":
        """None if it is an array: a table in memory is one, if it holds numbers alone and no column is named."""
        optional_name(text, "text")
        if model is not None and vector is None and not isinstance(X, str):
            X, text, columns = _texts_without_table(X, text, key, columns)
        if vector is key is columns is text is None and not is_source(X) and not is_mixed(X):
            return None
        table = source_of(X, "X")
        if text is not None:
            if model is None:
                raise InputError(f"text = {text!r} is embedded by a model: pass model=")
            if vector is not None:
                raise InputError(f"text = {text!r} and vector = {shown(vector)} say two things; pass one of them")
            table, vector = EmbeddedSource(table, text, model), VECTOR
        elif model is not None and vector is None and not vector_columns(table.schema):
            raise InputError("X has no column of vectors; name the column of texts to embed by text=")
        name = vector_column(table.schema, optional_name(vector, "vector"))
        kept = () if columns is None else texts(columns, "columns")
        if key is None and not kept:
            return cls(table, name, None)
        return cls(table, name, ItemSchema.of(table.schema, key, kept, name if text is None else None))

    @property
    def text(self) -> str | None:
        """The column that is embedded, if one is."""
        return self.table.column if isinstance(self.table, EmbeddedSource) else None

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [self.vector] if self.schema is None else self.schema.read_with(self.vector)

    def given(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches as an index takes them: vectors alone, if it keeps nothing else."""
        return (vectors_of(batch, self.vector) if self.schema is None else batch for batch in batches)


def _filled(parts: Iterator[Array], count: int, vector: str) -> Array:
    """`count` vectors that come in parts as one array, held once."""
    filled, at = np.zeros((0, 0)), 0
    for part in parts:
        if not at:
            filled = np.empty((count, part.shape[1]), part.dtype)
        if part.shape[1] != filled.shape[1]:
            raise InputError(f"X has vectors of different lengths in column {vector!r}; all must have the same")
        filled[at : at + len(part)] = part
        at += len(part)
    return filled


def _texts_without_table(X: Any, text: str | None, key: str | None, columns: Any) -> tuple[Any, str | None, Any]:
    """Texts as a table of one column, which is kept; anything else as it is."""
    found = text_list(X, "X")
    if found is None:
        if isinstance(X, list | tuple) and not X:
            raise InputError("X has no rows; an index is learned from vectors")
        return X, text, columns
    if names_files(found):
        if text is not None:
            return X, text, columns
        raise InputError(
            "X holds names of files, where model= wants texts; if they are tables, name the column of texts by text= "
            "or that of vectors by vector="
        )
    name = text or TEXT
    return text_table(found, name), name, [name] if columns is None and key != name else columns


def _apart(learn: Any) -> Array | None:
    """Vectors to learn from that are not among those to add, if there are any."""
    if learn is None:
        return None
    apart = real_array(learn, "learn", 2)
    if not len(apart):
        raise InputError("learn has no rows; an index is learned from vectors")
    return apart


def in_batches(X: Array) -> Iterator[Array]:
    """Vectors a few thousand at a time."""
    return (X[at : at + BATCH] for at in range(0, len(X), BATCH))


def with_bar(batches: Iterable[Any], total: int | None, progress: bool, name: str = "adding") -> Iterator[Any]:
    """Batches of vectors or tables, with a progress bar."""
    with bar(name, total, progress) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))


def _by_itself(cells: Any) -> bool:
    return isinstance(cells, str) and cells == "auto"


def cell_count(cells: Any, total: int | None, trained: int) -> int | None:
    """The number of cells; for "auto" a power of two, as many as the training vectors allow, or None for few vectors.

    None leaves the choice to the encoder, which takes what has the most recall.
    """
    if not _by_itself(cells):
        return integer(cells, "cells", 1, MOST_CELLS + 1)
    if total is None or total < _FLAT:
        return None
    # The square root of a million, and four times it from ten millions on.
    wanted = min(1 << round(math.log2(total) / 2 + 2 * min(math.log10(total / _FLAT), 1)), _MOST_CELLS)
    return min(wanted, 1 << int(math.log2(max(trained / _PER_CELL, 1))))


def check_new_path(path: Path, name: str = "path =") -> None:
    """Raise unless an index can be made under this name: said before the work, not after it."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as error:  # too long a name, say
        raise StorageError(f"{name} {str(path)!r} cannot be made: {error}") from error
    else:
        raise InputError(f"{name} {str(path)!r}: it exists already; remove it first, or choose another name")
    if not path.parent.is_dir():
        raise InputError(f"{name} {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A folder to make something in, which gets its name when the block ends, and is gone if an error leaves it."""
    temporary, process = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}"), os.getpid()
    try:
        yield temporary
        try:
            os.rename(temporary, path)
        except OSError as error:
            raise StorageError(f"{path} could not be written: {error}") from error
    except BaseException:
        if process == os.getpid():  # a fork that fails leaves it to its parent
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)
