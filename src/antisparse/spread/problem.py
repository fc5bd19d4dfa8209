"""The spread problem: its objective, its optimality certificate, its result."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.optimize

from antisparse._arrays import Float64Array, FloatArray, finite, real_array, vectors
from antisparse.errors import InputError, RankError
from antisparse.frames import BlockFrame, Frame, frame_matrix


@dataclass(frozen=True)
class SpreadResult:
    """The spread representations of n vectors.

    Attributes
    ----------
    x : ndarray of shape (n, m)
        ``argmin 1/2 ||A x - y||^2 + h ||x||_inf``.
    t : ndarray of shape (n,)
        ``||x||_inf``.
    h : ndarray of shape (n,), float64
        The absolute h of each vector.
    steps : ndarray of shape (n,), int32
        Breakpoints passed on the way down from ``h_1 = ||A.T @ y||_1``.
    certificate : ndarray of shape (n,), float64
        The violation of the optimality conditions as the solver measured it, in the dtype it worked in; see
        `certificate` for one that owes nothing to the solver.
    """

    x: FloatArray
    t: FloatArray
    h: Float64Array
    steps: npt.NDArray[np.int32]
    certificate: Float64Array


def objective(A: Frame, Y: Any, x: Any, h: Any) -> Float64Array:
    """``J_h(x) = 1/2 ||A x - y||^2 + h ||x||_inf`` (equation 3 of the paper) for each row of Y and x."""
    problem = _Problem(A, Y, x, h)
    value: Float64Array = np.ldexp(0.5 * (problem.residual**2).sum(1) + problem.h * problem.t, 2 * problem.y_exponent)
    return value


def certificate(A: Frame, Y: Any, x: Any, h: Any) -> Float64Array:
    """The largest violation of the optimality conditions by x, per vector, relative to ``h_1 = ||A.T @ y||_1``.

    With ``c = A.T @ (y - A x)`` and ``t = ||x||_inf``, x is optimal at h > 0 if and only if c / h is a subgradient of
    the infinity norm at x (equations 4 to 6 of the paper), that is ``||c||_1 = h`` and ``<c, x> = h t``; for x = 0,
    ``||c||_1 <= h``. No partition into stuck and free components is asked for or trusted.

    At h = 0 (or so small that it drowns in the rounding of h_1) these say little. So two things more are counted: by
    how much each equation of A x = y fails, relative to the size of its terms, and the relative duality gap
    ``1 - <y, z> / (t ||A.T @ z||_1)``. Any z bounds the least t from below; the one used here follows from x alone, by
    non-negative least squares.

    Parameters
    ----------
    A : ndarray of shape (d, m) or BlockFrame
    Y : array of shape (n, d)
    x : array of shape (n, m)
    h : float or array of shape (n,)
        Absolute.

    Returns
    -------
    violation : ndarray of shape (n,), float64
        0 is perfect; about 1e-15 is what float64 can do.
    """
    p = _Problem(A, Y, x, h)
    c = p.residual @ p.A
    c_norm = np.abs(c).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        at_zero = np.maximum(c_norm - p.h, 0)
        elsewhere = np.maximum(np.abs(c_norm - p.h), c_norm - (c * p.x).sum(1) / p.t)
        violation: Float64Array = np.where(p.t == 0, at_zero, elsewhere) / p.h1
    violation[(p.h1 == 0) & (p.t == 0)] = 0
    violation[(p.h1 == 0) & (p.t > 0)] = np.inf
    for row in np.flatnonzero((p.h <= 1e-12 * p.h1) & (p.t > 0) & (p.h1 > 0)):
        infeasible = _infeasibility(p.A, p.Y[row], p.x[row])
        violation[row] = max(violation[row], infeasible, _duality_gap(p.A, p.Y[row], p.x[row], p.slack))
    return violation


def default_step_limit(d: int, m: int) -> int:
    """A bound far above the breakpoints of any path met: they number about 1.5 min(d, m)."""
    return 100 + 20 * (d + m)


def require_full_rank(A: Float64Array, name: str) -> None:
    """Raise `RankError` unless A has rank min(d, m), judged after scaling its rows and columns."""
    scaled = A
    for axis in (1, 0, 1, 0):  # by the largest entries first, whose squares may be out of range
        sizes = np.abs(scaled).max(axis=axis, keepdims=True)
        scaled = scaled / np.where(sizes > 0, sizes, 1)
    rank = int(np.linalg.matrix_rank(scaled))
    if rank < min(A.shape):
        raise RankError(
            f"{name} is {A.shape[0]} x {A.shape[1]} but has rank {rank}: full rank ({min(A.shape)}) is needed; "
            "drop the dependent rows, reducing the vectors' dimension with them",
            rank,
        )


def require_full_ranks(A: Frame) -> int:
    """Raise `RankError` unless A, or each block of a `BlockFrame`, has full rank. Returns the rank of the whole."""
    if isinstance(A, BlockFrame):
        for k, block in enumerate(A.blocks):
            require_full_rank(block, f"A.blocks[{k}]")
        return sum(int(min(block.shape)) for block in A.blocks)
    matrix = frame_matrix(A)
    require_full_rank(matrix, "A")
    return int(min(matrix.shape))


class _Problem:
    """The arrays, checked, in float64, and scaled by powers of two so that no product leaves the range."""

    def __init__(self, A: Frame, Y: Any, x: Any, h: Any) -> None:
        matrix = frame_matrix(A)
        Y = vectors(Y, "Y", matrix.shape[0])
        x = real_array(x, "x", 2)
        if x.shape != (len(Y), matrix.shape[1]):
            raise InputError(f"x has shape {x.shape}; Y and A ask for {(len(Y), matrix.shape[1])}")
        h = real_array(h, "h", np.ndim(h)).astype(np.float64)
        if h.shape not in ((), (len(Y),)):
            raise InputError(f"h has shape {h.shape}; pass a number, or one for each of the {len(Y)} rows of Y")
        if not (np.isfinite(h) & (h >= 0)).all():
            raise InputError("h must be finite and at least 0")
        finite(Y, "Y")
        finite(x, "x")
        Y64 = Y.astype(np.float64)
        a_exponent = np.frexp(np.abs(matrix).max())[1]
        self.y_exponent = np.frexp(np.abs(Y64).max(axis=1, initial=0))[1]
        self.A = np.ldexp(matrix, -a_exponent)
        self.Y = np.ldexp(Y64, -self.y_exponent[:, None])
        self.x = np.ldexp(x.astype(np.float64), (a_exponent - self.y_exponent)[:, None])
        self.h = np.ldexp(np.broadcast_to(h, len(Y)), -(a_exponent + self.y_exponent))
        self.t = np.abs(self.x).max(1, initial=0)
        self.residual = self.Y - self.x @ self.A.T
        self.h1 = np.abs(self.Y @ self.A).sum(1)
        # How far from +-t a stuck component may lie, by the precision x came in.
        self.slack = 1e-5 if x.dtype.itemsize < 8 else 1e-9


def _infeasibility(A: Float64Array, y: Float64Array, x: Float64Array) -> float:
    """How far x is from a solution of A x = y (of A'A x = A'y, for m < d): componentwise backward error."""
    residual, size = y - A @ x, np.abs(A) @ np.abs(x) + np.abs(y)
    if A.shape[1] < A.shape[0]:
        residual, size = A.T @ residual, np.abs(A.T) @ size
    return float((np.abs(residual) / np.where(size > 0, size, 1)).max())


def _duality_gap(A: Float64Array, y: Float64Array, x: Float64Array, slack: float) -> float:
    """1 - <y, z> / (t ||A' z||_1) for the best z that x suggests; at most 0 up to rounding iff t is least.

    x can be improved iff some direction moves every stuck component inwards and leaves A x as it is:
    P (w + A_S diag(s) p) = 0 with p >= 0, w = A_S s, P the projector off span(A_F). Non-negative least squares finds
    the p that comes closest; what remains, z, is orthogonal to A_F and has s_i <a_i, z> >= 0, so it is the dual vector.
    """
    t = np.abs(x).max()
    stuck = np.abs(x) >= (1 - slack) * t
    signed = A[:, stuck] * np.sign(x[stuck])
    free = A[:, ~stuck]
    if free.shape[1]:
        norms = np.linalg.norm(free, axis=0)
        q, r, _ = scipy.linalg.qr(free[:, norms > 0] / norms[norms > 0], mode="economic", pivoting=True)
        q = q[:, : int((np.abs(np.diag(r)) > 1e-12).sum())]
        signed = signed - q @ (q.T @ signed)
        signed = signed - q @ (q.T @ signed)
    w = signed.sum(1)
    try:
        p, _ = scipy.optimize.nnls(signed, -w)
    except RuntimeError:  # its iteration bound: w itself still gives a bound, if a weaker one
        p = np.zeros(signed.shape[1])
    gaps = [1.0]
    for z in (w, w + signed @ p):
        size = np.abs(z @ A).sum()
        if size > 0:
            gaps.append(float(1 - y @ z / (t * size)))
    return min(gaps)
