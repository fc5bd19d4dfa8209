"""Encoders on disk: one safetensors file, no pickle, a version and a checksum over all it says (docs/encoders.md)."""

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from antisparse.codes import CodeLayout
from antisparse.encoders.antisparse import AntiSparseEncoder
from antisparse.encoders.base import Encoder
from antisparse.encoders.itq import ITQEncoder
from antisparse.encoders.lsh import LSHEncoder
from antisparse.encoders.spectral import SpectralHashEncoder
from antisparse.errors import AntisparseError, FormatError, InputError, InputTypeError
from antisparse.frames import BlockFrame

FORMAT = "antisparse-encoder"
VERSION = 1

_CLASSES: dict[str, type[Encoder]] = {
    cls.__name__: cls for cls in (AntiSparseEncoder, LSHEncoder, ITQEncoder, SpectralHashEncoder)
}
Tensors = dict[str, npt.NDArray[Any]]


def save_encoder(encoder: Encoder, path: str | os.PathLike[str]) -> None:
    """Write a fitted encoder to one file, at once or not at all.

    `random_state` is kept where it is an integer or None: a generator's state is spent by `fit`.
    """
    _write_whole(Path(path), dump_encoder(encoder))


def dump_encoder(encoder: Encoder) -> bytes:
    """What `save_encoder` writes."""
    name = type(encoder).__name__
    if _CLASSES.get(name) is not type(encoder):
        raise InputTypeError(f"encoder is a {name}; these can be saved: {', '.join(_CLASSES)}")
    if not hasattr(encoder, "code_layout_"):
        raise InputError("encoder is not fitted; call encoder.fit(X) first")
    tensors: Tensors = {}
    parameters = dict(encoder.get_params(deep=False))
    if not isinstance(parameters.get("random_state"), int | np.integer | None):
        parameters["random_state"] = None
    fitted = {key: getattr(encoder, key) for key in encoder.fitted_attributes}
    content: dict[str, Any] = {
        "class": name,
        "parameters": {key: _store(value, f"parameters.{key}", tensors) for key, value in parameters.items()},
        "fitted": {key: _store(value, f"fitted.{key}", tensors) for key, value in fitted.items()},
    }
    if hasattr(encoder, "feature_names_in_"):  # of a table that it was fitted on
        content["feature_names"] = [str(feature) for feature in encoder.feature_names_in_]
    text = json.dumps(content, sort_keys=True)
    header = {"format": FORMAT, "version": str(VERSION), "content": text, "crc32": str(_checksum(text, tensors))}
    data: bytes = save_tensors(tensors, header)
    return data


def load_encoder(path: str | os.PathLike[str]) -> Encoder:
    """Read an encoder that `save_encoder` wrote.

    Raises
    ------
    FormatError
        If the file is damaged, truncated, not an encoder, or of a newer version.
    """
    data = Path(path).read_bytes()
    try:
        header = _header(data)
        if header.get("format") != FORMAT:
            raise FormatError("it is not an encoder of antisparse")
        if header.get("version") != str(VERSION):
            version = header.get("version")
            raise FormatError(f"it has version {version}, and this antisparse reads {VERSION}; upgrade antisparse")
        tensors = load_tensors(data)
        text = header["content"]
        if str(_checksum(text, tensors)) != header.get("crc32"):
            raise FormatError("its checksum does not match: the file is damaged")
        content = json.loads(text)
        cls = _CLASSES[content["class"]]
        encoder = cls(**{key: _restore(value, tensors) for key, value in content["parameters"].items()})
        fitted = {key: _restore(value, tensors) for key, value in content["fitted"].items()}
        if set(fitted) != set(cls.fitted_attributes):
            raise FormatError("its attributes are not those of its class")
        for key, value in fitted.items():
            setattr(encoder, key, value)
        encoder.check_fitted_shapes()
        if "feature_names" in content:
            names = content["feature_names"]
            if not all(isinstance(feature, str) for feature in names) or len(names) != encoder.n_features_in_:
                raise FormatError("its feature names are not one a dimension")
            encoder.feature_names_in_ = np.array(names, dtype=object)
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None
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
        raise FormatError(f"{os.fspath(path)}: not a sound encoder file ({error})") from None
    return encoder


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
    if isinstance(value, BlockFrame):
        blocks = [_store(block, f"{name}.{k}", tensors) for k, block in enumerate(value.blocks)]
        return {"blocks": blocks, "rotation": _store(value.rotation, f"{name}.rotation", tensors)}
    if isinstance(value, CodeLayout):
        return {"n_bits": value.n_bits, "side": [list(part) for part in value.side]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _restore(value: Any, tensors: Tensors) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "blocks" in value:
        return BlockFrame(tuple(_restore(b, tensors) for b in value["blocks"]), _restore(value["rotation"], tensors))
    return CodeLayout(int(value["n_bits"]), tuple((str(name), int(size)) for name, size in value["side"]))


def _checksum(text: str, tensors: Tensors) -> int:
    crc = zlib.crc32(text.encode())
    for name in sorted(tensors):
        array = tensors[name]
        crc = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.tobytes(), crc)
    return crc


def _write_whole(path: Path, data: bytes) -> None:
    """Replace the file in one step, so that a crash leaves the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
