"""Scales: the one number that multiplies what a code's symbols rebuild."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, nonnegative
from antisparse.errors import InputError
from antisparse.refine import LEAST_SCALE

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ScaleByte:
    """A scale of each vector's own, kept as its inverse in one byte: the limits of the scan are linear in that.

    A byte v stands for the scale ``1 / (low + step v)``.
    """

    low: float
    step: float
    n_bytes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", nonnegative(self.low, "low"))
        object.__setattr__(self, "step", nonnegative(self.step, "step"))
        if self.low == 0:
            raise InputError("low = 0; an inverse scale must be positive")

    @classmethod
    def fit(cls, dots: Float64Array, squares: Float64Array) -> "ScaleByte":
        """The range of the scales that suit training vectors best."""
        # A few vectors equal their mean, and have a scale of nearly 0: they shall not set the range.
        inverse = 1 / np.maximum(best_scales(dots, squares), LEAST_SCALE)
        low, high = value_range(inverse, 0.01, 0.5)
        low = max(low, high / 64)
        return cls(low, (high - low) / 255)

    def encode(self, dots: Float64Array, squares: Float64Array) -> Bytes:
        """The byte of each vector's best scale, from ``y . A x`` and ``||A x||^2``."""
        inverse = 1 / np.maximum(best_scales(dots, squares), LEAST_SCALE)
        return np.clip(np.round((inverse - self.low) / (self.step or 1.0)), 0, 255).astype(np.uint8)

    def decode(self, numbers: Bytes) -> Float64Array:
        """The scales that bytes stand for."""
        scales: Float64Array = 1 / (self.low + self.step * numbers.astype(np.float64))
        return scales

    def describe(self) -> str:
        """A few words for a person."""
        return "scale byte"


@dataclass(frozen=True)
class FixedLength:
    """No scale is kept: every rebuilt vector has the same length, ``sigma A b / ||A b||``, as in the paper.

    A code whose combination A b vanishes has no direction: it is rebuilt as the mean, and searches take it for a vector
    of length sigma at a right angle to the query.

    Attributes
    ----------
    sigma : float
        The mean length of the training vectors.
    """

    sigma: float
    n_bytes: ClassVar[int] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", nonnegative(self.sigma, "sigma"))
        if not math.isfinite(self.sigma * self.sigma):  # which distances hold
            raise InputError(f"sigma = {self.sigma}; its square does not fit float64: scale the vectors down")

    def decode(self, combined: Float64Array) -> Float64Array:
        """The scale of each combination A b; zero where it vanishes."""
        norms = np.sqrt((combined * combined).sum(axis=1))
        scales: Float64Array = np.divide(self.sigma, norms, out=np.zeros_like(norms), where=norms > 0)
        return scales

    def describe(self) -> str:
        """A few words for a person."""
        return "one length for all"


Scale = ScaleByte | FixedLength


def best_scales(dots: Float64Array, squares: Float64Array) -> Float64Array:
    """The s of least ``||y - s A x||``, at least 0, from ``y . A x`` and ``||A x||^2``."""
    scales: Float64Array = np.maximum(np.divide(dots, squares, out=np.zeros_like(squares), where=squares > 0), 0)
    return scales


def first_scales(residual: Float64Array, norm: float) -> npt.NDArray[np.float32]:
    """The scales that codes are first sought for: by the vectors' lengths."""
    with np.errstate(over="ignore"):  # of a vector beyond all bounds: the largest scale
        lengths = np.sqrt((residual * residual).sum(axis=1))
    scales: npt.NDArray[np.float32] = np.clip(lengths / norm, LEAST_SCALE, 1e18).astype(np.float32)
    return scales


def value_range(values: Float64Array, tail: float = 0.0005, more: float = 0.05) -> tuple[float, float]:
    """Where nearly all values lie, and a little more."""
    low, high = np.quantile(values, [tail, 1 - tail])
    room = more * (high - low)
    return float(low - room), float(high + room)
