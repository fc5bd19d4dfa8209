"""Large axes are projected on in float32, prepared once: near the exact product, the same in every batch."""

import copy
import pickle

import numpy as np
import pytest

from antisparse import _core
from antisparse.codec.reduction import Reduction
from antisparse.errors import InputError

D, R = 300, 260


@pytest.fixture(scope="module")
def reduction() -> Reduction:
    rng = np.random.default_rng(0)
    return Reduction(rng.standard_normal(D), np.linalg.qr(rng.standard_normal((D, R)))[0].T)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30, 1e150])
def test_large_axes_give_the_product_but_for_the_rounding_of_float32(reduction: Reduction, size: float) -> None:
    X = size * np.random.default_rng(1).standard_normal((100, D))
    assert reduction.axes is not None
    exact = (X - reduction.mean) @ reduction.axes.T
    found = reduction.reduce(X, 1)
    assert np.abs(found - exact).max() < 1e-5 * np.linalg.norm(X - reduction.mean, axis=1).max()
    assert np.abs(found - exact).max() > 0  # it is float32 that is tested here
    uncentred = reduction.reduce(X, 1, centre=False)
    np.testing.assert_allclose(uncentred, X @ reduction.axes.T, atol=1e-5 * size * np.sqrt(D))


def test_rows_of_all_sizes_in_one_batch_do_not_disturb_each_other(reduction: Reduction) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, D)) * 10.0 ** rng.integers(-100, 100, (120, 1))
    X[7] = reduction.mean  # whose largest entry is 0
    whole = reduction.reduce(X, 2)
    for rows in (slice(0, 1), slice(5, 12), slice(47, 49), slice(119, 120)):
        np.testing.assert_array_equal(reduction.reduce(X[rows], 1), whole[rows])
    np.testing.assert_array_equal(whole[7], 0)


def test_every_instruction_set_gives_the_same_bits(reduction: Reduction) -> None:
    X = np.random.default_rng(3).standard_normal((60, D))
    before, found = _core.isa(), []
    try:
        for isa in _core.isas():
            _core.use_isa(isa)
            found.append(reduction.reduce(X, 1))
    finally:
        _core.use_isa(before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_copies_are_prepared_anew(reduction: Reduction) -> None:
    X = np.random.default_rng(4).standard_normal((5, D))
    wanted = reduction.reduce(X, 1)
    for other in (copy.deepcopy(reduction), pickle.loads(pickle.dumps(reduction))):
        np.testing.assert_array_equal(other.reduce(X, 1), wanted)


def test_axes_that_float32_has_no_room_for_are_refused() -> None:
    axes = np.zeros((R, D))
    axes[3, 5] = 1e30
    with pytest.raises(InputError, match="axes has an entry of 1e"):
        Reduction(np.zeros(D), axes)


def test_vectors_of_another_dimension_are_refused(reduction: Reduction) -> None:
    projection = _core.Projection(np.eye(3))
    with pytest.raises(ValueError, match="do not fit"):
        projection.project(np.zeros((2, 4)), 1)
