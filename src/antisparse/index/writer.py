"""The writer: changes of an index, made whole or not at all. Each replaces the snapshot by another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import numpy as np

from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import AntisparseError, InputError, UnsupportedError
from antisparse.index.segment import Segment, make_segment
from antisparse.index.snapshot import MOST_ID, Snapshot, distinct
from antisparse.index.store import FolderStore, MemoryStore
from antisparse.scan.columns import Ids

_SEGMENT_ROWS = 1 << 20  # codes that an add holds back before it writes a segment
_TIER, _SMALLEST = 8, 1024  # so many segments of like size are made one


@dataclass
class _Change:
    """What a batch is about to do."""

    snapshot: Snapshot
    rows: list[Codes] = field(default_factory=list)  # not yet in a segment
    ids: list[Ids] = field(default_factory=list)
    held: set[int] = field(default_factory=set)  # the ids of these
    touched: bool = False


class Writer:
    """The present snapshot of an index, and the only one who replaces it.

    Attributes
    ----------
    snapshot : Snapshot
        Replaced by one assignment, so that a search that has taken it goes on undisturbed.
    store : MemoryStore or FolderStore
    """

    def __init__(self, store: MemoryStore | FolderStore, snapshot: Snapshot) -> None:
        self.store = store
        self.snapshot = snapshot
        self._change: _Change | None = None
        self._mutex = threading.RLock()
        self._closed = False

    @property
    def codec(self) -> Codec:
        """The codec of all codes."""
        return self.snapshot.codec

    def close(self) -> None:
        """Let others write."""
        with self._mutex:
            self._closed = True
            self.store.close()

    def refresh(self) -> None:
        """See what was written since: for readers."""
        with self._mutex:
            if isinstance(self.store, FolderStore) and self.store.read_only:
                self.snapshot = self.store.open()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Changes within are made at its end, all or, if an error leaves it, none."""
        with self._mutex:
            self.store.check_writable()
            if self._closed:
                raise UnsupportedError("the index is closed; open it again to change it")
            if self._change is not None:  # an outer batch makes them
                with _undone(self._change):
                    yield
                return
            self._change = change = _Change(self.snapshot)
            try:
                yield
                self._flush(change)
                if change.touched:
                    merged = replace(change.snapshot, segments=self._merged(change.snapshot.segments))
                    self.snapshot = self.store.commit(merged)
                    self.store.clean()
            except BaseException:
                self.store.forget()
                # The commit may have been made before the error: what is on the disk is what there is.
                with suppress(AntisparseError, OSError):
                    self.store.check_writable()  # unless it is another index by now
                    present = self.store.open()
                    self.snapshot = self.snapshot if present is None else present  # one without codes is false
                raise
            finally:
                self._change = None

    def add(self, rows: Codes, ids: Ids | None) -> Ids:
        """Add code rows, with ids that are not there yet, or with the next ones."""
        with self.batch():
            change = self._pending
            if ids is None:
                first = change.snapshot.next_id
                if first + len(rows) > MOST_ID:
                    raise InputError("ids beyond the largest that was used do not fit int64; pass ids")
                ids = np.arange(first, first + len(rows), dtype=np.int64)
            else:
                if len(ids) != len(rows):
                    raise InputError(f"ids has {len(ids)} entries for {len(rows)} vectors")
                distinct(ids)
                there = change.snapshot.contains(ids)
                if change.held:
                    there |= np.array([int(i) in change.held for i in ids], bool)
                if there.any():
                    raise InputError(f"id {ids[there][0]} is there already; use update to replace it")
            if len(rows):
                self._append(change, rows, ids)
        return ids

    def remove(self, ids: Ids) -> None:
        """Remove ids, all of which must be there."""
        distinct(ids)
        with self.batch():
            change = self._pending
            self._flush(change)
            which, places = change.snapshot.located(ids)
            segments = tuple(
                segment.without(places[which == number]) if (which == number).any() else segment
                for number, segment in enumerate(change.snapshot.segments)
            )
            change.snapshot = replace(change.snapshot, segments=segments)
            change.touched |= len(ids) > 0

    def compact(self) -> None:
        """Make all segments one, without what was deleted."""
        with self.batch():
            change = self._pending
            self._flush(change)
            segments = change.snapshot.segments
            if len(segments) > 1 or any(len(segment.deleted) for segment in segments):
                change.snapshot = replace(change.snapshot, segments=self._joined(segments))
                change.touched = True

    @property
    def _pending(self) -> _Change:
        assert self._change is not None
        return self._change

    def _append(self, change: _Change, rows: Codes, ids: Ids) -> None:
        change.rows.append(rows.copy())  # the caller may use its array again
        change.ids.append(ids.copy())
        change.held.update(ids.tolist())
        change.snapshot = replace(change.snapshot, next_id=max(change.snapshot.next_id, int(ids.max()) + 1))
        change.touched = True
        if len(change.held) >= _SEGMENT_ROWS:
            self._flush(change)

    def _flush(self, change: _Change) -> None:
        """Write the codes held back as a segment."""
        if not change.rows:
            return
        rows, ids = np.concatenate(change.rows), np.concatenate(change.ids)
        segment = self.store.save(make_segment(self.codec, rows, ids))
        change.snapshot = replace(change.snapshot, segments=(*change.snapshot.segments, segment))
        change.rows, change.ids, change.held = [], [], set()

    def _merged(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """Segments of like size made one where there are many: a code is rewritten a few times, however many come."""
        while True:
            tiers: dict[int, list[int]] = {}
            for number, segment in enumerate(segments):
                tier = max(0, int(np.log(max(segment.rows, 1) / _SMALLEST) / np.log(_TIER)) + 1)
                tiers.setdefault(0 if segment.rows < _SMALLEST else tier, []).append(number)
            crowded = next((numbers for _, numbers in sorted(tiers.items()) if len(numbers) >= _TIER), None)
            if crowded is None:
                return tuple(segment for segment in segments if segment.live)
            joined = self._joined(tuple(segments[number] for number in crowded))
            rest = tuple(segment for number, segment in enumerate(segments) if number not in crowded)
            segments = (*rest, *joined)

    def _joined(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """One segment of all that is live, or none."""
        places = [segment.live_places() for segment in segments]
        if not sum(map(len, places)):
            return ()
        rows = np.concatenate([segment.code_rows(at) for segment, at in zip(segments, places, strict=True)])
        ids = np.concatenate([segment.ids[at] for segment, at in zip(segments, places, strict=True)])
        return (self.store.save(make_segment(self.codec, rows, ids)),)


@contextmanager
def _undone(change: _Change) -> Iterator[None]:
    """An operation of a batch that fails leaves the rest of the batch as it was."""
    snapshot, rows, ids, count, touched = change.snapshot, change.rows, change.ids, len(change.rows), change.touched
    try:
        yield
    except BaseException:
        del rows[count:], ids[count:]
        change.snapshot, change.rows, change.ids, change.touched = snapshot, rows, ids, touched
        change.held = {i for part in ids for i in part.tolist()}
        raise
