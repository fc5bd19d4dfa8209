"""Codebooks adapted to data: find the codewords of the training set, fit the codebooks to them, and again."""

from typing import Any

import numpy as np

from antisparse._arrays import Float64Array, float64_array, integer, thread_count
from antisparse._progress import bar
from antisparse.codec.cells import nearest_mean
from antisparse.codewords import CODEWORDS, TENURE, CodewordFinder, check_codebooks, one_hot
from antisparse.learning.training import Learned, Rounds, Training

_RIDGE = 0.05  # of the vectors that a codeword would have if all had as many
_MOVES = 60  # of the encodings while learning
_CHUNK_ROWS = 4096


def learn_codebooks(
    X: Any,
    count: int,
    *,
    means: int = 1,
    rounds: int = 32,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> Learned:
    """Codebooks of 16 codewords, for which codes rebuild vectors like those of X best.

    As `learn_frame`: each round encodes the training set from scratch, and fits the codewords to the codes by least
    squares. The ridge is not small: it keeps rare codewords from fitting the few vectors that have them.

    Parameters
    ----------
    X : array of shape (n, d)
    count : int
        How many codebooks; each takes four bits of a code.
    means, rounds, random_state, n_threads, progress
        As for `learn_frame`.

    Returns
    -------
    Learned
        With a matrix of shape (d, 16 count): the 16 codewords of the first codebook, those of the next, and so on.
    """
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    X = float64_array(X, "X", 2)
    count = check_codebooks(count)
    means, rounds = integer(means, "means", 1), integer(rounds, "rounds", 1)
    threads = thread_count(n_threads)
    # BLAS with one thread: sums have one order, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"):
        return _learn(X, count, means, rounds, check_random_state(random_state), threads, progress)


def _learn(
    X: Float64Array,
    count: int,
    means: int,
    rounds: int,
    random: np.random.RandomState,
    threads: int,
    progress: bool,
) -> Learned:
    start = Training.split(X, means, random, threads)
    residual, columns = start.residual, count * CODEWORDS
    rest = start.held_out - start.means[nearest_mean(start.held_out, start.means, threads)]
    squares = (rest * rest).sum(axis=1)
    first: Float64Array = start.root @ random.standard_normal((X.shape[1], columns)) / np.sqrt(count)
    finder = CodewordFinder(first)
    found = Rounds(start)
    with bar("learning the codebooks", rounds, progress) as advance:
        for _ in range(rounds):
            gram = _RIDGE * len(residual) / CODEWORDS * np.eye(columns)
            moment = np.zeros((columns, X.shape[1]))
            for at in range(0, len(residual), _CHUNK_ROWS):
                part = residual[at : at + _CHUNK_ROWS]
                x = one_hot(finder.find(part, _MOVES, TENURE, threads)[0], count)
                gram += x.T @ x
                moment += x.T @ (part / start.norm).astype(np.float32)  # of size 1: float32 has room
            matrix = np.asarray(start.norm * np.linalg.solve(gram, moment).T, np.float64)
            finder = CodewordFinder(matrix)
            _, dots, square = finder.find(rest, _MOVES, TENURE, threads)
            if found.end(matrix, start.means, float((squares - 2 * dots + square).mean())):
                break
            advance(1, found.note)
    return found.best
