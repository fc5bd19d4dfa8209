"""The search: one loop over queries and sets of codes, for code bases and indexes alike (docs/search.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, choice, columns_of_answers, integer, plain_array
from antisparse.codec.codec import Codec
from antisparse.codec.queries import Method, Query, QueryTabler, TabledQueries
from antisparse.errors import InputError
from antisparse.scan.columns import Columns, Ids, Words

METHODS = get_args(Method)
_TABLE_BYTES, _LEAST_QUERIES, _MOST_QUERIES = 8 << 20, 64, 2048  # of the tables that are held at a time
_LIST_ENTRIES = 1 << 22  # of the lists of candidates that are held at a time
_OFFSETS = 1 << 23  # of the cells that queries visit, which are held at a time


class Part(Protocol):
    """A set of codes to search."""

    @property
    def columns(self) -> Columns:
        """The codes."""

    @property
    def live_bits(self) -> Words | None:
        """Which codes may be found, a bit for each place; None: all."""

    def find(self, ids: Ids) -> Ids:
        """The place of each id; -1 where it is not here."""


@dataclass(frozen=True)
class Search:
    """What is asked for, checked once.

    Attributes
    ----------
    k : int
    method : {"reconstruction", "hamming", "asymmetric"}
    query : {"projection", "spread"}
        The weights of asymmetric search.
    probes : int or None
        How many cells a query visits; None: all.
    shortlist : int or None
        Candidates by `shortlist_method` that are ranked again by reconstruction.
    shortlist_method : {"hamming", "asymmetric"}
    """

    k: int
    method: Method = "reconstruction"
    query: Query = "projection"
    probes: int | None = None
    shortlist: int | None = None
    shortlist_method: Literal["hamming", "asymmetric"] = "hamming"

    def __post_init__(self) -> None:
        integer(self.k, "k", 1)
        choice(self.method, "method", METHODS)
        choice(self.query, "query", get_args(Query))
        if self.probes is not None:
            integer(self.probes, "probes", 1)
        if self.shortlist is not None:
            integer(self.shortlist, "shortlist", 1)
            if self.method != "reconstruction":
                raise InputError(
                    f"shortlist re-ranks by reconstruction, but method = {self.method!r}; drop one of them"
                )
            choice(self.shortlist_method, "shortlist_method", ("hamming", "asymmetric"))

    @property
    def depth(self) -> int:
        """How many candidates a query has."""
        return self.k if self.shortlist is None else self.shortlist

    def within(self, count: int) -> "Search":
        """The same among so many codes, of which no more can be found."""
        k = columns_of_answers(self.k, count)
        shortlist = None if self.shortlist is None else min(self.shortlist, max(count, 1))
        return self if (k, shortlist) == (self.k, self.shortlist) else replace(self, k=k, shortlist=shortlist)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The best of one set of codes for each query: those of several sets merge into what one set would find.

    Distances alone would not do: estimates below 0 are given as 0, and so lose their order.

    Attributes
    ----------
    ranks : ndarray of shape (n_queries, depth)
        What candidates are chosen by, ascending; infinite where there are fewer.
    ids : ndarray of the same shape
    scores : ndarray of the same shape
        What those that are chosen are ordered by: the ranks, or, of a shortlist, those of reconstruction.
    distances : ndarray of the same shape
        What the scores are to a caller.
    """

    ranks: Float64Array
    ids: Ids
    scores: Float64Array
    distances: npt.NDArray[Any]


class Searcher:
    """Searches codes of one codec; what all queries share is made once. Any number of threads may use it."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._tabler = QueryTabler(codec)

    def search(
        self, parts: Sequence[Part], Q: Any, what: Search, threads: int, count: int
    ) -> tuple[npt.NDArray[Any], Ids]:
        """Distances and ids of the k nearest codes of all parts, (n_queries, k); 1-dimensional for a single query.

        There are `count` codes: k beyond all reason (`columns_of_answers`) is cut down to that.
        """
        given = plain_array(Q, "Q")
        single = given.ndim == 1
        queries = self.codec.queries(given[None] if single else given)
        what = what.within(count)
        n, k = len(queries), what.k
        distances = np.empty((n, k), np.int32 if what.method == "hamming" else np.float64)
        ids = np.empty((n, k), np.int64)
        step = self.chunk(what)
        for start in range(0, max(n, 1), step):  # once without queries too, for what cannot be asked
            rows = slice(start, start + step)
            distances[rows], ids[rows] = self._best(parts, queries[rows], what, threads)
        return (distances[0], ids[0]) if single else (distances, ids)

    def chunk(self, what: Search) -> int:
        """How many queries are searched at a time, so that their tables and candidates take bounded memory."""
        step = min(max(_TABLE_BYTES // self._tabler.bytes_per_query, _LEAST_QUERIES), _MOST_QUERIES)
        visited = self.codec.n_cells if what.probes is None else min(what.probes, self.codec.n_cells)
        return max(min(step, _LIST_ENTRIES // max(what.depth, 1), _OFFSETS // visited), 1)

    def candidates(self, parts: Sequence[Part], Q: npt.NDArray[Any], what: Search, threads: int) -> Candidates:
        """What these parts have for queries that `Codec.queries` made, no more than `chunk` says at a time."""
        ranks, ids, scores, tabled = self._ranked(parts, Q, what, threads)
        return Candidates(ranks, ids, scores, tabled.finish(scores))

    def _best(
        self, parts: Sequence[Part], Q: npt.NDArray[Any], what: Search, threads: int
    ) -> tuple[npt.NDArray[Any], Ids]:
        _, ids, scores, tabled = self._ranked(parts, Q, what, threads)
        if what.shortlist is not None:
            scores, ids = best_of(scores, ids, what.k)
        return tabled.finish(scores), ids

    def _ranked(
        self, parts: Sequence[Part], Q: npt.NDArray[Any], what: Search, threads: int
    ) -> tuple[Float64Array, Ids, Float64Array, TabledQueries]:
        """Candidates by the first ranking, and their scores by the last."""
        first = what.method if what.shortlist is None else what.shortlist_method
        tabled = self._tabler.make(Q, first, what.query, what.probes, threads)
        lists = [part.columns.search(tabled, what.depth, threads, part.live_bits) for part in parts]
        alone = len(lists) == 1 and lists[0][1].shape[1] == what.depth
        ranks, ids = lists[0] if alone else _merged(lists, len(Q), what.depth)
        if what.shortlist is None:
            return ranks, ids, ranks, tabled
        tabled = self._tabler.make(Q, "reconstruction", what.query, None, threads)
        scores = np.full(ids.shape, np.inf)
        for part in parts:
            places = part.find(ids.reshape(-1)).reshape(ids.shape)
            scores = np.minimum(scores, part.columns.score(tabled, places))
        return ranks, ids, scores, tabled


def best_candidates(lists: Sequence[Candidates], what: Search) -> tuple[npt.NDArray[Any], Ids]:
    """Distances and ids of the k best of several sets of codes, each of which gave its own: those of all in one."""
    ranks, ids, scores, distances = (
        np.concatenate([getattr(one, name) for one in lists], axis=1)
        for name in ("ranks", "ids", "scores", "distances")
    )
    order = np.lexsort((ids, np.where(ids < 0, np.inf, ranks)))[:, : what.depth]
    if what.shortlist is not None:
        chosen = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
        order = np.take_along_axis(order, np.lexsort(chosen), 1)[:, : what.k]
    none = np.iinfo(np.int32).max if distances.dtype == np.int32 else np.inf
    best = np.full((len(ids), what.k), none, distances.dtype)
    kept = np.full((len(ids), what.k), -1, np.int64)
    best[:, : order.shape[1]] = np.take_along_axis(distances, order, 1)
    kept[:, : order.shape[1]] = np.take_along_axis(ids, order, 1)
    return best, kept


def _merged(lists: list[tuple[Float64Array, Ids]], n: int, depth: int) -> tuple[Float64Array, Ids]:
    """The best of several lists of the same queries."""
    lists = [*lists, (np.zeros((n, 0)), np.zeros((n, 0), np.int64))]
    scores, ids = (np.concatenate(columns, axis=1) for columns in zip(*lists, strict=True))
    return best_of(np.where(ids < 0, np.inf, scores), ids, depth)


def best_of(values: Float64Array, ids: Ids, k: int) -> tuple[Float64Array, Ids]:
    """The k least of each row, by (value, id); where there are fewer, infinity and -1."""
    order = np.lexsort((ids, values))[:, :k]
    best = np.full((len(values), k), np.inf)
    kept = np.full((len(values), k), -1, np.int64)
    best[:, : order.shape[1]] = np.take_along_axis(values, order, 1)
    kept[:, : order.shape[1]] = np.take_along_axis(ids, order, 1)
    return best, kept
