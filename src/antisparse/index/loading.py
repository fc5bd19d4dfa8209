"""Snapshots from their files: what a manifest names, read without trust, wherever the files are."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from antisparse._files import read_file
from antisparse.codec.codec import Codec
from antisparse.codec.files import MOST
from antisparse.errors import FormatError
from antisparse.index.files import ArrayFile, checksum, mapped
from antisparse.index.item_schema import ItemSchema
from antisparse.index.items import Items
from antisparse.index.manifest import NAME, FileEntry, Manifest, SegmentEntry
from antisparse.index.segment import Segment, check_content, read_segment, twice
from antisparse.index.snapshot import Snapshot
from antisparse.scan.search import Searcher


@dataclass(frozen=True)
class Loader:
    """Reads the files of an index.

    Attributes
    ----------
    place : str
        What errors call the index.
    path : callable
        Where a file is; FileNotFoundError if it is nowhere.
    memory : bool
        Read segments into memory instead of mapping their files.
    """

    place: str
    path: Callable[[FileEntry], Path]
    memory: bool = False

    def snapshot(self, manifest: Manifest, known: Snapshot | None = None, verify: bool = False) -> Snapshot:
        """The state that a manifest names; `verify` reads every byte of it.

        The codec of a snapshot that is `known` is not read again, if it is the same.
        """
        if known is not None and known.manifest is not None and known.manifest.codec == manifest.codec:
            searcher = known.searcher
        else:
            searcher = Searcher(self.codec(manifest.codec))
        schema = self.schema(manifest, known)
        segments = tuple(self.segment(entry, searcher.codec, schema, verify) for entry in manifest.segments)
        if verify:
            ids = np.concatenate([np.zeros(0, np.int64), *(s.ids.at(s.live_places()) for s in segments)])
            if len(np.unique(ids)) != len(ids) or (ids >= manifest.next_id).any():
                raise FormatError(f"{self.place} has an id in two segments, or one never given out: it is damaged")
            if twice(segments):
                raise FormatError(f"{self.place} has a key twice: it is damaged")
        return Snapshot(searcher, segments, manifest.next_id, manifest, schema, manifest.model, manifest.commits)

    def schema(self, manifest: Manifest, known: Snapshot | None = None) -> ItemSchema | None:
        """What is kept beside the codes; that of a snapshot that is known is not read again, if it is the same."""
        if manifest.items is None:
            return None
        if known is not None and known.schema is not None and known.schema.entry == manifest.items:
            return known.schema
        try:
            return ItemSchema.read(manifest.items)
        except FormatError as error:
            raise FormatError(f"{self.place}/{NAME}: {error}") from None

    def segment(self, entry: SegmentEntry, codec: Codec, schema: ItemSchema | None, verify: bool = False) -> Segment:
        """A segment and its items."""
        codes = self.arrays(entry.codes)
        deleted = None if entry.deleted is None else self.arrays(entry.deleted)
        items = self.items(schema, entry.items, entry.rows, verify)
        segment = read_segment(codec, codes, entry.rows, deleted, entry.deleted_rows, items)
        if verify:
            codes.verify()
            check_content(segment, codes.path)
        return replace(segment, file=entry.codes, deleted_file=entry.deleted, items_file=entry.items)

    def items(
        self, schema: ItemSchema | None, entry: FileEntry | None, rows: int, verify: bool = False
    ) -> Items | None:
        """The items of a segment of so many rows, if it has any."""
        if (entry is None) != (schema is None or not schema.stored.names):
            raise FormatError(f"{self.place}: the items of a segment are missing, or some too many: it is damaged")
        if schema is None or entry is None:
            return None
        return Items.read(schema, self.path(entry), entry, rows, self.memory, verify)

    def codec(self, entry: FileEntry) -> Codec:
        """The codec that the manifest names."""
        path = self.path(entry)
        data = read_file(path, MOST)
        if len(data) != entry.size:
            raise FormatError(f"{path} has {len(data)} bytes where the manifest says {entry.size}: it is damaged")
        if zlib.crc32(data) != entry.crc32:
            raise FormatError(f"{path} is not the codec that the manifest names: it is damaged")
        try:
            return Codec.from_bytes(data)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None

    def arrays(self, entry: FileEntry) -> ArrayFile:
        """A file of arrays, its header checked."""
        return ArrayFile(self.path(entry), entry.size, entry.crc32, self.memory)


def check_file(path: Path, entry: FileEntry) -> None:
    """Read all of a file; FormatError unless it is the one that a manifest names."""
    if entry.file.startswith("codec-") or entry.file.endswith(".arrow"):  # whose checksum is that of all bytes
        if checksum(np.frombuffer(mapped(path, entry.size, False), np.uint8)) != entry.crc32:
            raise FormatError(f"{path}: its checksum does not match the manifest: the file is damaged")
    else:
        ArrayFile(path, entry.size, entry.crc32).verify()
