"""Codecs on disk: what is read is what was written, and all else is refused."""

import contextlib
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo
from safetensors.numpy import save as save_tensors

from antisparse import (
    AntisparseError,
    CodeBase,
    Codec,
    FormatError,
    InputTypeError,
    LearnedEncoder,
    LSHEncoder,
    Split,
    StorageError,
)
from antisparse.codec import Cells, files

X = zoo.vectors(200, 3)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_what_is_loaded_is_what_was_saved(tmp_path, name: str) -> None:
    path, codec = tmp_path / "codec.safetensors", zoo.codec(name)
    codec.save(path)
    again = Codec.load(str(path))
    assert again == codec and type(again.symbols) is type(codec.symbols)
    np.testing.assert_array_equal(again.encode(X), codec.encode(X))
    assert os.listdir(tmp_path) == ["codec.safetensors"]
    assert again.to_bytes() == path.read_bytes()  # one codec is one file, byte for byte


@pytest.mark.parametrize("split", [Split("codebooks", bias="nibble"), Split("signs", cells=2, scale=True)])
def test_every_flipped_bit_and_every_truncation_is_found(split: Split) -> None:
    train = X[:, :2]
    codec = LearnedEncoder(4, split=split, random_state=0).fit(train).codec_
    whole, codes = codec.to_bytes(), codec.encode(train)
    harmless = 0
    for position in range(8 * len(whole)):
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        with contextlib.suppress(FormatError):
            again = Codec.from_bytes(bytes(data))
            # A flip that says the same, such as one blank for another in the header, must change nothing.
            assert again == codec
            np.testing.assert_array_equal(again.encode(train), codes)
            harmless += 1
    assert harmless <= 8 * 16  # the header's padding and the writer's name, at most
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            Codec.from_bytes(whole[:length])
    for more in (b"\0", b"antisparse"):
        with pytest.raises(FormatError):
            Codec.from_bytes(whole + more)


@pytest.mark.parametrize("data", [b"", b"\x00" * 100, b"\xff" * 100, b"PK\x03\x04" * 50, b"\x02" + b"\x00" * 7 + b"{}"])
def test_other_files_are_refused(tmp_path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="other: "):
        Codec.load(path)
    with pytest.raises(FileNotFoundError):
        Codec.load(tmp_path / "missing")


def header_of(metadata: object) -> bytes:
    text = json.dumps({"__metadata__": metadata}).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("metadata", [None, [], "x", 3, {}, {"format": "antisparse-codec"}, {"format": None}])
def test_headers_that_say_nothing_are_refused(metadata: object) -> None:
    with pytest.raises(FormatError):
        Codec.from_bytes(header_of(metadata))


def test_encoders_of_the_first_version_are_named() -> None:
    old = {"format": "antisparse-encoder", "version": "1", "content": "{}", "crc32": "0"}
    data = save_tensors({"fitted.mean_": np.zeros(3)}, old)
    with pytest.raises(FormatError, match=r"antisparse 0\.1.*fit the encoder again"):
        Codec.from_bytes(data)


def test_newer_versions_are_named() -> None:
    newer = {"format": "antisparse-codec", "version": "2", "writer": "9.7"}
    with pytest.raises(FormatError, match=r"version 2, written by antisparse 9\.7.*upgrade"):
        Codec.from_bytes(save_tensors({}, newer))


Change = Callable[[dict, dict, dict], object]


def forged(name: str, change: Change) -> bytes:
    """A file with a good checksum that says something else."""
    data = zoo.codec(name).to_bytes()
    header, tensors = files._header(data), files.load_tensors(data)
    content = json.loads(header["content"])
    change(header, content, tensors)
    text = json.dumps(content)
    return save_tensors(tensors, header | {"content": text, "crc32": str(files._checksum(text, tensors))})


def test_a_forgery_that_changes_nothing_is_read() -> None:
    for name in zoo.NAMES:
        assert Codec.from_bytes(forged(name, lambda header, content, tensors: None)) == zoo.codec(name)


def setting(*path: str, to: object) -> Change:
    """Puts a value into the content."""

    def change(header: dict, content: dict, tensors: dict) -> None:
        part = content
        for key in path[:-1]:
            part = part[key]
        assert path[-1] in part or to == "surplus"
        part[path[-1]] = to

    return change


def dropping(*path: str) -> Change:
    def change(header: dict, content: dict, tensors: dict) -> None:
        part = content
        for key in path[:-1]:
            part = part[key]
        del part[path[-1]]

    return change


def tensor(name: str, array: np.ndarray) -> Change:
    def change(header: dict, content: dict, tensors: dict) -> None:
        assert name in tensors
        tensors[name] = array

    return change


def nan_in(name: str) -> Change:
    def change(header: dict, content: dict, tensors: dict) -> None:
        tensors[name] = np.full_like(tensors[name], np.nan)

    return change


FORGERIES: dict[str, tuple[str, Change, str]] = {
    "another version": ("lsh", lambda h, c, t: h.update(version="7"), "has version 7"),
    "another format": ("lsh", lambda h, c, t: h.update(format="x"), "not a codec of antisparse"),
    "a class there is not": ("lsh", setting("class", to="Popen"), "not a sound codec file"),
    "a part of a class there is not": ("lsh", setting("symbols", "class", to="Popen"), "not a sound codec file"),
    "no class": ("lsh", dropping("symbols", "class"), "not a sound codec file"),
    "a class that is no name": ("lsh", setting("class", to=["Codec"]), "not a sound codec file"),
    "no codec": (
        "lsh",
        lambda h, c, t: (c.clear(), c.update({"class": "FixedLength", "sigma": 1.0}), t.clear()),
        "not hold a codec",
    ),
    "another part": (
        "lsh",
        setting("scale", to={"class": "BiasByte", "low": 0.0, "step": 1.0, "alpha": 0.0, "beta": 0.0}),
        "scale is a BiasByte",
    ),
    "cells for symbols": ("lsh", setting("symbols", "class", to="Cells"), "not a sound codec file"),
    "a surplus field": ("lsh", setting("symbols", "more", to="surplus"), "more"),
    "a surplus field of the codec": ("lsh", setting("encode", to="surplus"), "encode"),
    "a missing field": ("lsh", dropping("scale", "sigma"), "sigma"),
    "a missing part": ("lsh", dropping("reduction"), "reduction"),
    "a number that is text": ("lsh", setting("scale", "sigma", to="1"), "sigma must be a number"),
    "a number that is none": ("lsh", setting("scale", "sigma", to=None), "sigma must be a number"),
    "a negative length": ("lsh", setting("scale", "sigma", to=-1.0), "sigma = -1"),
    "an infinite length": ("lsh", setting("scale", "sigma", to=float("inf")), "sigma = inf"),
    "a length without a square": ("lsh", setting("scale", "sigma", to=1e155), r"sigma = 1e\+155; its square"),
    "a length that is NaN": ("lsh", setting("scale", "sigma", to=float("nan")), "sigma = nan"),
    "no length for l2": ("lsh", setting("scale", to=None), "needs a bias, or rebuilt vectors of one length"),
    "a metric there is not": ("lsh", setting("metric_name", to="angle"), "metric = 'angle'"),
    "a metric that is no name": ("lsh", setting("metric_name", to=["l2"]), "metric = "),
    "a tensor there is not": ("lsh", setting("reduction", "mean", to={"tensor": "nothing"}), "nothing"),
    "a tensor that is no name": ("lsh", setting("reduction", "mean", to={"tensor": ["x"]}), "not a sound codec file"),
    "a tensor used twice": (
        "lsh reduced",
        setting("reduction", "axes", to={"tensor": "codec.reduction.mean"}),
        "codec.reduction.mean",
    ),
    "a surplus tensor": ("lsh", lambda h, c, t: t.update(more=np.zeros(3)), "no field refers to: more"),
    "a tensor in single precision": (
        "lsh",
        tensor("codec.symbols.frame", np.zeros((10, 24), np.float32)),
        "codec.symbols.frame has dtype float32",
    ),
    "a tensor of bytes": ("lsh", tensor("codec.reduction.mean", np.zeros(10, np.uint8)), "dtype uint8"),
    "a frame of another height": (
        "lsh",
        tensor("codec.symbols.frame", np.zeros((3, 24))),
        "symbols are of 3 dimensions",
    ),
    "a frame that is a vector": ("lsh", tensor("codec.symbols.frame", np.zeros(10)), r"frame has shape \(10,\)"),
    "a frame of no columns": ("lsh", tensor("codec.symbols.frame", np.zeros((10, 0))), r"frame has shape \(10, 0\)"),
    "a mean of another dimension": ("lsh", tensor("codec.reduction.mean", np.zeros(9)), "symbols are of 10 dimensions"),
    "NaN in the mean": ("lsh", nan_in("codec.reduction.mean"), "mean"),
    "NaN in the frame": ("lsh", nan_in("codec.symbols.frame"), "frame"),
    "axes of another dimension": ("lsh reduced", tensor("codec.reduction.axes", np.eye(6)), "axes has 6 columns"),
    "a frame that is a number": ("lsh", setting("symbols", "frame", to=3.0), "frame"),
    "blocks that are vectors": ("spread greedy", tensor("codec.symbols.frame.blocks.0", np.zeros(3)), "blocks"),
    "a rotation that is none": (
        "spread greedy",
        tensor("codec.symbols.frame.rotation", np.ones((10, 10))),
        "rotation is not orthogonal",
    ),
    "blocks that are no list": ("spread greedy", setting("symbols", "frame", "blocks", to=3), "blocks"),
    "an effort there is not": ("spread", setting("symbols", "effort", to=4), "effort = 4"),
    "an effort that is true": ("spread", setting("symbols", "effort", to=True), "effort = True"),
    "a fractional effort": ("spread", setting("symbols", "effort", to=1.0), "effort = 1.0; choose"),
    "a negative h": ("spread", setting("symbols", "h", to=-0.1), "h = -0.1"),
    "relative_h that is a number": ("spread", setting("symbols", "relative_h", to=1), "relative_h"),
    "codebooks of 15 codewords": (
        "codebooks",
        tensor("codec.symbols.matrix", np.zeros((10, 15))),
        "codebooks have 16 each",
    ),
    "codebooks of another height": (
        "codebooks",
        tensor("codec.symbols.matrix", np.zeros((9, 32))),
        "symbols are of 9 dimensions",
    ),
    "a bias that is none": ("codebooks", setting("bias", to=None), "needs a bias"),
    "a negative step": ("codebooks", setting("bias", "step", to=-1.0), "step = -1"),
    "an infinite low": ("codebooks", setting("bias", "low", to=float("-inf")), "low = -inf"),
    "ranges for other cells": (
        "codebooks nibble",
        lambda h, c, t: t.update({"codec.bias.low": np.zeros(2), "codec.bias.step": np.zeros(2)}),
        "2 ranges for 1 cells",
    ),
    "ranges of two lengths": ("codebooks nibble", tensor("codec.bias.low", np.zeros(2)), "not of one length"),
    "a nibble that is taken": (
        "codebooks nibble",
        tensor("codec.symbols.matrix", np.zeros((10, 160))),
        "last half byte",
    ),
    "one cell": ("codebooks cells", tensor("codec.cells.means", np.zeros((1, 10))), "means has 1 rows"),
    "cells of another dimension": (
        "codebooks cells",
        tensor("codec.cells.means", np.zeros((9, 3))),
        "means have 3 columns",
    ),
    "an inverse scale of zero": ("signs scale", setting("scale", "low", to=0.0), "low = 0"),
    "a scale beside a nibble": (
        "signs nibble",
        setting("scale", to={"class": "ScaleByte", "low": 1.0, "step": 0.1}),
        "does not go with a scale byte",
    ),
    "cells beside one length": (
        "lsh",
        lambda h, c, t: (c.update(cells={"class": "Cells", "means": {"tensor": "m"}}), t.update(m=np.zeros((2, 10)))),
        "neither cells nor a bias",
    ),
    "a bias beside drawn signs": (
        "lsh",
        lambda h, c, t: c.update(
            scale=None, bias={"class": "BiasByte", "low": 0.0, "step": 1.0, "alpha": 0.0, "beta": 0.0}
        ),
        "neither a scale byte nor a bias",
    ),
    "a norm of zero": ("signs", setting("symbols", "norm", to=0.0), "norm = 0"),
    "a box of another dimension": (
        "spectral",
        lambda h, c, t: t.update({"codec.symbols.lower": np.zeros(11), "codec.symbols.extent": np.ones(11)}),
        "symbols are of 11 dimensions",
    ),
    "a box of one side": (
        "spectral",
        lambda h, c, t: t.update(
            {"codec.symbols.lower": np.zeros(1), "codec.symbols.extent": np.ones(1), "codec.symbols.axis": np.zeros(17)}
        ),
        "symbols are of 1 dimensions",
    ),
    "an axis there is not": ("spectral", tensor("codec.symbols.axis", np.full(17, 10.0)), "does not exist"),
    "a fractional axis": ("spectral", tensor("codec.symbols.axis", np.full(17, 0.5)), "does not exist"),
    "a scale beside spectral signs": (
        "spectral",
        setting("scale", to={"class": "FixedLength", "sigma": 1.0}),
        "spectral signs go with neither|spectral signs rebuild nothing",
    ),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_forged_files_are_refused(case: str) -> None:
    name, change, message = FORGERIES[case]
    with pytest.raises(FormatError, match=message):
        Codec.from_bytes(forged(name, change))


def test_content_nested_without_end_is_refused() -> None:
    text = "[" * 100_000 + "]" * 100_000
    header = {"format": "antisparse-codec", "version": "1", "content": text, "crc32": str(files._checksum(text, {}))}
    with pytest.raises(FormatError):
        Codec.from_bytes(save_tensors({}, header))


def test_bytes_come_in_any_wrapping_and_what_is_none_is_named() -> None:
    codec = zoo.codec("codebooks cells nibble")
    data = codec.to_bytes()
    wide = np.zeros(2 * len(data), np.uint8)
    wide[::2] = np.frombuffer(data, np.uint8)
    for given in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), wide[::2]):
        assert Codec.from_bytes(given) == codec
    for wrong in (
        "x",
        None,
        8,
        [1, 2],
        io.BytesIO(data),
        codec,
        np.zeros(8),
        np.zeros(8, object),
        np.zeros(8, "M8[s]"),
    ):
        with pytest.raises(InputTypeError, match="data must be bytes"):
            Codec.from_bytes(wrong)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "codec"
    zoo.codec("lsh").save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            with pytest.raises(StorageError, match=r"codec could not be written: .*No space"):
                zoo.codec("itq").save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["codec"]
    with pytest.raises(StorageError, match="could not be written"):
        zoo.codec("itq").save(tmp_path / "missing" / "codec")
    zoo.codec("itq").save(path)
    assert Codec.load(path) == zoo.codec("itq")


def test_a_link_planted_under_the_temporary_name_is_not_followed(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "precious").write_text("mine")
    monkeypatch.setattr("antisparse._files.secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".tmp-guessed").symlink_to("precious")
    with pytest.raises(StorageError, match="codec could not be written"):
        zoo.codec("lsh").save(tmp_path / "codec")
    assert (tmp_path / "precious").read_text() == "mine" and (tmp_path / ".tmp-guessed").is_symlink()
    assert sorted(os.listdir(tmp_path)) == [".tmp-guessed", "precious"]


def test_temporary_names_cannot_be_guessed_and_the_folder_is_synced(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, synced, replace, fsync = [], [], os.replace, os.fsync

    def renamed(source: Path, target: Path) -> None:
        names.append(Path(source).name)
        synced.append("renamed")
        replace(source, target)

    def waited(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(os, "fsync", waited)
    for _ in range(5):
        zoo.codec("lsh").save(tmp_path / "codec")
        written, folder = os.stat(tmp_path / "codec").st_ino, os.stat(tmp_path).st_ino
        assert synced[-3:] == [written, "renamed", folder]
    assert len(set(names)) == 5 and all(len(name) >= 20 for name in names)


def test_threads_that_save_to_one_path_leave_one_whole_file(tmp_path) -> None:
    path, codecs = tmp_path / "codec", [zoo.codec(name) for name in ("lsh", "itq", "codebooks", "spectral")]
    codecs[0].save(path)
    wrong: list[Exception] = []
    barrier = threading.Barrier(5)

    def save(codec: Codec) -> None:
        barrier.wait()
        for _ in range(25):
            try:
                codec.save(path)
            except Exception as error:
                wrong.append(error)

    def load() -> None:
        barrier.wait()
        for _ in range(100):
            try:
                assert Codec.load(path) in codecs
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=save, args=(codec,)) for codec in codecs] + [threading.Thread(target=load)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and os.listdir(tmp_path) == ["codec"]


def test_what_is_on_disk_says_what_it_is() -> None:
    header = files._header(LSHEncoder(8, random_state=0).fit(X).codec_.to_bytes())
    assert header["format"] == "antisparse-codec" and header["version"] == "1" and header["writer"]
    assert json.loads(header["content"])["class"] == "Codec"


def test_a_codec_whose_means_overflow_is_called_damaged() -> None:
    codec = zoo.codec("codebooks cells")
    means = np.array(codec.cells.means)
    means[3, 2] = 1e200
    far = replace(codec, cells=Cells(means))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FormatError, match="overflow"):
        CodeBase(far, codec.encode(zoo.vectors(20, 1))).search(zoo.vectors(2, 2), 3)


EXTREMES = [0.0, 5e-324, 1e-200, 1e155, -1e155, 1e300, -1e300, 1.79e308]


def numbers(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers stand in the content of a file."""
    if isinstance(content, dict | list):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from numbers(content[key], (*at, key))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield at


def extreme(name: str) -> Iterator[tuple[str, bytes]]:
    """Files of a codec in which one number, or some of one array, is at the edge of what float64 holds."""
    original = zoo.codec(name).to_bytes()
    arrays, content = files.load_tensors(original), json.loads(files._header(original)["content"])
    for value in EXTREMES:
        for place in numbers(content):
            yield f"{place} = {value}", forged(name, setting(*place, to=value))
        for key, array in arrays.items():
            for count in (1, -(-array.size // 3), array.size):
                other = array.copy()
                other.reshape(-1)[:count] = value
                yield f"{count} of {key} = {value}", forged(name, tensor(key, other))


@pytest.mark.parametrize("name", zoo.NAMES)
def test_numbers_at_the_edge_are_refused_or_searched(name: str) -> None:
    """Each in turn, where mutations at random seldom come: an answer, or an error of the library."""
    queries, vectors, opened, wrong = zoo.vectors(3, 2), zoo.vectors(12, 1), 0, []
    sound = zoo.codec(name).encode(vectors)
    ways: list[dict[str, Any]] = [{"method": method} for method in zoo.methods(name)]
    ways += [{"method": "asymmetric", "query": "spread"}, {"shortlist": 4}]
    for what, data in extreme(name):
        with contextlib.suppress(FormatError), np.errstate(all="ignore"):
            codec = Codec.from_bytes(data)
            opened += 1
            base = CodeBase(codec, sound)
            deeds = [lambda codec=codec: codec.encode(vectors), lambda codec=codec: codec.decode(sound)]
            deeds += [lambda base=base, way=way: base.search(queries, 3, **way) for way in ways]
            for deed in deeds:
                try:
                    deed()
                except AntisparseError:
                    pass
                except Exception as error:
                    wrong.append(f"{what}: {error!r}")
    assert opened and not wrong, "\n".join(wrong)
