"""Words: what the search for them finds, and what is learned."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from antisparse import AntiSparseEncoder, CodeBase, Index, InputError, UnsupportedError, _core, learn_words
from antisparse.words import TENURE, WordFinder, selection

RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 12)) * np.linspace(3, 0.5, 12) + 1
Q = RNG.standard_normal((30, 12)) * np.linspace(3, 0.5, 12) + 1


def cost(frame, Y, rows):
    return ((Y - selection(rows, frame.shape[1] // 4) @ frame.T) ** 2).sum(axis=1)


def rounding(groups):
    """How much of its error a move may gain and not be found: costs are rounded (native/words.hpp).

    Two costs, with half a unit for each group and for their own; twice the cost is the error, which is at least 256
    sqrt(groups) units.
    """
    return 2 * (groups + 1) / (256 * np.sqrt(groups))


def moves_of(cost, rows, most, moves, tenure):
    """The word of each group, by the steps of native/words_batch.hpp."""
    own, groups = np.arange(len(cost)) // 16, len(cost) // 16
    chosen = np.zeros(groups, int)
    for j in range(groups):
        chosen[j] = 16 * j + np.argmin(cost[16 * j : 16 * j + 16])
        cost = cost + rows[chosen[j]]
    best, change, least, recent, losing = chosen.copy(), 0, 0, [], False
    tenure = min(tenure, (groups + 1) // 3)
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
    """The words, and whether integers found them; where float32 holds all products exactly."""
    gram, groups = (frame.T @ frame).astype(np.float32), frame.shape[1] // 16
    half, own = np.diagonal(gram) / 2, np.arange(len(gram)) // 16
    gram = np.where(own[:, None] == own, np.float32(0), gram)
    blocks = gram.reshape(len(gram), groups, 16)
    sums = [np.maximum(side.max(axis=2), 0).sum(axis=1).max() for side in (blocks, -blocks)]
    reach = np.float32(max(2, *sums))
    unit = 2 * reach / np.float32(2**15 - 1 - groups)
    exact = half - (frame.T @ y).astype(np.float32)
    if np.abs(exact).max() <= reach:
        cost, rows = (np.rint(values).astype(int) for values in (exact * (1 / unit), gram / unit))
        words = moves_of(cost, rows, 2**15 - 1, moves, tenure)
        if ((y - frame[:, words].sum(axis=1)) ** 2).sum() >= 256 * np.sqrt(groups) * unit:
            return words % 16, True
    return moves_of(exact.astype(float), gram, np.inf, moves, tenure) % 16, False


def test_selection_has_one_word_of_every_group() -> None:
    rows = np.array([[0x4F, 0xA0], [0x00, 0x10]], np.uint8)
    x = selection(rows, 12)
    assert x.shape == (2, 48) and (x.reshape(2, 3, 16).sum(axis=2) == 1).all()
    np.testing.assert_array_equal(x.reshape(2, 3, 16).argmax(axis=2), [[4, 15, 10], [0, 0, 1]])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**9), groups=st.integers(1, 9), d=st.integers(1, 20), power=st.integers(-100, 100))
def test_greedy_words_cannot_be_bettered_one_by_one(seed: int, groups: int, d: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    frame = np.ldexp(rng.standard_normal((d, 16 * groups)), power)
    Y = np.ldexp(rng.standard_normal((20, d)) * np.sqrt(groups), power)
    rows, along, size = WordFinder(frame).find(Y, 10_000, 0, 1)
    found = cost(frame, Y, rows)
    scale = (Y**2).sum() + (frame**2).sum()
    np.testing.assert_allclose((Y**2).sum(1) - 2 * along + size, found, atol=1e-5 * scale)
    x = selection(rows, 4 * groups).reshape(20, groups, 16)
    for group in range(groups):
        for word in range(16):
            other = x.copy()
            other[:, group] = np.eye(16)[word]
            moved = ((Y - other.reshape(20, -1) @ frame.T) ** 2).sum(axis=1)
            assert (moved >= found * (1 - rounding(groups)) - 1e-5 * scale).all()


@pytest.mark.parametrize("groups", [1, 2, 7, 30])
def test_moves_on_keep_the_best_met(isa: str, groups: int) -> None:
    rng = np.random.default_rng(groups)
    frame, Y = rng.standard_normal((40, 16 * groups)), rng.standard_normal((200, 40)) * np.sqrt(groups)
    finder = WordFinder(frame)
    costs = [cost(frame, Y, finder.find(Y, moves, TENURE, 1)[0]) for moves in (0, 1, 5, 20, 100, 500)]
    most = 1 + rounding(groups)
    for worse, better in pairwise(costs):
        assert (better <= worse * most + 1e-4).all()
    greedy = cost(frame, Y, finder.find(Y, 10_000, 0, 1)[0])
    assert (costs[-1] <= greedy * most + 1e-4).all() and costs[-1].mean() <= greedy.mean()
    if groups == 1:  # all there is
        every = [cost(frame, Y, np.full((200, 1), code << 4, np.uint8)) for code in range(16)]
        assert (costs[0] <= np.min(every, axis=0) * most + 1e-4).all()


@pytest.mark.parametrize("groups", [1, 3, 12])
def test_every_instruction_set_moves_as_an_oracle_does(isa: str, groups: int) -> None:
    """Vectors and words of small integers: the same words, ties, far vectors and those rebuilt exactly included."""
    rng = np.random.default_rng(groups)
    frame = rng.integers(-3, 4, (6, 16 * groups)).astype(float)
    frame[:, 1] = frame[:, 0]
    frame[:, 2] = [8, 0, 0, 0, 0, 0]  # the longest: lengths are divided by 8, without rounding
    Y = np.concatenate([rng.integers(-9, 10, (60, 6)), rng.integers(-900, 901, (60, 6))]).astype(float)
    Y[::7] = frame[:, rng.integers(0, 16, (18, groups)) + 16 * np.arange(groups)].sum(axis=2).T
    finder, ways = WordFinder(frame), set()
    for moves, tenure in ((0, 0), (1000, 0), (25, TENURE)):
        rows = finder.find(Y, moves, tenure, 1)[0]
        chosen = selection(rows, 4 * groups).reshape(len(Y), groups, 16).argmax(axis=2)
        expected = [oracle(frame / 8, y / 8, moves, tenure) for y in Y]
        np.testing.assert_array_equal(chosen, [words for words, _ in expected])
        ways |= {rounded for _, rounded in expected}
    assert ways == {True, False}


def test_a_far_training_vector_leaves_the_others_their_words() -> None:
    rng = np.random.default_rng(0)
    data = 4 * rng.standard_normal((50, 16))[rng.integers(0, 50, 4000)] + rng.standard_normal((4000, 16)) / 2
    data[7] = 1e4
    encoder = AntiSparseEncoder(32, frame="words", random_state=0).fit(data)
    others = np.delete(data, 7, axis=0)
    error = ((others - encoder.inverse_transform(encoder.transform(others))) ** 2).sum()
    assert error < 0.05 * ((others - others.mean(axis=0)) ** 2).sum()


def test_groups_of_words_on_opposite_sides_have_room(isa: str) -> None:
    """Sums are largest in part: half of the groups add to them what the others take away again."""
    rng = np.random.default_rng(0)
    frame = np.concatenate([np.full(64, 1.0), np.full(64, -1.0)])[None] + 0.3 * rng.random((1, 128))
    Y = rng.uniform(-2, 2, (300, 1))
    found = cost(frame, Y, WordFinder(frame).find(Y, 0, 0, 1)[0])
    words = np.zeros((300, 0))
    for group in range(8):
        left = Y - words.sum(axis=1, keepdims=True)
        own = frame[0, 16 * group : 16 * group + 16]
        words = np.c_[words, own[np.abs(left - own).argmin(axis=1)]]
    expected = (Y[:, 0] - words.sum(axis=1)) ** 2
    assert (found <= expected + 0.3).all()  # a word rounding chose otherwise; without room it is 2


@pytest.mark.parametrize("groups", [1, 5, 30])
def test_words_do_not_depend_on_batch_and_threads(isa: str, groups: int) -> None:
    rng = np.random.default_rng(groups)
    finder, Y = WordFinder(rng.standard_normal((9, 16 * groups))), rng.standard_normal((301, 9))
    whole = finder.find(Y, 50, TENURE, 2)
    for start, size in ((0, 1), (5, 7), (100, 201)):
        part = finder.find(Y[start : start + size], 50, TENURE, 1)
        for one, all_ in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, all_[start : start + size])
    assert finder.find(Y[:0], 50, TENURE, 1)[0].shape == (0, -(-groups // 2))


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e140])
def test_words_of_extreme_vectors_and_frames(isa: str, size: float) -> None:
    frame = np.random.default_rng(0).standard_normal((5, 48))
    for scaled, Y in ((frame * size, np.ones((3, 5))), (frame, np.full((3, 5), size))):
        rows, along, length = WordFinder(scaled).find(Y, 30, TENURE, 1)
        assert np.isfinite(along).all() and np.isfinite(length).all() and (rows[:, 1] & 15 == 0).all()


def test_arrays_that_do_not_fit_are_refused() -> None:
    frame, gram = np.ones((4, 3, 16), np.float32), np.ones((64, 64), np.float32)
    y, rows = np.ones((2, 3)), np.zeros((2, 2), np.uint8)
    for wrong in ((frame[:3], gram), (frame, gram[:63]), (frame[:, :, :15].copy(), gram), (frame[:0], gram[:0, :0])):
        with pytest.raises(ValueError, match="do not fit"):
            _core.Words(*wrong)
    words = _core.Words(frame, gram)
    words.find(y, 1.0, 5, 2, rows, 1)
    for vectors, codes in ((y[:, :2].copy(), rows), (y, rows[:1]), (y, rows[:, :1].copy())):
        with pytest.raises(ValueError, match="do not fit"):
            words.find(vectors, 1.0, 5, 2, codes, 1)


def test_learning_is_deterministic_and_returns_its_best_round() -> None:
    learned = learn_words(X, 20, random_state=0, rounds=8)
    assert learned.frame.shape == (12, 80) and learned.means.shape == (1, 12)
    assert len(learned.errors) <= 8 and min(learned.errors) < learned.errors[0]
    again = learn_words(X, 20, random_state=0, rounds=1 + int(np.argmin(learned.errors)), n_threads=1)
    np.testing.assert_array_equal(again.frame, learned.frame)
    assert learn_words(X, 20, means=7, random_state=0, rounds=2).means.shape == (7, 12)


def test_words_rebuild_clusters_better_than_signs() -> None:
    rng = np.random.default_rng(0)
    clusters = 2 * rng.standard_normal((40, 12))
    data = clusters[rng.integers(0, 40, 3000)] + rng.standard_normal((3000, 12)) / 2
    held, data = data[:300], data[300:]
    errors = []
    for frame in ("words", "learned"):
        encoder = AntiSparseEncoder(16, frame=frame, random_state=0).fit(data)
        errors.append(((held - encoder.inverse_transform(encoder.transform(held))) ** 2).sum(axis=1).mean())
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("effort", [1, 2, 3])
def test_more_effort_has_a_lower_error(effort: int) -> None:
    encoder = AntiSparseEncoder(40, frame="words", random_state=0).fit(X)
    errors = []
    for level in (effort, min(effort + 1, 3)):
        encoder.set_params(effort=level)
        errors.append(((X - encoder.inverse_transform(encoder.transform(X))) ** 2).sum())
    assert errors[1] <= errors[0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 10}, "n_bits = 10; words take four bits each"),
        ({"n_bits": 2}, "n_bits = 2"),
        ({"n_bits": 8, "effort": 0}, "effort=0 does not go with frame='words'"),
        ({"n_bits": 8, "scale": True}, "scale=True does not go with frame='words'"),
        ({"n_bits": 8, "h": "auto"}, "h='auto' does not go with frame='words'"),
        ({"n_bits": 8, "bias": "half"}, "bias='half' needs the last half byte"),
        ({"n_bits": 8, "means": 9999}, "means = 9999, but X has 700"),
    ],
)
def test_what_words_cannot_be_is_said(parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AntiSparseEncoder(frame="words", **parameters).fit(X)


def test_learn_words_says_what_is_wrong() -> None:
    for wrong, message in ((X[:0], "X has no rows"), (np.ones(3), "X has shape")):
        with pytest.raises(InputError, match=message):
            learn_words(wrong, 8)
    with pytest.raises(InputError, match="multiple of 4"):
        learn_words(X, 9)


def test_words_are_searched_by_reconstruction_alone(tmp_path) -> None:
    encoder = AntiSparseEncoder(40, frame="words", random_state=0).fit(X)
    base = CodeBase(encoder, encoder.transform(X))
    index = Index.create(tmp_path / "index", encoder)
    index.add(X)
    for searched in (base, index):
        assert (searched.search(X[:50], 1)[1][:, 0] == np.arange(50)).mean() > 0.9
        for arguments in ({"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 50}):
            with pytest.raises(UnsupportedError, match="words have no signs to compare"):
                searched.search(Q, 3, **arguments)
    with pytest.raises(UnsupportedError, match="no spread representation"):
        encoder.transform_real(Q)
    index.close()


@pytest.mark.parametrize("frame", ["words", "learned"])
@pytest.mark.parametrize("bias", [True, False, "half"])
def test_what_was_fitted_stays_what_it_is(frame: str, bias: bool | str) -> None:
    """Parameters set without fitting anew change nothing but the effort."""
    fitted = {"n_bits": 20, "frame": frame, "bias": bias, "scale": frame == "learned" and bias is True}
    encoder = AntiSparseEncoder(**fitted, random_state=0).fit(X)
    codes, rebuilt = encoder.transform(X), encoder.inverse_transform(encoder.transform(X))
    base, expected = CodeBase(encoder, codes), CodeBase(encoder, codes).search(Q, 5)
    other = "learned" if frame == "words" else "words"
    changes = [{"frame": other}, {"n_bits": 40}, {"n_bits": 16}, {"means": 3}, {"scale": not fitted["scale"]}]
    for parameters in (*changes, *({"bias": value} for value in (True, False, "half"))):
        encoder.set_params(**fitted | {"means": 1} | parameters)
        np.testing.assert_array_equal(encoder.transform(X), codes)
        np.testing.assert_array_equal(encoder.inverse_transform(codes), rebuilt)
        for one, again in zip(base.search(Q, 5), expected, strict=True):
            np.testing.assert_array_equal(one, again)
    told = "words need 1, 2 or 3" if frame == "words" else "choose 0, 1, 2 or 3"
    for effort in (4, "2", [2], None, True, *([0] if frame == "words" else [])):
        with pytest.raises(InputError, match=f"effort = .*; {told}"):
            encoder.set_params(effort=effort).transform(X)


def test_far_vectors_have_the_words_of_their_direction() -> None:
    encoder = AntiSparseEncoder(16, frame="words", bias=False, random_state=0).fit(X)
    far = X - encoder.mean_
    expected = encoder.transform(encoder.mean_ + 1e9 * far)
    for size in (1e12, 1e20, 1e30, 1e130):
        assert (encoder.transform(encoder.mean_ + size * far) == expected).all(axis=1).mean() > 0.99


@pytest.mark.parametrize("alpha", [None, 0.0])
def test_vectors_beyond_all_bounds_are_coded(alpha: float | None) -> None:
    encoder = AntiSparseEncoder(16, frame="words", alpha=alpha, random_state=0).fit(X)
    codes = encoder.transform(np.concatenate([X[:5], X[:5] * 1e160]))
    np.testing.assert_array_equal(codes[:5], encoder.transform(X[:5]))
    if alpha is None:
        assert (codes[5:, -1] == 255).all()


def test_a_bias_step_next_to_a_power_of_two_can_be_searched() -> None:
    encoder = AntiSparseEncoder(20, frame="words", random_state=0).fit(X)
    encoder.bias_step_ = float(np.nextafter(2.0, 0))
    assert (CodeBase(encoder, encoder.transform(X)).search(encoder.mean_[None], 2)[1] >= 0).all()


def test_few_and_equal_vectors_can_be_learned_from() -> None:
    for data in (X[:1], X[:3], np.ones((50, 4)), np.zeros((30, 4))):
        encoder = clone(AntiSparseEncoder(8, frame="words", random_state=0)).fit(data)
        rebuilt = encoder.inverse_transform(encoder.transform(data))
        assert np.isfinite(rebuilt).all()
        assert np.abs(rebuilt - data).max() <= 1 + np.abs(data).max()
