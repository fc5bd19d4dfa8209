"""Frames and scales that went wrong once: nearly dependent rows at h = 0, the ends of the range, tiny h."""

import copy
import pickle

import numpy as np
import pytest

from antisparse import (
    AccuracyError,
    BlockFrame,
    InputError,
    RankError,
    SpreadSolver,
    StepLimitError,
    certificate,
    gaussian_frame,
    spread,
    spread_bits,
    spread_path,
    tight_frame,
)


def test_weak_rows_are_met_at_h_zero() -> None:
    A, y = np.array([[1, 1, 1], [1e-8, 2e-8, -3e-8]]), np.array([[1.0, 3e-8]])
    for dtype in (np.float64, np.float32):
        result = spread(y, A, dtype=dtype)
        np.testing.assert_allclose(result.t, 2 / 3, rtol=1e-6)
    np.testing.assert_allclose(spread_path(y[0], A).t, 2 / 3, rtol=1e-12)
    assert certificate(y, A, 0.0, np.full((1, 3), 1 / 3))[0] > 0.5  # misses the weak row, though A'(y - A x) = 0


def test_nearly_dependent_rows_at_h_zero() -> None:
    rng = np.random.default_rng(0)
    for weak in (1e-3, 1e-6):
        for seed in range(10):
            u, v = tight_frame(8, 8, seed), tight_frame(8, 20, seed + 100)
            A, tight = u @ np.diag([1.0] * 4 + [weak] * 4) @ v, v
            x0 = rng.standard_normal(20)
            expected = spread((v @ x0)[None], tight).t  # the same equations, well put
            np.testing.assert_allclose(spread((A @ x0)[None], A).t, expected, rtol=1e-8)
            if weak == 1e-3:  # beyond, float32 cannot hold y well enough
                np.testing.assert_allclose(spread((A @ x0)[None], A, dtype=np.float32).t, expected, rtol=1e-2)


def test_square_gaussian_frames_at_h_zero() -> None:
    for seed in range(40):
        A = gaussian_frame(64, 64, seed)
        Y = np.random.default_rng(seed).standard_normal((10, 64))
        exact = np.abs(np.linalg.solve(A, Y.T)).max(0)
        np.testing.assert_allclose(spread(Y, A).t, exact, rtol=1e-8)
        np.testing.assert_allclose(spread(Y, A, dtype=np.float32).t, exact, rtol=1e-2)


def test_the_certificate_sees_below_the_rounding_of_h() -> None:
    A = tight_frame(8, 20, 0)
    Y = np.random.default_rng(0).standard_normal((1, 8))
    for h in (0.0, 1e-16):
        assert certificate(Y, A, h, Y @ A, relative=False)[0] > 0.5


def test_the_ends_of_the_range() -> None:
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(spread_path([1.0, 2.0], np.eye(2) * scale).x, np.array([1, 2]) / scale)
        np.testing.assert_allclose(spread([[1.0, 2.0]], np.eye(2) * scale).x, [np.array([1, 2]) / scale])
    np.testing.assert_allclose(spread_path([1.7e308], [[1.0]]).x, [1.7e308])
    assert spread(np.zeros((1, 2)), np.eye(2) * 1e-310).t == 0
    assert spread(np.full((1, 2), 1e300), np.eye(2) * 1e-300, h=1.0).t == 0
    assert np.isfinite(spread([[2.0**1000]], np.full((1, 4096), 2.0**-33)).t[0])
    assert spread(np.full((1, 2), 1e-300), np.eye(2), 1e300, relative=False).h == 1e300
    assert not spread_path(np.full(2, 1e-300), np.eye(2), h=1e300).x.any()
    spread(np.ones((1, 2)), np.diag([1, 1e-170]))  # badly scaled is not deficient


def test_vectors_that_vanish_in_float32_are_an_error() -> None:
    with pytest.raises(InputError, match="Y row 1 does not fit float32"):
        spread_bits(np.array([[1.0], [-1e-60]]), np.eye(1), dtype=np.float32)


def test_blocks_of_any_shape_have_their_own_rank() -> None:
    frame = BlockFrame((np.ones((1, 3)), np.ones((3, 1))))
    y = np.array([[2.0, 1.0, 1.0, 1.0]])
    for h in (0.0, 0.1):
        result = spread(y, frame, h)
        path = spread_path(y[0], frame, result.h[0])
        np.testing.assert_allclose(path.t, result.t[0])
        assert certificate(result)[0] < 1e-12
    with pytest.raises(RankError, match=r"A\.blocks\[1\] is 2 x 2 but has rank 1"):
        spread(np.ones((1, 3)), BlockFrame((np.ones((1, 3)), np.ones((2, 2)))))


def test_errors_and_solvers_survive_pickling() -> None:
    for error in (RankError("a", 3), StepLimitError("b", 4), AccuracyError("c", 5, 0.1)):
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error) and vars(again) == vars(error)
    solver = SpreadSolver(tight_frame(4, 9, 0))
    for other in (pickle.loads(pickle.dumps(solver)), copy.deepcopy(solver)):
        np.testing.assert_array_equal(other.spread(np.ones((1, 4)), 0.1).x, solver.spread(np.ones((1, 4)), 0.1).x)


def test_numbers_out_of_range_are_named() -> None:
    for name in ("n_threads", "max_steps"):
        with pytest.raises(InputError, match=f"{name} = {2**70}"):
            spread(np.ones((1, 2)), np.eye(2), **{name: 2**70})
    assert spread(np.ones((1, 2)), np.eye(2), dtype=">f4").x.dtype == np.float32


def test_above_the_start_of_the_path_x_is_zero() -> None:
    assert not spread_path(np.ones(2), np.eye(2), h=5).at(2.0).any()


def test_the_assembled_matrix_cannot_be_changed() -> None:
    frame = BlockFrame((np.eye(2), np.eye(2)))
    with pytest.raises(ValueError, match="read-only"):
        frame.matrix[0, 0] = 5
