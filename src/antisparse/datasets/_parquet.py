"""Parquet files: vectors as one column of lists, of fixed size or all of one length."""

from pathlib import Path
from typing import Any

import numpy as np

from antisparse._files import open_regular
from antisparse.datasets._raw import Array, piece_rows
from antisparse.errors import AntisparseError, FormatError, InputError, MissingDependencyError


def read_parquet(path: Path, column: str | None) -> Array:
    """The vectors of `column`, or of the only column that can hold vectors."""
    pa, pq = _pyarrow()
    with open_regular(path) as (source, size):
        # What the footer says the length of something is cannot exceed the file's.
        most = {f"thrift_{what}_size_limit": max(size, 1) for what in ("string", "container")}
        try:
            with pq.ParquetFile(source, page_checksum_verification=True, **most) as file:
                name, kind = _column(path, pa, file.schema_arrow, column)
                return _read(f"{path}, column {name!r}", pa, file, name, kind)
        except AntisparseError:
            raise
        except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, MemoryError, OverflowError) as error:
            raise FormatError(f"{path}: not a sound Parquet file ({error})") from None


def write_parquet(path: Path, X: Array, column: str) -> None:
    """Write one column of fixed-size lists, a row group at a time, with checksums."""
    pa, pq = _pyarrow()
    value = pa.from_numpy_dtype(X.dtype.newbyteorder("="))
    kind = pa.list_(value, X.shape[1])
    step = piece_rows(X)
    schema = pa.schema([pa.field(column, kind)])
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for start in range(0, len(X), step):
            piece = np.ascontiguousarray(X[start : start + step], X.dtype.newbyteorder("="))
            lists = pa.FixedSizeListArray.from_arrays(pa.array(piece.reshape(-1), value), type=kind)
            writer.write_table(pa.table([lists], schema=schema))


def _column(path: Path, pa: Any, schema: Any, column: str | None) -> tuple[str, Any]:
    """The column to read and its type."""
    kinds = {}
    for field in schema:
        t = field.type
        if (pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)) and (
            pa.types.is_floating(t.value_type) or pa.types.is_integer(t.value_type)
        ):
            kinds[field.name] = t
    columns = ", ".join(kinds) or "none"
    if column is None and len(kinds) != 1:
        raise InputError(f"{path} has {len(kinds)} columns of vectors: {columns}; name one by column=")
    name = next(iter(kinds)) if column is None else column
    if name not in kinds:
        raise InputError(f"column = {column!r} is not a column of vectors of {path}, which has: {columns}")
    return name, kinds[name]


def _read(where: str, pa: Any, file: Any, name: str, kind: Any) -> Array:
    n = file.metadata.num_rows
    d = kind.list_size if pa.types.is_fixed_size_list(kind) else None
    X: Array | None = None
    none: Array = pa.array([], kind.value_type).to_numpy()  # of the dtype; Arrow's own way to it may want pandas
    row = 0
    for batch in file.iter_batches(columns=[name]):
        lists = batch.column(name)
        if len(lists) == 0:
            continue
        lengths = lists.value_lengths().fill_null(-1).to_numpy()
        d = int(lengths[0]) if d is None else d
        wrong = np.flatnonzero(lengths != d)
        if wrong.size:
            length = int(lengths[wrong[0]])
            found = "is null" if length < 0 else f"has {length} values, where {d} were expected"
            raise FormatError(f"{where}: row {row + int(wrong[0])} {found}; vectors must be alike")
        values = lists.flatten()
        if values.null_count:
            first = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise FormatError(f"{where}: row {row + first // d} holds a null; fill or drop it first")
        if X is None:
            X = _empty(where, n, d, none)
        X[row : row + len(lists)] = values.to_numpy().reshape(-1, d)
        row += len(lists)
    if row != n:
        raise FormatError(f"{where}: {row} rows, but its footer says {n}")
    return _empty(where, 0, d, none) if X is None else X


def _empty(where: str, n: int, d: int | None, like: Array) -> Array:
    if d is None:
        raise FormatError(f"{where}: no rows, and lists of no fixed size: the dimension is not known")
    if d < 1:
        raise FormatError(f"{where}: row 0 has {d} values; vectors have at least one")
    return np.empty((n, d), like.dtype)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install antisparse[parquet]") from None
    return pyarrow, pyarrow.parquet
