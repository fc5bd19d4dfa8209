"""Which shard has which segments: by bytes, and where they were before."""

from collections.abc import Sequence
from dataclasses import replace

from antisparse.index.manifest import Manifest, SegmentEntry


def assigned(manifest: Manifest, shards: int, before: Sequence[Manifest] = ()) -> list[Manifest]:
    """A manifest in parts, one a shard, of disjoint segments with about as many bytes each.

    Segments stay with the shard that had them `before`; new ones, the largest first, go to where the fewest bytes are.
    """
    home = {entry.codes.file: number for number, part in enumerate(before[:shards]) for entry in part.segments}
    held: list[list[SegmentEntry]] = [[] for _ in range(shards)]
    new = []
    for entry in manifest.segments:
        if entry.codes.file in home:
            held[home[entry.codes.file]].append(entry)
        else:
            new.append(entry)
    loads = [sum(map(segment_bytes, part)) for part in held]
    for entry in sorted(new, key=segment_bytes, reverse=True):
        least = loads.index(min(loads))
        held[least].append(entry)
        loads[least] += segment_bytes(entry)
    return [replace(manifest, segments=tuple(part)) for part in held]


def segment_bytes(entry: SegmentEntry) -> int:
    """The bytes of a segment and its items."""
    return entry.codes.size + (0 if entry.items is None else entry.items.size)
