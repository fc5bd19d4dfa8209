"""Many means: a tree of halves of the vectors puts them in order, and rounds of k-means move them (docs/learn.md).

Each node of the tree halves its vectors across their longest axis, until there is one leaf for every mean. So means
that stand beside each other are near each other, which is how the nearest ones are found (docs/search.md), in these
rounds and later. The rounds move means too little to undo the order.
"""

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, FloatArray
from antisparse._progress import bar
from antisparse.codec.cells import nearest_mean, points_of

_PER_LEAF = 16  # vectors a mean that the tree is made of
_ROUNDS = 4
_AXIS_ROWS, _AXIS_STEPS = 2048, 4  # vectors that the axis of a node is found from, by so many steps
_CHUNK_ROWS, _CHUNK_MEANS = 1 << 16, 1024

Rows = npt.NDArray[np.int64]


def ordered_means(
    X: FloatArray, count: int, random: np.random.RandomState, threads: int, progress: bool = False
) -> Float64Array:
    """The centroids (count, d) of vectors (n, d), at least as many, those of like vectors beside each other."""
    of_tree = min(len(X), _PER_LEAF * count)
    with bar("learning the cells", of_tree + _ROUNDS * len(X), progress) as advance:
        means = np.empty((count, X.shape[1]))
        stack = [(random.permutation(len(X))[:of_tree].astype(np.int64), 0, count)]
        while stack:
            rows, first, leaves = stack.pop()
            if leaves == 1:
                means[first] = X[rows].mean(axis=0, dtype=np.float64)
                advance(len(rows))
                continue
            left = (leaves + 1) // 2
            low, high = _halves(X, rows, len(rows) * left // leaves)
            stack += [(high, first + left, leaves - left), (low, first, left)]
        for _ in range(_ROUNDS):
            points, labels = points_of(means), np.empty(len(X), np.int64)
            for at in range(0, len(X), _CHUNK_ROWS):
                part = X[at : at + _CHUNK_ROWS]
                labels[at : at + _CHUNK_ROWS] = nearest_mean(part, points, threads)
                advance(len(part))
            means = _centroids(X, labels, means)
    return means


def _halves(X: FloatArray, rows: Rows, cut: int) -> tuple[Rows, Rows]:
    """Rows below and above: the `cut` lowest along the longest axis of a sample of them, by the power method."""
    vectors = X[rows]
    sample = vectors[:: max(len(rows) // _AXIS_ROWS, 1)]
    sample = sample - sample.mean(axis=0)
    largest = float(np.abs(sample).max())
    if largest > 0:
        sample = sample / largest
    axis = sample[int(np.argmax((sample * sample).sum(axis=1)))]
    for _ in range(_AXIS_STEPS):
        moved = sample.T @ (sample @ axis)
        norm = float(np.linalg.norm(moved))
        axis = moved / norm if norm > 0 else axis
    order = np.argpartition(vectors @ axis, cut - 1)
    return rows[order[:cut]], rows[order[cut:]]


def _centroids(X: FloatArray, labels: Rows, means: Float64Array) -> Float64Array:
    """The mean of the vectors of each label; where there are none, the mean as it was."""
    counts = np.bincount(labels, minlength=len(means))
    order, held = np.argsort(labels, kind="stable"), np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[held]
    ends = starts + counts[held]
    moved = means.copy()
    for at in range(0, len(held), _CHUNK_MEANS):
        own = slice(at, at + _CHUNK_MEANS)
        rows = order[starts[at] : ends[own][-1]]
        sums = np.add.reduceat(X[rows].astype(np.float64), starts[own] - starts[at], axis=0)
        moved[held[own]] = sums / counts[held[own], None]
    return moved
