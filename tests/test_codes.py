import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antisparse import InputError, InputTypeError, from_lsb_first, hamming, hamming_search, pack, to_lsb_first, unpack
from antisparse.codes import cell_blocks, code_rows, scan_blocks


def scan_rows(blocks: np.ndarray, n: int) -> np.ndarray:
    """The inverse of `scan_blocks`: the first n rows."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]


@given(n=st.integers(0, 40), m=st.integers(1, 70), seed=st.integers(0, 10**6))
def test_pack_and_unpack_are_inverse_and_packbits(n: int, m: int, seed: int) -> None:
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (n, m))
    codes = pack(signs)
    assert codes.shape == (n, -(-m // 8)) and codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, np.packbits(signs > 0, axis=1))
    np.testing.assert_array_equal(unpack(codes, m), signs)
    padding = -m % 8
    assert not (codes[:, -1] & ((1 << padding) - 1)).any()


@given(n=st.integers(0, 100), size=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_scan_layout_puts_byte_j_of_32_codes_together(n: int, size: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 256, (n, size), dtype=np.uint8)
    blocks = scan_blocks(codes)
    assert blocks.shape == (-(-n // 32), size, 32)
    for i in range(n):
        np.testing.assert_array_equal(blocks[i // 32, :, i % 32], codes[i])
    np.testing.assert_array_equal(scan_rows(blocks, n), codes)
    if n % 32:
        assert not blocks[-1, :, n % 32 :].any()


@given(seed=st.integers(0, 10**6), size=st.integers(1, 9))
def test_lsb_first_is_packbits_in_little_order(seed: int, size: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (5, 8 * size), dtype=np.uint8)
    big, little = np.packbits(bits, axis=1), np.packbits(bits, axis=1, bitorder="little")
    np.testing.assert_array_equal(to_lsb_first(big), little)
    np.testing.assert_array_equal(from_lsb_first(little), big)


def test_hamming_counts_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (30, 5), dtype=np.uint8), rng.integers(0, 256, (7, 5), dtype=np.uint8)
    expected = (np.unpackbits(a, axis=1)[:, None] != np.unpackbits(b, axis=1)).sum(2)
    np.testing.assert_array_equal(hamming(a, b), expected)
    monkeypatch.setattr("antisparse.codes._PAIR_BYTES", 1)
    np.testing.assert_array_equal(hamming(a, b), expected)
    assert hamming(a[:0], b).shape == (0, 7)


def test_hamming_search_orders_by_distance_then_number(isa: str) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (100, 2), dtype=np.uint8)  # many ties
    distances, ids = hamming_search(codes, codes[:9], 120, n_threads=1)
    all_pairs = hamming(codes[:9], codes)
    for q in range(9):
        order = np.lexsort((np.arange(100), all_pairs[q]))
        np.testing.assert_array_equal(ids[q, :100], order)
        np.testing.assert_array_equal(distances[q, :100], all_pairs[q, order])
    assert (ids[:, 100:] == -1).all()
    assert (distances[:, 100:] == np.iinfo(np.int32).max).all()
    assert distances.dtype == np.int32 and ids.dtype == np.int64


@given(n=st.integers(0, 200), n_cells=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_cells_stand_in_whole_blocks_in_the_order_of_rows(n: int, n_cells: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, cells = rng.integers(0, 256, (n, 3), dtype=np.uint8), rng.integers(0, n_cells, n)
    blocks, places, ends = cell_blocks(rows, cells, n_cells)
    assert len(ends) == n_cells and blocks.shape == (ends[-1], 3, 32) and len(places) == 32 * ends[-1]
    starts = np.concatenate([[0], ends[:-1]])
    held = scan_rows(blocks, len(places))
    for cell in range(n_cells):
        part = places[32 * starts[cell] : 32 * ends[cell]]
        expected = np.flatnonzero(cells == cell)
        np.testing.assert_array_equal(part[: len(expected)], expected)
        assert (part[len(expected) :] == -1).all() and len(part) - len(expected) < 32
    np.testing.assert_array_equal(held[places >= 0], rows[places[places >= 0]])
    assert not held[places < 0].any()


def test_errors_name_the_argument() -> None:
    codes = np.zeros((3, 2), np.uint8)
    with pytest.raises(InputTypeError, match="codes has dtype int64"):
        unpack(codes.astype(np.int64), 9)
    with pytest.raises(InputError, match="codes has 2 bytes a row, but 17 bits take 3"):
        unpack(codes, 17)
    with pytest.raises(InputError, match="n_bits = 0"):
        unpack(codes, 0)
    with pytest.raises(InputError, match="padding bits set"):
        code_rows(codes + 1, 12)
    with pytest.raises(InputError, match="codes has 2 bytes a row, others 1"):
        hamming(codes, codes[:, :1])
    with pytest.raises(InputError, match="codes has 2 bytes a row, queries 1"):
        hamming_search(codes, codes[:, :1], 1)
    with pytest.raises(InputError, match="k = 0"):
        hamming_search(codes, codes, 0)
    with pytest.raises(InputError, match=r"codes has shape \(3, 0\)"):
        unpack(codes[:, :0], 1)
    with pytest.raises(InputError, match="at least one bit"):
        pack(np.ones((2, 0)))
