"""Codes laid out for the scan: blocks of nibbles, cells, ids, and the one column that multiplies (docs/codes.md)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._core import CodeColumns, IdList
from antisparse.codec.codec import Codec
from antisparse.codec.queries import TabledQueries, length_factor
from antisparse.codec.scale import FixedLength, ScaleByte
from antisparse.codec.symbols import combine
from antisparse.codes import BLOCK, Codes, cell_blocks, scan_blocks
from antisparse.errors import FormatError

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
_CHUNK_CODES = 16384


@dataclass(frozen=True, eq=False)
class Columns:
    """All that the scan reads of one set of codes. Never changed.

    Attributes
    ----------
    codec : Codec
    n : int
        The number of places that may hold a code.
    blocks : ndarray of shape (n_blocks, scanned bytes, 32), uint8
        Byte j of the 32 codes of a block is contiguous.
    ids : ndarray of shape (32 n_blocks,), int64, or IdList, or None
        The id at each place, -1 for none, as an array or in few bits; None: the place itself.
    cell_ends : ndarray of shape (n_cells,), int64, or None
        The block after the last of each cell; None: one cell.
    scales : ndarray of shape (32 n_blocks,), or None
        float32: the scales of codes of a fixed length; uint8: the scale bytes.
    """

    codec: Codec
    n: int
    blocks: Codes
    ids: Ids | IdList | None = None
    cell_ends: Ids | None = None
    scales: npt.NDArray[Any] | None = None

    def search(
        self, queries: TabledQueries, k: int, threads: int, live: Words | None = None
    ) -> tuple[Float64Array, Ids]:
        """Scores and ids of the k best, or of all where they are fewer; of those that are `live`, unless it is None."""
        k = max(min(k, self.n), 1)
        scores, found = self._native(queries.scaled).search(queries.native, k, threads, live)
        return scores, found

    def score(self, queries: TabledQueries, places: Ids) -> Float64Array:
        """Scores of the codes at given places, (queries, count); infinite where the place is negative."""
        scores: Float64Array = self._native(queries.scaled).score(queries.native, np.ascontiguousarray(places))
        return scores

    def _native(self, scaled: bool) -> CodeColumns:
        return self._scaled if scaled else self._plain

    @cached_property
    def _plain(self) -> CodeColumns:
        return self._made()

    @cached_property
    def _scaled(self) -> CodeColumns:
        scale = self.codec.scale
        if isinstance(scale, ScaleByte):
            steps = {"inverse_scale_low": scale.low, "inverse_scale_step": scale.step}
            return self._made(inverse_scales=self.scales, **steps)
        return self._made(scales=self.scales)

    def _made(self, **scales: Any) -> CodeColumns:
        """What the scan refuses in codes is damage of the file they were read from; queries were checked before."""
        try:
            ids: dict[str, Any] = {"id_list" if isinstance(self.ids, IdList) else "ids": self.ids}
            return CodeColumns(self.blocks, self.n, cell_ends=self.cell_ends, **ids, **scales)
        except ValueError as error:
            raise FormatError(f"the codes cannot be scanned ({error}): they are damaged") from None

    def rows(self, places: Ids) -> Codes:
        """The code rows at given places."""
        scanned = self.blocks[places // BLOCK, :, places % BLOCK]
        scales = self.scales[places] if self.scales is not None and self.scales.dtype == np.uint8 else None
        return self.codec.layout.join(scanned, self.cells(places), scales)

    def cells(self, places: Ids) -> Ids:
        """The cell of each place."""
        if self.cell_ends is None:
            return np.zeros(len(places), np.int64)
        return np.searchsorted(self.cell_ends, places // BLOCK, side="right")

    def only(self, places: Ids) -> "Columns":
        """The codes at some places, ascending, and no others."""
        blocks, chosen, ends = cell_blocks(
            self.blocks[places // BLOCK, :, places % BLOCK], self.cells(places), self.codec.n_cells
        )
        inside = chosen >= 0

        def placed(values: npt.NDArray[Any], empty: int) -> npt.NDArray[Any]:
            out = np.full(len(chosen), empty, values.dtype)
            out[inside] = values[chosen[inside]]
            return out

        scales = None if self.scales is None else placed(self.scales[places], 0)
        return Columns(self.codec, len(chosen), blocks, placed(self._ids_at(places), -1), ends, scales)

    def _ids_at(self, places: Ids) -> Ids:
        if isinstance(self.ids, IdList):
            ids: Ids = self.ids.at(np.ascontiguousarray(places, np.int64))
            return ids
        return places if self.ids is None else self.ids[places]


def live_words(live: npt.NDArray[np.bool_]) -> Words:
    """Which places may be found, as bits: a word for each block."""
    words: Words = np.packbits(live, bitorder="little").view("<u4").astype(np.uint32, copy=False)
    return words


def scanned_bytes(codec: Codec) -> int:
    """Bytes that reconstruction search reads of a code, the number of its cell, which is its place, included."""
    column = 1 if isinstance(codec.scale, ScaleByte) else 4 if isinstance(codec.scale, FixedLength) else 0
    return codec.layout.scanned_bytes + column + codec.layout.cell_bytes


def lay_out(codec: Codec, rows: Codes, ids: Ids | None = None) -> Columns:
    """Code rows for the scan. With ids (ascending) they always stand in cells, one where the codec has no cells."""
    scanned = codec.layout.scanned(rows)
    places: Ids | None = None  # the row at each place
    ends: Ids | None = None
    if codec.cells is not None or ids is not None:
        cells = codec.layout.cells(rows) if codec.cells is not None else np.zeros(len(rows), np.int64)
        blocks, places, ends = cell_blocks(scanned, cells, codec.n_cells)
    else:
        blocks = scan_blocks(scanned)
    scales = None
    if codec.scale is not None:
        values = _scale_column(codec, rows)
        scales = np.zeros(len(blocks) * BLOCK, values.dtype)
        if places is None:
            scales[: len(rows)] = values
        else:
            scales[places >= 0] = values[places[places >= 0]]
    if places is None:
        return Columns(codec, len(rows), blocks, scales=scales)
    names = places if ids is None else np.where(places >= 0, ids[places] if len(rows) else -1, -1)
    return Columns(codec, len(places), blocks, names, ends, scales)


def _scale_column(codec: Codec, rows: Codes) -> npt.NDArray[Any]:
    """The scale of each row, as the scan multiplies by it."""
    if isinstance(codec.scale, ScaleByte):
        return codec.layout.scales(rows)
    assert isinstance(codec.scale, FixedLength)
    factor = length_factor(codec.scale, codec.symbols.matrix)
    column = np.zeros(len(rows), np.float32)
    for start in range(0, len(rows), _CHUNK_CODES):
        part = slice(start, start + _CHUNK_CODES)
        combined = combine(codec.symbols, codec.layout.symbols(rows[part]), 1)
        column[part] = codec.scale.decode(combined) / factor
    return column
