"""The native scan against a plain NumPy oracle: ids and scores to the last bit, ties by id."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import _core
from antisparse.codes import cell_blocks, scan_blocks


def oracle(codes, m, weights, units, k, scale=None, bias=None):
    signs = np.unpackbits(codes, axis=1, count=m).astype(np.int64) * 2 - 1
    sums = signs @ weights.T.astype(np.int64)
    scores = ((np.abs(weights.astype(np.int64)).sum(1) - sums) // 2).astype(np.float64)
    if scale is not None:
        scores = bias.astype(np.float64)[:, None] + scale.astype(np.float64)[:, None] * (sums * units)
    n = len(codes)
    best, ids = np.full((len(weights), k), np.inf), np.full((len(weights), k), -1)
    for q in range(len(weights)):
        order = np.lexsort((np.arange(n), scores[:, q]))[:k]
        best[q, : len(order)], ids[q, : len(order)] = scores[order, q], order
    return best, ids


def padded(values, n):
    out = np.zeros(-(-n // 32) * 32, np.float32)
    out[:n] = values
    return out


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    m = draw(st.one_of(st.integers(1, 140), st.integers(1, 1100)))
    n = draw(st.one_of(st.integers(0, 100), st.integers(0, 3000)))
    k = draw(st.one_of(st.integers(1, 12), st.integers(1, n + 5)))
    queries = draw(st.one_of(st.integers(0, 6), st.integers(0, 70)))
    bits = rng.random((n, m)) < rng.random(m)
    if n and draw(st.booleans()):  # duplicates
        bits = bits[rng.integers(0, max(1, n // 10), n)]
    kind = draw(st.sampled_from(["hamming", "asymmetric", "few values", "reconstruction", "with bias"]))
    if kind == "hamming":
        weights = rng.integers(0, 2, (queries, m)) * 2 - 1
    elif kind == "few values":
        weights = rng.integers(-2, 3, (queries, m))
    else:
        weights = np.clip(np.round(rng.standard_normal((queries, m)) * 10.0 ** rng.uniform(0, 6.2)), -(2**23), 2**23)
    units = 2.0 ** rng.integers(*draw(st.sampled_from([(-40, 5), (-140, -100), (100, 140)])), queries)
    scale = bias = None
    if kind in ("reconstruction", "with bias"):
        scale = -np.abs(rng.normal(1, 0.2, n)).astype(np.float32)
        scale[rng.random(n) < 0.02] = 0
        size = 10.0 ** rng.uniform(*draw(st.sampled_from([(-3, 6), (-30, -20), (12, 30)])))
        bias = (rng.standard_normal(n) if kind == "with bias" else np.ones(n)).astype(np.float32) * np.float32(size)
    return np.packbits(bits, axis=1), m, weights.astype(np.int32), units, k, scale, bias


def search(case, threads):
    codes, m, weights, units, k, scale, bias = case
    n = len(codes)
    if scale is None:
        base = _core.ScanBase(scan_blocks(codes), n, m, None, None, 0.0)
    elif n and (bias == bias[0]).all():
        base = _core.ScanBase(scan_blocks(codes), n, m, padded(scale, n), None, float(bias[0]))
    else:
        base = _core.ScanBase(scan_blocks(codes), n, m, padded(scale, n), padded(bias, n), 0.0)
    return base, base.search(weights, units, k, threads)


@contextmanager
def on(name: str):
    """An instruction set for the length of a block: hypothesis does not take the fixture `isa`."""
    before = _core.isa()
    try:
        _core.use_isa(name)
    except ValueError:
        pytest.skip(f"this machine has no {name}")
    try:
        yield
    finally:
        _core.use_isa(before)


@pytest.mark.parametrize("name", ["portable", "avx2"])
@settings(deadline=None, max_examples=150)
@given(case=cases())
def test_scan_equals_the_oracle(name: str, case) -> None:
    with on(name):
        codes, m, weights, units, k, scale, bias = case
        expected = oracle(codes, m, weights, units, k, scale, bias)
        for threads in (1, 2):
            base, (scores, ids) = search(case, threads)
            np.testing.assert_array_equal(ids, expected[1])
            np.testing.assert_array_equal(scores, expected[0])
        again = base.score(weights, units, ids)
        np.testing.assert_array_equal(again, expected[0])
        for q in range(min(3, len(weights))):  # a query alone, too
            _, (alone, alone_ids) = search((codes, m, weights[q : q + 1], units[q : q + 1], k, scale, bias), 1)
            np.testing.assert_array_equal(alone_ids[0], ids[q])
            np.testing.assert_array_equal(alone[0], scores[q])


@st.composite
def cell_cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    m, n = draw(st.integers(1, 150)), draw(st.one_of(st.integers(0, 100), st.integers(0, 3000)))
    k = draw(st.one_of(st.integers(1, 12), st.integers(1, n + 5)))
    queries, side, n_cells = draw(st.integers(0, 30)), draw(st.integers(0, 2)), draw(st.integers(1, 20))
    codes = np.packbits(rng.random((n, m)) < rng.random(m), axis=1)
    codes = np.c_[codes, rng.integers(0, draw(st.sampled_from([2, 256])), (n, side), dtype=np.uint8)]
    if n and draw(st.booleans()):  # duplicates
        codes = codes[rng.integers(0, max(1, n // 10), n)]
    weights = np.clip(np.round(rng.standard_normal((queries, m)) * 10.0 ** rng.uniform(0, 6.2)), -(2**23), 2**23)
    side_weights = (rng.random((queries, side)) * 10.0 ** rng.uniform(0, 6.9)).astype(np.int32)
    units = 2.0 ** rng.integers(-20, 5, queries)
    # Offsets that ties can meet, and offsets that set cells apart.
    size = draw(st.sampled_from([0, 1, 1e3, 1e8])) * units[:, None]
    offsets = np.round(rng.random((queries, n_cells)) * 5) * size
    return (
        codes,
        m,
        side,
        rng.integers(0, n_cells, n),
        n_cells,
        weights.astype(np.int32),
        side_weights,
        units,
        offsets,
        k,
    )


@pytest.mark.parametrize("name", ["portable", "avx2"])
@settings(deadline=None, max_examples=100)
@given(case=cell_cases())
def test_cells_and_side_bytes_equal_the_oracle(name: str, case) -> None:
    with on(name):
        codes, m, side, cells, n_cells, weights, side_weights, units, offsets, k = case
        n, bytes_ = len(codes), -(-m // 8)
        signs = np.unpackbits(codes[:, :bytes_], axis=1, count=m).astype(np.int64) * 2 - 1
        D = (np.abs(weights.astype(np.int64)).sum(1) - signs @ weights.T.astype(np.int64)) // 2
        D += codes[:, bytes_:].astype(np.int64) @ side_weights.T.astype(np.int64)
        scores = offsets.T[cells] + D.astype(float) * units
        expected, expected_ids = np.full((len(weights), k), np.inf), np.full((len(weights), k), -1)
        for q in range(len(weights)):
            order = np.lexsort((np.arange(n), scores[:, q]))[:k]
            expected[q, : len(order)], expected_ids[q, : len(order)] = scores[order, q], order
        blocks, positions, ends = cell_blocks(codes, cells, n_cells)
        base = _core.ScanBase(blocks, len(positions), m, None, None, 0.0, side, positions, ends)
        for threads in (1, 2):
            found, ids = base.search(weights, units, k, threads, side_weights if side else None, offsets)
            np.testing.assert_array_equal(ids, expected_ids)
            np.testing.assert_array_equal(found, expected)


@st.composite
def word_cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    groups, n = draw(st.integers(1, 90)), draw(st.one_of(st.integers(0, 100), st.integers(0, 3000)))
    kind = draw(st.sampled_from(["plain", "side", "nibble", "terms", "bias"]))
    if kind == "nibble":
        groups += 1 - groups % 2
    words = rng.integers(0, 16, (n, groups))
    if n and draw(st.booleans()):  # duplicates
        words = words[rng.integers(0, max(1, n // 10), n)]
    queries, n_cells = draw(st.integers(0, 20)), draw(st.integers(0, 9))
    size = draw(st.sampled_from([2.0, 1e3, 2.0**23]))  # where ties are many, and few
    centre = draw(st.sampled_from([-1.0, 0.0, 1.0]))  # all below zero, all above
    weights = np.clip(np.round((rng.standard_normal((queries, groups, 16)) / 4 + centre / 2) * size), -size, size)
    return rng, kind, words, weights.astype(np.int32), n_cells, draw(st.integers(1, 12))


@pytest.mark.parametrize("name", ["portable", "avx2"])
@settings(deadline=None, max_examples=120)
@given(case=word_cases())
def test_words_equal_the_oracle(name: str, case) -> None:
    with on(name):
        rng, kind, words, weights, n_cells, k = case
        (n, groups), queries = words.shape, len(weights)
        nibbles = np.c_[words, rng.integers(0, 16, n) if kind == "nibble" else np.zeros(n, int)]
        nibbles = nibbles[:, : groups + groups % 2]
        codes = (nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8)
        units = 2.0 ** rng.integers(-30, 5, queries)
        wide, cells = weights.astype(np.int64), rng.integers(0, max(n_cells, 1), n)
        offsets = np.round(rng.random((queries, max(n_cells, 1))) * 5) * 1e3 * units[:, None]
        sums = np.array([wide[:, np.arange(groups), row].sum(1) for row in words], np.int64).reshape(n, queries)
        D = wide.max(axis=2).sum(axis=1) - sums
        side = scale = bias = None
        if kind == "side":
            codes = np.c_[codes, rng.integers(0, 256, n, dtype=np.uint8)]
            side = (rng.random((queries, 1)) * 10.0 ** rng.uniform(0, 6.9)).astype(np.int32)
            D = D + codes[:, -1:].astype(np.int64) * side[:, 0]
        elif kind == "nibble":
            side = (rng.random((queries, max(n_cells, 1))) * 10.0 ** rng.uniform(0, 6)).astype(np.int32)
            D = D + nibbles[:, -1:] * side.T[cells]
        scores = D.astype(float)
        if kind in ("terms", "bias"):
            scale = -np.abs(rng.normal(1, 0.2, n)).astype(np.float32)
            bias = (rng.standard_normal(n) if kind == "bias" else np.ones(n)).astype(np.float32) * np.float32(7)
            scores = bias.astype(float)[:, None] + scale.astype(float)[:, None] * (2 * sums * units)
        elif n_cells:
            scores = scores * units
        positions = ends = None
        blocks, places = scan_blocks(codes), np.r_[np.arange(n), np.full(-n % 32, -1)]
        if n_cells:
            scores = offsets.T[cells] + scores
            blocks, places, ends = cell_blocks(codes, cells, n_cells)
            positions = places
        if scale is not None:
            scale, bias = (np.where(places >= 0, np.append(v, 0)[places], 0).astype(np.float32) for v in (scale, bias))
        total = len(places) if n_cells else n
        options = (int(kind == "side"), positions, ends, None, None, [], kind == "nibble", True)
        base = _core.ScanBase(blocks, total, 4 * groups, scale, bias, 0.0, *options)
        for threads in (1, 2):
            found, ids = base.search(
                weights.reshape(queries, 16 * groups), units, k, threads, side, offsets if n_cells else None
            )
            for q in range(queries):
                order = np.lexsort((np.arange(n), scores[:, q]))[:k]
                np.testing.assert_array_equal(ids[q, : len(order)], order)
                np.testing.assert_array_equal(found[q, : len(order)], scores[order, q])
                assert (ids[q, len(order) :] == -1).all()


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e6, 1e25])
@pytest.mark.parametrize("n_cells", [0, 30])
def test_terms_as_bytes(isa: str, n_cells: int, size: float) -> None:
    rng = np.random.default_rng(n_cells)
    n, m, k = 9_000, 101, 12
    codes = np.packbits(rng.random((n, m)) < 0.5, axis=1)
    codes[n // 2 :] = codes[: n - n // 2]  # duplicates
    reach_byte, bias_byte = rng.integers(0, 256, (2, n), dtype=np.uint8)
    reach_byte[n // 2 :], bias_byte[n // 2 :] = reach_byte[: n - n // 2], bias_byte[: n - n // 2]
    ranges = [0.2, 0.003, -3.0 * size, 0.05 * size]
    weights = np.round(rng.standard_normal((25, m)) * 2**20).astype(np.int32)
    units = np.full(25, size * 2.0**-20)
    cells = rng.integers(0, max(n_cells, 1), n)
    offsets = np.round(rng.random((25, max(n_cells, 1))) * 4) * size
    sums = (np.unpackbits(codes, axis=1, count=m).astype(np.int64) * 2 - 1) @ weights.T.astype(np.int64)
    scale = -0.5 / (ranges[0] + ranges[1] * reach_byte.astype(float))
    bias = ranges[2] + ranges[3] * bias_byte.astype(float)
    scores = bias[:, None] + scale[:, None] * (sums * units)
    if n_cells:
        scores = offsets.T[cells] + scores
        blocks, positions, ends = cell_blocks(codes, cells, n_cells)
    else:
        blocks, positions, ends = scan_blocks(codes), np.r_[np.arange(n), np.full(-n % 32, -1)], None
    placed = [np.where(positions >= 0, byte[positions], 7).astype(np.uint8) for byte in (reach_byte, bias_byte)]
    base = _core.ScanBase(
        blocks,
        len(positions) if n_cells else n,
        m,
        None,
        None,
        0.0,
        0,
        positions if n_cells else None,
        ends,
        *placed,
        ranges,
    )
    for threads in (1, 2):
        found, ids = base.search(weights, units, k, threads, None, offsets if n_cells else None)
        for q in range(25):
            order = np.lexsort((np.arange(n), scores[:, q]))[:k]
            np.testing.assert_array_equal(ids[q], order)
            np.testing.assert_array_equal(found[q], scores[order, q])


@pytest.mark.parametrize("terms", [False, True])
def test_large_bases_in_cells(isa: str, terms: bool) -> None:
    rng = np.random.default_rng(1)
    n, m, n_cells, k = 40_000, 112, 50, 10
    codes = rng.integers(0, 256, (n, 14), dtype=np.uint8)
    cells = rng.integers(0, n_cells, n)
    weights = np.round(rng.standard_normal((20, m)) * 2**20).astype(np.int32)
    units = np.full(20, 2.0**-20)
    offsets = rng.random((20, n_cells)) * 30
    blocks, positions, ends = cell_blocks(codes, cells, n_cells)
    scale = bias = None
    if terms:
        scale, bias = (np.zeros(len(positions), np.float32) for _ in range(2))
        scale[positions >= 0] = -rng.uniform(0.5, 1.5, n)
        bias[positions >= 0] = rng.standard_normal(n)
    base = _core.ScanBase(blocks, len(positions), m, scale, bias, 0.0, 0, positions, ends)
    by_row = np.argsort(np.where(positions < 0, n, positions), kind="stable")[:n]
    sums = (np.unpackbits(codes, axis=1).astype(np.int64) * 2 - 1) @ weights.T.astype(np.int64)
    if terms:
        scores = bias[by_row].astype(float)[:, None] + scale[by_row].astype(float)[:, None] * (sums * units)
    else:
        scores = (np.abs(weights.astype(np.int64)).sum(1) - sums) // 2 * units
    scores = offsets.T[cells] + scores
    for threads in (1, 3):
        found, ids = base.search(weights, units, k, threads, None, offsets)
        for q in range(20):
            order = np.lexsort((np.arange(n), scores[:, q]))[:k]
            np.testing.assert_array_equal(ids[q], order)
            np.testing.assert_array_equal(found[q], scores[order, q])
    # Some cells, and some ids left out.
    allowed = rng.random(n) < 0.3
    masked = np.where((positions >= 0) & allowed[positions], positions, -1)
    for probes in (1, 3, n_cells):
        chosen = np.sort(np.array([rng.permutation(n_cells)[:probes] for _ in range(20)]), axis=1)
        visited = np.take_along_axis(offsets, chosen, 1)
        for threads in (1, 3):
            found, ids = base.search(weights, units, k, threads, None, visited, masked, chosen)
            for q in range(20):
                inside = np.flatnonzero(allowed & np.isin(cells, chosen[q]))
                order = inside[np.lexsort((inside, scores[inside, q]))[:k]]
                np.testing.assert_array_equal(ids[q], order)
                np.testing.assert_array_equal(found[q], scores[order, q])


@pytest.mark.parametrize("m", [1, 12, 52, 129, 1028])
@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_numbers_in_the_last_half_byte(isa: str, m: int, spread: float) -> None:
    rng = np.random.default_rng(m)
    n, n_cells, queries = 6_000, 7, 11
    signs, numbers = rng.random((n, m)) < 0.5, rng.integers(0, 16, n)
    codes = np.packbits(signs, axis=1)
    codes[:, -1] |= numbers.astype(np.uint8)
    cells = rng.integers(0, n_cells, n)
    weights = np.round(rng.standard_normal((queries, m)) * 2**12).astype(np.int32)
    # From nothing to more than all of the bits.
    steps = np.minimum(np.round(rng.random((queries, n_cells)) * spread * 2**12), 2**23 - 1).astype(np.int32)
    steps[:, 0] = 0
    units, offsets = np.full(queries, 2.0**-12), rng.standard_normal((queries, n_cells))
    apart = signs[:, None] != (weights > 0)
    disagreement = (np.abs(weights.astype(np.int64)) * apart).sum(2)
    blocks, positions, ends = cell_blocks(codes, cells, n_cells)
    base = _core.ScanBase(blocks, len(positions), m, None, None, 0.0, 0, positions, ends, nibble=True)
    chosen = np.array([rng.permutation(n_cells)[:3] for _ in range(queries)])
    scores = offsets.T[cells] + (disagreement + steps.T[cells] * numbers[:, None]) * units
    for k in (1, 10, 100):
        every = base.search(weights, units, k, 2, steps, offsets)
        some = base.search(
            weights,
            units,
            k,
            2,
            np.take_along_axis(steps, chosen, 1),
            np.take_along_axis(offsets, chosen, 1),
            None,
            chosen,
        )
        for q in range(queries):
            for inside, (found, ids) in ((np.arange(n), every), (np.flatnonzero(np.isin(cells, chosen[q])), some)):
                order = inside[np.lexsort((inside, scores[inside, q]))[:k]]
                np.testing.assert_array_equal(ids[q], order)
                np.testing.assert_array_equal(found[q], scores[order, q])
    # Without cells a score is D itself, of one code as of all.
    flat = _core.ScanBase(scan_blocks(codes), n, m, None, None, 0.0, nibble=True)
    one = np.ascontiguousarray(steps[:, 1:2])
    full = (disagreement + one.T * numbers[:, None]).T.astype(float)
    found, ids = flat.search(weights, units, 20, 1, one)
    np.testing.assert_array_equal(found, np.sort(full, axis=1)[:, :20])
    np.testing.assert_array_equal(flat.score(weights, units, ids, one), found)
    for wrong in (None, steps):
        with pytest.raises(ValueError, match="side weights do not fit"):
            flat.search(weights, units, 20, 1, wrong)


@pytest.mark.parametrize("m", [64, 128, 200, 512, 1100])
def test_large_bases_many_chunks_and_ranges(isa: str, m: int) -> None:
    rng = np.random.default_rng(m)
    n = 40_000
    codes = np.packbits(rng.random((n, m)) < 0.5, axis=1)
    for weights, units in (
        (rng.integers(0, 2, (9, m)).astype(np.int32) * 2 - 1, np.ones(9)),
        (np.round(rng.standard_normal((9, m)) * 2**20).astype(np.int32), np.full(9, 2.0**-20)),
    ):
        for scale in (None, -rng.uniform(0.5, 1.5, n).astype(np.float32)):
            bias = None if scale is None else rng.standard_normal(n).astype(np.float32)
            for k in (1, 10, 1000):
                expected = oracle(codes, m, weights, units, k, scale, bias)
                for threads in (1, 3):
                    _, (scores, ids) = search((codes, m, weights, units, k, scale, bias), threads)
                    np.testing.assert_array_equal(ids, expected[1])
                    np.testing.assert_array_equal(scores, expected[0])


def test_limits_that_leave_the_range_of_float_prune_nothing(isa: str) -> None:
    bias = np.full(512, 0.05, np.float32)
    bias[-1] = 0.01
    base = _core.ScanBase(scan_blocks(np.zeros((512, 1), np.uint8)), 512, 8, np.full(512, -1, np.float32), bias, 0.0)
    _, ids = base.search(np.ones((1, 8), np.int32), np.array([1e-39]), 1, 1)
    assert ids[0, 0] == 511


def test_terms_that_are_all_zero(isa: str) -> None:
    base = _core.ScanBase(scan_blocks(np.zeros((100, 1), np.uint8)), 100, 8, np.zeros(128, np.float32), None, 2.0)
    scores, ids = base.search(np.ones((1, 8), np.int32), np.ones(1), 3, 1)
    assert ids.tolist() == [[0, 1, 2]] and scores.tolist() == [[2.0] * 3]


def test_the_native_boundary_refuses_what_would_read_out_of_bounds() -> None:
    blocks = np.zeros((2, 3, 32), np.uint8)
    with pytest.raises(ValueError, match="blocks do not fit"):
        _core.ScanBase(blocks, 65, 20, None, None, 0.0)
    with pytest.raises(ValueError, match="blocks do not fit"):
        _core.ScanBase(blocks, 40, 25, None, None, 0.0)
    with pytest.raises(ValueError, match="padded to whole blocks"):
        _core.ScanBase(blocks, 40, 20, np.zeros(40, np.float32), None, 0.0)
    with pytest.raises(ValueError, match="terms out of range"):
        _core.ScanBase(blocks, 40, 20, np.ones(64, np.float32), None, 0.0)
    base = _core.ScanBase(blocks, 40, 20, None, None, 0.0)
    with pytest.raises(ValueError, match="weights do not fit"):
        base.search(np.zeros((1, 19), np.int32), np.ones(1), 1, 1)
    with pytest.raises(ValueError, match="weight is out of range"):
        base.search(np.full((1, 20), 1 << 24, np.int32), np.ones(1), 1, 1)
    with pytest.raises(ValueError, match="id is out of range"):
        base.score(np.zeros((1, 20), np.int32), np.ones(1), np.array([[40]]))
    ends, ids = np.array([1, 2]), np.arange(64)
    cells = _core.ScanBase(blocks, 64, 20, None, None, 0.0, 0, ids, ends)
    one, unit, offset = np.zeros((1, 20), np.int32), np.ones(1), np.zeros((1, 1))
    for probe in (-1, 2):
        with pytest.raises(ValueError, match="probe is not a cell"):
            cells.search(one, unit, 1, 1, None, offset, None, np.array([[probe]]))
    with pytest.raises(ValueError, match="offsets do not fit"):
        cells.search(one, unit, 1, 1, None, np.zeros((1, 2)), None, np.array([[0]]))
    with pytest.raises(ValueError, match="positions do not fit"):
        cells.search(one, unit, 1, 1, None, np.zeros((1, 2)), ids[:63])


@pytest.mark.parametrize("deleted", [0.0, 0.02, 0.9])
@pytest.mark.parametrize("kind", ["bits", "side byte", "terms", "byte terms"])
@pytest.mark.parametrize("size", [1e-3, 1e12])
def test_the_first_codes_of_probes(isa: str, kind: str, deleted: float, size: float) -> None:
    """Chosen by sums of 12 bits where there is no limit yet, from cells of very different sizes."""
    rng = np.random.default_rng(7)
    sizes = np.array([1, 0, 31, 33, 500, 5, 2500, 1800, 0, 64])
    n, m, queries, cells = int(sizes.sum()), 57, 9, len(sizes)
    of_cell = np.repeat(np.arange(cells), sizes)
    side = int(kind == "side byte")
    bits = rng.random((n, m)) < 0.5
    bits[n // 2 :] = bits[: n - n // 2]  # ties
    codes = np.packbits(bits, axis=1)
    if side:
        codes = np.hstack([codes, rng.integers(0, 256, (n, 1), dtype=np.uint8)])
    blocks, positions, ends = cell_blocks(codes, of_cell, cells)
    weights = np.round(rng.standard_normal((queries, m)) * 2**18).astype(np.int32)
    units = np.full(queries, size * 2.0**-20)
    signs = bits.astype(np.int64) * 2 - 1
    sums = signs @ weights.T.astype(np.int64)
    scores = ((np.abs(weights.astype(np.int64)).sum(1) - sums) // 2).astype(np.float64)
    side_weights = None
    arguments = [None, None, 0.0, side, positions, ends]
    if side:
        side_weights = rng.integers(0, 2**15, (queries, 1)).astype(np.int32)
        scores = scores + codes[:, -1:].astype(np.int64) * side_weights.T
    at = np.where(positions >= 0, positions, 0)
    if kind == "terms":
        scale, bias = -rng.uniform(0.5, 2, n).astype(np.float32), (size * rng.random(n)).astype(np.float32)
        arguments[:2] = np.where(positions >= 0, scale[at], 0), np.where(positions >= 0, bias[at], 0)
        scores = bias.astype(float)[:, None] + scale.astype(float)[:, None] * (sums * units)
    elif kind == "byte terms":
        reach, bias = rng.integers(0, 256, (2, n)).astype(np.uint8)
        ranges = [0.3, 0.004, -size, size / 100]
        arguments += [np.where(positions >= 0, v[at], np.uint8(0)) for v in (reach, bias)] + [ranges]
        scale = -0.5 / (ranges[0] + ranges[1] * reach.astype(float))
        scores = (ranges[2] + ranges[3] * bias.astype(float))[:, None] + scale[:, None] * (sums * units)
    else:
        scores = scores * units
    offsets = rng.standard_normal((queries, cells)) * 10 * size
    scores = offsets.T[of_cell] + scores
    base = _core.ScanBase(blocks, len(positions), m, *arguments)
    live = rng.random(n) >= deleted
    masked = None if deleted == 0 else np.where((positions >= 0) & live[at], positions, -1)
    for probes in (1, 4, cells):
        chosen = np.array([rng.permutation(cells)[:probes] for _ in range(queries)])
        visited = np.take_along_axis(offsets, chosen, 1)
        for k in (1, 10, 40, 700, 3000):
            found, ids = base.search(weights, units, k, 1, side_weights, visited, masked, chosen)
            for q in range(queries):
                inside = np.flatnonzero(live & np.isin(of_cell, chosen[q]))
                order = inside[np.lexsort((inside, scores[inside, q]))[:k]]
                assert ids[q, : len(order)].tolist() == order.tolist() and (ids[q, len(order) :] == -1).all()
                np.testing.assert_array_equal(found[q, : len(order)], scores[order, q])


def test_a_large_base_is_read_once_for_many_queries(isa: str) -> None:
    # Beyond 16 MB queries that share cells pass them together; one alone never does.
    rng = np.random.default_rng(5)
    n, m, n_cells, queries = 34_000 // 32 * 32, 4000, 3, 6
    blocks = rng.integers(0, 256, (n // 32, m // 8, 32), dtype=np.uint8)
    ids = rng.permutation(n).astype(np.int64)
    ids[rng.random(n) < 0.1] = -1
    ends = np.array([300, 301, n // 32])
    base = _core.ScanBase(blocks, n, m, None, None, 0.0, 0, ids, ends)
    weights = np.round(rng.standard_normal((queries, m)) * 2**20).astype(np.int32)
    units, probes = np.full(queries, 2.0**-20), np.array([rng.permutation(n_cells)[:2] for _ in range(queries)])
    offsets = rng.standard_normal((queries, 2)) * 10
    together = base.search(weights, units, 30, 2, None, offsets, None, probes)
    for q in range(queries):
        row = slice(q, q + 1)
        alone = base.search(weights[row], units[row], 30, 1, None, offsets[row], None, probes[row])
        for one, all_ in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], all_[q])
