"""Where the snapshots of an index are kept: a folder, or memory alone."""

import contextlib
import os
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antisparse._files import TEMPORARY, discard, link_file, sync_folder, write_file
from antisparse.codec.codec import Codec
from antisparse.errors import FormatError, InputError, LockedError, StorageError, UnsupportedError
from antisparse.index.item_schema import ItemSchema
from antisparse.index.items import Batch, Items, packed
from antisparse.index.loading import Loader
from antisparse.index.manifest import FILES, NAME, FileEntry, Manifest, SegmentEntry, read_manifest
from antisparse.index.segment import Segment, read_segment
from antisparse.index.snapshot import Snapshot
from antisparse.scan.search import Searcher

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK, STAGING = ".lock", "staged"
_TRIES = 20


class MemoryStore:
    """Nothing is kept but the snapshot itself."""

    place: str | None = None  # where it is kept, for those who read

    def save(self, segment: Segment, schema: ItemSchema | None = None, batches: Iterable[Batch] = ()) -> Segment:
        """A new segment, ready to be part of a snapshot, and its items."""
        return segment if schema is None else replace(segment.ordered(), items=Items.of(schema, batches))

    def prepare(self, before: Snapshot, after: Snapshot) -> Snapshot:
        """The snapshot after `before`, ready to be published."""
        return after

    def publish(self, before: Snapshot, after: Snapshot) -> None:
        """Whoever holds the snapshot has published it."""

    def holds(self, snapshot: Snapshot) -> bool:
        """Nothing is kept here."""
        return False

    def clean(self, snapshot: Snapshot) -> None:
        """Nothing is left over."""

    def forget(self) -> None:
        """Drop what was saved and not published."""

    def check_writable(self) -> None:
        """Always writable."""

    def verify(self) -> None:
        """Nothing to compare with."""

    def reopened(self, snapshot: Snapshot) -> Snapshot:
        """What others have made of it since."""
        return snapshot

    def close(self) -> None:
        """Nothing is open."""


class FolderStore:
    """A folder of immutable files and a manifest (docs/format.md). One process writes, any number read.

    Attributes
    ----------
    folder : Path
        Its whole path, which names the same folder wherever the process goes.
    read_only : bool
    loader : Loader
        Reads its files.
    """

    def __init__(self, folder: Path, read_only: bool, memory: bool = False) -> None:
        self.folder = folder
        self.place = str(folder)
        self.read_only = read_only
        self.loader = Loader(str(folder), lambda entry: folder / entry.file, memory)
        self._process = os.getpid()
        self._generation = 0  # for the names of files alone
        self._saved: list[str] = []
        self._lock: BaseFileLock | None = None
        self._locked: tuple[int, int] | None = None  # the file that is locked

    @classmethod
    def create(cls, folder: Path, snapshot: Snapshot) -> tuple["FolderStore", Snapshot]:
        """A new index that is a copy of a snapshot; if that fails, nothing of it is left."""
        made, store = not os.path.lexists(folder), None
        try:
            _new_folder(folder)
            store = cls(folder, read_only=False)
            store.lock()
            _new_folder(folder)  # again, now that no one else can make one there
            return store, store._fill(snapshot)
        except BaseException:
            if made and store is not None and store.locked:
                discard(folder / LOCK)
            if made:
                with contextlib.suppress(OSError):  # others may have put something there
                    folder.rmdir()
            if store is not None:
                store.close()
            raise

    def _fill(self, snapshot: Snapshot) -> Snapshot:
        """Write all files, and the manifest last: until then there is no index."""
        data = snapshot.codec.to_bytes()
        searcher = Searcher(Codec.from_bytes(data))  # what is acknowledged can be opened again
        entry = FileEntry(f"codec-{secrets.token_hex(4)}.safetensors", len(data), zlib.crc32(data))
        self._saved.append(entry.file)
        try:
            write_file(self.folder / entry.file, [data])
            copies = (replace(self._copy(one), deleted=one.deleted) for one in snapshot.segments)
            stored = tuple(self._with_deletions(one) for one in copies)
            sync_folder(self.folder)
            sync_folder(self.folder.parent)
            kept = None if snapshot.schema is None else snapshot.schema.entry
            entries = tuple(map(_entry, stored))
            manifest = Manifest(entry, 1, snapshot.next_id, entries, kept, snapshot.model, snapshot.commits)
            self.check_writable()
            self._saved.insert(0, NAME)
            manifest.write(self.folder, None)
        except BaseException:
            for name in self._saved:  # the manifest first
                discard(self.folder / name)
            raise
        self._generation = manifest.generation
        self._saved.clear()
        done = replace(snapshot, searcher=searcher, segments=stored, manifest=manifest)
        self.clean(done)
        return done

    def lock(self) -> None:
        """Become the one who writes, unless it is read only; LockedError if there is another."""
        if self.read_only:
            return
        from filelock import FileLock, Timeout

        path = self.folder / LOCK
        try:
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):  # a link would lock what it names
                raise FormatError(f"{path} is not a regular file; remove it")
            self._lock = FileLock(path, timeout=0, thread_local=False)  # any thread may close an index
            self._lock.acquire()
        except Timeout:
            raise LockedError(
                f"{self.folder} is open for writing elsewhere; close it there, or open it with read_only=True"
            ) from None
        except OSError as error:
            raise StorageError(f"{self.folder} cannot be locked for writing: {error}") from error
        self._locked = _identity(path)

    @property
    def locked(self) -> bool:
        """Whether this store holds the lock."""
        return self._lock is not None and self._process == os.getpid() and self._lock.is_locked

    def open(self, known: Snapshot | None = None, verify: bool = False) -> Snapshot:
        """The snapshot that the manifest names; `verify` reads every byte of it.

        The codec of a snapshot that is `known` is not read again, if it is the same.
        """
        for _ in range(_TRIES):
            manifest = read_manifest(self.folder)
            try:
                snapshot = self.loader.snapshot(manifest, known, verify)
            except FileNotFoundError as error:
                # A writer may have replaced the manifest, and removed the files of the old one, since we read it.
                if read_manifest(self.folder) == manifest:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
            else:
                self._generation = manifest.generation
                return snapshot
        raise StorageError(f"{self.folder} changes faster than it can be opened; try again")

    def save(self, segment: Segment, schema: ItemSchema | None = None, batches: Iterable[Batch] = ()) -> Segment:
        """Write a new segment, and its items; it becomes part of the index when published. Returns it as it is read."""
        segment = segment if schema is None else segment.ordered()
        entry, items_entry = self._write("segment", *segment.pack()), None
        if schema is not None:
            items_entry = self._write("items", packed(schema, batches))
        items = self.loader.items(schema, items_entry, segment.rows)
        if not self.loader.memory:
            segment = read_segment(segment.columns.codec, self.loader.arrays(entry), segment.rows, items=items)
        return replace(segment, file=entry, items_file=items_entry, items=items)

    def adopt(self, entry: SegmentEntry, snapshot: Snapshot) -> Segment:
        """A segment that was staged, now by another name too; it becomes part of the index when published."""
        self.check_writable()
        for file in (entry.codes, entry.items):
            if file is not None:
                self._saved.append(file.file)
                link_file(self.folder / STAGING / file.file, self.folder / file.file)
        return self.loader.segment(entry, snapshot.codec, snapshot.schema)

    def _copy(self, segment: Segment) -> Segment:
        if segment.items is None:
            return self.save(segment)
        return self.save(segment, segment.items.schema, segment.items.batches())

    def _write(self, kind: str, parts: Iterable[Any], crc: int | None = None) -> FileEntry:
        """Write a file. Its checksum is that of all of it, unless another is given: that of its header."""
        self.check_writable()
        suffix = "arrow" if kind == "items" else "safetensors"
        name = f"{kind}-{self._generation + 1:08d}-{secrets.token_hex(4)}.{suffix}"
        self._saved.append(name)
        size = whole = 0

        def counted() -> Iterator[Any]:
            nonlocal size, whole
            for part in parts:  # all of bytes
                size += len(part)
                whole = zlib.crc32(part, whole) if crc is None else 0
                yield part

        write_file(self.folder / name, counted())
        return FileEntry(name, size, whole if crc is None else crc)

    def prepare(self, before: Snapshot, after: Snapshot) -> Snapshot:
        """The snapshot after `before`, all of its files on the disk, but not yet the manifest that names them."""
        assert before.manifest is not None
        stored = tuple(self._with_deletions(segment) for segment in after.segments)
        sync_folder(self.folder)
        entries = tuple(map(_entry, stored))
        manifest = before.manifest.next(next_id=after.next_id, segments=entries, commits=after.commits)
        return replace(after, segments=stored, manifest=manifest)

    def publish(self, before: Snapshot, after: Snapshot) -> None:
        """Make a snapshot the present one; nothing happens if `before` is not."""
        assert after.manifest is not None
        self.check_writable()
        if not self.holds(before):  # a lock that was lost, say: what another wrote is not written over
            raise StorageError(f"{self.folder} was changed by another writer; open the index again")
        after.manifest.write(self.folder, before.manifest)
        self._generation = after.manifest.generation
        self._saved.clear()

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is the present one."""
        return read_manifest(self.folder) == snapshot.manifest

    def _with_deletions(self, segment: Segment) -> Segment:
        if not len(segment.deleted) or segment.deleted_file is not None:
            return segment
        return replace(segment, deleted_file=self._write("deleted", *segment.pack_deleted()))

    def forget(self) -> None:
        """Drop what was saved and not published."""
        if self._process != os.getpid():  # what a fork knows of belongs to its parent
            return
        with contextlib.suppress(FormatError, StorageError):  # the next change does it
            named = read_manifest(self.folder).files()  # the new one, if the old could not be put back
            for name in self._saved:
                if name not in named:
                    discard(self.folder / name)
        self._saved.clear()

    def clean(self, snapshot: Snapshot) -> None:
        """Remove files that a snapshot, the present one, does not name: of states before it, or left by a crash."""
        assert snapshot.manifest is not None
        named = snapshot.manifest.files()
        with contextlib.suppress(OSError):  # the next change tries again
            for name in os.listdir(self.folder):
                if _is_ours(name) and name not in named:
                    discard(self.folder / name)

    def verify(self) -> None:
        """Read every byte again and compare: manifest, codec, arrays, and that ids are distinct."""
        FolderStore(self.folder, read_only=True).open(verify=True)

    def reopened(self, snapshot: Snapshot) -> Snapshot:
        """What others have made of it since; none but this one write, unless it is read only."""
        return self.open(snapshot) if self.read_only else snapshot

    def check_writable(self) -> None:
        """Raise unless this process may write."""
        if self.read_only:
            raise UnsupportedError("the index is open read_only; open it without to change it")
        if self._process != os.getpid():
            raise UnsupportedError("the index was opened for writing before a fork; its parent writes to it")
        if self._lock is None:
            raise UnsupportedError("the index is closed; open it again to change it")
        if _identity(self.folder / LOCK) != self._locked:  # whoever made another folder there writes to it
            raise StorageError(f"{self.folder} was removed or replaced since it was opened; open the index again")

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None and self._process == os.getpid():  # a fork does not hold it
            self._lock.release()
            self._lock = None


def _entry(segment: Segment) -> SegmentEntry:
    assert segment.file is not None
    return SegmentEntry(segment.file, segment.rows, segment.deleted_file, len(segment.deleted), segment.items_file)


def _new_folder(path: Path) -> None:
    """Make the folder of a new index; it must not hold anything else."""
    try:
        path.mkdir(parents=False, exist_ok=True)
        names = os.listdir(path)
    except OSError as error:
        raise StorageError(f"path = {str(path)!r}: {error}") from error
    if NAME in names:
        raise InputError(f"path = {str(path)!r} is an index already; open it, or remove it first")
    if any(FILES.fullmatch(name) for name in names):
        raise InputError(
            f"path = {str(path)!r} holds files of an index, but no {NAME}; put it back from a copy, or remove them"
        )
    if any(not name.startswith(TEMPORARY) and name != LOCK for name in names):
        raise InputError(f"path = {str(path)!r} is a folder with other files in it; choose another")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from any other while it is open; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(name: str) -> bool:
    return name.startswith(TEMPORARY) or FILES.fullmatch(name) is not None
