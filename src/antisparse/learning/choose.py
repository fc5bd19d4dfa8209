"""Parameters chosen on training vectors: the penalty h for a search method, the shares of a code's own error."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._progress import track
from antisparse.codec.queries import Method
from antisparse.codes import unpack
from antisparse.evaluation import exact_neighbors
from antisparse.spread import SpreadSolver

H_GRID = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # relative to h_1
_NEIGHBOURS = 3  # of each training query, that the shares of the bias are fitted to
_MOST = 30_000  # training vectors that choose h, of which a tenth at most ask
_MOST_QUERIES, _CHUNK = 2000, 256
_DEPTHS = (1, 2, 5, 10, 20, 50)  # recall@R is averaged over these


def best_h(
    Y: Float64Array,
    frame: Any,
    matrix: Float64Array,
    method: Method,
    random: np.random.RandomState,
    threads: int,
    progress: bool = False,
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
    for h in track(H_GRID, "choosing h", progress):
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


def bias_shares(
    queries: Float64Array, base: Float64Array, residual: Float64Array, error: Float64Array
) -> tuple[float, float]:
    """The shares alpha and beta of a code's own error that its bias is best given (docs/learn.md).

    With r the rebuilt residual of y and e its error, ``||q - y||^2`` has the part ``2 r . e + ||e||^2 - 2 (q - m) . e``
    that the distance to the rebuilt vector lacks, m being the mean of y's cell. For a q that y is near to, the last
    product is about ``k r . e + l ||e||^2``: k and l are found by least squares on training vectors and their nearest
    neighbours.

    Parameters
    ----------
    queries, base : ndarray of shape (n, d)
        Training vectors, reduced, none in both.
    residual, error : ndarray of shape (n, d)
        Of `base`: less the means of its cells, and what the codes leave of that.
    """
    if len(queries) < 20:
        return 0.0, 0.0
    near = exact_neighbors(base, queries, min(_NEIGHBOURS, len(base)))[1]
    q, y = np.repeat(queries, near.shape[1], axis=0), near.reshape(-1)
    e = error[y]
    products = np.stack([((residual[y] - e) * e).sum(axis=1), (e * e).sum(axis=1), np.ones(len(y))], axis=1)
    wanted = ((q - base[y] + residual[y]) * e).sum(axis=1)
    largest = np.abs(products).max(axis=0)
    scaled = products / np.where(largest > 0, largest, 1)
    k, share, _ = np.linalg.lstsq(scaled, wanted, rcond=1e-10)[0] / np.where(largest > 0, largest, 1)
    return float(np.clip(1 - 2 * share, 0, 1)), float(np.clip(2 - 2 * k, 0, 1))


def _recalls(ranks: Float64Array) -> Float64Array:
    """Of each query, whether it finds its neighbour among R, averaged over R."""
    found: Float64Array = np.mean([ranks < R for R in _DEPTHS], axis=0)
    return found


def _ranks(values: npt.NDArray[Any], nearest: npt.NDArray[np.int64]) -> Float64Array:
    """How many values of each row are below that of its column `nearest`, ties counted as half."""
    own = np.take_along_axis(values, nearest, 1)
    ranks: Float64Array = (values < own).sum(axis=1) + ((values == own).sum(axis=1) - 1) / 2
    return ranks
