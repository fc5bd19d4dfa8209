"""The native scan against a plain NumPy oracle: ids and scores to the last bit, ties by id."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import _core
from antisparse.codes import cell_blocks, scan_blocks
from antisparse.scan.columns import live_words

NAMES = _core.isas()


@contextmanager
def on(name: str):
    """An instruction set for the length of a block: hypothesis does not take the fixture `isa`."""
    before = _core.isa()
    _core.use_isa(name)
    try:
        yield
    finally:
        _core.use_isa(before)


class Case:
    """Codes by row, queries, and what the scan says of them, by NumPy."""

    def __init__(self, codes, tables, units, *, cells=None, n_cells=1, offsets=None, steps=None, base=None, column=()):
        self.codes, self.tables, self.units = codes, tables.astype(np.int32), units
        self.n, self.queries = len(codes), len(tables)
        self.cells = np.zeros(self.n, int) if cells is None else cells
        self.n_cells, self.in_cells = n_cells, cells is not None
        self.offsets = np.zeros((self.queries, n_cells)) if offsets is None else offsets
        self.steps, self.base = steps, base
        self.column = dict(column)  # by row: scales, or inverse_scales with a low and a step

    def __repr__(self):
        options = {"n": self.n, "tables": self.tables.shape, "units": self.units[:3], "offsets": self.offsets[:3]}
        options |= {"base": self.base, "steps": self.steps, "column": self.column, "in cells": self.in_cells}
        return f"Case({options})"

    def scores(self):
        """(n, queries): D as an exact integer, and each operation rounded once."""
        nibbles = np.empty((self.n, 2 * self.codes.shape[1]), np.intp)
        nibbles[:, ::2], nibbles[:, 1::2] = self.codes >> 4, self.codes & 15
        D = np.zeros((self.n, self.queries), np.int64)
        for g in range(nibbles.shape[1]):
            D += self.tables[:, g].astype(np.int64).T[nibbles[:, g]]
        if self.steps is not None:
            D += self.steps.astype(np.int64).T[self.cells] * nibbles[:, -1:]
        with np.errstate(all="ignore"):
            scores = D.astype(np.float64) * self.units
            if self.column:
                scores = self.scale()[:, None] * (self.base + scores)
            scores = self.offsets.T[self.cells] + scores
        return np.where(np.isnan(scores), np.inf, scores)

    def scale(self):
        if "scales" in self.column:
            return self.column["scales"].astype(np.float64)
        low, step = self.column["inverse_scale_low"], self.column["inverse_scale_step"]
        return 1 / (low + step * self.column["inverse_scales"].astype(np.float64))

    def best(self, k, query, scores, allowed=None):
        """Scores and ids of the k best codes, padded."""
        rows = np.arange(self.n) if allowed is None else np.flatnonzero(allowed)
        order = rows[np.lexsort((rows, scores[rows, query]))[:k]]
        missing = k - len(order)
        return np.r_[scores[order, query], np.full(missing, np.inf)], np.r_[order, np.full(missing, -1)]

    def columns(self):
        """The native columns, and the row at each place."""
        if self.in_cells:
            blocks, places, ends = cell_blocks(self.codes, self.cells, self.n_cells)
            options = {"ids": places, "cell_ends": ends}
        else:
            blocks, options = scan_blocks(self.codes), {}
            places = np.r_[np.arange(self.n), np.full(-self.n % 32, -1)]
        for name, value in self.column.items():
            if isinstance(value, np.ndarray):
                placed = np.zeros(len(places), value.dtype)
                placed[places >= 0] = value[places[places >= 0]]
                options[name] = placed
            else:
                options[name] = value
        return _core.CodeColumns(blocks, self.n, **options), places

    def native(self, rows=slice(None), probes=None):
        """Some queries for the native scan, visiting all cells or those they probe."""
        options = {}
        offsets, steps = self.offsets[rows], None if self.steps is None else self.steps[rows]
        if probes is not None:
            probes = probes[rows]
            offsets = np.take_along_axis(offsets, probes, 1)
            steps = None if steps is None else np.take_along_axis(steps, probes, 1)
            options["probes"] = np.ascontiguousarray(probes)
        if self.base is not None:
            options["base"] = self.base[rows]
        if steps is not None:
            options["cell_steps"] = np.ascontiguousarray(steps)
        tables = np.ascontiguousarray(self.tables[rows])
        return _core.QueryTables(tables, self.units[rows], np.ascontiguousarray(offsets), **options)


def agree(case, k, threads=(1, 2), probes=None, allowed=None, alone=2):
    """Search by both, in batches and one query at a time."""
    scores = case.scores()
    columns, places = case.columns()
    live = None
    if allowed is not None:
        live = live_words((places >= 0) & np.append(allowed, False)[places])
    within = [allowed] * case.queries
    if probes is not None:
        within = [np.isin(case.cells, row) & (True if allowed is None else allowed) for row in probes]
    expected = [case.best(k, q, scores, within[q]) for q in range(case.queries)]
    for count in threads:
        found, found_ids = columns.search(case.native(probes=probes), k, count, live)
        assert found.shape == found_ids.shape == (case.queries, k)
        for q in range(case.queries):
            np.testing.assert_array_equal(found_ids[q], expected[q][1])
            np.testing.assert_array_equal(found[q], expected[q][0])
    for q in range(min(alone, case.queries)):
        found, found_ids = columns.search(case.native(slice(q, q + 1), probes), k, 1, live)
        np.testing.assert_array_equal(found_ids[0], expected[q][1])
        np.testing.assert_array_equal(found[0], expected[q][0])
    if probes is None:
        asked = np.r_[-1, np.where(places >= 0, np.arange(len(places)), -1)]
        again = columns.score(case.native(), np.tile(asked, (case.queries, 1)))
        assert (again[:, asked < 0] == np.inf).all()
        np.testing.assert_array_equal(again[:, 1:][:, places >= 0], scores[places[places >= 0]].T)


@st.composite
def tables_of(draw, rng, queries, nibbles):
    """Integers for each nibble: of signs, of signs and linear bytes after them, or any."""
    kind = draw(st.sampled_from(["hamming", "signs", "few values", "random", "unequal", "zeros", "largest"]))
    if kind in ("hamming", "signs", "few values"):
        shape = (queries, 4 * nibbles)
        if kind == "signs":
            weights = np.clip(np.round(rng.standard_normal(shape) * 10.0 ** rng.uniform(0, 6.2)), -(2**23), 2**23)
        else:
            weights = rng.integers(0, 2, shape) * 2 - 1 if kind == "hamming" else rng.integers(-2, 3, shape)
        tables = _core.sign_tables(weights.astype(np.int32), nibbles)
    elif kind == "zeros":
        tables = np.zeros((queries, nibbles, 16), np.int64)
    else:
        most = {"random": 10.0 ** rng.uniform(0, 7), "unequal": 1e6, "largest": 2**31 - 1}[kind]
        size = most if kind != "unequal" else most ** rng.random((queries, nibbles, 1))
        tables = (rng.random((queries, nibbles, 16)) * size).astype(np.int64)
    tables = np.asarray(tables, np.int64)
    for byte in range(draw(st.sampled_from([0, 0, 1, 2, 5]))):  # the last ones, for all queries or for some
        if 2 * byte + 2 > nibbles:
            break
        factor = (rng.random(queries) * 10.0 ** rng.uniform(0, 6.9)).astype(np.int64)
        factor[rng.random(queries) < 0.3] = 0
        which = np.ones(queries, bool) if draw(st.booleans()) else rng.random(queries) < 0.7
        linear = factor[which, None] * np.arange(16)
        tables[which, -2 * byte - 2], tables[which, -2 * byte - 1] = 16 * linear, linear
    return tables


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    size = draw(st.one_of(st.integers(1, 18), st.integers(1, 140)))
    n = draw(st.one_of(st.integers(0, 100), st.integers(0, 3000)))
    queries = draw(st.one_of(st.integers(0, 6), st.integers(0, 70)))
    codes = rng.integers(0, draw(st.sampled_from([2, 256])), (n, size), dtype=np.uint8)
    if n and draw(st.booleans()):  # duplicates
        codes = codes[rng.integers(0, max(1, n // 10), n)]
    tables = draw(tables_of(rng, queries, 2 * size))
    units = 2.0 ** rng.integers(
        *draw(st.sampled_from([(-40, 5), (-140, -100), (100, 140), (-1074, -800), (940, 980)])), queries
    )
    if draw(st.booleans()):  # not powers of two
        units = np.maximum(units * rng.uniform(0.5, 1, queries), 5e-324)
    options = {}
    if draw(st.booleans()):
        n_cells = draw(st.integers(1, 20))
        options |= {"cells": rng.integers(0, n_cells, n), "n_cells": n_cells}
    n_cells = options.get("n_cells", 1)
    # Offsets that ties can meet, offsets that set cells apart, and none.
    size = draw(st.sampled_from([0, 1, 1e3, 1e8])) * units[:, None]
    options["offsets"] = np.round(rng.random((queries, n_cells)) * 5) * size
    if draw(st.booleans()) and tables[:, -1:].max(initial=0) < 2**30:
        steps = (rng.random((queries, n_cells)) * 10.0 ** rng.uniform(0, 6.9)).astype(np.int32)
        steps[rng.random(steps.shape) < 0.2] = 0
        options["steps"] = steps
    column = draw(st.sampled_from(["none", "none", "floats", "bytes"]))
    if column == "floats":
        scales = np.abs(rng.normal(1, 0.2, n)).astype(np.float32)
        scales *= np.float32(10.0 ** draw(st.sampled_from([0, 0, -30, 30])))
        if draw(st.booleans()):
            scales[rng.random(n) < 0.02] = 0
        options["column"] = {"scales": scales}
    elif column == "bytes":
        most = draw(st.sampled_from([1, 256]))
        low, step = draw(st.sampled_from([(0.2, 0.003), (1.0, 0.0), (1e-20, 1e-22), (1e20, 3e19)]))
        options["column"] = {"inverse_scales": rng.integers(0, most, n, dtype=np.uint8)}
        options["column"] |= {"inverse_scale_low": low, "inverse_scale_step": step}
    if column != "none":
        # The inner value of either sign, and far above or below what D adds.
        factor = rng.random(queries) * draw(st.sampled_from([0, 1, 1, -1, 1e6, -1e6]))
        with np.errstate(over="ignore"):
            base = -factor * tables.max(axis=2, initial=0).sum(axis=1) * units
        options["base"] = np.clip(base, -1e307, 1e307)
    return Case(codes, tables, units, **options), rng


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [5, 21, 22, 40])
def test_infinite_scores_are_ordered_by_id(name: str, k: int) -> None:
    """A second cell holds the smaller ids: they come first, although as many of the first cell stand already."""
    cells = np.repeat([1, 0], 21)
    column = {"inverse_scales": np.zeros(42, np.uint8), "inverse_scale_low": 1e-20, "inverse_scale_step": 1e-22}
    tables, units = np.ones((1, 2, 16)), np.array([1e300])
    with on(name):
        case = Case(np.zeros((42, 1), np.uint8), tables, units, cells=cells, n_cells=2, base=np.zeros(1), column=column)
        assert np.isinf(case.scores()).all()
        agree(case, k)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=200)
@given(drawn=cases(), k=st.one_of(st.integers(1, 12), st.integers(1, 3100)))
def test_scan_equals_the_oracle(name: str, drawn, k: int) -> None:
    with on(name):
        agree(drawn[0], k)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=100)
@given(drawn=cases(), k=st.integers(1, 12), share=st.sampled_from([0.0, 0.02, 0.5, 1.0]), data=st.data())
def test_probes_and_ids_left_out_equal_the_oracle(name: str, drawn, k: int, share: float, data) -> None:
    with on(name):
        case, rng = drawn
        allowed = rng.random(case.n) < share
        if case.in_cells:
            count = data.draw(st.integers(1, case.n_cells))
            probes = np.array([rng.permutation(case.n_cells)[:count] for _ in range(case.queries)], np.int64)
            probes = probes.reshape(case.queries, count)
            agree(case, k, probes=probes)
            agree(case, k, probes=probes, allowed=allowed)
        agree(case, k, allowed=allowed)


@pytest.mark.parametrize("kind", ["none", "floats", "floats with zeros", "bytes"])
@pytest.mark.parametrize("steps", [False, True])
def test_large_bases_in_cells(isa: str, kind: str, steps: bool) -> None:
    rng = np.random.default_rng(1)
    n, size, n_cells, k, queries = 40_000, 14, 50, 10, 20
    codes = rng.integers(0, 256, (n, size), dtype=np.uint8)
    tables = _core.sign_tables(np.round(rng.standard_normal((queries, 8 * size)) * 2**20).astype(np.int32), 2 * size)
    options = {"cells": rng.integers(0, n_cells, n), "n_cells": n_cells, "offsets": rng.random((queries, n_cells)) * 30}
    if steps:
        options["steps"] = (rng.random((queries, n_cells)) * 2**22).astype(np.int32)
    if kind != "none":
        options["base"] = -rng.uniform(20, 60, queries)
        options["column"] = {"scales": rng.uniform(0.5, 1.5, n).astype(np.float32)}
    if kind == "floats with zeros":
        options["column"]["scales"][::1000] = 0
    if kind == "bytes":
        options["column"] = {"inverse_scales": rng.integers(0, 256, n, dtype=np.uint8)}
        options["column"] |= {"inverse_scale_low": 0.5, "inverse_scale_step": 0.004}
    case = Case(codes, tables, np.full(queries, 2.0**-20), **options)
    agree(case, k, (1, 3))
    allowed = rng.random(n) < 0.3
    for count in (1, 3, n_cells):
        probes = np.array([rng.permutation(n_cells)[:count] for _ in range(queries)])
        agree(case, k, (1, 3), probes, allowed)
        agree(case, k, (1, 3), probes)


@pytest.mark.parametrize("size", [8, 16, 25, 64, 138])
@pytest.mark.parametrize("linear", [0, 1, 2])
def test_large_bases_many_chunks_and_ranges(isa: str, size: int, linear: int) -> None:
    rng = np.random.default_rng(size)
    n, queries = 40_000, 9
    codes = rng.integers(0, 256, (n, size), dtype=np.uint8)
    codes[n // 2 :] = codes[: n // 2]  # duplicates
    for weights, unit in (
        (rng.integers(0, 2, (queries, 8 * size)) * 2 - 1, 1.0),
        (np.round(rng.standard_normal((queries, 8 * size)) * 2**20), 2.0**-20),
    ):
        tables = _core.sign_tables(weights.astype(np.int32), 2 * size)
        for byte in range(linear):
            factor = rng.integers(0, int(2**19 * unit * 2**20) // 2**19 + 2, (queries, 1)) * np.arange(16)
            tables[:, 2 * (size - byte) - 2], tables[:, 2 * (size - byte) - 1] = 16 * factor, factor
        for column in ({}, {"scales": rng.uniform(0.5, 1.5, n).astype(np.float32)}):
            base = -rng.random(queries) * size * 4 if column else None
            case = Case(codes, tables, np.full(queries, unit), base=base, column=column)
            for k in (1, 10, 1000):
                agree(case, k, (1, 3), alone=1)


@pytest.mark.parametrize("size", [40, 192, 511, 512, 513, 1100])
@pytest.mark.parametrize("linear", [0, 1])
def test_long_codes_whose_tables_are_unequal(isa: str, size: int, linear: int) -> None:
    """A few nibbles have most of the range, so that sums of four saturate, for near codes too."""
    rng = np.random.default_rng(size)
    n, queries, nibbles = 3000, 5, 2 * size
    tables = (rng.random((queries, nibbles, 16)) * 10 ** rng.uniform(2, 6, (1, nibbles, 1))).astype(np.int64)
    order = tables.argsort(axis=2)
    # Each code takes one of the least entries of some query nearly everywhere, and anything in a share of nibbles.
    query = rng.integers(0, queries, n)
    share = rng.choice([0.0, 0.01, 0.1, 1.0], n)
    chosen = order[query[:, None], np.arange(nibbles), rng.integers(0, 2, (n, nibbles))]
    chosen = np.where(rng.random((n, nibbles)) < share[:, None], rng.integers(0, 16, (n, nibbles)), chosen)
    codes = (chosen[:, ::2] << 4 | chosen[:, 1::2]).astype(np.uint8)
    codes[n // 2 :: 7] = codes[: len(codes[n // 2 :: 7])]  # duplicates
    if linear:
        factor = rng.integers(0, 1000, (queries, 1)) * np.arange(16)
        tables[:, -2], tables[:, -1] = 16 * factor, factor
    for column in ({}, {"scales": rng.uniform(0.9, 1.1, n).astype(np.float32)}):
        base = -rng.random(queries) * tables.max(axis=2).sum(axis=1) / 100 if column else None
        case = Case(codes, tables, np.ones(queries), base=base, column=column)
        for k in (1, 10, 200):
            agree(case, k, (1,), alone=1)


@pytest.mark.parametrize("near", [5, 40, 400])
@pytest.mark.parametrize("k", [10, 100, 5000])
def test_a_sample_that_is_not_like_the_rest(isa: str, k: int, near: int) -> None:
    """Near codes in some blocks alone: a bound from these is too low, one from others too high, and neither counts."""
    rng = np.random.default_rng(near)
    blocks, size = 1000, 9
    codes = rng.integers(0, 256, (32 * blocks, size), dtype=np.uint8)
    weights = np.round(rng.standard_normal((6, 8 * size)) * 2**20).astype(np.int32)
    nearest = np.packbits(weights > 0, axis=1)
    for query, shift in enumerate((0, 7, 15, 16, 17, 31)):  # the middles of as many equal parts among them
        step = blocks / 32
        at = 32 * (np.arange(near) * step + shift).astype(int) % len(codes) + rng.integers(0, 32, near)
        codes[at % len(codes)] = nearest[query]
    agree(Case(codes, _core.sign_tables(weights, 2 * size), np.full(6, 2.0**-20)), k, (1, 2), alone=6)


def test_many_scores_in_order(isa: str) -> None:
    """k in the thousands: scores of all sizes, ties, and ids that do not ascend with the place."""
    rng = np.random.default_rng(0)
    n, queries, cells = 30_000, 3, 7
    codes = rng.integers(0, 256, (n, 3), dtype=np.uint8)
    tables = (rng.random((queries, 6, 16)) * 10 ** rng.uniform(0, 6, (queries, 6, 1))).astype(np.int64)
    tables[2] %= 3
    offsets = rng.standard_normal((queries, cells)) * [[1e-3], [1e9], [0]]
    case = Case(codes, tables, np.ones(queries), cells=rng.integers(0, cells, n), n_cells=cells, offsets=offsets)
    for k in (300, 10_000, 30_000):
        agree(case, k, (1, 2), alone=1)


def test_codewords_of_which_all_are_alike(isa: str) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (5000, 9), dtype=np.uint8)
    case = Case(codes, np.zeros((3, 18, 16)), np.ones(3), offsets=np.array([[0.0], [1.0], [-1.0]]))
    agree(case, 7)


def test_limits_that_leave_the_range_of_float_prune_nothing(isa: str) -> None:
    codes = np.zeros((512, 1), np.uint8)
    codes[-1] = 1
    tables = np.full((1, 2, 16), 2)
    tables[0, 1, 1] = 1
    for unit in (1e-39, 1e-300, 1e300):
        case = Case(codes, tables, np.array([unit]), base=np.zeros(1), column={"scales": np.ones(512, np.float32)})
        agree(case, 1)
        assert case.best(1, 0, case.scores())[1] == [511]


def test_scales_that_are_all_zero(isa: str) -> None:
    columns = _core.CodeColumns(np.zeros((4, 1, 32), np.uint8), 100, scales=np.zeros(128, np.float32))
    queries = _core.QueryTables(np.ones((1, 2, 16), np.int32), np.ones(1), np.full((1, 1), 2.0), base=np.full(1, -3.0))
    scores, ids = columns.search(queries, 3, 1)
    assert ids.tolist() == [[0, 1, 2]] and scores.tolist() == [[2.0] * 3]


def test_ids_replace_the_places(isa: str) -> None:
    ids = np.arange(128)[::-1].copy()
    ids[99:] = -1
    columns = _core.CodeColumns(np.zeros((4, 1, 32), np.uint8), 100, ids=ids)
    queries = _core.QueryTables(np.ones((1, 2, 16), np.int32), np.ones(1), np.zeros((1, 1)))
    np.testing.assert_array_equal(columns.search(queries, 3, 1)[1], [[29, 30, 31]])
    live = live_words(np.arange(128) != 97)
    np.testing.assert_array_equal(columns.search(queries, 3, 1, live)[1], [[29, 31, 32]])


BLOCKS = np.zeros((2, 3, 32), np.uint8)


def some(queries=1, nibbles=6, visited=1, **options):
    return _core.QueryTables(
        options.pop("tables", np.zeros((queries, nibbles, 16), np.int32)),
        options.pop("units", np.ones(queries)),
        options.pop("offsets", np.zeros((queries, visited))),
        **options,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 65}, "do not fit n"),
        ({"n": 32}, "do not fit n"),
        ({"blocks": np.zeros((2, 0, 32), np.uint8)}, "1 to 2"),
        ({"blocks": np.zeros((2, 3, 16), np.uint8)}, "of 32 codes"),
        ({"ids": np.arange(63)}, "ids"),
        ({"cell_ends": np.array([1, 2])}, "need ids"),
        ({"ids": np.arange(64), "cell_ends": np.array([1, 3])}, "cells do not fit"),
        ({"ids": np.arange(64), "cell_ends": np.array([2, 1])}, "ascend"),
        ({"ids": np.arange(64), "cell_ends": np.array([-1, 2])}, "ascend"),
        ({"ids": np.arange(64), "cell_ends": np.zeros(0, np.int64)}, "at least one"),
        ({"scales": np.ones(40, np.float32)}, "scales"),
        ({"scales": np.full(64, -1, np.float32)}, "out of range"),
        ({"scales": np.full(64, np.nan, np.float32)}, "out of range"),
        ({"scales": np.full(64, np.inf, np.float32)}, "out of range"),
        ({"inverse_scales": np.ones(40, np.uint8), "inverse_scale_low": 1.0}, "inverse_scales"),
        ({"inverse_scales": np.ones(64, np.uint8)}, "low must be positive"),
        ({"inverse_scales": np.ones(64, np.uint8), "inverse_scale_low": 1.0, "inverse_scale_step": -0.1}, "step"),
        ({"inverse_scales": np.ones(64, np.uint8), "inverse_scale_low": np.nan}, "low"),
        ({"inverse_scales": np.ones(64, np.uint8), "scales": np.ones(64, np.float32)}, "one column"),
    ],
)
def test_columns_that_do_not_fit(options, message: str) -> None:
    options = {"blocks": BLOCKS, "n": 40} | options
    with pytest.raises(ValueError, match=message):
        _core.CodeColumns(options.pop("blocks"), options.pop("n"), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": np.zeros((1, 6, 15), np.int32)}, "16 values"),
        ({"units": np.ones(2)}, "units"),
        ({"offsets": np.zeros((2, 1))}, "offsets"),
        ({"base": np.zeros(2)}, "base"),
        ({"probes": np.zeros((1, 2), np.int64)}, "probes"),
        ({"cell_steps": np.zeros((1, 2), np.int32)}, "cell_steps"),
    ],
)
def test_tables_that_do_not_fit(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        some(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nibbles": 5}, "each nibble"),
        ({"visited": 1}, "each cell"),
        ({"visited": 3}, "each cell"),
        ({"visited": 0, "probes": np.zeros((1, 0), np.int64)}, "each cell"),
        ({"probes": np.array([[0, 2]])}, "not a cell"),
        ({"probes": np.array([[-1, 0]])}, "not a cell"),
        ({"units": np.zeros(1)}, "units"),
        ({"units": np.full(1, np.inf)}, "units"),
        ({"units": np.full(1, np.nan)}, "units"),
        ({"offsets": np.array([[0, np.inf]])}, "offsets"),
        ({"base": np.zeros(1)}, "base"),
        ({"cell_steps": np.array([[0, -1]], np.int32)}, "cell_steps"),
        ({"cell_steps": np.array([[0, 1 << 23]], np.int32)}, "cell_steps"),
        ({"tables": np.full((1, 6, 16), -1, np.int32)}, "negative"),
        ({"tables": np.full((1, 6, 16), -1, np.int32), "cell_steps": np.ones((1, 2), np.int32)}, "negative"),
        ({"tables": np.full((1, 6, 16), 2**31 - 1, np.int32), "cell_steps": np.ones((1, 2), np.int32)}, "exceed"),
    ],
)
def test_searches_that_do_not_fit(isa: str, options, message: str) -> None:
    columns = _core.CodeColumns(BLOCKS, 64, ids=np.arange(64), cell_ends=np.array([1, 2]))
    queries = some(**({"visited": 2} | options))
    with pytest.raises(ValueError, match=message):
        columns.search(queries, 1, 1)
    with pytest.raises(ValueError, match="probes" if "probes" in options else message):
        columns.score(queries, np.zeros((1, 1), np.int64))


def test_other_arguments_that_do_not_fit() -> None:
    columns = _core.CodeColumns(BLOCKS, 40)
    for k, threads in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="positive"):
            columns.search(some(), k, threads)
    with pytest.raises(ValueError, match="live"):
        columns.search(some(), 1, 1, np.zeros(40, np.uint32))
    with pytest.raises(ValueError, match="one row a query"):
        columns.score(some(), np.zeros((2, 1), np.int64))
    with pytest.raises(ValueError, match="out of range"):
        columns.score(some(), np.array([[40]]))
    with_column = _core.CodeColumns(BLOCKS, 40, scales=np.ones(64, np.float32))
    with pytest.raises(ValueError, match="base"):
        with_column.search(some(), 1, 1)
    with pytest.raises(ValueError, match="base"):
        with_column.search(some(base=np.full(1, np.nan)), 1, 1)
    with pytest.raises(TypeError):
        some(tables=np.zeros((1, 6, 16), np.int64))
    with pytest.raises(TypeError):
        columns.search(some(), 1, 1, np.arange(64, dtype=np.int32))


@pytest.mark.parametrize("k", [10, 100, 3000])
def test_threads_share_the_codes_where_queries_are_few(isa: str, k: int) -> None:
    """What each finds in its range is merged when all of them are done, and their memory is gone."""
    rng = np.random.default_rng(k)
    codes, tables = rng.integers(0, 256, (3 * 512 * 32, 4), np.uint8), rng.integers(0, 9, (2, 8, 16)).astype(np.int32)
    columns = _core.CodeColumns(scan_blocks(codes), len(codes))
    for _ in range(3):
        for rows in (slice(0, 1), slice(1, 2), slice(0, 2)):
            asked = np.ascontiguousarray(tables[rows])
            queries = _core.QueryTables(asked, np.ones(len(asked)), np.zeros((len(asked), 1)))
            scores, ids = columns.search(queries, k, 3)
            for table, own_scores, own_ids in zip(asked, scores, ids, strict=True):
                sums = sum(table[2 * j][codes[:, j] >> 4] + table[2 * j + 1][codes[:, j] & 15] for j in range(4))
                order = np.lexsort((np.arange(len(codes)), sums))[:k]
                np.testing.assert_array_equal(own_ids, order)
                np.testing.assert_array_equal(own_scores, sums[order])
