"""The bias: what a squared distance needs to know of a code beside the dot product with it (docs/learn.md).

For a residual r = y - mean_k that is rebuilt as s A x, the value kept is

    ( ||s A x||^2 + 2 mean_k . s A x + alpha ||e||^2 + beta e . s A x ) / s        e = r - s A x

so that the scan adds it to -2 w . x before it multiplies by s.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, finite_number, frozen_array, nonnegative
from antisparse.codec.frozen import Frozen
from antisparse.codec.scale import value_range
from antisparse.errors import InputError

Labels = npt.NDArray[np.int64]
Tables = npt.NDArray[np.int32]
_VALUES = np.arange(16, dtype=np.int32)


@dataclass(frozen=True)
class BiasByte:
    """The bias in one byte: a byte v stands for ``low + step v``.

    Attributes
    ----------
    low, step : float
    alpha, beta : float
        The shares of a code's own error that are added.
    """

    low: float
    step: float
    alpha: float
    beta: float
    n_bytes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", finite_number(self.low, "low"))
        object.__setattr__(self, "step", nonnegative(self.step, "step"))
        object.__setattr__(self, "alpha", nonnegative(self.alpha, "alpha"))
        object.__setattr__(self, "beta", finite_number(self.beta, "beta"))

    @classmethod
    def fit(cls, values: Float64Array, cells: Labels, n_cells: int, alpha: float, beta: float) -> "BiasByte":
        """The range of the values of training vectors."""
        low, high = value_range(values)
        return cls(low, (high - low) / 255, alpha, beta)

    def put(self, rows: npt.NDArray[np.uint8], values: Float64Array, cells: Labels) -> npt.NDArray[np.uint8]:
        """The rows of symbols with a bias byte after them."""
        numbers = _numbers(values, self.low, self.step or 1.0, 255)
        return np.concatenate([rows, numbers[:, None]], axis=1)

    @property
    def largest_step(self) -> float:
        """The greatest difference that one of the number makes."""
        return self.step

    def lows(self, cells: Labels | None, n_cells: int) -> Float64Array | float:
        """What a bias of number 0 adds to a score, in each of the cells that a query visits."""
        return self.low

    def fill(self, tables: Tables, units: Float64Array) -> None:
        """The last two nibbles of tables (n, nibbles, 16): 16 step v and step v, in the units of each query."""
        weights = np.round(self.step / units).astype(np.int32)
        tables[:, -2] = weights[:, None] * (16 * _VALUES)
        tables[:, -1] = weights[:, None] * _VALUES

    def cell_steps(self, units: Float64Array, cells: Labels | None, n_cells: int) -> Tables | None:
        """The tables are the same in every cell."""
        return None

    def describe(self) -> str:
        """A few words for a person."""
        return "bias byte"


@dataclass(frozen=True, eq=False)
class BiasNibble(Frozen):
    """The bias in the last nibble of the symbols. Sixteen values have to do, so every cell has a range of its own.

    Attributes
    ----------
    low, step : ndarray of shape (n_cells,)
    alpha, beta : float
        The shares of a code's own error that are added.
    """

    low: Float64Array
    step: Float64Array
    alpha: float
    beta: float
    n_bytes: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for name in ("low", "step"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), name, 1))
        object.__setattr__(self, "alpha", nonnegative(self.alpha, "alpha"))
        object.__setattr__(self, "beta", finite_number(self.beta, "beta"))
        if len(self.low) != len(self.step) or (self.step < 0).any():
            raise InputError("low and step are not of one length, or a step is negative")

    @classmethod
    def fit(cls, values: Float64Array, cells: Labels, n_cells: int, alpha: float, beta: float) -> "BiasNibble":
        """Ranges by the mean and the deviation of the values of each cell's training vectors.

        A vector above the range seems nearer to every query than it is, one below it farther: the former harms more.
        """
        unit = float(np.abs(values).max()) or 1.0  # taken out, so that squares stay in range
        values = np.clip(
            values / unit, *value_range(values / unit, 0.001, 0.5)
        )  # a few far values shall not set ranges
        of_cell = np.bincount(cells, minlength=n_cells)
        centre = np.bincount(cells, values, minlength=n_cells) / np.maximum(of_cell, 1)
        centre[of_cell == 0] = values.mean()
        squares = (values - centre[cells]) ** 2
        # As if ten more vectors had the deviation that all have.
        deviation = np.sqrt((np.bincount(cells, squares, minlength=n_cells) + 10 * squares.mean()) / (of_cell + 10))
        return cls(unit * (centre - 2.25 * deviation), unit * (5 * deviation / 15), alpha, beta)

    def put(self, rows: npt.NDArray[np.uint8], values: Float64Array, cells: Labels) -> npt.NDArray[np.uint8]:
        """The rows of symbols with the bias in their last nibble."""
        step = self.step[cells]
        rows[:, -1] |= _numbers(values, self.low[cells], np.where(step > 0, step, 1.0), 15)
        return rows

    @property
    def largest_step(self) -> float:
        """The greatest difference that one of the number makes."""
        return float(self.step.max())

    def lows(self, cells: Labels | None, n_cells: int) -> Float64Array | float:
        """What a bias of number 0 adds to a score, in each of the cells that a query visits."""
        if n_cells == 1:
            return float(self.low[0])
        return self.low if cells is None else self.low[cells]

    def fill(self, tables: Tables, units: Float64Array) -> None:
        """The table of the last nibble changes with the cell: see `cell_steps`."""

    def cell_steps(self, units: Float64Array, cells: Labels | None, n_cells: int) -> Tables | None:
        """What one of the number adds, in the units of each query, in each of the cells that it visits."""
        step = np.broadcast_to(self.step, (len(units), n_cells)) if cells is None else self.step[cells]
        return np.round(step / units[:, None]).astype(np.int32)

    def describe(self) -> str:
        """A few words for a person."""
        return "bias nibble"


def _numbers(
    values: Float64Array, low: Float64Array | float, step: Float64Array | float, most: int
) -> npt.NDArray[np.uint8]:
    """The number of steps from the low to each value, 0 or `most` where it lies beyond."""
    with np.errstate(over="ignore"):  # far beyond
        return np.clip(np.round((values - low) / step), 0, most).astype(np.uint8)


Bias = BiasByte | BiasNibble
