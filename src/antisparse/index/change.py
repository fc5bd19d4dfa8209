"""A change under way: what an operation, or a batch of them, is about to make of a snapshot."""

import threading
from dataclasses import dataclass, field

import numpy as np

from antisparse.codes import Codes
from antisparse.index.item_schema import Hashes
from antisparse.index.items import Items
from antisparse.index.snapshot import Snapshot
from antisparse.scan.columns import Ids


@dataclass
class Change:
    """What an operation, or a batch of them, is about to make of the snapshot `base`."""

    base: Snapshot
    snapshot: Snapshot
    rows: list[Codes] = field(default_factory=list)  # not yet in a segment
    ids: list[Ids] = field(default_factory=list)
    items: list[Items] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)  # of keys that are text
    held: set[int] = field(default_factory=set)  # the ids of these
    held_keys: set[str] = field(default_factory=set)
    held_bytes: int = 0  # of items
    touched: bool = False
    merge: bool = True  # segments of like size
    open: bool = True  # more may be added to it
    sound: bool = True  # no operation is half undone
    thread: int = field(default_factory=threading.get_ident)

    def mark(self) -> "Mark":
        """What `undo` goes back to."""
        lists = (self.rows, self.ids, self.items, self.hashes)
        return Mark(self.snapshot, lists, tuple(len(held) for held in lists), self.touched)

    def undo(self, mark: "Mark") -> None:
        """An operation of a batch that fails leaves the rest of the batch as it was."""
        self.sound = False
        self.snapshot, self.touched = mark.snapshot, mark.touched
        self.rows, self.ids, self.items, self.hashes = mark.lists
        del self.rows[mark.counts[0] :], self.ids[mark.counts[1] :]
        del self.items[mark.counts[2] :], self.hashes[mark.counts[3] :]
        self.held = {i for part in self.ids for i in part.tolist()}
        keyed = self.items if self.hashes else []
        self.held_keys = {key for part in keyed for key in part.keys(np.arange(part.rows))}
        self.held_bytes = sum(part.nbytes for part in self.items)
        self.sound = True

    def drop_held(self) -> None:
        """What was held back is in a segment."""
        self.rows, self.ids, self.items, self.hashes = [], [], [], []
        self.held, self.held_keys, self.held_bytes = set(), set(), 0


@dataclass(frozen=True)
class Mark:
    """A state of a change: the lists of what is held back, and how long each was."""

    snapshot: Snapshot
    lists: tuple[list[Codes], list[Ids], list[Items], list[Hashes]]
    counts: tuple[int, ...]
    touched: bool
