"""Files of an index: written whole or not at all, read without trust (docs/format.md).

Arrays are kept in safetensors files: 8 bytes of length, a JSON header padded with spaces to 64 bytes, the arrays one
after the other. The header's metadata holds the CRC-32 of every array.
"""

import contextlib
import json
import mmap
import os
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from antisparse.errors import FormatError, StorageError

Arrays = dict[str, npt.NDArray[Any]]
TEMPORARY = ".tmp-"
_DTYPES = {"U8": np.uint8, "I64": np.int64, "U32": np.uint32, "F32": np.float32}
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}
_MOST_HEADER = 1 << 20
_PART = 1 << 24  # bytes a write, or a checksum, takes at a time


def write_file(folder: Path, name: str, parts: list[Any]) -> None:
    """Write bytes under a temporary name, wait for the disk, rename."""
    temporary = folder / f"{TEMPORARY}{secrets.token_hex(4)}-{name}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
        try:
            for part in parts:
                view = memoryview(part).cast("B") if len(part) else memoryview(b"")
                while len(view):
                    view = view[os.write(descriptor, view[:_PART]) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, folder / name)
    except OSError as error:
        discard(temporary)
        raise StorageError(f"{folder / name} could not be written: {error}") from error


def sync_folder(folder: Path) -> None:
    """Wait until the folder's names are on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{folder} could not be written: {error}") from error


@contextlib.contextmanager
def open_file(path: Path, size: int) -> Iterator[BinaryIO]:
    """A file of a known size, to be read; FileNotFoundError if there is none."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise FormatError(f"{path} has {found} bytes where the manifest says {size}: it is damaged")
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path} could not be read: {error}") from error


def discard(path: Path) -> None:
    """Remove a file that nothing needs; if that fails, the next clean-up does it."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def pack_arrays(arrays: Arrays, metadata: dict[str, str]) -> tuple[list[Any], int]:
    """The parts of a safetensors file, and the CRC-32 of its header."""
    entries: dict[str, Any] = {}
    at, data = 0, []
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array)
        entries[name] = {
            "dtype": _CODES[flat.dtype],
            "shape": list(flat.shape),
            "data_offsets": [at, at + flat.nbytes],
        }
        at += flat.nbytes
        data.append(flat.reshape(-1).view(np.uint8))
    sums = {name: checksum(part) for name, part in zip(arrays, data, strict=True)}
    entries["__metadata__"] = metadata | {"crc32": json.dumps(sums, sort_keys=True)}
    text = json.dumps(entries, sort_keys=True).encode()
    text += b" " * (-(8 + len(text)) % 64)
    header = len(text).to_bytes(8, "little") + text
    return [header, *data], zlib.crc32(header)


def checksum(array: npt.NDArray[np.uint8]) -> int:
    """CRC-32 of bytes, a part at a time."""
    crc = 0
    for start in range(0, len(array), _PART):
        crc = zlib.crc32(array[start : start + _PART].data, crc)
    return crc


class ArrayFile:
    """A safetensors file, memory-mapped: its header checked, its arrays not yet read."""

    def __init__(self, path: Path, size: int, header_crc32: int) -> None:
        self.path = path
        with open_file(path, size) as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        length = int.from_bytes(self._map[:8], "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER):
            raise FormatError(f"{path} is truncated, or not a safetensors file")
        header = self._map[: 8 + length]
        if zlib.crc32(header) != header_crc32:
            raise FormatError(f"{path}: its header does not match the manifest: it is damaged")
        self._start = 8 + length
        try:
            entries = json.loads(header[8:].decode())
            self.metadata: dict[str, str] = entries.pop("__metadata__")
            self._sums: dict[str, int] = dict(json.loads(self.metadata["crc32"]))
            self.arrays = {name: self._array(entry) for name, entry in entries.items()}
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"{path}: its header is not sound ({error})") from None

    def _array(self, entry: dict[str, Any]) -> npt.NDArray[Any]:
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
        begin, end = (int(at) for at in entry["data_offsets"])
        count = 1
        for n in shape:
            count *= n
        room = len(self._map) - self._start
        if min(*shape, begin, 0) < 0 or not begin <= end <= room or count * dtype.itemsize != end - begin:
            raise ValueError("an array does not fit the file")
        if (self._start + begin) % dtype.itemsize:
            raise ValueError("an array begins where its type may not")
        return np.frombuffer(self._map, dtype, count, self._start + begin).reshape(shape)

    def verify(self) -> None:
        """Compare every array with its CRC-32."""
        for name, array in self.arrays.items():
            if checksum(array.reshape(-1).view(np.uint8)) != self._sums.get(name):
                raise FormatError(f"{self.path}: the checksum of {name!r} does not match: the file is damaged")
