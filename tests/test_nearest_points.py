"""The nearest of many points, of which not all are looked at: what is promised of them, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ordered import halved

from antisparse import _core


def in_order(count: int, d: int, seed: int) -> np.ndarray:
    """Points that are not all looked at."""
    return halved(np.random.default_rng(seed).standard_normal((count, d)) * 0.7 ** np.arange(d))


def ready(points: np.ndarray) -> _core.Points:
    return _core.Points(points, (points * points).sum(1) / 2)


def values(x: np.ndarray, points: np.ndarray) -> np.ndarray:
    return (points * points).sum(1) / 2 - x @ points.T


def near(points: np.ndarray, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return points[rng.integers(0, len(points), n)] + 0.1 * rng.standard_normal((n, points.shape[1]))


@pytest.mark.parametrize("k", [1, 7, 100])
@pytest.mark.parametrize(("count", "d"), [(4097, 5), (5000, 16), (70_001, 4)])
def test_points_in_no_order_are_all_looked_at(isa: str, count: int, d: int, k: int) -> None:
    points = np.random.default_rng(count).standard_normal((count, d))
    x = near(points, 20, 1)
    held = ready(points)
    found, products = held.nearest(x, k, 2)
    assert not held.ordered
    np.testing.assert_array_equal(found, np.argsort(values(x, points), axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(products, np.take_along_axis(x @ points.T, found, 1), atol=1e-12)


@pytest.mark.parametrize(("count", "d"), [(4097, 8), (16_384, 32), (70_001, 6), (100_000, 16)])
def test_nearly_all_of_the_nearest_are_found_where_points_are_in_order(isa: str, count: int, d: int) -> None:
    """100,000 points have centres of centres."""
    points = in_order(count, d, count)
    x, held = near(points, 200, 2), ready(points)
    assert held.ordered
    true = values(x, points)
    for k in (1, 10, 50):
        found, products = held.nearest(x, k, 2)
        assert all(len(set(row)) == k for row in found)
        own = np.take_along_axis(true, found, 1)
        np.testing.assert_allclose(products, np.take_along_axis(x @ points.T, found, 1), atol=1e-12)
        assert (np.diff(own, axis=1) > -1e-12).all()  # nearest first
        nearest = np.argpartition(true, k, axis=1)[:, :k]
        assert np.mean([len({*mine} & {*theirs}) / k for mine, theirs in zip(found, nearest, strict=True)]) >= 0.97
        # Alone, by one thread and in single precision where that holds them: the same.
        for row in (0, 57, 199):
            np.testing.assert_array_equal(held.nearest(x[row : row + 1], k, 1)[0][0], found[row])
    single = x.astype(np.float32)
    np.testing.assert_array_equal(held.nearest(single, 5, 1)[0], held.nearest(single.astype(np.float64), 5, 1)[0])


def test_all_instruction_sets_find_the_same() -> None:
    points = in_order(80_000, 9, 0)
    x, before, found = near(points, 100, 3), _core.isa(), []
    try:
        for isa in _core.isas():
            _core.use_isa(isa)
            found.append(ready(points).nearest(x, 20, 2))
    finally:
        _core.use_isa(before)
    for one in found[1:]:
        for mine, theirs in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_so_many_that_all_panels_are_looked_at() -> None:
    points = in_order(5000, 6, 5)
    x = near(points, 30, 4)
    for k in (249, 5000):  # 313 panels, of which 64 + k would be looked at
        np.testing.assert_array_equal(ready(points).nearest(x, k, 1)[0], np.argsort(values(x, points), axis=1)[:, :k])


def test_the_first_of_equals() -> None:
    points = np.repeat(in_order(2048, 4, 6), 4, axis=0)
    found = ready(points).nearest(near(points, 50, 5), 4, 1)[0]
    np.testing.assert_array_equal(found[:, 0] % 4, 0)
    np.testing.assert_array_equal(found - found[:, :1], np.tile(np.arange(4), (50, 1)))
    alike = ready(np.ones((5000, 3)))
    np.testing.assert_array_equal(alike.nearest(np.random.default_rng(0).standard_normal((9, 3)), 3, 1)[0][:, 0], 0)


@settings(max_examples=30, deadline=None)
@given(
    exponent=st.integers(-1070, 1020), of_point=st.integers(-1070, 1020), k=st.integers(1, 80), seed=st.integers(0, 99)
)
def test_whatever_their_size_as_many_as_are_wanted_are_found(exponent: int, of_point: int, k: int, seed: int) -> None:
    points = in_order(4500, 3, seed)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        points = np.nan_to_num(np.ldexp(points, of_point), posinf=1e308, neginf=-1e308)
        x = np.nan_to_num(np.ldexp(near(points, 5, seed), exponent), nan=0.0, posinf=1e308, neginf=-1e308)
        held = _core.Points(points, np.nan_to_num((points * points).sum(1) / 2, posinf=1e308))
        found = held.nearest(x, k, 1)[0]
    assert all(len(set(row)) == k for row in found) and found.min() >= 0 and found.max() < 4500
