"""Metrics: prepared alike in fit, transform and search; distances as documented; nothing depends on batch or order."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from antisparse import AntiSparseEncoder, CodeBase, InputError, ITQEncoder, LearnedEncoder, LSHEncoder, Split
from antisparse.evaluation import exact_neighbors, recall_at
from antisparse.metrics import METRICS, metric_named

RNG = np.random.default_rng(0)
X, Q = zoo.vectors(400, 1), zoo.vectors(25, 2)
LENGTHS = np.exp(2 * RNG.standard_normal((400, 1)))


def unit(V: np.ndarray) -> np.ndarray:
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_names() -> None:
    assert set(METRICS) == {"l2", "cosine", "ip"}
    for name, metric in METRICS.items():
        assert metric_named(name) is metric and metric.name == name
    assert [metric_named(name).centres for name in ("l2", "cosine", "ip")] == [True, True, False]
    for wrong in ("angle", None, 3, ["l2"], np.array("l2")):
        with pytest.raises(InputError, match=r"metric = .*; choose one of 'l2', 'cosine', 'ip'"):
            metric_named(wrong)


@pytest.mark.parametrize("name", METRICS)
def test_exact_distances_are_their_formula(name: str) -> None:
    metric = metric_named(name)
    q = metric.prepare(Q, "Q")[3]
    expected = {
        "l2": ((X - Q[3]) ** 2).sum(1),
        "cosine": 1 - unit(X) @ unit(Q)[3],
        "ip": -X @ Q[3],
    }[name]
    found = metric.exact(q, X, "X")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    for same in (np.asfortranarray(X), X.astype(np.float32), np.repeat(X, 2, 0)[::2]):
        np.testing.assert_array_equal(metric.exact(q, same, "X"), found)
    for start, size in ((0, 1), (7, 30), (399, 1), (5, 0)):
        np.testing.assert_array_equal(metric.exact(q, X[start : start + size], "X"), found[start : start + size])


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_distances_with_the_constant(name: str) -> None:
    """The scan leaves out what all codes have in common: with it, a score stands for a distance."""
    metric, mean = metric_named(name), X.mean(axis=0)
    V, queries = metric.prepare(X, "X"), metric.prepare(Q, "Q")
    if metric.centres:
        left = ((V - mean) ** 2).sum(1) - 2 * (queries - mean) @ (V - mean).T
    else:
        left = -2 * queries @ (V - mean).T
    found = metric.distances(left + metric.constant(queries, mean)[:, None])
    expected = np.array([metric.exact(q, X, "X") for q in queries])
    np.testing.assert_allclose(found, expected, atol=1e-11)
    whole = metric.constant(queries, mean)
    np.testing.assert_array_equal(metric.constant(np.asfortranarray(queries), mean), whole)
    for row in range(len(Q)):
        np.testing.assert_array_equal(metric.constant(queries[row : row + 1], mean), whole[row : row + 1])


def test_distances_are_never_negative_for_rounding() -> None:
    scores = np.array([[-1e-9, 2.0, np.inf]])
    np.testing.assert_array_equal(metric_named("l2").distances(scores), [[0, 2, np.inf]])
    np.testing.assert_array_equal(metric_named("cosine").distances(scores), [[0, 1, np.inf]])
    np.testing.assert_array_equal(metric_named("ip").distances(scores), [[-5e-10, 1, np.inf]])


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 10**9),
    d=st.integers(1, 1600),
    n=st.integers(1, 5),
    powers=st.lists(st.integers(-900, 900), min_size=5, max_size=5),
)
def test_unit_vectors_by_the_last_bit(seed: int, d: int, n: int, powers: list[int]) -> None:
    """The cosine sees directions alone: powers of two, a second time and what the caller did before change nothing."""
    rng, cosine = np.random.default_rng(seed), metric_named("cosine")
    V = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    found = cosine.prepare(V, "X")
    np.testing.assert_array_equal(found, unit(V))  # as anybody would
    np.testing.assert_array_equal(cosine.prepare(found, "X"), found)
    np.testing.assert_array_equal(cosine.prepare(np.asfortranarray(V), "X"), found)
    np.testing.assert_array_equal(cosine.prepare(V[:1], "X"), found[:1])
    scaled = np.ldexp(V, np.array(powers[:n])[:, None])
    np.testing.assert_array_equal(cosine.prepare(scaled, "X"), found)
    np.testing.assert_allclose((found**2).sum(1), 1, rtol=1e-14)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1e200, 1.7e308])
def test_vectors_of_any_length_have_a_direction(size: float) -> None:
    found = metric_named("cosine").prepare(np.array([[size, 0, 0], [0, -size, 0]]), "X")
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, -1, 0]])
    if size > 1e-323:  # half of the least number there is is none
        found = metric_named("cosine").prepare(np.array([[size / 2, size / 2, 0]]), "X")
        np.testing.assert_allclose(found, [[0.5**0.5, 0.5**0.5, 0]])


def test_a_zero_row_is_named() -> None:
    zero = X.copy()
    zero[[7, 90]] = 0
    for make in (LearnedEncoder, AntiSparseEncoder, LSHEncoder, ITQEncoder):
        with pytest.raises(InputError, match="X row 7 is zero, and has no cosine with anything; remove it"):
            make(4, metric="cosine").fit(zero)
        encoder = make(4, metric="cosine", **({"train": 90} if make is LearnedEncoder else {})).fit(X)
        with pytest.raises(InputError, match="X row 7 is zero"):
            encoder.transform(zero)
        with pytest.raises(InputError, match="X row 7 is zero"):
            encoder.codec_.encode(zero)
        base = CodeBase(encoder, encoder.transform(X))
        with pytest.raises(InputError, match="Q row 1 is zero, and has no cosine"):
            base.search(np.array([np.ones(10), np.zeros(10)]), 3)
        with pytest.raises(InputError, match="Q row 0 is zero"):
            base.search(np.zeros(10), 3)
        for metric in ("l2", "ip"):
            make(4, metric=metric).fit(zero).transform(zero)


def test_the_row_that_is_named_is_the_callers_though_some_are_drawn_to_learn_from() -> None:
    for value, message in ((0.0, "X row {} is zero"), (np.nan, "X row {}, column 0 is nan")):
        bad = X.copy()
        bad[200:] = value
        with pytest.raises(InputError, match="X row ") as caught:
            LearnedEncoder(4, metric="cosine", train=50, random_state=0).fit(bad)
        row = int(str(caught.value).split()[2].rstrip(","))
        assert row >= 200 and str(caught.value).startswith(message.format(row))


LEARNED = {
    "codebooks": LearnedEncoder(6, metric="cosine", random_state=0),
    "signs": LearnedEncoder(6, metric="cosine", split=Split("signs", cells=5, scale=True), random_state=0),
    "drawn": AntiSparseEncoder(24, metric="cosine", random_state=0),
    "reduced": LSHEncoder(6, metric="cosine", random_state=0),
    "itq": ITQEncoder(16, metric="cosine", random_state=0),
}


@pytest.mark.parametrize("name", LEARNED)
def test_raw_and_unit_vectors_fit_the_same_codec(name: str) -> None:
    """To the last bit: what is learned, coded and found depends on directions alone."""
    raw, ready = clone(LEARNED[name]).fit(X), clone(LEARNED[name]).fit(unit(X))
    assert raw.codec_ == ready.codec_
    codes = raw.transform(X)
    np.testing.assert_array_equal(ready.transform(unit(X)), codes)
    powers = RNG.integers(-40, 40, (400, 1))
    assert clone(LEARNED[name]).fit(np.ldexp(X, powers)).codec_ == raw.codec_
    np.testing.assert_array_equal(raw.transform(np.ldexp(X, powers)), codes)
    # Of other lengths up to rounding.
    assert (raw.transform(LENGTHS * X) == codes).all(axis=1).mean() > 0.99
    base = CodeBase(raw, codes)
    expected = base.search(Q, 9)
    for same in (unit(Q), np.ldexp(Q, 30), np.ldexp(Q, -900)):
        for one, other in zip(base.search(same, 9), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(base.search(1e200 * Q, 9)[0], expected[0], atol=1e-9)


def test_an_encoder_fitted_on_raw_vectors_finds_what_one_fitted_on_unit_vectors_does() -> None:
    """Once `fit` did not normalise: recall .06, where .47 was to be had by who remembered to fit on unit vectors."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((60, 16))
    directions = centres[rng.integers(0, 60, 4200)] + 0.4 * rng.standard_normal((4200, 16))
    raw = directions * np.exp(2.5 * rng.standard_normal((4200, 1)))
    base, queries = raw[:4000], raw[4000:]
    truth = exact_neighbors(unit(base), unit(queries), 1)[1]

    def recall(encoder: LearnedEncoder, vectors: np.ndarray, asked: np.ndarray) -> float:
        encoder.fit(vectors)
        found = CodeBase(encoder, encoder.transform(vectors)).search(asked, 10)[1]
        return float(recall_at(found, truth, 10))

    by_cosine = LearnedEncoder(6, metric="cosine", random_state=0)
    on_raw = recall(by_cosine, base, queries)
    assert on_raw == recall(by_cosine, unit(base), unit(queries)) > 0.6
    assert recall(LearnedEncoder(6, random_state=0), base, unit(queries)) < on_raw / 4  # what it was


@pytest.mark.parametrize("name", [n for n in zoo.REBUILDING if zoo.codec(n).metric_name == "cosine"])
def test_cosine_distances_are_those_of_unit_vectors(name: str) -> None:
    """Half the squared distance, which the same fields give for l2; and near one minus the true cosine."""
    codec = zoo.codec(name)
    plain = type(codec)("l2", codec.reduction, codec.symbols, codec.cells, codec.scale, codec.bias)
    codes = codec.encode(X)
    np.testing.assert_array_equal(plain.encode(unit(X)), codes)
    distances, ids = CodeBase(codec, codes).search(Q, 15)
    expected = CodeBase(plain, codes).search(unit(Q), 15)
    np.testing.assert_array_equal(ids, expected[1])
    np.testing.assert_allclose(distances, expected[0] / 2, rtol=1e-12)
    true = 1 - unit(Q) @ unit(X).T
    room = np.abs(true - true.mean(axis=1, keepdims=True)).mean()  # what a guess of the mean would err by
    assert np.abs(distances - np.take_along_axis(true, ids, 1)).mean() < 0.5 * room


@pytest.mark.parametrize("name", [n for n in zoo.REBUILDING if zoo.codec(n).metric_name == "ip"])
def test_inner_products_are_those_with_the_rebuilt_vectors(name: str) -> None:
    codec, codes = zoo.codec(name), zoo.codec(name).encode(X)
    full = -Q @ codec.decode(codes).T
    distances, ids = CodeBase(codec, codes).search(Q, 15)
    np.testing.assert_allclose(distances, np.take_along_axis(full, ids, 1), atol=1e-4)
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :15], atol=1e-4)
    assert (distances < 0).any() and (np.diff(distances, axis=1) >= 0).all()


def test_a_metric_is_checked_against_the_codec() -> None:
    encoder = LSHEncoder(16, metric="cosine", random_state=0).fit(X)
    codes = encoder.transform(X)
    CodeBase(encoder, codes, metric="cosine")
    with pytest.raises(InputError, match="metric = 'l2', but the codec was fitted for 'cosine'"):
        CodeBase(encoder, codes, metric="l2")
    with pytest.raises(InputError, match="metric = 'angle'"):
        CodeBase(encoder, codes, metric="angle")
    for make in (LearnedEncoder, AntiSparseEncoder, LSHEncoder, ITQEncoder):
        for wrong in ("angle", None, 1):
            with pytest.raises(InputError, match="metric = "):
                make(4, metric=wrong).fit(X)
