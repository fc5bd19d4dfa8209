"""Packed bits: order, padding, Hamming distance, and the layout that the scan reads.

A code row is uint8, ceil(m / 8) bytes of bits first, most significant bit first as `numpy.packbits`; padding bits are
zero and never count. Side bytes, if an encoder has any, follow (see `CodeLayout`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import integer, real_array, thread_count
from antisparse._core import CodeColumns, QueryTables, sign_tables
from antisparse.errors import InputError, InputTypeError

Codes = npt.NDArray[np.uint8]

BLOCK = 32  # codes a block of the scan layout
_PAIR_BYTES = 16 << 20  # of temporaries that `hamming` holds at a time


@dataclass(frozen=True)
class CodeLayout:
    """What the bytes of a code row are.

    Attributes
    ----------
    n_bits : int
        Bits of the code, in the first `bit_bytes` bytes.
    side : tuple of (name, bytes)
        The side bytes that follow, in order. A part of 0 bytes is a number below 16 in the low half of the last byte of
        bits, which the bits leave free.
    """

    n_bits: int
    side: tuple[tuple[str, int], ...] = ()

    @property
    def bit_bytes(self) -> int:
        """Bytes that hold the bits."""
        return -(-self.n_bits // 8)

    @property
    def code_size(self) -> int:
        """Bytes of a whole row."""
        return self.bit_bytes + sum(size for _, size in self.side)

    @property
    def nibble(self) -> bool:
        """Whether the low half of the last byte of bits is a number."""
        return any(size == 0 for _, size in self.side)

    def bits(self, rows: Codes) -> Codes:
        """The bytes of bits alone, of whole code rows."""
        bits = rows[:, : self.bit_bytes]
        if self.nibble:
            bits = bits.copy()
            bits[:, -1] &= 256 - (1 << self.padding)
        return bits

    @property
    def padding(self) -> int:
        """Bits of the last byte of bits that are none."""
        return 8 * self.bit_bytes - self.n_bits

    @property
    def taken(self) -> int:
        """How many of these a side part takes; the others are zero."""
        return 4 if self.nibble else 0

    def place(self, name: str) -> tuple[int, int]:
        """Where a side part starts, and its bytes."""
        start = self.bit_bytes
        for part, size in self.side:
            if part == name:
                return start, size
            start += size
        raise KeyError(name)

    def rows(self, codes: Any, name: str) -> Codes:
        """Whole code rows, bits and side bytes, checked."""
        rows = _byte_rows(codes, name)
        if rows.shape[1] != self.code_size:
            side = f", {self.code_size - self.bit_bytes} of them beside the bits" if self.side else ""
            raise InputError(f"{name} has {rows.shape[1]} bytes a row; the encoder's have {self.code_size}{side}")
        code_rows(rows, self.n_bits, name, self.taken)
        return rows


def pack(signs: Any) -> Codes:
    """Bits or signs (n, m) as code rows (n, ceil(m / 8)): 1 where positive (or True), 0 elsewhere."""
    array = real_array(signs, "signs", 2)
    if array.shape[1] == 0:
        raise InputError(f"signs has shape {array.shape}; a code has at least one bit")
    return np.packbits(array > 0, axis=1)


def unpack(codes: Any, n_bits: int) -> npt.NDArray[np.int8]:
    """Code rows as signs (n, n_bits) of -1 and +1."""
    n_bits = integer(n_bits, "n_bits", 1)
    codes = code_rows(codes, n_bits)
    bits: npt.NDArray[np.int8] = np.unpackbits(codes, axis=1, count=n_bits).view(np.int8)
    return bits * np.int8(2) - np.int8(1)


def hamming(codes: Any, others: Any) -> npt.NDArray[np.int32]:
    """The Hamming distance of every row of `codes` to every row of `others`: (n, n')."""
    a, b = _byte_rows(codes, "codes"), _byte_rows(others, "others")
    if a.shape[1] != b.shape[1]:
        raise InputError(f"codes has {a.shape[1]} bytes a row, others {b.shape[1]}; they must be alike")
    distances = np.empty((len(a), len(b)), np.int32)
    step = max(1, _PAIR_BYTES // max(1, b.size))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        distances[rows] = np.bitwise_count(a[rows, None] ^ b).sum(2, dtype=np.int32)
    return distances


def hamming_search(
    codes: Any, queries: Any, k: int, *, n_threads: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The k rows of `codes` nearest to each row of `queries`: distances and row numbers, both (n_queries, k).

    Ordered by distance, then by row number. Where there are fewer than k rows, the number is -1 and the distance the
    largest integer.
    """
    a, b = _byte_rows(codes, "codes"), _byte_rows(queries, "queries")
    if a.shape[1] != b.shape[1]:
        raise InputError(f"codes has {a.shape[1]} bytes a row, queries {b.shape[1]}; they must be alike")
    k = integer(k, "k", 1)
    weights = np.unpackbits(b, axis=1).astype(np.int32) * 2 - 1
    queries = QueryTables(sign_tables(weights, 2 * a.shape[1]), np.ones(len(b)), np.zeros((len(b), 1)))
    scores, ids = CodeColumns(scan_blocks(a), len(a)).search(queries, k, thread_count(n_threads))
    return hamming_distances(scores), ids


def hamming_distances(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """The scan's scores as integers; infinity becomes the largest."""
    largest = np.iinfo(np.int32).max
    return np.where(np.isfinite(scores), scores, largest).astype(np.int32)


_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"), axis=1)[:, 0]


def to_lsb_first(codes: Any) -> Codes:
    """Code rows with the bits of every byte in the other order, as FAISS and Milvus keep them."""
    reversed_rows: Codes = _REVERSED[_byte_rows(codes, "codes")]
    return reversed_rows


def from_lsb_first(codes: Any) -> Codes:
    """The inverse of `to_lsb_first`, which is its own inverse."""
    return to_lsb_first(codes)


def scan_blocks(codes: Codes) -> Codes:
    """Code rows (n, bytes) in scan layout (ceil(n / 32), bytes, 32): byte j of 32 codes is contiguous."""
    n, size = codes.shape
    count = -(-n // BLOCK)
    blocks = np.zeros((count, size, BLOCK), np.uint8)
    whole = n // BLOCK
    blocks[:whole] = codes[: whole * BLOCK].reshape(whole, BLOCK, size).transpose(0, 2, 1)
    if whole < count:
        blocks[whole, :, : n - whole * BLOCK] = codes[whole * BLOCK :].T
    return blocks


def cell_blocks(
    rows: Codes, cells: npt.NDArray[Any], n_cells: int
) -> tuple[Codes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Code rows in scan layout, cell by cell, each in whole blocks and in the order of rows.

    Returns
    -------
    blocks : ndarray of shape (n_blocks, bytes, 32), uint8
    positions : ndarray of shape (32 n_blocks,), int64
        The row at each place; -1 for padding.
    cell_ends : ndarray of shape (n_cells,), int64
        The block after the last of each cell.
    """
    counts = np.bincount(cells, minlength=n_cells)
    lengths = -(-counts // BLOCK)
    cell_ends = np.cumsum(lengths, dtype=np.int64)
    order = np.argsort(cells, kind="stable")
    sorted_cells = np.asarray(cells)[order]
    within = np.arange(len(order)) - (np.cumsum(counts) - counts)[sorted_cells]
    positions = np.full(BLOCK * int(cell_ends[-1]), -1, np.int64)
    positions[BLOCK * (cell_ends - lengths)[sorted_cells] + within] = order
    padded = np.zeros((len(positions), rows.shape[1]), np.uint8)
    held = positions >= 0
    padded[held] = rows[positions[held]]
    return scan_blocks(padded), positions, cell_ends


def scan_rows(blocks: Codes, n: int) -> Codes:
    """The inverse of `scan_blocks`: the first n rows."""
    rows: Codes = blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]
    return rows


def code_rows(codes: Any, n_bits: int, name: str = "codes", taken: int = 0) -> Codes:
    """The bit bytes of code rows, checked; padding bits, but for the last `taken`, must be zero."""
    array = _byte_rows(codes, name)
    size = -(-n_bits // 8)
    if array.shape[1] < size:
        raise InputError(f"{name} has {array.shape[1]} bytes a row, but {n_bits} bits take {size}")
    array = array[:, :size]
    padding = (1 << 8 * size - n_bits) - (1 << taken)
    if padding and (array[:, -1] & padding).any():
        raise InputError(
            f"{name} has padding bits set after the {n_bits} bits; they must be zero (are the bytes LSB first? "
            "then convert them with from_lsb_first)"
        )
    return array


def _byte_rows(value: Any, name: str) -> Codes:
    array = np.asarray(value)
    if array.dtype != np.uint8:
        raise InputTypeError(f"{name} has dtype {array.dtype}; code rows are uint8")
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{name} has shape {array.shape}; code rows are 2-dimensional with at least one byte")
    return array
