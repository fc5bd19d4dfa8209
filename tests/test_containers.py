"""Whatever people hold their vectors in: the same answers as from a numpy array, to the last bit."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zoo

from antisparse import CodeBase, Index, InputError, InputTypeError, LearnedEncoder, LSHEncoder, hamming_search
from antisparse.evaluation import exact_neighbors

N, D = 120, 10
NOISE = np.random.default_rng(0).standard_normal((N, D)) / 9
X = (zoo.vectors(N, 1) + NOISE).astype(np.float32)
Q = (zoo.vectors(4, 2) + NOISE[:4]).astype(np.float32)


class OnlyDLPack:
    """A tensor of a package that numpy knows nothing of."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnlyArray:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array.astype(dtype) if dtype else self.array


def arrow(value: Any) -> pa.Array:
    """Rows as a column of lists of variable size, numbers as a column."""
    return pa.array(list(value)) if value.ndim == 2 else pa.array(value)


def fixed(value: np.ndarray) -> pa.Array:
    if value.ndim == 1:
        return pa.array(value)
    return pa.FixedSizeListArray.from_arrays(pa.array(value.reshape(-1)), value.shape[1])


def halves(value: np.ndarray) -> pa.ChunkedArray:
    return pa.chunked_array([fixed(value[: len(value) // 2]), fixed(value[len(value) // 2 :])])


def part_of_more(value: np.ndarray) -> pa.Array:
    return fixed(np.concatenate([value[:3], value, value[:2]]))[3 : 3 + len(value)]


def torch(value: np.ndarray) -> Any:
    return pytest.importorskip("torch", reason="torch is large, and not of the test extra").from_numpy(value.copy())


def jax(value: np.ndarray) -> Any:
    numpy = pytest.importorskip("jax.numpy", reason="jax is large, and not of the test extra")
    if value.dtype.itemsize == 8:
        pytest.skip("jax has no 64 bits unless it is told to")
    return numpy.asarray(value)


# Each makes of an array (n, d), or (n,), what holds the same numbers.
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": np.copy,
    "numpy, Fortran": np.asfortranarray,
    "list": lambda x: x.astype(float).tolist() if x.dtype.kind == "f" else x.tolist(),
    "tuple of arrays": lambda x: tuple(x),
    "pandas frame": pd.DataFrame,
    "pandas frame of nullable numbers": lambda x: pd.DataFrame(x).astype(dict.fromkeys(range(0, D, 2), "Float32")),
    "pandas column": lambda x: pd.Series(list(x)),
    "pandas column of lists": lambda x: pd.Series(x.tolist() if x.dtype == np.float64 else [row.tolist() for row in x]),
    "pandas column of Arrow": lambda x: pd.Series(arrow(x), dtype=pd.ArrowDtype(arrow(x).type)),
    "pandas frame of one column": lambda x: pd.DataFrame({"vector": list(x)}),
    "polars frame": lambda x: pl.DataFrame(np.ascontiguousarray(x)),
    "polars column of lists": lambda x: pl.Series(list(x)),
    "polars column of arrays": lambda x: (
        pl.Series(x) if x.ndim == 1 else pl.Series(x, dtype=pl.Array(pl.Float32, x.shape[1]))
    ),
    "polars column in chunks": lambda x: pl.Series(list(x[:5])).append(pl.Series(list(x[5:]))),
    "polars frame of one column": lambda x: pl.DataFrame({"vector": list(x)}),
    "Arrow lists": arrow,
    "Arrow large lists": lambda x: arrow(x).cast(pa.large_list(pa.float32())) if x.ndim == 2 else arrow(x),
    "Arrow fixed-size lists": fixed,
    "Arrow, part of an array": part_of_more,
    "Arrow chunks": halves,
    "Arrow table of one column": lambda x: pa.table({"vector": halves(x)}),
    "Arrow table of numbers": lambda x: pa.table([pa.array(x[:, j]) for j in range(x.shape[1])], list("abcdefghij")),
    "Arrow batch": lambda x: pa.record_batch({"vector": fixed(x)}),
    "Arrow tensors": lambda x: pa.FixedShapeTensorArray.from_numpy_ndarray(x),
    "DLPack alone": OnlyDLPack,
    "__array__ alone": OnlyArray,
    "torch": torch,
    "torch with gradients": lambda x: torch(x).requires_grad_(),
    "jax": jax,
}


def index() -> Index:
    found = Index.create(None, zoo.codec("signs cells scale"))
    found.add(X, np.arange(N) * 3)
    return found


def answers(x: Any, q: Any) -> list[np.ndarray]:
    """What vectors and queries come to, everywhere that they are taken."""
    codec = zoo.codec("signs cells scale")
    lsh, codes = LSHEncoder(16, random_state=0).fit(x), codec.encode(x)
    updated = index()
    updated.update(x, np.arange(N) * 3)
    built = Index.build(x, 2, learn=x, symbols="signs", effort=1, train=100, random_state=0)
    return [
        codes,
        updated.codes(updated.ids),
        np.asarray(lsh.codec_.symbols.matrix),
        lsh.transform(x),
        built.codes(built.ids),
        *index().search(q, 5),
        *index().range_search(q, 40.0),
        *index().search(q, 3, rerank=lambda ids: X[ids // 3]),
        *CodeBase(codec, codes).search(q, 4),
        *exact_neighbors(x, q, 3),
    ]


@pytest.fixture(scope="module")
def expected() -> list[np.ndarray]:
    return answers(X, Q)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_queries_of_every_kind(kind: str, expected: list[np.ndarray]) -> None:
    found = answers(KINDS[kind](X), KINDS[kind](Q))
    for mine, wanted in zip(found, expected, strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine, wanted)


FLAT = [kind for kind in KINDS if kind not in ("Arrow table of numbers", "Arrow tensors", "numpy, Fortran")]
COLUMNS = [kind for kind in FLAT if "frame" not in kind and "table" not in kind and kind != "Arrow batch"]


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_single_query_of_every_kind(kind: str) -> None:
    one = KINDS[kind](Q[1])
    for mine, wanted in zip(index().search(one, 5), index().search(Q[1], 5), strict=True):
        assert mine.shape == (5,)
        np.testing.assert_array_equal(mine, wanted)


def test_a_single_query_out_of_a_column() -> None:
    wanted = index().search(Q[1], 5)
    for one in (arrow(Q)[1], fixed(Q)[1], pl.Series(list(Q))[1], pd.Series(list(Q))[1], pd.DataFrame(Q).loc[1]):
        for mine, right in zip(index().search(one, 5), wanted, strict=True):
            np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("dtype", [np.int64, np.uint16])
@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if "gradients" not in kind])
def test_ids_filters_and_masks_of_every_kind(kind: str, dtype: type) -> None:
    ids = (np.arange(0, N, 7) * 3).astype(dtype)
    given = KINDS[kind](ids)
    np.testing.assert_array_equal(index().codes(given), index().codes(ids))
    for mine, wanted in zip(index().search(Q, 3, filter=given), index().search(Q, 3, filter=ids), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    mask = np.isin(np.arange(3 * N), ids)
    for mine, wanted in zip(
        index().search(Q, 3, filter=KINDS[kind](mask)), index().search(Q, 3, filter=ids), strict=True
    ):
        np.testing.assert_array_equal(mine, wanted)
    changed = index()
    changed.remove(given)
    assert len(changed) == N - len(ids)


def test_sets_are_filters() -> None:
    ids = [3, 9, 30, 33, 1000]
    wanted = index().search(Q, 3, filter=ids)
    for given in (set(ids), frozenset(ids), dict.fromkeys(ids).keys(), {np.int64(i) for i in ids}):
        for mine, right in zip(index().search(Q, 3, filter=given), wanted, strict=True):
            np.testing.assert_array_equal(mine, right)
    assert (index().search(Q, 3, filter=set())[1] == -1).all()
    for wrong in ({"a"}, {1.5}, {(1, 2)}, {1, None}):
        with pytest.raises((InputError, InputTypeError), match="filter"):
            index().search(Q, 3, filter=wrong)


HALF = {
    "numpy float16": (lambda x: x.astype(np.float16), np.float16),
    "Arrow halffloat": (lambda x: fixed(x.astype(np.float16)), np.float16),
    "ml_dtypes bfloat16": (lambda x: x.astype(ml_dtypes.bfloat16), ml_dtypes.bfloat16),
    "torch float16": (lambda x: torch(x).half(), np.float16),
    "torch bfloat16": (lambda x: torch(x).bfloat16(), ml_dtypes.bfloat16),
    "jax bfloat16": (lambda x: jax(x).astype("bfloat16"), ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("kind", HALF)
def test_halves_are_what_they_stand_for(kind: str) -> None:
    make, dtype = HALF[kind]
    exact, q = X.astype(dtype).astype(np.float32), Q.astype(dtype).astype(np.float32)
    assert not np.array_equal(exact, X)
    for mine, wanted in zip(answers(make(X), make(Q)), answers(exact, q), strict=True):
        np.testing.assert_array_equal(mine, wanted)


SECRET = 123457.0
WRONG: dict[str, Any] = {
    "ragged Arrow": pa.array([[SECRET, 2.0], [3.0]]),
    "null row": pa.array([[SECRET, 2.0], None]),
    "null value": pa.array([[SECRET, 2.0], [3.0, None]]),
    "null of fixed size": pa.array([[SECRET, 2.0], None], pa.list_(pa.float32(), 2)),
    "ragged polars": pl.Series([[SECRET, 2.0], [3.0]]),
    "null in polars": pl.Series([[SECRET, 2.0], None]),
    "lazy": pl.LazyFrame({"a": [SECRET]}),
    "ragged pandas": pd.Series([[SECRET, 2.0], [3.0]]),
    "missing in pandas": pd.DataFrame({"a": pd.array([SECRET, None], "Float64"), "b": [1.0, 2.0]}),
    "text beside numbers": pd.DataFrame({"a": [SECRET, 2.0], "b": ["x", str(SECRET)]}),
    "text beside numbers, polars": pl.DataFrame({"a": [SECRET, 2.0], "b": ["x", str(SECRET)]}),
    "lists beside numbers": pa.table({"a": [SECRET, 2.0], "b": [[1.0], [2.0]]}),
    "text": pa.array([str(SECRET)]),
    "structs": pa.array([{"a": SECRET}]),
    "map": pa.array([[(str(SECRET), 1)]], pa.map_(pa.string(), pa.int64())),
    "scalar": pa.scalar(SECRET),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_array_is_refused_without_its_content(kind: str) -> None:
    for call in (lambda x: zoo.codec("lsh").encode(x), lambda x: index().search(x), lambda x: LSHEncoder(8).fit(x)):
        with pytest.raises((InputError, InputTypeError), match=r"^[XQ]\b") as raised:
            call(WRONG[kind])
        assert "12345" not in str(raised.value) and len(str(raised.value)) < 400


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("list", "tuple of arrays")])
def test_messages_do_not_show_arrays(kind: str) -> None:
    value = KINDS[kind](np.full((3, D), SECRET, np.float32))
    for call in (
        lambda: index().search(Q, value),
        lambda: index().search(Q, method=value),
        lambda: LearnedEncoder(value).fit(X),
        lambda: Index.open(value),
        lambda: index().search(Q, [value]),
        lambda: hamming_search(np.zeros((3, 3), np.uint8), np.zeros((3, 3), np.uint8), value),
    ):
        with pytest.raises((InputError, InputTypeError)) as raised:
            call()
        assert "12345" not in str(raised.value) and "e+05" not in str(raised.value)


def test_no_package_is_imported_for_arrays_of_others() -> None:
    code = (
        "import sys, numpy as np; from antisparse import Codec, Index; import {0} as p\n"
        "from antisparse._arrays import plain_array\n"
        "value, before = {1}, set(sys.modules)\n"  # Arrow imports pandas by itself, where there is one
        "assert plain_array(value, 'X').shape == (2, 2)\n"
        "after = set(sys.modules) - before\n"
        "print(*[name for name in after if name in ('pandas', 'polars', 'pyarrow', 'torch', 'jax', 'ml_dtypes')])"
    )
    for package, made in (
        ("numpy", "np.ones((2, 2))"),
        ("polars", "p.Series([[1.0, 2.0], [3.0, 4.0]])"),
        ("pandas", "p.Series([[1.0, 2.0], [3.0, 4.0]])"),
        ("pyarrow", "p.array([[1.0, 2.0], [3.0, 4.0]])"),
    ):
        run = subprocess.run(
            [sys.executable, "-c", code.format(package, made)], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == ""
