"""Cells: means that vectors are coded relative to. The number of the mean is the order of the codes in a scan."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, FloatArray, frozen_array
from antisparse._core import Points, nearest
from antisparse.codec.frozen import Frozen
from antisparse.errors import InputError

Labels = npt.NDArray[np.int64]

MOST_CELLS = 1 << 20
MANY = 4096  # means, beyond which not all are compared with a vector, if their order says which are near each other


@dataclass(frozen=True, eq=False)
class Cells(Frozen):
    """Two or more means, 2^20 at most.

    Of more than 4,096 the nearest ones are found quickly where means that stand beside each other are near each other,
    as `LearnedEncoder` orders them (docs/search.md).

    Attributes
    ----------
    means : ndarray of shape (n_cells, r)
    """

    means: Float64Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", frozen_array(self.means, "means", 2))
        if not 2 <= len(self.means) <= MOST_CELLS:
            raise InputError(f"means has {len(self.means)} rows; cells are 2 to {MOST_CELLS:,}")

    def __len__(self) -> int:
        return len(self.means)

    @property
    def n_bytes(self) -> int:
        """Bytes that the number of a cell takes."""
        return number_bytes(len(self.means))

    @cached_property
    def points(self) -> Points:
        """The means, ready for finding the nearest by distance."""
        return points_of(self.means)

    def assign(self, Y: Float64Array, threads: int) -> Labels:
        """The cell of every reduced vector."""
        return nearest_mean(Y, self.means if len(self) <= MANY else self.points, threads)

    def describe(self) -> str:
        """A few words for a person."""
        return f"{len(self.means):,} cells"


def number_bytes(cells: int) -> int:
    """Bytes that the number of one of so many cells takes; none for one cell."""
    return 0 if cells == 1 else -(-(cells - 1).bit_length() // 8)


def points_of(means: Float64Array) -> Points:
    """Means among which the nearest are found by distance."""
    return Points(np.ascontiguousarray(means), half_squares(means))


def half_squares(means: Float64Array) -> Float64Array:
    """Half the squared norms of means."""
    halves: Float64Array = (means * means).sum(axis=1) / 2
    return halves


def nearest_mean(X: FloatArray, means: Float64Array | Points, threads: int = 1) -> Labels:
    """The nearest of the means to every vector, the first of equals; the same in any batch.

    Of more than `MANY` means that are in order it is nearly always the nearest.
    """
    if not isinstance(means, Points) and len(means) > MANY:
        means = points_of(means)
    if isinstance(means, Points):
        found: Labels = means.nearest(np.ascontiguousarray(X), 1, threads)[0][:, 0]
        return found
    if len(means) == 1:
        return np.zeros(len(X), np.int64)
    half = half_squares(means)
    labels: Labels = nearest(np.ascontiguousarray(X), np.ascontiguousarray(means.T), half, threads)
    return labels
