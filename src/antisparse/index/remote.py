"""An index in an object store: read by any number of machines, through a cache on each (docs/objects.md)."""

import os
import secrets
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from antisparse._arrays import folder_of, integer, shown
from antisparse._files import user_cache
from antisparse.codec.codec import Codec
from antisparse.errors import FormatError, InputError, StorageError, UnsupportedError
from antisparse.index.cache import Cache
from antisparse.index.items import packed
from antisparse.index.loading import Loader
from antisparse.index.manifest import MOST, NAME, FileEntry, Manifest, SegmentEntry, parse_manifest
from antisparse.index.objects import Found, Objects
from antisparse.index.segment import Segment
from antisparse.index.snapshot import Snapshot
from antisparse.index.store import MemoryStore

_TRIES = 20
CACHE_BYTES = 1 << 36  # 64 GiB


def cache_place(folder: Any, limit: Any) -> tuple[Path, int]:
    """Where files are kept on this machine, and how many bytes of them: as given, or as the environment says."""
    root = os.environ.get("ANTISPARSE_CACHE") or None if folder is None else folder
    place = user_cache() / "indexes" if root is None else folder_of(root, "cache")
    if limit is not None:
        return place, integer(limit, "cache_bytes", 1)
    text = os.environ.get("ANTISPARSE_CACHE_BYTES") or str(CACHE_BYTES)
    if not text.isdecimal() or not int(text):
        raise InputError(f"ANTISPARSE_CACHE_BYTES = {shown(text)} in the environment; it must be a number of bytes")
    return place, int(text)


class RemoteStore(MemoryStore):
    """An index at an address. Nothing is written through it: segments are staged and committed.

    Attributes
    ----------
    objects : Objects
    cache : Cache
    loader : Loader
        Reads the files of the cache.
    """

    def __init__(self, address: str, cache: Path, cache_bytes: int, memory: bool = False) -> None:
        self.objects = Objects(address)
        self.place = self.objects.address
        self.cache = Cache(self.objects, cache, cache_bytes)
        self.loader = Loader(self.objects.address, self.cache.path, memory)

    def open(self, known: Snapshot | None = None, verify: bool = False) -> Snapshot:
        """The snapshot that the manifest names; `verify` reads every byte of it."""
        for _ in range(_TRIES):
            manifest = remote_manifest(self.objects)[0]
            if known is not None and known.manifest == manifest and not verify:
                return known
            try:
                return self.load(manifest, known, verify)
            except FileNotFoundError as error:
                # Another process may have made room in the cache, or replaced the index, since the manifest was read.
                there = not str(error.filename).startswith(self.objects.address)
                if not there and remote_manifest(self.objects)[0] == manifest:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
        raise StorageError(
            f"the files of {self.objects.address} are removed from the cache {self.cache.root} faster than they can be "
            "opened; raise cache_bytes="
        )

    def check_objects(self, manifest: Manifest) -> None:
        """Raise unless every object that a manifest names is there, in its size."""
        there = {found.name: found.size for found in self.objects.listed()}
        for entry in manifest.entries():
            if there.get(entry.file) != entry.size:
                raise FormatError(f"{self.objects.address}/{entry.file} is missing, or cut: the index is damaged")

    def load(self, manifest: Manifest, known: Snapshot | None = None, verify: bool = False) -> Snapshot:
        """The state that a manifest names, its files fetched; FileNotFoundError if one is nowhere."""
        if verify:
            self.check_objects(manifest)
        self.cache.fetch(manifest.entries())
        return self.loader.snapshot(manifest, known, verify)

    def reopened(self, snapshot: Snapshot) -> Snapshot:
        """What others have committed since."""
        return self.open(snapshot)

    def check_writable(self) -> None:
        """Never writable."""
        raise UnsupportedError(
            "an index in an object store is read only; stage and commit vectors (antisparse.index), or change it in a "
            "folder and save it under another address"
        )

    def verify(self) -> None:
        """Read every byte again and compare: manifest, codec, arrays, and that ids are distinct."""
        RemoteStore(self.objects.address, self.cache.root, self.cache.limit).open(verify=True)


def remote_manifest(objects: Objects) -> tuple[Manifest, Found]:
    """The manifest of an address, and what it is as an object."""
    try:
        data, found = objects.read(NAME, MOST)
    except FileNotFoundError:
        raise FormatError(f"{objects.address} is not an index: it has no {NAME}") from None
    return parse_manifest(data, f"{objects.address}/{NAME}"), found


def save_remote(address: str, snapshot: Snapshot) -> None:
    """Write a snapshot under an address that holds no index; the manifest last: until then there is none."""
    objects = Objects(address)
    if any(found.name == NAME for found in objects.listed()):
        raise InputError(f"path = {objects.address!r} is an index already; open it, or choose another address")
    written: list[str] = []

    def write(kind: str, parts: Iterable[Any], crc: int | None, suffix: str = "safetensors") -> FileEntry:
        held = list(parts)
        whole = 0
        for part in held if crc is None else ():
            whole = zlib.crc32(part, whole)
        name = f"{kind}-{secrets.token_hex(4)}.{suffix}"
        written.append(name)
        objects.write(name, held)
        return FileEntry(name, sum(memoryview(part).nbytes for part in held), whole if crc is None else crc)

    try:
        data = snapshot.codec.to_bytes()
        Codec.from_bytes(data)  # what is acknowledged can be opened again
        codec = write("codec", [data], None)
        segments = tuple(_saved(segment, write) for segment in snapshot.segments)
    except BaseException:
        objects.discard(written)
        raise
    kept = None if snapshot.schema is None else snapshot.schema.entry
    manifest = Manifest(codec, 1, snapshot.next_id, segments, kept, snapshot.model, snapshot.commits)
    # If this fails without an answer, the manifest may be there all the same: its files stay.
    if not objects.create(NAME, manifest.dumps()) and remote_manifest(objects)[0] != manifest:
        objects.discard(written)
        raise StorageError(f"{objects.address}: another has made an index there meanwhile")


def _saved(segment: Segment, write: Callable[..., FileEntry]) -> SegmentEntry:
    generation = f"{1:08d}"
    segment = segment if segment.items is None else segment.ordered()
    codes = write(f"segment-{generation}", *segment.pack())
    deleted, items = None, None
    if len(segment.deleted):
        deleted = write(f"deleted-{generation}", *segment.pack_deleted())
    if segment.items is not None:
        parts = packed(segment.items.schema, segment.items.batches())
        items = write(f"items-{generation}", parts, None, "arrow")
    return SegmentEntry(codes, segment.rows, deleted, len(segment.deleted), items)
