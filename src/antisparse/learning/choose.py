"""Parameters chosen on training vectors: the penalty h for a search method, the share alpha of a code's own error."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse.codec.queries import Method
from antisparse.codes import unpack
from antisparse.evaluation import exact_neighbors
from antisparse.spread import SpreadSolver

H_GRID = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # relative to h_1
ALPHA_GRID = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
_USUAL_ALPHA = 0.3
_CLOSE = 0.33  # the part of the training queries that choose alpha
_MOST = 30_000  # training vectors that choose h, of which a tenth at most ask
_MOST_QUERIES, _CHUNK = 2000, 256
_DEPTHS = (1, 2, 5, 10, 20, 50)  # recall@R is averaged over these


def best_h(
    Y: Float64Array, frame: Any, matrix: Float64Array, method: Method, random: np.random.RandomState, threads: int
) -> float:
    """The relative h whose codes, in the frame given, find true neighbours best among the training vectors Y.

    By recall@R averaged over R. Of those as good as the best, but for chance, the smallest: the optimum is flat, and a
    base denser than the sample wants a smaller h.
    """
    chosen = random.permutation(len(Y))[:_MOST]
    n_queries = max(1, min(len(chosen) // 10, _MOST_QUERIES))
    queries, base = Y[chosen[:n_queries]], Y[chosen[n_queries:]]
    nearest = exact_neighbors(base, queries, 1)[1]
    solver = SpreadSolver(frame)
    projected = (queries @ matrix).astype(np.float32)
    scores = []
    for h in H_GRID:
        signs, asked = (
            unpack(solver.bits(part, h, dtype=np.float32, n_threads=threads), matrix.shape[1]).astype(np.float32)
            for part in (base, queries)
        )
        if method == "reconstruction":  # of vectors as long as each other: by the cosine to A b
            norms = np.sqrt(((signs @ matrix.T) ** 2).sum(axis=1, keepdims=True))
            signs /= np.where(norms > 0, norms, 1).astype(np.float32)
        weights = asked if method == "hamming" else projected
        parts = [slice(start, start + _CHUNK) for start in range(0, n_queries, _CHUNK)]
        ranks = np.concatenate([_ranks(-weights[part] @ signs.T, nearest[part]) for part in parts])
        scores.append(float(_recalls(ranks).mean()))
    chance = 0.5 / np.sqrt(n_queries) / 2
    return next(h for h, score in zip(H_GRID, scores, strict=True) if score >= max(scores) - chance)


def best_alpha(queries: Float64Array, base: Float64Array, rebuilt: Float64Array, error: Float64Array) -> float:
    """The alpha that ranks true neighbours best among training vectors: by recall@R averaged over R."""
    distances, nearest = exact_neighbors(base, queries, 1)
    # A base to search is denser than a sample of it, and the offset is worth less for close neighbours: judge by the
    # closest.
    close = distances[:, 0] <= np.quantile(distances[:, 0], _CLOSE)
    queries, nearest = queries[close], nearest[close]
    rough = (rebuilt * rebuilt).sum(axis=1) - 2 * (queries @ rebuilt.T)
    scores = np.array([_recalls(_ranks(rough + alpha * error, nearest)) for alpha in ALPHA_GRID])
    # Of those as good as the best, but for chance (a standard error of the difference, query by query), the one nearest
    # to what bases denser than a sample want.
    behind = scores[scores.mean(axis=1).argmax()] - scores
    chance = behind.std(axis=1) / np.sqrt(scores.shape[1])
    good = np.asarray(ALPHA_GRID)[behind.mean(axis=1) <= chance]
    return float(good[np.abs(good - _USUAL_ALPHA).argmin()])


def _recalls(ranks: Float64Array) -> Float64Array:
    """Of each query, whether it finds its neighbour among R, averaged over R."""
    found: Float64Array = np.mean([ranks < R for R in _DEPTHS], axis=0)
    return found


def _ranks(values: npt.NDArray[Any], nearest: npt.NDArray[np.int64]) -> Float64Array:
    """How many values of each row are below that of its column `nearest`, ties counted as half."""
    own = np.take_along_axis(values, nearest, 1)
    ranks: Float64Array = (values < own).sum(axis=1) + ((values == own).sum(axis=1) - 1) / 2
    return ranks
