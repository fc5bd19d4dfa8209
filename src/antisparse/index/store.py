"""Where the snapshots of an index are kept: a folder, or memory alone."""

import os
import secrets
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from antisparse.codec.codec import Codec
from antisparse.errors import FormatError, InputError, LockedError, StorageError, UnsupportedError
from antisparse.index.files import TEMPORARY, ArrayFile, discard, open_file, sync_folder, write_file
from antisparse.index.manifest import FILES, NAME, FileEntry, Manifest, SegmentEntry, read_manifest
from antisparse.index.segment import Segment, check_content, read_segment
from antisparse.index.snapshot import Snapshot
from antisparse.scan.search import Searcher

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
_TRIES = 20


class MemoryStore:
    """Nothing is kept but the snapshot itself."""

    def open(self) -> Snapshot | None:
        """There is none but the one in memory."""
        return None

    def save(self, segment: Segment) -> Segment:
        """A new segment, ready to be committed."""
        return segment

    def commit(self, snapshot: Snapshot) -> Snapshot:
        """Make a snapshot the present one."""
        return snapshot

    def clean(self) -> None:
        """Nothing is left over."""

    def forget(self) -> None:
        """Drop what was saved and not committed."""

    def check_writable(self) -> None:
        """Always writable."""

    def verify(self) -> None:
        """Nothing to compare with."""

    def bytes_on_disk(self) -> int:
        """None."""
        return 0

    def close(self) -> None:
        """Nothing is open."""


class FolderStore:
    """A folder of immutable files and a manifest (docs/format.md). One process writes, any number read."""

    def __init__(self, folder: Path, read_only: bool) -> None:
        self.folder = folder
        self.read_only = read_only
        self._lock = None if read_only else _lock(folder)
        self._locked = None if read_only else _identity(folder / LOCK)
        self._searcher: tuple[FileEntry, Searcher] | None = None
        self._saved: list[str] = []
        self._process = os.getpid()

    def create(self, codec: Codec, segments: tuple[Segment, ...] = (), next_id: int = 0) -> Snapshot:
        """A new index, without codes or with copies of segments. Its manifest comes last: until then there is none."""
        data = codec.to_bytes()
        searcher = Searcher(Codec.from_bytes(data))  # what is acknowledged can be opened again
        entry = FileEntry(f"codec-{secrets.token_hex(4)}.safetensors", len(data), zlib.crc32(data))
        self._manifest = Manifest(entry)
        self._saved.append(entry.file)
        try:
            write_file(self.folder, entry.file, [data])
            copies = (replace(self.save(one), deleted=one.deleted) for one in segments)
            stored = tuple(self._with_deletions(one) for one in copies)
            sync_folder(self.folder)
            self._manifest = Manifest(entry, next_id=next_id, segments=tuple(map(_entry, stored)))
            self._manifest.write(self.folder, None)
        except BaseException:
            if not (self.folder / NAME).exists():
                for name in self._saved:
                    discard(self.folder / name)
            raise
        self._saved.clear()
        self.clean()
        self._searcher = entry, searcher
        return Snapshot(searcher, stored, next_id)

    def open(self, verify: bool = False) -> Snapshot:
        """The snapshot that the manifest names; `verify` reads every byte of it."""
        for _ in range(_TRIES):
            manifest = read_manifest(self.folder)
            try:
                return self._read(manifest, verify)
            except FileNotFoundError as error:
                # A writer may have replaced the manifest, and removed the files of the old one, since we read it.
                if read_manifest(self.folder) == manifest:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
        raise StorageError(f"{self.folder} changes faster than it can be opened; try again")

    def _read(self, manifest: Manifest, verify: bool) -> Snapshot:
        searcher = self._read_codec(manifest.codec)
        segments = []
        for entry in manifest.segments:
            deleted = None if entry.deleted is None else self._file(entry.deleted)
            codes = self._file(entry.codes)
            segment = read_segment(searcher.codec, codes, entry.rows, deleted, entry.deleted_rows)
            if verify:
                codes.verify()
                check_content(segment, codes.path)
            segments.append(replace(segment, file=entry.codes, deleted_file=entry.deleted))
        if verify:
            ids = np.concatenate([np.zeros(0, np.int64), *(s.ids[s.live_places()] for s in segments)])
            if len(np.unique(ids)) != len(ids) or (ids >= manifest.next_id).any():
                raise FormatError(f"{self.folder} has an id in two segments, or one never given out: it is damaged")
        self._manifest, self._searcher = manifest, (manifest.codec, searcher)
        return Snapshot(searcher, tuple(segments), manifest.next_id)

    def _read_codec(self, entry: FileEntry) -> Searcher:
        if self._searcher is not None and self._searcher[0] == entry:  # it never changes
            return self._searcher[1]
        path = self.folder / entry.file
        with open_file(path, entry.size) as file:
            data = file.read()
        if zlib.crc32(data) != entry.crc32:
            raise FormatError(f"{path} is not the codec that the manifest names: it is damaged")
        try:
            return Searcher(Codec.from_bytes(data))
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None

    def _file(self, entry: FileEntry) -> ArrayFile:
        return ArrayFile(self.folder / entry.file, entry.size, entry.crc32)

    def save(self, segment: Segment) -> Segment:
        """Write a new segment; it becomes part of the index when committed. Returns it memory-mapped."""
        entry = self._write("segment", *segment.pack())
        mapped = read_segment(segment.columns.codec, self._file(entry), segment.rows, None, 0)
        return replace(mapped, file=entry)

    def _write(self, kind: str, parts: list[Any], crc: int) -> FileEntry:
        name = f"{kind}-{self._manifest.generation + 1:08d}-{secrets.token_hex(4)}.safetensors"
        self._saved.append(name)
        write_file(self.folder, name, parts)
        return FileEntry(name, sum(len(part) for part in parts), crc)  # all of bytes

    def commit(self, snapshot: Snapshot) -> Snapshot:
        """Make a snapshot the present one: first its files, then the manifest, each on the disk before the next."""
        stored = tuple(self._with_deletions(segment) for segment in snapshot.segments)
        sync_folder(self.folder)
        self._check_place()
        if read_manifest(self.folder) != self._manifest:
            raise StorageError(f"{self.folder} was changed by another writer; open the index again")
        manifest = self._manifest.next(next_id=snapshot.next_id, segments=tuple(_entry(s) for s in stored))
        manifest.write(self.folder, self._manifest)
        self._manifest = manifest
        self._saved.clear()
        return replace(snapshot, segments=stored)

    def _with_deletions(self, segment: Segment) -> Segment:
        if not len(segment.deleted) or segment.deleted_file is not None:
            return segment
        return replace(segment, deleted_file=self._write("deleted", *segment.pack_deleted()))

    def forget(self) -> None:
        """Drop what was saved and not committed."""
        try:
            named = read_manifest(self.folder).files()  # the new one, if the old could not be put back
            for name in self._saved:
                if name not in named:
                    discard(self.folder / name)
        except (FormatError, StorageError):  # the next commit does it
            pass
        self._saved.clear()

    def clean(self) -> None:
        """Remove files that no manifest names: of states before this one, or left by a crash."""
        named = self._manifest.files()
        try:
            for name in os.listdir(self.folder):
                if _is_ours(name) and name not in named:
                    discard(self.folder / name)
        except OSError:  # the next commit tries again
            pass

    def verify(self) -> None:
        """Read every byte again and compare: manifest, codec, arrays, and that ids are distinct."""
        FolderStore(self.folder, read_only=True).open(verify=True)

    def check_writable(self) -> None:
        """Raise unless this process may write."""
        if self.read_only:
            raise UnsupportedError("the index is open read_only; open it without to change it")
        if self._process != os.getpid():
            raise UnsupportedError("the index was opened for writing before a fork; its parent writes to it")
        self._check_place()

    def _check_place(self) -> None:
        """Raise if the folder is not the one that was locked: whoever made another there writes to it."""
        if self._lock is not None and _identity(self.folder / LOCK) != self._locked:
            raise StorageError(f"{self.folder} was removed or replaced since it was opened; open the index again")

    def bytes_on_disk(self) -> int:
        """All files that the manifest names, and itself."""
        manifest = self._manifest
        files = [manifest.codec, *(s.codes for s in manifest.segments), *(s.deleted for s in manifest.segments)]
        return sum(file.size for file in files if file is not None) + len(manifest.dumps())

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None and self._process == os.getpid():  # a fork does not hold it
            self._lock.release()
            self._lock = None


def _entry(segment: Segment) -> SegmentEntry:
    assert segment.file is not None
    return SegmentEntry(segment.file, segment.rows, segment.deleted_file, len(segment.deleted))


def new_folder(path: Path) -> None:
    """Make the folder of a new index; it must not hold anything else."""
    try:
        path.mkdir(parents=False, exist_ok=True)
        others = [name for name in os.listdir(path) if not _is_ours(name) and name != LOCK]
    except OSError as error:
        raise StorageError(f"path = {str(path)!r}: {error}") from error
    if NAME in others:
        raise InputError(f"path = {str(path)!r} is an index already; open it, or remove it first")
    if others:
        raise InputError(f"path = {str(path)!r} is a folder with other files in it; choose another")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from any other while it is open; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(name: str) -> bool:
    return name.startswith(TEMPORARY) or FILES.fullmatch(name) is not None


def _lock(folder: Path) -> "BaseFileLock":
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(
            f"{folder} is open for writing elsewhere; close it there, or open it with read_only=True"
        ) from None
    except OSError as error:
        raise StorageError(f"{folder} cannot be locked for writing: {error}") from error
    return lock
