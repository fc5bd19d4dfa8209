"""Blocks: symbols that code ranges of the reduced dimensions, each range by itself (docs/embeddings.md)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse.codec.codebooks import Codebooks
from antisparse.codec.frozen import Frozen
from antisparse.codec.signs import LearnedSigns
from antisparse.codec.symbols import Found, QueryKind, consecutive, correlate
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError, UnsupportedError


@dataclass(frozen=True, eq=False)
class Blocks(Frozen):
    """The dimensions in consecutive ranges, with symbols for each: the search for a code is linear in their number.

    The matrix A of all symbols has those of the parts along its diagonal. Every part but the last fills whole bytes.

    Attributes
    ----------
    parts : tuple of Codebooks, or tuple of LearnedSigns
    """

    parts: tuple[Codebooks | LearnedSigns, ...]
    measured: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise InputTypeError("parts must be a tuple of symbols, and not an empty one")
        kind = type(self.parts[0])
        if kind not in (Codebooks, LearnedSigns) or any(type(part) is not kind for part in self.parts):
            raise InputTypeError("parts must be codebooks, all of them, or learned signs")
        if any(part.n_bits % 8 for part in self.parts[:-1]):
            raise InputError("parts must fill whole bytes, all but the last")

    @property
    def columns_per_nibble(self) -> int:
        """As of the parts."""
        return self.parts[0].columns_per_nibble

    @property
    def compares(self) -> bool:
        """As of the parts."""
        return self.parts[0].compares

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""
        return sum(part.dimension for part in self.parts)

    @property
    def n_bits(self) -> int:
        """Those of all parts."""
        return sum(part.n_bits for part in self.parts)

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The matrices of the parts."""
        return tuple(part.matrix for part in self.parts)

    @cached_property
    def matrix(self) -> Float64Array:
        """The matrix of all symbols, which is large: mostly zeros."""
        from scipy.linalg import block_diag  # which takes long to import, and is rarely needed

        matrix: Float64Array = block_diag(*self.blocks)
        matrix.flags.writeable = False
        return matrix

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """The symbols of each range."""
        ranges = consecutive([part.dimension for part in self.parts])
        found = [
            part.find(np.ascontiguousarray(Y[:, own]), threads, False)
            for part, own in zip(self.parts, ranges, strict=True)
        ]
        return Found(
            np.concatenate([one.symbols for one in found], axis=1),
            np.sum([one.dots for one in found], axis=0),
            np.sum([one.squares for one in found], axis=0),
        )

    def expand(self, symbols: Codes) -> npt.NDArray[np.float32]:
        """What symbols say of the columns of all matrices."""
        ranges = consecutive([-(-part.n_bits // 8) for part in self.parts])
        x = [part.expand(symbols[:, own]) for part, own in zip(self.parts, ranges, strict=True)]
        return np.concatenate(x, axis=1, dtype=np.float32)

    def weights(self, Y: Float64Array, query: QueryKind, threads: int) -> Float64Array:
        """``A.T @ q``."""
        if query != "projection":
            raise UnsupportedError("these codes are no signs of a spread representation; pass query='projection'")
        return correlate(self, Y, threads)

    def describe(self) -> str:
        """A few words for a person."""
        what = "codebooks" if self.columns_per_nibble == 16 else "signs"
        count = self.n_bits // 4 if self.columns_per_nibble == 16 else self.n_bits
        return f"{count} {what} in {len(self.parts)} blocks"
