"""The writer: changes of an index, made whole or not at all. Each replaces the snapshot by another."""

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

import numpy as np

from antisparse._arrays import shown
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import AntisparseError, FormatError, InputError, UnsupportedError
from antisparse.index.change import Change
from antisparse.index.incoming import Part
from antisparse.index.item_schema import Hashes, key_hashes
from antisparse.index.items import Items, Table, gathered, in_batches
from antisparse.index.manifest import COMMITS_KEPT
from antisparse.index.segment import Segment, make_segment
from antisparse.index.snapshot import Snapshot
from antisparse.index.state import MOST_ID, distinct
from antisparse.index.store import FolderStore, MemoryStore
from antisparse.scan.columns import Ids

T = TypeVar("T")
_SEGMENT_ROWS = 1 << 20  # codes that an add holds back before it writes a segment
_SEGMENT_ITEMS = 1 << 24  # bytes of items, likewise
_TIER, _SMALLEST = 8, 1024  # so many segments of like size are made one
_SHARE = 4  # of the index that one change may rewrite: a fourth


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
        self._batch: Change | None = None
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
            self.snapshot = self.store.reopened(self.snapshot)

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
                change = Change(self.snapshot, self.snapshot)
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

    def add(self, parts: Iterable[Part]) -> list[Ids]:
        """Add code rows a part at a time, with ids that are not there yet, or with the next ones."""
        return self._apply(lambda change: [self._add(change, part) for part in parts])

    def remove(self, ids: Callable[[Snapshot], Ids]) -> None:
        """Remove ids, all of which must be there: those that a function finds in what there is by then."""

        def one(change: Change) -> None:
            self._flush(change)
            self._remove(change, ids(change.snapshot))

        self._apply(one)

    def update(self, rows: Codes, ids: Callable[[Snapshot], Ids], items: Table | None = None) -> None:
        """Replace the code rows of ids, all of which must be there, and their items, unless these are not given."""

        def both(change: Change) -> None:
            self._flush(change)
            wanted = ids(change.snapshot)
            if len(wanted) != len(rows):
                raise InputError(f"ids has {len(wanted)} entries for {len(rows)} vectors")
            distinct(wanted)
            kept, schema = items, change.snapshot.schema
            if kept is None and schema is not None and schema.stored.names:
                kept = change.snapshot.items(wanted).select(schema.stored.names)
            self._remove(change, wanted)
            self._add(change, Part(rows, wanted, kept))

        self._apply(both)

    def adopt(self, name: str, load: Callable[[Snapshot], list[Segment]]) -> None:
        """Add segments that others wrote, as they are; a commit of this name that was made already changes nothing."""

        def deed(change: Change) -> None:
            if name in change.snapshot.commits:
                return
            new = load(change.snapshot)
            after = max((segment.id_range[1] + 1 for segment in new), default=0)
            change.snapshot = replace(
                change.snapshot,
                segments=(*change.snapshot.segments, *new),
                next_id=max(change.snapshot.next_id, after),
                commits=(*change.snapshot.commits, name)[-COMMITS_KEPT:],
            )
            change.touched, change.merge = True, False

        self._apply(deed)

    def compact(self) -> None:
        """Make all segments one, without what was deleted."""
        self._apply(self._compact)

    def _apply(self, deed: Callable[[Change], T]) -> T:
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
            change = Change(self.snapshot, self.snapshot)
            try:
                result = deed(change)
                self._commit(change)
            except BaseException:
                self._recover()
                raise
            return result

    def _ready(self) -> Change | None:
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

    def _commit(self, change: Change) -> None:
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
        wanted = change.snapshot
        if change.merge:
            wanted = replace(wanted, segments=self._merged(wanted.segments))
        done = self.store.prepare(change.base, wanted)
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

    def _add(self, change: Change, part: Part) -> Ids:
        rows, ids, hashes = part.rows, part.ids, None
        if change.snapshot.schema is not None and change.snapshot.schema.key_is_text:
            hashes = self._new_keys(change, part)
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
            self._append(change, Part(rows, ids, part.items), hashes)
        return ids

    def _new_keys(self, change: Change, part: Part) -> Hashes:
        """The hashes of the keys of a part, none of which may be there."""
        schema = change.snapshot.schema
        assert schema is not None and part.items is not None
        keys: list[str] = part.items.column(schema.key).to_pylist()
        if len(set(keys)) < len(keys):
            again = Counter(keys).most_common(1)[0][0]
            raise InputError(f"key {shown(again)} stands twice; keys are distinct")
        there = change.snapshot.find_keys(keys) >= 0
        if change.held_keys:
            there |= np.array([key in change.held_keys for key in keys], bool)
        if there.any():
            raise InputError(f"key {shown(keys[int(there.argmax())])} is there already; use update to replace it")
        return key_hashes(keys)

    def _remove(self, change: Change, ids: Ids) -> None:
        distinct(ids)
        which, places = change.snapshot.located(ids)
        segments = tuple(
            segment.without(places[which == number]) if (which == number).any() else segment
            for number, segment in enumerate(change.snapshot.segments)
        )
        change.snapshot = replace(change.snapshot, segments=segments)
        change.touched |= len(ids) > 0

    def _compact(self, change: Change) -> None:
        self._flush(change)
        segments = change.snapshot.segments
        if len(segments) > 1 or any(len(segment.deleted) for segment in segments):
            change.snapshot = replace(change.snapshot, segments=self._joined(segments))
            change.touched = True

    def _append(self, change: Change, part: Part, hashes: Hashes | None) -> None:
        assert part.ids is not None
        change.rows.append(part.rows.copy())  # the caller may use its array again
        change.ids.append(part.ids.copy())
        change.held.update(part.ids.tolist())
        if part.items is not None:
            schema = change.snapshot.schema
            assert schema is not None
            change.items.append(Items.of(schema, in_batches(schema, part.items)))  # a copy
            change.held_bytes += change.items[-1].nbytes
        if hashes is not None and part.items is not None and change.snapshot.schema is not None:
            change.hashes.append(hashes)
            change.held_keys.update(part.items.column(change.snapshot.schema.key).to_pylist())
        change.snapshot = replace(change.snapshot, next_id=max(change.snapshot.next_id, int(part.ids.max()) + 1))
        change.touched = True
        if len(change.held) >= _SEGMENT_ROWS or change.held_bytes >= _SEGMENT_ITEMS:
            self._flush(change)

    def _flush(self, change: Change) -> None:
        """Write the codes held back as a segment."""
        if not change.rows:
            return
        rows, ids = np.concatenate(change.rows), np.concatenate(change.ids)
        hashes = np.concatenate(change.hashes) if change.hashes else None
        sources = [(items, np.arange(items.rows)) for items in change.items]
        segment = self._saved(make_segment(self.codec, rows, ids, hashes), ids, sources)
        change.snapshot = replace(change.snapshot, segments=(*change.snapshot.segments, segment))
        change.drop_held()

    def _saved(self, segment: Segment, ids: Ids, sources: list[tuple[Items, Ids]]) -> Segment:
        """A segment and the items of its ids, which stand in several sources one after the other."""
        if not sources:
            return self.store.save(segment)
        schema = sources[0][0].schema
        return self.store.save(segment, schema, gathered(schema, sources, np.argsort(ids, kind="stable")))

    def _merged(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """Segments of like size made one where there are many: a code is rewritten a few times, however many come.

        One change rewrites no more than a share of the index, or what an add holds back.
        """
        left = max(sum(segment.rows for segment in segments) // _SHARE, _SEGMENT_ROWS)
        while True:
            tiers: dict[int, list[int]] = {}
            for number, segment in enumerate(segments):
                tier = max(0, int(np.log(max(segment.rows, 1) / _SMALLEST) / np.log(_TIER)) + 1)
                tiers.setdefault(0 if segment.rows < _SMALLEST else tier, []).append(number)
            crowded = [numbers for _, numbers in sorted(tiers.items()) if len(numbers) >= _TIER]
            rows = [np.cumsum([segments[number].rows for number in numbers]) for numbers in crowded]
            within = [n[: int(np.searchsorted(r, left, "right"))] for n, r in zip(crowded, rows, strict=True)]
            chosen = next((numbers for numbers in within if len(numbers) > 1), None)
            if chosen is None:
                return tuple(segment for segment in segments if segment.live)
            left -= sum(segments[number].rows for number in chosen)
            joined = self._joined(tuple(segments[number] for number in chosen))
            rest = tuple(segment for number, segment in enumerate(segments) if number not in chosen)
            segments = (*rest, *joined)

    def _joined(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """One segment of all that is live, or none."""
        places = [segment.live_places() for segment in segments]
        if not sum(map(len, places)):
            return ()
        rows = np.concatenate([segment.code_rows(at) for segment, at in zip(segments, places, strict=True)])
        ids = np.concatenate([segment.ids.at(at) for segment, at in zip(segments, places, strict=True)])
        item_rows = [segment.item_rows(at) for segment, at in zip(segments, places, strict=True)]
        hashes, sources = None, []
        if all(segment.keys is not None for segment in segments):
            hashes = np.concatenate([segment.hashes(mine) for segment, mine in zip(segments, item_rows, strict=True)])
        for segment, mine in zip(segments, item_rows, strict=True):
            sources += [] if segment.items is None else [(segment.items, mine)]
        try:
            joined = make_segment(self.codec, rows, ids, hashes)
        except ValueError as error:
            raise FormatError(f"the segments to be joined do not hold sound ids ({error}): run verify") from None
        return (self._saved(joined, ids, sources),)

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
