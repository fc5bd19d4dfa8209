"""Staging in a folder: files in a folder of their own, committed under the lock of the one who writes."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from antisparse._files import discard, read_file, sync_folder, write_file
from antisparse.errors import StorageError
from antisparse.index.build import check_new_path
from antisparse.index.index import Index
from antisparse.index.loading import Loader
from antisparse.index.manifest import MOST, STAGED, FileEntry, Manifest, read_manifest
from antisparse.index.segment import Segment
from antisparse.index.snapshot import Snapshot
from antisparse.index.staged import StagedEntry, check_disjoint, commit_name, described, new_entries
from antisparse.index.store import STAGING, FolderStore


class FolderStaging:
    """The staging area of an index in a folder.

    Attributes
    ----------
    place : str
        What errors call the index.
    loader : Loader
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder)
        self.loader = Loader(self.place, lambda entry: folder / entry.file)
        self._staged = folder / STAGING
        self._made = False

    def exists(self) -> bool:
        """Whether there is anything; InputError or StorageError if nothing can be made there either."""
        if os.path.lexists(self.folder):
            return True
        check_new_path(self.folder)
        return False

    def manifest(self) -> Manifest:
        """The present state of the index."""
        return read_manifest(self.folder)

    def snapshot(self, manifest: Manifest, known: Snapshot | None = None, memory: bool = False) -> Snapshot:
        """The state that a manifest, or a part of one, names; FileNotFoundError if a file of it is gone."""
        return replace(self.loader, memory=memory).snapshot(manifest, known)

    def write(self, parts: Sequence[Any], suffix: str, crc: int | None = None, of: str = "") -> FileEntry:
        """A file named by its content, and what it belongs to; one that is there already is the same."""
        self._make()
        content, size, checksum = described(parts, crc, of)
        name = f"staged-{content}.{suffix}"
        write_file(self._staged / name, parts)
        sync_folder(self._staged)
        return FileEntry(name, size, checksum)

    def _make(self) -> None:
        if self._made:
            return
        try:
            self._staged.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self._staged} could not be made: {error}") from error
        sync_folder(self.folder)
        self._made = True

    def commit(self, entries: Sequence[StagedEntry], keep: float, name: str | None = None) -> None:
        """Make staged segments part of the index, and remove what was forgotten.

        A commit is known by a name when it is repeated: that of its entries, unless another is given.
        """
        with Index.open(self.folder) as index:
            store = index._writer.store
            assert isinstance(store, FolderStore)
            if entries:
                index._writer.adopt(name or commit_name(entries), lambda snapshot: _load(store, snapshot, entries))
            for entry in entries:
                self.discard(file.file for file in entry.files)
            self._clean(keep)

    def waiting(self) -> set[str]:
        """The names of staged files that can be committed."""
        return {name for name in self._names() if STAGED.fullmatch(name)}

    def notes(self) -> dict[str, bytes]:
        """What was noted, by name."""
        found = {}
        for name in self._names():
            if name.startswith("note-"):
                try:
                    found[name] = read_file(self._staged / name, MOST)
                except FileNotFoundError:
                    continue
        return found

    def write_note(self, name: str, data: bytes) -> None:
        """Note something, on the disk."""
        self._make()
        write_file(self._staged / name, [data])
        sync_folder(self._staged)

    def discard(self, names: Iterable[str]) -> None:
        """Remove staged files or notes that nothing needs."""
        for name in names:
            discard(self._staged / name)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._staged)
        except OSError:  # nothing was ever staged
            return []

    def _clean(self, keep: float) -> None:
        for name in self._names():
            try:
                if os.lstat(self._staged / name).st_mtime < time.time() - keep:
                    discard(self._staged / name)
            except OSError:  # another has removed it
                continue


def _load(store: FolderStore, snapshot: Snapshot, entries: Sequence[StagedEntry]) -> list[Segment]:
    """The segments that are not yet part of the snapshot, in the order of their ids."""
    assert snapshot.manifest is not None
    segments = []
    for entry in new_entries(entries, snapshot.manifest):
        try:
            segment = store.adopt(entry.segment, snapshot)
        except FileNotFoundError as error:
            raise entry.lost(os.path.basename(str(error.filename))) from None
        entry.check(segment.id_range if segment.rows else (-1, -1))
        segments.append(segment)
    check_disjoint(snapshot, segments)
    return segments
