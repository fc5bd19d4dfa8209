"""The reference path: every breakpoint, every piece."""

import numpy as np
import pytest

from antisparse import InputError, RankError, StepLimitError, certificate, spread, spread_path, tight_frame

Y = np.random.default_rng(3).standard_normal((4, 12))
A = tight_frame(12, 30, 2)


def test_the_path_is_optimal_everywhere() -> None:
    path = spread_path(Y[0], A)
    points = [p.h for p in path.breakpoints]
    for h in [*points, *(np.array(points[1:]) + points[:-1]) / 2, path.h1 * 0.999, path.h1]:
        assert certificate(Y[:1], A, h, path.at(h)[None], relative=False)[0] <= 1e-13


def test_breakpoints_go_down_in_h_and_up_in_t() -> None:
    for y in Y:
        path = spread_path(y, A)
        assert np.all(np.diff([path.h1, *(p.h for p in path.breakpoints), path.h]) < 0)
        assert np.all(np.diff([0, *(p.t for p in path.breakpoints), path.t]) > 0)
        assert len(path.pieces) == len(path.breakpoints) + 1


def test_breakpoints_say_what_moved() -> None:
    path = spread_path(Y[0], A)
    for k, point in enumerate(path.breakpoints):
        before, after = path.pieces[k], path.pieces[k + 1]
        if point.move == "freed":
            assert before.signs[point.index] != 0 and point.index in after.free
        else:
            assert point.index in before.free
            assert after.signs[point.index] == (1 if point.move == "stuck at +t" else -1)
        x = path.at(point.h)
        assert abs(abs(x[point.index]) - point.t) < 1e-12  # on the border both before and after


def test_the_first_signs_are_those_of_lsh() -> None:
    path = spread_path(Y[0], A)
    np.testing.assert_array_equal(np.sign(path.at(0.9999 * path.h1)), np.sign(A.T @ Y[0]))
    assert not path.at(path.h1).any() and not path.at(10 * path.h1).any()


def test_the_end_of_the_path_is_at_h() -> None:
    path = spread_path(Y[0], A, 0.7)
    assert path.h == 0.7
    np.testing.assert_allclose(path.x, spread(Y[:1], A, 0.7, relative=False).x[0], atol=1e-12)
    with pytest.raises(InputError, match="below the end of the path"):
        path.at(0.6)
    beyond = spread_path(Y[0], A, 1e9)
    assert beyond.t == 0 and not beyond.x.any() and not beyond.breakpoints


def test_one_frame_row_has_no_breakpoints() -> None:
    # d = 1: the residual vanishes with every component stuck, t = |y| / ||a||_1.
    path = spread_path(np.array([-3.0]), np.array([[1.0, -2.0, 0.5]]))
    assert not path.breakpoints
    np.testing.assert_allclose(path.x, [-3 / 3.5, 3 / 3.5, -3 / 3.5])


def test_errors_name_the_argument() -> None:
    with pytest.raises(InputError, match=r"y has shape \(1, 12\)"):
        spread_path(Y[:1], A)
    with pytest.raises(InputError, match="y has 3 entries but A has 12 rows"):
        spread_path(np.ones(3), A)
    with pytest.raises(InputError, match=r"y\[1\] is nan: y contains NaN"):
        spread_path(np.array([1.0, np.nan] + [0.0] * 10), A)
    with pytest.raises(InputError, match="h = -1"):
        spread_path(Y[0], A, -1)
    with pytest.raises(RankError, match="rank 1"):
        spread_path(np.ones(2), np.ones((2, 5)))
    with pytest.raises(StepLimitError, match="max_steps = 3"):
        spread_path(Y[0], A, max_steps=3)


def test_a_path_in_one_line() -> None:
    path = spread_path(np.array([3.0, 1.0]), np.eye(2), 0.5)
    assert repr(path) == "SpreadPath(m: 2, h1: 4, h: 0.5, t: 2.5, breakpoints: 1)"
