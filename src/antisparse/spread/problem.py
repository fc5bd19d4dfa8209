"""The spread problem: its objective, its optimality certificate and the result of solving it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, FloatArray, boolean, finite, plain_array, real_array, vectors
from antisparse.errors import InputError, InputTypeError, RankError
from antisparse.frames import BlockFrame, Frame, frame_matrix


@dataclass(frozen=True, repr=False)
class SpreadResult:
    """The spread representations of n vectors.

    Y and A are references, not copies: if Y is changed in place after the solve, `certificate` and `objective` of the
    result judge x by the changed Y.

    Attributes
    ----------
    x : ndarray of shape (n, m)
        ``argmin 1/2 ||A x - y||^2 + h ||x||_inf``.
    t : ndarray of shape (n,)
        ``||x||_inf``.
    h : ndarray of shape (n,), float64
        The absolute h of each vector.
    steps : ndarray of shape (n,), int32
        The number of breakpoints between ``h_1 = ||A.T @ y||_1`` and h.
    certificate : ndarray of shape (n,), float64
        The violation of the optimality conditions as the solver measured it, in the dtype it worked in. The function
        `certificate` measures it independently of the solver.
    Y : ndarray of shape (n, d)
        The vectors.
    A : ndarray of shape (d, m) or BlockFrame
        The frame, as the solver keeps it: read-only.
    """

    x: FloatArray
    t: FloatArray
    h: Float64Array
    steps: npt.NDArray[np.int32]
    certificate: Float64Array
    Y: npt.NDArray[Any]
    A: Frame

    def __repr__(self) -> str:
        n, m = self.x.shape
        numbers = ""
        if n:
            numbers = (
                f", t: {_interval(self.t)}, h: {_interval(self.h)}, steps: {_interval(self.steps)}"
                f", certificate: at most {self.certificate.max():.1e}"
            )
        return f"SpreadResult(x: {n} x {m} {self.x.dtype.name}{numbers})"


def objective(
    Y: Any, A: Frame | None = None, h: Any = None, x: Any = None, *, relative: bool | None = None
) -> Float64Array:
    """``J_h(x) = 1/2 ||A x - y||^2 + h ||x||_inf`` (equation 3 of the paper) for each vector.

    Takes the parameters of `certificate`: either what `spread` returned, or the arguments of `spread` and x.

    Returns
    -------
    value : ndarray of shape (n,), float64

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import objective, spread
    >>> Y, A = np.array([[3.0, 1.0]]), np.eye(2)
    >>> objective(spread(Y, A, h=1.0, relative=False))
    array([2.5])
    """
    problem = _problem("objective", Y, A, h, x, relative)
    value: Float64Array = np.ldexp(0.5 * (problem.residual**2).sum(1) + problem.h * problem.t, 2 * problem.y_exponent)
    return value


def certificate(
    Y: Any, A: Frame | None = None, h: Any = None, x: Any = None, *, relative: bool | None = None
) -> Float64Array:
    """The largest violation of the optimality conditions by x, for each vector, relative to ``h_1 = ||A.T @ y||_1``.

    Call it as ``certificate(result)`` with what `spread` returned, or as ``certificate(Y, A, h, x)`` with the arguments
    of `spread` and any solver's x.

    With ``c = A.T @ (y - A x)`` and ``t = ||x||_inf``, x is optimal at h > 0 if and only if c / h is a subgradient of
    the infinity norm at x (equations 4 to 6 of the paper), that is ``||c||_1 = h`` and ``<c, x> = h t``; for x = 0,
    ``||c||_1 <= h``. These conditions need no partition of x into stuck and free components.

    At h = 0, and where h is below the rounding error of h_1, these conditions are too weak. There the certificate also
    counts how far each equation of A x = y is from holding, relative to the magnitude of its terms, and the relative
    duality gap ``1 - <y, z> / (t ||A.T @ z||_1)``. Every z gives a lower bound on the smallest possible t; the z used
    here is computed from x alone, by non-negative least squares.

    Parameters
    ----------
    Y : SpreadResult or array of shape (n, d)
        With a `SpreadResult`, which carries its Y, A and h, leave out all other arguments.
    A : ndarray of shape (d, m) or BlockFrame
    h : float or array of shape (n,)
        0 by default, as for `spread`. An array gives each vector an h of its own.
    x : array of shape (n, m)
        The solutions to judge.
    relative : bool
        If True, the default, h is a fraction of each vector's own ``h_1``; if False, h is absolute. As for `spread`.

    Returns
    -------
    violation : ndarray of shape (n,), float64
        0 is perfect; about 1e-15 is the best that float64 can do.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import certificate, spread
    >>> Y, A = np.array([[3.0, 1.0]]), np.eye(2)
    >>> certificate(spread(Y, A, h=1.0, relative=False))
    array([0.])
    >>> certificate(Y, A, 1.0, np.array([[2.0, 1.0]]), relative=False)
    array([0.])
    >>> certificate(Y, A, 1.0, np.array([[1.0, 1.0]]), relative=False)
    array([0.25])
    """
    p = _problem("certificate", Y, A, h, x, relative)
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
    """The default of `max_steps`: far above the number of breakpoints seen in practice, about 1.5 min(d, m)."""
    return 100 + 20 * (d + m)


def require_full_rank(A: Float64Array, name: str) -> None:
    """Raise `RankError` unless A has rank min(d, m). The rank is computed after scaling rows and columns."""
    scaled = A
    for axis in (1, 0, 1, 0):  # by the largest entry, not by the norm, whose squares may overflow or underflow
        largest = np.abs(scaled).max(axis=axis, keepdims=True)
        scaled = scaled / np.where(largest > 0, largest, 1)
    rank = int(np.linalg.matrix_rank(scaled))
    if rank < min(A.shape):
        raise RankError(
            f"{name} is {A.shape[0]} x {A.shape[1]} but has rank {rank}: full rank ({min(A.shape)}) is needed; "
            "drop the dependent rows, reducing the vectors' dimension with them",
            rank,
        )


def require_full_ranks(A: Frame) -> int:
    """Raise `RankError` unless A, or each block of a `BlockFrame`, has full rank. Returns the rank of all of A."""
    if isinstance(A, BlockFrame):
        for k, block in enumerate(A.blocks):
            require_full_rank(block, f"A.blocks[{k}]")
        return sum(int(min(block.shape)) for block in A.blocks)
    matrix = frame_matrix(A)
    require_full_rank(matrix, "A")
    return int(min(matrix.shape))


def _problem(function: str, Y: Any, A: Any, h: Any, x: Any, relative: Any) -> "_Problem":
    """The problem that the arguments of `certificate` or `objective` describe."""
    call = f"{function}(Y, A, h, x)"
    if isinstance(Y, SpreadResult):
        for name, value in {"A": A, "h": h, "x": x, "relative": relative}.items():
            if value is not None:
                raise InputTypeError(
                    f"{name} is given beside a SpreadResult, which carries its own Y, A, h and x; "
                    f"pass the result alone, or {call}"
                )
        return _Problem(Y.Y, Y.A, Y.h, Y.x, relative=False)
    for name, value in {"A": A, "x": x}.items():
        if value is None:
            raise InputTypeError(f"{name} is missing; pass what spread returned, or {call}")
    if isinstance(x, SpreadResult):
        raise InputTypeError(f"x is a SpreadResult; pass its attribute x, or {function}(result) alone")
    matrix, vectors_by_row = frame_matrix(A), real_array(Y, "Y", 2)
    d, m = matrix.shape
    if vectors_by_row.shape[1] != d and len(vectors_by_row) == m:
        raise InputError(
            f"Y has shape {vectors_by_row.shape} and A {matrix.shape}: they seem to be swapped; "
            f"the order is {call}, as for spread"
        )
    return _Problem(
        vectors_by_row,
        matrix,
        0.0 if h is None else h,
        x,
        relative=True if relative is None else boolean(relative, "relative"),
    )


class _Problem:
    """The checked arrays in float64, scaled by powers of two so that no product overflows or underflows."""

    def __init__(self, Y: Any, A: Frame, h: Any, x: Any, *, relative: bool) -> None:
        matrix = frame_matrix(A)
        Y = vectors(Y, "Y", matrix.shape[0])
        x = real_array(x, "x", 2)
        if x.shape != (len(Y), matrix.shape[1]):
            raise InputError(f"x has shape {x.shape}; Y and A ask for {(len(Y), matrix.shape[1])}")
        h = plain_array(h, "h")
        h = real_array(h, "h", h.ndim).astype(np.float64)
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
        self.t = np.abs(self.x).max(1, initial=0)
        self.residual = self.Y - self.x @ self.A.T
        self.h1 = np.abs(self.Y @ self.A).sum(1)
        with np.errstate(over="ignore"):
            scaled_h = h * self.h1 if relative else np.ldexp(h, -(a_exponent + self.y_exponent))
        self.h: Float64Array = np.minimum(scaled_h, np.finfo(np.float64).max)
        # A component counts as stuck within this relative distance of +-t. It depends on the precision of x.
        self.slack = 1e-5 if x.dtype.itemsize < 8 else 1e-9


def _infeasibility(A: Float64Array, y: Float64Array, x: Float64Array) -> float:
    """The componentwise backward error of x as a solution of A x = y (of A'A x = A'y, for m < d)."""
    residual, terms = y - A @ x, np.abs(A) @ np.abs(x) + np.abs(y)
    if A.shape[1] < A.shape[0]:
        residual, terms = A.T @ residual, np.abs(A.T) @ terms
    return float((np.abs(residual) / np.where(terms > 0, terms, 1)).max())


def _duality_gap(A: Float64Array, y: Float64Array, x: Float64Array, slack: float) -> float:
    """1 - <y, z> / (t ||A' z||_1) for a z computed from x. It is 0, up to rounding, if and only if t is minimal.

    x can be improved if and only if some direction moves every stuck component inwards and does not change A x:
    P (w + A_S diag(s) p) = 0 with p >= 0, where w = A_S s and P projects onto the orthogonal complement of span(A_F).
    Non-negative least squares minimises the norm of the left-hand side over p. What remains is z: it is orthogonal to
    A_F and has s_i <a_i, z> >= 0, so it is a dual vector.
    """
    from scipy.linalg import qr
    from scipy.optimize import nnls  # here, since it takes longer to import than all of this package

    t = np.abs(x).max()
    stuck = np.abs(x) >= (1 - slack) * t
    signed = A[:, stuck] * np.sign(x[stuck])
    free = A[:, ~stuck]
    if free.shape[1]:
        norms = np.linalg.norm(free, axis=0)
        q, r, _ = qr(free[:, norms > 0] / norms[norms > 0], mode="economic", pivoting=True)
        q = q[:, : int((np.abs(np.diag(r)) > 1e-12).sum())]
        signed = signed - q @ (q.T @ signed)
        signed = signed - q @ (q.T @ signed)
    w = signed.sum(1)
    try:
        p, _ = nnls(signed, -w)
    except RuntimeError:  # iteration limit reached: w alone still gives a lower bound on t, though a weaker one
        p = np.zeros(signed.shape[1])
    gaps = [1.0]
    for z in (w, w + signed @ p):
        dual_norm = np.abs(z @ A).sum()
        if dual_norm > 0:
            gaps.append(float(1 - y @ z / (t * dual_norm)))
    return min(gaps)


def _interval(values: npt.NDArray[Any]) -> str:
    """The least and the greatest of the values, in three digits."""
    least, greatest = f"{values.min():.3g}", f"{values.max():.3g}"
    return least if least == greatest else f"{least} to {greatest}"
