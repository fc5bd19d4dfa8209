"""Many vectors through the native solver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import chunks, float_dtype, integer, nonnegative, thread_count, vectors
from antisparse._core import SpreadFrame
from antisparse.errors import AccuracyError, InputError, StepLimitError
from antisparse.frames import BlockFrame, Frame, frame_matrix
from antisparse.spread.problem import SpreadResult, default_step_limit, require_full_rank

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
        if isinstance(A, BlockFrame):
            blocks, rotation = A.blocks, A.rotation
            for k, block in enumerate(blocks):
                require_full_rank(block, f"A.blocks[{k}]")
        else:
            blocks, rotation = (frame_matrix(A),), None
            require_full_rank(blocks[0], "A")
        self.d = sum(block.shape[0] for block in blocks)
        self.m = sum(block.shape[1] for block in blocks)
        exponent = int(np.frexp(max(np.abs(block).max() for block in blocks))[1])
        self._frame = SpreadFrame([np.ldexp(block, -exponent) for block in blocks], rotation, exponent)

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
            x[rows], t[rows], h_reached[rows], steps[rows], certificate[rows], _ = found
        return SpreadResult(x, t, h_reached, steps, certificate)

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
            relative=bool(relative),
            dtype=precision,
            threads=thread_count(n_threads),
            max_steps=default_step_limit(self.d, self.m) if max_steps is None else integer(max_steps, "max_steps", 0),
            chunk_rows=max(1024, _CHUNK_BYTES // (self.d * precision.itemsize)),
        )

    def _solve(self, piece: npt.NDArray[Any], first_row: int, options: "_Options", want_bits: bool) -> tuple[Any, ...]:
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


@dataclass(frozen=True)
class _Options:
    """The arguments of a call, checked."""

    h: float
    relative: bool
    dtype: np.dtype[Any]
    threads: int
    max_steps: int
    chunk_rows: int
