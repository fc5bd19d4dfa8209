"""How a budget in bytes is split among the fields of a code: rules found on learning vectors (docs/learn.md)."""

from dataclasses import dataclass
from typing import Literal

from antisparse._arrays import boolean, choice, integer
from antisparse.codec.cells import MANY, MOST_CELLS, number_bytes
from antisparse.errors import InputError
from antisparse.learning.symbols import SYMBOLS
from antisparse.metrics import MetricName, metric_named

BiasKind = Literal["byte", "nibble", "none"]

_FEW_BYTES = 8  # up to which half a byte of bias is enough
_CODEBOOK_BITS = 1.5  # a dimension, up to which codebooks do better than signs
_DENSE_BYTES, _BLOCK_BYTES = 64, 16  # up to which codes are found as a whole; of a block beyond
_LEAST_AXES = 384
_PER_CODEBOOK = 20  # training vectors for each of a block, below which they do not
_PER_CELL = 40  # training vectors for each of many cells
_MEANS, _PER_MEAN = 256, 80  # with fewer training vectors a mean, means fit these and not the base


@dataclass(frozen=True)
class Split:
    """What the bytes of a code are spent on; the symbols get what the other fields leave.

    Attributes
    ----------
    symbols : {"codebooks", "signs", "levels"}
    cells : int
        Means that vectors are coded relative to: one byte of the code up to 256, two up to
        65,536, three beyond, none for one.
    scale : bool
        A byte for a scale of each vector's own; signs only.
    bias : {"byte", "nibble", "none"}
        "none" suits inner products alone.
    blocks : int
        Ranges of principal axes that are coded each by itself: codes are then found in time linear in the bytes. Not
        with a scale, nor with levels.
    axes : int or None
        Principal axes that are kept; None keeps all.
    """

    symbols: str
    cells: int = 1
    scale: bool = False
    bias: BiasKind = "byte"
    blocks: int = 1
    axes: int | None = None

    def __post_init__(self) -> None:
        choice(self.symbols, "symbols", SYMBOLS)
        integer(self.cells, "cells", 1, MOST_CELLS + 1)
        boolean(self.scale, "scale")
        choice(self.bias, "bias", ("byte", "nibble", "none"))
        integer(self.blocks, "blocks", 1, 2**12)
        if self.axes is not None:
            integer(self.axes, "axes", 1)
        if self.blocks > 1 and (self.scale or self.symbols == "levels"):
            raise InputError("blocks go with codebooks, or with signs without a scale")
        if self.scale and (self.symbols != "signs" or self.bias == "nibble"):
            raise InputError("scale=True goes with symbols='signs' and bias='byte' alone, or 'none' for inner products")

    def nibbles(self, n_bytes: int) -> int:
        """The nibbles that are left for symbols."""
        integer(n_bytes, "n_bytes", 1)
        left = 2 * (n_bytes - number_bytes(self.cells) - self.scale) - {"byte": 2, "nibble": 1, "none": 0}[self.bias]
        if left < 1:
            raise InputError(f"n_bytes = {n_bytes} leaves nothing for symbols beside {self}; give more bytes")
        return left


def sample_size(train: int, cells: int) -> int:
    """How many vectors at most are learned from, of which `train` are asked for: more where many cells need them."""
    return max(train, _PER_CELL * cells) if cells > MANY else train


def choose_split(
    n_bytes: int,
    n_train: int,
    dimension: int,
    *,
    metric: MetricName = "l2",
    symbols: str = "auto",
    cells: int | None = None,
) -> Split:
    """The split that does best for so many bytes, training vectors and dimensions.

    Codebooks, if there are training vectors enough, in blocks beyond 64 bytes; signs otherwise, with cells and a scale
    if there are training vectors enough for these. The bias takes half a byte of up to eight, one byte of more, and
    none where inner products are wanted. Of vectors of many dimensions as many principal axes are kept as there are
    bits, and no fewer than 384.

    Parameters
    ----------
    n_bytes, n_train, dimension : int
    metric : {"l2", "cosine", "ip"}
    symbols : {"auto", "codebooks", "signs", "levels"}
        "signs" keeps Hamming and asymmetric search, and so has one cell unless `cells` says otherwise.
    cells : int, optional
        How many cells there shall be; by default as many as do best.
    """
    choice(symbols, "symbols", ("auto", *SYMBOLS))
    n_bytes, n_train = integer(n_bytes, "n_bytes", 1), integer(n_train, "n_train", 0, 2**63)
    dimension = integer(dimension, "dimension", 1)
    if cells is not None:
        integer(cells, "cells", 1, MOST_CELLS + 1)
    bias: BiasKind = "none"
    if metric_named(metric).centres:
        bias = "nibble" if n_bytes <= _FEW_BYTES else "byte"
    axes = max(_LEAST_AXES, 8 * n_bytes)
    kept = axes if axes < dimension else None
    blocks = 1 if n_bytes <= _DENSE_BYTES else min(round(n_bytes / _BLOCK_BYTES), dimension)
    if symbols == "levels":
        return Split(symbols, cells or 1, False, bias)
    if symbols != "auto":
        return Split(symbols, cells or 1, False, bias, blocks, kept)
    few_bits = 8 * n_bytes <= _CODEBOOK_BITS * dimension
    if (few_bits or blocks > 1) and n_train >= _PER_CODEBOOK * 2 * n_bytes / blocks:
        return Split("codebooks", cells or 1, False, bias, blocks, kept)
    enough = n_train >= _PER_MEAN * _MEANS and bias != "nibble" and blocks == 1
    count = cells or (_MEANS if enough else 1)
    return Split("signs", count, enough and count > 1, bias, blocks, kept)
