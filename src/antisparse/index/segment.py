"""A segment: codes with their ids, laid out for the scan, that never change; deletions stand beside them."""

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
from antisparse.index.manifest import FileEntry
from antisparse.scan.columns import Columns, Ids, lay_out

Places = npt.NDArray[np.uint32]
_COLUMNS = ("ids", "blocks", "scales", "cell_ends")  # in the order of the file: each begins where its type may


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
    file, deleted_file : FileEntry or None
        Where codes and deletions are stored; None where they are not.
    """

    columns: Columns
    order: Places
    deleted: Places = field(default_factory=lambda: np.zeros(0, np.uint32))
    file: FileEntry | None = None
    deleted_file: FileEntry | None = None

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

    def live_places(self) -> Ids:
        """The places of live codes, ascending."""
        return np.flatnonzero((self.ids if self.live_ids is None else self.live_ids) >= 0)

    def find(self, ids: Ids) -> Ids:
        """The place of each id; -1 where it is not here, or deleted."""
        places = np.full(len(ids), -1, np.int64)
        if not self.rows or not len(ids):
            return places
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
        places[found] = at[found]
        return places

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
        held = {name: array for name, array in arrays.items() if array is not None} | {"order": self.order}
        return pack_arrays(held, {"kind": "segment", "rows": str(self.rows)})

    def pack_deleted(self) -> tuple[list[Any], int]:
        """The parts of the file of deletions, and its header's CRC-32."""
        return pack_arrays({"places": self.deleted}, {"kind": "deleted"})


def make_segment(codec: Codec, rows: Codes, ids: Ids) -> Segment:
    """Code rows and their ids, distinct, in any order."""
    by_id = np.argsort(ids, kind="stable")
    columns = lay_out(codec, rows[by_id], ids[by_id])
    assert columns.ids is not None
    held = np.flatnonzero(columns.ids >= 0)
    order = held[np.argsort(columns.ids[held], kind="stable")].astype(np.uint32)
    return Segment(columns, order)


def read_segment(codec: Codec, codes: ArrayFile, rows: int, deleted: ArrayFile | None, deleted_rows: int) -> Segment:
    """A segment from its files, their shapes checked against the codec and each other."""
    try:
        arrays = codes.arrays
        held = {name: arrays[name] for name in _COLUMNS if name in arrays}
        if set(arrays) - set(_COLUMNS) - {"order"}:
            raise ValueError("it holds an array that is none of a segment's")
        segment = Segment(Columns(codec, len(arrays["ids"]), **held), arrays["order"])
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
