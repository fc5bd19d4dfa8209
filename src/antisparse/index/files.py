"""Arrays in files, read without trust (docs/format.md).

Arrays are kept in safetensors files: 8 bytes of length, a JSON header padded with spaces to 64 bytes, the arrays one
after the other. The header's metadata holds the CRC-32 of every array.
"""

import contextlib
import json
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from antisparse._files import open_regular
from antisparse.errors import FormatError

Arrays = dict[str, npt.NDArray[Any]]
_DTYPES = {"U8": np.uint8, "I64": np.int64, "U32": np.uint32, "U64": np.uint64, "F32": np.float32}
_CODES = {np.dtype(dtype): code for code, dtype in _DTYPES.items()}
MOST_HEADER = 1 << 20
_ALIGNED = 64
_PART = 1 << 24  # bytes a checksum takes at a time


@contextlib.contextmanager
def open_sized(path: Path, size: int) -> Iterator[BinaryIO]:
    """A file of the size that the manifest says, to be read; FileNotFoundError if there is none."""
    with open_regular(path) as (file, found):
        if found != size:
            raise FormatError(f"{path} has {found} bytes where the manifest says {size}: it is damaged")
        yield file


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


def _in_memory(file: BinaryIO, size: int) -> memoryview:
    """The bytes of a file, read and aligned as a map is."""
    room = np.empty(size + _ALIGNED, np.uint8)
    first = -room.ctypes.data % _ALIGNED
    view = room.data[first : first + size]
    done = 0
    while done < size:
        count = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise FormatError(f"{file.name} became shorter while it was read: it is damaged")
        done += count
    return view.toreadonly()


def mapped(path: Path, size: int, memory: bool) -> mmap.mmap | memoryview | bytes:
    """The bytes of a file of the size that the manifest says: memory-mapped, or read into memory."""
    with open_sized(path, size) as file:
        if memory:
            return _in_memory(file, size)
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""


def read_header(header: bytes, crc32: int, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the header of a file says of its arrays, and its metadata."""
    if zlib.crc32(header) != crc32:
        raise FormatError(f"{name}: its header does not match the manifest: it is damaged")
    try:
        entries = json.loads(header[8:].decode())
        metadata: dict[str, str] = entries.pop("__metadata__")
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"{name}: its header is not sound ({error})") from None
    return entries, metadata


class ArrayFile:
    """A safetensors file, its header checked: memory-mapped, its arrays not yet read, or `memory` read into memory."""

    def __init__(self, path: Path, size: int, header_crc32: int, memory: bool = False) -> None:
        self.path = path
        self._map = mapped(path, size, memory)
        length = int.from_bytes(self._map[:8], "little")
        if length > min(size - 8, MOST_HEADER):
            raise FormatError(f"{path} is truncated, or not a safetensors file")
        self._start = 8 + length
        entries, self.metadata = read_header(bytes(self._map[: self._start]), header_crc32, str(path))
        try:
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
