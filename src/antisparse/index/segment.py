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
from antisparse.index.ids import ARRAYS, SegmentIds
from antisparse.index.item_schema import Hashes, key_hashes
from antisparse.index.items import Items, Rows
from antisparse.index.manifest import FileEntry
from antisparse.scan.columns import Columns, Ids, Words, lay_out, live_words

Places = npt.NDArray[np.uint32]
_COLUMNS = ("blocks", "scales", "cell_ends")
_KEYS = ("key_hashes", "key_rows")
_FILE = (
    *_COLUMNS,
    "key_hashes",
    *ARRAYS,
    "order",
    "key_rows",
)  # in the order of the file: each begins where its type may


@dataclass(frozen=True, eq=False)
class Segment:
    """Codes, and which of them are deleted.

    Attributes
    ----------
    columns : Columns
        The codes, always with ids and cells.
    ids : SegmentIds
        The ids by place, deleted or not.
    kept_order : ndarray of shape (rows,), uint32, or None
        The places of all codes by id, where it is stored: beside items, unless there is one cell alone.
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
    ids: SegmentIds
    kept_order: Places | None = None
    deleted: Places = field(default_factory=lambda: np.zeros(0, np.uint32))
    file: FileEntry | None = None
    deleted_file: FileEntry | None = None
    items_file: FileEntry | None = None
    keys: tuple[Hashes, Places] | None = None
    items: Items | None = None

    @property
    def rows(self) -> int:
        """Codes in all."""
        return self.ids.rows

    @property
    def live(self) -> int:
        """Codes that are not deleted."""
        return self.rows - len(self.deleted)

    @cached_property
    def live_bits(self) -> Words | None:
        """Which places are not deleted, a bit for each; None where no code is."""
        if not len(self.deleted):
            return None
        there = np.ones(self.columns.n, bool)
        there[self.deleted] = False
        return live_words(there)

    @property
    def id_range(self) -> tuple[int, int]:
        """The lowest and the highest id, deleted or not, of at least one."""
        return self.ids.lowest, self.ids.highest

    @cached_property
    def order(self) -> Places:
        """The places of all codes by id, deleted or not: the row of the items that each has."""
        if self.kept_order is not None:
            return self.kept_order
        if self._one_cell:
            return np.arange(self.rows, dtype=np.uint32)
        by_place = self.ids.by_place()
        held = np.flatnonzero(by_place >= 0)
        return held[np.argsort(by_place[held], kind="stable")].astype(np.uint32)

    def ordered(self) -> "Segment":
        """The segment with the order of its ids, which one with items stores, unless it is that of the places."""
        return self if self._one_cell else replace(self, kept_order=self.order)

    @property
    def _one_cell(self) -> bool:
        return len(self.ids.cell_ends) == 1

    def live_places(self) -> Ids:
        """The places of live codes, ascending."""
        live = self.ids.by_place() >= 0
        live[self.deleted] = False
        return np.flatnonzero(live)

    def item_rows(self, places: Ids) -> Rows:
        """The rows of the items of codes at given places."""
        rows = np.zeros(self.columns.n, np.int64)
        order = np.minimum(self.order, len(rows) - 1)  # a damaged file shall not lead out of it
        rows[order] = np.arange(len(order))
        return np.minimum(rows[places], max(self.rows - 1, 0))

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
            places = self._places(here[same])
            ids[left[same]] = np.where(np.isin(places, self.deleted), -1, self.ids.at(places))
            left = left[~same]
            at[left] += 1
        return ids

    def find(self, ids: Ids) -> Ids:
        """The place of each id; -1 where it is not here, or deleted."""
        places = self.ids.find(ids)
        if len(self.deleted):
            places[np.isin(places, self.deleted)] = -1
        return places

    def find_rows(self, ids: Ids) -> Rows:
        """The row of the item of each id; -1 where it is not here, or deleted."""
        found = self.find(ids)
        if self._one_cell or not self.rows or not len(ids):
            return np.minimum(found, self.rows - 1)
        low, high = np.zeros(len(ids), np.int64), np.full(len(ids), self.rows, np.int64)
        for _ in range(int(self.rows).bit_length()):
            middle = (low + high) >> 1
            less = (self.ids.at(self._places(middle)) < ids) & (middle < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        return np.where(found >= 0, np.minimum(low, self.rows - 1), -1)

    def places_by_id(self) -> Ids:
        """The places of all codes in the order of their ids, which is that of their items."""
        return self._places(np.arange(self.rows))

    def _places(self, rows: Rows) -> Ids:
        """The places of the codes of some rows of the items; a damaged file does not lead out of them."""
        return np.minimum(self.order[np.minimum(rows, len(self.order) - 1)], self.columns.n - 1).astype(np.int64)

    def without(self, places: Ids) -> "Segment":
        """The segment with more codes deleted; that is not stored yet."""
        deleted = np.union1d(self.deleted, places).astype(np.uint32)
        return replace(self, deleted=deleted, deleted_file=None)

    def code_rows(self, places: Ids) -> Codes:
        """The code rows at given places."""
        return self.columns.rows(places)

    def pack(self) -> tuple[list[Any], int]:
        """The parts of the file of the codes, and its header's CRC-32."""
        held = {name: getattr(self.columns, name) for name in _COLUMNS} | self.ids.arrays | {"order": self.kept_order}
        if self.keys is not None:
            held |= dict(zip(_KEYS, self.keys, strict=True))
        ends = {} if not self.rows else {"lowest": str(self.ids.lowest), "highest": str(self.ids.highest)}
        arrays = {name: held[name] for name in _FILE if held.get(name) is not None}
        return pack_arrays(arrays, {"kind": "segment", "rows": str(self.rows), **ends})

    def pack_deleted(self) -> tuple[list[Any], int]:
        """The parts of the file of deletions, and its header's CRC-32."""
        return pack_arrays({"places": self.deleted}, {"kind": "deleted"})


def make_segment(codec: Codec, rows: Codes, ids: Ids, hashes: Hashes | None = None) -> Segment:
    """Code rows and their ids, distinct, in any order; perhaps with the hashes of their keys."""
    by_id = np.argsort(ids, kind="stable")
    columns = lay_out(codec, rows[by_id], ids[by_id])
    assert isinstance(columns.ids, np.ndarray) and columns.cell_ends is not None
    packed = SegmentIds.pack(columns.ids, columns.cell_ends)
    columns = replace(columns, ids=packed.native)
    if hashes is None:
        return Segment(columns, packed)
    by_hash = np.argsort(hashes[by_id], kind="stable")
    return Segment(columns, packed, keys=(hashes[by_id][by_hash], by_hash.astype(np.uint32)))


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
        keyed = items is not None and items.schema.key_is_text
        ordered = items is not None and codec.n_cells > 1
        wanted = {*_COLUMNS, *ARRAYS, *(["order"] if ordered else []), *(_KEYS if keyed else [])}
        if set(arrays) - wanted:
            raise ValueError("it holds an array that is none of a segment's")
        columns = Columns(
            codec, BLOCK * len(arrays["blocks"]), **{name: arrays[name] for name in _COLUMNS if name in arrays}
        )
        _check_shapes(columns, rows, codes.metadata)
        assert columns.cell_ends is not None
        ids = SegmentIds.read(rows, codes.metadata, columns.cell_ends, arrays)
        keys = (arrays["key_hashes"], arrays["key_rows"]) if keyed else None
        segment = Segment(
            replace(columns, ids=ids.native), ids, arrays["order"] if ordered else None, keys=keys, items=items
        )
        _check_rows(segment)
        if deleted is not None:
            deleted.verify()  # a small file: always
            places = deleted.arrays["places"]
            if deleted_rows > rows:
                raise ValueError("there are more deletions than codes")
            if places.dtype != np.uint32 or places.shape != (deleted_rows,):
                raise ValueError("the deletions are not so many places")
            if (np.diff(places.astype(np.int64)) <= 0).any():
                raise ValueError("the deletions are not in order")
            if len(places) and places[-1] >= columns.n:
                raise ValueError("a deletion is beyond the codes")
            segment = replace(segment, deleted=places)
        elif deleted_rows:
            raise ValueError("its deletions are missing")
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{codes.path}: not a sound segment ({error})") from None
    return segment


def _check_shapes(columns: Columns, rows: int, metadata: dict[str, str]) -> None:
    codec, blocks = columns.codec, len(columns.blocks)
    wanted: dict[str, tuple[type, tuple[int, ...]]] = {
        "blocks": (np.uint8, (blocks, codec.layout.scanned_bytes, BLOCK)),
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
    if metadata.get("rows") != str(rows):
        raise ValueError("its number of codes is not the manifest's")
    ends = columns.cell_ends
    assert ends is not None
    if (np.diff(ends, prepend=0) < 0).any() or ends[-1] != blocks or rows > blocks * BLOCK:
        raise ValueError("its cells do not fit its blocks")


def _check_rows(segment: Segment) -> None:
    rows, order = (segment.rows,), segment.kept_order
    if order is not None and (order.dtype != np.uint32 or order.shape != rows):
        raise ValueError("its order is not that of its codes")
    if segment.keys is not None:
        hashes, of_rows = segment.keys
        if hashes.dtype != np.uint64 or of_rows.dtype != np.uint32 or not hashes.shape == of_rows.shape == rows:
            raise ValueError("its keys are not as many as its codes")


def check_content(segment: Segment, path: Path) -> None:
    """Raise FormatError unless ids, order, cells and padding are as `make_segment` makes them."""
    by_place = segment.ids.by_place()
    sound = _ids_are_sound(segment, by_place)
    layout = segment.columns.codec.layout
    if layout.padding and (segment.columns.blocks[:, layout.symbol_bytes - 1] & layout.padding).any():
        sound = False
    if len(segment.deleted) and (by_place[segment.deleted] < 0).any():
        sound = False
    if not sound:
        raise FormatError(f"{path}: its ids, order or padding are not sound")
    if segment.keys is not None and not _keys_are_sound(segment):
        raise FormatError(f"{path}: its keys are not those of its items")


def _ids_are_sound(segment: Segment, by_place: Ids) -> bool:
    """Whether ids are distinct, ascend in every cell, leave its last places free at most, and are stored as ever."""
    ends = segment.ids.cell_ends
    held, left = np.flatnonzero(by_place >= 0), np.flatnonzero(by_place < 0)
    if len(held) != segment.rows or not np.isin(left // BLOCK, ends - 1).all():
        return False
    cells = np.searchsorted(ends, held // BLOCK, side="right")
    if ((np.diff(by_place[held]) <= 0) & (np.diff(cells) == 0)).any():
        return False
    order = held[np.argsort(by_place[held], kind="stable")]
    if (np.diff(by_place[order]) == 0).any():
        return False
    if segment.kept_order is not None and not np.array_equal(segment.kept_order, order):
        return False
    try:
        return segment.ids.same(SegmentIds.pack(by_place, ends))
    except ValueError:  # places without an id before others
        return False


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
