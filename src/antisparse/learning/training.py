"""Training vectors, where learning starts, and when its rounds end."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from antisparse._arrays import Float64Array, FloatArray
from antisparse.codec.cells import MANY, Labels, nearest_mean
from antisparse.errors import InputError
from antisparse.learning.centroids import ordered_means

_FAR = 10.0  # times the median length
_CHUNK_ROWS = 4096
_MOST_OF_MANY = 64  # vectors a centroid
_GAIN = 1e-3  # relative, of the held-out error: less in a round, twice, ends it


@dataclass(frozen=True)
class Learned:
    """A matrix and means fitted to data: ``y ~ means[k] + s A x``, s = 1 or, with scales, one a vector.

    Attributes
    ----------
    matrix : ndarray of shape (d, columns)
        A frame with a column for every sign, or codebooks with 16 for every nibble.
    means : ndarray of shape (K, d)
    norm : float
        The root mean square of the residuals ``y - means[k]``, where a vector's scale is about 1.
    errors : list of float
        The mean squared error after each round, relative to the variance: of signs on held-out training vectors, of
        codebooks on those of the round.
    """

    matrix: Float64Array
    means: Float64Array
    norm: float
    errors: list[float]

    def __repr__(self) -> str:
        rounds, error = len(self.errors), min(self.errors, default=float("nan"))
        shape = f"{self.matrix.shape[0]} x {self.matrix.shape[1]}"
        return f"Learned({shape} matrix, {len(self.means)} means; error {error:.4f} after {rounds} rounds)"


@dataclass(frozen=True)
class Training:
    """Training vectors, their means, and where learning starts."""

    vectors: Float64Array
    means: Float64Array
    labels: Labels  # the nearest mean of each vector

    @classmethod
    def of(cls, X: Float64Array, means: int, random: np.random.RandomState, threads: int) -> "Training":
        """All of X, with means found by k-means."""
        mu = kmeans(X, means, random, threads)
        return cls(X, mu, nearest_mean(X, mu, threads))

    def residual(self, out: Float64Array | None = None) -> Float64Array:
        """The vectors less their means; made anew, for it takes as much memory as the vectors."""
        residual = np.empty_like(self.vectors) if out is None else out
        for rows in self._chunks():
            np.subtract(self.vectors[rows], self.means[self.labels[rows]], out=residual[rows])
        return residual

    def unit(self, overwrite: bool = False) -> Float64Array:
        """The residuals over their root mean square; made anew, too, or in place of the vectors."""
        norm, _ = self.norm, self.extent  # which are of the vectors
        unit = self.residual(self.vectors if overwrite else None)
        unit /= norm
        return unit

    def root(self, unit: Float64Array) -> Float64Array:
        """A square root of the residuals' covariance, from unit ones: times Gaussian columns, a first matrix."""
        values, vectors = np.linalg.eigh(unit.T @ unit / len(unit))
        root: Float64Array = self.norm * vectors * np.sqrt(np.maximum(values, 1e-12 * self.extent**2))
        return root

    @cached_property
    def extent(self) -> float:
        """The largest entry of a vector less the mean of all, over the root mean square of the residuals."""
        mean = self.vectors.mean(axis=0)
        return max(float(np.abs(self.vectors[rows] - mean).max()) for rows in self._chunks()) / self.norm or 1.0

    @cached_property
    def norm(self) -> float:
        """The root mean square of the residuals."""
        squares = np.empty(len(self.vectors))
        for rows in self._chunks():
            residual = self.vectors[rows] - self.means[self.labels[rows]]
            squares[rows] = (residual * residual).sum(axis=1)
        return float(np.sqrt(squares.mean())) or 1.0

    def _chunks(self) -> Iterator[slice]:
        """A few thousand rows at a time: learning holds no more copies of its vectors than it must."""
        return (slice(first, first + _CHUNK_ROWS) for first in range(0, len(self.vectors), _CHUNK_ROWS))


def usual_vectors(X: FloatArray) -> FloatArray:
    """Training vectors but for those that lie far beyond most: a few of them would set the scale of all others."""
    mean = X.mean(axis=0, dtype=np.float64)
    squares = np.concatenate(
        [((X[at : at + _CHUNK_ROWS] - mean) ** 2).sum(axis=1) for at in range(0, len(X), _CHUNK_ROWS)]
    )
    within = squares <= _FAR**2 * np.median(squares)
    return X if within.all() or not np.median(squares) > 0 else X[within]


def check_training(X: FloatArray, means: int) -> None:
    """Raise unless there are vectors, and no fewer than means."""
    if not X.size:
        raise InputError(f"X has shape {X.shape}; learning needs vectors")
    if means > len(X):
        raise InputError(f"means = {means}, but X has {len(X)} vectors; lower it or pass more vectors")


def held_out(X: Float64Array, least: int, random: np.random.RandomState) -> tuple[Float64Array, Float64Array]:
    """A tenth of X, at most 5,000 vectors, and the rest, at least `least`; of fewer than 100 vectors all, twice."""
    order = random.permutation(len(X))
    held = min(len(X) // 10, 5000, max(len(X) - least, 0)) if len(X) >= 100 else 0
    return (X[order[:held]] if held else X), X[order[held:]]


class Rounds:
    """The best matrix of all rounds, by its error on vectors that were held out."""

    def __init__(self, start: Training, variance: float) -> None:
        self._start, self._variance = start, variance
        self._errors: list[float] = []
        self._idle = 0
        self.best: Learned

    def end(self, matrix: Float64Array, means: Float64Array, error: float) -> bool:
        """Take a round's matrix, with its mean squared error; whether rounds no longer gain."""
        error /= self._variance
        least = min(self._errors, default=np.inf)
        if not self._errors or error < least:
            self.best = Learned(matrix, means, self._start.norm, self._errors)
        self._idle = self._idle + 1 if self._errors and not error < (1 - _GAIN) * least else 0
        self._errors.append(error)
        return self._idle == 2

    @property
    def note(self) -> str:
        """The error so far, for a progress bar."""
        return f"error {min(self._errors):.4f}" if self._errors else ""


def kmeans(
    X: FloatArray, count: int, random: np.random.RandomState, threads: int = 1, progress: bool = False
) -> Float64Array:
    """The centroids (count, d) of k-means, from 256 vectors a centroid at most; of many, in order, from 64."""
    if count == 1:
        mean: Float64Array = X.mean(axis=0, keepdims=True, dtype=np.float64)
        return mean
    if count > MANY:
        few = X if len(X) <= _MOST_OF_MANY * count else X[random.choice(len(X), _MOST_OF_MANY * count, replace=False)]
        return ordered_means(few, count, random, threads, progress)
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    sample = X if len(X) <= 256 * count else X[random.choice(len(X), 256 * count, replace=False)]
    seed = int(random.randint(np.iinfo(np.int32).max))
    # One thread: the order of sums, and so the centroids, do not depend on how many there are.
    with threadpool_limits(1):
        model = MiniBatchKMeans(
            count, batch_size=max(2048, 4 * count), max_iter=30, n_init=1, random_state=seed, max_no_improvement=20
        )
        model.fit(sample)
    centres: Float64Array = np.ascontiguousarray(model.cluster_centers_, np.float64)
    return centres
