import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from antisparse import (
    AntiSparseEncoder,
    CodeBase,
    InputError,
    InputTypeError,
    ITQEncoder,
    LSHEncoder,
    SpectralHashEncoder,
    UnsupportedError,
    hamming,
    unpack,
)
from antisparse.forms import round_weights
from antisparse.words import selection

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 12)) * np.linspace(3, 0.5, 12) + 1
Q = RNG.standard_normal((30, 12)) * np.linspace(3, 0.5, 12) + 1

SPREAD = {"frame": "tight", "effort": 0, "random_state": 0}
ENCODERS = {
    "antisparse": AntiSparseEncoder(40, **SPREAD),
    "paper": AntiSparseEncoder.paper(40, random_state=0),
    "pca": AntiSparseEncoder(40, pca=7, **SPREAD),
    "few bits": AntiSparseEncoder(9, **SPREAD),
    "block": AntiSparseEncoder(40, frame="block", effort=0, block_size=5, random_state=0),
    "refined": AntiSparseEncoder(40, frame="block", effort=3, block_size=5, random_state=0),
    "learned": AntiSparseEncoder(40, bias=False, random_state=0),
    "learned, few bits": AntiSparseEncoder(9, bias=False, pca=10, random_state=0),
    "lsh": LSHEncoder(37, frame="gaussian", random_state=0),
    "itq": ITQEncoder(10, random_state=0),
    "itq long": ITQEncoder(30, random_state=0),
}


@pytest.fixture(params=ENCODERS, scope="module")
def base(request: pytest.FixtureRequest) -> CodeBase:
    encoder = ENCODERS[request.param].fit(X)
    return CodeBase(encoder, encoder.transform(X))


def ordered(distances, k):
    order = np.array([np.lexsort((np.arange(len(row)), row))[:k] for row in distances])
    return np.take_along_axis(distances, order, 1), order


def test_hamming_is_the_number_of_bits_that_differ(base: CodeBase) -> None:
    distances, ids = base.search(Q, 15, method="hamming")
    expected, order = ordered(hamming(base.encoder.transform(Q), base.codes), 15)
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(ids, order)


def test_asymmetric_is_the_weight_of_disagreeing_bits(base: CodeBase) -> None:
    distances, ids = base.search(Q, 15, method="asymmetric")
    encoder = base.encoder
    matrix = encoder.matrix_ if hasattr(encoder, "matrix_") else encoder.rotation_
    weights = encoder.reduce(Q) @ matrix
    signs = unpack(base.codes, encoder.n_bits)
    full = (np.abs(weights)[:, None] * (np.where(weights < 0, -1, 1)[:, None] != signs)).sum(2)
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :15], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(distances, np.take_along_axis(full, ids, 1), rtol=1e-5, atol=1e-6)


def test_reconstruction_is_the_distance_to_the_rebuilt_vector(base: CodeBase) -> None:
    rebuilt = base.encoder.inverse_transform(base.codes)
    full = ((Q[:, None] - rebuilt) ** 2).sum(2)
    distances, ids = base.search(Q, 15)
    size = (Q**2).sum(1)[:, None] + (rebuilt**2).sum(1)
    assert (np.abs(distances - np.take_along_axis(full, ids, 1)) <= 1e-5 * np.take_along_axis(size, ids, 1)).all()
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :15], atol=1e-4)
    assert (np.diff(distances, axis=1) >= 0).all()


def test_spread_queries_use_the_representation() -> None:
    encoder = AntiSparseEncoder(40, **SPREAD).fit(X)
    base = CodeBase(encoder, encoder.transform(X))
    distances, _ = base.search(Q, 5, method="asymmetric", query="spread")
    x = encoder.transform_real(Q)
    assert np.abs(x).max() == 1
    full = (np.abs(x)[:, None] * (np.where(x < 0, -1, 1)[:, None] != unpack(base.codes, 40))).sum(2)
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :5], atol=1e-5)


@pytest.mark.parametrize("method", ["hamming", "asymmetric"])
def test_a_shortlist_is_ranked_anew(base: CodeBase, method) -> None:
    everything = base.search(Q, 700)
    _, candidates = base.search(Q, 50, method=method)
    distances, ids = base.search(Q, 10, shortlist=50, shortlist_method=method)
    for q in range(len(Q)):
        keep = np.isin(everything[1][q], candidates[q])
        np.testing.assert_array_equal(ids[q], everything[1][q][keep][:10])
        np.testing.assert_array_equal(distances[q], everything[0][q][keep][:10])
    whole = base.search(Q, 10, shortlist=5000, shortlist_method=method)
    np.testing.assert_array_equal(whole[1], everything[1][:, :10])


def test_always_k_columns(base: CodeBase) -> None:
    few = CodeBase(base.encoder, base.codes[:3])
    for arguments in ({"method": "hamming"}, {"method": "asymmetric"}, {}, {"shortlist": 2}, {"shortlist": 9}):
        distances, ids = few.search(Q, 6, **arguments)
        count = min(3, arguments.get("shortlist", 3))
        assert distances.shape == ids.shape == (30, 6)
        assert (ids[:, count:] == -1).all() and (ids[:, :count] >= 0).all()
        missing = np.iinfo(np.int32).max if arguments.get("method") == "hamming" else np.inf
        assert (distances[:, count:] == missing).all()
    empty = CodeBase(base.encoder, base.codes[:0])
    assert (empty.search(Q, 2)[1] == -1).all() and len(empty) == 0
    assert base.search(Q[:0], 4)[1].shape == (0, 4)


@settings(deadline=None, max_examples=20)
@given(start=st.integers(0, 29), size=st.integers(1, 30), threads=st.integers(1, 3))
def test_results_do_not_depend_on_the_batch(start: int, size: int, threads: int) -> None:
    encoder = ENCODERS["pca"].fit(X)
    base = CodeBase(encoder, encoder.transform(X))
    for method in ("hamming", "asymmetric", "reconstruction"):
        whole = base.search(Q, 7, method=method, n_threads=1)
        part = base.search(Q[start : start + size], 7, method=method, n_threads=threads)
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[start : start + size], b)


def test_bytes_per_vector_counts_what_the_scan_reads(base: CodeBase) -> None:
    bits = -(-base.encoder.n_bits // 8)
    assert bits <= base.bytes_per_vector <= bits + 8


@pytest.mark.parametrize("name", ["antisparse", "itq long", "lsh"])
@pytest.mark.parametrize("power", [-130, -80, 60, 120])
def test_results_scale_with_the_data(name: str, power: int) -> None:
    encoder, scaled = clone(ENCODERS[name]).fit(X), clone(ENCODERS[name]).fit(np.ldexp(X, power))
    expected = CodeBase(encoder, encoder.transform(X)).search(Q, 7)
    found = CodeBase(scaled, scaled.transform(np.ldexp(X, power))).search(np.ldexp(Q, power), 7)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(np.ldexp(found[0], -2 * power), expected[0], rtol=1e-6)


def test_constant_training_vectors(base: CodeBase) -> None:
    encoder = clone(base.encoder).fit(np.ones((20, 12)))
    distances, ids = CodeBase(encoder, encoder.transform(X)).search(Q, 3)
    assert (ids >= 0).all() and np.isfinite(distances).all()


def test_spectral_hashing_only_has_hamming() -> None:
    encoder = SpectralHashEncoder(20).fit(X)
    base = CodeBase(encoder, encoder.transform(X))
    assert base.bytes_per_vector == 3
    assert (base.search(X[:9], 1, method="hamming")[0] == 0).all()
    with pytest.raises(UnsupportedError, match="cannot rebuild"):
        base.search(Q, 1)
    with pytest.raises(UnsupportedError, match="no real-valued query"):
        base.search(Q, 1, method="asymmetric")
    with pytest.raises(UnsupportedError, match="cannot rebuild"):
        base.search(Q, 1, shortlist=10)


def test_bad_arguments_are_named() -> None:
    encoder = LSHEncoder(16, random_state=0).fit(X)
    codes = encoder.transform(X)
    base = CodeBase(encoder, codes)
    with pytest.raises(InputError, match="not fitted"):
        CodeBase(LSHEncoder(16), codes)
    with pytest.raises(InputTypeError, match="codes has dtype float64"):
        CodeBase(encoder, codes.astype(float))
    with pytest.raises(InputError, match="codes has 1 bytes a row"):
        CodeBase(encoder, codes[:, :1])
    with pytest.raises(InputError, match="codes has 4 bytes a row; the encoder's have 2"):
        CodeBase(encoder, np.hstack([codes, codes]))
    with pytest.raises(InputError, match="Q row 0 is too large"):
        base.search(np.full((1, 12), 1.7e308), 1)
    for k in (0, -3):
        with pytest.raises(InputError, match=f"k = {k}"):
            base.search(Q, k)
    with pytest.raises(InputTypeError, match="k must be an integer"):
        base.search(Q, 2.0)
    with pytest.raises(InputError, match="method = 'cosine'"):
        base.search(Q, 1, method="cosine")
    with pytest.raises(InputError, match="query = 'code'"):
        base.search(Q, 1, query="code")
    with pytest.raises(UnsupportedError, match="no spread representation"):
        base.search(Q, 1, method="asymmetric", query="spread")
    with pytest.raises(InputError, match="shortlist = 0"):
        base.search(Q, 1, shortlist=0)
    with pytest.raises(InputError, match="re-ranks by reconstruction"):
        base.search(Q, 1, method="hamming", shortlist=10)
    with pytest.raises(InputError, match="shortlist_method"):
        base.search(Q, 1, shortlist=10, shortlist_method="reconstruction")
    with pytest.raises(InputError, match=r"Q: .*features"):
        base.search(Q[:, :5], 1)
    bad = Q.copy()
    bad[4, 2] = np.nan
    with pytest.raises(InputError, match="Q row 4, column 2 is nan"):
        base.search(bad, 1)


def test_weights_are_rounded_to_24_bits() -> None:
    weights = np.array([[1.0, -0.3, 1e-9], [0.0, 0.0, 0.0], [1e300, -1e299, 5e299]])
    integers, units = round_weights(weights)
    assert np.abs(integers).max() <= 2**23
    np.testing.assert_allclose(integers * units[:, None], weights, atol=2.0**-23 * np.abs(weights).max(1).max(), rtol=0)
    assert np.abs(integers[0] * units[0] - weights[0]).max() <= 2.0**-23


def test_searches_run_side_by_side() -> None:
    encoder = AntiSparseEncoder(40, **SPREAD).fit(X)
    base = CodeBase(encoder, encoder.transform(X))
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
    encoder = AntiSparseEncoder(40, **SPREAD).fit(X)
    codes = encoder.transform(X)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(X), codes)
    np.testing.assert_array_equal(CodeBase(again, codes).search(Q, 5)[1], CodeBase(encoder, codes).search(Q, 5)[1])


def test_a_pickled_base_searches_alike() -> None:
    encoder = LSHEncoder(37, random_state=0).fit(X)
    base = CodeBase(encoder, encoder.transform(X), n_threads=1)
    again = pickle.loads(pickle.dumps(base))
    for one, other in zip(base.search(Q, 5), again.search(Q, 5), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.n_threads == 1


def test_threads_are_checked_when_the_base_is_made() -> None:
    encoder = LSHEncoder(37, random_state=0).fit(X)
    with pytest.raises(InputError, match="n_threads = 0"):
        CodeBase(encoder, encoder.transform(X), n_threads=0)


LEARNED = {
    "bias": AntiSparseEncoder(40, random_state=0),
    "bias, pca": AntiSparseEncoder(13, pca=9, random_state=0),
    "means": AntiSparseEncoder(40, means=20, random_state=0),
    "many means": AntiSparseEncoder(24, means=300, pca=9, random_state=0),
    "scale": AntiSparseEncoder(40, scale=True, random_state=0),
    "means, scale": AntiSparseEncoder(40, means=20, scale=True, random_state=0),
    "means, exact": AntiSparseEncoder(40, means=20, bias=False, random_state=0),
    "half": AntiSparseEncoder(42, bias="half", random_state=0),
    "means, half": AntiSparseEncoder(36, means=20, bias="half", random_state=0),
    "many means, half": AntiSparseEncoder(34, means=300, bias="half", random_state=0),
    "words": AntiSparseEncoder(40, frame="words", random_state=0),
    "words, pca": AntiSparseEncoder(12, frame="words", pca=9, random_state=0),
    "words, means": AntiSparseEncoder(40, frame="words", means=20, random_state=0),
    "words, exact": AntiSparseEncoder(28, frame="words", bias=False, random_state=0),
    "words, means, exact": AntiSparseEncoder(40, frame="words", means=20, bias=False, random_state=0),
    "words, half": AntiSparseEncoder(36, frame="words", bias="half", random_state=0),
    "words, means, half": AntiSparseEncoder(36, frame="words", means=20, bias="half", random_state=0),
}


@pytest.fixture(params=LEARNED, scope="module")
def learned(request: pytest.FixtureRequest) -> CodeBase:
    encoder = LEARNED[request.param].fit(X)
    return CodeBase(encoder, encoder.transform(X))


def test_a_learned_code_row_gives_itself_back(learned: CodeBase) -> None:
    codes = learned.encoder.transform(X)
    np.testing.assert_array_equal(learned.codes, codes)
    again = pickle.loads(pickle.dumps(learned))
    for one, other in zip(learned.search(Q, 5), again.search(Q, 5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_learned_distances_are_those_of_their_linear_form(learned: CodeBase) -> None:
    encoder, codes = learned.encoder, learned.codes
    layout = encoder.code_layout_
    expand = selection if encoder.words else unpack
    combined = expand(layout.bits(codes), encoder.n_bits) @ encoder.matrix_.T
    if encoder.scale:
        reach = encoder.reach_low_ + encoder.reach_step_ * codes[:, layout.place("scale")[0]].astype(float)
        combined = combined / reach[:, None]
    means = encoder.means_[encoder.cells(codes)]
    rebuilt = means + combined
    # The distance to the rebuilt vector, but with the bias as the byte has it.
    bias = (combined**2).sum(1) + 2 * (combined * means).sum(1)
    if encoder.bias:
        half = encoder.bias == "half"
        byte = codes[:, layout.bit_bytes - 1] & 15 if half else codes[:, layout.place("bias")[0]]
        low, step = encoder.bias_low_, encoder.bias_step_
        if half:
            low, step = low[encoder.cells(codes)], step[encoder.cells(codes)]
        error = ((encoder.reduce(X) - rebuilt) ** 2).sum(1)
        stored = low + step * byte
        inside = (byte > 0) & (byte < (15 if half else 255))
        assert inside.mean() > 0.5
        assert (np.abs(stored - bias - encoder.alpha_ * error) <= 0.5001 * step)[inside].all()
        bias = stored
    reduced = encoder.reduce(Q)
    dropped = ((Q - encoder.mean_) ** 2).sum(1) - (reduced**2).sum(1)
    full = ((reduced[:, None] - means) ** 2).sum(2) + dropped[:, None] + bias - 2 * reduced @ combined.T
    distances, ids = learned.search(Q, 15)
    size = ((Q**2).sum(1)[:, None] + (rebuilt**2).sum(1)).max()
    np.testing.assert_allclose(distances, np.maximum(np.take_along_axis(full, ids, 1), 0), atol=1e-5 * size)
    np.testing.assert_allclose(distances, np.maximum(np.sort(full, axis=1)[:, :15], 0), atol=1e-5 * size)
    np.testing.assert_allclose(encoder.reduce(encoder.inverse_transform(codes)), rebuilt, atol=1e-9 * size)
    if not encoder.bias:
        exact = ((Q[:, None] - encoder.inverse_transform(codes)) ** 2).sum(2)
        np.testing.assert_allclose(full, exact, atol=1e-9 * size)


def test_means_leave_reconstruction_search_alone(learned: CodeBase) -> None:
    if learned.encoder.words:  # and so do they (tests/test_words.py)
        return
    if learned.encoder.means == 1:
        distances, ids = learned.search(Q, 15, method="hamming")
        bits = learned.encoder.code_layout_.bits
        expected, order = ordered(hamming(bits(learned.encoder.transform(Q)), bits(learned.codes)), 15)
        np.testing.assert_array_equal(distances, expected)
        np.testing.assert_array_equal(ids, order)
        shortlisted = learned.search(Q, 10, shortlist=700)
        for one, other in zip(shortlisted, learned.search(Q, 10), strict=True):
            np.testing.assert_array_equal(one, other)
        return
    for arguments in ({"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 50}):
        with pytest.raises(UnsupportedError, match="different means do not compare"):
            learned.search(Q, 3, **arguments)


def test_bytes_per_learned_vector_count_everything(learned: CodeBase) -> None:
    encoder = learned.encoder
    expected = -(-encoder.n_bits // 8) + (0 if encoder.means == 1 else 1 if encoder.means <= 256 else 2)
    assert learned.bytes_per_vector == expected + encoder.scale + {True: 1, False: 8, "half": 0}[encoder.bias]
    if encoder.bias:
        assert learned.bytes_per_vector == encoder.code_layout_.code_size


def test_learned_results_do_not_depend_on_the_batch(learned: CodeBase) -> None:
    whole = learned.search(Q, 7, n_threads=1)
    for start, size in ((0, 1), (3, 9), (20, 10)):
        for a, b in zip(whole, learned.search(Q[start : start + size], 7, n_threads=2), strict=True):
            np.testing.assert_array_equal(a[start : start + size], b)
    few = CodeBase(learned.encoder, learned.codes[:3])
    distances, ids = few.search(Q, 6)
    assert (ids[:, 3:] == -1).all() and np.isinf(distances[:, 3:]).all() and (ids[:, :3] >= 0).all()
    empty = CodeBase(learned.encoder, learned.codes[:0])
    assert (empty.search(Q, 2)[1] == -1).all()


@pytest.mark.parametrize("name", ["bias", "scale", "learned", "words", "words, exact"])
@pytest.mark.parametrize("power", [-300, -80, 60, 300])
def test_learned_results_scale_with_the_data(name: str, power: int) -> None:
    encoder = (LEARNED | ENCODERS)[name]
    one, other = clone(encoder).fit(X), clone(encoder).fit(np.ldexp(X, power))
    expected = CodeBase(one, one.transform(X)).search(Q, 7)
    found = CodeBase(other, other.transform(np.ldexp(X, power))).search(np.ldexp(Q, power), 7)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(np.ldexp(found[0], -2 * power), expected[0], rtol=1e-6)


WITH_BYTES = {
    "bias": AntiSparseEncoder(40, random_state=0),
    "means": AntiSparseEncoder(40, means=9, random_state=0),
    "means without bias": AntiSparseEncoder(40, means=9, bias=False, pca=11, random_state=0),
    "scale": AntiSparseEncoder(40, means=9, scale=True, random_state=0),
    "scale alone": AntiSparseEncoder(40, scale=True, random_state=0),
    "words": AntiSparseEncoder(40, frame="words", random_state=0),
    "words without bias": AntiSparseEncoder(40, frame="words", means=9, bias=False, random_state=0),
}


@pytest.mark.parametrize("name", [*ENCODERS, *WITH_BYTES])
def test_inner_products_are_those_with_the_rebuilt_vectors(name: str) -> None:
    encoder = (ENCODERS | WITH_BYTES)[name].fit(X)
    base = CodeBase(encoder, encoder.transform(X), metric="ip")
    full = -Q @ encoder.inverse_transform(base.codes).T
    distances, ids = base.search(Q, 15)
    np.testing.assert_allclose(distances, np.take_along_axis(full, ids, 1), atol=1e-4)
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :15], atol=1e-4)
    again = pickle.loads(pickle.dumps(base))
    np.testing.assert_array_equal(again.search(Q, 15)[1], ids)


@pytest.mark.parametrize("name", ["antisparse", "learned", "means without bias", "scale", "words without bias"])
def test_cosine_is_the_distance_of_unit_vectors(name: str) -> None:
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    encoder = (ENCODERS | WITH_BYTES)[name].fit(unit)
    codes = encoder.transform(unit)
    base, plain = CodeBase(encoder, codes, metric="cosine"), CodeBase(encoder, codes)
    distances, ids = base.search(1e200 * Q, 15)
    expected = plain.search(Q / np.linalg.norm(Q, axis=1, keepdims=True), 15)
    np.testing.assert_array_equal(ids, expected[1])
    np.testing.assert_allclose(distances, expected[0] / 2, rtol=1e-9)
    cosines = 1 - (Q / np.linalg.norm(Q, axis=1, keepdims=True)) @ unit.T
    assert np.abs(distances - np.take_along_axis(cosines, ids, 1)).mean() < 0.2


def test_metrics_say_what_is_wrong() -> None:
    encoder = AntiSparseEncoder(16, random_state=0).fit(X)
    codes = encoder.transform(X)
    with pytest.raises(InputError, match="metric = 'angle'"):
        CodeBase(encoder, codes, metric="angle")
    with pytest.raises(InputError, match="Q row 1 is zero"):
        CodeBase(encoder, codes, metric="cosine").search(np.array([np.ones(12), np.zeros(12)]), 3)
