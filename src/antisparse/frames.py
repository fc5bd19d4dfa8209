"""The matrix A: d x m frames whose columns the bits stand for (section 3.3 of the paper)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from antisparse._arrays import Float64Array, finite, frozen_array, integer, real_array
from antisparse._core import orthonormal_rows, project
from antisparse.errors import InputError, InputTypeError

_MOST_ENTRIES = 2**31  # of a frame: 16 GB

Seed = int | np.random.Generator | np.random.SeedSequence | None


@dataclass(frozen=True, eq=False)
class BlockFrame:
    """A frame made of diagonal blocks behind a rotation: ``A = rotation @ block_diag(*blocks)``.

    The spread representation of such a frame is found block by block, exactly, at a cost linear in d for blocks of a
    fixed size, where a dense frame's grows as its cube.

    Parameters
    ----------
    blocks : sequence of ndarray of shape (d_k, m_k)
    rotation : ndarray of shape (d, d) or None
        Orthogonal; None stands for the identity. ``d`` is the sum of the ``d_k``.
    """

    blocks: tuple[Float64Array, ...]
    rotation: Float64Array | None = None

    def __post_init__(self) -> None:
        if isinstance(self.blocks, np.ndarray) or not hasattr(self.blocks, "__iter__"):
            raise InputTypeError("blocks must be a sequence of matrices; a dense frame is a plain array")
        blocks = tuple(frozen_array(block, f"blocks[{k}]", 2) for k, block in enumerate(self.blocks))
        if not blocks:
            raise InputError("blocks is empty; pass at least one matrix")
        object.__setattr__(self, "blocks", blocks)
        if self.rotation is None:
            return
        rotation = frozen_array(self.rotation, "rotation", 2)
        d = self.shape[0]
        if rotation.shape != (d, d):
            raise InputError(f"rotation has shape {rotation.shape}; the blocks have {d} rows, so it must be {(d, d)}")
        error = float(np.abs(rotation.T @ rotation - np.eye(d)).max())
        if error > 1e-10:
            raise InputError(f"rotation is not orthogonal: |R'R - I| reaches {error:.1e}; orthonormalise it first")
        object.__setattr__(self, "rotation", rotation)

    @property
    def shape(self) -> tuple[int, int]:
        """(d, m)."""
        return sum(b.shape[0] for b in self.blocks), sum(b.shape[1] for b in self.blocks)

    @cached_property
    def matrix(self) -> Float64Array:
        """The frame as one d x m matrix."""
        from scipy.linalg import block_diag

        matrix: Float64Array = block_diag(*self.blocks)
        if self.rotation is not None:
            matrix = project(self.rotation, matrix, 1)  # not by BLAS, whose sums differ from one CPU to the next
        matrix.flags.writeable = False
        return matrix


Frame = Float64Array | BlockFrame


def frame_matrix(A: Any, name: str = "A") -> Float64Array:
    """The d x m matrix of a frame, structured or plain, checked."""
    if isinstance(A, BlockFrame):
        return A.matrix
    array = np.ascontiguousarray(real_array(A, name, 2), dtype=np.float64)
    if 0 in array.shape:
        raise InputError(f"{name} has shape {array.shape}; a frame needs at least one row and one column")
    finite(array, name)
    return array


def gram_matrix(A: Float64Array, threads: int = 1) -> Float64Array:
    """``A.T @ A``, the same bits on every machine and for any number of threads; a BLAS has others for each CPU."""
    gram: Float64Array = project(np.ascontiguousarray(A.T), np.ascontiguousarray(A), threads)
    return gram


def gaussian_frame(d: int, m: int, seed: Seed = None) -> Float64Array:
    """Independent normal entries of variance 1/m: the random projections of classic LSH.

    The variance makes A Aᵀ the identity on average, so that an absolute h means the same as for a tight frame.

    Returns
    -------
    A : ndarray of shape (d, m), float64
    """
    d, m = _sizes(d, m)
    A: Float64Array = _generator(seed).standard_normal((d, m)) / np.sqrt(m)
    return A


def tight_frame(d: int, m: int, seed: Seed = None) -> Float64Array:
    """As many rows of a random orthogonal m x m matrix, so that A Aᵀ = I: the paper's choice.

    Drawn as d normal vectors made orthonormal, which has the law of the first d rows of Q in the QR factorisation of
    an m x m normal matrix. The same seed gives the same bits on every machine with the same numpy version.

    Returns
    -------
    A : ndarray of shape (d, m), float64
    """
    d, m = _sizes(d, m)
    _require_columns("a tight frame", d, m)
    return _orthonormal(d, m, _generator(seed))


def block_frame(d: int, m: int, block_size: int, seed: Seed = None) -> BlockFrame:
    """Tight frames of about `block_size` dimensions along the diagonal, behind a random rotation.

    d and m are shared among ``ceil(d / block_size)`` blocks as evenly as they go.
    """
    d, m = _sizes(d, m)
    block_size = integer(block_size, "block_size", 1)
    _require_columns("a block frame", d, m)
    generator = _generator(seed)
    count = -(-d // block_size)
    sizes = zip(_shares(d, count), _shares(m, count), strict=True)
    blocks = tuple(_orthonormal(d_k, m_k, generator) for d_k, m_k in sizes)
    # A single tight frame is already rotated at random.
    return BlockFrame(blocks, _orthonormal(d, d, generator) if count > 1 else None)


def _sizes(d: int, m: int) -> tuple[int, int]:
    d, m = integer(d, "d", 1), integer(m, "m", 1)
    if d * m >= _MOST_ENTRIES:
        raise InputError(f"d = {d} and m = {m}; a frame has fewer than {_MOST_ENTRIES} entries")
    return d, m


def _require_columns(what: str, d: int, m: int) -> None:
    if m < d:
        raise InputError(f"{what} needs m >= d, but m = {m} and d = {d}; reduce the vectors to m dimensions first")


def _shares(total: int, count: int) -> list[int]:
    """`total` in `count` parts that differ by at most one, the larger first."""
    return [total // count + (k < total % count) for k in range(count)]


def _orthonormal(d: int, m: int, generator: np.random.Generator) -> Float64Array:
    rows = generator.standard_normal((d, m))
    while not orthonormal_rows(rows):  # dependent rows: has probability zero
        rows = generator.standard_normal((d, m))
    return rows


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None and not isinstance(seed, np.random.SeedSequence):
        seed = integer(seed, "seed", 0, below=2**128)
    return np.random.default_rng(seed)
