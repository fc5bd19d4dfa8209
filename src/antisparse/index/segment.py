"""A segment: codes with their ids, laid out for the scan, that never change; deletions stand beside them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse.codes import BLOCK, Codes, cell_blocks
from antisparse.encoders.base import Encoder
from antisparse.errors import FormatError
from antisparse.forms import Metric, has_side, has_terms
from antisparse.index.files import ArrayFile, Arrays, pack_arrays
from antisparse.layout import Ids, Layout, Scanner, lay_out

Places = npt.NDArray[np.uint32]
# In the order of the file: each begins where its type may.
_PARTS = {"positions": "ids", "blocks": "blocks", "scale": "scale", "bias": "bias", "scale_bytes": "scale_bytes"}
_PARTS |= {"bias_bytes": "bias_bytes", "cell_ends": "cell_ends"}
_NUMBERS = ("bias0", "scale_unit", "score_unit")


@dataclass(frozen=True)
class Segment:
    """Codes, and which of them are deleted.

    `order` lists the places of all codes by id, so that an id is found by halving.
    """

    encoder: Encoder
    metric: Metric
    layout: Layout
    order: Places
    deleted: Places = field(default_factory=lambda: np.zeros(0, np.uint32))  # places, ascending

    @property
    def rows(self) -> int:
        """Codes in all."""
        return len(self.order)

    @property
    def live(self) -> int:
        """Codes that are not deleted."""
        return len(self.order) - len(self.deleted)

    @cached_property
    def scanner(self) -> Scanner:
        """The scan over the codes."""
        return Scanner(self.encoder, self.layout, self.rows, self.metric)

    @property
    def ids(self) -> Ids:
        """The id at each place, -1 for none, deleted or not."""
        assert self.layout.positions is not None
        return self.layout.positions

    @cached_property
    def positions(self) -> Ids | None:
        """The same with -1 for deleted codes; None where there are none."""
        if not len(self.deleted):
            return None
        positions = self.ids.copy()
        positions[self.deleted] = -1
        return positions

    def live_places(self) -> Ids:
        """The places of live codes, ascending."""
        return np.flatnonzero((self.ids if self.positions is None else self.positions) >= 0)

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
        found = self.ids[at] == ids
        if len(self.deleted):
            found &= ~np.isin(at, self.deleted)
        places[found] = at[found]
        return places

    def without(self, places: Ids) -> "Segment":
        """The segment with more codes deleted."""
        return replace(self, deleted=np.union1d(self.deleted, places).astype(np.uint32))

    def only(self, places: Ids) -> Scanner:
        """A scan over the codes at some places, ascending, and no others."""
        held = self.layout
        assert held.cell_ends is not None
        cells = np.searchsorted(held.cell_ends, places // BLOCK, side="right")
        kept = held.blocks[places // BLOCK, :, places % BLOCK]
        blocks, chosen, ends = cell_blocks(kept, cells, len(held.cell_ends))
        inside = chosen >= 0

        def gather(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
            if values is None:
                return None
            out = np.zeros(len(chosen), values.dtype)
            out[inside] = values[places[chosen[inside]]]
            return out

        positions = np.full(len(chosen), -1, np.int64)
        positions[inside] = self.ids[places[chosen[inside]]]
        terms: dict[str, Any] = {
            name: gather(getattr(held, name)) for name in ("scale", "bias", "scale_bytes", "bias_bytes")
        }
        part = replace(held, blocks=blocks, positions=positions, cell_ends=ends, **terms)
        return Scanner(self.encoder, part, len(places), self.metric)

    def code_rows(self, places: Ids) -> Codes:
        """The code rows at some places."""
        return self.scanner.rows(self.encoder, places)

    def pack(self) -> tuple[list[Any], int]:
        """The parts of its file, and its header's CRC-32."""
        arrays: Arrays = {}
        for attribute, name in _PARTS.items():
            value = getattr(self.layout, attribute)
            if value is not None:
                arrays[name] = value
        arrays["order"] = self.order
        numbers = {name: getattr(self.layout, name).hex() for name in _NUMBERS}
        return pack_arrays(arrays, {"kind": "segment", "rows": str(self.rows)} | numbers)


def make_segment(encoder: Encoder, metric: Metric, rows: Codes, ids: Ids) -> Segment:
    """Code rows and their ids, distinct, in any order."""
    by_id = np.argsort(ids, kind="stable")
    layout = lay_out(encoder, rows[by_id], metric, ids[by_id])
    assert layout.positions is not None
    held = np.flatnonzero(layout.positions >= 0)
    order = held[np.argsort(layout.positions[held], kind="stable")].astype(np.uint32)
    return Segment(encoder, metric, layout, order)


def pack_deleted(places: Places) -> tuple[list[Any], int]:
    """The parts of a file of deletions, and its header's CRC-32."""
    return pack_arrays({"places": places}, {"kind": "deleted"})


def read_segment(
    encoder: Encoder, metric: Metric, codes: ArrayFile, rows: int, deleted: ArrayFile | None, deleted_rows: int
) -> Segment:
    """A segment from its files, their shapes checked against the encoder and each other."""
    try:
        arrays = codes.arrays
        parts: dict[str, Any] = {name: float.fromhex(codes.metadata[name]) for name in _NUMBERS}
        parts |= {attribute: arrays[name] for attribute, name in _PARTS.items() if name in arrays}
        segment = Segment(encoder, metric, Layout(**parts), arrays["order"])
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
    layout, held = segment.encoder.code_layout_, segment.layout
    cells = 1 if segment.encoder.cell_means is None else len(segment.encoder.cell_means)
    blocks = len(held.blocks)
    wanted: dict[str, tuple[type, tuple[int, ...]]] = {
        "blocks": (np.uint8, (blocks, layout.bit_bytes + has_side(segment.encoder), BLOCK)),
        "positions": (np.int64, (blocks * BLOCK,)),
        "cell_ends": (np.int64, (cells,)),
    }
    coded = "scale" in [name for name, _ in layout.side]
    if coded:
        wanted |= dict.fromkeys(("scale_bytes", "bias_bytes"), (np.uint8, (blocks * BLOCK,)))
    elif has_terms(segment.encoder):
        wanted["scale"] = (np.float32, (blocks * BLOCK,))
        if held.bias is not None:
            wanted["bias"] = (np.float32, (blocks * BLOCK,))
    for name in _PARTS:
        value = getattr(held, name)
        if (value is None) != (name not in wanted):
            raise ValueError(f"{name} is missing, or one too many")
        if value is not None and (value.dtype != wanted[name][0] or value.shape != wanted[name][1]):
            raise ValueError(f"{name} has shape {value.shape} and dtype {value.dtype}")
    if segment.order.dtype != np.uint32 or segment.order.shape != (rows,) or metadata.get("rows") != str(rows):
        raise ValueError("its number of codes is not the manifest's")
    for unit in (held.scale_unit, held.score_unit, held.scale_unit / held.score_unit):
        if not 0 < unit < np.inf or np.frexp(unit)[0] != 0.5:
            raise ValueError("its units are not powers of two")
    if not np.isfinite(held.bias0):
        raise ValueError("its bias is not finite")
    ends = held.cell_ends
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
    layout = segment.encoder.code_layout_
    padding = (1 << layout.padding) - (1 << layout.taken)
    if padding and (segment.layout.blocks[:, layout.bit_bytes - 1] & padding).any():
        sound = False
    if len(segment.deleted) and (ids[segment.deleted] < 0).any():
        sound = False
    if not sound:
        raise FormatError(f"{path}: its ids, order or padding are not sound")
