"""Files of object stores, kept on this machine: by name, size and checksum, up to a number of bytes (docs/objects.md).

Files are immutable and appear whole, so several processes may share a folder without a lock. One that another process
has removed meanwhile is fetched again; one that is mapped stays as long as it is.
"""

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from antisparse._files import TEMPORARY, discard, write_file
from antisparse.errors import FormatError, StorageError
from antisparse.index.loading import check_file
from antisparse.index.manifest import FileEntry
from antisparse.index.objects import Objects

_AT_ONCE = 8  # files
_TRIES = 3  # of a file that comes damaged
_FORGOTTEN = 24 * 3600.0  # seconds after which a file that is not whole has no one who writes it


@dataclass(frozen=True)
class Kept:
    """A file of the cache."""

    path: Path
    size: int
    used: float


class Cache:
    """The files of one index of an object store.

    Attributes
    ----------
    folder : Path
        Where those of this address are: a folder of `root`, which many addresses may share.
    limit : int
        Bytes that all files of `root` may take; those that were not used for the longest time make room.
    """

    def __init__(self, objects: Objects, root: Path, limit: int) -> None:
        self.objects = objects
        self.root = root
        self.limit = limit
        self.folder = root / blake2b(objects.address.encode(), digest_size=12).hexdigest()
        self._sound: set[FileEntry] = set()  # what this process has read and found whole

    def path(self, entry: FileEntry) -> Path:
        """Where a file is that was fetched; FileNotFoundError if it was removed meanwhile."""
        return self.folder / entry.file

    def fetch(self, entries: Iterable[FileEntry]) -> None:
        """Have all of these files here, whole: those that are not, or are damaged, come from the store."""
        wanted = list(dict.fromkeys(entries))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"the cache {self.folder} cannot be made: {error}; name another by cache=") from error
        missing = [entry for entry in wanted if not self._used(entry)]
        self._make_room(wanted, missing)
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # raises the first error when all are done
            list(pool.map(self._have, wanted))
        if missing:  # others may have fetched at the same time
            self._make_room(wanted, [])

    def _used(self, entry: FileEntry) -> bool:
        """Whether a file is here, by its size; it counts as used now."""
        path = self.path(entry)
        try:
            os.utime(path)
            return path.stat().st_size == entry.size
        except OSError:
            return False

    def _have(self, entry: FileEntry) -> None:
        path = self.path(entry)
        if entry in self._sound and self._used(entry):
            return
        for attempt in range(1 + _TRIES):
            if attempt:
                write_file(path, self.objects.parts(entry.file, entry.size))
            try:
                check_file(path, entry)
            except FileNotFoundError:
                continue
            except FormatError:
                discard(path)
                continue
            self._sound.add(entry)
            return
        raise FormatError(f"{self.objects.address}/{entry.file} is not the file that the manifest names: it is damaged")

    def _make_room(self, wanted: list[FileEntry], missing: list[FileEntry]) -> None:
        """Remove what was not used for the longest time, but nothing that is wanted now."""
        needed = sum(entry.size for entry in wanted)
        if needed > self.limit:
            raise StorageError(
                f"{self.objects.address} takes {needed:,} bytes, and the cache {self.root} at most {self.limit:,}; "
                "raise cache_bytes="
            )
        mine = {self.path(entry) for entry in wanted}
        kept = list(self._kept())
        free = self.limit - sum(one.size for one in kept) - sum(entry.size for entry in missing)
        for one in sorted(kept, key=lambda one: one.used):
            if free >= 0:
                return
            if one.path not in mine and not one.path.name.startswith(TEMPORARY):  # which someone writes
                discard(one.path)
                free += one.size

    def _kept(self) -> Iterator[Kept]:
        """All files of the cache; what others did not finish is removed when it is old."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):  # another has removed it
                    found = path.stat()
                    if name.startswith(TEMPORARY) and found.st_mtime < time.time() - _FORGOTTEN:
                        discard(path)
                    else:
                        yield Kept(path, found.st_size, found.st_mtime)
