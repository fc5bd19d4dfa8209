"""Scalar levels: a nibble is one of 16 levels of one coordinate, or one of 4 levels of each of two (docs/codec.md)."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, frozen_array
from antisparse._core import project
from antisparse.codec.frozen import Frozen
from antisparse.codec.reduction import principal_axes
from antisparse.codec.symbols import NO_SIGNS, Found, QueryKind
from antisparse.codes import Codes
from antisparse.codewords import one_hot
from antisparse.errors import InputError, UnsupportedError

_FINE, _COARSE = 16, 4  # levels of a coordinate that has a nibble to itself, and of one that shares it
# What is left of a Gaussian coordinate's variance by so many of the best levels (Max, 1960).
_LEFT = {_COARSE: 0.1175, _FINE: 0.009497}
_ROUNDS = 100  # of Lloyd's algorithm, at most
_SAMPLE = 20_000  # training vectors that levels are fitted to, at most


@dataclass(frozen=True, eq=False)
class Levels(Frozen):
    """Coordinates along orthonormal axes, each rounded to the nearest of its levels.

    Attributes
    ----------
    axes : ndarray of shape (coordinates, r)
        Orthonormal rows: first those of 16 levels, a nibble each, then those of 4, two to a nibble.
    fine : ndarray of shape (coordinates of 16 levels, 16) or None
        The levels of the former, ascending.
    coarse : ndarray of shape (coordinates of 4 levels, 4) or None
        Those of the latter.
    """

    axes: Float64Array
    fine: Float64Array | None
    coarse: Float64Array | None
    columns_per_nibble: ClassVar[int] = 16
    measured: ClassVar[bool] = True
    compares: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", frozen_array(self.axes, "axes", 2))
        for name, count in (("fine", _FINE), ("coarse", _COARSE)):
            if getattr(self, name) is None:
                continue
            levels = frozen_array(getattr(self, name), name, 2)
            if levels.shape[1] != count or (np.diff(levels) < 0).any():
                raise InputError(f"{name} must be {count} ascending numbers for every coordinate")
            object.__setattr__(self, name, levels)
        if len(self.axes) != self._n_fine + self._n_coarse or self._n_coarse % 2:
            raise InputError("axes must be as many as coordinates have levels, and those of 4 levels come in pairs")
        if np.abs(self.axes @ self.axes.T - np.eye(len(self.axes))).max() > 1e-9:
            raise InputError("axes are not orthonormal")

    @classmethod
    def fit(cls, Y: Float64Array, nibbles: int, random: np.random.RandomState) -> "Levels":
        """Principal axes, as many levels for each as lower the error most, and the best levels by Lloyd's algorithm."""
        if nibbles > Y.shape[1]:
            raise InputError(
                f"{nibbles} nibbles for {Y.shape[1]} coordinates: levels take four bits a dimension at most; give "
                "fewer bytes, or use codebooks"
            )
        sample = Y if len(Y) <= _SAMPLE else Y[random.choice(len(Y), _SAMPLE, replace=False)]
        axes = principal_axes(sample, min(Y.shape[1], 2 * nibbles))
        values = sample @ axes.T
        variance = (values * values).mean(axis=0)
        # Half a nibble at a time goes where it gains most: four levels for an axis that has none, then sixteen.
        first, second = variance * (1 - _LEFT[_COARSE]), variance * (_LEFT[_COARSE] - _LEFT[_FINE])
        chosen = np.argsort(-np.concatenate([first, second]), kind="stable")[: 2 * nibbles]
        fine = np.sort(chosen[chosen >= len(axes)] - len(axes))
        coarse = np.setdiff1d(chosen[chosen < len(axes)], fine)
        levels = [
            np.array([lloyd(values[:, j], count) for j in kept]) if len(kept) else None
            for kept, count in ((fine, _FINE), (coarse, _COARSE))
        ]
        return cls(axes[np.concatenate([fine, coarse])], *levels)

    @property
    def _n_fine(self) -> int:
        return 0 if self.fine is None else len(self.fine)

    @property
    def _n_coarse(self) -> int:
        return 0 if self.coarse is None else len(self.coarse)

    @property
    def dimension(self) -> int:
        """Of the reduced vectors that they code."""
        return int(self.axes.shape[1])

    @property
    def n_bits(self) -> int:
        """Four bits or two a coordinate."""
        return 4 * self._n_fine + 2 * self._n_coarse

    @property
    def _levels(self) -> list[Float64Array]:
        """The levels of every coordinate."""
        return [*([] if self.fine is None else self.fine), *([] if self.coarse is None else self.coarse)]

    @property
    def blocks(self) -> tuple[Float64Array, ...]:
        """The matrix alone."""
        return (self.matrix,)

    @cached_property
    def matrix(self) -> Float64Array:
        """For every nibble the 16 vectors that its values stand for."""
        levels, n = self._levels, self._n_fine
        columns = [np.outer(axis, own) for axis, own in zip(self.axes[:n], levels[:n], strict=True)]
        for j in range(n, len(self.axes), 2):
            high, low = np.repeat(levels[j], _COARSE), np.tile(levels[j + 1], _COARSE)
            columns.append(np.outer(self.axes[j], high) + np.outer(self.axes[j + 1], low))
        matrix: Float64Array = np.concatenate(columns, axis=1)
        matrix.flags.writeable = False
        return matrix

    def find(self, Y: Float64Array, threads: int, scaled: bool) -> Found:
        """The nearest level of every coordinate: as the axes are orthonormal, the nearest of all codes."""
        values = project(np.ascontiguousarray(Y), np.ascontiguousarray(self.axes.T), threads)
        numbers, rebuilt = np.empty(values.shape, np.uint8), np.empty(values.shape)
        for j, levels in enumerate(self._levels):
            numbers[:, j] = np.searchsorted((levels[1:] + levels[:-1]) / 2, values[:, j])
            rebuilt[:, j] = levels[numbers[:, j]]
        pairs = numbers[:, self._n_fine :].reshape(len(Y), self._n_coarse // 2, 2)
        nibbles = np.concatenate([numbers[:, : self._n_fine], _COARSE * pairs[:, :, 0] + pairs[:, :, 1]], axis=1)
        nibbles = np.pad(nibbles, ((0, 0), (0, nibbles.shape[1] % 2)))
        symbols = (nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8)
        with np.errstate(over="ignore"):  # of a vector beyond all bounds
            return Found(symbols, (values * rebuilt).sum(axis=1), (rebuilt * rebuilt).sum(axis=1))

    def expand(self, symbols: Codes) -> npt.NDArray[np.float32]:
        """1 at the columns chosen, 0 elsewhere."""
        return one_hot(symbols, self.n_bits // 4)

    def weights(self, Y: Float64Array, query: QueryKind, threads: int) -> Float64Array:
        """There are none."""
        raise UnsupportedError(NO_SIGNS)

    def describe(self) -> str:
        """A few words for a person."""
        parts = [f"{self._n_fine} coordinates of 16 levels"] * (self._n_fine > 0)
        return ", ".join(parts + [f"{self._n_coarse} coordinates of 4 levels"] * (self._n_coarse > 0))


def lloyd(values: Float64Array, count: int) -> Float64Array:
    """The levels that leave the least squared error: each the mean of the values nearest to it."""
    levels = np.quantile(values, (np.arange(count) + 0.5) / count)
    ordered = np.sort(values)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    for _ in range(_ROUNDS):
        ends = np.concatenate([[0], np.searchsorted(ordered, (levels[1:] + levels[:-1]) / 2), [len(ordered)]])
        sizes = np.diff(ends)
        moved = np.where(sizes > 0, np.diff(sums[ends]) / np.maximum(sizes, 1), levels)
        if np.array_equal(moved, levels):
            break
        levels = moved
    ordered_levels: Float64Array = np.maximum.accumulate(levels)  # but for rounding, where values are few
    return ordered_levels
