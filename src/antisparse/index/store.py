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
from antisparse.errors import FormatError, InputError, LockedError, StorageError, UnsupportedError
from antisparse.forms import Metric
from antisparse.index.files import TEMPORARY, ArrayFile, discard, open_file, sync_folder, write_file
from antisparse.index.manifest import FILES, NAME, FileEntry, Manifest, SegmentEntry, read_manifest
from antisparse.index.segment import Segment, check_content, pack_deleted, read_segment

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
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

    def clean(self) -> None:
        """Nothing is left over."""

    def forget(self) -> None:
        """Drop what was saved and not committed."""

    def check_writable(self) -> None:
        """It is."""

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
        self._process = os.getpid()

    def create(self, encoder: Encoder, metric: Metric) -> State:
        """A new index without codes."""
        data = dump_encoder(encoder)
        name = f"encoder-{secrets.token_hex(4)}.safetensors"
        write_file(self.folder, name, [data])
        self._manifest = Manifest(metric, FileEntry(name, len(data), zlib.crc32(data)))
        try:
            sync_folder(self.folder)
            self._manifest.write(self.folder, None)
        except BaseException:
            if not (self.folder / NAME).exists():
                discard(self.folder / name)
            raise
        self.clean()
        return State()

    def open(self, verify: bool = False) -> tuple[Encoder, Metric, State]:
        """The state that the manifest names; `verify` reads every byte of it."""
        for _ in range(_TRIES):
            manifest = read_manifest(self.folder)
            try:
                return self._read(manifest, verify)
            except FileNotFoundError as error:
                # A writer may have replaced the manifest, and removed the files of the old one, since we read it.
                if read_manifest(self.folder) == manifest:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
        raise StorageError(f"{self.folder} changes faster than it can be opened; try again")

    def _read(self, manifest: Manifest, verify: bool) -> tuple[Encoder, Metric, State]:
        path = self.folder / manifest.encoder.file
        with open_file(path, manifest.encoder.size) as file:
            data = file.read()
        if zlib.crc32(data) != manifest.encoder.crc32:
            raise FormatError(f"{path} is not the encoder that the manifest names: it is damaged")
        encoder = load_encoder(path)
        metric = manifest.metric
        segments = []
        entries: dict[int, SegmentEntry] = {}
        for entry in manifest.segments:
            deleted = None if entry.deleted is None else self._file(entry.deleted)
            codes = self._file(entry.codes)
            segment = read_segment(encoder, metric, codes, entry.rows, deleted, entry.deleted_rows)
            if verify:
                codes.verify()
                check_content(segment, codes.path)
            entries[id(segment.layout)] = entry
            segments.append(segment)
        if verify:
            ids = np.concatenate([np.zeros(0, np.int64), *(s.ids[s.live_places()] for s in segments)])
            if len(np.unique(ids)) != len(ids) or (ids >= manifest.next_id).any():
                raise FormatError(f"{self.folder} has an id in two segments, or one never given out: it is damaged")
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
        """Read every byte again and compare: manifest, encoder, arrays, and that ids are distinct."""
        FolderStore(self.folder, read_only=True).open(verify=True)

    def check_writable(self) -> None:
        """Raise unless this process may write."""
        if self.read_only:
            raise UnsupportedError("the index is open read_only; open it without to change it")
        if self._process != os.getpid():
            raise UnsupportedError("the index was opened for writing before a fork; its parent writes to it")

    def bytes_on_disk(self) -> int:
        """All files that the manifest names, and itself."""
        manifest = self._manifest
        files = [manifest.encoder, *(s.codes for s in manifest.segments), *(s.deleted for s in manifest.segments)]
        return sum(file.size for file in files if file is not None) + len(manifest.dumps())

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None and self._process == os.getpid():  # a fork does not hold it
            self._lock.release()
            self._lock = None


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
