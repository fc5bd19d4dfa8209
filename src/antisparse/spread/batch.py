"""Spread representations of many vectors by the native solver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, chunks, float_dtype, integer, nonnegative, thread_count, vectors
from antisparse._core import SpreadFrame, project
from antisparse.errors import AccuracyError, InputError, StepLimitError
from antisparse.frames import BlockFrame, Frame
from antisparse.spread.problem import SpreadResult, default_step_limit, require_full_ranks

_CHUNK_BYTES = 4 << 20  # at most this much converted input is held at a time


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

    The native code follows each vector's path and checks its own answer against the optimality conditions. A vector
    that fails the check is solved again by a slower, more robust method. If it still fails, `AccuracyError` is raised.

    Parameters
    ----------
    Y : array of shape (n, d)
        Floats of any width or integers, in any memory order, also memory-mapped.
    A : ndarray of shape (d, m) or BlockFrame
        Of full rank.
    h : float
        0 gives the minimum-infinity-norm solution of A x = y.
    relative : bool
        If True, h is a fraction of each vector's own ``h_1 = ||A.T @ y||_1``, so that x scales with y; for h >= 1,
        x = 0. If False, h is absolute, as in the paper.
    dtype : numpy.float64 or numpy.float32
        The precision of the computation and of the result. float32 takes about half the time.
    n_threads : int, optional
        By default, one thread for each available CPU. The result does not depend on it.
    max_steps : int, optional
        The largest number of breakpoints allowed for one vector; beyond it, `StepLimitError` is raised.

    Returns
    -------
    result : SpreadResult
        Arrays x of shape (n, m) and t, h, steps and certificate of shape (n,), and references to Y and A, so that
        ``certificate(result)`` and ``objective(result)`` need no other argument.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import spread
    >>> spread(np.array([[3.0, 1.0]]), np.eye(2), h=1.0, relative=False).x
    array([[2., 1.]])
    """
    return SpreadSolver(A).spread(Y, h, relative=relative, dtype=dtype, n_threads=n_threads, max_steps=max_steps)


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
    """The signs of the spread representations, packed into bytes: the codes of the paper's section 3.2.

    Takes the parameters of `spread`. Working memory grows with the threads, not with n: no n x m array is allocated.

    Returns
    -------
    bits : ndarray of shape (n, ceil(m / 8)), uint8
        Most significant bit first, as `numpy.packbits` does; a bit is 1 where x_i >= 0. If all of x is 0, the bits are
        the signs of A.T @ y.
    """
    return SpreadSolver(A).bits(Y, h, relative=relative, dtype=dtype, n_threads=n_threads, max_steps=max_steps)


class SpreadSolver:
    """A frame that is checked and prepared once, for many calls of `spread` and `bits`.

    Preparation computes the rank and the Gram matrix of the frame: negligible for a small frame, seconds for a dense
    one with thousands of columns.

    Parameters
    ----------
    A : ndarray of shape (d, m) or BlockFrame
        Of full rank.
    """

    def __init__(self, A: Frame) -> None:
        require_full_ranks(A)
        self.A = A if isinstance(A, BlockFrame) else BlockFrame((A,))
        self._result_frame: Frame = A if isinstance(A, BlockFrame) else self.A.blocks[0]
        self.d, self.m = self.A.shape
        integer(self.m, "m", 1, below=2**23)
        exponent = int(np.frexp(max(np.abs(block).max() for block in self.A.blocks))[1])
        self._frame = SpreadFrame([np.ldexp(block, -exponent) for block in self.A.blocks], self.A.rotation, exponent)
        self._whitened: _Whitened | None = None

    def __repr__(self) -> str:
        count = len(self.A.blocks)
        return f"SpreadSolver(A: {self.d} x {self.m}{f' in {count} blocks' if count > 1 else ''})"

    def __reduce__(self) -> tuple[type["SpreadSolver"], tuple[BlockFrame]]:
        return SpreadSolver, (self.A,)

    def spread(
        self,
        Y: Any,
        h: float = 0.0,
        *,
        relative: bool = True,
        dtype: npt.DTypeLike = np.float64,
        n_threads: int | None = None,
        max_steps: int | None = None,
    ) -> SpreadResult:
        """The spread representations of the rows of Y, as by the function `spread`."""
        Y = vectors(Y, "Y", self.d)
        options = self._options(h, relative, dtype, n_threads, max_steps)
        n = len(Y)
        x = np.empty((n, self.m), options.dtype)
        t = np.empty(n, options.dtype)
        h_reached, certificate = np.empty(n), np.empty(n)
        steps = np.empty(n, np.int32)
        for start, piece in chunks(Y, "Y", options.dtype, options.chunk_rows):
            rows = slice(start, start + len(piece))
            found = self._solve(piece, start, options, want_bits=False)
            x[rows], t[rows], h_reached[rows], steps[rows], certificate[rows] = found
        return SpreadResult(x, t, h_reached, steps, certificate, Y, self._result_frame)

    def bits(
        self,
        Y: Any,
        h: float = 0.0,
        *,
        relative: bool = True,
        dtype: npt.DTypeLike = np.float64,
        n_threads: int | None = None,
        max_steps: int | None = None,
    ) -> npt.NDArray[np.uint8]:
        """The packed signs of the spread representations, as by the function `spread_bits`."""
        Y = vectors(Y, "Y", self.d)
        options = self._options(h, relative, dtype, n_threads, max_steps)
        bits = np.empty((len(Y), -(-self.m // 8)), np.uint8)
        for start, piece in chunks(Y, "Y", options.dtype, options.chunk_rows):
            bits[start : start + len(piece)] = self._solve(piece, start, options, want_bits=True)[0]
        return bits

    def _options(
        self, h: float, relative: bool, dtype: npt.DTypeLike, n_threads: int | None, max_steps: int | None
    ) -> "_Options":
        precision = float_dtype(dtype, "dtype")
        return _Options(
            h=nonnegative(h, "h"),
            relative=boolean(relative, "relative"),
            dtype=precision,
            threads=thread_count(n_threads),
            max_steps=default_step_limit(self.d, self.m) if max_steps is None else integer(max_steps, "max_steps", 0),
            chunk_rows=self._chunk_rows(precision.itemsize),
        )

    def _chunk_rows(self, itemsize: int) -> int:
        """Rows per native call: few enough to need little memory."""
        return max(16, _CHUNK_BYTES // (self.d * itemsize))

    def _solve(self, piece: npt.NDArray[Any], first_row: int, options: "_Options", want_bits: bool) -> tuple[Any, ...]:
        # At h = 0 only the solutions of A x = y matter, so equivalent equations may replace it. A relative h below
        # 1e-12 is lost in rounding and counts as 0.
        if options.h == 0 or (options.relative and options.h < 1e-12):
            if self._whitened is None:
                from threadpoolctl import threadpool_limits

                with threadpool_limits(1, "blas"):  # sums have one order
                    self._whitened = _Whitened(self.A, self._frame)
            status, row, certificate, *outputs = self._whitened.solve(piece, options, want_bits)
        else:
            status, row, certificate, *outputs = self._frame.solve(
                piece, options.h, options.relative, options.max_steps, options.threads, want_bits
            )
        if status == 0:
            return tuple(outputs)
        where = f"Y row {first_row + row}"
        if status == 1:
            raise StepLimitError(
                f"{where}: the path has more than max_steps = {options.max_steps} breakpoints; raise max_steps or h",
                first_row + row,
            )
        if status == 2:
            raise AccuracyError(
                f"{where}: the solution violates the optimality conditions by {certificate:.1e} of ||A'y||_1; A is too "
                "badly conditioned for float64: rescale its rows or raise h",
                first_row + row,
                certificate,
            )
        raise InputError(f"{where}: its representation does not fit {options.dtype.name}; scale Y or A")


class _Whitened:
    """The solver for h = 0, where A x = y may be replaced by equivalent equations: those of a tight frame.

    The path sees the rows of A through the correlations, so badly scaled or nearly dependent rows affect it only at an
    h so small that rounding hides it. With A = L Q, where Q has orthonormal rows, ``Q x = L^-1 y`` avoids this. For
    m < d (least squares) the equations are first projected onto the column space of A.
    """

    def __init__(self, A: BlockFrame, frame: SpreadFrame) -> None:
        self.frame = frame
        self.matrix: Float64Array | None = None  # None: the frame is tight already, and is used as it is
        self.exponent = int(np.frexp(max(np.abs(block).max() for block in A.blocks))[1])
        blocks = [np.ldexp(block, -self.exponent) for block in A.blocks]
        if all(_is_tight(block) for block in blocks):
            return
        from scipy.linalg import block_diag

        with np.errstate(over="ignore", invalid="ignore"):
            rows, forward, back = zip(*map(_orthonormal_equations, blocks), strict=True)
            rotation = np.eye(A.shape[0]) if A.rotation is None else A.rotation
            self.forward: Float64Array = np.ascontiguousarray(rotation @ block_diag(*forward))
            self.back: Float64Array = np.ascontiguousarray(block_diag(*back) @ rotation.T)
        if not np.isfinite(self.forward).all():
            raise InputError("the rows of A differ in scale by more than float64 can hold; rescale the rows of A")
        self.frame = SpreadFrame(list(rows), None, 0)
        self.matrix = np.ldexp(A.matrix, -self.exponent)

    def solve(self, piece: npt.NDArray[Any], options: "_Options", want_bits: bool) -> tuple[Any, ...]:
        arguments = (0.0, True, options.max_steps, options.threads, want_bits)
        if self.matrix is None:
            return self.frame.solve(piece, *arguments)
        exponents = np.frexp(np.abs(piece).max(axis=1, initial=0))[1]
        y = np.ldexp(piece.astype(np.float64), -exponents[:, None])
        z = project(y, self.forward, options.threads)
        # One step of iterative refinement restores the accuracy that the explicit inverse loses.
        z = z + project(y - project(z, self.back, options.threads), self.forward, options.threads)
        status, row, certificate, out, t, h, steps, found = self.frame.solve(z.astype(options.dtype), *arguments)
        if status != 0 or want_bits:
            return status, row, certificate, out, t, h, steps, found
        # Check x against the original frame.
        c, h1 = (y - out @ self.matrix.T) @ self.matrix, np.abs(y @ self.matrix).sum(axis=1)
        violation = np.divide(np.abs(c).sum(axis=1), h1, out=np.zeros_like(h1), where=h1 > 0)
        found = np.maximum(found, violation)
        exponents = exponents - self.exponent
        with np.errstate(over="ignore"):
            out, t = np.ldexp(out, exponents[:, None]), np.ldexp(t, exponents)
        # In float32 the rounding of x alone may exceed this bound, so there only the whitened equations are checked.
        unmet = violation > (1e-9 if options.dtype == np.float64 else np.inf)
        for code, bad in ((2, unmet), (3, ~np.isfinite(t))):
            if bad.any():
                status, row = code, int(bad.argmax())
                certificate = float(found[row])
        return status, row, certificate, out, t, h, steps, found


def _is_tight(block: Float64Array) -> bool:
    """Whether the rows are orthogonal and have equal norms."""
    if block.shape[0] > block.shape[1]:
        return False
    gram = block @ block.T
    return bool(np.abs(gram / gram[0, 0] - np.eye(len(gram))).max() < 1e-8) if 0 < gram[0, 0] < np.inf else False


def _orthonormal_equations(block: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Q with orthonormal rows, forward and back: A x = y is equivalent to Q x = z, z = y @ forward, y = z @ back."""
    from scipy.linalg import solve_triangular

    d, m = block.shape
    if m < d:  # A'A x = A'y: project onto the column space of A = U S
        u, square = np.linalg.qr(block / np.abs(block).max())
        scale = np.abs(block).max()
        q, r = np.linalg.qr(square.T)
        inverse = solve_triangular(r, np.eye(m))
        return q.T.copy(), u @ inverse / scale, r @ u.T * scale
    sizes = np.ldexp(1.0, np.frexp(np.abs(block).max(axis=1))[1])
    q, r = np.linalg.qr((block / sizes[:, None]).T)
    return q.T.copy(), solve_triangular(r, np.eye(d)) / sizes[:, None], r * sizes


@dataclass(frozen=True)
class _Options:
    """The checked arguments of one call."""

    h: float
    relative: bool
    dtype: np.dtype[Any]
    threads: int
    max_steps: int
    chunk_rows: int
