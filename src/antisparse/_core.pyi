"""
Native kernels of antisparse. Private: the signatures change without notice.
"""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


def isa() -> str:
    """The instruction set in use."""

def use_isa(name: str) -> None:
    """Switch the instruction set in use (for tests)."""

def orthonormal_rows(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Orthonormalise the rows in place; False where they are dependent."""

def project(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], m: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """x @ m, row by row alike."""

def nearest(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], m: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], half: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.int64]:
    """The first column k of m of least half[k] - x @ m[:, k], for every row."""

def refine(correlations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sweeps: int, flips: int, tenure: int, cosine: bool, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], threads: int, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None, turns: int = 0, least_scale: float = 0) -> tuple[Any, Any]:
    """
    Improve code rows in place, scales too; returns c.b and b.G b of every row.
    """

def round_weights(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float) -> tuple[Any, Any]:
    """
    Rows as integers below 2^24 times a power of two each, NaN where a value is not finite.
    """

class FormMaker:
    """Makes queries ready for the scan."""

    def __init__(self, frame: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, half: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, words: bool = False) -> None: ...

    @overload
    def make(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float, probes: int, threads: int) -> tuple[Any, Any, Any, Any, Any, Any]: ...

    @overload
    def make(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float, probes: int, threads: int) -> tuple[Any, Any, Any, Any, Any, Any]:
        """
        Weights, units, totals, squares, nearest points and products with these (native/form.hpp).
        """

class ScanBase:
    """Codes in scan layout with their terms, ready to be searched."""

    def __init__(self, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n: int, bits: int, scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, bias0: float, side: int = 0, positions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, cell_ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, reach_bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, bias_bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, ranges: Sequence[float] = [], nibble: bool = False, words: bool = False) -> None: ...

    def search(self, weights: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], units: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, threads: int, side_weights: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, offsets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, positions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, probes: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> tuple[Any, Any]: ...

    def score(self, weights: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], units: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], side_weights: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]: ...

class Words:
    """A frame of words prepared for finding codes."""

    def __init__(self, frame: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def find(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], factor: float, moves: int, tenure: int, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> tuple[Any, Any]:
        """Write the words of vectors; returns c.x and x.G x of every row."""

class SpreadFrame:
    """A frame prepared for the spread solver."""

    def __init__(self, blocks: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]], rotation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, exponent: int) -> None: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...
