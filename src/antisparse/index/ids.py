"""The ids of a segment, in as few bytes as they need, by place and found (docs/format.md).

Within a cell ids ascend with the place, so a block of 32 keeps its first id and, in a few bits each, how far the others
are beyond it. Where there are several cells, a static function gives the only cell that an id can be in. Where all ids
of one cell follow each other, nothing is stored.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from antisparse._core import IdList, map_cells, pack_ids
from antisparse.index.files import Arrays
from antisparse.scan.columns import Ids

# What is stored, by the names that the native list gives it. In the order of the file those that may have 8 bytes a
# number come first.
ARRAYS = {
    "id_firsts": "firsts",
    "id_starts": "starts",
    "id_words": "words",
    "cell_seeds": "seeds",
    "cell_slots": "cells",
}
_NARROW = 2**32  # where offsets from the lowest id are below it, they take 4 bytes


@dataclass(frozen=True, eq=False)
class SegmentIds:
    """The ids of a segment.

    Attributes
    ----------
    rows : int
        How many there are.
    lowest, highest : int
        0 and -1 where there are none.
    cell_ends : ndarray of shape (n_cells,), int64
        The block after the last of each cell.
    arrays : dict
        What is stored: none of `ARRAYS`, the first three, or all.
    """

    rows: int
    lowest: int
    highest: int
    cell_ends: Ids
    arrays: Arrays

    @classmethod
    def pack(cls, by_place: Ids, cell_ends: Ids) -> "SegmentIds":
        """Ids by place, -1 for none: they ascend within each cell, whose last block alone may have places left."""
        held = by_place[by_place >= 0]
        if not len(held):
            return cls(0, 0, -1, cell_ends, {})
        rows, lowest, highest = len(held), int(held.min()), int(held.max())
        arrays: Arrays = {}
        if not _follow(cell_ends, rows, lowest, highest):
            firsts, starts, words = pack_ids(by_place, lowest)
            firsts = firsts if highest - lowest >= _NARROW else firsts.astype(np.uint32)
            arrays = {"id_firsts": firsts, "id_starts": starts, "id_words": words}
            if len(cell_ends) > 1:
                arrays["cell_seeds"], arrays["cell_slots"] = map_cells(by_place, cell_ends)
        return cls(rows, lowest, highest, cell_ends, arrays)

    @classmethod
    def read(cls, rows: int, metadata: dict[str, str], cell_ends: Ids, arrays: Arrays) -> "SegmentIds":
        """Those of a file, nothing of which is trusted; ValueError where its arrays do not fit each other."""
        held = {name: array for name, array in arrays.items() if name in ARRAYS}
        lowest, highest = (int(metadata[name]) for name in ("lowest", "highest")) if rows else (0, -1)
        if max(abs(lowest), abs(highest)) >= 2**63:
            raise ValueError("its lowest or highest id is out of range")
        if bool(held) == _follow(cell_ends, rows, lowest, highest):
            raise ValueError("its ids are missing, or follow each other and are not stored")
        wide = highest - lowest >= _NARROW
        for name, array in held.items():
            dtype = np.uint64 if wide and name == "id_firsts" else np.uint32
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}")
        ids = cls(rows, lowest, highest, cell_ends, held)
        _ = ids.native  # which checks how many there are of everything
        return ids

    @cached_property
    def native(self) -> IdList:
        """What the scan reads."""
        given: dict[str, Any] = {ARRAYS[name]: array for name, array in self.arrays.items()}
        if "firsts" in given and given["firsts"].dtype == np.uint64:
            given["wide_firsts"] = given.pop("firsts")
        return IdList(self.cell_ends, self.rows, self.lowest, self.highest, **given)

    def at(self, places: Ids) -> Ids:
        """The id at each of some places; -1 for none."""
        ids: Ids = self.native.at(np.ascontiguousarray(places, np.int64))
        return ids

    def by_place(self) -> Ids:
        """The id at each place; -1 for none."""
        ids: Ids = self.native.all()
        return ids

    def find(self, ids: Ids) -> Ids:
        """The place of each of some ids; -1 where it is not here."""
        places: Ids = self.native.find(np.ascontiguousarray(ids, np.int64))
        return places

    def same(self, other: "SegmentIds") -> bool:
        """Whether these are stored as the others are, to the last byte."""
        about = (self.rows, self.lowest, self.highest) == (other.rows, other.lowest, other.highest)
        return (
            about
            and self.arrays.keys() == other.arrays.keys()
            and all(
                array.dtype == other.arrays[name].dtype and np.array_equal(array, other.arrays[name])
                for name, array in self.arrays.items()
            )
        )


def _follow(cell_ends: Ids, rows: int, lowest: int, highest: int) -> bool:
    """Whether ids follow each other place by place, so that nothing need be stored."""
    return rows == 0 or (len(cell_ends) == 1 and highest - lowest + 1 == rows)
