"""HDF5 files: arrays by name, as ann-benchmarks lays them out (train, test, neighbors, distances)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from antisparse.datasets._raw import Array, check_shape, mapped, piece_rows
from antisparse.errors import AntisparseError, FormatError, InputError, MissingDependencyError


def read_hdf5(path: Path, needed: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Array]:
    """The arrays of the given names: memory-mapped where they lie in one piece, else read."""
    h5py = _h5py()
    with open(path, "rb"):  # so that what fails below is the content
        pass
    try:
        with h5py.File(path, "r") as file:
            for key in needed:
                if not (key in file and isinstance(file[key], h5py.Dataset)):
                    raise InputError(f"{path} has no array {key!r}; at its top are: {', '.join(file) or 'none'}")
            keys = [*needed, *(key for key in optional if key in file)]
            return {key: _read(path, file[key]) for key in keys}
    except AntisparseError:
        raise
    except (OSError, LookupError, ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as error:
        raise FormatError(f"{path}: not a sound HDF5 file ({error})") from None


def write_hdf5(path: Path, arrays: dict[str, Array]) -> None:
    """Write a new file of arrays by name, a piece at a time."""
    h5py = _h5py()
    with h5py.File(path, "w") as file:
        for key, X in arrays.items():
            dataset = file.create_dataset(key, X.shape, X.dtype)
            step = piece_rows(X)
            for start in range(0, len(X), step):
                dataset[start : start + step] = X[start : start + step]


def _read(path: Path, dataset: Any) -> Array:
    where = f"{path}, array {dataset.name!r}"
    if dataset.shape is None or dataset.dtype.kind not in "biuf":
        raise FormatError(f"{where}: dtype {dataset.dtype}; vectors are floats or integers")
    check_shape(where, dataset.shape)
    offset = None if dataset.dtype.kind == "b" else dataset.id.get_offset()
    if offset is not None:  # in one piece, not compressed
        expected = offset + dataset.shape[0] * dataset.shape[1] * dataset.dtype.itemsize
        if path.stat().st_size < expected:
            raise FormatError(f"{where}: its end is at byte {expected}, after the end of the file, which is truncated")
        with open(path, "rb") as file:
            return mapped(file, dataset.dtype, dataset.shape, offset)
    array: Array = np.empty(dataset.shape, dataset.dtype)
    if array.size:
        dataset.read_direct(array)
    return array


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingDependencyError("HDF5 files need h5py: pip install antisparse[hdf5]") from None
    return h5py
