"""A snapshot: one state of an index whose segments are at hand. It never changes (docs/index.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import text_list
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import InputError
from antisparse.index.expression import expression_of
from antisparse.index.filter import allowed_places, filtered
from antisparse.index.item_schema import ItemSchema, key_hashes
from antisparse.index.manifest import Manifest, ModelEntry
from antisparse.index.segment import Segment
from antisparse.index.state import Sizes, State
from antisparse.scan.columns import Ids
from antisparse.scan.search import Candidates, Part, Search, Searcher


@dataclass(frozen=True, eq=False)
class Allowed:
    """The places of each segment that a filter allows."""

    places: list[Ids]


@dataclass(frozen=True, eq=False)
class Snapshot(State):
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
        parts = [segment.ids.at(segment.live_places()) for segment in self.segments]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    @property
    def sizes(self) -> Sizes:
        """How many segments and deleted codes there are, and what they take on the disk."""
        disk = 0 if self.manifest is None else self.manifest.bytes_on_disk
        return Sizes(len(self.segments), sum(len(segment.deleted) for segment in self.segments), disk)

    def search(self, Q: Any, what: Search, allowed: Any, threads: int) -> tuple[npt.NDArray[Any], Ids]:
        """Distances and ids of the k nearest codes; `allowed` limits the ids, unless it is None."""
        return self.searcher.search(self._parts(allowed), Q, what, threads, len(self))

    def candidates(self, Q: npt.NDArray[Any], what: Search, allowed: Any, threads: int) -> Candidates:
        """What these segments have for a few queries that `Codec.queries` made, to be merged with what others have."""
        return self.searcher.candidates(self._parts(allowed), Q, what, threads)

    def _parts(self, allowed: Any) -> list[Part]:
        if allowed is None:
            return list(self.segments)
        return list(filtered(self.segments, self.prepared_filter(allowed).places))

    def prepared_filter(self, allowed: Any) -> Allowed:
        """The places of each segment that a filter allows: ids, keys, a mask, an expression, or what came of one."""
        if isinstance(allowed, Allowed):
            return allowed
        if isinstance(allowed, str):
            allowed = expression_of(allowed, self.schema)
        elif self.schema is not None and self.schema.key_is_text:
            keys = text_list(allowed, "filter")
            if keys is not None:
                ids = self.find_keys(keys)
                allowed = ids[ids >= 0]
        return Allowed(allowed_places(self.segments, allowed))

    def contains(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each id is there."""
        return self._find(ids)[0] >= 0

    def find_keys(self, keys: list[str]) -> Ids:
        """The id of each key that is text; -1 where it is not there."""
        ids, hashes = np.full(len(keys), -1, np.int64), key_hashes(keys)
        for segment in self.segments:
            ids = np.maximum(ids, segment.find_keys(keys, hashes))
        return ids

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

    def code_parts(self, ids: Ids) -> list[tuple[Ids, Codes]]:
        """The code rows of those of the ids that are there, a part a segment: which of the ids, and their rows."""
        which, places = self._find(ids)
        found = [np.flatnonzero(which == number) for number in range(len(self.segments))]
        return [
            (mine, segment.code_rows(places[mine]))
            for segment, mine in zip(self.segments, found, strict=True)
            if len(mine)
        ]

    def item_parts(self, ids: Ids, names: Sequence[str] | None = None) -> list[tuple[Ids, Any]]:
        """Likewise the stored columns of their items, or those of some names, as Arrow tables."""
        parts = []
        for segment in self.segments:
            rows = segment.find_rows(ids)
            mine = np.flatnonzero(rows >= 0)
            if len(mine):
                assert segment.items is not None
                parts.append((mine, segment.items.take(rows[mine], names)))
        return parts
