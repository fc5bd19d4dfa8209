"""
Native kernels of antisparse. Private: the signatures change without notice.
"""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


def isa() -> str:
    """The instruction set in use."""

def isas() -> list[str]:
    """The instruction sets that this machine has, best first."""

def use_isa(name: str) -> None:
    """Switch the instruction set in use (for tests)."""

def orthonormal_rows(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Orthonormalise the rows in place; False where they are dependent."""

class SpreadFrame:
    """A frame prepared for the spread solver."""

    def __init__(self, blocks: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]], rotation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, exponent: int) -> None: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...

class Projection:
    """
    A matrix prepared for many products, in float32: rows of any size are scaled to fit it, and back.
    """

    def __init__(self, m: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def project(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
        """x @ m, row by row alike."""

def project(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], m: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """x @ m, row by row alike."""

def nearest(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], m: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], half: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.int64]:
    """The first column k of m of least half[k] - x @ m[:, k], for every row."""

def refine(correlations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sweeps: int, flips: int, tenure: int, cosine: bool, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], threads: int, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None, turns: int = 0, least_scale: float = 0) -> tuple[Any, Any]:
    """
    Improve code rows in place, scales too; returns c.b and b.G b of every row.
    """

def add_moments(bits: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], books: int, y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Add how often codewords were chosen together, those of the first codebook by rows, and the vectors of each.
    """

class Codebooks:
    """Codebooks of 16 codewords each, prepared for finding codes."""

    def __init__(self, frame: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def find(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], factor: float, moves: int, tenure: int, bits: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> tuple[Any, Any]:
        """Write the codewords of vectors; returns c.x and x.G x of every row."""

def round_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float) -> tuple[Any, Any]:
    """
    Rows as integers below 2^24 times a power of two each, NaN where a value is not finite.
    """

def sign_tables(weights: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], nibbles: int) -> NDArray[numpy.int32]:
    """
    Tables (queries, nibbles, 16) of signs, from integer weights: the sum of |W| over the bits that disagree.
    """

class Points:
    """Points among which the nearest are looked for (tables/points.hpp)."""

    def __init__(self, points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], half: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def ordered(self) -> bool:
        """
        Whether they are many, and those that stand beside each other are near each other.
        """

    @overload
    def nearest(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], wanted: int, threads: int) -> tuple[Any, Any]: ...

    @overload
    def nearest(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], wanted: int, threads: int) -> tuple[Any, Any]:
        """
        The points k of least half[k] - x @ points[k] for every row, in this order, and these products: all of the nearest, or, of ordered points, nearly all.
        """

class TableMaker:
    """Makes queries ready for the scan."""

    def __init__(self, blocks: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]], columns_per_nibble: int, nibbles: int, *, shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, points: Points | None = None) -> None: ...

    @overload
    def make(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float, probes: int, threads: int) -> tuple[Any, Any, Any, Any, Any, Any]: ...

    @overload
    def make(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], at_least: float, probes: int, threads: int) -> tuple[Any, Any, Any, Any, Any, Any]:
        """
        Tables, units, peaks, squared norms, nearest points and dot products with these (tables/table_job.hpp).
        """

def pack_ids(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], lowest: int) -> tuple[Any, Any, Any]:
    """
    Ids by place, -1 for none, in blocks of 32: the first of each block, less the lowest, where its bits start, and the bits.
    """

def map_cells(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cell_ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Any, Any]:
    """The cell of each id, as seeds of shards and packed slots."""

class IdList:
    """The ids of a segment, in few bits."""

    def __init__(self, cell_ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: int, lowest: int, highest: int, *, firsts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, wide_firsts: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, words: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, seeds: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, cells: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def at(self, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int64]:
        """The id at each of some places, -1 for none."""

    def all(self) -> NDArray[numpy.int64]:
        """The id at each place, -1 for none."""

    def find(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int64]:
        """The place of each of some ids, -1 where it is not there."""

class QueryTables:
    """Queries as tables of 16 integers for each nibble of a code."""

    def __init__(self, tables: Annotated[NDArray[numpy.int32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], units: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, probes: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, cell_steps: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class CodeColumns:
    """Codes as rows of nibbles, with ids, cells and at most one column."""

    def __init__(self, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n: int, *, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, id_list: IdList | None = None, cell_ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, scales: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, inverse_scales: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, inverse_scale_low: float = 0.0, inverse_scale_step: float = 0.0) -> None: ...

    def search(self, queries: QueryTables, k: int, threads: int, live: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> tuple[Any, Any]:
        """
        Scores and ids of the k best codes of each query. `live`, a bit a place, says which codes may be found.
        """

    def score(self, queries: QueryTables, places: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Scores of the codes at given places, infinity where a place is negative.
        """
