"""A segment: codes with their ids, laid out for the scan, that never change; deletions stand beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse.codec.codec import Codec
from antisparse.codec.scale import FixedLength, ScaleByte
from antisparse.codes import BLOCK, Codes
from antisparse.errors import FormatError
from antisparse.index.files import ArrayFile, pack_arrays
from antisparse.index.item_schema import Hashes, key_hashes
from antisparse.index.items import Items, Rows
from antisparse.index.manifest import FileEntry
from antisparse.scan.columns import Columns, Ids, lay_out

Places = npt.NDArray[np.uint32]
_COLUMNS = ("ids", "blocks", "scales", "cell_ends")  # in the order of the file: each begins where its type may
_KEYS = ("key_hashes", "key_rows")


@dataclass(frozen=True, eq=False)
class Segment:
    """Codes, and which of them are deleted.

    Attributes
    ----------
    columns : Columns
        The codes, always with ids and cells.
    order : ndarray of shape (rows,), uint32
        The places of all codes by id, so that an id is found by binary search.
    deleted : ndarray, uint32
        The places of deleted codes, ascending.
    file, deleted_file, items_file : FileEntry or None
        Where codes, deletions and items are stored; None where they are not.
    keys : tuple of ndarrays of shape (rows,), uint64 and uint32, or None
        Hashes of keys that are text, ascending, and the rows of the items that they belong to.
    items : Items or None
        Row r belongs to the code at place order[r].
    """

    columns: Columns
    order: Places
    deleted: Places = field(default_factory=lambda: np.zeros(0, np.uint32))
    file: FileEntry | None = None
    deleted_file: FileEntry | None = None
    items_file: FileEntry | None = None
    keys: tuple[Hashes, Places] | None = None
    items: Items | None = None

    @property
    def rows(self) -> int:
        """Codes in all."""
        return len(self.order)

    @property
    def live(self) -> int:
        """Codes that are not deleted."""
        return len(self.order) - len(self.deleted)

    @property
    def ids(self) -> Ids:
        """The id at each place, -1 for none, deleted or not."""
        assert self.columns.ids is not None
        return self.columns.ids

    @cached_property
    def live_ids(self) -> Ids | None:
        """The same with -1 for deleted codes; None where there are none."""
        if not len(self.deleted):
            return None
        ids = self.ids.copy()
        ids[self.deleted] = -1
        return ids

    @property
    def id_range(self) -> tuple[int, int]:
        """The lowest and the highest id, deleted or not, of at least one."""
        ends = self.ids[np.minimum(self.order[[0, -1]], len(self.ids) - 1)]  # a damaged file shall not lead out of it
        return int(ends[0]), int(ends[1])

    def live_places(self) -> Ids:
        """The places of live codes, ascending."""
        return np.flatnonzero((self.ids if self.live_ids is None else self.live_ids) >= 0)

    def item_rows(self, places: Ids) -> Rows:
        """The rows of the items of codes at given places."""
        rows = np.zeros(len(self.ids), np.int64)
        rows[np.minimum(self.order, len(rows) - 1)] = np.arange(self.rows)  # a damaged file shall not lead out of it
        return rows[places]

    def hashes(self, rows: Rows) -> Hashes:
        """The hashes of the keys of some rows of the items."""
        assert self.keys is not None
        hashes = np.zeros(self.rows, np.uint64)
        hashes[np.minimum(self.keys[1], self.rows - 1)] = self.keys[0]
        return hashes[rows]

    def find_keys(self, keys: list[str], hashes: Hashes) -> Ids:
        """The id of each key; -1 where it is not here, or deleted."""
        ids = np.full(len(keys), -1, np.int64)
        if self.keys is None or self.items is None or not self.rows:
            return ids
        held, rows = self.keys
        at, left = np.searchsorted(held, hashes), np.arange(len(keys))
        while len(left):  # once, but for keys of the same hash
            left = left[at[left] < self.rows]
            left = left[held[at[left]] == hashes[left]]
            here = np.minimum(rows[at[left]], self.rows - 1).astype(np.int64)
            same = np.array([keys[i] == key for i, key in zip(left, self.items.keys(here), strict=True)], bool)
            places = np.minimum(self.order[here[same]], len(self.ids) - 1)
            ids[left[same]] = np.where(np.isin(places, self.deleted), -1, self.ids[places])
            left = left[~same]
            at[left] += 1
        return ids

    def find(self, ids: Ids) -> Ids:
        """The place of each id; -1 where it is not here, or deleted."""
        return self._find(ids)[0]

    def find_rows(self, ids: Ids) -> Rows:
        """The row of the item of each id; -1 where it is not here, or deleted."""
        return self._find(ids)[1]

    def _find(self, ids: Ids) -> tuple[Ids, Rows]:
        places, rows = np.full(len(ids), -1, np.int64), np.full(len(ids), -1, np.int64)
        if not self.rows or not len(ids):
            return places, rows
        low, high = np.zeros(len(ids), np.int64), np.full(len(ids), self.rows, np.int64)
        last = len(self.ids) - 1  # a damaged file shall not lead out of it
        for _ in range(int(self.rows).bit_length()):
            middle = (low + high) >> 1
            at = np.minimum(self.order[np.minimum(middle, self.rows - 1)], last)
            less = (self.ids[at] < ids) & (middle < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        at = np.minimum(self.order[np.minimum(low, self.rows - 1)], last).astype(np.int64)
        found = (self.ids[at] == ids) & (ids >= 0)
        if len(self.deleted):
            found &= ~np.isin(at, self.deleted)
        places[found], rows[found] = at[found], low[found]
        return places, rows

    def without(self, places: Ids) -> "Segment":
        """The segment with more codes deleted; that is not stored yet."""
        deleted = np.union1d(self.deleted, places).astype(np.uint32)
        return replace(self, deleted=deleted, deleted_file=None)

    def code_rows(self, places: Ids) -> Codes:
        """The code rows at given places."""
        return self.columns.rows(places)

    def pack(self) -> tuple[list[Any], int]:
        """The parts of the file of the codes, and its header's CRC-32."""
        arrays = {name: getattr(self.columns, name) for name in _COLUMNS}
        held = {name: array for name, array in arrays.items() if array is not None}
        if self.keys is not None:
            held["key_hashes"] = self.keys[0]
        held["order"] = self.order
        if self.keys is not None:
            held["key_rows"] = self.keys[1]
        ends = {} if not self.rows else dict(zip(("lowest", "highest"), map(str, self.id_range), strict=True))
        return pack_arrays(held, {"kind": "segment", "rows": str(self.rows), **ends})

    def pack_deleted(self) -> tuple[list[Any], int]:
        """The parts of the file of deletions, and its header's CRC-32."""
        return pack_arrays({"places": self.deleted}, {"kind": "deleted"})


def make_segment(codec: Codec, rows: Codes, ids: Ids, hashes: Hashes | None = None) -> Segment:
    """Code rows and their ids, distinct, in any order; perhaps with the hashes of their keys."""
    by_id = np.argsort(ids, kind="stable")
    columns = lay_out(codec, rows[by_id], ids[by_id])
    assert columns.ids is not None
    held = np.flatnonzero(columns.ids >= 0)
    order = held[np.argsort(columns.ids[held], kind="stable")].astype(np.uint32)
    if hashes is None:
        return Segment(columns, order)
    by_hash = np.argsort(hashes[by_id], kind="stable")
    return Segment(columns, order, keys=(hashes[by_id][by_hash], by_hash.astype(np.uint32)))


def read_segment(
    codec: Codec,
    codes: ArrayFile,
    rows: int,
    deleted: ArrayFile | None = None,
    deleted_rows: int = 0,
    items: Items | None = None,
) -> Segment:
    """A segment from its files, their shapes checked against the codec and each other."""
    try:
        arrays = codes.arrays
        held = {name: arrays[name] for name in _COLUMNS if name in arrays}
        keyed = items is not None and items.schema.key_is_text
        if set(arrays) - set(_COLUMNS) - {"order"} - (set(_KEYS) if keyed else set()):
            raise ValueError("it holds an array that is none of a segment's")
        keys = (arrays["key_hashes"], arrays["key_rows"]) if keyed else None
        segment = Segment(Columns(codec, len(arrays["ids"]), **held), arrays["order"], keys=keys, items=items)
        _check_shapes(segment, rows, codes.metadata)
        if deleted is not None:
            deleted.verify()  # a small file: always
            places = deleted.arrays["places"]
            if places.dtype != np.uint32 or places.shape != (deleted_rows,):
                raise ValueError("the deletions are not so many places")
            if (np.diff(places.astype(np.int64)) <= 0).any():
                raise ValueError("the deletions are not in order")
            if len(places) and places[-1] >= len(segment.ids):
                raise ValueError("a deletion is beyond the codes")
            segment = replace(segment, deleted=places)
        elif deleted_rows:
            raise ValueError("its deletions are missing")
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{codes.path}: not a sound segment ({error})") from None
    return segment


def _check_shapes(segment: Segment, rows: int, metadata: dict[str, str]) -> None:
    columns, codec = segment.columns, segment.columns.codec
    blocks = len(columns.blocks)
    wanted: dict[str, tuple[type, tuple[int, ...]]] = {
        "blocks": (np.uint8, (blocks, codec.layout.scanned_bytes, BLOCK)),
        "ids": (np.int64, (blocks * BLOCK,)),
        "cell_ends": (np.int64, (codec.n_cells,)),
    }
    if isinstance(codec.scale, ScaleByte):
        wanted["scales"] = (np.uint8, (blocks * BLOCK,))
    elif isinstance(codec.scale, FixedLength):
        wanted["scales"] = (np.float32, (blocks * BLOCK,))
    for name in _COLUMNS:
        value = getattr(columns, name)
        if (value is None) != (name not in wanted):
            raise ValueError(f"{name} is missing, or one too many")
        if value is not None and (value.dtype != wanted[name][0] or value.shape != wanted[name][1]):
            raise ValueError(f"{name} has shape {value.shape} and dtype {value.dtype}")
    if segment.order.dtype != np.uint32 or segment.order.shape != (rows,) or metadata.get("rows") != str(rows):
        raise ValueError("its number of codes is not the manifest's")
    if segment.keys is not None:
        hashes, of_rows = segment.keys
        if hashes.dtype != np.uint64 or of_rows.dtype != np.uint32 or not hashes.shape == of_rows.shape == (rows,):
            raise ValueError("its keys are not as many as its codes")
    ends = columns.cell_ends
    assert ends is not None
    if (np.diff(ends, prepend=0) < 0).any() or ends[-1] != blocks or rows > blocks * BLOCK:
        raise ValueError("its cells do not fit its blocks")


def check_content(segment: Segment, path: Path) -> None:
    """Raise FormatError unless ids, order, cells and padding are as `make_segment` makes them."""
    ids, held = segment.ids, np.flatnonzero(segment.ids >= 0)
    ordered = np.sort(segment.order) if len(segment.order) else segment.order
    sound = len(held) == segment.rows and bool((ordered == held).all()) and bool((ids >= -1).all())
    if sound:
        by_id = ids[segment.order]
        sound = len(by_id) < 2 or bool((np.diff(by_id) > 0).all())
    layout = segment.columns.codec.layout
    if layout.padding and (segment.columns.blocks[:, layout.symbol_bytes - 1] & layout.padding).any():
        sound = False
    if len(segment.deleted) and (ids[segment.deleted] < 0).any():
        sound = False
    if not sound:
        raise FormatError(f"{path}: its ids, order or padding are not sound")
    if segment.keys is not None and not _keys_are_sound(segment):
        raise FormatError(f"{path}: its keys are not those of its items")


def _keys_are_sound(segment: Segment) -> bool:
    assert segment.keys is not None and segment.items is not None
    hashes, rows = segment.keys
    if not np.array_equal(np.sort(rows), np.arange(segment.rows)) or (hashes[1:] < hashes[:-1]).any():
        return False
    by_row, at = segment.hashes(np.arange(segment.rows)), 0
    for batch in segment.items.batches():
        keys = batch.column(segment.items.schema.key).to_pylist()
        if not np.array_equal(key_hashes(keys), by_row[at : at + len(keys)]):
            return False
        at += len(keys)
    return True


def twice(segments: Sequence[Segment]) -> bool:
    """Whether a key of a live code stands in two of these segments, each of which is sound."""
    rows = [segment.item_rows(segment.live_places()) for segment in segments if segment.keys is not None]
    if not rows:
        return False
    hashes = np.concatenate([segment.hashes(mine) for segment, mine in zip(segments, rows, strict=True)])
    unique, counts = np.unique(hashes, return_counts=True)
    several, held = unique[counts > 1], []
    for segment, mine in zip(segments, rows, strict=True):
        assert segment.items is not None
        held += segment.items.keys(mine[np.isin(segment.hashes(mine), several)])
    return len(set(held)) < len(held)
