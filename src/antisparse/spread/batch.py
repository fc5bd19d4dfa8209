"""Many vectors through the native solver."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse import _core
from antisparse._arrays import Float64Array, chunks, float_dtype, integer, nonnegative, thread_count, vectors
from antisparse.errors import AccuracyError, InputError, RankError, StepLimitError
from antisparse.frames import BlockFrame, Frame, frame_matrix
from antisparse.spread.problem import SpreadResult

_CHUNK_BYTES = 4 << 20  # of converted input held at a time


def spread(
    Y: Any,
    A: Frame,
    h: float = 0.0,
    *,
    relative: bool = True,
    dtype: npt.DTypeLike = np.float64,
    n_threads: int | None = None,
    max_steps: int | None = None,
) -> SpreadResult:
    """The spread representation of every row of Y: ``argmin_x 1/2 ||A x - y||^2 + h ||x||_inf``, exactly.

    Follows each vector's path in native code and checks its own answer against the optimality conditions; a vector
    that fails the check is solved again by a slower, surer method, and one that still fails raises.

    Parameters
    ----------
    Y : array of shape (n, d)
        Floats of any width or integers, in any memory order, also memory-mapped.
    A : ndarray of shape (d, m) or BlockFrame
        Of full rank.
    h : float
        0 gives the minimum-infinity-norm solution of A x = y.
    relative : bool
        If True, h is a fraction of each vector's own ``h_1 = ||A.T @ y||_1``, so that the answer scales with y; from
        1 on, x = 0. If False, h is absolute, as in the paper.
    dtype : numpy.float64 or numpy.float32
        The precision to work in and to return. float32 takes about half the time.
    n_threads : int, optional
        All available CPUs by default. The result does not depend on it.
    max_steps : int, optional
        The most breakpoints to pass for one vector; more raise `StepLimitError`.

    Returns
    -------
    result : SpreadResult
        x (n, m), and t, h, steps, certificate (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import spread
    >>> spread(np.array([[3.0, 1.0]]), np.eye(2), h=1.0, relative=False).x
    array([[2., 1.]])
    """
    solver = _Solver(A, h, relative, dtype, n_threads, max_steps)
    Y = vectors(Y, "Y", solver.d)
    n = len(Y)
    x = np.empty((n, solver.m), solver.dtype)
    t = np.empty(n, solver.dtype)
    h_reached, certificate = np.empty(n), np.empty(n)
    steps = np.empty(n, np.int32)
    for start, piece in chunks(Y, "Y", solver.dtype, solver.chunk_rows):
        rows = slice(start, start + len(piece))
        x[rows], t[rows], h_reached[rows], steps[rows], certificate[rows], _ = solver(piece, start, want_bits=False)
    return SpreadResult(x, t, h_reached, steps, certificate)


def spread_bits(
    Y: Any,
    A: Frame,
    h: float = 0.0,
    *,
    relative: bool = True,
    dtype: npt.DTypeLike = np.float64,
    n_threads: int | None = None,
    max_steps: int | None = None,
) -> npt.NDArray[np.uint8]:
    """The signs of the spread representations, packed: the codes of the paper's section 3.2.

    Takes the parameters of `spread`. Working memory is per thread, not per vector: nothing of size n x m is held.

    Returns
    -------
    bits : ndarray of shape (n, ceil(m / 8)), uint8
        Most significant bit first, as `numpy.packbits`; 1 where x_i >= 0. Where x = 0 the bits are those of A.T @ y.
    """
    solver = _Solver(A, h, relative, dtype, n_threads, max_steps)
    Y = vectors(Y, "Y", solver.d)
    bits = np.empty((len(Y), -(-solver.m // 8)), np.uint8)
    for start, piece in chunks(Y, "Y", solver.dtype, solver.chunk_rows):
        bits[start : start + len(piece)] = solver(piece, start, want_bits=True)[0]
    return bits


def default_step_limit(d: int, m: int) -> int:
    """A bound far above the breakpoints of any path met: they number about 1.5 min(d, m)."""
    return 100 + 20 * (d + m)


def require_full_rank(A: Float64Array, name: str) -> None:
    """Raise `RankError` unless A has rank min(d, m), judged after scaling rows and columns to norm 1."""
    scaled = A / np.abs(A).max() if A.any() else A
    for axis in (1, 0):
        norms = np.linalg.norm(scaled, axis=axis, keepdims=True)
        scaled = scaled / np.where(norms > 0, norms, 1)
    rank = int(np.linalg.matrix_rank(scaled))
    if rank < min(A.shape):
        raise RankError(
            f"{name} is {A.shape[0]} x {A.shape[1]} but has rank {rank}: full rank ({min(A.shape)}) is needed; "
            "drop the dependent rows, reducing the vectors' dimension with them",
            rank,
        )


class _Solver:
    """A frame prepared for the native solver, and the options: the arguments of `spread`, checked."""

    def __init__(
        self, A: Frame, h: float, relative: bool, dtype: npt.DTypeLike, n_threads: int | None, max_steps: int | None
    ) -> None:
        if isinstance(A, BlockFrame):
            blocks, rotation = A.blocks, A.rotation
            for k, block in enumerate(blocks):
                require_full_rank(block, f"A.blocks[{k}]")
        else:
            blocks, rotation = (frame_matrix(A),), None
            require_full_rank(blocks[0], "A")
        self.d = sum(block.shape[0] for block in blocks)
        self.m = sum(block.shape[1] for block in blocks)
        self.h = nonnegative(h, "h")
        self.relative = bool(relative)
        self.dtype = float_dtype(dtype, "dtype")
        self.threads = thread_count(n_threads)
        self.max_steps = default_step_limit(self.d, self.m) if max_steps is None else integer(max_steps, "max_steps", 0)
        self.chunk_rows = max(1024, _CHUNK_BYTES // (self.d * self.dtype.itemsize))
        exponent = int(np.frexp(max(np.abs(block).max() for block in blocks))[1])
        self.frame = _core.SpreadFrame([np.ldexp(block, -exponent) for block in blocks], rotation, exponent)

    def __call__(self, piece: npt.NDArray[Any], first_row: int, want_bits: bool) -> tuple[Any, ...]:
        status, row, certificate, *outputs = self.frame.solve(
            piece, self.h, self.relative, self.max_steps, self.threads, want_bits
        )
        if status == 0:
            return tuple(outputs)
        where = f"Y row {first_row + row}"
        if status == 1:
            raise StepLimitError(
                f"{where}: the path has more than max_steps = {self.max_steps} breakpoints; raise max_steps or h",
                first_row + row,
            )
        if status == 2:
            raise AccuracyError(
                f"{where}: the solution violates the optimality conditions by {certificate:.1e} of ||A'y||_1; A is too "
                "badly conditioned for float64: rescale its rows or raise h",
                first_row + row,
                certificate,
            )
        raise InputError(f"{where}: its representation does not fit {self.dtype.name}; scale Y or A")
