"""Where tables come from: memory, files, folders, globs, partitions, object stores. They are read a batch at a time."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line, shown
from antisparse._containers import package_of
from antisparse.errors import (
    AntisparseError,
    FormatError,
    InputError,
    MissingDependencyError,
    MissingFileError,
)
from antisparse.index.item_schema import cast_column, pyarrow, table_of
from antisparse.index.table_files import TableFiles, called

BATCH = 4096  # rows

Rows = npt.NDArray[np.int64]


@dataclass(eq=False)
class TableSource:
    """A table that is read by batches of rows.

    Attributes
    ----------
    name : str
        What errors call it.
    schema : pyarrow.Schema
    total : int or None
        Its rows; None where that is not known, and it can be read only once.
    read : callable
        Batches of the columns that are named.
    """

    name: str
    schema: Any
    total: int | None
    read: Callable[[list[str]], Iterator[Any]]

    def batches(self, columns: list[str], rows: Rows | None = None) -> Iterator[Any]:
        """Tables of at most a few thousand rows, of the columns that are named; columns of one name are refused.

        Of some rows alone, ascending, if they are given.
        """
        for column in columns:
            if self.schema.names.count(column) != 1:
                listed = ", ".join(map(repr, self.schema.names))[:500]
                raise InputError(f"{self.name} has no one column {column!r}; it has {listed}")
        pa = pyarrow()
        at = 0
        try:
            for batch in self.read(columns):
                batch = _decoded(batch)
                if rows is not None:
                    first, last = np.searchsorted(rows, [at, at + batch.num_rows])
                    mine, at = rows[first:last] - at, at + batch.num_rows
                    batch = batch.take(pa.array(mine))
                yield from (batch.slice(at, BATCH) for at in range(0, batch.num_rows, BATCH))
        except AntisparseError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
            raise FormatError(f"{self.name} could not be read: {first_line(error)}") from None


def _decoded(batch: Any) -> Any:
    """A batch without views and dictionaries of text, which Arrow cannot take rows of."""
    pa = pyarrow()
    for number, field in enumerate(batch.schema):
        if "view" in str(field.type) or (pa.types.is_dictionary(field.type) and "string" in str(field.type)):
            column = batch.column(number)
            try:
                text = cast_column(column, pa.large_string())
            except pa.ArrowException:  # a view of lists, say, or what is no text
                continue
            batch = batch.set_column(number, field.name, text)
    return batch


def is_source(value: Any) -> bool:
    """Whether it is a table that is not in memory: a path, an address, several of them, a data set or a reader."""
    if isinstance(value, str | os.PathLike):
        return True
    if isinstance(value, list | tuple) and value and all(isinstance(one, str | os.PathLike) for one in value):
        return True
    if package_of(value) not in ("pyarrow", "lance"):
        return False
    return hasattr(value, "read_next_batch") or (hasattr(value, "to_batches") and hasattr(value, "count_rows"))


def source_of(value: Any, name: str) -> TableSource:
    """A table as something to be read by batches."""
    if isinstance(value, str | os.PathLike | list | tuple) and is_source(value):
        return _of_data_set(_data_set(value, name), called(value))
    if isinstance(value, Iterator) and not is_source(value):
        return _of_parts(value, name)
    if not is_source(value):
        table = table_of(value, name)
        return TableSource(name, table.schema, table.num_rows, lambda columns: iter(table.select(columns).to_batches()))
    if hasattr(value, "read_next_batch"):
        return TableSource(name, value.schema, None, lambda columns: (batch.select(columns) for batch in value))
    return _of_data_set(value, name)


def _of_parts(parts: Iterator[Any], name: str) -> TableSource:
    """Tables that come one after the other, all with the columns of the first."""
    first = next(parts, None)
    if first is None:
        raise InputError(f"{name} has no rows; an index is learned from vectors")
    schema = table_of(first, name).schema

    def read(columns: list[str]) -> Iterator[Any]:
        for part in chain([first], parts):
            kinds = pyarrow().schema([schema.field(column) for column in columns])
            yield from table_of(part, name).select(columns).cast(kinds).to_batches()

    return TableSource(name, schema, None, read)


def _of_data_set(data_set: Any, name: str) -> TableSource:
    pa = pyarrow()
    try:
        total = int(data_set.count_rows())
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise FormatError(f"{name} could not be read: {first_line(error)}") from None

    def read(columns: list[str]) -> Iterator[Any]:
        if package_of(data_set) == "lance" or not hasattr(data_set, "get_fragments"):
            yield from data_set.to_batches(columns=columns, batch_size=BATCH)
            return
        # A file after the other: a scan of all of them reads ahead, and holds many at a time.
        options = {"columns": columns, "batch_size": BATCH, "batch_readahead": 1, "use_threads": False}
        try:
            fragments = list(data_set.get_fragments())
        except ValueError:  # it is filtered
            yield from data_set.to_batches(**options)
            return
        for fragment in fragments:
            yield from fragment.to_batches(schema=data_set.schema, **options)

    return TableSource(name, data_set.schema, total, read)


def _data_set(value: Any, name: str) -> Any:
    """The files that are meant, as one data set."""
    paths = list(value) if isinstance(value, list | tuple) else [value]
    if len(paths) == 1 and "://" not in str(paths[0]) and Path(paths[0]).suffix == ".lance":
        return _lance(paths[0], name)
    files = TableFiles.of(value, name)
    pa = pyarrow()
    try:
        return files.data_set()
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise FormatError(f"{name} = {called(value)} could not be read: {first_line(error)}") from None


def _lance(value: Any, name: str) -> Any:
    """A table of Lance, which is a folder."""
    try:
        import lance
    except ImportError:
        raise MissingDependencyError(f"{name} is a table of Lance: pip install pylance") from None
    if not os.path.isdir(value):
        raise MissingFileError(f"{name} = {shown(str(value))}: there is no such folder")
    return lance.dataset(os.fspath(value))
