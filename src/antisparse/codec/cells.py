"""Cells: means that vectors are coded relative to. The number of the mean is the order of the codes in a scan."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, frozen_array
from antisparse._core import nearest
from antisparse.codec.frozen import Frozen
from antisparse.errors import InputError

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells(Frozen):
    """Two or more means.

    Attributes
    ----------
    means : ndarray of shape (n_cells, r)
    """

    means: Float64Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", frozen_array(self.means, "means", 2))
        if not 2 <= len(self.means) <= 2**16:
            raise InputError(f"means has {len(self.means)} rows; cells are 2 to 65,536")

    def __len__(self) -> int:
        return len(self.means)

    @property
    def n_bytes(self) -> int:
        """Bytes that the number of a cell takes."""
        return 1 if len(self.means) <= 256 else 2

    def assign(self, Y: Float64Array, threads: int) -> Labels:
        """The cell of every reduced vector."""
        return nearest_mean(Y, self.means, threads)

    def describe(self) -> str:
        """A few words for a person."""
        return f"{len(self.means):,} cells"


def nearest_mean(X: Float64Array, means: Float64Array, threads: int = 1) -> Labels:
    """The nearest of the means to every vector, the first of equals; the same in any batch."""
    if len(means) == 1:
        return np.zeros(len(X), np.int64)
    half = (means * means).sum(axis=1) / 2
    labels: Labels = nearest(np.ascontiguousarray(X), np.ascontiguousarray(means.T), half, threads)
    return labels
