"""Many vectors through the native solver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from antisparse._arrays import Float64Array, boolean, chunks, float_dtype, integer, nonnegative, thread_count, vectors
from antisparse._core import SpreadFrame, project
from antisparse.errors import AccuracyError, InputError, StepLimitError
from antisparse.frames import BlockFrame, Frame
from antisparse.spread.problem import SpreadResult, default_step_limit, require_full_ranks

_CHUNK_BYTES = 4 << 20  # of converted input held at a time
_CHUNK_WORK = 3_000_000_000  # multiply-adds between two looks at Ctrl-C


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
    """The signs of the spread representations, packed: the codes of the paper's section 3.2.

    Takes the parameters of `spread`. Working memory is per thread, not per vector: nothing of size n x m is held.

    Returns
    -------
    bits : ndarray of shape (n, ceil(m / 8)), uint8
        Most significant bit first, as `numpy.packbits`; 1 where x_i >= 0. Where x = 0 the bits are those of A.T @ y.
    """
    return SpreadSolver(A).bits(Y, h, relative=relative, dtype=dtype, n_threads=n_threads, max_steps=max_steps)


class SpreadSolver:
    """A frame checked and prepared once, for many calls of `spread` and `bits`.

    Preparing a frame takes its rank and its Gram matrix: next to nothing for a small frame, seconds for a dense one of
    thousands of columns.

    Parameters
    ----------
    A : ndarray of shape (d, m) or BlockFrame
        Of full rank.
    """

    def __init__(self, A: Frame) -> None:
        require_full_ranks(A)
        self.A = A if isinstance(A, BlockFrame) else BlockFrame((A,))
        self._given: Frame = A if isinstance(A, BlockFrame) else self.A.blocks[0]  # what results carry
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
        """As the function `spread`."""
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
        return SpreadResult(x, t, h_reached, steps, certificate, Y, self._given)

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
        """As the function `spread_bits`."""
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
        """Rows a native call: so few that Ctrl-C is heard within a second or so, and that they take little memory."""
        work = sum(int(min(b.shape)) ** 2 * int(b.shape[1]) for b in self.A.blocks) + self.d**2
        return max(16, min(_CHUNK_WORK // work, _CHUNK_BYTES // (self.d * itemsize)))

    def _solve(self, piece: npt.NDArray[Any], first_row: int, options: "_Options", want_bits: bool) -> tuple[Any, ...]:
        # At h = 0 the rows of A may be mixed at will; below its own rounding, h is as good as 0.
        if options.h == 0 or (options.relative and options.h < 1e-12):
            if self._whitened is None:
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
    """The frame at h = 0, where A x = y may be replaced by any equations that say the same: those of a tight frame.

    The rows of A enter the path through the correlations, so that badly scaled or nearly dependent rows are met at tiny
    h, below rounding. With A = L Q, Q of orthonormal rows, ``Q x = L^-1 y`` has none of that. For m < d (least squares)
    the equations are first projected on the range of A.
    """

    def __init__(self, A: BlockFrame, frame: SpreadFrame) -> None:
        self.frame = frame
        self.matrix: Float64Array | None = None  # where the frame is tight as it is, nothing is changed
        self.exponent = int(np.frexp(max(np.abs(block).max() for block in A.blocks))[1])
        blocks = [np.ldexp(block, -self.exponent) for block in A.blocks]
        if all(_is_tight(block) for block in blocks):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            rows, forward, back = zip(*map(_orthonormal_equations, blocks), strict=True)
            rotation = np.eye(A.shape[0]) if A.rotation is None else A.rotation
            self.forward: Float64Array = np.ascontiguousarray(rotation @ scipy.linalg.block_diag(*forward))
            self.back: Float64Array = np.ascontiguousarray(scipy.linalg.block_diag(*back) @ rotation.T)
        if not np.isfinite(self.forward).all():
            raise InputError("the rows of A span more than the range of float64; rescale them")
        self.frame = SpreadFrame(list(rows), None, 0)
        self.matrix = np.ldexp(A.matrix, -self.exponent)

    def solve(self, piece: npt.NDArray[Any], options: "_Options", want_bits: bool) -> tuple[Any, ...]:
        arguments = (0.0, True, options.max_steps, options.threads, want_bits)
        if self.matrix is None:
            return self.frame.solve(piece, *arguments)
        exponents = np.frexp(np.abs(piece).max(axis=1, initial=0))[1]
        y = np.ldexp(piece.astype(np.float64), -exponents[:, None])
        z = project(y, self.forward, options.threads)
        # What explicit inverses lose, one step of refinement regains.
        z = z + project(y - project(z, self.back, options.threads), self.forward, options.threads)
        status, row, certificate, out, t, h, steps, found = self.frame.solve(z.astype(options.dtype), *arguments)
        if status != 0 or want_bits:
            return status, row, certificate, out, t, h, steps, found
        # What the frame as it was given says of x.
        c, h1 = (y - out @ self.matrix.T) @ self.matrix, np.abs(y @ self.matrix).sum(axis=1)
        violation = np.divide(np.abs(c).sum(axis=1), h1, out=np.zeros_like(h1), where=h1 > 0)
        found = np.maximum(found, violation)
        exponents = exponents - self.exponent
        with np.errstate(over="ignore"):
            out, t = np.ldexp(out, exponents[:, None]), np.ldexp(t, exponents)
        # (In float32 the rounding of x alone may break it: there the well-put equations are the judge.)
        unmet = violation > (1e-9 if options.dtype == np.float64 else np.inf)
        for code, bad in ((2, unmet), (3, ~np.isfinite(t))):
            if bad.any():
                status, row = code, int(bad.argmax())
                certificate = float(found[row])
        return status, row, certificate, out, t, h, steps, found


def _is_tight(block: Float64Array) -> bool:
    """Whether the rows are orthogonal and of one norm."""
    if block.shape[0] > block.shape[1]:
        return False
    gram = block @ block.T
    return bool(np.abs(gram / gram[0, 0] - np.eye(len(gram))).max() < 1e-8) if 0 < gram[0, 0] < np.inf else False


def _orthonormal_equations(block: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Orthonormal rows Q, and the maps between right-hand sides: of A x = y to Q x = z by y @ forward, z @ back."""
    d, m = block.shape
    if m < d:  # A'A x = A'y: project on the range of A = U S
        u, square = np.linalg.qr(block / np.abs(block).max())
        scale = np.abs(block).max()
        q, r = np.linalg.qr(square.T)
        inverse = scipy.linalg.solve_triangular(r, np.eye(m))
        return q.T.copy(), u @ inverse / scale, r @ u.T * scale
    sizes = np.ldexp(1.0, np.frexp(np.abs(block).max(axis=1))[1])
    q, r = np.linalg.qr((block / sizes[:, None]).T)
    return q.T.copy(), scipy.linalg.solve_triangular(r, np.eye(d)) / sizes[:, None], r * sizes


@dataclass(frozen=True)
class _Options:
    """The arguments of a call, checked."""

    h: float
    relative: bool
    dtype: np.dtype[Any]
    threads: int
    max_steps: int
    chunk_rows: int
