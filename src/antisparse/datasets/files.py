"""Vectors in files: one array in, one array out, whatever the format."""

import os
from pathlib import Path
from typing import Any

from antisparse._arrays import choice, path_of, real_array, shown
from antisparse._files import replacing
from antisparse.datasets._hdf5 import read_hdf5, write_hdf5
from antisparse.datasets._parquet import read_parquet, write_parquet
from antisparse.datasets._raw import BINS, VECS, Array, read_bin, read_npy, read_vecs, write_raw
from antisparse.errors import InputError, InputTypeError

FORMATS = (*VECS, *BINS, "npy", "hdf5", "parquet")

SUFFIXES = {f".{name}": name for name in FORMATS} | {".h5": "hdf5", ".pq": "parquet"}


def read_vectors(path: str | os.PathLike[str], *, format: str | None = None, column: str | None = None) -> Array:
    """Read a file of vectors.

    Parameters
    ----------
    path : path
        The file.
    format : str, optional
        One of fvecs, bvecs, ivecs, fbin, u8bin, i8bin, ibin, npy, hdf5, parquet. By default the suffix says it.
    column : str, optional
        Which array of an HDF5 file ("train" by default), or which column of a Parquet file (by default the only one
        that holds vectors).

    Returns
    -------
    ndarray of shape (n, d)
        In the file's dtype. Memory-mapped and read-only, except from Parquet and from compressed HDF5.

    Raises
    ------
    FormatError
        If the file is damaged, truncated or of another format.
    """
    place = path_of(path)
    if os.path.isdir(place):
        raise InputError(f"path = {str(place)!r} is a folder; read_dataset reads those")
    format = file_format(place, format, column)
    if format in VECS:
        return read_vecs(place, format)
    if format in BINS:
        return read_bin(place, format)
    if format == "npy":
        return read_npy(place)
    if format == "hdf5":
        key = "train" if column is None else column
        return read_hdf5(place, [key])[key]
    return read_parquet(place, column)


def write_vectors(
    path: str | os.PathLike[str], X: Any, *, format: str | None = None, column: str | None = None
) -> None:
    """Write a file of vectors, at once or not at all; a file that is there is replaced.

    The raw formats have one dtype each. Floats are rounded to float32; any other value that would change is an error.
    The other formats keep the dtype of X.

    Parameters
    ----------
    path : path
        The file.
    X : array of shape (n, d)
        The vectors. They are written a piece at a time, so X may be larger than memory.
    format : str, optional
        As in `read_vectors`.
    column : str, optional
        The name of the array in an HDF5 file ("train" by default) or of the column in a Parquet file ("vector").
    """
    place = path_of(path)
    format = file_format(place, format, column)
    array = real_array(X, "X", 2)
    if array.shape[1] == 0:
        raise InputError(f"X has shape {array.shape}; vectors have at least one column")
    with replacing(place) as temporary:
        if format == "hdf5":
            write_hdf5(temporary, {"train" if column is None else column: array})
        elif format == "parquet":
            write_parquet(temporary, array, "vector" if column is None else column)
        else:
            write_raw(temporary, array, format)


def file_format(path: Path, format: str | None, column: str | None = None) -> str:
    """The format that is named, or that the suffix names."""
    if format is None:
        format = SUFFIXES.get(path.suffix.lower())
        if format is None:
            raise InputError(
                f"path = {str(path)!r} has the suffix {path.suffix!r}; known are {', '.join(SUFFIXES)}, or pass format="
            )
    format = str(choice(format, "format", FORMATS))
    if column is not None:
        if not isinstance(column, str):
            raise InputTypeError(f"column must be a string, not {type(column).__name__} ({shown(column)})")
        if not column or not column.isprintable():
            raise InputError(f"column = {shown(column)}; it is empty, or has characters that cannot be printed")
        if format not in ("hdf5", "parquet"):
            raise InputError(f"column = {column!r}, but a {format} file has no columns; leave it out")
    return format
