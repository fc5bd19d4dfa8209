"""Where the bytes of a data set come from: the file that was named, of the type it says, and nothing else."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from antisparse import DownloadError, FormatError, InputError, InputTypeError, MissingFileError, StorageError
from antisparse.datasets import fetch, read_dataset, read_vectors, write_vectors
from antisparse.datasets.files import SUFFIXES

h5py = pytest.importorskip("h5py")

X = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that a crafted one must not lead to."""
    place = tmp_path / "secret"
    place.write_bytes(b"root:x:0:0:root:/root:/bin/sh\n" * 20)
    return place


def test_an_external_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["far"] = X + 100
        other["group/far"] = X
    with h5py.File(path, "w") as file:
        file["near"] = X
        file["train"] = h5py.ExternalLink("other.h5", "/far")
        file["group"] = h5py.ExternalLink("other.h5", "/group")
        file["soft"] = h5py.SoftLink("/train")
        file["pipe"] = h5py.ExternalLink("pipe", "/far")
    os.mkfifo(tmp_path / "pipe")  # which opening would wait for
    for column in ("train", "group/far", "soft", "pipe", "/./group/far"):
        with pytest.raises(FormatError, match="link to another file, which is not followed"):
            read_vectors(path, column=column)
    np.testing.assert_array_equal(read_vectors(path, column="near"), X)


def test_soft_links_within_the_file_are_followed(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["data/deep"] = X
        file["train"] = h5py.SoftLink("data/deep")
        file["data/up"] = h5py.SoftLink("/train")
        file["round"] = h5py.SoftLink("/round")
        file["gone"] = h5py.SoftLink("/nothing/here")
    for column in ("train", "data/up", "//data/./deep"):
        np.testing.assert_array_equal(read_vectors(path, column=column), X)
    with pytest.raises(FormatError, match="leads nowhere"):
        read_vectors(path, column="round")
    for column in ("gone", "data", "train/x"):
        with pytest.raises(InputError, match="has no array"):
            read_vectors(path, column=column)


def test_external_storage_is_not_read(path: Path, secret: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (20, 30), "u1", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
    with pytest.raises(FormatError, match="values lie in other files, which are not read"):
        read_vectors(path)


def test_a_virtual_data_set_is_not_read(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["far"] = X
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "far", X.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("train", layout)
        file["test"] = X
    for read in (read_vectors, read_dataset):
        with pytest.raises(FormatError, match="values lie in other files"):
            read(path)


def typed(path: Path, kind, values: np.ndarray) -> None:
    """A contiguous array of an HDF5 type that numpy need not have."""
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(values.shape)
        dataset = h5py.h5d.create(file.id, b"train", kind, space)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))


def test_types_that_numpy_lacks_are_converted_not_mapped(path: Path) -> None:
    brain = h5py.h5t.IEEE_F32LE.copy()  # bfloat16: the upper half of a float32
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_size(2)
    brain.set_precision(16)
    brain.set_ebias(127)
    typed(path, brain, X)
    np.testing.assert_array_equal(read_vectors(path), X)

    shifted = h5py.h5t.STD_I32LE.copy()  # 16 bits that begin at the eighth
    shifted.set_precision(16)
    shifted.set_offset(8)
    typed(path, shifted, X.astype(np.int32))
    np.testing.assert_array_equal(read_vectors(path), X)

    other_bias = h5py.h5t.IEEE_F32LE.copy()
    other_bias.set_ebias(120)
    typed(path, other_bias, X)
    np.testing.assert_array_equal(read_vectors(path), X)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">i2", "u1", "<f2", "<u8"])
def test_types_that_numpy_has_are_mapped(path: Path, dtype: str) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        file["train"] = X.astype(dtype)
    found = read_vectors(path)
    assert isinstance(found.base, np.memmap) or isinstance(found, np.memmap)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, X)


def test_an_array_larger_than_its_file_can_hold_is_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (2**40, 64), "f4", chunks=(1024, 64), compression="gzip")
        file.create_dataset("late", (2**40, 64), "f4")
        file.create_dataset("chunk", (1, 4), "f4", chunks=(1, 4), maxshape=(None, 4))
        wide = file.create_dataset("wide", (1, 2**20), "f4", chunks=(1, 2**20), compression="gzip")
        wide[:] = 0
    for column in ("train", "late"):
        with pytest.raises(FormatError, match="more than a file of"):
            read_vectors(path, column=column)
    assert not read_vectors(path, column="chunk").any()
    assert read_vectors(path, column="wide").shape == (1, 2**20)


def within(seconds: float, work):
    """What `work` raises; it must not wait for ever."""
    found = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits for a pipe"
    return found[0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_regular_files_are_read(tmp_path: Path, suffix: str) -> None:
    pipe, device = tmp_path / f"base{suffix}", tmp_path / f"zero{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for place in (pipe, device):
        error = within(10, lambda place=place: read_vectors(place))
        assert isinstance(error, FormatError) and "is not a regular file" in str(error)
    os.mkfifo(tmp_path / f"query{suffix}")
    assert isinstance(within(10, lambda: read_dataset(tmp_path)), FormatError)
    with pytest.raises(MissingFileError, match="there is no such file"):
        read_vectors(tmp_path / f"gone{suffix}")
    with pytest.raises(StorageError, match="could not be read"):
        read_vectors(tmp_path / ("n" * 300 + suffix))


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "x.npy"
    os.mkfifo(pipe)
    device = tmp_path / "null.npy"
    device.symlink_to("/dev/null")
    (tmp_path / "folder.npy").mkdir()
    for place in (pipe, device, tmp_path / "folder.npy"):
        with pytest.raises(InputError, match="only a regular file is replaced"):
            write_vectors(place, X)
    with pytest.raises(StorageError, match="could not be written"):
        write_vectors(tmp_path / ("n" * 300 + ".npy"), X)
    assert sorted(os.listdir(tmp_path)) == ["folder.npy", "null.npy", "x.npy"] and device.is_symlink()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_link_planted_under_the_temporary_name_is_not_followed(tmp_path: Path, monkeypatch, suffix: str) -> None:
    (tmp_path / "precious").write_text("mine")
    monkeypatch.setattr("antisparse._files.secrets.token_hex", lambda _: "guessed")
    (tmp_path / ".tmp-guessed").symlink_to("precious")
    with pytest.raises(StorageError, match="could not be written"):
        write_vectors(tmp_path / f"x{suffix}", X)
    assert (tmp_path / "precious").read_text() == "mine" and (tmp_path / ".tmp-guessed").is_symlink()
    assert sorted(os.listdir(tmp_path)) == [".tmp-guessed", "precious"]


@pytest.mark.parametrize("path", [None, 3, b"x.npy", ["x.npy"], 2.5, object(), np.array("x.npy")])
def test_what_is_no_path(path) -> None:
    for call in (read_vectors, read_dataset, lambda p: write_vectors(p, X), lambda p: fetch("http://localhost/x", p)):
        with pytest.raises(InputTypeError, match="path must be a string or a Path"):
            call(path)
    for text in ("", "a\0b.npy"):
        with pytest.raises(InputError, match="path"):
            read_vectors(text)


def test_a_folder_is_not_fetched_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(FormatError, match="is not a regular file"):
            fetch("http://localhost:1/x", place)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match="cannot be written there"):
        fetch("http://localhost:1/x", tmp_path / "file" / "x")
    with pytest.raises(DownloadError, match="1 bytes, not 2"):
        fetch("http://localhost:1/x", tmp_path / "file", size=2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": None},
        {"url": "http://"},
        {"url": "http://[::1"},
        {"url": "http://host:99999/x"},
        {"url": "http://host/a b"},
        {"url": "file:///etc/passwd"},
        {"sha256": "short"},
        {"sha256": 3},
        {"size": -1},
        {"size": "x"},
        {"progress": 2},
    ],
)
def test_what_cannot_be_fetched(tmp_path: Path, arguments) -> None:
    with pytest.raises((InputError, InputTypeError), match=next(iter(arguments))):
        fetch(**{"url": "http://localhost:1/x", "path": tmp_path / "x"} | arguments)
