"""Frames of words: every four bits choose one of 16 columns, in place of four signs (docs/words.md)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, float64_array, integer, thread_count
from antisparse._core import Words
from antisparse.codes import Codes, code_rows
from antisparse.errors import InputError
from antisparse.learn import LearnedFrame, Rounds, Training, nearest_mean, track_rounds

WORDS, BITS = 16, 4  # of a group
_RIDGE = 0.05  # of the vectors that a word would have if all had as many
_MOVES, TENURE = 60, 5  # of the encodings while learning; a group that moved stays for so many
_CHUNK_ROWS = 4096
_MOST_BITS = 2**14  # 65,536 words, whose numbers have 16 bits (native/words.hpp)


def learn_words(
    X: Any,
    n_bits: int,
    *,
    means: int = 1,
    rounds: int = 32,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> LearnedFrame:
    """The words, 16 columns of A for every four bits, for which codes rebuild vectors like those of X best.

    As `learn_frame`: each round encodes the training set from scratch, and fits A to the codes by least squares. The
    ridge is not small: it keeps rare words from fitting the few vectors that have them.

    Parameters
    ----------
    X : array of shape (n, d)
    n_bits : int
        A multiple of four.
    means, rounds, random_state, n_threads, progress
        As for `learn_frame`.

    Returns
    -------
    LearnedFrame
        With a frame of shape (d, 4 n_bits): the 16 words of the first four bits, those of the next, and so on.
    """
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    X = float64_array(X, "X", 2)
    n_bits = check_word_bits(n_bits)
    means, rounds = integer(means, "means", 1), integer(rounds, "rounds", 1)
    threads = thread_count(n_threads)
    # BLAS with one thread: sums have one order, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"):
        return _learn(X, n_bits, means, rounds, check_random_state(random_state), threads, progress)


def _learn(
    X: Float64Array,
    n_bits: int,
    means: int,
    rounds: int,
    random: np.random.RandomState,
    threads: int,
    progress: bool,
) -> LearnedFrame:
    start = Training.split(X, means, random, threads)
    residual, columns = start.residual, n_bits // BITS * WORDS
    rest = start.held_out - start.means[nearest_mean(start.held_out, start.means, threads)]
    squares = (rest * rest).sum(axis=1)
    first: Float64Array = start.root @ random.standard_normal((X.shape[1], columns)) / np.sqrt(n_bits // BITS)
    finder = WordFinder(first)
    found = Rounds(start)
    for _ in track_rounds(rounds, progress, "learning the words"):
        gram = _RIDGE * len(residual) / WORDS * np.eye(columns)
        moment = np.zeros((columns, X.shape[1]))
        for at in range(0, len(residual), _CHUNK_ROWS):
            part = residual[at : at + _CHUNK_ROWS]
            x = selection(finder.find(part, _MOVES, TENURE, threads)[0], n_bits)
            gram += x.T @ x
            moment += x.T @ (part / start.size).astype(np.float32)  # of size 1: float32 has room
        frame = np.asarray(start.size * np.linalg.solve(gram, moment).T, np.float64)
        finder = WordFinder(frame)
        _, along, size = finder.find(rest, _MOVES, TENURE, threads)
        if found.end(frame, start.means, float((squares - 2 * along + size).mean())):
            break
    return found.best


def check_word_bits(n_bits: Any) -> int:
    """`n_bits`, if words can have so many."""
    count = integer(n_bits, "n_bits", BITS, _MOST_BITS + 1)
    if count % BITS:
        raise InputError(f"n_bits = {count}; words take four bits each: pass a multiple of 4")
    return count


def selection(codes: Any, n_bits: int) -> npt.NDArray[np.float32]:
    """Code rows as x (n, 4 n_bits): 1 at the words chosen, 0 elsewhere."""
    rows, groups = code_rows(codes, n_bits), n_bits // BITS
    chosen = np.stack([rows >> BITS, rows & (WORDS - 1)], axis=2).reshape(len(rows), 2 * rows.shape[1])[:, :groups]
    x = np.zeros((len(rows), groups * WORDS), np.float32)
    x[np.arange(len(rows))[:, None], chosen + WORDS * np.arange(groups)] = 1
    return x


class WordFinder:
    """A frame of words prepared for finding codes."""

    def __init__(self, frame: Float64Array) -> None:
        gram = frame.T @ frame
        # The scale is taken out, so that float32 has room: y and A are divided by the length of the longest word.
        self._unit = float(np.diagonal(gram).max()) or 1.0
        self._factor = 1 / float(np.sqrt(self._unit))
        words = (frame * self._factor).reshape(len(frame), -1, WORDS).transpose(1, 0, 2)
        self._groups = len(words)
        self._words = Words(
            np.ascontiguousarray(words, np.float32), np.ascontiguousarray(gram / self._unit, np.float32)
        )

    def find(self, Y: Float64Array, moves: int, tenure: int, threads: int) -> tuple[Codes, Float64Array, Float64Array]:
        """Code rows (n, ceil(n_bits / 8)) with A x near y, ``y . A x`` and ``||A x||^2``."""
        rows = np.zeros((len(Y), -(-self._groups // 2)), np.uint8)
        along, size = self._words.find(np.ascontiguousarray(Y), self._factor, moves, tenure, rows, threads)
        return rows, along.astype(np.float64) * self._unit, np.maximum(size.astype(np.float64) * self._unit, 0)
