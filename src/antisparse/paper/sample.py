"""What was measured, over seeds and queries, and what may be concluded from it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array

Ranks = dict[tuple[str, str], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"

    def above(self, margin: float = 0.0) -> str:
        """Whether the mean exceeds `margin`: by two standard errors, or not."""
        if self.mean - 2 * self.error > margin:
            return "holds"
        return "does not hold" if self.mean + 2 * self.error < margin else "undecided"

    def within(self, margin: float) -> str:
        """Whether the mean is within `margin` of zero, two standard errors included."""
        if abs(self.mean) + 2 * self.error < margin:
            return "holds"
        return "does not hold" if abs(self.mean) - 2 * self.error > margin else "undecided"


def worst(verdicts: Iterable[str]) -> str:
    """The verdict on several parts together."""
    parts = set(verdicts)
    return next(verdict for verdict in ("does not hold", "undecided", "holds") if verdict in parts)


def estimate(values: Float64Array) -> Estimate:
    """Mean of values (seeds, queries), with the error from the choice of seeds and that from the choice of queries.

    Queries may be the same for every seed, so both count, and are added as independent: too wide where they are not.
    """
    variance = 0.0
    for axis in (0, 1):
        means = values.mean(axis=1 - axis)
        if len(means) > 1:
            variance += float(means.var(ddof=1)) / len(means)
    return Estimate(float(values.mean()), variance**0.5)


class Sample:
    """Ranks of the true nearest neighbour by curve: one row a seed, one column a query."""

    def __init__(self, rows: Iterable[Ranks]) -> None:
        rows = list(rows)
        self.ranks = {curve: np.array([row[curve] for row in rows]) for curve in rows[0]}

    def queries(self, which: slice) -> "Sample":
        """The same on some of the queries."""
        seeds = len(next(iter(self.ranks.values())))
        return Sample({curve: ranks[s, which] for curve, ranks in self.ranks.items()} for s in range(seeds))

    def hits(self, curve: tuple[str, str], R: int) -> Float64Array:
        """1 where the true neighbour is among the first R, else 0 (seeds, queries)."""
        return (self.ranks[curve] < R).astype(np.float64)

    def recall(self, curve: tuple[str, str], R: int) -> Estimate:
        """recall@R."""
        return estimate(self.hits(curve, R))

    def gain(self, curve: tuple[str, str], other: tuple[str, str], R: int) -> Estimate:
        """How much recall@R of `curve` exceeds that of `other`, on the same seeds and queries."""
        return estimate(self.hits(curve, R) - self.hits(other, R))

    def by_seed(self, curve: tuple[str, str], R: int) -> list[float]:
        """recall@R of every seed."""
        return [float(value) for value in self.hits(curve, R).mean(axis=1)]
