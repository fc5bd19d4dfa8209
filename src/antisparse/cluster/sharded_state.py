"""A state of an index whose segments are with shards: every question goes to all, and their answers are merged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import plain_array, text_list
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.index.filter import checked_filter
from antisparse.index.item_schema import ItemSchema
from antisparse.index.manifest import Manifest, ModelEntry
from antisparse.index.state import Sizes, State
from antisparse.scan.columns import Ids
from antisparse.scan.search import Search, Searcher, best_candidates

Ask = Callable[..., list[Any]]  # a question and its arguments to the answers of all shards


@dataclass(frozen=True, eq=False)
class ShardedState(State):
    """One state of an index, its segments elsewhere. Answers are those of one process, to the last bit.

    Attributes
    ----------
    searcher : Searcher
    manifest : Manifest
        All segments.
    schema : ItemSchema or None
    model : ModelEntry or None
    ask : callable
        Asks all shards a question about this state.
    """

    searcher: Searcher
    manifest: Manifest
    schema: ItemSchema | None
    model: ModelEntry | None
    ask: Ask

    @property
    def codec(self) -> Codec:
        """The codec of all codes."""
        return self.searcher.codec

    def __len__(self) -> int:
        return sum(entry.rows - entry.deleted_rows for entry in self.manifest.segments)

    @property
    def ids(self) -> Ids:
        """All ids, ascending."""
        return np.sort(np.concatenate(self.ask("ids")))

    @property
    def sizes(self) -> Sizes:
        """How many segments and deleted codes there are, and what they take on the disk."""
        entries = self.manifest.segments
        return Sizes(len(entries), sum(entry.deleted_rows for entry in entries), self.manifest.bytes_on_disk)

    def search(self, Q: Any, what: Search, allowed: Any, threads: int) -> tuple[npt.NDArray[Any], Ids]:
        """Distances and ids of the k nearest codes; `allowed` limits the ids, unless it is None."""
        given = plain_array(Q, "Q")
        single = given.ndim == 1
        queries = self.codec.queries(given[None] if single else given)
        what, allowed = what.within(len(self)), self.prepared_filter(allowed)
        step, parts = self.searcher.chunk(what), []
        for start in range(0, max(len(queries), 1), step):  # once without queries too, for what cannot be asked
            lists = self.ask("candidates", queries[start : start + step], what, allowed, threads)
            parts.append(best_candidates(lists, what))
        distances, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return (distances[0], ids[0]) if single else (distances, ids)

    def prepared_filter(self, allowed: Any) -> Any:
        """A filter as it travels: text, keys, or an array."""
        if allowed is None or isinstance(allowed, str):
            return allowed
        keys = text_list(allowed, "filter") if self.schema is not None and self.schema.key_is_text else None
        return checked_filter(allowed) if keys is None else keys

    def contains(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each id is there."""
        found: npt.NDArray[np.bool_] = np.any(self.ask("contains", ids), axis=0)
        return found

    def find_keys(self, keys: list[str]) -> Ids:
        """The id of each key that is text; -1 where it is not there."""
        found: Ids = np.max(self.ask("find_keys", keys), axis=0)
        return found

    def code_parts(self, ids: Ids) -> list[tuple[Ids, Codes]]:
        """The code rows of those of the ids that are there, in parts: which of the ids, and their rows."""
        return [part for parts in self.ask("code_parts", ids) for part in parts]

    def item_parts(self, ids: Ids, names: Sequence[str] | None = None) -> list[tuple[Ids, Any]]:
        """Likewise the stored columns of their items, or those of some names, as Arrow tables."""
        return [part for parts in self.ask("item_parts", ids, names) for part in parts]
