"""Metrics: what is nearest. A metric prepares vectors, and says what the scores of a scan stand for."""

from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, choice
from antisparse.errors import InputError

MetricName = Literal["l2", "cosine", "ip"]
_UNIT = 16 * np.finfo(np.float64).eps  # how far from 1 rounding leaves the squared norm of a vector of unit length


class Metric(Protocol):
    """What codecs, searches and indexes need to know of a metric.

    Attributes
    ----------
    name : str
    centres : bool
        Scores are squared distances, so that a query may be centred like the vectors, and the squared norm of a rebuilt
        vector counts. Otherwise scores are twice the negative inner product, and neither holds.
    """

    name: MetricName
    centres: bool

    def prepare(self, X: npt.NDArray[Any], name: str, first_row: int = 0) -> npt.NDArray[Any]:
        """Vectors as the metric compares them; used alike for training, for encoding and for queries."""

    def constant(self, Q: npt.NDArray[Any], mean: Float64Array) -> Float64Array:
        """What the score of every code has in common for a prepared query, given the mean that was taken off."""

    def distances(self, scores: Float64Array) -> Float64Array:
        """The distances that scores stand for."""

    def exact(self, q: Float64Array, X: npt.NDArray[Any], name: str) -> Float64Array:
        """The true distances of one prepared query to vectors (n, d)."""


class L2:
    """The squared Euclidean distance."""

    name: MetricName = "l2"
    centres = True

    def prepare(self, X: npt.NDArray[Any], name: str, first_row: int = 0) -> npt.NDArray[Any]:
        """The vectors as they are."""
        return X

    def constant(self, Q: npt.NDArray[Any], mean: Float64Array) -> Float64Array:
        """``||q - mean||^2``."""
        squares: Float64Array = ((by_rows(Q) - mean) ** 2).sum(axis=1)
        return squares

    def distances(self, scores: Float64Array) -> Float64Array:
        """The scores, which rounding may have made negative."""
        return np.maximum(scores, 0)

    def exact(self, q: Float64Array, X: npt.NDArray[Any], name: str) -> Float64Array:
        """``||q - x||^2``."""
        squares: Float64Array = ((by_rows(X) - q) ** 2).sum(axis=1)
        return squares


class Cosine(L2):
    """One minus the cosine: half the squared Euclidean distance of vectors of unit length."""

    name: MetricName = "cosine"

    def prepare(self, X: npt.NDArray[Any], name: str, first_row: int = 0) -> npt.NDArray[Any]:
        """The vectors divided by their lengths; an error names one that has none.

        One of unit length, but for rounding, stays as it is: to prepare vectors twice is to prepare them once.
        """
        exact = by_rows(X)
        largest = np.abs(exact).max(axis=1, initial=0, keepdims=True)
        if not largest.all():
            row = first_row + int(np.argmin(largest))
            raise InputError(
                f"{name} row {row} is zero, and has no cosine with anything; remove it, or use another metric"
            )
        # Brought near 1 first, so that squares stay in range, by powers of two, which round nothing.
        power = np.frexp(largest)[1]
        near = np.ldexp(exact, -power)
        squares = (near * near).sum(axis=1, keepdims=True)
        with np.errstate(over="ignore", under="ignore"):
            is_unit = np.abs(np.ldexp(squares, 2 * power) - 1) <= _UNIT
        unit: Float64Array = np.where(is_unit, exact, near / np.sqrt(squares))
        return unit

    def distances(self, scores: Float64Array) -> Float64Array:
        """``1 - cos(q, y)``."""
        return np.maximum(scores, 0) / 2

    def exact(self, q: Float64Array, X: npt.NDArray[Any], name: str) -> Float64Array:
        """``1 - cos(q, x)``."""
        cosines: Float64Array = (self.prepare(X, name) * q).sum(axis=1)
        return np.maximum(1.0 - cosines, 0)


class InnerProduct:
    """The negative inner product, so that a smaller value is nearer."""

    name: MetricName = "ip"
    centres = False

    def prepare(self, X: npt.NDArray[Any], name: str, first_row: int = 0) -> npt.NDArray[Any]:
        """The vectors as they are."""
        return X

    def constant(self, Q: npt.NDArray[Any], mean: Float64Array) -> Float64Array:
        """``-2 q . mean``."""
        products: Float64Array = (by_rows(Q) * (-2 * mean)).sum(axis=1)
        return products

    def distances(self, scores: Float64Array) -> Float64Array:
        """``-q . y``."""
        return scores / 2

    def exact(self, q: Float64Array, X: npt.NDArray[Any], name: str) -> Float64Array:
        """``-q . x``."""
        products: Float64Array = -(by_rows(X) * q).sum(axis=1)
        return products


def by_rows(X: npt.NDArray[Any]) -> Float64Array:
    """Vectors in float64, row after row: sums along rows then depend neither on the batch nor on the order in memory.

    A product by BLAS would depend on the batch.
    """
    return np.ascontiguousarray(X, np.float64)


METRICS: dict[str, Metric] = {"l2": L2(), "cosine": Cosine(), "ip": InnerProduct()}


def metric_named(name: Any) -> Metric:
    """The metric of this name, or an error that lists them."""
    return METRICS[choice(name, "metric", METRICS)]
