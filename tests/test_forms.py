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
def test_round_weights_equals_the_oracle(isa: str, at_least: float) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((300, 37)) * 10.0 ** rng.uniform(-320, 300, (300, 1))
    weights[0] = 0
    weights[1] = np.arange(37) - 18  # powers of two away from halves
    weights[2] = (np.arange(37) - 18) / 2 * 2.0**-18
    weights[2, 0] = 2.0**4
    for got, expected in zip(_core.round_weights(weights, at_least), rounded(weights, at_least), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert np.abs(_core.round_weights(weights, at_least)[0]).max() < 2**24


def test_round_weights_marks_what_is_not_finite(isa: str) -> None:
    weights = np.ones((4, 5))
    weights[1, 2], weights[2, 4], weights[3, 0] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(np.isnan(_core.round_weights(weights, 0.0)[1]), [False, True, True, True])


@pytest.mark.parametrize(("n", "d", "bits"), [(0, 3, 5), (1, 1, 1), (49, 16, 120), (100, 7, 64), (5, 130, 9)])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forms_equal_the_oracle(isa: str, n: int, d: int, bits: int, shifted: bool, dtype) -> None:
    rng = np.random.default_rng(bits)
    x, frame = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((d, bits))
    shift = rng.standard_normal(d) if shifted else None
    maker = _core.FormMaker(frame, shift)
    weights, units, totals, squares, nearest, products = maker.make(x, 0.25, 0, 2)
    moved = x.astype(np.float64) - (0 if shift is None else shift)
    expected, expected_units = rounded(_core.project(np.ascontiguousarray(moved), frame, 1), 0.25)
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(units, expected_units)
    np.testing.assert_array_equal(totals, np.abs(expected.astype(np.int64)).sum(1) * units)
    np.testing.assert_allclose(squares, (moved * moved).sum(1), rtol=1e-14)
    assert nearest.shape == products.shape == (n, 0)
    for row in range(n):  # alone as among others
        alone = maker.make(x[row : row + 1], 0.25, 0, 1)
        for one, all_ in zip(alone, (weights, units, totals, squares), strict=False):
            np.testing.assert_array_equal(one[0], all_[row])


def test_forms_of_words_count_from_the_greatest(isa: str) -> None:
    rng = np.random.default_rng(0)
    x, frame = rng.standard_normal((60, 9)), rng.standard_normal((9, 80)) - 0.5
    weights, units, totals, *_ = _core.FormMaker(frame, words=True).make(x, 0.25, 0, 2)
    expected, expected_units = rounded(_core.project(x, frame, 1), 0.25)
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(units, expected_units / 2)
    greatest = expected.reshape(60, 5, 16).max(axis=2).sum(axis=1)
    np.testing.assert_array_equal(totals, 2 * greatest * units)
    with pytest.raises(ValueError, match="by 16"):
        _core.FormMaker(frame[:, :79].copy(), words=True)


def test_weights_that_overflow_have_no_unit(isa: str) -> None:
    x = np.array([[1.0, 1.0], [1e308, 1e308], [2.0, 3.0]])
    weights, units, *_ = _core.FormMaker(np.full((2, 3), 10.0)).make(x, 0.0, 0, 1)
    np.testing.assert_array_equal(np.isfinite(units), [True, False, True])
    assert (weights[1] == 0).all()


@pytest.mark.parametrize(("n", "d", "count"), [(0, 3, 5), (1, 1, 1), (37, 16, 100), (33, 7, 1024), (5, 40, 17)])
def test_nearest_points_equal_the_oracle(isa: str, n: int, d: int, count: int) -> None:
    rng = np.random.default_rng(count)
    x, points = rng.standard_normal((n, d)), rng.standard_normal((count, d))
    half = (points * points).sum(1) / 2
    values = half - x @ points.T
    np.testing.assert_array_equal(_core.nearest(x, np.ascontiguousarray(points.T), half, 2), values.argmin(1))
    maker = _core.FormMaker(np.ones((d, 8)), None, points, half)
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
    found = _core.FormMaker(np.ones((4, 8)), None, points, np.ones(50)).make(np.full((3, 4), 1e100), 0.0, 7, 1)[4]
    assert found.shape == (3, 7) and all(len(set(row)) == 7 for row in found) and found.min() >= 0 and found.max() < 50


def test_what_does_not_fit() -> None:
    frame, points = np.ones((4, 8)), np.zeros((5, 4))
    with pytest.raises(ValueError, match="shift"):
        _core.FormMaker(frame, np.zeros(3))
    for some, half in ((points, np.zeros(4)), (points, None), (points[:, :3].copy(), np.zeros(5))):
        with pytest.raises(ValueError, match="points"):
            _core.FormMaker(frame, None, some, half)
    maker = _core.FormMaker(frame, None, points, np.zeros(5))
    for x, probes in ((np.zeros((1, 3)), 1), (np.zeros((1, 4)), 6)):
        with pytest.raises(ValueError, match="queries do not fit"):
            maker.make(x, 0.0, probes, 1)
    with pytest.raises(ValueError, match="queries do not fit"):
        _core.FormMaker(frame).make(np.zeros((1, 4)), 0.0, 1, 1)
