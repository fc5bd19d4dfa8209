"""Filters: which ids a search may find."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from antisparse._arrays import filter_array
from antisparse.errors import InputTypeError
from antisparse.index.segment import Segment
from antisparse.scan.columns import Columns, Ids

_DENSE = 4  # a filter that leaves less than one code in so many is searched apart


@dataclass(frozen=True, eq=False)
class FilteredPart:
    """The codes of a segment that a filter allows."""

    segment: Segment
    columns: Columns
    live_ids: Ids | None

    def find(self, ids: Ids) -> Ids:
        """The place of each id in `columns`; ids that were found are allowed."""
        if self.columns is self.segment.columns:
            return self.segment.find(ids)
        assert self.columns.ids is not None
        order = np.argsort(self.columns.ids, kind="stable")
        at = order[np.minimum(np.searchsorted(self.columns.ids, ids, sorter=order), len(order) - 1)]
        return np.where((self.columns.ids[at] == ids) & (ids >= 0), at, -1)


def filtered(segments: tuple[Segment, ...], allowed: Any) -> list[FilteredPart]:
    """What is left of segments: some ids left out, or a few codes apart.

    Parameters
    ----------
    segments : tuple of Segment
    allowed : array of ids, or of bool
        These alone may be found; the entry i of a mask says whether id i may, and ids beyond it may not.
    """
    array = filter_array(allowed, "filter")
    if array.ndim != 1 or not (array.dtype.kind in "biu" or not len(array)):
        raise InputTypeError("filter must be a 1-dimensional array of ids or of bool")
    parts = []
    for segment in segments:
        if array.dtype == bool:
            live = segment.live_places()
            names = segment.ids[live]
            inside = names < len(array)
            live = live[inside]
            places = live[array[names[inside]]]
        else:
            found = segment.find(np.unique(array.astype(np.int64)))
            places = np.sort(found[found >= 0])
        if not len(places):
            continue
        if _DENSE * len(places) < segment.rows:
            parts.append(FilteredPart(segment, segment.columns.only(places), None))
        else:
            ids = np.full(len(segment.ids), -1, np.int64)
            ids[places] = segment.ids[places]
            parts.append(FilteredPart(segment, segment.columns, ids))
    return parts
