"""Signs: every bit is the sign of one column of a frame. Three classes differ in how the signs are found."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, choice, frozen_array, nonnegative
from antisparse._core import project
from antisparse.codec.frozen import Frozen
from antisparse.codec.scale import best_scales, first_scales
from antisparse.codec.symbols import Found
from antisparse.codes import Codes, unpack
from antisparse.errors import InputError, UnsupportedError
from antisparse.frames import BlockFrame, Frame
from antisparse.refine import LEAST_SCALE, TENURE, Refiner
from antisparse.spread import SpreadSolver

EFFORTS = (0, 1, 2, 3)
# By effort: sweeps of annealing, flips (None: until none gains), their tenure, turns between codes and scales.
_SEARCH = {1: (6, None, 0, 1), 2: (30, 100, TENURE, 1), 3: (40, 300, TENURE, 2)}


@dataclass(frozen=True, eq=False)
class ProjectedSigns(Frozen):
    """The signs of projections, ``sign(A.T @ y)``: LSH, and ITQ with its rotation as the frame.

    Attributes
    ----------
    frame : ndarray of shape (r, n_bits) or BlockFrame
    """

    frame: Frame
    columns_per_nibble: ClassVar[int] = 4
    measured: ClassVar[bool] = False
    compares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = self.frame
        # Anew in either case: copying and pickling leave the arrays of a BlockFrame writable.
        private = (
            BlockFrame(given.blocks, given.rotation)
            if isinstance(given, BlockFrame)
            else frozen_array(given, "frame", 2)
        )
        object.__setattr__(self, "frame", private)

    @property
    def n_bits(self) -> int:
        """One bit a column."""
        return int(self.frame.shape[1])

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""
        return int(self.frame.shape[0])

    @property
    def matrix(self) -> Float64Array:
        """The frame as one matrix."""
        return self.frame.matrix if isinstance(self.frame, BlockFrame) else self.frame

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The matrix alone."""
        return (self.matrix,)

    def expand(self, symbols: Codes) -> npt.NDArray[np.int8]:
        """The signs."""
        return unpack(symbols, self.n_bits)

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """``sign(A.T @ y)``; zero counts as positive."""
        symbols = np.packbits(self.project(Y, threads) >= 0, axis=1)
        return Found(symbols, np.zeros(len(Y)), np.zeros(len(Y)))

    def project(self, Y: Float64Array, threads: int) -> Float64Array:
        """``A.T @ y``."""
        projected: Float64Array = project(np.ascontiguousarray(Y), np.ascontiguousarray(self.matrix), threads)
        return projected

    def weights(self, Y: Float64Array, query: Literal["projection", "spread"], threads: int) -> Float64Array:
        """What each sign of a query counts for in asymmetric search, (n, n_bits)."""
        if query != "projection":
            raise UnsupportedError("these codes are no signs of a spread representation; pass query='projection'")
        return self.project(Y, threads)

    def describe(self) -> str:
        """A few words for a person."""
        return f"{self.n_bits} signs"


@dataclass(frozen=True, eq=False)
class SpreadSigns(ProjectedSigns):
    """The signs of the spread representation (section 2 of the paper), refined by `effort` for the direction of A b.

    Attributes
    ----------
    h : float
        The penalty.
    relative_h : bool
        h is a fraction of each vector's ``||A.T @ y||_1``, not absolute.
    effort : {0, 1, 2, 3}
        0: the signs of the spread representation; 1: greedy flips from these; 2 and 3: annealing and tabu flips.
    """

    h: float = 0.1
    relative_h: bool = True
    effort: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "h", nonnegative(self.h, "h"))
        object.__setattr__(self, "relative_h", boolean(self.relative_h, "relative_h"))
        object.__setattr__(self, "effort", choice(self.effort, "effort", EFFORTS))

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """Signs, from the spread representation on."""
        bits = self._solver.bits(Y, self.h, relative=self.relative_h, dtype=np.float32, n_threads=threads)
        if self.effort == 0:
            return Found(bits, np.zeros(len(Y)), np.zeros(len(Y)))
        correlations, run = self._refiner.correlations(Y, threads), self._refiner.run
        if self.effort == 1:
            return Found(bits, *run(correlations, bits, 0, 10 * self.n_bits, 0, "cosine", threads))
        # A drawn frame has no scale of its own: that of the spread code.
        dots, squares = run(correlations, bits, 0, 0, 0, "cosine", threads)
        scales = np.clip(best_scales(dots, squares), LEAST_SCALE, 1e18).astype(np.float32)
        sweeps, flips, tenure, _ = _SEARCH[self.effort]
        flips = 10 * self.n_bits if flips is None else flips
        return Found(bits, *run(correlations, bits, sweeps, flips, tenure, "cosine", threads, scales))

    def weights(self, Y: Float64Array, query: Literal["projection", "spread"], threads: int) -> Float64Array:
        """``A.T @ q``, or the spread representation of q over its largest component."""
        if query == "projection":
            return self.project(Y, threads)
        result = self._solver.spread(Y, self.h, relative=self.relative_h, n_threads=threads)
        t = result.t[:, None]
        weights: Float64Array = np.divide(result.x, t, out=np.zeros_like(result.x), where=t > 0)
        return weights

    @cached_property
    def _solver(self) -> SpreadSolver:
        return SpreadSolver(self.frame)

    @cached_property
    def _refiner(self) -> Refiner:
        return Refiner(self.frame)


@dataclass(frozen=True, eq=False)
class LearnedSigns(ProjectedSigns):
    """Signs in a learned frame, which has the right scale: found for the least ``||y - s A b||`` by annealing.

    Attributes
    ----------
    effort : {1, 2, 3}
        1: a short annealing and greedy flips; 2 and 3: longer annealing and tabu flips (docs/refine.md).
    norm : float
        The root mean square of the training residuals: where a vector's own scale is about 1.
    """

    effort: int = 2
    norm: float = 1.0
    measured: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "effort", choice(self.effort, "effort", EFFORTS[1:]))
        object.__setattr__(self, "norm", nonnegative(self.norm, "norm"))
        if self.norm == 0:
            raise InputError("norm = 0; it must be positive")

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """Signs from scratch."""
        bits = np.zeros((len(Y), -(-self.n_bits // 8)), np.uint8)
        scales = first_scales(Y, self.norm) if scaled else None
        sweeps, flips, tenure, turns = _SEARCH[self.effort]
        flips = 10 * self.n_bits if flips is None else flips
        run = self._refiner.run
        correlations = self._refiner.correlations(Y, threads)
        return Found(
            bits,
            *run(correlations, bits, sweeps, flips, tenure, "euclidean", threads, scales, turns if scaled else 0),
        )

    @cached_property
    def _refiner(self) -> Refiner:
        return Refiner(self.frame)


@dataclass(frozen=True, eq=False)
class SpectralSigns(Frozen):
    """Signs of the Laplacian's eigenfunctions on a box (Weiss, Torralba, Fergus 2009): they rebuild nothing.

    Attributes
    ----------
    lower, extent : ndarray of shape (r,)
        The box.
    axis, mode : ndarray of shape (n_bits,), whole numbers
        Which component, and which multiple of its frequency, each bit looks at.
    """

    lower: Float64Array
    extent: Float64Array
    axis: Float64Array
    mode: Float64Array
    columns_per_nibble: ClassVar[int] = 0
    measured: ClassVar[bool] = False
    compares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("lower", "extent", "axis", "mode"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), name, 1))
        if len(self.lower) != len(self.extent) or len(self.axis) != len(self.mode):
            raise InputError("lower and extent, or axis and mode, are not of one length")
        if not ((self.axis >= 0) & (self.axis < len(self.lower)) & (self.axis == np.round(self.axis))).all():
            raise InputError("axis names a component that does not exist")

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""
        return len(self.lower)

    @property
    def n_bits(self) -> int:
        """One bit an eigenfunction."""
        return len(self.axis)

    @property
    def matrix(self) -> Float64Array:
        """There is none."""
        raise UnsupportedError(
            "spectral hashing cannot rebuild vectors from codes; use LearnedEncoder, AntiSparseEncoder, LSHEncoder or "
            "ITQEncoder, or search by method='hamming'"
        )

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The matrix alone."""
        return (self.matrix,)

    def expand(self, symbols: Codes) -> npt.NDArray[np.int8]:
        """The signs."""
        return unpack(symbols, self.n_bits)

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """The signs of the eigenfunctions."""
        with np.errstate(divide="ignore", invalid="ignore"):
            position = np.where(self.extent > 0, (Y - self.lower) / self.extent, 0.0)
        value = np.sin(np.pi / 2 + np.pi * self.mode * position[:, self.axis.astype(np.int64)])
        return Found(np.packbits(value >= 0, axis=1), np.zeros(len(Y)), np.zeros(len(Y)))

    def weights(self, Y: Float64Array, query: Any, threads: int) -> Float64Array:
        """There are none."""
        raise UnsupportedError("spectral hashing has no real-valued query; search by method='hamming'")

    def describe(self) -> str:
        """A few words for a person."""
        return f"{self.n_bits} spectral signs"
