"""Symbols fitted to training vectors: one entry a kind that a code can be made of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from antisparse._arrays import Float64Array
from antisparse.codec.codebooks import Codebooks
from antisparse.codec.fields import AnySymbols
from antisparse.codec.levels import Levels
from antisparse.codec.signs import LearnedSigns
from antisparse.learning.codebooks import learn_codebooks
from antisparse.learning.frames import learn_frame
from antisparse.learning.training import Training, check_training

_PRODUCT_BITS = 1.5  # a dimension, beyond which codebooks start as a product quantiser; those of blocks always do


@dataclass(frozen=True)
class Order:
    """What is wanted of symbols.

    Attributes
    ----------
    nibbles : int
        The room there is in a code.
    cells : int
        Means that vectors are coded relative to.
    scale : bool
        Every vector has a scale of its own.
    effort : {1, 2, 3}
        How long the symbols of a vector are sought.
    in_blocks : bool
        The vectors are a block of the principal axes of others.
    """

    nibbles: int
    cells: int
    scale: bool
    effort: int
    random_state: np.random.RandomState
    n_threads: int | None
    progress: bool
    in_blocks: bool = False


def _codebooks(Y: Float64Array, wanted: Order) -> tuple[AnySymbols, Float64Array]:
    learned = learn_codebooks(
        Y,
        wanted.nibbles,
        means=wanted.cells,
        start="product" if wanted.in_blocks or 4 * wanted.nibbles > _PRODUCT_BITS * Y.shape[1] else "gaussian",
        random_state=wanted.random_state,
        n_threads=wanted.n_threads,
        progress=wanted.progress,
        overwrite=True,
    )
    return Codebooks(learned.matrix, wanted.effort), learned.means


def _signs(Y: Float64Array, wanted: Order) -> tuple[AnySymbols, Float64Array]:
    learned = learn_frame(
        Y,
        4 * wanted.nibbles,
        means=wanted.cells,
        scale=wanted.scale,
        random_state=wanted.random_state,
        n_threads=wanted.n_threads,
        progress=wanted.progress,
    )
    return LearnedSigns(learned.matrix, wanted.effort, learned.norm), learned.means


def _levels(Y: Float64Array, wanted: Order) -> tuple[AnySymbols, Float64Array]:
    check_training(Y, wanted.cells)
    start = Training.of(Y, wanted.cells, wanted.random_state, 1)
    return Levels.fit(start.residual(), wanted.nibbles, wanted.random_state), start.means


# From centred training vectors, which may be overwritten, to symbols, and the means that these are relative to.
SYMBOLS: dict[str, Callable[[Float64Array, Order], tuple[AnySymbols, Float64Array]]] = {
    "codebooks": _codebooks,
    "signs": _signs,
    "levels": _levels,
}
