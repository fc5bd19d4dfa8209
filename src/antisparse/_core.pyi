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

class SpreadFrame:
    """A frame prepared for the spread solver."""

    def __init__(self, blocks: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]], rotation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, exponent: int) -> None: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...

    @overload
    def solve(self, vectors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], h: float, relative: bool, max_steps: int, threads: int, want_bits: bool) -> tuple[Any, ...]: ...
