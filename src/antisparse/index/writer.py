"""The writer: changes of an index, made whole or not at all. Each replaces the snapshot by another."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import AntisparseError, InputError, UnsupportedError
from antisparse.index.segment import Segment, make_segment
from antisparse.index.snapshot import MOST_ID, Snapshot, distinct
from antisparse.index.store import FolderStore, MemoryStore
from antisparse.scan.columns import Ids

T = TypeVar("T")
_SEGMENT_ROWS = 1 << 20  # codes that an add holds back before it writes a segment
_TIER, _SMALLEST = 8, 1024  # so many segments of like size are made one


@dataclass
class _Change:
    """What an operation, or a batch of them, is about to make of the snapshot `base`."""

    base: Snapshot
    snapshot: Snapshot
    rows: list[Codes] = field(default_factory=list)  # not yet in a segment
    ids: list[Ids] = field(default_factory=list)
    held: set[int] = field(default_factory=set)  # the ids of these
    touched: bool = False
    open: bool = True  # more may be added to it
    sound: bool = True  # no operation is half undone
    thread: int = field(default_factory=threading.get_ident)

    def mark(self) -> tuple[Snapshot, list[Codes], list[Ids], int, bool]:
        """What `undo` goes back to."""
        return self.snapshot, self.rows, self.ids, len(self.rows), self.touched

    def undo(self, mark: tuple[Snapshot, list[Codes], list[Ids], int, bool]) -> None:
        """An operation of a batch that fails leaves the rest of the batch as it was."""
        self.sound = False
        self.snapshot, self.rows, self.ids, count, self.touched = mark
        del self.rows[count:], self.ids[count:]
        self.held = {i for part in self.ids for i in part.tolist()}
        self.sound = True


class Writer:
    """The present snapshot of an index, and the only one who replaces it.

    A signal may raise in any line (Ctrl-C). So a change is made on the side and published by one rename, what is in
    memory follows by one assignment, and an error between the two asks the disk which of them is the state.

    Attributes
    ----------
    store : MemoryStore or FolderStore
    """

    def __init__(self, store: MemoryStore | FolderStore, snapshot: Snapshot) -> None:
        self.store = store
        self._snapshot = snapshot
        self._batch: _Change | None = None
        self._in_doubt: Snapshot | None = None  # published, or not: an error came between
        self._publishing = False  # a handler of a signal may ask for another change meanwhile
        self._mutex = threading.RLock()
        self._closed = False
        _WRITERS.add(self)

    @property
    def snapshot(self) -> Snapshot:
        """Replaced by one assignment, so that a search that has taken it goes on undisturbed."""
        if self._in_doubt is not None and self._mutex.acquire(blocking=False):  # no other thread is about to publish
            try:
                if not self._publishing:  # nor is this one
                    with suppress(AntisparseError):  # the next who asks tries again
                        self._settle()
            finally:
                self._mutex.release()
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def codec(self) -> Codec:
        """The codec of all codes."""
        return self.snapshot.codec

    def close(self) -> None:
        """Let others write."""
        with self._mutex:
            self._check_idle()
            if self._batch is not None and self._batch.open:
                raise UnsupportedError("the index cannot be closed within a batch; leave the batch first")
            self._closed = True
            self.store.close()

    def refresh(self) -> None:
        """See what was written since: for readers."""
        with self._mutex:
            if isinstance(self.store, FolderStore) and self.store.read_only:
                self.snapshot = self.store.open(self.snapshot)

    @contextmanager
    def batch(self, value: T) -> Iterator[T]:
        """Changes within are made at its end, all or, if an error leaves it, none. The block gets `value`."""
        thread = threading.get_ident()
        try:
            with self._mutex:
                outer = self._ready()
                if outer is not None:  # which makes the changes
                    mark = outer.mark()
                    try:
                        yield value
                        _check_thread(thread)
                    except BaseException:
                        outer.undo(mark)
                        raise
                    return
                change = _Change(self.snapshot, self.snapshot)
                try:
                    self._batch = change
                    yield value
                    _check_thread(thread)
                    change.open = False
                    self._commit(change)
                except BaseException:
                    change.open = False
                    self._recover()
                    raise
                finally:
                    self._batch = None
        except RuntimeError:  # of the mutex, which another thread does not release
            _check_thread(thread, self._spoil)
            raise

    def _spoil(self) -> None:
        """The mutex is held for ever: with a new one others are refused in place of waiting."""
        self._closed = True
        if self._batch is not None:
            self._batch.open = False
        self._mutex = threading.RLock()

    def add(self, parts: Iterable[tuple[Codes, Ids | None]]) -> list[Ids]:
        """Add code rows a part at a time, with ids that are not there yet, or with the next ones."""
        return self._apply(lambda change: [self._add(change, rows, ids) for rows, ids in parts])

    def remove(self, ids: Ids) -> None:
        """Remove ids, all of which must be there."""
        self._apply(lambda change: self._remove(change, ids))

    def update(self, rows: Codes, ids: Ids) -> None:
        """Replace the code rows of ids, all of which must be there."""

        def both(change: _Change) -> None:
            self._remove(change, ids)
            self._add(change, rows, ids)

        self._apply(both)

    def compact(self) -> None:
        """Make all segments one, without what was deleted."""
        self._apply(self._compact)

    def _apply(self, deed: Callable[[_Change], T]) -> T:
        """Do an operation, as part of the open batch, or at once."""
        with self._mutex:
            outer = self._ready()
            if outer is not None:
                mark = outer.mark()
                try:
                    return deed(outer)
                except BaseException:
                    outer.undo(mark)
                    raise
            change = _Change(self.snapshot, self.snapshot)
            try:
                result = deed(change)
                self._commit(change)
            except BaseException:
                self._recover()
                raise
            return result

    def _ready(self) -> _Change | None:
        """Raise unless the index may be changed; the batch that is open, if there is one."""
        self._check_idle()
        self.store.check_writable()
        if self._closed:
            raise UnsupportedError("the index is closed; open it again to change it")
        if self._batch is not None and self._batch.open:
            return self._batch
        self._settle()
        return None

    def _check_idle(self) -> None:
        """Raise within a change by the same thread: what it publishes is not built on, nor cleaned up, half way."""
        if self._publishing:
            raise UnsupportedError(
                "the index is being changed by the call that a handler of a signal came into; change or close it when "
                "that call has returned"
            )

    def _commit(self, change: _Change) -> None:
        self._flush(change)
        if not change.sound:
            raise UnsupportedError("an operation of the batch was interrupted while it was undone: nothing was changed")
        if not change.touched:
            return
        self._publishing = True  # until the end, or `_recover`
        if self.snapshot is not change.base:
            raise UnsupportedError(
                "the iterator that was added, or a handler of a signal, changed the index itself meanwhile: nothing "
                "else was changed"
            )
        merged = replace(change.snapshot, segments=self._merged(change.snapshot.segments))
        done = self.store.prepare(change.base, merged)
        self._in_doubt = done
        self.store.publish(change.base, done)
        self.snapshot = done
        self._in_doubt = None
        self.store.clean(done)
        self._publishing = False

    def _recover(self) -> None:
        """After any error: drop what was not published. What was, is the state."""
        self._publishing = False
        self.store.forget()
        with suppress(AntisparseError):  # the next change asks again
            self._settle()

    def _settle(self) -> None:
        """What is on the disk is what there is, whenever the error came."""
        if self._in_doubt is not None:
            if self.store.holds(self._in_doubt):
                self.snapshot = self._in_doubt
            self._in_doubt = None

    def _add(self, change: _Change, rows: Codes, ids: Ids | None) -> Ids:
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

    def _remove(self, change: _Change, ids: Ids) -> None:
        distinct(ids)
        self._flush(change)
        which, places = change.snapshot.located(ids)
        segments = tuple(
            segment.without(places[which == number]) if (which == number).any() else segment
            for number, segment in enumerate(change.snapshot.segments)
        )
        change.snapshot = replace(change.snapshot, segments=segments)
        change.touched |= len(ids) > 0

    def _compact(self, change: _Change) -> None:
        self._flush(change)
        segments = change.snapshot.segments
        if len(segments) > 1 or any(len(segment.deleted) for segment in segments):
            change.snapshot = replace(change.snapshot, segments=self._joined(segments))
            change.touched = True

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

    def forked(self) -> None:
        """In a fork the threads that held the mutex, or had a batch open, are not there."""
        self._mutex, self._publishing = threading.RLock(), False
        if self._batch is not None and self._batch.thread != threading.get_ident():
            self._batch = None


def _check_thread(entered: int, deed: Callable[[], None] = lambda: None) -> None:
    """Raise, after a deed, in any other thread than the one that entered a batch."""
    if entered != threading.get_ident():
        deed()
        raise UnsupportedError(
            "a batch is left by the thread that entered it, and was left by another: nothing of it was changed, and "
            "the index takes no more changes; close it, and open it again"
        )


_WRITERS: "weakref.WeakSet[Writer]" = weakref.WeakSet()


def _after_fork() -> None:
    for writer in list(_WRITERS):
        writer.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
