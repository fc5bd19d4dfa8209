"""Tables: vectors in one column, keys and other columns beside it; and answers as tables."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import plain_array
from antisparse._containers import package_of
from antisparse.errors import InputError, InputTypeError
from antisparse.index.item_schema import pyarrow
from antisparse.index.state import State
from antisparse.scan.columns import Ids

Array = npt.NDArray[Any]


def is_table(value: Any) -> bool:
    """Whether it is a table of named columns, in memory."""
    if isinstance(value, dict):
        return True
    if package_of(value) == "pyarrow":
        return hasattr(value, "column_names")
    return package_of(value) in ("pandas", "polars") and type(value).__name__ == "DataFrame"


def is_mixed(value: Any) -> bool:
    """Whether it is a table in memory whose columns are not numbers alone, so that it is no array by itself."""
    if not is_table(value) or isinstance(value, dict):
        return isinstance(value, dict)
    if package_of(value) == "pandas":
        kinds = [getattr(dtype, "kind", "O") in "biuf" for dtype in value.dtypes]
    elif package_of(value) == "polars":
        kinds = [type(dtype).__name__ not in ("List", "Array", "String") for dtype in value.dtypes]
    else:
        kinds = [not _holds_vectors(kind) and "string" not in str(kind) for kind in value.schema.types]
    return len(kinds) > 1 and not all(kinds)


def vector_column(schema: Any, name: str | None) -> str:
    """The column of vectors: the one that is named, or the only one that can be."""
    if name is not None:
        if schema.names.count(name) != 1:
            raise InputError(
                f"vector = {name!r} is no column; the table has {', '.join(map(repr, schema.names))[:500]}"
            )
        return name
    found = vector_columns(schema)
    if len(found) != 1:
        listed = ", ".join(map(repr, found)) or "none"
        raise InputError(f"the table has {len(found)} columns of vectors ({listed}); name one by vector=")
    return str(found[0])


def vector_columns(schema: Any) -> list[str]:
    """The columns that can hold vectors."""
    return [field.name for field in schema if _holds_vectors(field.type)]


def _holds_vectors(kind: Any) -> bool:
    pa = pyarrow()
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    value = getattr(kind, "value_type", None)
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists) and bool(pa.types.is_floating(value) or pa.types.is_integer(value))


def vectors_of(table: Any, column: str) -> Array:
    """The vectors of a column."""
    vectors = plain_array(table.column(column), f"column {column!r}")
    if vectors.ndim != 2 or vectors.dtype.kind not in "biuf":
        raise InputTypeError(
            f"column {column!r} is of type {table.schema.field(column).type}; vectors are lists of numbers"
        )
    return vectors


def answers(state: State, distances: Array, ids: Ids, keys: Any = None) -> Any:
    """What was found as an Arrow table: query, rank, distance, key and columns, a row a result.

    Queries are called by their numbers, or by `keys`, texts or an Arrow array.
    """
    pa = pyarrow()
    distances, ids = np.atleast_2d(distances), np.atleast_2d(ids)
    queries, ranks = np.nonzero(ids >= 0)
    found = ids[queries, ranks]
    called = pa.array(keys) if isinstance(keys, list) else keys
    names = pa.array(queries) if called is None else called.take(pa.array(queries))
    columns = {"query": names, "rank": pa.array(ranks + 1), "distance": pa.array(distances[queries, ranks])}
    if state.schema is None or state.schema.key is None:
        columns["id"] = pa.array(found)
    if state.schema is None:
        return pa.table(columns)
    unique, where = np.unique(found, return_inverse=True)
    items = state.items(unique).take(pa.array(where.reshape(-1)))
    return pa.table(columns | {name: items.column(name) for name in items.column_names})
