"""Where codebooks of many bits a dimension start: a product quantiser of principal axes, more bits for longer ones.

Every axis is given bits by reverse water-filling, and every codebook the next four of them: one axis, several short
ones, or a part of a long one, whose rest the next codebook refines. The codewords are those of k-means.
"""

import numpy as np

from antisparse._arrays import Float64Array
from antisparse.codec.cells import Labels
from antisparse.codewords import CODEWORDS

_SAMPLE, _ROUNDS = 8192, 12


def product_start(vectors: Float64Array, count: int, random: np.random.RandomState) -> Float64Array:
    """Codewords (d, 16 count) of `count` codebooks for vectors (n, d) whose mean is zero."""
    n, d = vectors.shape
    chosen = vectors[random.choice(n, _SAMPLE, replace=False)] if n > _SAMPLE else vectors
    variances, axes = np.linalg.eigh(chosen.T @ chosen / len(chosen))
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    rest = chosen @ axes
    ends = np.cumsum(_bits(variances, 4 * count))
    starts = np.concatenate([[0.0], ends[:-1]])
    matrix = np.zeros((d, CODEWORDS * count))
    for book in range(count):
        own = np.flatnonzero((starts < 4 * book + 4 - 1e-9) & (ends > 4 * book + 1e-9) & (ends > starts))
        own = own if len(own) else np.arange(1)  # vectors that are all alike
        codewords, nearest = _kmeans(rest[:, own], random)
        matrix[np.ix_(own, np.arange(CODEWORDS * book, CODEWORDS * (book + 1)))] = codewords.T
        rest[:, own] -= codewords[nearest]
    start: Float64Array = axes @ matrix
    return start


def _bits(variances: Float64Array, total: float) -> Float64Array:
    """Bits of each axis, `total` in all: half the logarithm of its variance over a level common to all, or none."""
    logs = 0.5 * np.log2(np.maximum(variances, max(1e-30 * float(variances[0]), 1e-300)))
    for kept in range(len(logs), 0, -1):  # the longest axes alone, until each has something
        bits = logs[:kept] - (logs[:kept].sum() - total) / kept
        if bits[-1] > 0:
            break
    return np.concatenate([bits, np.zeros(len(logs) - kept)])


def _kmeans(points: Float64Array, random: np.random.RandomState) -> tuple[Float64Array, Labels]:
    """Sixteen centroids of points (n, few), and the nearest of each point."""
    if points.shape[1] == 1:
        centroids = np.quantile(points, (np.arange(CODEWORDS) + 0.5) / CODEWORDS, axis=0)
    else:
        centroids = points[random.choice(len(points), CODEWORDS, replace=len(points) < CODEWORDS)].copy()
    for _ in range(_ROUNDS):
        nearest = _nearest(points, centroids)
        sizes = np.bincount(nearest, minlength=CODEWORDS)
        sums = np.stack([np.bincount(nearest, column, minlength=CODEWORDS) for column in points.T], axis=1)
        empty = sizes == 0
        centroids = sums / np.maximum(sizes, 1)[:, None]
        centroids[empty] = points[random.choice(len(points), int(empty.sum()))]
    return centroids, _nearest(points, centroids)


def _nearest(points: Float64Array, centroids: Float64Array) -> Labels:
    nearest: Labels = ((centroids * centroids).sum(axis=1) - 2 * (points @ centroids.T)).argmin(axis=1)
    return nearest
