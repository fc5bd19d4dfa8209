import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from antisparse import FormatError, InputError, InputTypeError
from antisparse.datasets import Dataset, read_dataset, write_dataset, write_vectors

RNG = np.random.default_rng(0)
BASE = RNG.integers(0, 200, (50, 6)).astype(np.float32)
LEARN = RNG.integers(0, 200, (20, 6)).astype(np.float32)
QUERY = RNG.integers(0, 200, (7, 6)).astype(np.float32)
SQUARES = ((QUERY[:, None] - BASE) ** 2).sum(2)
NEIGHBORS = np.argsort(SQUARES, axis=1, kind="stable")[:, :5].astype(np.int32)
WHOLE = Dataset(BASE, LEARN, QUERY, NEIGHBORS, "whole")


def assert_same(found: Dataset, name: str, learn: bool = True, neighbors: bool = True) -> None:
    assert found.name == name
    np.testing.assert_array_equal(found.base, BASE)
    np.testing.assert_array_equal(found.query, QUERY)
    if learn:
        np.testing.assert_array_equal(found.learn, LEARN)
    else:
        assert found.learn is None
    if neighbors:
        np.testing.assert_array_equal(found.neighbors, NEIGHBORS)
    else:
        assert found.neighbors is None


@pytest.mark.parametrize("names", [
    ("base.npy", "learn.npy", "query.npy", "neighbors.npy"),
    ("base.bvecs", "learn.u8bin", "query.fbin", "groundtruth.ibin"),
    ("toy_base.fvecs", "toy_learn.fvecs", "toy_query.fvecs", "toy_groundtruth.ivecs"),
    ("My_Set_Base.H5", "My_Set_Learn.parquet", "My_Set_Query.FVECS", "My_Set_Neighbors.ivecs"),
])  # fmt: skip
def test_a_folder_of_files(tmp_path, names: tuple[str, ...]) -> None:
    folder = tmp_path / "toy"
    folder.mkdir()
    for name, X in zip(names, (BASE, LEARN, QUERY, NEIGHBORS), strict=True):
        write_vectors(folder / name, X)
    (folder / "README.txt").write_text("no vectors")
    (folder / ".base.npy.12.tmp").write_text("left by a crash")
    (folder / "._base.npy").write_text("left by a file browser")
    assert_same(read_dataset(folder), "toy")
    os.remove(folder / names[1])
    os.remove(folder / names[3])
    assert_same(read_dataset(folder), "toy", learn=False, neighbors=False)


def test_a_folder_that_lacks_a_part_or_has_it_twice(tmp_path) -> None:
    write_vectors(tmp_path / "base.npy", BASE)
    with pytest.raises(FormatError, match=r"there is no file query\.\* of a known format \(\.fvecs"):
        read_dataset(tmp_path)
    write_vectors(tmp_path / "query.npy", QUERY)
    write_vectors(tmp_path / "toy_base.fvecs", BASE)
    with pytest.raises(FormatError, match=r"base\.npy and toy_base\.fvecs are both base; keep one"):
        read_dataset(tmp_path)


def test_hdf5_in_the_layout_of_ann_benchmarks(tmp_path) -> None:
    path = tmp_path / "toy-6-euclidean.hdf5"
    distances = np.sqrt(np.take_along_axis(SQUARES, NEIGHBORS, 1))
    write_dataset(path, WHOLE, distances=distances)
    with h5py.File(path) as file:
        assert set(file) == {"train", "test", "neighbors", "distances", "learn"}
        np.testing.assert_array_equal(file["train"][:], BASE)
        np.testing.assert_array_equal(file["test"][:], QUERY)
        np.testing.assert_array_equal(file["neighbors"][:], NEIGHBORS)
        np.testing.assert_array_equal(file["distances"][:], distances)
    found = read_dataset(path)
    assert_same(found, "toy-6-euclidean")
    assert isinstance(found.base, np.memmap)
    write_dataset(path, Dataset(BASE, None, QUERY, None, ""))
    with h5py.File(path) as file:
        assert set(file) == {"train", "test"}
    assert_same(read_dataset(path), "toy-6-euclidean", learn=False, neighbors=False)
    assert os.listdir(tmp_path) == [path.name]


def test_hdf5_without_its_arrays(tmp_path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["train"] = BASE
    with pytest.raises(InputError, match="has no array 'test'; at its top are: train"):
        read_dataset(tmp_path / "x.hdf5")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": QUERY[:, :5]}, "query has 5 columns but base has 6"),
        ({"learn": LEARN[:, :1]}, "learn has 1 columns but base has 6"),
        ({"neighbors": NEIGHBORS[:3]}, "neighbors has 3 rows but query has 7"),
        ({"neighbors": NEIGHBORS.astype("f4")}, "neighbors has dtype float32"),
        ({"base": BASE[:0]}, "neighbors row 0, column 0 is .*, but base has 0 rows"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, change: dict, message: str) -> None:
    parts = {"base": BASE, "learn": LEARN, "query": QUERY, "neighbors": NEIGHBORS} | change
    with pytest.raises(InputError, match=message):
        Dataset(**parts, name="")
    for part, X in parts.items():
        write_vectors(tmp_path / f"{part}.npy", X)
    with pytest.raises(FormatError, match=message):
        read_dataset(tmp_path)


@pytest.mark.parametrize("bad", [-1, 50])
def test_neighbours_outside_the_base_are_named(bad: int) -> None:
    neighbors = NEIGHBORS.copy()
    neighbors[4, 2] = bad
    with pytest.raises(InputError, match=f"neighbors row 4, column 2 is {bad}, but base has 50 rows"):
        Dataset(BASE, None, QUERY, neighbors, "")


def test_arguments(tmp_path) -> None:
    with pytest.raises(InputTypeError, match="query"):
        Dataset(BASE, None, None, None, "")
    with pytest.raises(InputError, match="neither a folder nor an HDF5 file; read_vectors reads single arrays"):
        read_dataset(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        read_dataset(tmp_path / "x.hdf5")
    with pytest.raises(InputError, match=r"written as \.hdf5 or \.h5"):
        write_dataset(tmp_path / "x.npy", WHOLE)
    with pytest.raises(InputError, match=r"distances has shape \(7, 2\) but neighbors \(7, 5\)"):
        write_dataset(tmp_path / "x.h5", WHOLE, distances=np.ones((7, 2)))
    with pytest.raises(InputError, match="but neighbors None"):
        write_dataset(tmp_path / "x.h5", Dataset(BASE, None, QUERY, None, ""), distances=np.ones((7, 2)))


def test_siftsmall_beside_the_repository() -> None:
    folder = Path(__file__).parents[3] / "shared" / "data" / "siftsmall"
    if not folder.is_dir():
        pytest.skip("there is no folder ../shared/data/siftsmall beside the repository")
    data = read_dataset(folder)
    assert data.base.shape == (10_000, 128) and data.learn.shape == (25_000, 128) and data.query.shape == (100, 128)
    base, query = data.base.astype(np.int64), data.query.astype(np.int64)
    squares = (query**2).sum(1)[:, None] - 2 * query @ base.T + (base**2).sum(1)
    np.testing.assert_array_equal(
        np.take_along_axis(squares, data.neighbors.astype(np.int64), 1), np.sort(squares)[:, :100]
    )
