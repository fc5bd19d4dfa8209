"""Frames adapted to data: encode the training set, fit the frame to the codes, and again (docs/learn.md)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, float64_array, integer, thread_count
from antisparse._core import nearest
from antisparse.codes import Codes, unpack
from antisparse.errors import InputError
from antisparse.refine import LEAST_SCALE, TENURE, Refiner

Labels = npt.NDArray[np.int64]

_RIDGE = 1e-3  # of the mean of the diagonal
_SWEEPS, _FLIPS = 20, 50  # of the encodings while learning
_GAIN = 1e-3  # relative, of the held-out error: less in a round, twice, ends it
_CHUNK_ROWS = 16384


@dataclass(frozen=True)
class LearnedFrame:
    """A frame and means fitted to data: ``y ~ means[k] + s frame @ b``, s = 1 or, with scales, one a vector.

    Attributes
    ----------
    frame : ndarray of shape (d, n_bits), of words (d, 4 n_bits)
    means : ndarray of shape (K, d)
    size : float
        The root mean square of the residuals ``y - means[k]``, where a vector's scale is about 1.
    errors : list of float
        The mean squared error on held-out training vectors after each round, relative to their variance.
    """

    frame: Float64Array
    means: Float64Array
    size: float
    errors: list[float]


def learn_frame(
    X: Any,
    n_bits: int,
    *,
    means: int = 1,
    scale: bool = False,
    rounds: int = 12,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> LearnedFrame:
    """The frame A and the means mu for which codes rebuild vectors like those of X best.

    Each round encodes the training set from scratch (keeping codes would overfit them to the last frame) and fits A and
    mu to the codes by least squares with a small ridge. A tenth of X, at most 5,000 vectors, is held out: the frame of
    the round that does best on it is returned, and rounds end when they no longer gain.

    Parameters
    ----------
    X : array of shape (n, d)
    n_bits : int
        Below, at or above d.
    means : int
        Vectors are coded relative to the nearest of so many means, found by k-means.
    scale : bool
        Every vector has a scale of its own.
    rounds : int
        At most.
    random_state : int, RandomState or None
        Draws the first frame, the held-out part, and the first means.
    n_threads : int, optional
        All available CPUs by default.
    progress : bool
        Show a progress bar on standard error.
    """
    from sklearn.utils import check_random_state

    X = float64_array(X, "X", 2)
    n_bits, means, rounds = integer(n_bits, "n_bits", 1), integer(means, "means", 1), integer(rounds, "rounds", 1)
    threads = thread_count(n_threads)
    random = check_random_state(random_state)
    start = Training.split(X, means, random, threads)
    train, mu, labels, residual = start.vectors, start.means, start.labels, start.residual
    frame = start.root @ random.standard_normal((X.shape[1], n_bits)) / np.sqrt(n_bits)
    size = start.size
    found = Rounds(start)
    for _ in track_rounds(rounds, progress, "learning the frame"):
        codes, scales = encode_residuals(residual, frame, threads, size if scale else None)
        gram, moment = _moments(residual, codes, scales, n_bits)
        ridge = _RIDGE * np.trace(gram) / n_bits
        frame = np.linalg.solve(gram + ridge * np.eye(n_bits), moment).T
        error_sums = np.zeros_like(mu)
        for part, errors_of_part in _errors(residual, codes, scales, frame):
            np.add.at(error_sums, labels[part], errors_of_part)
        mu = mu + error_sums / np.maximum(np.bincount(labels, minlength=means), 1)[:, None]
        labels = nearest_mean(train, mu, threads)
        residual = train - mu[labels]
        rest = start.held_out - mu[nearest_mean(start.held_out, mu, threads)]
        held_out = _errors(rest, *encode_residuals(rest, frame, threads, size if scale else None), frame)
        if found.end(frame, mu, sum(float((part * part).sum()) for _, part in held_out) / len(rest)):
            break
    return found.best


@dataclass(frozen=True)
class Training:
    """Training vectors, a part of them held out, and where learning starts."""

    held_out: Float64Array
    vectors: Float64Array
    means: Float64Array
    labels: Labels  # the nearest mean of each vector
    variance: float  # of the held-out part

    @classmethod
    def split(cls, X: Float64Array, means: int, random: np.random.RandomState, threads: int) -> "Training":
        """A tenth of X, at most 5,000 vectors, is held out; k-means finds the means of the rest."""
        if len(X) == 0:
            raise InputError("X has no rows; learning needs vectors")
        if means > len(X):
            raise InputError(f"means = {means}, but X has {len(X)} vectors; lower it or pass more vectors")
        order = random.permutation(len(X))
        held = min(len(X) // 10, 5000) if len(X) >= 100 else 0
        out, train = X[order[:held]] if held else X, X[order[held:]]
        variance = float(((out - X.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
        mu = kmeans(train, means, random)
        return cls(out, train, mu, nearest_mean(train, mu, threads), variance)

    @cached_property
    def residual(self) -> Float64Array:
        """The vectors less their means."""
        residual: Float64Array = self.vectors - self.means[self.labels]
        return residual

    @property
    def root(self) -> Float64Array:
        """A square root of the residuals' covariance: times Gaussian columns, a first frame."""
        values, vectors = np.linalg.eigh(self.residual.T @ self.residual / len(self.residual))
        extent = float(np.abs(self.vectors - self.vectors.mean(axis=0)).max()) or 1.0
        root: Float64Array = vectors * np.sqrt(np.maximum(values, 1e-12 * extent**2))
        return root

    @cached_property
    def size(self) -> float:
        """The root mean square of the residuals."""
        return float(np.sqrt((self.residual * self.residual).sum(axis=1).mean())) or 1.0


class Rounds:
    """The best frame of all rounds, by its error on the held-out part."""

    def __init__(self, start: Training) -> None:
        self._start = start
        self._errors: list[float] = []
        self._idle = 0
        self.best: LearnedFrame

    def end(self, frame: Float64Array, means: Float64Array, error: float) -> bool:
        """Take a round's frame, with its mean squared error; whether rounds no longer gain."""
        error /= self._start.variance
        least = min(self._errors, default=np.inf)
        if not self._errors or error < least:
            self.best = LearnedFrame(frame, means, self._start.size, self._errors)
        self._idle = self._idle + 1 if self._errors and not error < (1 - _GAIN) * least else 0
        self._errors.append(error)
        return self._idle == 2


def track_rounds(rounds: int, progress: bool, description: str) -> Iterable[int]:
    """So many rounds, with a progress bar on standard error where one is asked for."""
    if not progress:
        return range(rounds)
    from rich.console import Console
    from rich.progress import track

    return track(range(rounds), description=description, console=Console(stderr=True))


def encode_residuals(
    residual: Float64Array, frame: Float64Array, threads: int, size: float | None
) -> tuple[Codes, Float64Array | None]:
    """Annealed codes and, where `size` (that of a residual of scale 1) is given, scales; a few thousand at a time."""
    solver = Refiner(frame)
    rows = np.zeros((len(residual), -(-solver.m // 8)), np.uint8)
    scales = None if size is None else np.ones(len(residual))
    for start in range(0, len(residual), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        first = None if size is None else first_scales(residual[part], size)
        correlations = solver.correlations(residual[part], threads)
        solver.run(
            correlations, rows[part], _SWEEPS, _FLIPS, TENURE, "euclidean", threads, first, int(first is not None)
        )
        if scales is not None and first is not None:
            scales[part] = first
    return rows, scales


def first_scales(residual: Float64Array, size: float) -> npt.NDArray[np.float32]:
    """The scales that codes are first sought for: by the vectors' lengths."""
    lengths = np.sqrt((residual * residual).sum(axis=1))
    scales: npt.NDArray[np.float32] = np.clip(lengths / size, LEAST_SCALE, 1e18).astype(np.float32)
    return scales


def best_scales(along: Float64Array, size: Float64Array) -> Float64Array:
    """The s of least ``||y - s A b||``, at least 0, from ``y . A b`` and ``||A b||^2``."""
    scales: Float64Array = np.maximum(np.divide(along, size, out=np.zeros_like(size), where=size > 0), 0)
    return scales


def kmeans(X: Float64Array, count: int, random: np.random.RandomState) -> Float64Array:
    """The centroids (count, d) of k-means, from 256 vectors a centroid at most."""
    if count == 1:
        mean: Float64Array = X.mean(axis=0, keepdims=True)
        return mean
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


def nearest_mean(X: Float64Array, means: Float64Array, threads: int = 1) -> Labels:
    """The nearest of the means to every vector, the first of equals; the same in any batch."""
    if len(means) == 1:
        return np.zeros(len(X), np.int64)
    half = (means * means).sum(axis=1) / 2
    labels: Labels = nearest(np.ascontiguousarray(X), np.ascontiguousarray(means.T), half, threads)
    return labels


def _moments(
    residual: Float64Array, codes: Codes, scales: Float64Array | None, n_bits: int
) -> tuple[Float64Array, Float64Array]:
    """B'B and B'Y, a block at a time; row i of B is s_i b_i."""
    gram, moment = np.zeros((n_bits, n_bits)), np.zeros((n_bits, residual.shape[1]))
    for start in range(0, len(residual), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        B = unpack(codes[part], n_bits).astype(np.float64)
        if scales is not None:
            B *= scales[part, None]
        gram += B.T @ B
        moment += B.T @ residual[part]
    return gram, moment


def _errors(
    residual: Float64Array, codes: Codes, scales: Float64Array | None, frame: Float64Array
) -> Iterator[tuple[slice, Float64Array]]:
    """The errors r - s A b, a block at a time."""
    for start in range(0, len(residual), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        rebuilt = unpack(codes[part], frame.shape[1]).astype(np.float64) @ frame.T
        if scales is not None:
            rebuilt *= scales[part, None]
        yield part, residual[part] - rebuilt
