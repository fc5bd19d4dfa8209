"""Queries as tables: 16 integers for every nibble of a code, whatever the codec and the search (docs/search.md)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._core import Points, QueryTables, TableMaker, project, round_rows, sign_tables
from antisparse.codec.codec import Codec
from antisparse.codec.scale import FixedLength, ScaleByte
from antisparse.codec.symbols import NO_SIGNS
from antisparse.errors import FormatError, InputError, UnsupportedError

Method = Literal["hamming", "asymmetric", "reconstruction"]
Query = Literal["projection", "spread"]
Labels = npt.NDArray[np.int64]

# The number of bits in which two nibbles differ.
_DIFFERING = np.bitwise_count(np.arange(16, dtype=np.uint8)[:, None] ^ np.arange(16, dtype=np.uint8)).astype(np.int32)


@dataclass(frozen=True)
class TabledQueries:
    """Queries, ready for the scan of any codes of one codec.

    Attributes
    ----------
    native : QueryTables
        Tables, units and offsets (native/scan/scan.hpp).
    constant : ndarray of shape (n_queries,)
        What the scan leaves out, since all codes have it in common.
    scaled : bool
        Whether the scan multiplies by the codes' scales.
    distances : callable
        From the sum of scores and constants to what the method and the metric say.
    """

    native: QueryTables
    constant: Float64Array
    scaled: bool
    distances: Callable[[Float64Array], npt.NDArray[Any]]

    def finish(self, scores: Float64Array) -> npt.NDArray[Any]:
        """Distances of scores (n_queries, k); the largest there is where there is no code."""
        return self.distances(scores + self.constant[:, None])


class QueryTabler:
    """Makes tables of queries for the codes of one codec; what all queries share is made once."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._nibbles = 2 * codec.layout.scanned_bytes

    @property
    def bytes_per_query(self) -> int:
        """What the tables of a query take."""
        return 64 * self._nibbles

    def make(
        self, Q: npt.NDArray[Any], method: Method, query: Query, probes: int | None, threads: int
    ) -> TabledQueries:
        """Prepared queries for a method; with `probes` for so many cells of each alone."""
        if method == "reconstruction":
            return self._reconstruction(Q, probes, threads)
        symbols = self._codec.symbols
        if not symbols.compares:
            raise UnsupportedError(NO_SIGNS)
        if self._codec.cells is not None:
            raise UnsupportedError(
                "signs relative to different means do not compare: with several cells search by "
                "method='reconstruction', without a shortlist"
            )
        zero = np.zeros((len(Q), 1))
        if method == "hamming":
            return TabledQueries(
                QueryTables(self._differing(Q, threads), np.ones(len(Q)), zero), zero[:, 0], False, whole_distances
            )
        reduced = self._codec.reduction.reduce(Q, threads)
        weights, units = round_rows(np.ascontiguousarray(symbols.weights(reduced, query, threads)), 0.0)
        _check_units(units)
        return TabledQueries(
            QueryTables(sign_tables(weights, self._nibbles), units, zero), zero[:, 0], False, lambda values: values
        )

    def _differing(self, Q: npt.NDArray[Any], threads: int) -> npt.NDArray[np.int32]:
        """Tables of the number of bits that differ from the query's own code; only the bits of symbols count."""
        codec, layout = self._codec, self._codec.layout
        scaled = isinstance(codec.scale, ScaleByte)
        found = [
            codec.symbols.find(codec.reduction.reduce(Q[at : at + 4096], threads), threads, scaled).symbols
            for at in range(0, max(len(Q), 1), 4096)
        ]
        symbols = found[0] if len(found) == 1 else np.concatenate(found)
        nibbles = np.stack([symbols >> 4, symbols & 15], axis=2).reshape(len(symbols), 2 * symbols.shape[1])
        tables = np.zeros((len(symbols), self._nibbles, 16), np.int32)
        count = -(-layout.symbol_bits // 4)
        tables[:, :count] = _DIFFERING[nibbles[:, :count]]
        return tables

    def _reconstruction(self, Q: npt.NDArray[Any], probes: int | None, threads: int) -> TabledQueries:
        """The squared distance to the rebuilt vector, or twice the negative inner product with it.

        ``||q - m - s A x||^2 = ||q - m||^2 + s (bias - 2 w . x)``, where the dot product ``w . x`` is ``peak - unit D``
        and D the sum of table entries; ``-2 q . (m + s A x)`` likewise, without the bias.
        """
        codec = self._codec
        if not codec.rebuilds:
            raise UnsupportedError("spectral hashing cannot rebuild vectors; search by method='hamming' instead")
        maker, squared_means = self._maker
        bias = codec.bias if codec.metric.centres else None
        n_cells = codec.n_cells
        some = probes if probes is not None and probes < n_cells else 0
        plain: npt.NDArray[Any] = Q if codec.reduction.axes is None else self._reduced(Q, threads)
        if plain.dtype != np.float32:
            plain = np.asarray(plain, np.float64)
        at_least = 0.0 if bias is None else bias.largest_step / 2
        tables, units, peaks, squares, nearest, products = maker.make(
            np.ascontiguousarray(plain), at_least, some, threads
        )
        _check_units(units)
        visited = nearest if some else None
        constant = squares if codec.metric.centres and codec.reduction.axes is None else self._constant(Q)
        offsets = np.zeros((len(Q), 1))
        if codec.cells is not None:
            if visited is None:
                products = project(self._reduced(Q, threads), self._mean_columns, threads)
            offsets = (squared_means if visited is None else squared_means[visited]) - 2 * products
        units, inner = 2 * units, -2 * peaks
        steps = None
        if bias is not None:
            bias.fill(tables, units)
            steps = bias.cell_steps(units, visited, n_cells)
            lows = bias.lows(visited, n_cells)
            if isinstance(lows, float):
                inner = inner + lows
            else:
                offsets = offsets + lows
        _check_codec(offsets)
        if codec.scale is None:
            native = QueryTables(tables, units, offsets, probes=visited, cell_steps=steps)
            return TabledQueries(native, constant + inner, False, codec.metric.distances)
        if isinstance(codec.scale, FixedLength):
            factor = self._length_factor
            units, inner = units * factor, inner * factor
            if codec.metric.centres:
                constant = constant + codec.scale.sigma**2
            _check_units(units)
        _check_codec(inner)
        native = QueryTables(tables, units, offsets, base=inner, probes=visited, cell_steps=steps)
        return TabledQueries(native, constant, True, codec.metric.distances)

    def _constant(self, Q: npt.NDArray[Any]) -> Float64Array:
        return self._codec.metric.constant(Q, self._codec.reduction.mean)

    def _reduced(self, Q: npt.NDArray[Any], threads: int) -> Float64Array:
        """Reduced queries; not centred for an inner product."""
        return self._codec.reduction.reduce(Q, threads, centre=self._codec.metric.centres)

    @cached_property
    def _length_factor(self) -> float:
        scale = self._codec.scale
        assert isinstance(scale, FixedLength)
        return length_factor(scale, self._codec.symbols.matrix)

    @cached_property
    def _maker(self) -> tuple[TableMaker, Float64Array]:
        """What makes tables of queries, reduced where axes were kept; and the squared norms of the means."""
        codec = self._codec
        centres = codec.metric.centres
        shift = codec.reduction.mean if codec.reduction.axes is None and centres else None
        frame = [np.ascontiguousarray(block) for block in codec.symbols.blocks]
        per_nibble = codec.symbols.columns_per_nibble
        if codec.cells is None:
            return TableMaker(frame, per_nibble, self._nibbles, shift=shift), np.zeros(1)
        means = np.ascontiguousarray(codec.cells.means)
        squared = (means * means).sum(axis=1) if centres else np.zeros(len(means))
        points = codec.cells.points if centres else Points(means, squared)
        return TableMaker(frame, per_nibble, self._nibbles, shift=shift, points=points), squared

    @cached_property
    def _mean_columns(self) -> Float64Array:
        assert self._codec.cells is not None
        return np.ascontiguousarray(self._codec.cells.means.T)


def length_factor(scale: FixedLength, matrix: Float64Array) -> float:
    """What the scales of a fixed length are kept in float32 relative to: sigma over the usual length of A b."""
    usual = float(np.sqrt((matrix * matrix).sum()))
    factor = scale.sigma / usual if usual > 0 else 0.0
    return factor if factor > 0 else 1.0


def whole_distances(scores: Float64Array) -> npt.NDArray[np.int32]:
    """Scores as integers; infinity becomes the largest."""
    return np.where(np.isfinite(scores), scores, np.iinfo(np.int32).max).astype(np.int32)


def _check_codec(numbers: Float64Array) -> None:
    """Raise if what is made of queries and the codec overflows: queries are bounded, so it is the codec."""
    if not np.isfinite(numbers).all():
        raise FormatError("the numbers of the codec are so large that distances overflow: it is damaged")


def _check_units(units: Float64Array) -> None:
    if not np.isfinite(units).all() or not (units > 0).all():
        row = int(np.argmin(np.isfinite(units) & (units > 0)))
        raise InputError(f"Q row {row} is too large or too small for float64; scale the vectors")
