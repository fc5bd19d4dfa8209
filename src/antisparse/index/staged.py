"""What was staged: segments that others wrote, as they are told of, and what is checked before they are committed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any
from zlib import crc32

import numpy as np

from antisparse._arrays import shown
from antisparse.errors import FormatError, InputError, InputTypeError, MissingFileError
from antisparse.index.manifest import STAGED, FileEntry, Manifest, SegmentEntry
from antisparse.index.segment import Segment, twice
from antisparse.index.snapshot import Snapshot
from antisparse.index.state import distinct

_KEYS = {"codec", "codes", "rows", "lowest", "highest", "items"}


@dataclass(frozen=True)
class StagedEntry:
    """What `stage` says of a segment."""

    codec: FileEntry
    codes: FileEntry
    rows: int
    lowest: int
    highest: int
    items: FileEntry | None

    @classmethod
    def of(cls, value: Any) -> "StagedEntry":
        """From what a caller passes: a dict that was JSON on its way."""
        if not isinstance(value, Mapping) or set(value) != _KEYS:
            raise InputTypeError(f"entries holds {shown(value)}, which stage did not return")
        try:
            items = None if value["items"] is None else FileEntry(**value["items"])
            codec, codes = FileEntry(**value["codec"]), FileEntry(**value["codes"])
            found = cls(codec, codes, value["rows"], value["lowest"], value["highest"], items)
            numbers = [found.rows, found.lowest, found.highest]
            for file in (found.codec, found.codes, *([] if items is None else [items])):
                numbers += [file.size, file.crc32]
                if not isinstance(file.file, str):
                    raise ValueError("the name of a file is not text")
            if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63 for one in numbers):
                raise ValueError("a number is not an integer from 0 on")
            if any(STAGED.fullmatch(file.file) is None for file in (found.codes, items) if file is not None):
                raise ValueError("the name of a file is not one that stage gives")
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"entries holds {shown(value)}, which stage did not return: {error}") from None
        return found

    def to_dict(self) -> dict[str, Any]:
        """Of strings and numbers alone."""
        return asdict(self)

    @property
    def content(self) -> str:
        """What it is known by: the same vectors, ids and items have the same, whatever their files are called."""
        return content_of(self.codes.file if self.items is None else self.items.file)

    @property
    def files(self) -> list[FileEntry]:
        """The files that were staged."""
        return [self.codes, *([] if self.items is None else [self.items])]

    @property
    def segment(self) -> SegmentEntry:
        """As a manifest names it."""
        return SegmentEntry(self.codes, self.rows, items=self.items)

    def lost(self, name: str) -> MissingFileError:
        """One of its files is not where it was staged."""
        return MissingFileError(
            f"entries names {self.codes.file}, of ids {self.lowest} to {self.highest}, but {name} is not among what is "
            "staged; stage it anew"
        )

    def check(self, id_range: tuple[int, int]) -> None:
        """Raise unless a segment that was read is the one that was staged."""
        if not self.rows or id_range != (self.lowest, self.highest):
            raise FormatError(f"{self.codes.file}: its ids are not {self.lowest} to {self.highest}: it is damaged")


def content_of(name: str) -> str:
    """The part of the name of a staged file that its content gives; the name itself of any other."""
    match = STAGED.fullmatch(name)
    return name if match is None else match[1]


def commit_name(entries: Sequence[StagedEntry]) -> str:
    """What a commit is known by when it is repeated."""
    names = sorted(content_of(file.file) for entry in entries for file in entry.files)
    return blake2b(json.dumps(names).encode(), digest_size=16).hexdigest()


def new_entries(entries: Sequence[StagedEntry], manifest: Manifest) -> list[StagedEntry]:
    """Those that are not yet part of an index, in the order of their ids; all must be of its codec."""
    if any(entry.codec != manifest.codec for entry in entries):
        raise InputError("entries holds a segment that was staged for another codec; stage it anew")
    there = {content_of(name) for name in manifest.files()}
    new = (entry for entry in entries if entry.content not in there)
    return sorted(new, key=lambda entry: (entry.lowest, entry.codes.file))


def described(parts: Sequence[Any], crc: int | None, of: str = "") -> tuple[str, int, int]:
    """The content of a file, its size, and its checksum: of all of it, unless that of its header is given.

    What it belongs to is part of the content: items that are equal belong to one segment alone.
    """
    digest, whole, size = blake2b(of.encode(), digest_size=16), 0, 0
    for part in parts:
        digest.update(part)
        size += len(part)
        whole = crc32(part, whole) if crc is None else 0
    return digest.hexdigest(), size, whole if crc is None else crc


def check_disjoint(snapshot: Snapshot, new: Sequence[Segment]) -> None:
    """Raise unless new segments, by their lowest ids, have ids and keys of their own.

    Ids are compared only where their ranges overlap.
    """
    if not new:
        return
    lows, highs = np.array([segment.id_range for segment in new]).T
    overlap = bool((lows[1:] <= highs[:-1]).any())
    for low, high in (segment.id_range for segment in snapshot.segments):
        first = int(np.searchsorted(highs, low))  # of the new ones that end at or beyond it
        overlap = overlap or (first < len(new) and bool(lows[first] <= high))
    if overlap:
        ids = np.concatenate([np.sort(segment.ids.at(segment.live_places())) for segment in new])
        distinct(ids, "entries")
        there = snapshot.contains(ids)
        if there.any():
            raise InputError(f"entries have id {ids[there][0]}, which is there already")
    if snapshot.schema is not None and snapshot.schema.key_is_text and twice((*snapshot.segments, *new)):
        raise InputError("entries have a key that is there already, or stands twice among them")
