"""Signs that rebuild a vector well: annealing and single-bit flips (docs/refine.md)."""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, choice, float64_array, integer, thread_count, vectors
from antisparse._core import project
from antisparse._core import refine as refine_rows
from antisparse.codes import Codes, code_rows
from antisparse.errors import InputError
from antisparse.frames import BlockFrame, Frame, frame_matrix, gram_matrix

Objective = Literal["euclidean", "cosine"]

LEAST_SCALE = 1 / 64  # of a vector, where the mean is about 1: of those that equal their mean, say
TENURE = 5  # flips for which a flipped bit stays: 2 walks in circles, 10 keeps too many from moving


def refine(
    Y: Any,
    A: Frame,
    codes: Any,
    *,
    flips: int = 1000,
    tenure: int = 0,
    objective: Objective = "euclidean",
    n_threads: int | None = None,
) -> Codes:
    """Codes improved by flipping the best bit, time and again.

    Parameters
    ----------
    Y : array of shape (n, d)
    A : array of shape (d, m) or BlockFrame
    codes : ndarray of shape (n, ceil(m / 8)), uint8
        Where to start.
    flips : int
        At most so many a vector.
    tenure : int
        0 flips as long as that gains (greedy). Otherwise flips go on, even where they lose, a bit flipped stays so for
        `tenure` flips, and the best code met is returned (tabu).
    objective : {"euclidean", "cosine"}
        Make ``||y - A b||`` small, or the cosine of y and A b large.
    n_threads : int, optional
        All available CPUs by default.
    """
    solver = Refiner(A, thread_count(n_threads))
    Y = vectors(float64_array(Y, "Y", 2), "Y", solver.d)
    rows = np.array(code_rows(codes, solver.m), order="C")
    if len(rows) != len(Y):
        raise InputError(f"codes has {len(rows)} rows but Y has {len(Y)}")
    objective = choice(objective, "objective", get_args(Objective))
    flips, tenure = integer(flips, "flips", 0, 2**24), integer(tenure, "tenure", 0, 2**23)
    solver.run(solver.correlations(Y, thread_count(n_threads)), rows, 0, flips, tenure, objective, n_threads)
    return rows


def anneal(
    Y: Any, A: Frame, *, sweeps: int = 40, flips: int = 0, tenure: int = TENURE, n_threads: int | None = None
) -> Codes:
    """Codes b that make ``||y - A b||`` small, from scratch.

    Solves the spread problem in its constrained form, ``min ||A x - y||^2`` with ``|x_i| <= 1``, by coordinate descent
    whose diagonal term turns from convex to concave, so that every component ends at a corner; then flips as `refine`.
    The frame's scale sets the bound: a learned one has it right.

    Parameters
    ----------
    Y : array of shape (n, d)
    A : array of shape (d, m) or BlockFrame
    sweeps : int
    flips, tenure : int
        As for `refine`.
    n_threads : int, optional
        All available CPUs by default.
    """
    solver = Refiner(A, thread_count(n_threads))
    Y = vectors(float64_array(Y, "Y", 2), "Y", solver.d)
    sweeps, flips = integer(sweeps, "sweeps", 1), integer(flips, "flips", 0, 2**24)
    tenure = integer(tenure, "tenure", 0, 2**23)
    rows = np.zeros((len(Y), -(-solver.m // 8)), np.uint8)
    solver.run(solver.correlations(Y, thread_count(n_threads)), rows, sweeps, flips, tenure, "euclidean", n_threads)
    return rows


class Refiner:
    """A frame prepared: its Gram matrix, by blocks where it has them."""

    def __init__(self, A: Frame, threads: int = 1) -> None:
        matrix = frame_matrix(A)
        self.d, self.m = matrix.shape
        self._matrix = np.ascontiguousarray(matrix)
        gram = gram_matrix(matrix, threads)
        self._ends = np.array([self.m], np.int64)
        if isinstance(A, BlockFrame):
            self._ends = np.cumsum([block.shape[1] for block in A.blocks], dtype=np.int64)
            keep = np.searchsorted(self._ends, np.arange(self.m), side="right")
            gram = np.where(keep[:, None] == keep, gram, 0.0)
        # The scale is taken out, so that float32 has room: c and G are divided by the largest of the diagonal.
        self._unit = float(np.diagonal(gram).max()) or 1.0
        self._gram = np.ascontiguousarray(gram / self._unit, np.float32)
        # A column of zeros stands for nothing: any diagonal will do, but not zero. What it adds to b.G b is taken off.
        empty = np.diagonal(self._gram) == 0
        self._gram[np.diag_indices(self.m)] += empty
        self._empty = int(empty.sum())

    def correlations(self, Y: Float64Array, threads: int) -> npt.NDArray[np.float32]:
        """A'y of every vector, over the unit of the Gram matrix."""
        projected: Float64Array = project(np.ascontiguousarray(Y), self._matrix, threads)
        with np.errstate(over="ignore"):
            scaled = projected / self._unit
        # Beyond this a component's sign is settled whatever the others do, and float32 would overflow.
        return np.clip(scaled, -1e18, 1e18).astype(np.float32)

    def run(
        self,
        correlations: npt.NDArray[np.float32],
        rows: Codes,
        sweeps: int,
        flips: int,
        tenure: int,
        objective: Objective,
        n_threads: int | None,
        scales: npt.NDArray[np.float32] | None = None,
        turns: int = 0,
    ) -> tuple[Float64Array, Float64Array]:
        """Improve code rows in place; with sweeps, find them from scratch.

        With scales (a first one each), s A b shall rebuild the vector: codes for a scale, the best scale for them, and
        again, `turns` times. Returns ``c.b = y.A b`` and ``b.G b = ||A b||^2`` of every row found.
        """
        dots, squares = refine_rows(
            correlations,
            self._gram,
            self._ends,
            sweeps,
            flips,
            tenure,
            objective == "cosine",
            rows,
            thread_count(n_threads),
            scales,
            turns,
            LEAST_SCALE,
        )
        true_squares = (squares.astype(np.float64) - self._empty) * self._unit
        return dots.astype(np.float64) * self._unit, np.maximum(true_squares, 0)
