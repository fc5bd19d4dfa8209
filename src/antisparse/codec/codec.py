"""The codec: what a fitted code is. It never changes; indexes, files and searches hold it (docs/codec.md)."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import (
    Float64Array,
    bytes_of,
    finite,
    integer,
    moderate,
    output_array,
    path_of,
    plain_array,
    thread_count,
    vectors,
)
from antisparse._files import read_file, sync_folder, write_file
from antisparse._progress import track
from antisparse.codec.cells import MANY
from antisparse.codec.fields import (
    CLASSES,
    AnySymbols,
    Bias,
    BiasNibble,
    Cells,
    FixedLength,
    Reduction,
    Scale,
    ScaleByte,
)
from antisparse.codec.files import MOST, digest, dumps, loads
from antisparse.codec.frozen import Frozen
from antisparse.codec.layout import RowLayout
from antisparse.codec.symbols import Found, combine, correlate
from antisparse.codes import Codes
from antisparse.errors import FormatError, InputError, InputTypeError
from antisparse.metrics import METRICS, Metric, MetricName, metric_named

Labels = npt.NDArray[np.int64]

_KINDS: dict[str, Any] = {
    "reduction": Reduction,
    "symbols": AnySymbols,
    "cells": Cells | None,
    "scale": Scale | None,
    "bias": Bias | None,
}
_CHUNK_ROWS = 4096  # small enough for what is computed of them to stay in cache


@dataclass(frozen=True, eq=False)
class Codec(Frozen):
    """Float vectors to code rows of `n_bytes`, and back: what an encoder's `fit` makes, as ``encoder.codec_``.

    A codec is frozen. Its arrays are private, read-only copies, and any number of threads may use it. Two codecs are
    equal if they code, rebuild and search alike, which `digest` tells.

    Attributes
    ----------
    metric_name : {"l2", "cosine", "ip"}
        The metric it was fitted for, by which its codes are searched.
    reduction : Reduction
        The mean taken off, and the axes kept.
    symbols : ProjectedSigns, SpreadSigns, LearnedSigns, SpectralSigns, Codebooks or Levels
        What rebuilds the direction of a vector.
    cells : Cells or None
        Means that vectors are coded relative to.
    scale : ScaleByte, FixedLength or None
        What multiplies the symbols' combination.
    bias : BiasByte, BiasNibble or None
        What squared distances need beside it.
    given : int or None
        Dimensions of vectors as they come, of which the first `dimension` are used; None: they come with no more.
    """

    metric_name: MetricName
    reduction: Reduction
    symbols: AnySymbols
    cells: Cells | None = None
    scale: Scale | None = None
    bias: Bias | None = None
    given: int | None = field(default=None, metadata={"later": True})

    def __post_init__(self) -> None:
        metric_named(self.metric_name)
        for name, kinds in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise InputTypeError(f"{name} is a {type(getattr(self, name)).__name__}, which a codec cannot hold")
        if self.given is not None and integer(self.given, "given", 1) <= self.dimension:
            raise InputError(f"given = {self.given}, but {self.dimension} dimensions are used; leave it out")
        r = self.reduction.reduced_dimension
        if self.symbols.dimension != r:
            raise InputError(f"symbols are of {self.symbols.dimension} dimensions, but reduced vectors of {r}")
        beside = isinstance(self.scale, ScaleByte) or self.bias is not None
        if beside and not self.symbols.measured:
            raise InputError(f"{self.symbols.describe()} go with neither a scale byte nor a bias; use FixedLength")
        if self.rebuilds and self.metric.centres and self.bias is None and not isinstance(self.scale, FixedLength):
            raise InputError(f"a codec for {self.metric_name!r} needs a bias, or rebuilt vectors of one length")
        if not self.rebuilds and (self.cells is not None or self.scale is not None):
            raise InputError(f"{self.symbols.describe()} rebuild nothing, and have neither cells nor a scale")
        if self.cells is not None and self.cells.means.shape[1] != r:
            raise InputError(f"means have {self.cells.means.shape[1]} columns, but reduced vectors {r} dimensions")
        if isinstance(self.bias, BiasNibble):
            if len(self.bias.low) != self.n_cells:
                raise InputError(f"the bias has {len(self.bias.low)} ranges for {self.n_cells} cells")
            if not 1 <= (self.symbols.n_bits - 1) % 8 + 1 <= 4:
                raise InputError("a bias nibble needs the last half byte of symbols free")
        if isinstance(self.scale, ScaleByte) and isinstance(self.bias, BiasNibble):
            raise InputError("a bias nibble does not go with a scale byte, which multiplies it; use a bias byte")
        if isinstance(self.scale, FixedLength) and (self.cells is not None or self.bias is not None):
            raise InputError("rebuilt vectors of one length have neither cells nor a bias")

    @property
    def metric(self) -> Metric:
        """The metric it was fitted for."""
        return METRICS[self.metric_name]

    @property
    def rebuilds(self) -> bool:
        """Whether vectors can be rebuilt from codes."""
        return self.symbols.columns_per_nibble > 0

    @property
    def dimension(self) -> int:
        """Of the vectors that are coded and rebuilt."""
        return self.reduction.dimension

    @property
    def input_dimension(self) -> int:
        """Of the vectors as they come."""
        return self.given or self.dimension

    @property
    def n_cells(self) -> int:
        """The number of cells, one where vectors are not coded relative to several means."""
        return 1 if self.cells is None else len(self.cells)

    @cached_property
    def layout(self) -> RowLayout:
        """The bytes of a code row."""
        return RowLayout(
            self.symbols.n_bits,
            isinstance(self.bias, BiasNibble),
            0 if self.cells is None else self.cells.n_bytes,
            0 if self.scale is None else self.scale.n_bytes,
            0 if self.bias is None else self.bias.n_bytes,
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of a code row: all that is stored of a vector but its id."""
        return self.layout.n_bytes

    def encode(
        self,
        X: Any,
        *,
        out: Codes | None = None,
        progress: bool = False,
        n_threads: int | None = None,
        first_row: int = 0,
    ) -> Codes:
        """Code rows (n, n_bytes), uint8, of vectors (n, d).

        Vectors are read and encoded a few thousand at a time, so that X may be memory-mapped and larger than memory. A
        vector's code does not depend on the batch it comes in, nor on the number of threads.

        Parameters
        ----------
        X : array of shape (n, d)
        out : ndarray of shape (n, n_bytes), uint8, optional
            Where to write them; a memory map, say.
        progress : bool
            Show a progress bar on standard error.
        n_threads : int, optional
            All available CPUs by default.
        first_row : int
            What errors call the first row, where X is a part of something larger.
        """
        array, threads = self.vectors(X, "X"), thread_count(n_threads)
        first_row = integer(first_row, "first_row", 0, 2**63)
        shape = (len(array), self.n_bytes)
        rows_out = np.empty(shape, np.uint8) if out is None else output_array(out, "out", shape, array)
        for start in track(range(0, len(array), _CHUNK_ROWS), "encoding", progress):
            rows = slice(start, start + _CHUNK_ROWS)
            part = array[rows]
            finite(part, "X", first_row + start)
            reduced = self.reduction.reduce(self.metric.prepare(part, "X", first_row + start), threads)
            try:
                rows_out[rows] = self.encode_reduced(reduced, threads)
            except InputError as error:  # of the reduced vectors: say which of the caller's they are
                first, last = first_row + start, first_row + min(start + _CHUNK_ROWS, len(array)) - 1
                raise InputError(f"X rows {first} to {last} cannot be encoded: {error}") from None
        return rows_out

    def encode_reduced(self, Y: Float64Array, threads: int) -> Codes:
        """Code rows of vectors that were prepared and reduced."""
        cells, residual = self.residuals(Y, threads)
        found = self.symbols.find(residual, threads, isinstance(self.scale, ScaleByte))
        rows, scales, numbers = found.symbols, np.ones(1), None
        if isinstance(self.scale, ScaleByte):
            numbers = self.scale.encode(found.dots, found.squares)
            scales = self.scale.decode(numbers)
        if self.bias is not None:
            shares = self.bias.alpha, self.bias.beta
            values = self.bias_values(residual, cells, found, scales, *shares)
            rows = self.bias.put(rows, values, cells)
        return self.layout.join(rows, cells, numbers)

    def residuals(self, Y: Float64Array, threads: int) -> tuple[Labels, Float64Array]:
        """The cell of every reduced vector, and what is left when its mean is taken off."""
        if self.cells is None:
            return np.zeros(len(Y), np.int64), Y
        cells = self.cells.assign(Y, threads)
        residual: Float64Array = Y - self.cells.means[cells]
        return cells, residual

    def bias_values(
        self,
        residual: Float64Array,
        cells: Labels,
        found: Found,
        scales: Float64Array,
        alpha: float,
        beta: float,
    ) -> Float64Array:
        """The values that a bias keeps (codec/bias.py), for the symbols found for residuals."""
        square, dots = scales * scales * found.squares, scales * found.dots
        with np.errstate(over="ignore", invalid="ignore"):  # of a vector beyond all bounds
            error = np.clip((residual * residual).sum(axis=1) - 2 * dots + square, 0, 1e300)
            value: Float64Array = square + alpha * error + beta * (dots - square)
            if self.cells is not None:
                x = self.symbols.expand(found.symbols)
                value = value + 2 * scales * np.einsum("ij,ij->i", self._mean_products(cells), x)
            # A vector so far that its products overflow has the last of the numbers.
            return np.nan_to_num(value / scales, nan=1e300, posinf=1e300, neginf=-1e300)

    def _mean_products(self, cells: Labels) -> Float64Array:
        """``mean . A`` of the means of some cells, (n, columns): worked out once if they are few, else each time."""
        assert self.cells is not None
        if len(self.cells) > MANY:
            return correlate(self.symbols, self.cells.means[cells], 1)
        return self._all_mean_products[cells]

    @cached_property
    def _all_mean_products(self) -> Float64Array:
        assert self.cells is not None
        return correlate(self.symbols, self.cells.means, 1)

    def decode(self, codes: Any, *, n_threads: int | None = None) -> Float64Array:
        """The vectors (n, d) that code rows stand for."""
        rows, threads = self.check_codes(codes, "codes"), thread_count(n_threads)
        rebuilt = combine(self.symbols, self.layout.symbols(rows), threads)
        if isinstance(self.scale, ScaleByte):
            rebuilt = rebuilt * self.scale.decode(self.layout.scales(rows))[:, None]
        elif self.scale is not None:
            rebuilt = rebuilt * self.scale.decode(rebuilt)[:, None]
        if self.cells is not None:
            rebuilt = rebuilt + self.cells.means[self.layout.cells(rows)]
        return self.reduction.restore(rebuilt, threads)

    def vectors(self, X: Any, name: str) -> npt.NDArray[Any]:
        """Vectors (n, d) as an array of numbers, cut to the dimensions that are used, not yet checked for NaN."""
        told = "the codec was fitted on vectors of {} dimensions"
        if self.given is not None:
            X, told = (
                plain_array(X, name),
                f"the codec takes vectors of {self.given}, or the first {{}} dimensions of them",
            )
            X = X[:, : self.dimension] if X.ndim == 2 and X.shape[1] == self.given else X
        return vectors(X, name, self.dimension, told)

    def queries(self, Q: Any) -> npt.NDArray[Any]:
        """Queries (n, d), checked and prepared for the metric."""
        array = self.vectors(Q, "Q")
        finite(array, "Q")
        prepared = self.metric.prepare(array, "Q")
        moderate(prepared, "Q")
        return prepared

    def check_codes(self, codes: Any, name: str) -> Codes:
        """Code rows of this codec, or an error that says why they are none."""
        rows = self.layout.check(codes, name)
        if self.cells is not None and len(rows):
            most = int(self.layout.cells(rows).max())
            if most >= self.n_cells:
                raise InputError(f"{name} names cell {most}, but the codec has {self.n_cells}")
        return rows

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of all that it holds: equal for equal codecs, on any machine."""
        return digest(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codec) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_bytes(self) -> bytes:
        """All that it holds, as `save` writes it."""
        return dumps(self)

    @classmethod
    def from_bytes(cls, data: Any) -> "Codec":
        """The codec that `to_bytes` gave; FormatError if the bytes are damaged, or of another version.

        Parameters
        ----------
        data : bytes, bytearray, memoryview or array of uint8
        """
        codec = loads(bytes_of(data, "data"), {**CLASSES, cls.__name__: cls})
        if not isinstance(codec, cls):
            raise FormatError("it does not hold a codec")
        return codec

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codec to one file, at once or not at all; it is on the disk when the call returns."""
        place = path_of(path)
        write_file(place, [self.to_bytes()])
        sync_folder(place.parent)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Codec":
        """Read a codec that `save` wrote; FormatError if the file is damaged, or of another version."""
        place = path_of(path)
        data = read_file(place, MOST)
        try:
            return cls.from_bytes(data)
        except FormatError as error:
            raise FormatError(f"{place}: {error}") from None

    @property
    def summary(self) -> str:
        """What the bytes are spent on, such as "30 codebooks, bias byte"."""
        parts = (self.symbols, self.cells, self.scale, self.bias)
        return ", ".join(part.describe() for part in parts if part is not None)

    def __repr__(self) -> str:
        size = "1 byte" if self.n_bytes == 1 else f"{self.n_bytes} bytes"
        cut = "" if self.given is None else f" of {self.given}"
        return f"Codec({size}: {self.summary}; {self.dimension}{cut} dimensions, {self.metric_name})"


def codec_of(value: Any, metric: MetricName | None = None) -> Codec:
    """The codec itself, or that of a fitted encoder; an error where it was fitted for another metric."""
    codec = value if isinstance(value, Codec) else getattr(value, "codec_", None)
    if codec is None:
        if hasattr(value, "fit"):
            raise InputError(f"{type(value).__name__} is not fitted; call fit(X) first")
        raise InputTypeError(f"codec is a {type(value).__name__}; pass a Codec or a fitted encoder")
    if not isinstance(codec, Codec):
        raise InputTypeError(f"codec_ is a {type(codec).__name__}, not a Codec; fit the encoder again")
    if metric is not None and metric_named(metric).name != codec.metric_name:
        raise InputError(
            f"metric = {metric!r}, but the codec was fitted for {codec.metric_name!r}; fit the encoder with "
            f"metric={metric!r}, or leave metric out"
        )
    return codec
