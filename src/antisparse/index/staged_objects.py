"""Staging in an object store: no lock, since the manifest is replaced only if it is the one that was read.

Whoever loses a race reads the new manifest and tries again. Every staged object has a name of its own and is never
written twice, and the manifest says before which time such objects may have been removed: so one that is forgotten can
be removed while others commit, and none that was committed ever is.
"""

import secrets
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from antisparse._version import __version__
from antisparse.errors import FormatError, InputError, StorageError
from antisparse.index.files import MOST_HEADER, read_header
from antisparse.index.item_schema import pyarrow
from antisparse.index.items import checked_reader
from antisparse.index.manifest import COMMITS_KEPT, MOST, NAME, STAGED, FileEntry, Manifest
from antisparse.index.objects import Found, ObjectFile
from antisparse.index.remote import RemoteStore, remote_manifest
from antisparse.index.snapshot import Snapshot
from antisparse.index.staged import StagedEntry, check_disjoint, commit_name, described, new_entries

_TRIES = 100  # commits that others may win
_PAUSE = 0.05  # seconds, at most, before the second
_AT_ONCE = 16  # headers
_HEADER = 4096  # bytes that hold almost every header


class ObjectStaging:
    """The staging area of an index in an object store.

    Attributes
    ----------
    place : str
        What errors call the index.
    loader : Loader
    """

    def __init__(self, address: str, cache: Path, cache_bytes: int) -> None:
        self._store = RemoteStore(address, cache, cache_bytes)
        self._objects = self._store.objects
        self.place = self._objects.address
        self.loader = replace(self._store.loader, path=self._fetched)

    def _fetched(self, entry: FileEntry) -> Path:
        self._store.cache.fetch([entry])
        return self._store.cache.path(entry)

    def exists(self) -> bool:
        """Whether there is an index."""
        return any(found.name == NAME for found in self._objects.listed())

    def manifest(self) -> Manifest:
        """The present state of the index."""
        return remote_manifest(self._objects)[0]

    def snapshot(self, manifest: Manifest, known: Snapshot | None = None, memory: bool = False) -> Snapshot:
        """The state that a manifest, or a part of one, names; FileNotFoundError if a file of it is gone."""
        self._store.cache.fetch(manifest.entries())
        return replace(self._store.loader, memory=memory).snapshot(manifest, known)

    def write(self, parts: Sequence[Any], suffix: str, crc: int | None = None, of: str = "") -> FileEntry:
        """An object named by its content and what it belongs to, and by a number of its own."""
        content, size, checksum = described(parts, crc, of)
        name = f"staged-{content}-{secrets.token_hex(8)}.{suffix}"
        self._objects.write(name, parts)
        return FileEntry(name, size, checksum)

    def commit(self, entries: Sequence[StagedEntry], keep: float, name: str | None = None) -> None:
        """Make staged segments part of the index, and remove what was forgotten.

        A commit is known by a name when it is repeated: that of its entries, unless another is given.
        """
        name, pause = name or commit_name(entries), _PAUSE
        for _ in range(_TRIES):
            before, found = remote_manifest(self._objects)
            listed = self._objects.listed()
            newest = max([found.modified, *(one.modified for one in listed)])  # by the clock of the store, not by ours
            cleared = max(before.cleared, int(newest - keep))
            after = replace(before, cleared=cleared)
            if entries and name not in before.commits:
                new = new_entries(entries, before)
                self._check(before, new)
                after = replace(
                    after,
                    segments=(*before.segments, *(entry.segment for entry in new)),
                    next_id=max([before.next_id, *(entry.highest + 1 for entry in new)]),
                    commits=(*before.commits, name)[-COMMITS_KEPT:],
                )
            if (not entries or name in before.commits) and not _forgotten(listed, before, cleared):
                return
            after = replace(after, generation=before.generation + 1, writer=__version__)
            if self._objects.replace(NAME, after.dumps(), found):
                self._objects.discard(_forgotten(listed, after, cleared))
                return
            time.sleep(secrets.randbelow(1000) / 1000 * pause)
            pause = min(2 * pause, 2.0)
        raise StorageError(f"{self.place} was changed by others {_TRIES} times while this was committed; try again")

    def _check(self, manifest: Manifest, new: Sequence[StagedEntry]) -> None:
        """Raise unless the headers of all files are as they were staged, and ids and keys are new."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda entry: self._check_headers(manifest, entry), new))
        schema = self.loader.schema(manifest)
        apart = all(one.highest < next_one.lowest for one, next_one in pairwise(new))
        beyond = not new or new[0].lowest >= manifest.next_id
        if apart and beyond and not (schema is not None and schema.key_is_text):
            return
        snapshot = self._store.load(manifest)
        self._store.cache.fetch([*manifest.entries(), *(file for entry in new for file in entry.files)])
        segments = [self._store.loader.segment(entry.segment, snapshot.codec, schema) for entry in new]
        check_disjoint(snapshot, segments)

    def _check_headers(self, manifest: Manifest, entry: StagedEntry) -> None:
        file, schema = entry.codes, self.loader.schema(manifest)
        try:
            data, found = self._objects.beginning(file.file, _HEADER)
            self._check_found(manifest, file, found)
            length = 8 + int.from_bytes(data[:8], "little")
            if length > min(file.size, MOST_HEADER):
                raise FormatError(f"{file.file} is not a safetensors file: it is damaged")
            if length > len(data):
                data = self._objects.beginning(file.file, length)[0]
            _, metadata = read_header(data[:length], file.crc32, file.file)
            if metadata.get("kind") != "segment" or metadata.get("rows") != str(entry.rows):
                raise FormatError(f"{file.file}: its number of codes is not {entry.rows}: it is damaged")
            entry.check((int(metadata.get("lowest", -1)), int(metadata.get("highest", -1))))
            file = entry.items if entry.items is not None else file
            if (entry.items is None) != (schema is None or not schema.stored.names):
                raise FormatError(f"{file.file}: its items are missing, or some too many: it is damaged")
            if entry.items is not None and schema is not None:
                found = self._objects.about(file.file)
                self._check_found(manifest, file, found)
                footer = pyarrow().PythonFile(ObjectFile(self._objects, found), "r")
                checked_reader(footer, schema, entry.rows, file.file)
        except FileNotFoundError:
            raise entry.lost(file.file) from None

    def _check_found(self, manifest: Manifest, file: FileEntry, found: Found) -> None:
        if found.size != file.size:
            raise FormatError(f"{file.file} has {found.size} bytes where the manifest says {file.size}: it is damaged")
        if found.modified < manifest.cleared:
            raise InputError(f"entries names {file.file}, which was staged long ago and may be gone; stage it anew")

    def waiting(self) -> set[str]:
        """The names of staged files that can be committed."""
        cleared = self.manifest().cleared
        listed = self._objects.listed()
        return {found.name for found in listed if STAGED.fullmatch(found.name) and found.modified >= cleared}

    def notes(self) -> dict[str, bytes]:
        """What was noted, by name."""
        found = {}
        for one in self._objects.listed():
            if one.name.startswith("note-"):
                try:
                    found[one.name] = self._objects.read(one.name, MOST)[0]
                except FileNotFoundError:
                    continue
        return found

    def write_note(self, name: str, data: bytes) -> None:
        """Note something."""
        self._objects.write(name, [data])

    def discard(self, names: Iterable[str]) -> None:
        """Remove notes that nothing needs."""
        self._objects.discard(names)


def _forgotten(listed: Sequence[Found], manifest: Manifest, cleared: int) -> list[str]:
    """Staged objects and notes that no one will commit."""
    named = manifest.files()
    return [
        found.name
        for found in listed
        if found.name.startswith(("staged-", "note-")) and found.name not in named and found.modified < cleared
    ]
