"""Frames adapted to data: encode the training set, fit the frame to the codes, and again (docs/learn.md)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from antisparse._arrays import Float64Array, boolean, float64_array, integer, moderate, random_numbers, thread_count
from antisparse._progress import bar
from antisparse.codec.cells import nearest_mean
from antisparse.codec.scale import first_scales
from antisparse.codes import Codes, unpack
from antisparse.learning.training import Learned, Rounds, Training, check_training, held_out
from antisparse.refine import TENURE, Refiner

_RIDGE = 1e-3  # of the mean of the diagonal
_SWEEPS, _FLIPS = 20, 50  # of the encodings while learning
_CHUNK_ROWS = 16384


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
) -> Learned:
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
    from threadpoolctl import threadpool_limits

    X = float64_array(X, "X", 2)
    moderate(X, "X")
    scale, progress = boolean(scale, "scale"), boolean(progress, "progress")
    n_bits, means, rounds = integer(n_bits, "n_bits", 1), integer(means, "means", 1), integer(rounds, "rounds", 1)
    threads = thread_count(n_threads)
    random = random_numbers(random_state)
    check_training(X, means)
    # BLAS with one thread: sums have one order, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"):
        return _learn(X, n_bits, means, scale, rounds, random, threads, progress)


def _learn(
    X: Float64Array,
    n_bits: int,
    means: int,
    scale: bool,
    rounds: int,
    random: np.random.RandomState,
    threads: int,
    progress: bool,
) -> Learned:
    held, train = held_out(X, means, random)
    start = Training.of(train, means, random, threads)
    variance = float(((held - X.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
    train, mu, labels, residual = start.vectors, start.means, start.labels, start.residual()
    frame = start.root(start.unit()) @ random.standard_normal((X.shape[1], n_bits)) / np.sqrt(n_bits)
    norm = start.norm
    found = Rounds(start, variance)
    with bar("learning the frame", rounds, progress) as advance:
        for _ in range(rounds):
            codes, scales = _encoded(residual, frame, threads, norm if scale else None)
            gram, moment = _moments(residual, codes, scales, n_bits)
            ridge = _RIDGE * np.trace(gram) / n_bits
            frame = np.linalg.solve(gram + ridge * np.eye(n_bits), moment).T
            error_sums = np.zeros_like(mu)
            for part, errors_of_part in _errors(residual, codes, scales, frame):
                np.add.at(error_sums, labels[part], errors_of_part)
            mu = mu + error_sums / np.maximum(np.bincount(labels, minlength=means), 1)[:, None]
            labels = nearest_mean(train, mu, threads)
            residual = train - mu[labels]
            rest = held - mu[nearest_mean(held, mu, threads)]
            errors = _errors(rest, *_encoded(rest, frame, threads, norm if scale else None), frame)
            if found.end(frame, mu, sum(float((part * part).sum()) for _, part in errors) / len(rest)):
                break
            advance(1, found.note)
    return found.best


def _encoded(
    residual: Float64Array, frame: Float64Array, threads: int, norm: float | None
) -> tuple[Codes, Float64Array | None]:
    """Annealed codes and, where `norm` (that of a residual of scale 1) is given, scales; a few thousand at a time."""
    solver = Refiner(frame, threads)
    rows = np.zeros((len(residual), -(-solver.m // 8)), np.uint8)
    scales = None if norm is None else np.ones(len(residual))
    for start in range(0, len(residual), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        first = None if norm is None else first_scales(residual[part], norm)
        correlations = solver.correlations(residual[part], threads)
        solver.run(
            correlations, rows[part], _SWEEPS, _FLIPS, TENURE, "euclidean", threads, first, int(first is not None)
        )
        if scales is not None and first is not None:
            scales[part] = first
    return rows, scales


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
