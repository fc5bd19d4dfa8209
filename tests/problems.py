"""Random spread problems, ordinary and awkward, each drawn from its number alone."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antisparse import block_frame, gaussian_frame, tight_frame

KINDS = (
    "gaussian",
    "tight",
    "block",
    "rows scaled",
    "columns scaled",
    "both scaled",
    "duplicate columns",
    "zero columns",
    "opposite columns",
    "integer",
    "hadamard",
    "axis",
    "scaled vector",
)
GENERAL = frozenset({"gaussian", "tight", "scaled vector"})  # general position, well scaled: x is unique and stable


@dataclass(frozen=True)
class Problem:
    kind: str
    A: npt.NDArray[np.float64]
    frame: object  # A, or the BlockFrame whose matrix it is
    y: npt.NDArray[np.float64]
    h: float

    @property
    def h1(self) -> float:
        return float(np.abs(self.A.T @ self.y).sum())


def problem(number: int, max_d: int = 64, max_m: int = 192) -> Problem:
    rng = np.random.default_rng([7, number])
    kind = KINDS[number % len(KINDS)]
    d = int(rng.integers(1, max_d + 1))
    m = int(rng.integers(1, max_m + 1)) if rng.random() < 0.3 else int(rng.integers(d, max_m + 1))
    if kind in ("tight", "block") and m < d:
        d, m = m, d
    A = gaussian_frame(d, m, rng)
    frame: object = None
    y = rng.standard_normal(d)
    if kind == "tight":
        A = tight_frame(d, m, rng)
    elif kind == "block":
        frame = block_frame(d, m, int(rng.integers(1, d + 1)), rng)
        A = frame.matrix
    elif kind in ("rows scaled", "columns scaled", "both scaled"):
        if kind != "columns scaled":
            A = A * 10.0 ** rng.uniform(-3, 3, (d, 1))
        if kind != "rows scaled":
            A = A * 10.0 ** rng.uniform(-3, 3, (1, m))
        if rng.random() < 0.5:  # a vector the frame can reach with moderate x
            y = A @ rng.standard_normal(m)
    elif kind in ("duplicate columns", "zero columns", "opposite columns"):
        # Beside d independent columns, so that the rank stays full.
        m = max(m, d + 1)
        A = gaussian_frame(d, m, rng)
        for j in rng.choice(np.arange(d, m), size=int(rng.integers(1, m - d + 1)), replace=False):
            A[:, j] = {"duplicate columns": 1, "zero columns": 0, "opposite columns": -1}[kind] * A[:, rng.integers(d)]
    elif kind == "integer":  # small integers: ties everywhere
        m = max(m, d)
        A = rng.integers(-1, 2, (d, m)).astype(float)
        A[:, rng.permutation(m)[:d]] = np.eye(d)
        y = rng.integers(-3, 4, d).astype(float)
    elif kind == "hadamard":
        n = 1 << int(rng.integers(0, 7))
        d = int(rng.integers(1, min(n, max_d) + 1))
        H = np.ones((1, 1))
        while len(H) < n:
            H = np.block([[H, H], [H, -H]])
        A = H[rng.permutation(n)[:d]] / np.sqrt(n)
        y = rng.integers(-2, 3, d).astype(float)
    elif kind == "axis":  # a multiple of one column
        y = float(rng.integers(1, 4)) * A[:, rng.integers(m)]
    elif kind == "scaled vector":
        y = y * 10.0 ** rng.uniform(-30, 30)
    if number % 101 == 0:
        y = np.zeros_like(y)
    h1 = float(np.abs(A.T @ y).sum())
    fraction = 1.5 if number % 53 == 0 else 0.9 * 10.0 ** -rng.uniform(0, 6)
    return Problem(kind, A, A if frame is None else frame, y, fraction * h1)
