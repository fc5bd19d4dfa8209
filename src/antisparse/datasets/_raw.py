"""Files that are memory-mapped: fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin and npy (layouts: docs/datasets.md)."""

import io
import math
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from antisparse._files import open_regular
from antisparse.errors import FormatError, InputError

Array = npt.NDArray[Any]

# Little-endian on every machine.
VECS: dict[str, np.dtype[Any]] = {"fvecs": np.dtype("<f4"), "bvecs": np.dtype("u1"), "ivecs": np.dtype("<i4")}
BINS: dict[str, np.dtype[Any]] = {
    "fbin": np.dtype("<f4"),
    "u8bin": np.dtype("u1"),
    "i8bin": np.dtype("i1"),
    "ibin": np.dtype("<i4"),
}

_HEADER_BYTES = 1 << 16  # of which an npy header takes a few hundred
_CHECKED_ROWS = 1 << 16  # at a time
_PIECE_BYTES = 8 << 20  # written at a time


def read_vecs(path: Path, format: str) -> Array:
    """Rows that each begin with their dimension, an int32. Every one of these is checked."""
    dtype = VECS[format]
    with open_regular(path) as (file, size):
        if size < 4:
            raise FormatError(
                f"{path}: {size} bytes; a {format} file begins with the dimension of its first row, 4 bytes"
            )
        d = int.from_bytes(file.read(4), "little", signed=True)
        if d < 1:
            raise FormatError(f"{path}: the dimension at byte 0 is {d}; this is not a {format} file")
        row_bytes = 4 + d * dtype.itemsize
        n, rest = divmod(size, row_bytes)
        if rest:
            raise FormatError(
                f"{path}: {size} bytes; rows of dimension {d} take {row_bytes} each, so {n * row_bytes} or "
                f"{(n + 1) * row_bytes} were expected: the file is truncated, or not {format}"
            )
        rows = mapped(file, np.dtype("u1"), (n, row_bytes), 0)
    dimensions = rows[:, :4].view("<i4")[:, 0]
    for start in range(0, n, _CHECKED_ROWS):
        wrong = np.flatnonzero(dimensions[start : start + _CHECKED_ROWS] != d)
        if wrong.size:
            row = start + int(wrong[0])
            raise FormatError(
                f"{path}: row {row}, at byte {row * row_bytes}, has dimension {dimensions[row]}, but row 0 has {d}"
            )
    return rows[:, 4:].view(dtype)


def read_bin(path: Path, format: str) -> Array:
    """A header of two uint32, rows and dimension, then the rows."""
    dtype = BINS[format]
    with open_regular(path) as (file, size):
        if size < 8:
            raise FormatError(f"{path}: {size} bytes; the header of {format} alone takes 8")
        n, d = (int.from_bytes(file.read(4), "little") for _ in range(2))
        if d < 1:
            raise FormatError(f"{path}: the dimension at byte 4 is {d}; this is not a {format} file")
        _check_size(path, size, 8, (n, d), dtype)
        return mapped(file, dtype, (n, d), 8)


def read_npy(path: Path, *, numbers: bool = False) -> Array:
    """An npy file, never unpickled: vectors by row or, where `numbers` are allowed, one number a row."""
    with open_regular(path) as (file, size):
        head = io.BytesIO(file.read(_HEADER_BYTES))
        try:
            version = np.lib.format.read_magic(head)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(head)
            elif version == (2, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(head)
            else:
                raise ValueError(f"npy version {version[0]}.{version[1]}; vectors are kept in 1.0 or 2.0")
        except (ValueError, TypeError, SyntaxError, TokenError, OverflowError, MemoryError, RecursionError) as error:
            raise FormatError(f"{path}: not a sound npy file ({error})") from None
        check_type(path, dtype)
        if not (numbers and len(shape) == 1 and shape[0] >= 0):
            check_shape(path, shape)
        offset = head.tell()
        _check_size(path, size, offset, shape, dtype)
        return mapped(file, dtype, shape, offset, "F" if fortran else "C")


def check_type(where: str | Path, dtype: np.dtype[Any]) -> None:
    """Floats or integers that float64 or int64 hold."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise FormatError(f"{where}: dtype {dtype}; vectors are floats or integers of at most 64 bits")


def check_shape(where: str | Path, shape: tuple[int, ...]) -> None:
    """Vectors by row: two dimensions, at least one column."""
    if len(shape) != 2 or shape[0] < 0 or not 1 <= shape[1] < 2**31:
        raise FormatError(f"{where}: shape {shape}; vectors are rows of a 2-dimensional array with at least one column")


def mapped(
    file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, order: Literal["C", "F"] = "C"
) -> Array:
    """An array that reads the file as it is used. The caller has checked the file's size."""
    array: Array
    if shape[0] == 0:  # no system maps nothing
        array = np.empty(shape, dtype)
    else:
        array = np.memmap(file, dtype, "r", offset, shape, order)
        if offset % dtype.alignment:  # code that takes a pointer expects alignment
            array = np.array(array)
    array.flags.writeable = False
    return array


def write_raw(path: Path, X: Array, format: str) -> None:
    """Write `X`, a piece at a time."""
    n, d = X.shape
    dtype = {**VECS, **BINS}.get(format, X.dtype)
    if format in VECS and n == 0:
        raise InputError(f"X has no rows, and a {format} file without rows does not say its dimension; use fbin or npy")
    if format in BINS and n >= 2**32:
        raise InputError(f"X has {n} rows, more than the header of {format} can say; use npy")
    lead = np.frombuffer(d.to_bytes(4, "little"), np.uint8)
    with open(path, "wb") as file:
        if format in BINS:
            file.write(n.to_bytes(4, "little") + d.to_bytes(4, "little"))
        elif format == "npy":
            descr = np.lib.format.dtype_to_descr(dtype)
            header = {"descr": descr, "fortran_order": False, "shape": X.shape}
            np.lib.format.write_array_header_1_0(file, header)
        step = piece_rows(X)
        for start in range(0, n, step):
            piece = _exactly(X[start : start + step], dtype, start, format).view(np.uint8)
            if format in VECS:
                rows = np.empty((len(piece), 4 + piece.shape[1]), np.uint8)
                rows[:, :4] = lead
                rows[:, 4:] = piece
                piece = rows
            file.write(piece.data)


def piece_rows(X: Array) -> int:
    """How many rows to write at a time."""
    d: int = X.shape[1]
    return max(1, _PIECE_BYTES // (8 * d))


def _exactly(piece: Array, dtype: np.dtype[Any], first_row: int, format: str) -> Array:
    """`piece` in `dtype`, contiguous. Floats may be rounded to shorter floats; nothing else may change."""
    if piece.dtype == dtype:
        return np.ascontiguousarray(piece)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        cast = np.ascontiguousarray(piece, dtype)
    if dtype.kind == "f" and piece.dtype.kind == "f":
        lost = np.isfinite(piece) & ~np.isfinite(cast)
    elif dtype.kind == "f":  # beyond 2**24, float32 skips integers
        lost = (piece > 2**24) | (piece < -(2**24))
    else:
        # In float64 both the bounds and every shorter float are exact.
        value = piece.astype(np.float64) if piece.dtype.kind == "f" else piece
        limits = np.iinfo(dtype)
        lost = (value < limits.min) | (value > limits.max)
        if piece.dtype.kind == "f":
            lost |= value != np.trunc(value)
    if lost.any():
        row, column = (int(i) for i in np.argwhere(lost)[0])
        raise InputError(
            f"X row {first_row + row}, column {column} is {piece[row, column]}, which {format} cannot hold: its values "
            f"are {dtype.name}; convert X first, or write npy"
        )
    return cast


def _check_size(path: Path, size: int, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    expected = offset + math.prod(shape) * dtype.itemsize
    if size != expected:
        what = " rows of ".join(map(str, shape))
        raise FormatError(
            f"{path}: {size} bytes, but its header says {what} {dtype.name}, {expected} bytes: the file is "
            f"{'truncated' if size < expected else 'too long'}, or of another format"
        )
