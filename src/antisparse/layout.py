"""Codes laid out for the scan, with what each method needs to know of every code beside its bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._core import ScanBase
from antisparse.codes import BLOCK, Codes, cell_blocks, scan_blocks
from antisparse.encoders.base import Encoder
from antisparse.errors import InputError
from antisparse.forms import Form, Metric, has_side, has_terms

Ids = npt.NDArray[np.int64]
_CHUNK_CODES = 16384


@dataclass(frozen=True)
class Layout:
    """Arrays of one set of codes, and numbers that go with them: all that the scan reads.

    Blocks of 32 codes, byte by byte: the bits, and the bias byte where that is all there is beside them. Codes in cells
    stand cell by cell, in whole blocks; the number of the mean is in the order. Terms are float32, or bytes.
    """

    blocks: Codes  # (n_blocks, bytes, 32)
    positions: Ids | None = None  # the id at each place, -1 for none; None: the place
    cell_ends: Ids | None = None  # the block after the last of each cell
    scale: npt.NDArray[np.float32] | None = None  # by place, over scale_unit
    bias: npt.NDArray[np.float32] | None = None  # by place, over score_unit; None: bias0 for all
    scale_bytes: npt.NDArray[np.uint8] | None = None
    bias_bytes: npt.NDArray[np.uint8] | None = None
    bias0: float = 0.0
    scale_unit: float = 1.0
    score_unit: float = 1.0

    @property
    def term_bytes(self) -> int:
        """Bytes of a code's terms."""
        parts = (self.scale, self.bias, self.scale_bytes, self.bias_bytes)
        return sum(part.itemsize for part in parts if part is not None)


def lay_out(encoder: Encoder, rows: Codes, metric: Metric, ids: Ids | None = None) -> Layout:
    """Code rows for the scan. With ids (ascending) they always stand in cells, one where the encoder has one mean."""
    layout, n = encoder.code_layout_, len(rows)
    kept = rows[:, : layout.bit_bytes]
    if has_side(encoder):
        at, _ = layout.place("bias")
        kept = np.concatenate([kept, rows[:, at : at + 1]], axis=1)
    means = encoder.cell_means
    places: Ids | None = None  # the row at each place
    ends: Ids | None = None
    if means is not None or ids is not None:
        blocks, places, ends = cell_blocks(kept, encoder.cells(rows), 1 if means is None else len(means))
    else:
        blocks = scan_blocks(kept)

    def placed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.zeros(len(blocks) * BLOCK, values.dtype)
        if places is None:
            out[:n] = values
        else:
            out[places >= 0] = values[places[places >= 0]]
        return out

    positions = places if ids is None or places is None else np.where(places >= 0, ids[places] if n else -1, -1)
    if "scale" in [name for name, _ in layout.side]:
        scale_bytes, bias_bytes = (placed(rows[:, layout.place(name)[0]]) for name in ("scale", "bias"))
        return Layout(
            blocks,
            positions,
            ends,
            scale_bytes=scale_bytes,
            bias_bytes=bias_bytes,
            score_unit=_power_of_two(_bias_range(encoder, metric) @ np.array([[1, 1], [0, 255]])),
        )
    if not has_terms(encoder):
        return Layout(blocks, positions, ends)
    exact_scale, exact_bias = np.zeros(n), np.zeros(n)
    for start in range(0, n, _CHUNK_CODES):
        part = slice(start, min(start + _CHUNK_CODES, n))
        exact_scale[part], exact_bias[part] = encoder.terms(rows[part])
    if metric == "ip":
        exact_bias[:] = 0
    # Kept in float32, times powers of two that suit their range.
    scale_unit, score_unit = _power_of_two(exact_scale), _power_of_two(exact_bias)
    bias = (exact_bias / score_unit).astype(np.float32)
    same = n == 0 or bool((bias == bias[0]).all())
    return Layout(
        blocks,
        positions,
        ends,
        scale=placed((exact_scale / scale_unit).astype(np.float32)),
        bias=None if same else placed(bias),
        bias0=float(bias[0]) if same and n else 0.0,
        scale_unit=scale_unit,
        score_unit=score_unit,
    )


class Scanner:
    """A layout with the native scans over it, made when first asked for."""

    def __init__(self, encoder: Encoder, layout: Layout, n: int, metric: Metric) -> None:
        self.layout = layout
        self._n = n if layout.positions is None else len(layout.positions)
        self._bits = encoder.code_layout_.n_bits
        self._side = int(has_side(encoder))
        self._nibble = encoder.code_layout_.nibble
        self._words = encoder.words
        self._ranges: list[float] = []
        if layout.scale_bytes is not None:
            # scale_i = -2 s_i = -0.5 / reach_i, so that reach_i = 1 / (4 s_i).
            reach = np.array([encoder.reach_low_, encoder.reach_step_]) / 4
            self._ranges = [*reach, *_bias_range(encoder, metric) / layout.score_unit]
        self._scans: dict[bool, ScanBase] = {}

    def scan(self, termed: bool) -> ScanBase:
        """The scan with or without terms."""
        if termed not in self._scans:
            held = self.layout
            coded = termed and held.scale_bytes is not None
            self._scans[termed] = ScanBase(
                held.blocks,
                self._n,
                self._bits,
                held.scale if termed else None,
                held.bias if termed else None,
                held.bias0,
                self._side,
                held.positions,
                held.cell_ends,
                held.scale_bytes if coded else None,
                held.bias_bytes if coded else None,
                self._ranges,
                self._nibble,
                self._words,
            )
        return self._scans[termed]

    def search(
        self,
        form: Form,
        k: int,
        threads: int,
        positions: Ids | None = None,
    ) -> tuple[Float64Array, Ids]:
        """Values and ids of the k best; `positions` in place of the layout's."""
        held = self.layout
        unit = held.score_unit if form.termed else 1.0
        factor = form.factor * (held.scale_unit / held.score_unit) if form.termed else form.factor
        scan = self.scan(form.termed)
        if held.cell_ends is None:
            scores, ids = scan.search(form.weights, factor, k, threads, form.side)
            return self._flat(form, scores), ids
        offsets = form.offsets / unit
        scores, ids = scan.search(form.weights, factor, k, threads, form.side, offsets, positions, form.probes)
        return scores * unit, ids

    def score(self, form: Form, places: Ids) -> Float64Array:
        """Values of the codes at given places, (queries, count); infinite where the place is negative."""
        held = self.layout
        factor = form.factor * (held.scale_unit / held.score_unit) if form.termed else form.factor
        scores = self.scan(form.termed).score(form.weights, factor, np.ascontiguousarray(places), form.side)
        if held.cell_ends is None:
            return self._flat(form, scores)
        unit = held.score_unit if form.termed else 1.0
        values: Float64Array = (scores + form.offsets / unit) * unit
        return values

    def _flat(self, form: Form, scores: Float64Array) -> Float64Array:
        factor = self.layout.score_unit if form.termed else form.factor[:, None]
        values: Float64Array = scores * factor + form.offsets
        return values

    def rows(self, encoder: Encoder, places: Ids) -> Codes:
        """The code rows at given places."""
        layout, held = encoder.code_layout_, self.layout
        rows = np.zeros((len(places), layout.code_size), np.uint8)
        kept = held.blocks[places // BLOCK, :, places % BLOCK]
        rows[:, : layout.bit_bytes] = kept[:, : layout.bit_bytes]
        if encoder.cell_means is not None and held.cell_ends is not None:
            at, size = layout.place("mean")
            cells = np.searchsorted(held.cell_ends, places // BLOCK, side="right")
            rows[:, at : at + size] = (cells[:, None] >> (8 * np.arange(size))) & 255
        if held.scale_bytes is not None and held.bias_bytes is not None:
            rows[:, layout.place("scale")[0]] = held.scale_bytes[places]
            rows[:, layout.place("bias")[0]] = held.bias_bytes[places]
        elif self._side:
            rows[:, layout.place("bias")[0]] = kept[:, -1]
        return rows


def _bias_range(encoder: Encoder, metric: Metric) -> Float64Array:
    """Low and step of the bias bytes, beside scale bytes; an inner product has no bias."""
    values: Float64Array = np.array([encoder.bias_low_, encoder.bias_step_]) * (metric != "ip")
    return values


def _power_of_two(values: Float64Array) -> float:
    """The power of two of the largest magnitude, 1 for zeros."""
    largest = float(np.abs(values).max(initial=0))
    if not np.isfinite(largest):
        raise InputError("encoder rebuilds vectors beyond the range of float64; scale the training vectors down")
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0
