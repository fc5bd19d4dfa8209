"""Segments that others write: staged by any number of processes, committed by one (docs/index.md).

`stage` needs no lock. It encodes vectors and writes a segment into the staging area of the index, named by its content,
so that a task that runs twice adds once; `commit` makes many of them part of the index in one step. Both take a folder
or an address in an object store.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from antisparse._arrays import folder_of, nonnegative, optional_name, shown, thread_count
from antisparse.codec.codec import Codec
from antisparse.errors import InputError, InputTypeError
from antisparse.index.incoming import Incoming, Part
from antisparse.index.item_schema import key_hashes
from antisparse.index.items import Items, gathered, in_batches, packed
from antisparse.index.manifest import FileEntry, Manifest
from antisparse.index.objects import is_address
from antisparse.index.remote import cache_place
from antisparse.index.segment import make_segment
from antisparse.index.staged import StagedEntry, content_of
from antisparse.index.staged_folder import FolderStaging
from antisparse.index.staged_objects import ObjectStaging
from antisparse.index.state import distinct, id_array
from antisparse.index.texts import TextModel
from antisparse.scan.columns import Ids

WEEK = 7 * 24 * 3600.0
_CODECS: dict[tuple[str, FileEntry], Codec] = {}  # the last one that was read


def staging_of(path: str | Path) -> FolderStaging | ObjectStaging:
    """The staging area of an index."""
    if isinstance(path, str) and is_address(path):
        return ObjectStaging(path, *cache_place(None, None))
    return FolderStaging(folder_of(path))


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
        The folder of an index, or its address in an object store.
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
    staging = staging_of(path)
    manifest = staging.manifest()
    codec, schema = _codec(staging, manifest), staging.loader.schema(manifest)
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
    if batches is not None:
        segment = segment.ordered()
    parts, crc = segment.pack()
    codes, items_file = staging.write(parts, "safetensors", crc), None
    if batches is not None and schema is not None:
        items_file = staging.write(list(packed(schema, batches)), "arrow", of=content_of(codes.file))
    lowest, highest = int(part.ids.min()), int(part.ids.max())
    return StagedEntry(manifest.codec, codes, len(part.rows), lowest, highest, items_file).to_dict()


def commit(path: str | Path, entries: Iterable[Mapping[str, Any]], *, keep: float = WEEK) -> int:
    """Make segments that were staged part of an index, all of them or, if it fails, none.

    It takes the lock of the one who writes (in an object store, which has none, it replaces the manifest only if no one
    else has, and else tries again), checks the header of every file and that no id or key is there already, and
    replaces the manifest once: at a cost that does not grow with the codes, where the ids of segments do not overlap
    and there are no keys of text. Segments are not merged (`Index.compact` does). A commit that is repeated, after a
    crash say, finds its work done.

    Parameters
    ----------
    path : path
        The folder of the index, or its address in an object store.
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
    wanted = list({entry.content: entry for entry in map(StagedEntry.of, listed)}.values())
    staging_of(path).commit(wanted, nonnegative(keep, "keep"))
    return sum(entry.rows for entry in wanted)


def _codec(staging: FolderStaging | ObjectStaging, manifest: Manifest) -> Codec:
    """The codec of an index, read once by a process that stages many times."""
    name = (staging.place, manifest.codec)
    codec = _CODECS.get(name)
    if codec is None:
        codec = staging.loader.codec(manifest.codec)
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
