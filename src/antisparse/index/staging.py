"""Segments that others write: staged by any number of processes, committed by one (docs/index.md).

`stage` needs no lock. It encodes vectors and writes a segment into a folder of its own within the index, named by its
content, so that a task that runs twice writes the same file; `commit` makes many of them part of the index in one step.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from antisparse._arrays import folder_of, nonnegative, optional_name, shown, thread_count
from antisparse._files import discard, sync_folder, write_file
from antisparse.codec.codec import Codec
from antisparse.errors import FormatError, InputError, InputTypeError, MissingFileError, StorageError
from antisparse.index.incoming import Incoming, Part
from antisparse.index.index import Index
from antisparse.index.item_schema import key_hashes
from antisparse.index.items import Items, gathered, in_batches, packed
from antisparse.index.manifest import STAGED, FileEntry, Manifest, SegmentEntry, read_manifest
from antisparse.index.segment import Segment, make_segment, twice
from antisparse.index.snapshot import Snapshot
from antisparse.index.state import distinct, id_array
from antisparse.index.store import STAGING, FolderStore
from antisparse.index.texts import TextModel
from antisparse.scan.columns import Ids

WEEK = 7 * 24 * 3600.0
_KEYS = {"codec", "codes", "rows", "lowest", "highest", "items"}
_CODECS: dict[tuple[str, FileEntry], Codec] = {}  # the last one that was read


@dataclass(frozen=True)
class _Entry:
    """What `stage` says of a segment."""

    codec: FileEntry
    codes: FileEntry
    rows: int
    lowest: int
    highest: int
    items: FileEntry | None

    @classmethod
    def of(cls, value: Any) -> "_Entry":
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

    @property
    def files(self) -> list[FileEntry]:
        """The files that were staged."""
        return [self.codes, *([] if self.items is None else [self.items])]


def stage(
    path: str | Path,
    X: Any,
    ids: Any = None,
    *,
    items: Any = None,
    vector: str | None = None,
    model: Any = None,
    n_threads: int | None = None,
) -> dict[str, Any]:
    """Encode vectors and write them beside an index, of which they become a part when they are committed.

    Any number of processes, on any machines that see the folder, may stage while others search it and one writes to it.
    The same vectors and ids give the same file.

    Parameters
    ----------
    path : path
        The folder of an index.
    X : array of shape (n, d), or table
        As for `Index.add`, in memory; at least one vector.
    ids : array of int
        The id of each, not taken by anyone else. Left out where the keys of items are integers, which are the ids.
    items, vector
        As for `Index.add`.
    model
        As for `Index.open`.

    Returns
    -------
    dict
        What `commit` needs: of strings and numbers alone, so that it can travel as JSON.
    """
    thread_count(n_threads)
    folder = folder_of(path)
    manifest = read_manifest(folder)
    store = FolderStore(folder, read_only=True)
    codec, schema = _codec(store, manifest), store.schema(manifest)
    embedder = TextModel.of(model, manifest.model)
    incoming = Incoming(codec, schema, n_threads, manifest.model, embedder, optional_name(vector, "vector"))
    part = incoming.whole(X, items)
    part = Part(part.rows, _ids(part, ids), part.items)
    assert part.ids is not None
    hashes, batches = None, None
    if schema is not None and part.items is not None:
        held = Items.of(schema, in_batches(schema, part.items))
        if schema.key_is_text:
            keys: list[str] = part.items.column(schema.key).to_pylist()
            if len(set(keys)) < len(keys):
                raise InputError("X has a key twice; keys are distinct")
            hashes = key_hashes(keys)
        order = np.argsort(part.ids, kind="stable")
        batches = gathered(schema, [(held, np.arange(held.rows))], order)
    segment = make_segment(codec, part.rows, part.ids, hashes)
    place = folder / STAGING
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(f"{place} could not be made: {error}") from error
    sync_folder(folder)
    items_file = None if batches is None or schema is None else _write(place, list(packed(schema, batches)), "arrow")
    parts, crc = segment.pack()
    codes = _write(place, parts, "safetensors", crc)
    sync_folder(place)
    lowest, highest = int(part.ids.min()), int(part.ids.max())
    return asdict(_Entry(manifest.codec, codes, len(part.rows), lowest, highest, items_file))


def commit(path: str | Path, entries: Iterable[Mapping[str, Any]], *, keep: float = WEEK) -> int:
    """Make segments that were staged part of an index, all of them or, if it fails, none.

    It takes the lock of the one who writes, checks the header of every file and that no id or key is there already, and
    replaces the manifest once: at a cost that does not grow with the codes, where the ids of segments do not overlap
    and there are no keys of text. Segments are not merged (`Index.compact` does). A commit that is repeated, after a
    crash say, finds its work done.

    Parameters
    ----------
    path : path
        The folder of the index.
    entries : iterable of dict
        What `stage` returned, in any order; one that stands several times counts once.
    keep : float
        Staged files that are older than so many seconds, a week by default, are taken for forgotten, and removed.

    Returns
    -------
    int
        How many vectors were added by it, now or before.
    """
    listed = [entries] if isinstance(entries, Mapping) else entries
    if isinstance(listed, str | np.ndarray) or not isinstance(listed, Iterable):
        raise InputTypeError(f"entries must be a sequence of what stage returned, not {shown(entries)}")
    wanted = list({entry.codes.file: entry for entry in map(_Entry.of, listed)}.values())
    seconds = nonnegative(keep, "keep")
    with Index.open(path) as index:
        store = index._writer.store
        assert isinstance(store, FolderStore)
        if wanted:
            index._writer.adopt(_name(wanted), lambda snapshot: _load(store, snapshot, wanted))
        _clean(store.folder / STAGING, [file for entry in wanted for file in entry.files], seconds)
    return sum(entry.rows for entry in wanted)


def _name(entries: Sequence[_Entry]) -> str:
    """What a commit is known by when it is repeated."""
    names = sorted(file.file for entry in entries for file in entry.files)
    return blake2b(json.dumps(names).encode(), digest_size=16).hexdigest()


def _load(store: FolderStore, snapshot: Snapshot, entries: Sequence[_Entry]) -> list[Segment]:
    """The segments that are not yet part of the snapshot, in the order of their ids."""
    assert snapshot.manifest is not None
    there = snapshot.manifest.files()
    segments = []
    for entry in sorted(entries, key=lambda one: (one.lowest, one.codes.file)):
        if entry.codec != snapshot.manifest.codec:
            raise InputError("entries holds a segment that was staged for another codec; stage it anew")
        if entry.codes.file in there:
            continue
        try:
            segment = store.adopt(SegmentEntry(entry.codes, entry.rows, items=entry.items), snapshot)
        except FileNotFoundError as error:
            raise MissingFileError(
                f"entries names {entry.codes.file}, of ids {entry.lowest} to {entry.highest}, but "
                f"{os.path.basename(str(error.filename))} is not among what is staged; stage it anew"
            ) from None
        if not segment.rows or (entry.lowest, entry.highest) != segment.id_range:
            raise FormatError(f"{entry.codes.file}: its ids are not {entry.lowest} to {entry.highest}: it is damaged")
        segments.append(segment)
    _check_disjoint(snapshot, segments)
    return segments


def _check_disjoint(snapshot: Snapshot, new: Sequence[Segment]) -> None:
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
        ids = np.concatenate([segment.ids[segment.order] for segment in new])
        distinct(ids, "entries")
        there = snapshot.contains(ids)
        if there.any():
            raise InputError(f"entries have id {ids[there][0]}, which is there already")
    if snapshot.schema is not None and snapshot.schema.key_is_text and twice((*snapshot.segments, *new)):
        raise InputError("entries have a key that is there already, or stands twice among them")


def _codec(store: FolderStore, manifest: Manifest) -> Codec:
    """The codec of an index, read once by a process that stages many times."""
    name = (str(store.folder), manifest.codec)
    codec = _CODECS.get(name)
    if codec is None:
        codec = store.read_codec(manifest.codec)
        _CODECS.clear()
        _CODECS[name] = codec
    return codec


def _ids(part: Part, ids: Any) -> Ids:
    """The ids of a part, checked: as they are given, or as its keys are."""
    if part.ids is not None and ids is not None:
        raise InputError("ids cannot be given where the keys of items are the ids; leave them out")
    if part.ids is None and ids is None:
        raise InputError("ids is missing: what is staged does not know which ids others take")
    found = id_array(ids, "ids") if part.ids is None else part.ids
    if len(found) != len(part.rows):
        raise InputError(f"ids has {len(found)} entries for {len(part.rows)} vectors")
    if not len(found):
        raise InputError("X has no rows; at least one vector is staged")
    distinct(found)
    return found


def _write(place: Path, parts: Sequence[Any], suffix: str, crc: int | None = None) -> FileEntry:
    """A file named by its content; one that is there already is the same, and is as good as new."""
    digest, whole, size = blake2b(digest_size=16), 0, 0
    for part in parts:
        digest.update(part)
        size += len(part)
        whole = crc32(part, whole) if crc is None else 0
    name = f"staged-{digest.hexdigest()}.{suffix}"
    write_file(place / name, parts)
    return FileEntry(name, size, whole if crc is None else crc)


def _clean(place: Path, files: Sequence[FileEntry], keep: float) -> None:
    """Remove staged files that are part of the index, and those that were forgotten."""
    for file in files:
        discard(place / file.file)
    try:
        names = os.listdir(place)
    except OSError:  # nothing was ever staged
        return
    for name in names:
        try:
            if os.lstat(place / name).st_mtime < time.time() - keep:
                discard(place / name)
        except OSError:  # another has removed it
            continue
