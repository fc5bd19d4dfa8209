"""The one gate for input: every array and number a caller gives passes here, and errors name the argument.

An array is whatever holds numbers in rows: numpy's, lists, frames and columns of pandas, polars and Arrow, tensors
(_containers.py).
"""

import numbers
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._containers import as_numpy, may_hold_text, package_of
from antisparse.errors import InputError, InputTypeError, MissingFileError

FloatArray = npt.NDArray[np.floating[Any]]
Float64Array = npt.NDArray[np.float64]

_PADDED = 1024  # columns of answers, whether or not there is so much to find
LARGEST = 1e140  # entry of a vector or a query whose square is far from overflow


@contextmanager
def renamed(**names: str) -> Iterator[None]:
    """Errors within call an argument by the name that the caller knows: ``renamed(X="VECTORS")``."""
    try:
        yield
    except (InputError, InputTypeError, MissingFileError) as error:
        name = next((name for name in names if str(error).startswith((f"{name} ", f"{name}:"))), None)
        if name is None:
            raise
        raise type(error)(f"{names[name]}{str(error)[len(name) :]}", *error.args[1:]) from None


def shown(value: Any) -> str:
    """A value as messages show it: short, whatever it is."""
    if isinstance(value, int) and abs(value) >= 10**40:  # Python refuses to write out an integer of thousands of digits
        return f"an integer of {value.bit_length()} bits"
    try:
        return _SHORT.repr(value)
    except Exception:  # of the caller's own class
        return f"a {type(value).__name__}"


def first_line(error: BaseException) -> str:
    """What another package says of an error, cut short, to be part of a message."""
    return without_secrets((str(error).splitlines() or [type(error).__name__])[0])[:200]


def without_secrets(text: str) -> str:
    """A text whose addresses have neither credentials nor parameters."""
    return _PARAMETERS.sub(r"\1?...", _CREDENTIALS.sub(r"\1...@", text))


_CREDENTIALS = re.compile(r"([a-z][a-z0-9+.-]*://)[^'\"]*@", re.IGNORECASE)
_PARAMETERS = re.compile(r"([a-z][a-z0-9+.-]*://[^\s?'\"]*)\?[^\s'\"]*", re.IGNORECASE)


class _Short(reprlib.Repr):
    """Arrays, frames and tensors by their shape: what is in them is long, and may be no one's business."""

    def repr_instance(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", None)
        if shape is None and hasattr(x, "__len__") and not isinstance(x, bytes | bytearray):
            shape = f"({len(x)},)"
        return super().repr_instance(x, level) if shape in (None, ()) else f"a {type(x).__name__} of shape {shape}"


_SHORT = _Short()
_SHORT.maxstring = 80  # of a key, say, which is no use in parts


def plain_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array of any type and shape, without masked entries, each of its numbers where its type belongs.

    Arrays that stand at odd addresses (of packed records, or from a buffer) are copied: native code must not read them.
    """
    if type(value) is np.ndarray and value.flags.aligned and value.dtype.kind != "V":
        return value  # nothing is to be done to most: a single query feels every microsecond
    if _has_masked(value):
        raise InputError(f"{name} has masked entries; fill or drop them first")
    if hasattr(value, "toarray"):
        raise InputTypeError(f"{name} is sparse ({type(value).__name__}); pass {name}.toarray()")
    try:
        array = np.require(as_numpy(value), requirements=["A", "E"])
    except MemoryError:
        raise
    except Exception as error:  # ragged nested lists, say, or whatever the package raises that it is from
        raise InputError(f"{name} is not a rectangular array of numbers: {first_line(error)}") from None
    # numpy knows bfloat16 from packages alone; float32 holds each of them exactly.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def filter_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array, or a set (the keys of a dict, say) as an array of its members in some order."""
    return plain_array(list(value) if isinstance(value, Set) else value, name)


def _has_masked(value: Any) -> bool:
    """Whether an entry is masked; lists may hold masked arrays, of which numpy would take what is masked."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    if not isinstance(value, list | tuple):
        return False
    # Rows and numbers of one kind, which lists nearly always hold, need no look at each number.
    return any(_has_masked(part) for part in value if isinstance(part, list | tuple | np.ma.MaskedArray))


def real_array(value: Any, name: str, ndim: int) -> npt.NDArray[Any]:
    """`value` as a real array of `ndim` dimensions, not copied and not checked for NaN."""
    array = plain_array(value, name)
    if array.dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported; pass its real and imaginary parts as columns")
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"{name} has dtype {array.dtype}; pass an array of floats or integers")
    if array.dtype.itemsize > 8:
        raise InputTypeError(f"{name} has dtype {array.dtype}, more than float64 holds; pass {name}.astype(float)")
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


def moderate(array: npt.NDArray[Any], name: str) -> None:
    """Raise if an entry of finite vectors is so large that sums of squares could overflow."""
    if array.size and max(float(array.max()), -float(array.min())) > LARGEST:
        row = int(np.argmax(np.abs(array).max(axis=1).astype(np.float64) > LARGEST))
        raise InputError(f"{name} row {row} is too large: squares beyond {LARGEST:g} overflow; scale the vectors down")


def float64_array(value: Any, name: str, ndim: int) -> Float64Array:
    """`value` as a finite, contiguous float64 array."""
    array = np.ascontiguousarray(real_array(value, name, ndim), dtype=np.float64)
    finite(array, name)
    return array


def output_array(value: Any, name: str, shape: tuple[int, ...], given: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """`value`, if bytes of this shape can be written to it without touching the array that they are made from."""
    plain = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    if not plain or value.shape != shape or value.dtype != np.uint8:
        raise InputError(f"{name} must be an array of uint8 of shape {shape}")
    if not value.flags.writeable:
        raise InputError(f"{name} is read-only; pass an array that can be written to")
    if np.may_share_memory(value, given):
        raise InputError(f"{name} lies in the memory of what is encoded; pass another array")
    out: npt.NDArray[np.uint8] = value
    return out


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
        raise InputTypeError(f"{name} must be an integer, not {type(value).__name__} ({shown(value)})")
    number = int(value)
    if number < minimum:
        raise InputError(f"{name} = {shown(number)}; it must be at least {minimum}")
    if number >= below:
        raise InputError(f"{name} = {shown(number)}; it must be below {below}")
    return number


def columns_of_answers(k: int, count: int) -> int:
    """How many columns the answers of a search for k among `count` have.

    k, which may be more than there are, so that answers of several sets have one shape; but memory must not grow with a
    k that stands for "all of them".
    """
    return min(k, max(count, _PADDED))


def boolean(value: Any, name: str) -> bool:
    """`value` as a bool, if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def number(value: Any, name: str) -> float:
    """`value` as a float: infinite beyond all that float64 holds, and never NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, not {type(value).__name__} ({shown(value)})")
    exact: Any = value
    try:
        found = float(exact)
    except OverflowError:
        return -np.inf if exact < 0 else np.inf
    if np.isnan(found):
        raise InputError(f"{name} = nan; it must be a number")
    return found


def finite_number(value: Any, name: str) -> float:
    """`value` as a finite float."""
    found = number(value, name)
    if not np.isfinite(found):
        raise InputError(f"{name} = {shown(value)}; it must be finite, and fit float64")
    return found


def nonnegative(value: Any, name: str) -> float:
    """`value` as a float, finite and not negative."""
    found = finite_number(value, name)
    if found < 0:
        raise InputError(f"{name} = {found}; it must be finite and at least 0")
    return found


def choice(value: Any, name: str, choices: Iterable[Any]) -> Any:
    """The one of the choices, names or integers, that `value` is."""
    listed = tuple(choices)
    if isinstance(value, str | numbers.Integral) and not isinstance(value, bool | np.bool_):
        for one in listed:
            if value == one:
                return one
    raise InputError(f"{name} = {shown(value)}; choose one of {', '.join(map(repr, listed))}")


def float_dtype(value: Any, name: str) -> np.dtype[Any]:
    """`value` as float32 or float64."""
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):
        raise InputTypeError(f"{name} = {shown(value)} is not a dtype; pass numpy.float32 or numpy.float64") from None
    if dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise InputError(f"{name} = {dtype}; the solver works in float32 or float64")
    native: np.dtype[Any] = np.dtype(dtype.type)
    return native


def random_numbers(value: Any, name: str = "random_state") -> np.random.RandomState:
    """A source of random numbers as scikit-learn has them: of a seed, the one given, or, for None, the global one."""
    from sklearn.utils import check_random_state

    if value is not None and not isinstance(value, np.random.RandomState):
        value = integer(value, name, 0, 2**32)
    generator: np.random.RandomState = check_random_state(value)
    return generator


def texts(value: Any, name: str) -> tuple[str, ...]:
    """`value` as several strings."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise InputTypeError(f"{name} must be a sequence of strings, not {shown(value)}")
    return tuple(value)


def text_list(value: Any, name: str) -> list[str] | None:
    """`value` as texts, one or several, of a list, a set or a column; None if it holds none."""
    if isinstance(value, str):
        return [value]
    if package_of(value) in ("numpy", "pandas", "polars", "pyarrow"):
        if not may_hold_text(value):
            return None
        listed = getattr(value, "to_pylist", None) or getattr(value, "to_list", None) or value.tolist
        value = listed()
    elif isinstance(value, set | frozenset):
        value = list(value)
    if not isinstance(value, list | tuple) or not value:
        return None
    values = [one.as_py() if package_of(one) == "pyarrow" and hasattr(one, "as_py") else one for one in value]
    if not any(isinstance(one, str) for one in values):
        return None
    for one in values:
        if not isinstance(one, str):
            raise InputTypeError(f"{name} holds text and {type(one).__name__}; all must be text, or none")
    return [str(one) for one in values]


def bytes_of(value: Any, name: str) -> bytes:
    """`value` as bytes: such, or whatever holds nothing else, as a bytearray or an array of uint8 does."""
    if isinstance(value, bytes):
        return value
    try:
        view = memoryview(value)
    except (TypeError, ValueError):  # objects and dates are no buffers
        view = None
    if view is None or view.format != "B":
        raise InputTypeError(f"{name} must be bytes, not {type(value).__name__} ({shown(value)})")
    return view.tobytes()


def optional_name(value: Any, name: str) -> str | None:
    """`value` as the name of a column, or None."""
    if value is not None and not isinstance(value, str):
        raise InputTypeError(f"{name} must be the name of a column, not {shown(value)}")
    return value


def path_of(value: Any, name: str = "path") -> Path:
    """`value` as a path that the system can be asked for."""
    if not isinstance(value, str | os.PathLike):
        raise InputTypeError(f"{name} must be a string or a Path, not {type(value).__name__} ({shown(value)})")
    text = os.fspath(value)
    if not isinstance(text, str):
        raise InputTypeError(f"{name} must be a string or a Path, not one of bytes; pass os.fsdecode({name})")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError(f"{name} = {shown(text)} has characters that no file name can have") from None
    if not encoded or b"\0" in encoded:
        raise InputError(f"{name} = {shown(text)} is empty, or has a character that no file name can have")
    return Path(text)


_ADDRESS_AS_PATH = re.compile(r"[a-z][a-z0-9+.-]+:/")


def folder_of(value: Any, name: str = "path") -> Path:
    """`value` as the whole path of a folder, which it still names when the process goes to another one."""
    path = path_of(value, name)
    if isinstance(value, str) and "://" in value:
        raise InputError(
            f"{name} = {shown(without_secrets(value))} is an address, where a folder is wanted; make an index in a "
            "folder or in memory, and write it there by index.save(address)"
        )
    if _ADDRESS_AS_PATH.match(str(path)):
        raise InputError(f"{name} = {shown(str(path))} is an address that was made a Path; pass it as text")
    try:
        return path.absolute()
    except OSError:
        raise InputError(
            f"{name} = {shown(str(path))}: the folder that this process is in is gone; pass a whole path"
        ) from None


def thread_count(value: Any, name: str = "n_threads") -> int:
    """The number of threads to use: `value`, or, for None, the CPUs this process may run on."""
    if value is not None:
        return integer(value, name, 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
