"""One state of an index, as it can be asked, wherever its segments are (docs/index.md)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, finite, integer, number, plain_array, real_array, shown, text_list
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError, UnsupportedError
from antisparse.index.item_schema import ItemSchema, pyarrow
from antisparse.index.manifest import ModelEntry
from antisparse.scan.columns import Ids, scanned_bytes
from antisparse.scan.search import Search, best_of

Originals = npt.NDArray[Any] | Callable[[Ids], Any]
MOST_ID = 2**63 - 1  # the id after the largest fits int64


@dataclass(frozen=True)
class Sizes:
    """How many segments and deleted codes there are, and the bytes on the disk."""

    segments: int
    deleted: int
    disk: int


class State(ABC):
    """What never changes of an index while it is asked.

    `Snapshot` has its segments at hand; `antisparse.cluster` asks those who have them. Either says what is there, and
    the rest follows from that.

    Attributes
    ----------
    codec : Codec
        The codec of all codes.
    schema : ItemSchema or None
        What is kept of every item beside its code; None: nothing.
    model : ModelEntry or None
        The model that the vectors are from, if its name is kept.
    """

    schema: ItemSchema | None
    model: ModelEntry | None

    @property
    @abstractmethod
    def codec(self) -> Codec:
        """The codec of all codes."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def ids(self) -> Ids:
        """All ids, ascending."""

    @property
    @abstractmethod
    def sizes(self) -> "Sizes":
        """How many segments and deleted codes there are, and what they take on the disk."""

    @abstractmethod
    def search(self, Q: Any, what: Search, allowed: Any, threads: int) -> tuple[npt.NDArray[Any], Ids]:
        """Distances and ids of the k nearest codes; `allowed` limits the ids, unless it is None."""

    @abstractmethod
    def contains(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each id is there."""

    @abstractmethod
    def find_keys(self, keys: list[str]) -> Ids:
        """The id of each key that is text; -1 where it is not there."""

    @abstractmethod
    def code_parts(self, ids: Ids) -> list[tuple[Ids, Codes]]:
        """The code rows of those of the ids that are there, in parts: which of the ids, and their rows."""

    @abstractmethod
    def item_parts(self, ids: Ids, names: Sequence[str] | None = None) -> list[tuple[Ids, Any]]:
        """Likewise the stored columns of their items, or those of some names, as Arrow tables."""

    def stats(self) -> dict[str, Any]:
        """Vectors, bytes, segments, cells."""
        n, codec, sizes = len(self), self.codec, self.sizes
        return {
            "vectors": n,
            "deleted": sizes.deleted,
            "dimensions": codec.input_dimension,
            "metric": codec.metric_name,
            "cells": codec.n_cells,
            "segments": sizes.segments,
            "code_bytes": codec.n_bytes,
            "code": codec.summary,
            "scan_bytes": scanned_bytes(codec),
            "disk_bytes": sizes.disk,
            "disk_bytes_per_vector": round(sizes.disk / n, 2) if n else 0.0,
            **({} if self.schema is None else self.schema.summary),
            **({} if self.model is None else self.model.summary),
        }

    def prepared_filter(self, allowed: Any) -> Any:
        """A filter that several searches share, worked out once where that can be done."""
        return allowed

    def check_there(self, ids: Ids) -> None:
        """Raise unless all ids are there."""
        there = self.contains(ids)
        if not there.all():
            raise InputError(f"id {ids[~there][0]} is not in the index")

    def ids_of(self, value: Any, name: str) -> Ids:
        """Ids, given as such or by keys, all of which must be there where they are text."""
        keys = text_list(value, name) if self.schema is not None and self.schema.key_is_text else None
        if keys is None:
            return id_array(value, name)
        ids = self.find_keys(keys)
        if (ids < 0).any():
            raise InputError(f"key {shown(keys[int(np.argmax(ids < 0))])} is not in the index")
        return ids

    def codes(self, ids: Any) -> Codes:
        """The code rows of some ids, or keys, all of which must be there."""
        wanted = self.ids_of(ids, "ids")
        self.check_there(wanted)
        rows = np.zeros((len(wanted), self.codec.n_bytes), np.uint8)
        for mine, found in self.code_parts(wanted):
            rows[mine] = found
        return rows

    def items(self, ids: Ids, names: Sequence[str] | None = None) -> Any:
        """The items of some ids, all of which must be there, as an Arrow table, in their order.

        Of the stored columns, those of `names` are read, and by default all.
        """
        if self.schema is None:
            raise UnsupportedError("the index keeps no items; build it from a table, or pass items= to Index.create")
        self.check_there(ids)
        stored = self.schema.stored.names
        wanted = stored if names is None else [name for name in stored if name in names]
        if not wanted:
            return self.schema.shown(ids, None)
        table = in_order(self.item_parts(ids, None if wanted == stored else wanted), self.schema)
        return self.schema.shown(ids, table.select(wanted))

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
        self, Q: Any, radius: float, what: Search, allowed: Any, threads: int, most: int | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], Ids]:
        """All ids within a distance of each query: limits, distances, ids; InputError if they are more than `most`."""
        radius = number(radius, "radius")
        allowed = None if allowed is None else self.prepared_filter(allowed)  # once, not for every deeper search
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
            open_rows = open_rows[more]
            if most is not None and sum(len(d) for d, _ in parts) + k * len(open_rows) > most:  # looked at no deeper
                raise InputError(f"radius finds more than {most:,} results; take a smaller one, or fewer queries")
            k = 8 * k
        limits = np.cumsum([0, *(len(d) for d, _ in parts)], dtype=np.int64)
        none: npt.NDArray[Any] = np.zeros(0, np.int32 if what.method == "hamming" else np.float64)
        return (
            limits,
            np.concatenate([none, *(d for d, _ in parts if len(d))]),
            np.concatenate([np.zeros(0, np.int64), *(i for _, i in parts)]),
        )


def in_order(parts: Sequence[tuple[Ids, Any]], schema: ItemSchema) -> Any:
    """One table of parts, each with the places where its rows belong."""
    if not parts:
        return schema.stored.empty_table()
    if len(parts) == 1:
        return parts[0][1]
    pa = pyarrow()
    places = np.concatenate([mine for mine, _ in parts])
    return pa.concat_tables([table for _, table in parts]).take(pa.array(np.argsort(places, kind="stable")))


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
        raise InputTypeError(
            f"{name} has dtype {array.dtype}; ids are integers, unless the index has keys: build it with key="
        )
    if (array < 0).any() or (array >= MOST_ID).any():
        raise InputError(f"{name} has entries out of range; ids are not negative and below 2^63 - 1")
    return array.astype(np.int64)


def distinct(ids: Ids, name: str = "ids") -> None:
    """Raise if an id stands twice."""
    unique, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{name} has {unique[counts > 1][0]} twice")
