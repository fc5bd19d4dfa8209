"""Codebooks: every nibble is the number of one of the 16 codewords of its codebook (docs/codebooks.md)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, choice, frozen_array
from antisparse.codec.frozen import Frozen
from antisparse.codec.symbols import NO_SIGNS, Found, QueryKind
from antisparse.codes import Codes
from antisparse.codewords import CODEWORDS, TENURE, CodewordFinder, check_codebooks, one_hot
from antisparse.errors import InputError, UnsupportedError

# Moves for every codebook, by effort (0: until none gains); few codebooks have time for more.
_MOVES, _MOST_MOVES, _PRODUCTS = {1: 0, 2: 6, 3: 24}, 4, 5400


@dataclass(frozen=True, eq=False)
class Codebooks(Frozen):
    """Sums of codewords, one of each codebook: four signs of four columns are the special case ``±a ± b ± c ± d``.

    Attributes
    ----------
    matrix : ndarray of shape (r, 16 codebooks)
        The 16 codewords of the first codebook, those of the next, and so on.
    effort : {1, 2, 3}
        How long codewords are exchanged: as long as that gains; six moves a codebook, and up to 24 where there are
        fewer than 30; four times as many.
    """

    matrix: Float64Array
    effort: int = 2
    columns_per_nibble: ClassVar[int] = CODEWORDS
    measured: ClassVar[bool] = True
    compares: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", frozen_array(self.matrix, "matrix", 2))
        object.__setattr__(self, "effort", choice(self.effort, "effort", _MOVES))
        if self.matrix.shape[1] % CODEWORDS:
            raise InputError(f"matrix has {self.matrix.shape[1]} columns; codebooks have 16 each")
        check_codebooks(self.count)

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The matrix alone."""
        return (self.matrix,)

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""
        return int(self.matrix.shape[0])

    @property
    def count(self) -> int:
        """How many codebooks there are."""
        return int(self.matrix.shape[1]) // CODEWORDS

    @property
    def n_bits(self) -> int:
        """Four bits a codebook."""
        return 4 * self.count

    def expand(self, symbols: Codes) -> npt.NDArray[np.float32]:
        """1 at the codewords chosen, 0 elsewhere."""
        return one_hot(symbols, self.count)

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """Codewords from scratch."""
        more = min(max(_PRODUCTS // (6 * self.count**2), 1), _MOST_MOVES)
        moves = _MOVES[self.effort] * self.count * more
        return Found(*self._finder.find(Y, moves or 40 * self.count, TENURE if moves else 0, threads))

    @cached_property
    def _finder(self) -> CodewordFinder:
        return CodewordFinder(self.matrix)

    def weights(self, Y: Float64Array, query: QueryKind, threads: int) -> Float64Array:
        """There are none."""
        raise UnsupportedError(NO_SIGNS)

    def describe(self) -> str:
        """A few words for a person."""
        return f"{self.count} codebook{'s' * (self.count > 1)}"
