"""Queries made ready for the scan, natively, against NumPy."""

import numpy as np
import pytest

from antisparse import _core


def rounded(weights, at_least=0.0):
    """Integers below 2^24 times a power of two a row."""
    largest = np.abs(weights).max(axis=1, initial=at_least)
    units = np.ldexp(1.0, np.where(largest > 0, np.maximum(np.frexp(largest)[1] - 23, -1022), 0))
    return np.rint(weights / units[:, None]).astype(np.int32), units


@pytest.mark.parametrize("at_least", [0.0, 1e-3, 1e5])
def test_round_rows_equals_the_oracle(isa: str, at_least: float) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((300, 37)) * 10.0 ** rng.uniform(-320, 300, (300, 1))
    weights[0] = 0
    weights[1] = np.arange(37) - 18  # powers of two away from halves
    weights[2] = (np.arange(37) - 18) / 2 * 2.0**-18
    weights[2, 0] = 2.0**4
    for got, expected in zip(_core.round_rows(weights, at_least), rounded(weights, at_least), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert np.abs(_core.round_rows(weights, at_least)[0]).max() < 2**24


def test_round_rows_marks_what_is_not_finite(isa: str) -> None:
    weights = np.ones((4, 5))
    weights[1, 2], weights[2, 4], weights[3, 0] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(np.isnan(_core.round_rows(weights, 0.0)[1]), [False, True, True, True])


def sign_tables(weights, nibbles):
    """T[v]: the sum of |W_j| over the bits of v, most significant first, that disagree with the sign of W_j."""
    padded = np.zeros((len(weights), 4 * nibbles), np.int64)
    padded[:, : weights.shape[1]] = weights
    signs = (np.arange(16)[:, None] >> np.arange(3, -1, -1) & 1) * 2 - 1  # 16 x 4
    own = padded.reshape(len(weights), nibbles, 1, 4)
    return (np.abs(own) * (signs * own < 0)).sum(3)


def choice_tables(weights, nibbles):
    """T[v]: the greatest weight of the nibble, less that of v."""
    tables = np.zeros((len(weights), nibbles, 16), np.int64)
    own = weights.reshape(len(weights), weights.shape[1] // 16, 16).astype(np.int64)
    tables[:, : own.shape[1]] = own.max(axis=2, keepdims=True) - own
    return tables


@pytest.mark.parametrize(("bits", "nibbles"), [(1, 1), (4, 1), (7, 2), (64, 16), (101, 30)])
def test_sign_tables_equal_the_oracle(isa: str, bits: int, nibbles: int) -> None:
    rng = np.random.default_rng(bits)
    for size in (2, 2**24, 2**29):
        weights = rng.integers(1 - size, size, (30, bits), dtype=np.int32)
        weights[rng.random(weights.shape) < 0.1] = 0
        tables = _core.sign_tables(weights, nibbles)
        assert tables.dtype == np.int32
        np.testing.assert_array_equal(tables, sign_tables(weights, nibbles))
    with pytest.raises(ValueError, match="nibbles"):
        _core.sign_tables(weights, (bits + 3) // 4 - 1)
    for value in (2**29, -(2**29)):
        with pytest.raises(ValueError, match="weights"):
            _core.sign_tables(np.full((1, bits), value, np.int32), nibbles)


@pytest.mark.parametrize(("n", "d", "columns"), [(0, 3, 5), (1, 1, 1), (49, 16, 120), (100, 7, 64), (5, 130, 9)])
@pytest.mark.parametrize("per_nibble", [4, 16])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_equal_the_oracle(isa: str, n: int, d: int, columns: int, per_nibble: int, shifted: bool, dtype) -> None:
    rng = np.random.default_rng(columns)
    if per_nibble == 16:
        columns *= 16
    nibbles = -(-columns // per_nibble) + int(rng.integers(0, 3))  # beyond the frame: zeros
    x, frame = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((d, columns)) - 0.3
    shift = rng.standard_normal(d) if shifted else None
    maker = _core.TableMaker([frame], per_nibble, nibbles, shift=shift)
    tables, units, peaks, squares, nearest, products = maker.make(x, 0.25, 0, 2)
    moved = x.astype(np.float64) - (0 if shift is None else shift)
    weights, rounding = rounded(_core.project(np.ascontiguousarray(moved), frame, 1), 0.25)
    wide = weights.astype(np.int64)
    if per_nibble == 4:
        np.testing.assert_array_equal(tables, sign_tables(weights, nibbles))
        np.testing.assert_array_equal(units, 2 * rounding)
        np.testing.assert_array_equal(peaks, np.abs(wide).sum(1) * rounding)
    else:
        np.testing.assert_array_equal(tables, choice_tables(weights, nibbles))
        np.testing.assert_array_equal(units, rounding)
        np.testing.assert_array_equal(peaks, wide.reshape(n, columns // 16, 16).max(2).sum(1) * rounding)
    np.testing.assert_allclose(squares, (moved * moved).sum(1), rtol=1e-14)
    assert nearest.shape == products.shape == (n, 0)
    for row in range(n):  # alone as among others
        alone = maker.make(x[row : row + 1], 0.25, 0, 1)
        for one, all_ in zip(alone, (tables, units, peaks, squares), strict=False):
            np.testing.assert_array_equal(one[0], all_[row])


@pytest.mark.parametrize("per_nibble", [4, 16])
def test_the_dot_product_is_the_peak_less_the_sum(isa: str, per_nibble: int) -> None:
    rng = np.random.default_rng(0)
    x, frame = rng.standard_normal((20, 9)), rng.standard_normal((9, 96))
    nibbles = rng.integers(0, 16, (50, 96 // per_nibble))
    if per_nibble == 4:
        chosen = ((nibbles[:, :, None] >> np.arange(3, -1, -1) & 1) * 2 - 1).reshape(50, 96)
    else:
        chosen = (nibbles[:, :, None] == np.arange(16)).reshape(50, 96)
    tables, units, peaks, *_ = _core.TableMaker([frame], per_nibble, nibbles.shape[1]).make(x, 0.0, 0, 1)
    sums = tables[:, np.arange(nibbles.shape[1]), nibbles].sum(2, dtype=np.int64)
    np.testing.assert_allclose(peaks[:, None] - units[:, None] * sums, x @ frame @ chosen.T, atol=1e-4)


def test_weights_that_overflow_have_no_unit(isa: str) -> None:
    x = np.array([[1.0, 1.0], [1e308, 1e308], [2.0, 3.0]])
    tables, units, *_ = _core.TableMaker([np.full((2, 3), 10.0)], 4, 2).make(x, 0.0, 0, 1)
    np.testing.assert_array_equal(np.isfinite(units), [True, False, True])
    assert (tables[1] == 0).all()


@pytest.mark.parametrize(("n", "d", "count"), [(0, 3, 5), (1, 1, 1), (37, 16, 100), (33, 7, 1024), (5, 40, 17)])
def test_nearest_points_equal_the_oracle(isa: str, n: int, d: int, count: int) -> None:
    rng = np.random.default_rng(count)
    x, points = rng.standard_normal((n, d)), rng.standard_normal((count, d))
    half = (points * points).sum(1) / 2
    values = half - x @ points.T
    np.testing.assert_array_equal(_core.nearest(x, np.ascontiguousarray(points.T), half, 2), values.argmin(1))
    maker = _core.TableMaker([np.ones((d, 8))], 4, 2, points=_core.Points(points, half))
    for k in {1, 2, min(3, count), min(20, count), min(70, count), count} & set(range(count + 1)):
        found, products = maker.make(x, 0.0, k, 2)[4:]
        assert all(len(set(row)) == k for row in found)
        np.testing.assert_allclose(products, np.take_along_axis(x @ points.T, found, 1), atol=1e-12)
        least = np.sort(values, axis=1)[:, :k]  # nearest first
        np.testing.assert_allclose(np.take_along_axis(values, found, 1), least, atol=1e-5)
        for row in range(n):
            np.testing.assert_array_equal(maker.make(x[row : row + 1], 0.0, k, 1)[4][0], found[row])


def test_nearest_points_beyond_the_range_of_float(isa: str) -> None:
    points = np.random.default_rng(0).standard_normal((50, 4))
    found = _core.TableMaker([np.ones((4, 8))], 4, 2, points=_core.Points(points, np.ones(50))).make(
        np.full((3, 4), 1e100), 0.0, 7, 1
    )[4]
    assert found.shape == (3, 7) and all(len(set(row)) == 7 for row in found) and found.min() >= 0 and found.max() < 50


def test_what_does_not_fit() -> None:
    frame, points = np.ones((4, 8)), np.zeros((5, 4))
    for columns, nibbles, message in ((8, 2, "4 or 16"), (4, 1, "nibbles"), (16, 2, "by 16")):
        with pytest.raises(ValueError, match=message):
            _core.TableMaker([frame], columns, nibbles)
    with pytest.raises(ValueError, match="shift"):
        _core.TableMaker([frame], 4, 2, shift=np.zeros(3))
    for some, half in ((points, np.zeros(4)), (points[:0], np.zeros(0))):
        with pytest.raises(ValueError, match="points"):
            _core.Points(some, half)
    with pytest.raises(ValueError, match="points"):
        _core.TableMaker([frame], 4, 2, points=_core.Points(points[:, :3].copy(), np.zeros(5)))
    with pytest.raises(ValueError, match="vectors do not fit"):
        _core.Points(points, np.zeros(5)).nearest(np.zeros((1, 4)), 6, 1)
    maker = _core.TableMaker([frame], 4, 2, points=_core.Points(points, np.zeros(5)))
    for x, probes in ((np.zeros((1, 3)), 1), (np.zeros((1, 4)), 6)):
        with pytest.raises(ValueError, match="queries do not fit"):
            maker.make(x, 0.0, probes, 1)
    with pytest.raises(ValueError, match="queries do not fit"):
        _core.TableMaker([frame], 4, 2).make(np.zeros((1, 4)), 0.0, 1, 1)
