"""Packed bits and nibbles: order, padding, Hamming distance, and the blocks that the scan reads.

A row of bits is uint8, ceil(m / 8) bytes, the most significant bit first as in `numpy.packbits`; padding bits are zero
and never count. A nibble is half a byte, the high half first.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import columns_of_answers, integer, plain_array, real_array, thread_count
from antisparse._core import CodeColumns, QueryTables, sign_tables
from antisparse.errors import InputError, InputTypeError

Codes = npt.NDArray[np.uint8]

_QUERIES = 2048  # whose tables are held at a time
BLOCK = 32  # codes a block of the scan layout
_PAIR_BYTES = 16 << 20  # of temporaries that `hamming` holds at a time


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
    a, b = byte_rows(codes, "codes"), byte_rows(others, "others")
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
    largest integer; k beyond both their number and 1,024 counts as the larger of these.
    """
    a, b = byte_rows(codes, "codes"), byte_rows(queries, "queries")
    if a.shape[1] != b.shape[1]:
        raise InputError(f"codes has {a.shape[1]} bytes a row, queries {b.shape[1]}; they must be alike")
    k = columns_of_answers(integer(k, "k", 1), len(a))
    threads, columns = thread_count(n_threads), CodeColumns(scan_blocks(a), len(a))
    distances, ids = np.empty((len(b), k), np.int32), np.empty((len(b), k), np.int64)
    for start in range(0, len(b), _QUERIES):
        part = slice(start, start + _QUERIES)
        weights = np.unpackbits(b[part], axis=1).astype(np.int32) * 2 - 1
        count = len(weights)
        tables = QueryTables(sign_tables(weights, 2 * a.shape[1]), np.ones(count), np.zeros((count, 1)))
        scores, ids[part] = columns.search(tables, k, threads)
        distances[part] = np.where(ids[part] >= 0, scores, np.iinfo(np.int32).max)
    return distances, ids


_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"), axis=1)[:, 0]


def to_lsb_first(codes: Any) -> Codes:
    """Code rows with the bits of every byte in the other order, as FAISS and Milvus keep them."""
    reversed_rows: Codes = _REVERSED[byte_rows(codes, "codes")]
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
    places : ndarray of shape (32 n_blocks,), int64
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
    places = np.full(BLOCK * int(cell_ends[-1]), -1, np.int64)
    places[BLOCK * (cell_ends - lengths)[sorted_cells] + within] = order
    padded = np.zeros((len(places), rows.shape[1]), np.uint8)
    held = places >= 0
    padded[held] = rows[places[held]]
    return scan_blocks(padded), places, cell_ends


def code_rows(codes: Any, n_bits: int, name: str = "codes") -> Codes:
    """The bytes of so many bits, checked; padding bits must be zero."""
    array = byte_rows(codes, name)
    size = -(-n_bits // 8)
    if array.shape[1] < size:
        raise InputError(f"{name} has {array.shape[1]} bytes a row, but {n_bits} bits take {size}")
    array = array[:, :size]
    padding = (1 << 8 * size - n_bits) - 1
    if padding and (array[:, -1] & padding).any():
        raise InputError(
            f"{name} has padding bits set after the {n_bits} bits; they must be zero (are the bytes LSB first? "
            "then convert them with from_lsb_first)"
        )
    return array


def byte_rows(value: Any, name: str) -> Codes:
    """`value` as rows of bytes, row after row in memory, checked."""
    array = plain_array(value, name)
    if array.dtype != np.uint8:
        raise InputTypeError(f"{name} has dtype {array.dtype}; code rows are uint8")
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{name} has shape {array.shape}; code rows are 2-dimensional with at least one byte")
    return np.ascontiguousarray(array)
