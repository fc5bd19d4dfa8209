"""The one gate for input: every array and number a caller gives passes here, and errors name the argument."""

import numbers
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse.errors import InputError, InputTypeError

FloatArray = npt.NDArray[np.floating[Any]]
Float64Array = npt.NDArray[np.float64]


def plain_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array of any type and shape, without masked entries, each of its numbers where its type belongs.

    Arrays that stand at odd addresses (of packed records, or from a buffer) are copied: native code must not read them.
    """
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise InputError(f"{name} has masked entries; fill or drop them first")
        value = value.data
    if hasattr(value, "toarray"):
        raise InputTypeError(f"{name} is sparse ({type(value).__name__}); pass {name}.toarray()")
    try:
        return np.require(value, requirements="A")
    except ValueError as error:  # ragged nested lists
        raise InputError(f"{name} is not a rectangular array of numbers: {error}") from None


def real_array(value: Any, name: str, ndim: int) -> npt.NDArray[Any]:
    """`value` as a real array of `ndim` dimensions, not copied and not checked for NaN."""
    array = plain_array(value, name)
    if array.dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported; pass its real and imaginary parts as columns")
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"{name} has dtype {array.dtype}; pass an array of floats or integers")
    if array.ndim != ndim:
        hint = {1: "pass one vector at a time", 2: f"a single vector is {name}.reshape(1, -1)"}.get(ndim, "")
        raise InputError(f"{name} has shape {array.shape}; expected {ndim} dimension{'s' * (ndim > 1)} ({hint})")
    return array


def finite(array: npt.NDArray[Any], name: str, first_row: int = 0) -> None:
    """Raise if `array` (vectors by row, or one vector) holds a NaN or an infinity, naming its row."""
    # The sum is finite if every entry is, unless it overflows: only then look at each.
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    value = array[place]
    where = f"{name} row {place[0] + first_row}, column {place[1]}" if array.ndim == 2 else f"{name}[{place[0]}]"
    kind = "NaN" if np.isnan(value) else "inf"
    raise InputError(f"{where} is {value}: {name} contains {kind}; drop or replace such vectors first")


def float64_array(value: Any, name: str, ndim: int) -> Float64Array:
    """`value` as a finite, contiguous float64 array."""
    array = np.ascontiguousarray(real_array(value, name, ndim), dtype=np.float64)
    finite(array, name)
    return array


def frozen_array(value: Any, name: str, ndim: int) -> Float64Array:
    """A private, read-only, finite copy of `value` in float64."""
    array = float64_array(value, name, ndim).copy()
    if 0 in array.shape:
        raise InputError(f"{name} has shape {array.shape}; every dimension must be at least 1")
    array.flags.writeable = False
    return array


def vectors(value: Any, name: str, dimension: int, owner: str = "the frame has {} rows") -> npt.NDArray[Any]:
    """`value` as vectors by row, of the given dimension: a view, whatever its real dtype and order."""
    array = real_array(value, name, 2)
    if array.shape[1] != dimension:
        raise InputError(f"{name} has {array.shape[1]} columns but {owner.format(dimension)}")
    return array


def chunks(
    array: npt.NDArray[Any], name: str, dtype: np.dtype[Any], rows: int
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """`array` in contiguous pieces of at most `rows` rows, in `dtype` and finite, each with its first row."""
    for start in range(0, len(array), rows):
        given = array[start : start + rows]
        finite(given, name, start)
        with np.errstate(over="ignore", under="ignore"):
            piece = np.ascontiguousarray(given, dtype=dtype)
        bad = ~np.isfinite(piece)
        if piece.dtype.itemsize < given.dtype.itemsize:  # nor may what was not zero become zero
            bad = bad | ((piece == 0).all(1) & given.any(1))[:, None]
        if bad.any():
            row = start + int(np.argwhere(bad)[0, 0])
            raise InputError(f"{name} row {row} does not fit {dtype.name}; pass dtype=numpy.float64, or scale it")
        yield start, piece


def integer(value: Any, name: str, minimum: int, below: int = 2**31) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise InputTypeError(f"{name} must be an integer, not {type(value).__name__} ({value!r})")
    number = int(value)
    if number < minimum:
        raise InputError(f"{name} = {number}; it must be at least {minimum}")
    if number >= below:
        raise InputError(f"{name} = {number}; it must be below {below}")
    return number


def boolean(value: Any, name: str) -> bool:
    """`value` as a bool, if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def finite_number(value: Any, name: str) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, not {type(value).__name__} ({value!r})")
    number = float(value)
    if not np.isfinite(number):
        raise InputError(f"{name} = {number}; it must be finite")
    return number


def nonnegative(value: Any, name: str) -> float:
    """`value` as a float, finite and not negative."""
    number = finite_number(value, name)
    if number < 0:
        raise InputError(f"{name} = {number}; it must be finite and at least 0")
    return number


def choice(value: Any, name: str, choices: Iterable[Any]) -> Any:
    """`value`, if it is one of the choices."""
    listed = tuple(choices)
    if isinstance(value, np.ndarray | bool) or value not in listed:
        raise InputError(f"{name} = {value!r}; choose one of {', '.join(map(repr, listed))}")
    return value


def float_dtype(value: Any, name: str) -> np.dtype[Any]:
    """`value` as float32 or float64."""
    try:
        dtype = np.dtype(value)
    except TypeError:
        raise InputTypeError(f"{name} = {value!r} is not a dtype; pass numpy.float32 or numpy.float64") from None
    if dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise InputError(f"{name} = {dtype}; the solver works in float32 or float64")
    native: np.dtype[Any] = np.dtype(dtype.type)
    return native


def path_of(value: Any, name: str = "path") -> Path:
    """`value` as a path that the system can be asked for."""
    if not isinstance(value, str | os.PathLike):
        raise InputTypeError(f"{name} must be a string or a Path, not {type(value).__name__} ({value!r})")
    text = os.fspath(value)
    if not isinstance(text, str):
        raise InputTypeError(f"{name} must be a string or a Path, not one of bytes; pass os.fsdecode({name})")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError(f"{name} = {value!r} has characters that no file name can have") from None
    if not encoded or b"\0" in encoded:
        raise InputError(f"{name} = {value!r} is empty, or has a character that no file name can have")
    return Path(text)


def thread_count(value: Any, name: str = "n_threads") -> int:
    """The number of threads to use: `value`, or, for None, the CPUs this process may run on."""
    if value is not None:
        return integer(value, name, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
