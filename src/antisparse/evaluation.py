"""Exact ground truth and recall from arrays of ids: any library's results are scored alike."""

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from antisparse._arrays import (
    Float64Array,
    boolean,
    choice,
    columns_of_answers,
    finite,
    integer,
    plain_array,
    real_array,
)
from antisparse.errors import InputError, InputTypeError

Metric = Literal["l2", "ip", "cosine"]
Ids = npt.NDArray[np.int64]

_CHUNK_QUERIES = 512
_CHUNK_BASE = 8192
_PIECE = 1 << 21  # numbers held at a time where candidates are many
_LARGE, _SMALL = 1e150, 1e-140  # beyond, squares overflow or vanish
_MEASURE = re.compile(r"([1-9][0-9]*)@([1-9][0-9]*)")


def exact_neighbors(
    base: Any, Q: Any, k: int = 100, *, metric: Metric = "l2", progress: bool = False
) -> tuple[Float64Array, Ids]:
    """The k nearest vectors of `base` to each query, found by comparing with all of them.

    Matrix products in float64 find the candidates block by block, with a bound on their rounding; distances and order
    then come from the differences themselves. So equal vectors are at equal distances, and ties go to the smaller id.

    Parameters
    ----------
    base : array of shape (n, d)
        May be memory-mapped; it is read in blocks, and no n x n_queries matrix is held.
    Q : array of shape (n_queries, d)
    k : int
        Beyond both n and 1,024 it counts as the larger of these.
    metric : {"l2", "ip", "cosine"}
        Squared Euclidean distance, minus the inner product, or one minus the cosine.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    distances : ndarray of shape (n_queries, k), float64
        Infinite beyond the n there are.
    ids : ndarray of shape (n_queries, k), int64
        Rows of `base`, nearest first; -1 beyond the n there are.
    """
    k = integer(k, "k", 1)
    boolean(progress, "progress")
    metric = choice(metric, "metric", get_args(Metric))
    base = real_array(base, "base", 2)
    Q = real_array(Q, "Q", 2)
    if Q.shape[1] != base.shape[1]:
        raise InputError(f"Q has {Q.shape[1]} columns but base has {base.shape[1]}; they must be alike")
    queries = _prepared(Q, "Q", 0, metric)
    k = columns_of_answers(k, len(base))
    distances = np.full((len(Q), k), np.inf)
    ids = np.full((len(Q), k), -1, np.int64)
    starts: Any = range(0, len(base), _CHUNK_BASE)
    if progress:
        from rich.console import Console
        from rich.progress import track

        starts = track(starts, description="exact neighbours", console=Console(stderr=True))
    for start in starts:
        block = _prepared(base[start : start + _CHUNK_BASE], "base", start, metric)
        for first in range(0, len(Q), _CHUNK_QUERIES):
            rows = slice(first, first + _CHUNK_QUERIES)
            _merge(queries[rows], block, start, metric, distances[rows], ids[rows])
    return distances, ids


def _prepared(array: npt.NDArray[Any], name: str, first_row: int, metric: Metric) -> Float64Array:
    finite(array, name, first_row)
    prepared: Float64Array = np.ascontiguousarray(array, np.float64)
    largest = np.abs(prepared).max(initial=0)
    if largest > _LARGE or 0 < largest < _SMALL:
        last = first_row + len(array) - 1
        what = f"{name} rows {first_row} to {last}: the largest magnitude is {largest:g}"
        raise InputError(f"{what}; float64 cannot hold its square: scale base and Q alike")
    if metric == "cosine":
        norms = np.linalg.norm(prepared, axis=1, keepdims=True)
        if not norms.all():
            row = first_row + int(np.argmin(norms))
            raise InputError(f"{name} row {row} is zero or next to it: it has no cosine with anything; drop it")
        prepared = prepared / norms
    return prepared


def _merge(queries: Float64Array, block: Float64Array, start: int, metric: Metric, distances: Any, ids: Any) -> None:
    """Bring the k best of `queries` up to date with the rows of `block`, the first of which has the id `start`."""
    k = distances.shape[1]
    rough = queries @ block.T  # and from here on in its place: it is the largest array by far
    if metric == "l2":
        sizes, query_sizes = (block * block).sum(axis=1), (queries * queries).sum(axis=1)
        rough *= -2
        rough += sizes
        rough += query_sizes[:, None]
        scale = sizes.max(initial=0) + query_sizes
    else:
        np.subtract(metric == "cosine", rough, out=rough)
        scale = np.linalg.norm(queries, axis=1) * np.linalg.norm(block, axis=1).max(initial=0)
    # Sums of d products, in any order, err by less than d eps times their size; the exact ones err alike.
    room = 8 * (block.shape[1] + 4) * np.finfo(np.float64).eps * scale
    limit = distances[:, -1].copy()
    if len(block) > k:
        limit = np.minimum(limit, np.partition(rough, k - 1, axis=1)[:, k - 1] + room)
    row, column = np.nonzero(rough <= (limit + room)[:, None])
    exact = np.empty(len(row))
    step = max(1, _PIECE // max(1, block.shape[1]))
    for first in range(0, len(row), step):  # in pieces: of equal vectors, all are candidates
        part = slice(first, first + step)
        one, other = queries[row[part]], block[column[part]]
        if metric == "l2":
            exact[part] = ((one - other) ** 2).sum(axis=1)
        else:
            exact[part] = (metric == "cosine") - (one * other).sum(axis=1)
    # Old and new, by query, distance, id; the first k of each query stay.
    held_row, held_column = np.nonzero(ids >= 0)
    all_rows = np.concatenate([held_row, row])
    all_distances = np.concatenate([distances[held_row, held_column], exact])
    all_ids = np.concatenate([ids[held_row, held_column], start + column])
    order = np.lexsort((all_ids, all_distances, all_rows))
    all_rows, all_distances, all_ids = all_rows[order], all_distances[order], all_ids[order]
    place = np.arange(len(order)) - np.searchsorted(all_rows, all_rows)
    kept = place < k
    distances[all_rows[kept], place[kept]] = all_distances[kept]
    ids[all_rows[kept], place[kept]] = all_ids[kept]


def nearest_rank(ids: Any, nearest: Any) -> npt.NDArray[np.int64]:
    """The place (from 0) of each query's true nearest neighbour in its list of results; the list's length if absent.

    Parameters
    ----------
    ids : array of shape (n_queries, k), integer
        What a search returned, best first; -1 for nothing.
    nearest : array of shape (n_queries,) or (n_queries, any), integer
        The true nearest neighbour of each query, or its true neighbours, of which the first counts.
    """
    ids, nearest = _id_arrays(ids, nearest, "nearest")
    found = (ids == nearest[:, :1]) & (ids >= 0)
    rank: npt.NDArray[np.int64] = np.where(found.any(axis=1), found.argmax(axis=1), ids.shape[1])
    return rank


def recall_at(ids: Any, nearest: Any, R: int) -> float:
    """recall@R of the paper: the part of the queries whose true nearest neighbour is among the first R results.

    Parameters are those of `nearest_rank`; `ids` must have at least R columns.
    """
    R = integer(R, "R", 1)
    rank = nearest_rank(ids, nearest)
    if np.shape(ids)[1] < R:
        raise InputError(f"ids has {np.shape(ids)[1]} columns; recall@{R} needs at least {R} results a query")
    if not len(rank):
        raise InputError("ids has no rows; recall needs at least one query")
    return float((rank < R).mean())


def intersection_recall(ids: Any, neighbors: Any, k: int) -> float:
    """k@k: the part of the true k nearest neighbours that are among the first k results, on average.

    Not the paper's recall@R, which asks for one neighbour among R.

    Parameters
    ----------
    ids : array of shape (n_queries, at least k), integer
    neighbors : array of shape (n_queries, at least k), integer
        The true neighbours, nearest first.
    k : int
    """
    k = integer(k, "k", 1)
    ids, neighbors = _id_arrays(ids, neighbors, "neighbors")
    for array, name in ((ids, "ids"), (neighbors, "neighbors")):
        if array.shape[1] < k:
            raise InputError(f"{name} has {array.shape[1]} columns; {k}@{k} needs at least {k}")
    if not len(ids):
        raise InputError("ids has no rows; recall needs at least one query")
    return int(_found(ids, neighbors, k).sum()) / (len(ids) * k)


def _found(ids: Ids, neighbors: Ids, k: int) -> Ids:
    """How many of the first k neighbours of each query are among its first k results."""
    # A true neighbour counts once, however often a result repeats it.
    counts = [
        int((np.isin(true[:k], row[:k]) & (true[:k] >= 0)).sum()) for row, true in zip(ids, neighbors, strict=True)
    ]
    return np.array(counts, np.int64)


@dataclass(frozen=True)
class Measure:
    """A measure of recall: "1@R" is `recall_at`, "k@k" is `intersection_recall`.

    The two are never compared with each other: codes of 1@10 = 0.99 may have 10@10 = 0.74.

    Attributes
    ----------
    neighbors : int
        How many true neighbours of a query are looked for: 1 or k.
    results : int
        Among how many results: R or k.
    """

    neighbors: int
    results: int

    @classmethod
    def parse(cls, name: Any, argument: str = "measure") -> "Measure":
        """The measure of a name such as "1@10" or "10@10"; errors call it `argument`."""
        if not isinstance(name, str):
            raise InputTypeError(f"{argument} must be a name such as '1@10' or '10@10', not {type(name).__name__}")
        match = _MEASURE.fullmatch(name)
        if match is None or match[1] not in ("1", match[2]):
            raise InputError(
                f"{argument} = {name!r}; write '1@R' (the true nearest neighbour among the first R results, such as "
                "'1@10') or 'k@k' (the part of the true k nearest among the first k results, such as '10@10')"
            )
        return cls(integer(int(match[1]), argument, 1), integer(int(match[2]), argument, 1))

    @property
    def name(self) -> str:
        """Such as "1@10"."""
        return f"{self.neighbors}@{self.results}"

    @property
    def meaning(self) -> str:
        """What it is the part of, in words."""
        results = "the first result" if self.results == 1 else f"among the first {self.results} results"
        if self.neighbors == 1:
            return f"the part of the queries whose true nearest neighbour is {results}"
        return f"the part of the true {self.neighbors} nearest neighbours that are {results}, averaged over the queries"

    def parts(self, ids: Any, neighbors: Any) -> Float64Array:
        """The part found of each query, whose mean is the recall; for "1@R" it is 0 or 1.

        Parameters
        ----------
        ids : array of shape (n_queries, at least `results`), integer
            What a search returned, best first; -1 for nothing.
        neighbors : array of shape (n_queries, at least `neighbors`), integer
            The true neighbours, nearest first.
        """
        ids, true = _id_arrays(ids, neighbors, "neighbors")
        for array, name, least in ((ids, "ids", self.results), (true, "neighbors", self.neighbors)):
            if array.shape[1] < least:
                raise InputError(f"{name} has {array.shape[1]} columns; {self.name} needs at least {least}")
        if self.neighbors == 1:
            return np.asarray(nearest_rank(ids, true) < self.results, np.float64)
        return _found(ids, true, self.neighbors) / self.neighbors


def _id_arrays(ids: Any, other: Any, name: str) -> tuple[Ids, Ids]:
    ids, other = plain_array(ids, "ids"), plain_array(other, name)
    if other.ndim == 1:
        other = other[:, None]
    for array, what in ((ids, "ids"), (other, name)):
        if array.dtype.kind not in "iu":
            raise InputTypeError(f"{what} has dtype {array.dtype}; pass integer ids")
        if array.ndim != 2 or not array.shape[1]:
            raise InputError(f"{what} has shape {array.shape}; expected one row a query and at least one column")
    if len(ids) != len(other):
        raise InputError(f"ids has {len(ids)} rows but {name} has {len(other)}; both need one row a query")
    return ids.astype(np.int64), other.astype(np.int64)
