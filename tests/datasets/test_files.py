import os
import pickle
import sys
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antisparse import AntisparseError, DownloadError, FormatError, InputError, InputTypeError, MissingDependencyError
from antisparse.datasets import _raw, files, read_vectors, write_vectors

DTYPES = {
    "fvecs": "<f4",
    "bvecs": "u1",
    "ivecs": "<i4",
    "fbin": "<f4",
    "u8bin": "u1",
    "i8bin": "i1",
    "ibin": "<i4",
}
VECS = ["fvecs", "bvecs", "ivecs"]
BINS = ["fbin", "u8bin", "i8bin", "ibin"]
ANY = ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def draw(seed: int, n: int, d: int, dtype: str) -> np.ndarray:
    """Any bits that are not NaN."""
    bits = np.random.default_rng(seed).integers(0, 256, (n, d * np.dtype(dtype).itemsize), dtype=np.uint8)
    X = bits.view(dtype)
    return np.where(X == X, X, X.dtype.type(0)) if X.dtype.kind == "f" else X


def layout(X: np.ndarray, format: str) -> bytes:
    """What a file of the format holds, row by row."""
    n, d = X.shape
    if format in VECS:
        return b"".join(d.to_bytes(4, "little") + X[i].tobytes() for i in range(n))
    return n.to_bytes(4, "little") + d.to_bytes(4, "little") + X.tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.mark.parametrize("format", [*VECS, *BINS])
@given(n=st.integers(0, 20), d=st.integers(1, 20), seed=st.integers(0, 10**6), rows=st.integers(1, 7))
def test_raw_files_hold_the_layout_and_come_back_mapped(folder, format: str, n: int, d: int, seed: int, rows: int):
    n = max(n, 1) if format in VECS else n
    X = draw(seed, n, d, DTYPES[format])
    path = folder / f"x.{format}"
    with pytest.MonkeyPatch.context() as patch:  # small pieces, so that there are several
        patch.setattr(_raw, "_PIECE_BYTES", 8 * d * rows)
        patch.setattr(_raw, "_CHECKED_ROWS", rows)
        write_vectors(path, X)
        assert path.read_bytes() == layout(X, format)
        again = read_vectors(path)
    assert again.dtype == DTYPES[format] and again.shape == (n, d)
    np.testing.assert_array_equal(again, X)
    assert not again.flags.writeable
    assert isinstance(again, np.memmap) or n == 0
    assert again.flags.aligned


@pytest.mark.parametrize("format", ["npy", "hdf5", "parquet"])
@given(
    n=st.integers(0, 20),
    d=st.integers(1, 20),
    dtype=st.sampled_from(ANY),
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 7),
    fortran=st.booleans(),
)
def test_other_files_keep_the_dtype(folder, format: str, n: int, d: int, dtype: str, seed: int, rows: int, fortran):
    X = draw(seed, n, d, dtype)
    X = np.asfortranarray(X) if fortran else X
    path = folder / f"x.{format}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_raw, "_PIECE_BYTES", 8 * d * rows)
        write_vectors(path, X)
    again = read_vectors(path)
    assert again.dtype == X.dtype and again.shape == X.shape
    np.testing.assert_array_equal(again, X)
    if format != "parquet" and n:
        assert isinstance(again, np.memmap) and not again.flags.writeable and again.flags.aligned


def test_numpy_h5py_and_pyarrow_read_what_is_written(tmp_path) -> None:
    X = draw(0, 5, 3, "f4")
    for format in ("npy", "hdf5", "parquet"):
        write_vectors(tmp_path / f"x.{format}", X)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy", allow_pickle=False), X)
    with h5py.File(tmp_path / "x.hdf5") as file:
        np.testing.assert_array_equal(file["train"][:], X)
    assert pq.read_table(tmp_path / "x.parquet").column("vector").to_pylist() == X.tolist()


def test_npy_in_other_orders(tmp_path) -> None:
    X = np.arange(12, dtype=">f8").reshape(3, 4)
    for value in (X, np.asfortranarray(X)):
        np.save(tmp_path / "x.npy", value)
        again = read_vectors(tmp_path / "x.npy")
        assert again.dtype == X.dtype and again.flags.f_contiguous == value.flags.f_contiguous
        np.testing.assert_array_equal(again, X)


def test_npy_whose_data_is_not_aligned_is_copied(tmp_path) -> None:
    X = np.arange(12, dtype="<f8").reshape(3, 4)
    np.save(tmp_path / "x.npy", X)
    data = (tmp_path / "x.npy").read_bytes()
    length = int.from_bytes(data[8:10], "little") + 1  # one more blank in the header
    (tmp_path / "x.npy").write_bytes(data[:8] + length.to_bytes(2, "little") + data[10:127] + b" \n" + data[128:])
    again = read_vectors(tmp_path / "x.npy")
    assert again.flags.aligned and not again.flags.writeable
    np.testing.assert_array_equal(again, X)


@pytest.mark.parametrize("format", [*VECS, *BINS, "npy", "hdf5", "parquet"])
def test_every_truncation_is_found(tmp_path, format: str) -> None:
    path = tmp_path / f"x.{format}"
    X = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_vectors(path, X)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        rows, rest = divmod(3 * length, len(whole))
        if format in VECS and length and rest == 0:  # whole rows: nothing in the format says how many there were
            np.testing.assert_array_equal(read_vectors(path), X[:rows])
            continue
        with pytest.raises(FormatError, match=rf"x\.{format}"):
            read_vectors(path)
    if format not in ("hdf5", "parquet"):
        path.write_bytes(whole + b"\x00")
        with pytest.raises(FormatError, match=f"{len(whole) + 1} bytes"):
            read_vectors(path)


@pytest.mark.filterwarnings("ignore:Reading `.npy`")  # a flip can make a header that looks like Python 2's
@pytest.mark.parametrize("format", ["fvecs", "fbin", "npy", "hdf5", "parquet"])
def test_a_flipped_bit_gives_a_typed_error_or_an_array(tmp_path, format: str) -> None:
    path = tmp_path / f"x.{format}"
    write_vectors(path, np.arange(12, dtype=np.float32).reshape(3, 4))
    whole = path.read_bytes()
    refused = 0
    for position in range(0, 8 * len(whole), 3 if format == "hdf5" else 1):
        data = bytearray(whole)
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(data)
        try:
            array = read_vectors(path)
        except AntisparseError:
            refused += 1
        else:
            assert array.ndim == 2 and array.dtype.kind in "biuf"
            array.sum(dtype=np.float64)  # every byte can be read
    assert refused >= 64


@pytest.mark.parametrize("format", VECS)
@pytest.mark.parametrize("row", [1, 5, 9])
def test_a_row_of_another_dimension_is_named(tmp_path, monkeypatch, format: str, row: int) -> None:
    monkeypatch.setattr(_raw, "_CHECKED_ROWS", 4)
    path = tmp_path / f"x.{format}"
    write_vectors(path, np.zeros((10, 6), np.uint8))
    data = bytearray(path.read_bytes())
    offset = row * (len(data) // 10)
    data[offset] = 7
    path.write_bytes(data)
    with pytest.raises(FormatError, match=rf"row {row}, at byte {offset}, has dimension 7, but row 0 has 6"):
        read_vectors(path)


HOSTILE_BINS = [(2**32 - 1, 2**32 - 1), (2**31, 2**31), (0, 0), (5, 0)]
HOSTILE_VECS = [2**31 - 1, -1, -(2**31), 0]


@pytest.mark.parametrize(
    ("format", "header"),
    [(name, np.array(pair, "<u4").tobytes()) for name in BINS for pair in HOSTILE_BINS]
    + [(name, np.array([d, 0, 0], "<i4").tobytes()) for name in VECS for d in HOSTILE_VECS],
)
def test_hostile_raw_headers(tmp_path, format: str, header: bytes) -> None:
    path = tmp_path / f"x.{format}"
    path.write_bytes(header)
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"bytes|dimension"):
        read_vectors(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("descr", "shape", "message"),
    [
        ("<f4", (2**62, 2**62), "shape"),
        ("<f4", (2**62, 1), "truncated"),
        ("<f4", (0, 2**62), "shape"),
        ("<f16", (1, 1), "dtype"),
        ("<f4", (2**31, 2**33), "shape"),
        ("<f4", (-1, 4), "shape"),
        ("<f4", (4, -1), "shape"),
        ("<f4", (4, 0), "shape"),
        ("<f4", (4,), r"shape \(4,\)"),
        ("<f4", (), "shape"),
        ("<f4", (1, 2, 2), "shape"),
        ("|O", (2, 2), "dtype object"),
        ("<c8", (1, 2), "dtype complex64"),
        ("<M8[s]", (1, 2), "dtype"),
        ("|S4", (2, 2), "dtype"),
        ([("a", "<f4")], (2, 2), "dtype"),
        ("nonsense", (2, 2), "not a sound npy"),
        ("<f4", (True, 2), "bytes"),
        ("<f4", ("2", 2), "not a sound npy"),
    ],
)
def test_hostile_npy_headers(tmp_path, descr, shape, message: str) -> None:
    path = tmp_path / "x.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        file.write(b"\x00" * 16)
    with pytest.raises(FormatError, match=message):
        read_vectors(path)


def test_npy_is_never_unpickled(tmp_path) -> None:
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    bombs = np.empty((1, 1), object)
    bombs[0, 0] = Bomb()
    np.save(tmp_path / "x.npy", bombs, allow_pickle=True)
    (tmp_path / "y.npy").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "z.npz", np.ones((2, 2)))
    os.rename(tmp_path / "z.npz", tmp_path / "z.npy")
    for name in "xyz":
        with pytest.raises(FormatError):
            read_vectors(tmp_path / f"{name}.npy")
    assert not (tmp_path / "exploded").exists()


def test_hdf5_arrays_by_name_chunked_compressed_and_shifted(tmp_path) -> None:
    path = tmp_path / "x.h5"
    X = draw(1, 30, 7, "f4")
    with h5py.File(path, "w", userblock_size=512) as file:
        file["train"] = X
    np.testing.assert_array_equal(read_vectors(path), X)
    with h5py.File(path, "w") as file:
        file.create_dataset("packed", data=X, chunks=(4, 7), compression="gzip")
        file.create_dataset("none", (0, 7), "f4")
        file.create_dataset("deep/er", data=X.astype("f8"))
        file["line"] = X[0]
        file["text"] = np.array([[b"a"]])
        file["bool"] = X > 0
    np.testing.assert_array_equal(read_vectors(path, column="packed"), X)
    np.testing.assert_array_equal(read_vectors(path, column="deep/er"), X)
    np.testing.assert_array_equal(read_vectors(path, column="bool"), X > 0)
    assert read_vectors(path, column="none").shape == (0, 7)
    with pytest.raises(InputError, match=r"no array 'train'; at its top are: bool, deep, line"):
        read_vectors(path)
    with pytest.raises(InputError, match="no array 'deep'"):
        read_vectors(path, column="deep")
    with pytest.raises(FormatError, match=r"'/line': shape \(7,\)"):
        read_vectors(path, column="line")
    with pytest.raises(FormatError, match="'/text': dtype"):
        read_vectors(path, column="text")


def test_parquet_columns_of_lists(tmp_path) -> None:
    path = tmp_path / "x.pq"
    X = draw(2, 3000, 4, "f4")
    lists = pa.array(X.tolist(), pa.list_(pa.float32()))
    large = pa.array(X.astype("f8").tolist(), pa.large_list(pa.float64()))
    pq.write_table(pa.table({"id": range(3000), "a": lists}), path, row_group_size=700)
    np.testing.assert_array_equal(read_vectors(path), X)
    pq.write_table(pa.table({"id": range(3000), "a": lists, "b": large}), path)
    np.testing.assert_array_equal(read_vectors(path, column="b"), X)
    with pytest.raises(InputError, match="2 columns of vectors: a, b; name one by column="):
        read_vectors(path)
    with pytest.raises(InputError, match=r"'id' is not a column of vectors of .*, which has: a, b"):
        read_vectors(path, column="id")
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(InputError, match="0 columns of vectors: none"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [3.0]], "row 1 has 1 values, where 2 were expected"),
        ([[1.0, 2.0], None], "row 1 is null"),
        ([[1.0, 2.0], [3.0, None]], "row 1 holds a null"),
        ([[], []], "row 0 has 0 values"),
        ([], "no rows, and lists of no fixed size"),
    ],
)
def test_parquet_lists_that_are_no_vectors(tmp_path, rows, message: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array(rows, pa.list_(pa.float32()))}), path)
    with pytest.raises(FormatError, match=f"column 'a': {message}"):
        read_vectors(path)


def test_parquet_fixed_size_lists_with_nulls(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    for rows, message in (([[1, 2], None], "row 1 is null"), ([[1, 2], [3, None]], "row 1 holds a null")):
        pq.write_table(pa.table({"a": pa.array(rows, pa.list_(pa.int32(), 2))}), path)
        with pytest.raises(FormatError, match=f"{message}|Expected all lists to be of size=2"):  # by older Arrow
            read_vectors(path)


def test_the_suffix_or_the_argument_says_the_format(tmp_path) -> None:
    X = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("x.FVECS", "x.Npy", "x.H5", "x.hdf5", "x.PQ", "x.parquet"):
        write_vectors(tmp_path / name, X)
        np.testing.assert_array_equal(read_vectors(str(tmp_path / name)), X)
    write_vectors(tmp_path / "x.npy", X, format="ibin")
    assert (tmp_path / "x.npy").read_bytes() == layout(X.astype("<i4"), "ibin")
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.npy", format="ibin"), X)
    for call in (lambda path: read_vectors(path), lambda path: write_vectors(path, X)):
        with pytest.raises(InputError, match=r"suffix '\.txt'; known are \.fvecs, .*\.h5, \.pq, or pass format="):
            call(tmp_path / "x.txt")
    with pytest.raises(InputError, match="format = 'csv'; choose one of 'fvecs', "):
        read_vectors(tmp_path / "x.npy", format="csv")
    with pytest.raises(InputError, match="column = 'a', but a npy file has no columns"):
        read_vectors(tmp_path / "x.npy", column="a")
    with pytest.raises(InputTypeError, match="column must be a string"):
        read_vectors(tmp_path / "x.h5", column=3)
    write_vectors(tmp_path / "x.h5", X, column="mine")
    write_vectors(tmp_path / "x.pq", X, column="mine")
    for name in ("x.h5", "x.pq"):
        np.testing.assert_array_equal(read_vectors(tmp_path / name, column="mine"), X)


@pytest.mark.parametrize("format", files.FORMATS)
def test_missing_files_and_folders(tmp_path, format: str) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        read_vectors(tmp_path / f"missing.{format}")
    (tmp_path / f"folder.{format}").mkdir()
    with pytest.raises(InputError, match="is a folder; read_dataset reads those"):
        read_vectors(tmp_path / f"folder.{format}")
    with pytest.raises(InputError, match="there is no folder"):
        write_vectors(tmp_path / "no" / f"x.{format}", np.ones((1, 1)))


@pytest.mark.parametrize("format", files.FORMATS)
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, format: str) -> None:
    path = tmp_path / f"x.{format}"
    X = np.ones((4, 3), np.uint8)
    write_vectors(path, X)
    before = path.read_bytes()

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_vectors(path, np.zeros((9, 3), np.uint8))
    assert os.listdir(tmp_path) == [path.name] and path.read_bytes() == before


def test_a_file_can_be_written_over_its_own_map(tmp_path) -> None:
    path = tmp_path / "x.fvecs"
    write_vectors(path, np.arange(6.0).reshape(2, 3))
    mapped = read_vectors(path)
    write_vectors(path, mapped[:1])
    np.testing.assert_array_equal(mapped, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(read_vectors(path), [[0, 1, 2]])


@pytest.mark.parametrize(
    ("format", "value", "dtype"),
    [
        ("bvecs", 256, "i8"),
        ("bvecs", -1, "i8"),
        ("bvecs", 256.0, "f4"),
        ("bvecs", 0.5, "f8"),
        ("bvecs", np.nan, "f4"),
        ("u8bin", np.inf, "f2"),
        ("u8bin", 2**64 - 1, "u8"),
        ("i8bin", 2**64 - 1, "u8"),  # -1 if it wrapped
        ("i8bin", 128, "i2"),
        ("i8bin", -129, "i2"),
        ("ibin", 2.0**31, "f4"),
        ("ivecs", 2**31, "i8"),
        ("ivecs", 2**31, "u4"),
        ("ivecs", -(2.0**31) - 1, "f8"),
        ("ibin", 1e300, "f8"),
        ("fvecs", 1e39, "f8"),
        ("fbin", 2**24 + 1, "i8"),
        ("fbin", -(2**24) - 1, "i4"),
        ("fvecs", 2**63 - 1, "i8"),
        ("fvecs", 2**64 - 1, "u8"),
    ],
)
def test_values_that_would_change_are_named(tmp_path, monkeypatch, format: str, value, dtype: str) -> None:
    monkeypatch.setattr(_raw, "_PIECE_BYTES", 64)
    X = np.zeros((9, 4), dtype)
    X[7, 2] = value
    with pytest.raises(InputError, match=rf"X row 7, column 2 is .*, which {format} cannot hold"):
        write_vectors(tmp_path / f"x.{format}", X)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("format", "values"),
    [
        ("bvecs", [0.0, 255.0]),
        ("i8bin", [-128.0, 127.0]),
        ("ibin", [-(2.0**31), 2.0**31 - 1]),
        ("fbin", [2**24, -(2**24)]),
        ("u8bin", [True, False]),
        ("fvecs", [np.nan, np.inf]),
    ],
)
def test_values_at_the_limits_are_kept(tmp_path, format: str, values) -> None:
    write_vectors(tmp_path / f"x.{format}", np.array([values]))
    np.testing.assert_array_equal(read_vectors(tmp_path / f"x.{format}"), [values])


def test_float64_is_rounded_to_float32(tmp_path) -> None:
    X = np.random.default_rng(0).standard_normal((5, 3))
    write_vectors(tmp_path / "x.fvecs", X)
    np.testing.assert_array_equal(read_vectors(tmp_path / "x.fvecs"), X.astype(np.float32))


def test_arrays_that_are_no_vectors(tmp_path) -> None:
    for X in (np.ones(3), np.ones((2, 0)), np.ones((1, 2, 3))):
        with pytest.raises(InputError, match=r"X has shape"):
            write_vectors(tmp_path / "x.npy", X)
    with pytest.raises(InputTypeError, match="X has dtype"):
        write_vectors(tmp_path / "x.npy", np.array([["a"]]))
    with pytest.raises(InputError, match="X has no rows, and a fvecs file without rows does not say its dimension"):
        write_vectors(tmp_path / "x.fvecs", np.ones((0, 3)))
    with pytest.raises(InputTypeError, match="more than float64 holds"):
        write_vectors(tmp_path / "x.parquet", np.ones((1, 1), np.longdouble))
    assert os.listdir(tmp_path) == []


def test_writing_takes_bounded_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(_raw, "_PIECE_BYTES", 1 << 20)
    np.lib.format.open_memmap(tmp_path / "big.npy", "w+", np.float64, (100_000, 32)).flush()  # 25 MB
    X = read_vectors(tmp_path / "big.npy")
    for name in ("x.fvecs", "x.u8bin", "x.npy"):
        tracemalloc.start()
        write_vectors(tmp_path / name, X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 << 20, name


@pytest.mark.parametrize(("module", "suffix", "extra"), [("h5py", "h5", "hdf5"), ("pyarrow", "pq", "parquet")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, module: str, suffix: str, extra: str) -> None:
    path = tmp_path / f"x.{suffix}"
    write_vectors(path, np.ones((1, 1)))
    monkeypatch.setitem(sys.modules, module, None)
    for call in (lambda: read_vectors(path), lambda: write_vectors(path, np.ones((1, 1)))):
        with pytest.raises(MissingDependencyError, match=rf"{module}: pip install antisparse\[{extra}\]"):
            call()


def test_errors_survive_pickling() -> None:
    for error in (DownloadError("a"), MissingDependencyError("b")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
    assert issubclass(DownloadError, OSError) and issubclass(MissingDependencyError, ImportError)
