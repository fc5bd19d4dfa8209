"""Filters: which ids a search may find."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import filter_array
from antisparse.errors import InputTypeError
from antisparse.index.expression import Expression
from antisparse.index.item_schema import pyarrow
from antisparse.index.segment import Segment
from antisparse.scan.columns import Columns, Ids, Words, live_words

_DENSE = 4  # a filter that leaves less than one code in so many is searched apart


@dataclass(frozen=True, eq=False)
class FilteredPart:
    """The codes of a segment that a filter allows."""

    segment: Segment
    columns: Columns
    live_bits: Words | None

    def find(self, ids: Ids) -> Ids:
        """The place of each id in `columns`; ids that were found are allowed."""
        if self.columns is self.segment.columns:
            return self.segment.find(ids)
        assert isinstance(self.columns.ids, np.ndarray)
        order = np.argsort(self.columns.ids, kind="stable")
        at = order[np.minimum(np.searchsorted(self.columns.ids, ids, sorter=order), len(order) - 1)]
        return np.where((self.columns.ids[at] == ids) & (ids >= 0), at, -1)


def checked_filter(allowed: Any) -> npt.NDArray[Any]:
    """A filter of ids, or of bool, as an array."""
    array = filter_array(allowed, "filter")
    if array.ndim != 1 or not (array.dtype.kind in "biu" or not len(array)):
        raise InputTypeError("filter must be a 1-dimensional array of ids or of bool")
    return array


def allowed_places(segments: tuple[Segment, ...], allowed: Any) -> list[Ids]:
    """The places of each segment that a filter allows, ascending.

    Parameters
    ----------
    segments : tuple of Segment
    allowed : Expression, array of ids, or of bool
        These alone may be found; the entry i of a mask says whether id i may, and ids beyond it may not.
    """
    if isinstance(allowed, Expression):
        return [_matching(segment, allowed) for segment in segments]
    array = checked_filter(allowed)
    found = []
    for segment in segments:
        if array.dtype == bool:
            live = segment.live_places()
            names = segment.ids.at(live)
            inside = names < len(array)
            live = live[inside]
            found.append(live[array[names[inside]]])
        else:
            places = segment.find(np.unique(array.astype(np.int64)))
            found.append(np.sort(places[places >= 0]))
    return found


def _matching(segment: Segment, expression: Expression) -> Ids:
    """The places of live codes whose items an expression is true of."""
    places, rows = segment.places_by_id(), np.zeros(segment.rows, bool)
    if segment.items is None:  # nothing is stored beside the ids
        rows[:] = expression.rows(lambda _: pyarrow().array(segment.ids.at(places)), segment.rows)
    else:
        at = 0
        for batch in segment.items.batches():
            part = slice(at, at + batch.num_rows)

            def column(name: str, batch: Any = batch, part: slice = part) -> Any:
                stored = name in batch.schema.names
                return batch.column(name) if stored else pyarrow().array(segment.ids.at(places[part]))

            rows[part] = expression.rows(column, batch.num_rows)
            at += batch.num_rows
    matching = np.unique(places[rows])
    return matching[~np.isin(matching, segment.deleted)] if len(segment.deleted) else matching


def filtered(segments: tuple[Segment, ...], allowed: list[Ids]) -> list[FilteredPart]:
    """What is left of segments: some ids left out, or a few codes apart. `allowed` are the places of each."""
    parts = []
    for segment, places in zip(segments, allowed, strict=True):
        if not len(places):
            continue
        if _DENSE * len(places) < segment.rows:
            parts.append(FilteredPart(segment, segment.columns.only(places), None))
        else:
            live = np.zeros(segment.columns.n, bool)
            live[places] = True
            parts.append(FilteredPart(segment, segment.columns, live_words(live)))
    return parts
