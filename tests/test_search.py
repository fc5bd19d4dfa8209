"""Search on codes against a NumPy oracle that reads code rows by itself: every codec, method and metric."""

import pickle
import threading

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from antisparse import (
    AntiSparseEncoder,
    CodeBase,
    Codec,
    InputError,
    InputTypeError,
    ITQEncoder,
    LearnedEncoder,
    LSHEncoder,
    Split,
    UnsupportedError,
    _core,
    hamming,
)
from antisparse.codec import BiasByte, BiasNibble, FixedLength, ProjectedSigns, Reduction, ScaleByte

X, Q = zoo.vectors(700, 1), zoo.vectors(30, 2)
every = pytest.mark.parametrize("name", zoo.NAMES)
rebuilding = pytest.mark.parametrize("name", zoo.REBUILDING)
comparing = pytest.mark.parametrize("name", zoo.COMPARING)
weighing = pytest.mark.parametrize("name", [name for name in zoo.COMPARING if name in zoo.REBUILDING])
ALONE = [name for name in zoo.NAMES if name not in zoo.COMPARING]  # searched by reconstruction alone


def base_of(name: str, vectors: np.ndarray = X) -> CodeBase:
    codec = zoo.codec(name)
    return CodeBase(codec, codec.encode(vectors))


def search_pairs(name: str) -> list[dict]:
    """The arguments of every search that a codec allows."""
    found: list[dict] = [{"method": method} for method in zoo.methods(name)]
    if {"hamming", "asymmetric", "reconstruction"} <= set(zoo.methods(name)):
        found += [{"shortlist": 50}, {"shortlist": 50, "shortlist_method": "asymmetric"}]
    if name in zoo.SPREAD:
        found += [{"method": "asymmetric", "query": "spread"}]
    return found


# The oracle. It knows the attributes of the fields and the bytes of a row (docs/codes.md), and no code of the library.


def bits_of(codec: Codec, codes: np.ndarray) -> np.ndarray:
    return np.unpackbits(codes, axis=1)[:, : codec.symbols.n_bits]


def combinations(codec: Codec, codes: np.ndarray) -> np.ndarray:
    """A x of every code row."""
    bits = bits_of(codec, codes).astype(int)
    matrix = codec.symbols.matrix
    if codec.symbols.columns_per_nibble != 16:
        return (2 * bits - 1) @ matrix.T
    numbers = bits.reshape(len(codes), -1, 4) @ [8, 4, 2, 1]
    return matrix[:, numbers + 16 * np.arange(numbers.shape[1])].sum(2).T


def cells_of(codec: Codec, codes: np.ndarray) -> np.ndarray:
    if codec.cells is None:
        return np.zeros(len(codes), int)
    at = -(-(codec.symbols.n_bits + 4 * isinstance(codec.bias, BiasNibble)) // 8)
    numbers = codes[:, at].astype(int)
    return numbers if len(codec.cells.means) <= 256 else numbers + 256 * codes[:, at + 1].astype(int)


def scales_of(codec: Codec, codes: np.ndarray) -> np.ndarray:
    if isinstance(codec.scale, FixedLength):
        return codec.scale.sigma / np.linalg.norm(combinations(codec, codes), axis=1)
    if isinstance(codec.scale, ScaleByte):  # the last byte but the bias
        byte = codes[:, -1 - isinstance(codec.bias, BiasByte)].astype(float)
        return 1 / (codec.scale.low + codec.scale.step * byte)
    return np.ones(len(codes))


def rebuilt_of(codec: Codec, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each code's cell, and what its symbols add: in reduced dimensions."""
    means = np.zeros((1, codec.symbols.matrix.shape[0])) if codec.cells is None else codec.cells.means
    return means[cells_of(codec, codes)], scales_of(codec, codes)[:, None] * combinations(codec, codes)


def prepared(codec: Codec, V: np.ndarray) -> np.ndarray:
    return V / np.linalg.norm(V, axis=1, keepdims=True) if codec.metric_name == "cosine" else V


def oracle(codec: Codec, codes: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The reconstruction distance of every query to every code."""
    means, added = rebuilt_of(codec, codes)
    axes = np.eye(codec.dimension) if codec.reduction.axes is None else codec.reduction.axes
    vectors = codec.reduction.mean + (means + added) @ axes
    queries = prepared(codec, queries)
    if codec.metric_name == "ip":
        return -queries @ vectors.T
    if codec.bias is None:
        squared = ((queries[:, None] - vectors) ** 2).sum(2)
    else:  # ||added||^2 + 2 mean . added is what the bias says that it is
        centred = queries - codec.reduction.mean
        reduced = centred @ axes.T
        if isinstance(codec.bias, BiasByte):
            bias = codec.bias.low + codec.bias.step * codes[:, -1]
        else:
            cells, number = cells_of(codec, codes), codes[:, codec.symbols.n_bits // 8] & 15
            bias = codec.bias.low[cells] + codec.bias.step[cells] * number
        squared = ((reduced[:, None] - means) ** 2).sum(2) - 2 * reduced @ added.T + scales_of(codec, codes) * bias
        squared += ((centred**2).sum(1) - (reduced**2).sum(1))[:, None]
    return np.maximum(squared, 0) / (2 if codec.metric_name == "cosine" else 1)


def weights_of(codec: Codec, queries: np.ndarray) -> np.ndarray:
    axes = np.eye(codec.dimension) if codec.reduction.axes is None else codec.reduction.axes
    return (prepared(codec, queries) - codec.reduction.mean) @ axes.T @ codec.symbols.matrix


def disagreeing(codec: Codec, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (np.abs(weights)[:, None] * ((weights >= 0)[:, None] != bits_of(codec, codes).astype(bool))).sum(2)


def ordered(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.array([np.lexsort((np.arange(len(row)), row))[:k] for row in distances])
    return np.take_along_axis(distances, order, 1), order


def assert_best(found: tuple[np.ndarray, np.ndarray], full: np.ndarray, room: float) -> None:
    """The k least of the oracle's distances, each as it is but for rounding, ordered by (distance, id)."""
    distances, ids = found
    k = distances.shape[1]
    np.testing.assert_allclose(distances, np.take_along_axis(full, ids, 1), rtol=0, atol=room)
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :k], rtol=0, atol=room)
    assert [len(set(row)) for row in ids] == [k] * len(ids)
    rises, ties = np.diff(distances, axis=1), np.diff(ids, axis=1)
    shown_as_zero = distances[:, 1:] == 0  # estimates below 0 keep their order
    assert ((rises > 0) | ((rises == 0) & (ties > 0)) | shown_as_zero).all()


def assert_same(found: tuple, expected: tuple) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@rebuilding
def test_reconstruction_is_what_the_fields_say(isa: str, name: str) -> None:
    base = base_of(name)
    full = oracle(base.codec, base.codes, Q)
    size = float((prepared(base.codec, Q) ** 2).sum(1).max() + (prepared(base.codec, X) ** 2).sum(1).max())
    for k in (1, 15, 700):
        assert_best(base.search(Q, k), full, 1e-5 * size)  # of which a rounded step of a bias byte takes most


@rebuilding
def test_rebuilt_vectors_are_what_the_fields_say(name: str) -> None:
    codec, codes = zoo.codec(name), zoo.codec(name).encode(X)
    means, added = rebuilt_of(codec, codes)
    axes = np.eye(10) if codec.reduction.axes is None else codec.reduction.axes
    np.testing.assert_allclose(codec.decode(codes), codec.reduction.mean + (means + added) @ axes, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in zoo.REBUILDING if isinstance(zoo.codec(n).scale, FixedLength)])
def test_without_a_bias_distances_are_those_to_the_rebuilt_vectors(name: str) -> None:
    base = base_of(name)
    codec, queries = base.codec, prepared(base.codec, Q)
    rebuilt = codec.decode(base.codes)
    full = {
        "l2": lambda: ((queries[:, None] - rebuilt) ** 2).sum(2),
        "cosine": lambda: ((queries[:, None] - rebuilt) ** 2).sum(2) / 2,
        "ip": lambda: -Q @ rebuilt.T,
    }[codec.metric_name]()
    assert_best(base.search(Q, 700), full, 1e-6 * float((queries**2).sum(1).max() + (rebuilt**2).sum(1).max()))


@comparing
def test_hamming_is_the_number_of_bits_that_differ(isa: str, name: str) -> None:
    base = base_of(name)
    distances, ids = base.search(Q, 40, method="hamming")
    one, other = (bits_of(base.codec, codes) for codes in (base.codec.encode(Q), base.codes))
    expected, order = ordered((one[:, None] != other).sum(2), 40)
    assert distances.dtype == np.int32
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(ids, order)  # among many ties
    assert (np.diff(distances, axis=1) == 0).any()


def test_hamming_by_the_library_is_that_of_a_code_of_nothing_but_signs() -> None:
    base = base_of("lsh")
    expected, order = ordered(hamming(base.codec.encode(Q), base.codes), 9)
    assert_same(base.search(Q, 9, method="hamming"), (expected, order))


@weighing
def test_asymmetric_is_the_weight_of_disagreeing_bits(isa: str, name: str) -> None:
    base = base_of(name)
    weights = weights_of(base.codec, Q)
    full = disagreeing(base.codec, base.codes, weights)
    assert_best(base.search(Q, 15, method="asymmetric"), full, 1e-6 * float(np.abs(weights).sum(1).max()))


@pytest.mark.parametrize("name", zoo.SPREAD)
def test_spread_queries_use_the_representation(name: str) -> None:
    encoder = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN)
    base = CodeBase(encoder, encoder.transform(X))
    x = encoder.transform_real(Q)
    np.testing.assert_allclose(np.abs(x).max(axis=1), 1)
    full = disagreeing(base.codec, base.codes, x)
    assert_best(base.search(Q, 5, method="asymmetric", query="spread"), full, 2e-6 * base.codec.symbols.n_bits)


@weighing
@pytest.mark.parametrize("method", ["hamming", "asymmetric"])
def test_a_shortlist_is_ranked_anew(name: str, method: str) -> None:
    base = base_of(name)
    everything = base.search(Q, 700)
    _, candidates = base.search(Q, 50, method=method)
    distances, ids = base.search(Q, 10, shortlist=50, shortlist_method=method)
    for q in range(len(Q)):
        keep = np.isin(everything[1][q], candidates[q])
        np.testing.assert_array_equal(ids[q], everything[1][q][keep][:10])
        np.testing.assert_array_equal(distances[q], everything[0][q][keep][:10])
    for more in (700, 5000):
        assert_same(base.search(Q, 10, shortlist=more, shortlist_method=method), base.search(Q, 10))
    if method == "asymmetric" and name in zoo.SPREAD:
        _, candidates = base.search(Q, 50, method=method, query="spread")
        ids = base.search(Q, 10, shortlist=50, shortlist_method=method, query="spread")[1]
        assert all(set(row) <= set(listed) for row, listed in zip(ids, candidates, strict=True))


@every
def test_equal_codes_are_found_in_the_order_of_their_numbers(name: str) -> None:
    """Every code three times, shuffled: those alike have one distance, and the lowest number comes first."""
    codec = zoo.codec(name)
    codes = np.tile(codec.encode(X[:60]), (3, 1))[np.random.default_rng(0).permutation(180)]
    base = CodeBase(codec, codes)
    for arguments in search_pairs(name):
        if "shortlist" in arguments:
            arguments = {**arguments, "shortlist": 180}
        distances, ids = base.search(Q, 180, **arguments)
        for row, numbers in zip(distances, ids, strict=True):
            np.testing.assert_array_equal(np.lexsort((numbers, row)), np.arange(180))
            by_number = row[np.argsort(numbers)]
            for code in np.unique(codes, axis=0):
                assert len(set(by_number[(codes == code).all(axis=1)])) == 1
        for k in (1, 7, 100):  # a tie at the end is cut by number
            assert_same(
                base.search(Q, k, **arguments),
                (np.ascontiguousarray(distances[:, :k]), np.ascontiguousarray(ids[:, :k])),
            )


@every
def test_always_k_columns(name: str) -> None:
    base = base_of(name)
    few, empty = CodeBase(base.codec, base.codes[:3]), CodeBase(base.codec, base.codes[:0])
    for arguments in search_pairs(name):
        missing = np.iinfo(np.int32).max if arguments.get("method") == "hamming" else np.inf
        lists = [{**arguments, "shortlist": n} for n in (2, 9)] if "shortlist" in arguments else [arguments]
        for case in lists:
            distances, ids = few.search(Q, 6, **case)
            count = min(3, case.get("shortlist", 3))
            assert distances.shape == ids.shape == (30, 6) and ids.dtype == np.int64
            assert (ids[:, count:] == -1).all() and (ids[:, :count] >= 0).all()
            assert (distances[:, count:] == missing).all() and (distances[:, :count] < missing).all()
            distances, ids = empty.search(Q, 2, **case)
            assert (ids == -1).all() and (distances == missing).all()
            distances, ids = base.search(Q[:0], 4, **case)
            assert distances.shape == ids.shape == (0, 4)
        assert base.search(Q, **arguments)[1].shape == (30, 10)
    assert len(empty) == 0 and len(few) == 3


@every
def test_a_single_query_has_one_row_less(name: str) -> None:
    base = base_of(name)
    for arguments in search_pairs(name):
        whole = base.search(Q, 5, **arguments)
        for row in (0, 17):
            for single in (Q[row], Q[row].tolist(), Q[row].astype(np.float32)):
                distances, ids = base.search(single, 5, **arguments)
                assert distances.shape == ids.shape == (5,)
                assert_same((distances, ids), (whole[0][row], whole[1][row]))


@every
def test_results_do_not_depend_on_batch_threads_dtype_and_order(isa: str, name: str) -> None:
    base = base_of(name)
    for arguments in search_pairs(name):
        whole = base.search(Q, 7, n_threads=1, **arguments)
        for same in (Q.astype(np.float32), Q.astype(np.float16), np.asfortranarray(Q), np.repeat(Q, 2, 1)[:, ::2]):
            assert_same(base.search(same, 7, n_threads=2, **arguments), whole)
        for start, size in ((0, 1), (3, 9), (20, 10), (29, 1)):
            rows = slice(start, start + size)
            assert_same(base.search(Q[rows], 7, n_threads=3, **arguments), tuple(part[rows] for part in whole))
            assert_same(base.search(np.asfortranarray(Q)[rows], 7, **arguments), tuple(part[rows] for part in whole))


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(zoo.NAMES),
    rows=st.lists(st.integers(0, 29), max_size=12),
    threads=st.integers(1, 3),
    k=st.integers(1, 20),
    data=st.data(),
)
def test_any_batch_of_queries_finds_the_same(name: str, rows: list[int], threads: int, k: int, data) -> None:
    base, arguments = base_of(name, X[:200]), data.draw(st.sampled_from(search_pairs(name)))
    whole = base.search(Q, k, n_threads=1, **arguments)
    chosen = np.array(rows, int)
    assert_same(base.search(Q[chosen], k, n_threads=threads, **arguments), tuple(part[chosen] for part in whole))


@every
def test_every_instruction_set_finds_the_same(name: str) -> None:
    """The scan adds integers; only the weights of queries, which are sums of floats, may differ in a last bit."""
    base, before = base_of(name), _core.isa()
    found = {}
    for isa in _core.isas():
        _core.use_isa(isa)
        try:
            found[isa] = [CodeBase(base.codec, base.codes).search(Q, 5, **a) for a in search_pairs(name)]
        finally:
            _core.use_isa(before)
    for one, other in ((one, other) for isa in found for one, other in zip(found[before], found[isa], strict=True)):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5, atol=1e-5)
        assert (one[1] == other[1]).mean() > 0.98


def test_many_queries_are_searched_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("codebooks cells", "spread", "signs ip cells scale"):
        base = base_of(name)
        expected = [base.search(Q, 5, **arguments) for arguments in search_pairs(name)]
        with monkeypatch.context() as patch:
            for limit in ("_TABLE_BYTES", "_LEAST_QUERIES", "_MOST_QUERIES"):
                patch.setattr(f"antisparse.scan.search.{limit}", 7)
            for arguments, whole in zip(search_pairs(name), expected, strict=True):
                assert_same(base.search(Q, 5, **arguments), whole)


@every
def test_bytes_per_vector_are_those_of_a_row(name: str) -> None:
    """All of a row, and four bytes more where the length of every rebuilt vector must be known."""
    base = base_of(name)
    fixed = isinstance(base.codec.scale, FixedLength)
    assert base.bytes_per_vector == base.codec.n_bytes + 4 * fixed
    blocks = -(-len(X) // 32) if base.codec.cells is None else None
    if blocks is not None:  # and these are what is held
        columns = base._part.columns
        held = columns.blocks.nbytes + (0 if columns.scales is None else columns.scales.nbytes)
        assert held == 32 * blocks * base.bytes_per_vector


@every
def test_a_base_gives_its_codes_back_and_searches_alike_when_pickled(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    for given_codes in (codes, np.asfortranarray(codes), np.repeat(codes, 2, 0)[::2]):
        base = CodeBase(codec, given_codes, n_threads=1)
        np.testing.assert_array_equal(base.codes, codes)
        again = pickle.loads(pickle.dumps(base))
        assert again.n_threads == 1 and again.codec == codec and len(again) == 700
        np.testing.assert_array_equal(again.codes, codes)
        for arguments in search_pairs(name):
            assert_same(again.search(Q, 5, **arguments), base.search(Q, 5, **arguments))
    assert repr(base) == f"CodeBase(700 codes, {codec!r})"


def test_a_base_keeps_its_own_codes() -> None:
    for name in ("lsh", "codebooks cells nibble", "signs scale"):
        codec = zoo.codec(name)
        given_codes = codec.encode(X)
        base, codes = CodeBase(codec, given_codes), given_codes.copy()
        expected = base.search(Q, 5)
        given_codes[:] = 0
        assert_same(base.search(Q, 5), expected)
        np.testing.assert_array_equal(base.codes, codes)


def neighbours(encoder, vectors: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fitted = clone(encoder).fit(vectors)
    return CodeBase(fitted, fitted.transform(vectors)).search(queries, 7)


SCALING = {
    "spread": AntiSparseEncoder(40, random_state=0),
    "lsh": LSHEncoder(37, frame="gaussian", random_state=0),
    "itq long": ITQEncoder(30, random_state=0),
}
SCALING_LEARNED = {
    "signs": LearnedEncoder(6, split=Split("signs"), random_state=0),
    "signs scale": LearnedEncoder(7, split=Split("signs", scale=True), random_state=0),
    "codebooks": LearnedEncoder(6, split=Split("codebooks"), random_state=0),
    "codebooks nibble": LearnedEncoder(6, split=Split("codebooks", bias="nibble"), random_state=0),
    "codebooks ip": LearnedEncoder(6, metric="ip", split=Split("codebooks", bias="none"), random_state=0),
}


@pytest.mark.parametrize(
    ("encoder", "power"),
    [(encoder, power) for encoder in SCALING for power in (-130, -80, 60, 120)]
    + [(encoder, power) for encoder in SCALING_LEARNED for power in (-300, -80, 60, 300)],
)
def test_results_scale_with_the_data(encoder: str, power: int) -> None:
    chosen = (SCALING | SCALING_LEARNED)[encoder]
    expected = neighbours(chosen, X, Q)
    found = neighbours(chosen, np.ldexp(X, power), np.ldexp(Q, power))
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(np.ldexp(found[0], -2 * power), expected[0], rtol=1e-6)


@pytest.mark.parametrize("name", zoo.REBUILDING)
def test_constant_training_vectors(name: str) -> None:
    encoder = clone(zoo.ENCODERS[name]).fit(np.ones((max(20, zoo.codec(name).n_cells), 10)))
    distances, ids = CodeBase(encoder, encoder.transform(X)).search(Q, 3)
    assert (ids >= 0).all() and np.isfinite(distances).all()


def test_a_code_that_rebuilds_nothing_is_at_a_right_angle_to_every_query() -> None:
    frame = np.array([[1.0, 1.0], [0.0, 0.0]])
    for metric in ("l2", "ip"):
        codec = Codec(metric, Reduction(np.array([3.0, 4.0])), ProjectedSigns(frame), scale=FixedLength(2.0))
        base = CodeBase(codec, np.array([[0b10000000], [0b11000000]], np.uint8))
        distances, ids = base.search(np.array([[4.0, 6.0]]), 2)
        values = {"l2": [5 + 4, 5], "ip": [-36, -44]}[metric]
        np.testing.assert_array_equal(ids[0], np.argsort(values, kind="stable"))
        np.testing.assert_allclose(distances[0], np.sort(values), rtol=1e-6)


def test_spectral_hashing_only_has_hamming() -> None:
    base = base_of("spectral")
    assert base.bytes_per_vector == 3
    assert (base.search(X[:9], 1, method="hamming")[0] == 0).all()
    for queries in (Q, Q[:0]):
        with pytest.raises(UnsupportedError, match="cannot rebuild"):
            base.search(queries, 1)
        with pytest.raises(UnsupportedError, match="no real-valued query"):
            base.search(queries, 1, method="asymmetric")
        with pytest.raises(UnsupportedError, match="cannot rebuild"):
            base.search(queries, 1, shortlist=10)


@pytest.mark.parametrize("name", ALONE)
def test_codebooks_and_cells_are_searched_by_reconstruction_alone(name: str) -> None:
    base = base_of(name)
    chosen = base.codec.symbols.columns_per_nibble == 16
    reason = "have no signs to compare" if chosen else "different means do not compare"
    for arguments in ({"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 50}):
        for queries in (Q, Q[:0]):
            with pytest.raises(UnsupportedError, match=reason):
                base.search(queries, 3, **arguments)


def test_there_are_codecs_of_every_kind() -> None:
    """So that no test above is without its cases."""
    kinds = {(type(c.symbols).__name__, c.metric_name, c.n_cells > 1) for c in map(zoo.codec, zoo.NAMES)}
    for symbols in ("Codebooks", "LearnedSigns"):
        assert {(symbols, "l2", False), (symbols, "l2", True), (symbols, "cosine", False)} <= kinds
        assert (symbols, "ip", True) in kinds
    assert {("SpreadSigns", metric, False) for metric in ("l2", "cosine", "ip")} <= kinds
    fields = {(type(c.scale).__name__, type(c.bias).__name__, c.n_cells > 1) for c in map(zoo.codec, zoo.NAMES)}
    assert {
        ("ScaleByte", "BiasByte", True),
        ("ScaleByte", "NoneType", True),
        ("NoneType", "BiasNibble", True),
    } <= fields
    assert len(ALONE) >= 10 and len(zoo.COMPARING) >= 12
    assert any(zoo.codec(name).n_cells > 256 for name in zoo.NAMES)
    assert {zoo.codec(name).reduction.axes is None for name in zoo.NAMES} == {True, False}


def test_bad_arguments_are_named() -> None:
    encoder = LSHEncoder(16, random_state=0).fit(X)
    codes = encoder.transform(X)
    base = CodeBase(encoder, codes)
    with pytest.raises(InputError, match="not fitted"):
        CodeBase(LSHEncoder(16), codes)
    with pytest.raises(InputTypeError, match="codec is a str"):
        CodeBase("lsh", codes)
    with pytest.raises(InputTypeError, match="codes has dtype float64"):
        CodeBase(encoder, codes.astype(float))
    with pytest.raises(InputError, match="codes has 1 bytes a row; codes of this codec have 2"):
        CodeBase(encoder, codes[:, :1])
    with pytest.raises(InputError, match="codes has 4 bytes a row; codes of this codec have 2"):
        CodeBase(encoder, np.hstack([codes, codes]))
    with pytest.raises(InputError, match="n_threads = 0"):
        CodeBase(encoder, codes, n_threads=0)
    with pytest.raises(InputError, match="n_threads = 0"):
        base.search(Q, 1, n_threads=0)
    with pytest.raises(InputError, match="Q row 0 is too large"):
        base.search(np.full((1, 10), 1.7e308), 1)
    for k in (0, -3):
        with pytest.raises(InputError, match=f"k = {k}"):
            base.search(Q, k)
    with pytest.raises(InputTypeError, match="k must be an integer"):
        base.search(Q, 2.0)
    with pytest.raises(InputError, match="method = 'cosine'"):
        base.search(Q, 1, method="cosine")
    with pytest.raises(InputError, match="query = 'code'"):
        base.search(Q, 1, query="code")
    with pytest.raises(UnsupportedError, match="no signs of a spread representation"):
        base.search(Q, 1, method="asymmetric", query="spread")
    with pytest.raises(InputError, match="shortlist = 0"):
        base.search(Q, 1, shortlist=0)
    with pytest.raises(InputError, match="re-ranks by reconstruction"):
        base.search(Q, 1, method="hamming", shortlist=10)
    with pytest.raises(InputError, match="shortlist_method"):
        base.search(Q, 1, shortlist=10, shortlist_method="reconstruction")
    with pytest.raises(InputError, match="Q has 5 columns but the codec was fitted on vectors of 10"):
        base.search(Q[:, :5], 1)
    with pytest.raises(InputError, match="Q has 5 columns"):
        base.search(Q[0, :5], 1)
    with pytest.raises(InputError, match="Q has shape"):
        base.search(Q[None], 1)
    bad = Q.copy()
    bad[4, 2] = np.nan
    with pytest.raises(InputError, match="Q row 4, column 2 is nan"):
        base.search(bad, 1)
    with pytest.raises(InputError, match="Q row 0, column 2 is nan"):
        base.search(bad[4], 1)
    for masked in (np.ma.masked_less(Q, 1), np.ma.masked_less(Q[0], 1)):
        with pytest.raises(InputError, match="Q has masked entries"):
            base.search(masked, 1)


def test_codes_that_name_a_cell_there_is_not_are_refused() -> None:
    codec = zoo.codec("codebooks cells")
    codes = codec.encode(X)
    codes[5, codec.layout.symbol_bytes] = 200
    with pytest.raises(InputError, match="codes names cell 200, but the codec has 9"):
        CodeBase(codec, codes)


def test_searches_run_side_by_side() -> None:
    base = base_of("spread")
    expected = base.search(Q, 10)[1]
    found: list[bool] = []

    def work() -> None:
        for _ in range(10):
            found.append(np.array_equal(base.search(Q, 10, n_threads=2)[1], expected))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60 and all(found)


def test_a_pickled_encoder_searches_alike() -> None:
    for name in ("spread", "codebooks cells nibble"):
        encoder = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN)
        codes = encoder.transform(X)
        again = pickle.loads(pickle.dumps(encoder))
        np.testing.assert_array_equal(again.transform(X), codes)
        assert_same(CodeBase(again, codes).search(Q, 5), CodeBase(encoder, codes).search(Q, 5))


def test_a_bias_step_next_to_a_power_of_two_can_be_searched() -> None:
    codec = zoo.codec("codebooks")
    bias = BiasByte(codec.bias.low, float(np.nextafter(2.0, 0)), codec.bias.alpha, codec.bias.beta)
    changed = Codec("l2", codec.reduction, codec.symbols, bias=bias)
    assert (CodeBase(changed, changed.encode(X)).search(codec.reduction.mean[None], 2)[1] >= 0).all()


def test_weights_are_rounded_to_24_bits(isa: str) -> None:
    weights = np.array([[1.0, -0.3, 1e-9], [0.0, 0.0, 0.0], [1e300, -1e299, 5e299]])
    integers, units = _core.round_rows(weights, 0.0)
    assert np.abs(integers).max() <= 2**23
    np.testing.assert_allclose(integers * units[:, None], weights, atol=2.0**-23 * np.abs(weights).max(1).max(), rtol=0)
    assert np.abs(integers[0] * units[0] - weights[0]).max() <= 2.0**-23


@pytest.mark.parametrize("name", ["lsh", "signs", "codebooks", "signs cells scale"])
def test_a_query_beyond_all_bounds_is_named(name: str) -> None:
    queries = np.concatenate([Q[:2], np.full((1, 10), 1e200)])
    with pytest.raises(InputError, match="Q row 2 is too large"):
        base_of(name).search(queries, 3)
