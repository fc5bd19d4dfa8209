"""Refinement: no flip that would help is left, and nothing gets worse."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import InputError, InputTypeError, block_frame, gaussian_frame, pack, tight_frame, unpack
from antisparse.codec import LearnedSigns
from antisparse.frames import BlockFrame
from antisparse.refine import anneal, refine

RNG = np.random.default_rng(0)


def error(Y, A, codes):
    return ((Y - unpack(codes, A.shape[1]) @ A.T) ** 2).sum(1)


def cosine(Y, A, codes):
    rebuilt = unpack(codes, A.shape[1]) @ A.T
    norms = np.linalg.norm(rebuilt, axis=1) * np.linalg.norm(Y, axis=1)
    nothing = 1e-9 * np.abs(A).sum() * np.linalg.norm(Y, axis=1)  # but for rounding
    return np.divide((Y * rebuilt).sum(1), norms, out=np.zeros(len(Y)), where=norms > nothing)


def flipped(codes, m, i):
    signs = unpack(codes, m).copy()
    signs[:, i] *= -1
    return pack(signs)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 12), st.integers(1, 70), st.integers(1, 40), st.floats(-20, 20))
def test_greedy_flips_leave_none_that_helps(seed: int, d: int, m: int, n: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, m)) * 10.0**power
    Y = rng.standard_normal((n, d)) * 10.0**power * rng.uniform(0.1, m)
    start = pack(rng.standard_normal((n, m)))
    for objective, measure in (("euclidean", error), ("cosine", lambda *a: -cosine(*a))):
        codes = refine(Y, A, start, objective=objective)
        found = measure(Y, A, codes)
        for other in (start, *(flipped(codes, m, i) for i in range(m))):
            # What float32 can tell, of the terms that an error is made of; of a cosine less where these cancel in A b.
            room = (Y**2).sum(1) + np.abs(A).sum() ** 2
            if objective == "cosine":
                lengths = np.minimum(*(((unpack(b, m) @ A.T) ** 2).sum(1) for b in (codes, other)))
                room = 1 + 1e-3 * np.abs(A).sum() ** 2 / np.maximum(lengths, 1e-12 * np.abs(A).sum() ** 2)
            assert (found <= measure(Y, A, other) + 1e-5 * room).all()


@pytest.mark.parametrize("objective", ["euclidean", "cosine"])
def test_tabu_flips_never_lose_and_mostly_gain(isa: str, objective) -> None:
    A = gaussian_frame(16, 48, 0)
    Y = RNG.standard_normal((400, 48)) @ A.T / 2  # within reach of A b
    measure = error if objective == "euclidean" else lambda *a: -cosine(*a)
    greedy = refine(Y, A, pack(Y @ A), objective=objective)
    tabu = refine(Y, A, greedy, flips=300, tenure=5, objective=objective)
    before, after = measure(Y, A, greedy), measure(Y, A, tabu)
    assert (after <= before + 1e-5 * np.abs(before)).all()
    assert (after < before).mean() > 0.5


def test_annealing_finds_nearly_the_best_of_all_codes(isa: str) -> None:
    m, d, rng = 14, 6, np.random.default_rng(1)
    A = rng.standard_normal((d, m))
    Y = rng.standard_normal((200, m)) @ A.T / 2  # within reach of A b
    every = np.array(list(itertools.product([-1, 1], repeat=m)))
    best = ((Y[:, None] - every @ A.T) ** 2).sum(2).min(1)
    plain = error(Y, A, anneal(Y, A))
    with_flips = error(Y, A, anneal(Y, A, flips=200))
    assert best.mean() <= with_flips.mean() <= plain.mean()
    assert with_flips.mean() < 2 * best.mean()
    greedy = error(Y, A, refine(Y, A, pack(Y @ A)))
    assert with_flips.mean() < 0.7 * greedy.mean()


def test_annealing_is_its_formula(isa: str) -> None:
    A, Y, sweeps = RNG.standard_normal((9, 20)), RNG.standard_normal((50, 9)) * 4, 12
    G, C, x = A.T @ A, Y @ A, np.zeros((50, 20))
    for s in range(sweeps):
        convexity = 1 - (s / (sweeps - 1)) ** 2
        for i in range(20):
            numerator = C[:, i] - x @ G[i] + G[i, i] * x[:, i]
            last = s == sweeps - 1
            x[:, i] = np.where(numerator < 0, -1, 1) if last else np.clip(numerator / (G[i, i] * convexity), -1, 1)
    assert np.mean(unpack(anneal(Y, A, sweeps=sweeps), 20) == x) > 0.99


@pytest.mark.parametrize("method", ["anneal", "refine"])
def test_a_vector_has_the_same_code_in_any_batch(isa: str, method: str) -> None:
    A, Y = tight_frame(10, 37, 0), RNG.standard_normal((150, 10)) * 3

    def run(rows, threads):
        if method == "anneal":
            return anneal(Y[rows], A, flips=50, n_threads=threads)
        return refine(Y[rows], A, pack(Y[rows] @ A), flips=50, tenure=4, n_threads=threads)

    whole = run(slice(None), 1)
    np.testing.assert_array_equal(run(slice(None), 3), whole)
    for rows in (slice(0, 1), slice(7, 40), slice(149, 150), slice(3, 3)):
        np.testing.assert_array_equal(run(rows, 2), whole[rows])


def test_blocks_are_annealed_each_alone(isa: str) -> None:
    blocks = (RNG.standard_normal((4, 9)), RNG.standard_normal((5, 13)), RNG.standard_normal((1, 2)))
    Y = RNG.standard_normal((80, 10)) * 3
    found = unpack(anneal(Y, BlockFrame(blocks), flips=0), 24)
    parts = [unpack(anneal(y, A, flips=0), A.shape[1]) for y, A in zip(np.split(Y, [4, 9], 1), blocks, strict=True)]
    assert np.mean(found == np.hstack(parts)) > 0.999
    A = block_frame(10, 24, 4, 0)
    together = error(Y, A.matrix, anneal(Y, A, flips=100))
    assert (together <= error(Y, A.matrix, refine(Y, A, pack(Y @ A.matrix))) + 1e-6).mean() > 0.7


def test_degenerate_frames_and_vectors() -> None:
    A = np.c_[np.zeros((3, 2)), np.eye(3)]  # columns that stand for nothing
    Y = np.array([[0.0, 0, 0], [1e30, -1e30, 1e30], [1e-30, 0, 0]])
    for codes in (anneal(Y, A, flips=20), refine(Y, A, pack(np.ones((3, 5)))), refine(Y, 0 * A, pack(np.ones((3, 5))))):
        assert codes.shape == (3, 1)
    np.testing.assert_array_equal(unpack(anneal(Y, A), 5)[1, 2:], [1, -1, 1])
    assert anneal(Y[:0], A).shape == (0, 1)


def test_bad_arguments_are_named() -> None:
    A, Y, codes = np.eye(3), np.ones((2, 3)), np.zeros((2, 1), np.uint8)
    for call, kind, message in (
        (lambda: refine(Y, A, codes[:1]), InputError, "codes has 1 rows but Y has 2"),
        (lambda: refine(Y, A, codes + 1), InputError, "codes has padding bits set"),
        (lambda: refine(Y, A, codes.astype(int)), InputTypeError, "codes has dtype"),
        (lambda: refine(Y, A, codes, objective="l1"), InputError, "objective = 'l1'"),
        (lambda: refine(Y, A, codes, flips=-1), InputError, "flips = -1"),
        (lambda: refine(Y, A, codes, tenure=2**24), InputError, "tenure"),
        (lambda: anneal(Y, A, sweeps=0), InputError, "sweeps = 0"),
        (lambda: anneal(Y[:, :2], A), InputError, "Y has 2 columns"),
        (lambda: anneal(Y * np.nan, A), InputError, "Y row 0"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_columns_of_zeros_count_for_nothing() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 16))
    A[:, 3:] = 0
    Y = rng.standard_normal((5, 8))
    found = LearnedSigns(A).find(Y, 1, False)
    rebuilt = unpack(found.symbols, 16) @ A.T
    np.testing.assert_allclose(found.squares, (rebuilt**2).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.dots, (rebuilt * Y).sum(axis=1), atol=1e-5)
