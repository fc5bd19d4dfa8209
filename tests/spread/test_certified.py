"""The solvers, judged by the optimality conditions recomputed from the answer alone."""

import warnings

import numpy as np
import pytest
from problems import GENERAL, KINDS, Problem, problem
from scipy.optimize import linprog

from antisparse import block_frame, certificate, gaussian_frame, objective, spread, spread_path, tight_frame

TOLERANCE = 1e-9


def plain_certificate(p: Problem, x: np.ndarray) -> float:
    """The conditions written out once more, for h > 0, so that `certificate` is not judged by itself."""
    if p.h1 == 0:
        return 0.0 if not x.any() else np.inf
    scale = np.abs(p.y).max()
    y, x, h = p.y / scale, x / scale, p.h / scale
    c = p.A.T @ (y - p.A @ x)
    t = np.abs(x).max()
    if t == 0:
        return max(0.0, np.abs(c).sum() - h) * scale / p.h1
    return max(abs(np.abs(c).sum() - h), np.abs(c).sum() - c @ x / t) * scale / p.h1


def native(p: Problem) -> np.ndarray:
    return spread(p.y[None], p.frame, p.h, relative=False, n_threads=1).x[0]


def worst(numbers: range, solve) -> dict[str, float]:
    found = dict.fromkeys(KINDS, 0.0)
    for number in numbers:
        p = problem(number)
        value = plain_certificate(p, solve(p))
        found[p.kind] = max(found[p.kind], value)
    return found


def test_native_solver_is_certified_on_10000_problems() -> None:
    found = worst(range(10_000), native)
    assert max(found.values()) <= TOLERANCE, found


def test_every_instruction_set_is_certified(isa: str) -> None:
    found = worst(range(20_000, 21_000), native)
    assert max(found.values()) <= TOLERANCE, found


def test_reference_is_certified_on_1000_problems_and_agrees_with_the_native_solver() -> None:
    found = dict.fromkeys(KINDS, 0.0)
    for number in range(1000):
        p = problem(number)
        x, other = spread_path(p.y, p.A, p.h).x, native(p)
        found[p.kind] = max(found[p.kind], plain_certificate(p, x))
        t = np.abs(x).max()
        if p.kind in GENERAL:
            np.testing.assert_allclose(other, x, atol=1e-9 * t, rtol=0, err_msg=f"problem {number}")
        # Elsewhere x may not be unique: A x, t and the objective are.
        size = np.abs(p.y).max()
        values = [objective(p.y[None], p.A, p.h, v[None], relative=False)[0] for v in (x, other)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-8, atol=1e-9 * size**2, err_msg=f"problem {number}")
        np.testing.assert_allclose(p.A @ other, p.A @ x, atol=1e-7 * size, err_msg=f"problem {number}")
        if p.h < 0.9999 * p.h1:
            np.testing.assert_allclose(np.abs(other).max(), t, rtol=1e-5, err_msg=f"problem {number}")
    assert max(found.values()) <= TOLERANCE, found


@pytest.mark.parametrize("number", range(0, 2000, 61))
def test_certificate_agrees_with_the_conditions_written_out(number: int) -> None:
    p = problem(number)
    x = native(p)
    given = certificate(p.y[None], p.frame, p.h, x[None], relative=False)[0]
    assert abs(given - plain_certificate(p, x)) <= 1e-9
    if p.h1 > 0 and p.h < p.h1:
        wrong = x * 1.01
        assert certificate(p.y[None], p.frame, p.h, wrong[None], relative=False)[0] > 1e-6


def least_range(A: np.ndarray, y: np.ndarray) -> float:
    """min ||x||_inf subject to A x = y by HiGHS: with x = t u, maximise 1 / t over |u| <= 1."""
    m = A.shape[1]
    cost = np.r_[np.zeros(m), -1.0]
    bounds = [(-1, 1)] * m + [(0, None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linprog(cost, A_eq=np.c_[A, -y], b_eq=np.zeros(len(y)), bounds=bounds, method="highs-ds")
    assert found.status == 0
    return 1 / found.x[-1]


@pytest.mark.parametrize("kind", ["gaussian", "tight", "block", "duplicates"])
def test_h_zero_equals_the_linear_programme(kind: str) -> None:
    rng = np.random.default_rng(5)
    for trial in range(50):
        d = int(rng.integers(1, 25))
        m = int(rng.integers(d, 65))
        frame: object = {
            "gaussian": gaussian_frame,
            "tight": tight_frame,
            "block": lambda d, m, seed: block_frame(d, m, max(1, d // 3), seed),
            "duplicates": lambda d, m, seed: np.repeat(gaussian_frame(d, m, seed), 2, axis=1),
        }[kind](d, m, trial)
        A = frame.matrix if kind == "block" else frame
        y = rng.standard_normal(d)
        result = spread(y[None], frame)
        assert np.abs(A @ result.x[0] - y).max() <= 1e-10
        assert abs(result.t[0] / least_range(A, y) - 1) <= 1e-7
        assert certificate(result)[0] <= TOLERANCE
        path = spread_path(y, frame)
        assert abs(path.t / result.t[0] - 1) <= 1e-9
        if kind in ("gaussian", "tight"):  # general position
            for x in (path.x, result.x[0]):
                assert (np.abs(x) >= np.abs(x).max() * (1 - 1e-9)).sum() == m - d + 1
        if kind == "block":
            stuck = np.abs(result.x[0]) >= result.t[0] * (1 - 1e-9)
            ends = np.cumsum([b.shape[1] for b in frame.blocks])
            last = int(np.searchsorted(ends, stuck.argmax(), side="right"))
            shape = frame.blocks[last].shape
            assert stuck.sum() == shape[1] - shape[0] + 1
            assert stuck[ends[last] - shape[1] : ends[last]].sum() == stuck.sum()


def test_certificate_at_h_zero_sees_that_t_is_not_least() -> None:
    A, y = tight_frame(4, 10, 0), np.arange(1.0, 5.0)
    least_squares = A.T @ y  # A x = y, but not of least range
    assert certificate(y[None], A, 0.0, least_squares[None])[0] > 0.1
    best = spread(y[None], A).x
    assert certificate(y[None], A, 0.0, best)[0] < 1e-12
    assert certificate(y[None], A, 0.0, best * 1.001)[0] > 1e-4


def test_fewer_columns_than_rows_ends_in_least_squares(isa: str) -> None:
    rng = np.random.default_rng(0)
    A, Y = rng.standard_normal((20, 7)), rng.standard_normal((30, 20))
    result = spread(Y, A)
    np.testing.assert_allclose(result.x, np.linalg.lstsq(A, Y.T, rcond=None)[0].T, atol=1e-12)
    assert certificate(result).max() < 1e-12
    np.testing.assert_allclose(spread_path(Y[0], A).x, result.x[0], atol=1e-12)


@pytest.mark.parametrize("h", [0.0, 0.1, 0.3])
def test_float32_signs_agree_with_float64(isa: str, h: float) -> None:
    A = tight_frame(48, 128, 0)
    Y = np.random.default_rng(1).standard_normal((4000, 48))
    single, double = spread(Y, A, h, dtype=np.float32), spread(Y, A, h)
    assert single.x.dtype == np.float32
    assert np.mean((single.x >= 0) == (double.x >= 0)) >= 0.9999
    np.testing.assert_allclose(single.t, double.t, rtol=1e-5)


def test_dense_and_block_solutions_are_the_same(isa: str) -> None:
    frame = block_frame(96, 192, 24, 0)
    Y = np.random.default_rng(1).standard_normal((20, 96))
    for h in (0.5, 0.1, 1e-3):
        blocks, dense = spread(Y, frame, h), spread(Y, frame.matrix, h)
        np.testing.assert_allclose(blocks.t, dense.t, rtol=1e-12)
        np.testing.assert_allclose(blocks.x @ frame.matrix.T, dense.x @ frame.matrix.T, atol=1e-12)
        if h == 0.5:  # further down a block's residual may vanish before the others', and x is not unique
            np.testing.assert_allclose(blocks.x, dense.x, atol=1e-10)
        assert certificate(Y, frame.matrix, h, blocks.x).max() < 1e-12


def test_high_dimension_in_blocks_is_certified_on_the_assembled_matrix() -> None:
    frame = block_frame(768, 1536, 48, 0)
    Y = np.random.default_rng(1).standard_normal((4, 768))
    for h in (0.1, 0.0):
        result = spread(Y, frame, h)
        assert certificate(Y, frame.matrix, h, result.x).max() <= TOLERANCE
