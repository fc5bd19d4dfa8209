"""Where the states of an index are kept: a folder, or memory alone."""

import os
import secrets
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from antisparse.encoders.base import Encoder
from antisparse.encoders.storage import dump_encoder, load_encoder
from antisparse.errors import FormatError, InputError, LockedError, StorageError
from antisparse.forms import Metric
from antisparse.index.files import TEMPORARY, ArrayFile, discard, sync_folder, write_file
from antisparse.index.manifest import NAME, FileEntry, Manifest, SegmentEntry, read_manifest
from antisparse.index.segment import Segment, check_content, pack_deleted, read_segment

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
_OURS = ("segment-", "deleted-", "encoder-", TEMPORARY)
_TRIES = 20


@dataclass(frozen=True)
class State:
    """What a search sees: segments, and the first id not yet given out. Never changed, only replaced."""

    segments: tuple[Segment, ...] = ()
    next_id: int = 0


class MemoryStore:
    """Nothing is kept but the state itself."""

    def save(self, segment: Segment) -> Segment:
        """A new segment, ready to be committed."""
        return segment

    def commit(self, state: State) -> None:
        """Make a state the present one."""

    def forget(self) -> None:
        """Drop what was saved and not committed."""

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
        self._entries: dict[int, SegmentEntry] = {}  # by the identity of the layout, which deletions share
        self._saved: list[str] = []

    def create(self, encoder: Encoder, metric: Metric) -> State:
        """A new index without codes."""
        data = dump_encoder(encoder)
        name = f"encoder-{secrets.token_hex(4)}.safetensors"
        write_file(self.folder, name, [data])
        self._manifest = Manifest(metric, FileEntry(name, len(data), zlib.crc32(data)))
        try:
            sync_folder(self.folder)
            self._manifest.write(self.folder, None)
        except Exception:
            discard(self.folder / name)
            raise
        self._clean()
        return State()

    def open(self) -> tuple[Encoder, Metric, State]:
        """The state that the manifest names."""
        for _ in range(_TRIES):
            manifest = read_manifest(self.folder)
            try:
                return self._read(manifest)
            except FileNotFoundError as error:
                # A writer may have replaced the manifest, and removed the files of the old one, since we read it.
                if read_manifest(self.folder).generation == manifest.generation:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
        raise StorageError(f"{self.folder} changes faster than it can be opened; try again")

    def _read(self, manifest: Manifest) -> tuple[Encoder, Metric, State]:
        path = self.folder / manifest.encoder.file
        with open(path, "rb") as file:
            data = file.read(manifest.encoder.size + 1)
        if len(data) != manifest.encoder.size or zlib.crc32(data) != manifest.encoder.crc32:
            raise FormatError(f"{path} is not the encoder that the manifest names: it is damaged")
        encoder = load_encoder(path)
        metric: Metric = manifest.metric  # type: ignore[assignment]
        segments = []
        entries: dict[int, SegmentEntry] = {}
        for entry in manifest.segments:
            deleted = None if entry.deleted is None else self._file(entry.deleted)
            segment = read_segment(encoder, metric, self._file(entry.codes), entry.rows, deleted, entry.deleted_rows)
            entries[id(segment.layout)] = entry
            segments.append(segment)
        self._manifest, self._entries = manifest, entries
        return encoder, metric, State(tuple(segments), manifest.next_id)

    def _file(self, entry: FileEntry) -> ArrayFile:
        return ArrayFile(self.folder / entry.file, entry.size, entry.crc32)

    def save(self, segment: Segment) -> Segment:
        """Write a new segment; it becomes part of the index when committed. Returns it memory-mapped."""
        entry = self._write("segment", *segment.pack())
        mapped = read_segment(segment.encoder, segment.metric, self._file(entry), segment.rows, None, 0)
        self._entries[id(mapped.layout)] = SegmentEntry(entry, segment.rows)
        return mapped

    def _write(self, kind: str, parts: list[Any], crc: int) -> FileEntry:
        name = f"{kind}-{self._manifest.generation + 1:08d}-{secrets.token_hex(4)}.safetensors"
        self._saved.append(name)
        write_file(self.folder, name, parts)
        return FileEntry(name, sum(len(part) for part in parts), crc)  # all of bytes

    def commit(self, state: State) -> None:
        """Make a state the present one: first its files, then the manifest, each on the disk before the next."""
        entries = []
        for segment in state.segments:
            entry = self._entries[id(segment.layout)]
            if entry.deleted_rows != len(segment.deleted):
                file = self._write("deleted", *pack_deleted(segment.deleted))
                entry = replace(entry, deleted=file, deleted_rows=len(segment.deleted))
            entries.append(entry)
        sync_folder(self.folder)
        manifest = self._manifest.next(next_id=state.next_id, segments=tuple(entries))
        manifest.write(self.folder, self._manifest)
        self._manifest = manifest
        self._entries = {id(s.layout): entry for s, entry in zip(state.segments, entries, strict=True)}
        self._saved.clear()
        self._clean()

    def forget(self) -> None:
        """Drop what was saved and not committed."""
        for name in self._saved:
            discard(self.folder / name)
        self._saved.clear()

    def _clean(self) -> None:
        """Remove files that no manifest names: of states before this one, or left by a crash."""
        named = self._manifest.files()
        try:
            for name in os.listdir(self.folder):
                if name.startswith(_OURS) and name not in named:
                    discard(self.folder / name)
        except OSError:  # the next commit tries again
            pass

    def verify(self) -> None:
        """Read every byte again and compare: manifest, encoder, arrays, and that ids are distinct."""
        _, _, state = (check := FolderStore(self.folder, read_only=True)).open()
        ids = []
        for segment, entry in zip(state.segments, check._manifest.segments, strict=True):
            codes = self._file(entry.codes)
            codes.verify()
            check_content(segment, codes.path)
            ids.append(segment.ids[segment.live_places()])
        if ids and len(np.unique(np.concatenate(ids))) != sum(map(len, ids)):
            raise FormatError(f"{self.folder} has an id in two segments: it is damaged")

    def bytes_on_disk(self) -> int:
        """All files that the manifest names, and itself."""
        return sum((self.folder / name).stat().st_size for name in [*self._manifest.files(), NAME])

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def new_folder(path: Path) -> None:
    """Make the folder of a new index; it must not hold anything else."""
    try:
        path.mkdir(parents=False, exist_ok=True)
        others = [name for name in os.listdir(path) if not name.startswith((*_OURS, LOCK))]
    except OSError as error:
        raise StorageError(f"path = {str(path)!r}: {error}") from error
    if NAME in others:
        raise InputError(f"path = {str(path)!r} is an index already; open it, or remove it first")
    if others:
        raise InputError(f"path = {str(path)!r} is a folder with other files in it; choose another")


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
