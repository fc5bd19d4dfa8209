"""Codecs on disk: one safetensors file, no pickle, a version and a checksum over all it says (docs/format.md)."""

import dataclasses
import hashlib
import json
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from antisparse._version import __version__
from antisparse.errors import AntisparseError, FormatError

FORMAT, VERSION = "antisparse-codec", 1
MOST = 1 << 32  # bytes of a file: no codec comes near them
Tensors = dict[str, npt.NDArray[Any]]


def digest(codec: Any) -> str:
    """A SHA-256 of all that a codec holds."""
    text, tensors = _content(codec)
    found = hashlib.sha256(text.encode())
    for name, array in sorted(tensors.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def dumps(codec: Any) -> bytes:
    """A codec as the bytes of a file."""
    text, tensors = _content(codec)
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "writer": __version__,
        "content": text,
        "crc32": str(_checksum(text, tensors)),
    }
    return _sorted(save_tensors(tensors, header))


def loads(data: bytes, classes: dict[str, type]) -> Any:
    """The value in the bytes of a file, made of these classes alone; FormatError if they hold none."""
    try:
        header = _header(data)
        if header.get("format") == "antisparse-encoder":
            raise FormatError(
                "it is an encoder written by antisparse 0.1, which this version does not read; fit the encoder again"
            )
        if header.get("format") != FORMAT:
            raise FormatError("it is not a codec of antisparse")
        if header.get("version") != str(VERSION):
            raise FormatError(
                f"it has version {header.get('version')}, written by antisparse {header.get('writer')}, and this "
                f"antisparse reads {VERSION}; upgrade antisparse"
            )
        tensors = load_tensors(data)
        text = header["content"]
        if str(_checksum(text, tensors)) != header.get("crc32"):
            raise FormatError("its checksum does not match: the file is damaged")
        for name, array in tensors.items():
            if array.dtype != np.float64:
                raise FormatError(f"its tensor {name} has dtype {array.dtype}; those of a codec have float64")
        unused = dict(tensors)
        value = _restore(json.loads(text), unused, classes)
        if unused:
            raise FormatError(f"it has tensors that no field refers to: {', '.join(sorted(unused))}")
        return value
    except FormatError:
        raise
    except (
        AntisparseError,
        SafetensorError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise FormatError(f"not a sound codec file ({error})") from None


def _sorted(data: bytes) -> bytes:
    """A safetensors file with its header sorted, which safetensors writes in any order: one codec is one file."""
    end = 8 + int.from_bytes(data[:8], "little")
    text = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[end:]


def _content(codec: Any) -> tuple[str, Tensors]:
    tensors: Tensors = {}
    return json.dumps(_store(codec, "codec", tensors), sort_keys=True), tensors


def _header(data: bytes) -> dict[str, str]:
    """The metadata of a safetensors file: 8 bytes of length, then JSON."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise FormatError("it is truncated, or not a safetensors file")
    metadata = json.loads(data[8 : 8 + length].decode("utf-8")).get("__metadata__", {})
    return {str(key): str(value) for key, value in metadata.items()}


def _store(value: Any, name: str, tensors: Tensors) -> Any:
    """A value as JSON; arrays go to `tensors` and leave their name."""
    if isinstance(value, np.ndarray):
        tensors[name] = np.ascontiguousarray(value)
        return {"tensor": name}
    if dataclasses.is_dataclass(value):
        # A field that came later is left out where it has its default: so codecs without it keep their digest.
        parts = {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if not ("later" in field.metadata and getattr(value, field.name) == field.default)
        }
        return {"class": type(value).__name__} | {
            key: _store(part, f"{name}.{key}", tensors) for key, part in parts.items()
        }
    if isinstance(value, tuple):
        return [_store(part, f"{name}.{place}", tensors) for place, part in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _restore(value: Any, tensors: Tensors, classes: dict[str, type]) -> Any:
    """The inverse of `_store`; takes the tensors that it uses out of `tensors`."""
    if isinstance(value, list):
        return tuple(_restore(part, tensors, classes) for part in value)
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors.pop(value["tensor"])
    parts = {key: _restore(part, tensors, classes) for key, part in value.items() if key != "class"}
    return classes[value["class"]](**parts)


def _checksum(text: str, tensors: Tensors) -> int:
    crc = zlib.crc32(text.encode())
    for name in sorted(tensors):
        array = tensors[name]
        crc = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.tobytes(), crc)
    return crc
