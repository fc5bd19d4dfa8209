"""Arrays, frames and columns of other packages as numpy arrays, to the last bit. None of the packages is imported here.

What a caller passes was made by a package that the caller imported: it is known by the name of its type, and asked by
its own methods.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def package_of(value: Any) -> str:
    """The package that the type of a value is from."""
    return str(getattr(type(value), "__module__", "")).partition(".")[0]


def has_named_columns(value: Any) -> bool:
    """Whether it is a frame of several columns, whose names an estimator notes."""
    frame = package_of(value) in ("pandas", "polars") and type(value).__name__ == "DataFrame"
    return frame and value.shape[1] > 1


def may_hold_text(value: Any) -> bool:
    """Whether an array, a series or a column can hold text: told by its type, without a look at what is in it."""
    if package_of(value) == "pyarrow":
        return "string" in str(getattr(value, "type", ""))
    if getattr(value, "ndim", 1) != 1 or not hasattr(value, "dtype"):
        return False
    if package_of(value) == "polars":
        return str(value.dtype).partition("(")[0] in ("String", "Categorical", "Enum")
    return not isinstance(value.dtype, np.dtype) or value.dtype.kind in "OUT"


def as_numpy(value: Any) -> Any:
    """`value` as an array, if it is of a package that is known or speaks DLPack alone; else `value` itself.

    A column of lists is an array of two dimensions, and so is a frame of columns of numbers. A frame of one column is
    that column, if it holds lists. ValueError or TypeError if it is none of these, without its content.
    """
    if isinstance(value, np.ndarray | list | tuple | int | float | str):
        return value
    convert = _PACKAGES.get(package_of(value))
    if convert is not None:
        return convert(value)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return value


def _of_torch(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # numpy has none; float32 holds each of them exactly
        tensor = tensor.float()
    return tensor.resolve_conj().resolve_neg().numpy()


def _of_pandas(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "DataFrame":
        if value.shape[1] == 1:
            column = _pandas_column(value.iloc[:, 0])
            return column if column.ndim == 2 else column[:, None]
        plain = all(isinstance(dtype, np.dtype) for dtype in value.dtypes)
        return (
            value.to_numpy()
            if plain
            else _side_by_side([_pandas_column(value.iloc[:, j]) for j in range(value.shape[1])])
        )
    if kind == "Series" or kind.endswith("Index"):
        return _pandas_column(value)
    return value


def _pandas_column(column: Any) -> Array:
    dtype = column.dtype
    if not isinstance(dtype, np.dtype):
        if column.isna().any():
            raise ValueError("it has missing entries; fill or drop them first")
        plain = getattr(dtype, "numpy_dtype", None)  # of nullable numbers
        if plain is not None and plain.kind in "biuf":
            return np.asarray(column.to_numpy(dtype=plain))
    array: Array = column.to_numpy()
    return _stacked(array) if array.dtype == object else array


def _of_polars(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "LazyFrame":
        raise TypeError("it is not computed yet; pass its .collect()")
    if kind == "Series":
        return _polars_column(value)
    if kind != "DataFrame":
        return value
    columns = [_polars_column(column) for column in value.get_columns()]
    if len(columns) == 1:
        return columns[0] if columns[0].ndim == 2 else columns[0][:, None]
    return _side_by_side(columns)


def _polars_column(column: Any) -> Array:
    if column.null_count():
        raise ValueError("it has missing entries; fill or drop them first")
    kind = type(column.dtype).__name__
    if kind not in ("List", "Array"):
        return np.asarray(column.to_numpy())
    lists = column.arr.to_list() if kind == "Array" else column
    return _rectangle(lists.list.len().to_numpy(), lambda: _polars_column(lists.explode()))


def _of_pyarrow(value: Any) -> Any:
    if hasattr(value, "column_names"):  # a table, or a batch
        columns = [_arrow_column(value.column(j)) for j in range(value.num_columns)]
        if len(columns) == 1:
            return columns[0] if columns[0].ndim == 2 else columns[0][:, None]
        return _side_by_side(columns)
    if hasattr(value, "type") and hasattr(value, "null_count"):
        return _arrow_column(value)
    return _arrow_scalar(value) if hasattr(value, "as_py") else value


def _arrow_scalar(value: Any) -> Any:
    """A list of one row, a single query say, as an array; a number as itself."""
    values = getattr(value, "values", None)
    return value.as_py() if values is None else _arrow_column(values)


def _arrow_column(column: Any) -> Array:
    if column.null_count:
        raise ValueError("it has missing entries; fill or drop them first")
    chunks = getattr(column, "chunks", None)
    if chunks is not None:
        parts = [_arrow_column(chunk) for chunk in chunks]
        if not parts:
            return _arrow_column(column.combine_chunks())
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    if hasattr(column, "storage"):  # an extension type, tensors of a fixed shape say
        return _arrow_column(column.storage)
    if not hasattr(column, "value_lengths"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    size = getattr(column.type, "list_size", None)
    lengths = np.full(len(column), size, np.int64) if size is not None else column.value_lengths().to_numpy()
    return _rectangle(lengths, lambda: _arrow_column(column.flatten()), size or 0)


def _rectangle(lengths: Array, values: Callable[[], Array], width: int = 0) -> Array:
    """Lists of one length as rows."""
    if len(lengths):
        width = int(lengths[0])
        wrong = np.flatnonzero(lengths != width)
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(f"row {row} has {int(lengths[row])} values, where row 0 has {width}")
    if not len(lengths) * width:
        return np.zeros((len(lengths), width))
    flat = values()
    return flat.reshape(len(lengths), width, *flat.shape[1:])


def _stacked(rows: Array) -> Array:
    """A column of lists or arrays, each an object, as rows; anything else as it is."""
    if rows.ndim != 1 or not len(rows) or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return rows
    return _rectangle(np.array([len(row) for row in rows]), lambda: np.concatenate([np.asarray(row) for row in rows]))


def _side_by_side(columns: Sequence[Array]) -> Array:
    if any(column.ndim != 1 for column in columns):
        raise ValueError("it has a column of lists beside others; pass that column alone")
    if any(column.dtype.kind not in "biufc" for column in columns):
        at = next(j for j, column in enumerate(columns) if column.dtype.kind not in "biufc")
        raise TypeError(f"its column {at} holds no numbers (dtype {columns[at].dtype})")
    return np.column_stack(columns) if columns else np.zeros((0, 0))


_PACKAGES: dict[str, Callable[[Any], Any]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_pyarrow,
    "torch": _of_torch,
}
