"""How a budget in bytes is split among the fields of a code: rules found on learning vectors (docs/learn.md)."""

from dataclasses import dataclass
from typing import Literal

from antisparse._arrays import boolean, choice, integer
from antisparse.errors import InputError
from antisparse.learning.symbols import SYMBOLS
from antisparse.metrics import MetricName, metric_named

BiasKind = Literal["byte", "nibble", "none"]

_MEANS, _PER_MEAN = 256, 80  # with fewer training vectors a mean, means fit these and not the base


@dataclass(frozen=True)
class Split:
    """What the bytes of a code are spent on; the symbols get what the other fields leave.

    Attributes
    ----------
    symbols : {"codebooks", "signs"}
    cells : int
        Means that vectors are coded relative to: one byte of the code up to 256, two beyond, none for one.
    scale : bool
        A byte for a scale of each vector's own; signs only.
    bias : {"byte", "nibble", "none"}
        "none" suits inner products alone.
    """

    symbols: str
    cells: int = 1
    scale: bool = False
    bias: BiasKind = "byte"

    def __post_init__(self) -> None:
        choice(self.symbols, "symbols", SYMBOLS)
        integer(self.cells, "cells", 1, 2**16 + 1)
        boolean(self.scale, "scale")
        choice(self.bias, "bias", ("byte", "nibble", "none"))
        if self.scale and (self.symbols != "signs" or self.bias == "nibble"):
            raise InputError("scale=True goes with symbols='signs' and bias='byte' alone, or 'none' for inner products")

    def nibbles(self, n_bytes: int) -> int:
        """The nibbles that are left for symbols."""
        cells = 0 if self.cells == 1 else 1 if self.cells <= 256 else 2
        left = 2 * (n_bytes - cells - self.scale) - {"byte": 2, "nibble": 1, "none": 0}[self.bias]
        if left < 1:
            raise InputError(f"n_bytes = {n_bytes} leaves nothing for symbols beside {self}; give more bytes")
        return left


def choose_split(
    n_bytes: int, n_train: int, metric: MetricName = "l2", symbols: str = "auto", cells: int | None = None
) -> Split:
    """The split that does best for so many bytes, given so many training vectors.

    Parameters
    ----------
    n_bytes, n_train : int
    metric : {"l2", "cosine", "ip"}
    symbols : {"auto", "codebooks", "signs"}
        "signs" keeps Hamming and asymmetric search, and so has one cell unless `cells` says otherwise.
    cells : int, optional
        How many cells there shall be; by default as many as do best.
    """
    choice(symbols, "symbols", ("auto", *SYMBOLS))
    has_bias = metric_named(metric).centres
    kind = "codebooks" if symbols == "auto" else symbols
    return Split(kind, cells or 1, False, ("nibble" if n_bytes <= 8 else "byte") if has_bias else "none")
