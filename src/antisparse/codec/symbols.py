"""Symbols: the part of a code that rebuilds the direction of a vector. Signs, codebooks and levels are its kinds."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._core import project
from antisparse.codes import Codes

QueryKind = Literal["projection", "spread"]
NO_SIGNS = (
    "codes of codebooks or levels have no signs to compare: search by method='reconstruction', without a shortlist, or "
    "fit LearnedEncoder with symbols='signs'"
)


@dataclass(frozen=True)
class Found:
    """The symbols of some vectors y, with what the bias and the scale need to know of the combinations ``A x``.

    Symbols that are not measured have zeros there.
    """

    symbols: Codes
    dots: Float64Array  # y . A x
    squares: Float64Array  # ||A x||^2


class Symbols(Protocol):
    """What a codec asks of its symbols.

    A code's nibbles choose columns of a matrix: with four columns to a nibble each bit is the sign of one column, with
    sixteen the nibble is the number of one column. The combination ``A x`` of what is chosen rebuilds the vector.
    """

    @property
    def n_bits(self) -> int:
        """Bits that the symbols of a code take."""

    @property
    def columns_per_nibble(self) -> int:
        """4, 16, or 0 where there is no matrix and nothing can be rebuilt."""

    @property
    def compares(self) -> bool:
        """Whether bits compare with each other, so that Hamming and asymmetric search make sense."""

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""

    @property
    def measured(self) -> bool:
        """Whether `find` tells dot products and squared norms, which a scale byte and a bias need."""

    @property
    def matrix(self) -> Float64Array:
        """The matrix A (reduced dimension, columns)."""

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The blocks along the diagonal of A, beside which it is zero; A itself where there is but one."""

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """The symbols of reduced vectors; `scaled` where every vector has a scale of its own."""

    def weights(self, Y: Float64Array, query: QueryKind, threads: int) -> Float64Array:
        """What each sign of a query counts for in asymmetric search, (n, n_bits)."""

    def expand(self, symbols: Codes) -> npt.NDArray[Any]:
        """What symbols say of the columns of the matrix, (n, columns)."""

    def describe(self) -> str:
        """A few words for a person."""


def combine(symbols: Symbols, rows: Codes, threads: int) -> Float64Array:
    """``A x`` of rows of symbols, (n, reduced dimension)."""
    x = symbols.expand(rows)
    ranges = consecutive([block.shape[1] for block in symbols.blocks])
    parts = [
        project(np.ascontiguousarray(x[:, own], np.float64), np.ascontiguousarray(block.T), threads)
        for block, own in zip(symbols.blocks, ranges, strict=True)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def correlate(symbols: Symbols, Y: Float64Array, threads: int) -> Float64Array:
    """``A' y`` of reduced vectors, (n, columns)."""
    ranges = consecutive([len(block) for block in symbols.blocks])
    parts = [
        project(np.ascontiguousarray(Y[:, own]), np.ascontiguousarray(block), threads)
        for block, own in zip(symbols.blocks, ranges, strict=True)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def consecutive(sizes: list[int]) -> list[slice]:
    """Ranges of these sizes, one after the other."""
    ends = [0, *np.cumsum(sizes).tolist()]
    return [slice(start, end) for start, end in pairwise(ends)]
