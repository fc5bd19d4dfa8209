"""Codewords: what the search for them finds, against an oracle and by brute force."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import _core
from antisparse.codec import Codebooks
from antisparse.codewords import TENURE, CodewordFinder, check_codebooks, one_hot
from antisparse.errors import InputError


def cost(frame, Y, rows):
    return ((Y - one_hot(rows, frame.shape[1] // 16) @ frame.T) ** 2).sum(axis=1)


def rounding(count):
    """How much of its error a move may gain and not be found: costs are rounded (native/codebooks/codebooks.hpp).

    Two costs, with half a unit for each codebook and for their own; twice the cost is the error, which is at least 64
    sqrt(count) units.
    """
    return 2 * (count + 1) / (64 * np.sqrt(count))


def moves_of(cost, rows, most, moves, tenure):
    """The codeword of each codebook, by the steps of native/codebooks/codebook_batch.hpp."""
    own, count = np.arange(len(cost)) // 16, len(cost) // 16
    chosen = np.zeros(count, int)
    for j in range(count):
        chosen[j] = 16 * j + np.argmin(cost[16 * j : 16 * j + 16])
        cost = cost + rows[chosen[j]]
    best, change, least, recent, losing = chosen.copy(), 0, 0, [], False
    tenure = min(tenure, (count + 1) // 3)
    for _ in range(moves):
        loss = np.clip(cost - cost[chosen][own], -most - 1, most)
        loss[chosen] = most
        loss[np.isin(own, recent)] = most
        to = int(np.argmin(loss))
        if loss[to] >= (most if tenure else 0):
            break
        j = own[to]
        gain = cost[to] - cost[chosen[j]]
        cost = cost + rows[to] - rows[chosen[j]]
        chosen[j] = to
        losing = losing or gain >= 0
        if tenure and losing:
            recent = [*recent, j][-tenure:]
        change += gain
        if change < least:
            best, least = chosen.copy(), change
    return best


def oracle(frame, y, moves, tenure):
    """The codewords, and whether integers found them; where float32 holds all products exactly."""
    gram, count = (frame.T @ frame).astype(np.float32), frame.shape[1] // 16
    half, own = np.diagonal(gram) / 2, np.arange(len(gram)) // 16
    apart = 2 * half[:, None] + 2 * half - 2 * gram  # squared distances
    apart = np.where((own[:, None] == own) & ~np.eye(len(gram), dtype=bool), apart, np.inf)
    gram = np.where(own[:, None] == own, np.float32(0), gram)
    blocks = gram.reshape(len(gram), count, 16)
    sums = [np.maximum(side.max(axis=2), 0).sum(axis=1).max() for side in (blocks, -blocks)]
    reach = np.float32(max(2, *sums))
    unit = 2 * reach / np.float32(2**15 - 1 - count)
    exact = half - (frame.T @ y).astype(np.float32)
    least = 64 * np.sqrt(count) * unit
    if apart.min(axis=1).sum() / (12 * 16) >= least and np.abs(exact).max() <= reach:
        cost, rows = (np.rint(values).astype(int) for values in (exact * (1 / unit), gram / unit))
        codewords = moves_of(cost, rows, 2**15 - 1, moves, tenure)
        if ((y - frame[:, codewords].sum(axis=1)) ** 2).sum() >= least:
            return codewords % 16, True
    return moves_of(exact.astype(float), gram, np.inf, moves, tenure) % 16, False


def test_one_hot_has_one_codeword_of_every_codebook() -> None:
    rows = np.array([[0x4F, 0xA0], [0x00, 0x10]], np.uint8)
    x = one_hot(rows, 3)
    assert x.shape == (2, 48) and (x.reshape(2, 3, 16).sum(axis=2) == 1).all()
    np.testing.assert_array_equal(x.reshape(2, 3, 16).argmax(axis=2), [[4, 15, 10], [0, 0, 1]])


@pytest.mark.parametrize("count", [1, 2, 7, 30])
@pytest.mark.parametrize("threads", [1, 3])
def test_moments_are_those_of_least_squares(count: int, threads: int) -> None:
    """Added to what is there, whatever the number of threads; counts of two codebooks in the rows of the first."""
    rng = np.random.default_rng(count)
    rows, Y = rng.integers(0, 256, (300, -(-count // 2)), dtype=np.uint8), rng.standard_normal((300, 5))
    x = one_hot(rows, count).astype(np.float64)
    counts, sums = np.ones((16 * count, 16 * count), np.uint32), np.ones((16 * count, 5))
    for part in (slice(0, 130), slice(130, 300)):
        _core.add_moments(rows[part], count, Y[part], counts, sums, threads)
    np.testing.assert_array_equal(counts, 1 + np.triu(x.T @ x))
    np.testing.assert_allclose(sums, 1 + x.T @ Y, atol=1e-12)
    with pytest.raises(ValueError, match="do not fit"):
        _core.add_moments(rows, count + 2, Y, counts, sums, 1)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**9), count=st.integers(1, 9), d=st.integers(1, 20), power=st.integers(-100, 100))
def test_greedy_codewords_cannot_be_bettered_one_by_one(seed: int, count: int, d: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    frame = np.ldexp(rng.standard_normal((d, 16 * count)), power)
    Y = np.ldexp(rng.standard_normal((20, d)) * np.sqrt(count), power)
    rows, dots, squares = CodewordFinder(frame).find(Y, 10_000, 0, 1)
    found = cost(frame, Y, rows)
    scale = (Y**2).sum() + (frame**2).sum()
    np.testing.assert_allclose((Y**2).sum(1) - 2 * dots + squares, found, atol=1e-5 * scale)
    x = one_hot(rows, count).reshape(20, count, 16)
    for book in range(count):
        for codeword in range(16):
            other = x.copy()
            other[:, book] = np.eye(16)[codeword]
            moved = ((Y - other.reshape(20, -1) @ frame.T) ** 2).sum(axis=1)
            assert (moved >= found * (1 - rounding(count)) - 1e-5 * scale).all()


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_moves_on_keep_the_best_met(isa: str, count: int) -> None:
    rng = np.random.default_rng(count)
    frame, Y = rng.standard_normal((40, 16 * count)), rng.standard_normal((200, 40)) * np.sqrt(count)
    finder = CodewordFinder(frame)
    costs = [cost(frame, Y, finder.find(Y, moves, TENURE, 1)[0]) for moves in (0, 1, 5, 20, 100, 500)]
    most = 1 + rounding(count)
    for worse, better in pairwise(costs):
        assert (better <= worse * most + 1e-4).all()
    greedy = cost(frame, Y, finder.find(Y, 10_000, 0, 1)[0])
    assert (costs[-1] <= greedy * most + 1e-4).all() and costs[-1].mean() <= greedy.mean()
    if count == 1:  # all there is
        every = [cost(frame, Y, np.full((200, 1), code << 4, np.uint8)) for code in range(16)]
        assert (costs[0] <= np.min(every, axis=0) * most + 1e-4).all()


@pytest.mark.parametrize("count", [1, 3, 12])
def test_every_instruction_set_moves_as_an_oracle_does(isa: str, count: int) -> None:
    """Small integers: the same codewords, with ties, far vectors and those that are rebuilt exactly."""
    rng = np.random.default_rng(count)
    frame = rng.integers(-3, 4, (6, 16 * count)).astype(float)
    frame[:, 1] = frame[:, 0]
    frame[:, 2] = [8, 0, 0, 0, 0, 0]  # the longest: lengths are divided by 8, without rounding
    Y = np.concatenate([rng.integers(-9, 10, (60, 6)), rng.integers(-900, 901, (60, 6))]).astype(float)
    Y[::7] = frame[:, rng.integers(0, 16, (18, count)) + 16 * np.arange(count)].sum(axis=2).T
    finder, ways = CodewordFinder(frame), set()
    for moves, tenure in ((0, 0), (1000, 0), (25, TENURE)):
        rows = finder.find(Y, moves, tenure, 1)[0]
        chosen = one_hot(rows, count).reshape(len(Y), count, 16).argmax(axis=2)
        expected = [oracle(frame / 8, y / 8, moves, tenure) for y in Y]
        np.testing.assert_array_equal(chosen, [codewords for codewords, _ in expected])
        ways |= {rounded for _, rounded in expected}
    assert ways == {True, False}


def test_codebooks_on_opposite_sides_have_room(isa: str) -> None:
    """Sums are largest in part: half of the codebooks add to them what the others take away again."""
    rng = np.random.default_rng(0)
    frame = np.concatenate([np.full(64, 1.0), np.full(64, -1.0)])[None] + 0.3 * rng.random((1, 128))
    Y = rng.uniform(-2, 2, (300, 1))
    found = cost(frame, Y, CodewordFinder(frame).find(Y, 0, 0, 1)[0])
    codewords = np.zeros((300, 0))
    for book in range(8):
        left = Y - codewords.sum(axis=1, keepdims=True)
        own = frame[0, 16 * book : 16 * book + 16]
        codewords = np.c_[codewords, own[np.abs(left - own).argmin(axis=1)]]
    expected = (Y[:, 0] - codewords.sum(axis=1)) ** 2
    assert (found <= expected + 0.3).all()  # a codeword rounding chose otherwise; without room it is 2


@pytest.mark.parametrize("count", [1, 5, 30])
def test_codewords_do_not_depend_on_batch_and_threads(isa: str, count: int) -> None:
    rng = np.random.default_rng(count)
    finder, Y = CodewordFinder(rng.standard_normal((9, 16 * count))), rng.standard_normal((301, 9))
    whole = finder.find(Y, 50, TENURE, 2)
    for start, size in ((0, 1), (5, 7), (100, 201)):
        part = finder.find(Y[start : start + size], 50, TENURE, 1)
        for one, all_ in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, all_[start : start + size])
    assert finder.find(Y[:0], 50, TENURE, 1)[0].shape == (0, -(-count // 2))


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e140])
def test_codewords_of_extreme_vectors_and_frames(isa: str, size: float) -> None:
    frame = np.random.default_rng(0).standard_normal((5, 48))
    for scaled, Y in ((frame * size, np.ones((3, 5))), (frame, np.full((3, 5), size))):
        rows, dots, squares = CodewordFinder(scaled).find(Y, 30, TENURE, 1)
        assert np.isfinite(dots).all() and np.isfinite(squares).all() and (rows[:, 1] & 15 == 0).all()


def test_arrays_that_do_not_fit_are_refused() -> None:
    frame, gram = np.ones((4, 3, 16), np.float32), np.ones((64, 64), np.float32)
    y, rows = np.ones((2, 3)), np.zeros((2, 2), np.uint8)
    for wrong in ((frame[:3], gram), (frame, gram[:63]), (frame[:, :, :15].copy(), gram), (frame[:0], gram[:0, :0])):
        with pytest.raises(ValueError, match="do not fit"):
            _core.Codebooks(*wrong)
    codewords = _core.Codebooks(frame, gram)
    codewords.find(y, 1.0, 5, 2, rows, 1)
    for vectors, codes in ((y[:, :2].copy(), rows), (y, rows[:1]), (y, rows[:, :1].copy())):
        with pytest.raises(ValueError, match="do not fit"):
            codewords.find(vectors, 1.0, 5, 2, codes, 1)


def test_effort_by_effort_codewords_rebuild_better() -> None:
    """On the same codebooks, which take no part in it: moves as long as they gain, then six, then 24 a codebook."""
    rng = np.random.default_rng(0)
    Y, matrix = rng.standard_normal((600, 12)) * 3, rng.standard_normal((12, 160))
    errors = []
    for effort in (1, 2, 3):
        found = Codebooks(matrix, effort).find(Y, 1, False)
        error = cost(matrix, Y, found.symbols)
        np.testing.assert_allclose((Y**2).sum(1) - 2 * found.dots + found.squares, error, rtol=1e-3, atol=1e-2)
        errors.append(error.mean())
    assert errors[0] > 1.02 * errors[1] and errors[1] > 1.005 * errors[2], errors


@pytest.mark.parametrize("count", [1, 2, 3])
def test_codewords_are_nearly_the_best_of_all(isa: str, count: int) -> None:
    rng = np.random.default_rng(count)
    matrix, Y = rng.standard_normal((5, 16 * count)), rng.standard_normal((60, 5)) * np.sqrt(count)
    every = np.array(list(product(range(16), repeat=count)))
    sums = matrix[:, every + 16 * np.arange(count)].sum(2)
    best = ((Y[:, :, None] - sums) ** 2).sum(1).min(1)
    found = cost(matrix, Y, Codebooks(matrix, 3).find(Y, 1, False).symbols)
    assert (found >= best - 1e-9).all()
    assert found.mean() <= (1 + rounding(count)) * (1.25 if count > 1 else 1) * best.mean() + 1e-4
    assert (found <= 1.01 * best + 1e-4).mean() > 0.5


def test_how_many_codebooks_there_can_be() -> None:
    assert check_codebooks(4096) == 4096
    for wrong, message in ((0, "codebooks = 0"), (4097, "4096 at most")):
        with pytest.raises(InputError, match=message):
            check_codebooks(wrong)
