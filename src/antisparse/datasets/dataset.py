"""A data set for search: what is indexed, what to learn from, the queries, and their exact neighbours."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from antisparse._arrays import path_of, real_array
from antisparse._files import replacing
from antisparse.datasets._hdf5 import read_hdf5, write_hdf5
from antisparse.datasets._raw import Array
from antisparse.datasets.files import SUFFIXES, file_format, read_vectors
from antisparse.errors import FormatError, InputError, InputTypeError

# The names of each part in a folder, alone (base.npy) or after an underscore (sift_base.fvecs).
_PARTS = {
    "base": ("base",),
    "learn": ("learn",),
    "query": ("query",),
    "neighbors": ("neighbors", "groundtruth"),
}
# And in an HDF5 file of ann-benchmarks, where "learn" is our addition.
_KEYS = {"base": "train", "learn": "learn", "query": "test", "neighbors": "neighbors"}
_NEEDED = ("base", "query")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Vectors to search among, and to search for.

    Attributes
    ----------
    base : ndarray of shape (n, d)
        What is indexed.
    learn : ndarray of shape (n', d) or None
        What to learn from, where it is kept apart.
    query : ndarray of shape (q, d)
        The queries.
    neighbors : ndarray of shape (q, k) of integers, or None
        Rows of `base`, the exact neighbours of each query, nearest first.
    name : str
        For titles and messages.
    """

    base: Array
    learn: Array | None
    query: Array
    neighbors: Array | None
    name: str

    def __post_init__(self) -> None:
        d = real_array(self.base, "base", 2).shape[1]
        for part in ("learn", "query"):
            value = getattr(self, part)
            if value is not None or part == "query":
                columns = real_array(value, part, 2).shape[1]
                if columns != d:
                    raise InputError(f"{part} has {columns} columns but base has {d}; they must be alike")
        if self.neighbors is not None:
            _check_neighbors(self.neighbors, len(self.query), len(self.base))


def read_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Read a data set from a folder, or from an HDF5 file in the layout of ann-benchmarks.

    Parameters
    ----------
    path : path
        A folder with the files ``base.*``, ``query.*`` and, if there are, ``learn.*`` and ``neighbors.*`` (or
        ``groundtruth.*``), each of any format and with any prefix that ends in an underscore: ``sift_base.fvecs``. Or
        an HDF5 file with the arrays ``train`` (base), ``test`` (query) and, if there are, ``neighbors`` and ``learn``.

    Raises
    ------
    FormatError
        If a part is damaged, missing or there twice, or if the parts do not fit one another.
    """
    place = path_of(path)
    if os.path.isdir(place):
        parts = {part: read_vectors(file) for part, file in part_files(place).items()}
        name = place.resolve().name
    elif file_format(place, None) == "hdf5":
        arrays = read_hdf5(place, ["train", "test"], ["learn", "neighbors"])
        parts = {part: arrays[key] for part, key in _KEYS.items() if key in arrays}
        name = place.stem
    else:
        raise InputError(
            f"path = {str(place)!r} is neither a folder nor an HDF5 file; read_vectors reads single arrays"
        )
    try:
        return Dataset(parts["base"], parts.get("learn"), parts["query"], parts.get("neighbors"), name)
    except InputError as error:
        raise FormatError(f"{place}: {error}") from None


def write_dataset(path: str | os.PathLike[str], dataset: Dataset, *, distances: Any = None) -> None:
    """Write a data set as one HDF5 file in the layout of ann-benchmarks, at once or not at all.

    Parameters
    ----------
    path : path
        The file, with the suffix .hdf5 or .h5.
    dataset : Dataset
        Parts that are None are left out.
    distances : array of shape (q, k), optional
        The distances of the neighbours.
    """
    place = path_of(path)
    if file_format(place, None) != "hdf5":
        raise InputError(f"path = {str(place)!r}; a data set is written as .hdf5 or .h5")
    if not isinstance(dataset, Dataset):
        raise InputTypeError(f"dataset must be a Dataset, not {type(dataset).__name__}")
    arrays = {key: getattr(dataset, part) for part, key in _KEYS.items() if getattr(dataset, part) is not None}
    if distances is not None:
        array = real_array(distances, "distances", 2)
        if dataset.neighbors is None or array.shape != dataset.neighbors.shape:
            shape = None if dataset.neighbors is None else dataset.neighbors.shape
            raise InputError(f"distances has shape {array.shape} but neighbors {shape}; they must be alike")
        arrays["distances"] = array
    with replacing(place) as temporary:
        write_hdf5(temporary, arrays)


def has_base(folder: Path) -> bool:
    """Whether a folder has a base file, and so is a data set."""
    return any(_part(file) in _PARTS["base"] for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)


def _part(file: Path) -> str:
    """What the name of a file says it is."""
    return file.stem.lower().rpartition("_")[2]


def part_files(folder: Path) -> dict[str, Path]:
    """The file of each part."""
    known = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in SUFFIXES and file.name[0] != "."]
    files = {}
    for part, names in _PARTS.items():
        found = [file for file in known if _part(file) in names]
        if len(found) > 1:
            raise FormatError(f"{folder}: {' and '.join(f.name for f in found)} are both {part}; keep one")
        if found:
            files[part] = found[0]
        elif part in _NEEDED:
            raise FormatError(f"{folder}: there is no file {part}.* of a known format ({', '.join(SUFFIXES)})")
    return files


def _check_neighbors(neighbors: Array, queries: int, n: int) -> None:
    array = real_array(neighbors, "neighbors", 2)
    if array.dtype.kind not in "iu":
        raise InputError(f"neighbors has dtype {array.dtype}; they are row numbers of base, integers")
    if len(array) != queries:
        raise InputError(f"neighbors has {len(array)} rows but query has {queries}; they must be alike")
    if array.size and (array.min() < 0 or array.max() >= n):
        row, column = (int(i) for i in np.argwhere((array < 0) | (array >= n))[0])
        raise InputError(f"neighbors row {row}, column {column} is {array[row, column]}, but base has {n} rows")
