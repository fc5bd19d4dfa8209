"""Codebooks adapted to data: find the codewords of the training set, fit the codebooks to them, and again."""

from typing import Any, Literal

import numpy as np
import scipy.linalg

from antisparse._arrays import (
    Float64Array,
    boolean,
    choice,
    float64_array,
    integer,
    moderate,
    random_numbers,
    thread_count,
)
from antisparse._core import add_moments
from antisparse._progress import bar
from antisparse.codewords import CODEWORDS, TENURE, CodewordFinder, check_codebooks
from antisparse.learning.product import product_start
from antisparse.learning.training import Learned, Training, check_training

# In vectors, of those that a codeword would have if all had as many: so many times the squared relative error, bounded.
_RIDGE_OF_SQUARE, _LEAST_RIDGE, _MOST_RIDGE = 10, 1e-4, 0.05
_MOVES = 60  # of the encodings while learning
_BATCH, _LAST = 8192, 32768  # vectors of a round, and of each of the last two
_NOISE = 0.25  # of the mean squared error, added to what is encoded
_CHUNK_ROWS = 4096


def learn_codebooks(
    X: Any,
    count: int,
    *,
    means: int = 1,
    start: Literal["gaussian", "product"] = "gaussian",
    rounds: int = 32,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
    overwrite: bool = False,
) -> Learned:
    """Codebooks of 16 codewords, for which codes rebuild vectors like those of X best.

    Each round encodes a few thousand training vectors from scratch, and fits the codewords to the codes by least
    squares; the last two rounds take more. The ridge is not small: it keeps rare codewords from fitting the few vectors
    that have them. A little noise, with the covariance of the vectors, is added to what is encoded, and the codewords
    are fitted to the vectors without it: so codes of vectors that were not trained on are rebuilt better.

    Parameters
    ----------
    X : array of shape (n, d)
    count : int
        How many codebooks; each takes four bits of a code.
    start : {"gaussian", "product"}
        Draw the first codewords at random, or make them a product quantiser of principal axes: better from some two
        bits a dimension on.
    means, rounds, random_state, n_threads, progress
        As for `learn_frame`.
    overwrite : bool
        X may be overwritten, which saves the memory of a copy if it is an array of float64.

    Returns
    -------
    Learned
        With a matrix of shape (d, 16 count): the 16 codewords of the first codebook, those of the next, and so on.
    """
    from threadpoolctl import threadpool_limits

    X = float64_array(X, "X", 2)
    moderate(X, "X")
    boolean(progress, "progress")
    boolean(overwrite, "overwrite")
    count = check_codebooks(count)
    choice(start, "start", ("gaussian", "product"))
    means, rounds = integer(means, "means", 1), integer(rounds, "rounds", 1)
    threads = thread_count(n_threads)
    # BLAS with one thread: sums have one order, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"):
        return _learn(X, count, means, start, rounds, random_numbers(random_state), threads, progress, overwrite)


def _learn(
    X: Float64Array,
    count: int,
    means: int,
    start: str,
    rounds: int,
    random: np.random.RandomState,
    threads: int,
    progress: bool,
    overwrite: bool,
) -> Learned:
    check_training(X, means)
    training = Training.of(X, means, random, threads)
    vectors = training.unit(overwrite)  # of size 1: float32 has room
    n, d, columns = *vectors.shape, count * CODEWORDS
    root = training.root(vectors) / training.norm
    matrix: Float64Array
    if start == "product":
        matrix = product_start(vectors, count, random)
    else:
        matrix = root @ random.standard_normal((d, columns)) / np.sqrt(count)
    errors: list[float] = []
    noise, order, at = 0.0, random.permutation(n), 0
    quick = np.random.default_rng(random.randint(np.iinfo(np.int32).max))  # and in float32: noise need not be exact
    single_root = np.ascontiguousarray(root.T, np.float32)
    with bar("learning the codebooks", rounds, progress) as advance:
        for number in range(rounds):
            size = min(n, _LAST if number >= rounds - 2 else _BATCH)
            if at + size > n:
                order, at = random.permutation(n), 0
            chosen, at = order[at : at + size], at + size
            finder = CodewordFinder(matrix, threads)
            counts, sums = np.zeros((columns, columns), np.uint32), np.zeros((columns, d))
            error = 0.0
            for first in range(0, size, _CHUNK_ROWS):
                part = vectors[chosen[first : first + _CHUNK_ROWS]]
                drawn = quick.standard_normal(part.shape, np.float32) @ single_root
                seen = part + np.sqrt(noise) * drawn
                rows, dots, squares = finder.find(seen, _MOVES, TENURE, threads)
                add_moments(rows, count, part, counts, sums, threads)
                error += float(((seen * seen).sum(axis=1) - 2 * dots + squares).sum())
            errors.append(max(error / size, 0.0))  # which rounding may have made negative
            noise = _NOISE * errors[-1]
            ridge = min(max(_RIDGE_OF_SQUARE * errors[-1] ** 2, _LEAST_RIDGE), _MOST_RIDGE)
            regular = (counts + np.triu(counts, 1).T).astype(np.float64)
            regular[np.diag_indices(columns)] += ridge * size / CODEWORDS
            solved = scipy.linalg.solve(regular, sums, assume_a="pos", overwrite_a=True, check_finite=False)
            matrix = np.ascontiguousarray(solved.T)
            advance(1, f"error {errors[-1]:.4f}")
    return Learned(training.norm * matrix, training.means, training.norm, errors)
