"""A snapshot: one state of an index, which never changes. All reading is done on it (docs/index.md)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, finite, integer, number, plain_array, real_array, shown, text_list
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError, UnsupportedError
from antisparse.index.expression import expression_of
from antisparse.index.filter import allowed_places, filtered
from antisparse.index.item_schema import ItemSchema, key_hashes, pyarrow
from antisparse.index.manifest import Manifest, ModelEntry
from antisparse.index.segment import Segment
from antisparse.scan.columns import Ids
from antisparse.scan.search import Part, Search, Searcher, best_of

Originals = npt.NDArray[Any] | Callable[[Ids], Any]
MOST_ID = 2**63 - 1  # the id after the largest fits int64


@dataclass(frozen=True, eq=False)
class Allowed:
    """The places of each segment that a filter allows."""

    places: list[Ids]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Segments of codes of one codec, and the first id not yet given out.

    Attributes
    ----------
    searcher : Searcher
        Shared by all snapshots of one codec.
    segments : tuple of Segment
    next_id : int
    manifest : Manifest or None
        What names it on the disk; None where nothing does.
    schema : ItemSchema or None
        What is kept of every item beside its code; None: nothing.
    model : ModelEntry or None
        The model that the vectors are from, if its name is kept.
    commits : tuple of str
        The names of the last commits of staged segments.
    """

    searcher: Searcher
    segments: tuple[Segment, ...] = ()
    next_id: int = 0
    manifest: Manifest | None = None
    schema: ItemSchema | None = None
    model: ModelEntry | None = None
    commits: tuple[str, ...] = ()

    @property
    def codec(self) -> Codec:
        """The codec of all codes."""
        return self.searcher.codec

    def __len__(self) -> int:
        return sum(segment.live for segment in self.segments)

    @property
    def ids(self) -> Ids:
        """All ids, ascending."""
        parts = [segment.ids[segment.live_places()] for segment in self.segments]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    def find_keys(self, keys: list[str]) -> Ids:
        """The id of each key that is text; -1 where it is not there."""
        ids, hashes = np.full(len(keys), -1, np.int64), key_hashes(keys)
        for segment in self.segments:
            ids = np.maximum(ids, segment.find_keys(keys, hashes))
        return ids

    def stats(self) -> dict[str, Any]:
        """Vectors, bytes, segments, cells."""
        n, codec = len(self), self.codec
        disk = 0 if self.manifest is None else self.manifest.bytes_on_disk
        return {
            "vectors": n,
            "deleted": sum(len(segment.deleted) for segment in self.segments),
            "dimensions": codec.input_dimension,
            "metric": codec.metric_name,
            "cells": codec.n_cells,
            "segments": len(self.segments),
            "code_bytes": codec.n_bytes,
            "code": codec.summary,
            "scan_bytes": self.segments[0].columns.scanned_bytes if self.segments else 0,
            "disk_bytes": disk,
            "disk_bytes_per_vector": round(disk / n, 2) if n else 0.0,
            **({} if self.schema is None else self.schema.summary),
            **({} if self.model is None else self.model.summary),
        }

    def ids_of(self, value: Any, name: str) -> Ids:
        """Ids, given as such or by keys, all of which must be there where they are text."""
        keys = text_list(value, name) if self.schema is not None and self.schema.key_is_text else None
        if keys is None:
            return id_array(value, name)
        ids = self.find_keys(keys)
        if (ids < 0).any():
            raise InputError(f"key {shown(keys[int(np.argmax(ids < 0))])} is not in the index")
        return ids

    def items(self, ids: Ids) -> Any:
        """The items of some ids as an Arrow table, in their order."""
        if self.schema is None:
            raise UnsupportedError("the index keeps no items; build it from a table, or pass items= to Index.create")
        self.located(ids)
        if not self.schema.stored.names:
            return self.schema.shown(ids, None)
        pa, parts, at = pyarrow(), [], []
        for segment in self.segments:
            rows = segment.find_rows(ids)
            mine = np.flatnonzero(rows >= 0)
            if len(mine):
                assert segment.items is not None
                parts.append(segment.items.take(rows[mine]))
                at.append(mine)
        table = pa.concat_tables(parts) if parts else self.schema.stored.empty_table()
        if len(parts) > 1:
            table = table.take(pa.array(np.argsort(np.concatenate(at), kind="stable")))
        return self.schema.shown(ids, table)

    def contains(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each id is there."""
        return self._find(ids)[0] >= 0

    def located(self, ids: Ids) -> tuple[Ids, Ids]:
        """The number of the segment and the place of each id, all of which must be there."""
        which, places = self._find(ids)
        if (which < 0).any():
            raise InputError(f"id {ids[which < 0][0]} is not in the index")
        return which, places

    def _find(self, ids: Ids) -> tuple[Ids, Ids]:
        which, places = np.full(len(ids), -1, np.int64), np.full(len(ids), -1, np.int64)
        for place, segment in enumerate(self.segments):
            at = segment.find(ids)
            which[at >= 0] = place
            places[at >= 0] = at[at >= 0]
        return which, places

    def codes(self, ids: Any) -> Codes:
        """The code rows of some ids."""
        wanted = self.ids_of(ids, "ids")
        which, places = self.located(wanted)
        rows = np.zeros((len(wanted), self.codec.n_bytes), np.uint8)
        for place, segment in enumerate(self.segments):
            mine = which == place
            rows[mine] = segment.code_rows(places[mine])
        return rows

    def search(self, Q: Any, what: Search, allowed: Any, threads: int) -> tuple[npt.NDArray[Any], Ids]:
        """Distances and ids of the k nearest codes; `allowed` limits the ids, unless it is None."""
        parts: list[Part] = list(self.segments)
        if allowed is not None:
            parts = list(filtered(self.segments, self._allowed(allowed)))
        return self.searcher.search(parts, Q, what, threads, len(self))

    def _allowed(self, allowed: Any) -> list[Ids]:
        """The places of each segment that a filter allows: ids, keys, a mask, an expression, or what came of one."""
        if isinstance(allowed, Allowed):
            return allowed.places
        if isinstance(allowed, str):
            allowed = expression_of(allowed, self.schema)
        elif self.schema is not None and self.schema.key_is_text:
            keys = text_list(allowed, "filter")
            if keys is not None:
                ids = self.find_keys(keys)
                allowed = ids[ids >= 0]
        return allowed_places(self.segments, allowed)

    def rescored(
        self, Q: Any, what: Search, candidates: int | None, allowed: Any, originals: Originals, threads: int
    ) -> tuple[Float64Array, Ids]:
        """The k best by the distance to the original vectors, of candidates by codes: 10 k by default, 100 at least."""
        given = plain_array(Q, "Q")
        single = given.ndim == 1
        queries = self.codec.queries(given[None] if single else given)
        table = None if callable(originals) else real_array(originals, "rerank", 2)
        depth = max(10 * what.k, 100) if candidates is None else integer(candidates, "shortlist", what.k)
        first = Search(min(depth, max(len(self), 1)), what.method, what.query, what.probes)
        _, found = self.search(np.atleast_2d(given), first, allowed, threads)
        values = np.full(found.shape, np.inf)
        for row, ids in enumerate(found):
            held = ids >= 0
            vectors = originals(ids[held]) if callable(originals) else _rows_of(table, ids[held])
            exact = self.codec.vectors(real_array(vectors, "rerank", 2), "rerank")
            finite(exact, "rerank")
            if exact.shape != (int(held.sum()), queries.shape[1]):
                raise InputError(
                    f"rerank gave vectors of shape {exact.shape}, not {(int(held.sum()), queries.shape[1])}"
                )
            values[row, held] = self.codec.metric.exact(np.asarray(queries[row], np.float64), exact, "rerank")
        distances, ids = best_of(values, found, what.within(len(self)).k)
        return (distances[0], ids[0]) if single else (distances, ids)

    def range_search(
        self, Q: Any, radius: float, what: Search, allowed: Any, threads: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], Ids]:
        """All ids within a distance of each query: limits, distances, ids."""
        radius = number(radius, "radius")
        allowed = None if allowed is None else Allowed(self._allowed(allowed))  # once, not for every deeper search
        given = plain_array(Q, "Q")
        queries = self.codec.vectors(given[None] if given.ndim == 1 else given, "Q")
        n, k = len(self), 64
        parts: list[tuple[npt.NDArray[Any], Ids]] = [(np.zeros(0), np.zeros(0, np.int64))] * len(queries)
        open_rows = np.arange(len(queries))
        while len(open_rows):
            deep = Search(min(k, max(n, 1)), what.method, what.query, what.probes)
            distances, ids = self.search(queries[open_rows], deep, allowed, threads)
            inside = (distances <= radius) & (ids >= 0)
            more = inside[:, -1] & (k < n)
            for row, d, i, within in zip(open_rows[~more], distances[~more], ids[~more], inside[~more], strict=True):
                parts[row] = d[within], i[within]
            open_rows, k = open_rows[more], 8 * k
        limits = np.cumsum([0, *(len(d) for d, _ in parts)], dtype=np.int64)
        none: npt.NDArray[Any] = np.zeros(0, np.int32 if what.method == "hamming" else np.float64)
        return (
            limits,
            np.concatenate([none, *(d for d, _ in parts if len(d))]),
            np.concatenate([np.zeros(0, np.int64), *(i for _, i in parts)]),
        )


def _rows_of(originals: npt.NDArray[Any] | None, ids: Ids) -> npt.NDArray[Any]:
    assert originals is not None
    if len(ids) and ids.max() >= len(originals):
        raise InputError(f"rerank has {len(originals)} rows, but id {ids.max()} was found; pass a function of ids")
    rows: npt.NDArray[Any] = originals[ids]
    return rows


def id_array(value: Any, name: str) -> Ids:
    """`value` as ids, checked: integers, not negative, below 2^63 - 1."""
    array = plain_array(value, name)
    if array.ndim == 0:
        array = array[None]
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}; it must be 1-dimensional")
    if len(array) == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} has dtype {array.dtype}; ids are integers")
    if (array < 0).any() or (array >= MOST_ID).any():
        raise InputError(f"{name} has entries out of range; ids are not negative and below 2^63 - 1")
    return array.astype(np.int64)


def distinct(ids: Ids, name: str = "ids") -> None:
    """Raise if an id stands twice."""
    unique, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{name} has {unique[counts > 1][0]} twice")
