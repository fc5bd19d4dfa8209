"""HDF5 files: arrays by name, as ann-benchmarks lays them out (train, test, neighbors, distances)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from antisparse._files import open_regular
from antisparse.datasets._raw import Array, check_shape, check_type, mapped, piece_rows
from antisparse.errors import AntisparseError, FormatError, InputError, MissingDependencyError

_MOST_LINKS = 16  # one after the other
_MOST_RATIO = 1032  # of what deflate makes shorter


def read_hdf5(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Array]:
    """The arrays of the given names: memory-mapped where they lie in one piece, else read."""
    h5py = _h5py()
    with open_regular(path) as (source, size):
        try:
            with h5py.File(path, "r") as file:
                arrays = {}
                for key in (*needed, *optional):
                    found = _find(h5py, path, file, key)
                    if isinstance(found, h5py.Dataset):
                        arrays[key] = _read(h5py, path, source, size, found)
                    elif key in needed:
                        raise InputError(f"{path} has no array {key!r}; at its top are: {', '.join(file) or 'none'}")
                return arrays
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


def _find(h5py: Any, path: Path, file: Any, key: str) -> Any:
    """What a name stands for, or None: soft links are followed by hand, since what they name may lie elsewhere."""
    place, names, links = file, key.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        link = place.get(name, getlink=True) if isinstance(place, h5py.Group) else None
        if link is None:
            return None
        if isinstance(link, h5py.SoftLink):
            links += 1
            if links > _MOST_LINKS:
                raise FormatError(f"{path}: {key!r} is a link that leads nowhere")
            place = file if link.path.startswith("/") else place
            names += link.path.split("/")[::-1]
        elif isinstance(link, h5py.HardLink):
            place = place[name]
        else:
            raise FormatError(
                f"{path}: {key!r} is a link to another file, which is not followed; copy it into this one"
            )
    return place


def _read(h5py: Any, path: Path, source: BinaryIO, size: int, dataset: Any) -> Array:
    where = f"{path}, array {dataset.name!r}"
    if dataset.is_virtual or dataset.external:
        raise FormatError(f"{where}: its values lie in other files, which are not read; copy them into this one")
    if dataset.shape is None:
        raise FormatError(f"{where}: it has no values")
    check_type(where, dataset.dtype)
    check_shape(where, dataset.shape)
    length = dataset.shape[0] * dataset.shape[1] * dataset.dtype.itemsize
    # Bytes are mapped only where they are of the very type that numpy would take them for.
    same = h5py.h5t.py_create(dataset.dtype, logical=False).equal(dataset.id.get_type())
    offset = dataset.id.get_offset() if same else None
    if offset is not None:  # in one piece, not compressed
        if size < offset + length:
            raise FormatError(
                f"{where}: its end is at byte {offset + length}, after the end of the file, which is truncated"
            )
        return mapped(source, dataset.dtype, dataset.shape, offset)
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    if max(length, chunk) > _MOST_RATIO * size:
        raise FormatError(f"{where}: {max(length, chunk)} bytes, more than a file of {size} can hold")
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
