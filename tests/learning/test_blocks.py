"""Symbols in blocks: dealt axes, what is learned of each, and codes that are those of the parts."""

import numpy as np
import pytest

from antisparse import InputError, InputTypeError, LearnedEncoder, Split, choose_split
from antisparse.codec import Blocks, Codebooks, Levels
from antisparse.codec.symbols import combine, correlate
from antisparse.learning.blocks import dealt_axes
from antisparse.learning.product import _bits, product_start

RNG = np.random.default_rng(3)
SPREAD = 1 / np.sqrt(np.arange(1, 25))
X = RNG.standard_normal((1500, 24)) * SPREAD @ np.linalg.qr(RNG.standard_normal((24, 24)))[0] + 3


def relative_error(codec, Y):
    return ((codec.decode(codec.encode(Y)) - Y) ** 2).sum() / ((Y - Y.mean(0)) ** 2).sum()


@pytest.mark.parametrize(("count", "blocks"), [(24, 1), (24, 5), (7, 3)])
def test_axes_are_dealt_out_like_cards(count: int, blocks: int) -> None:
    axes = dealt_axes(X, X.mean(axis=0), count, blocks)
    np.testing.assert_allclose(axes @ axes.T, np.eye(count), atol=1e-12)
    variances = ((X - X.mean(axis=0)) @ axes.T).var(axis=0)
    order = np.concatenate([np.arange(k, count, blocks) for k in range(blocks)])
    assert (np.diff(variances[np.argsort(order)]) <= 1e-12).all()
    np.testing.assert_allclose(np.sort(variances)[::-1], np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:count])


def test_a_code_is_the_codes_of_its_blocks() -> None:
    codec = LearnedEncoder(10, split=Split("codebooks", blocks=3, axes=20), random_state=0).fit(X).codec_
    symbols = codec.symbols
    assert isinstance(symbols, Blocks) and [part.dimension for part in symbols.parts] == [7, 7, 6]
    assert [part.n_bits // 8 for part in symbols.parts] == [3, 3, 3] and codec.n_bytes == 10
    Y = codec.reduction.reduce(X[:50], 1)
    found, at, place = symbols.find(Y, 1, False), 0, 0
    dots = squares = 0
    for part in symbols.parts:
        own = part.find(np.ascontiguousarray(Y[:, at : at + part.dimension]), 1, False)
        np.testing.assert_array_equal(found.symbols[:, place : place + 3], own.symbols)
        dots, squares = dots + own.dots, squares + own.squares
        at, place = at + part.dimension, place + 3
    rebuilt = combine(symbols, found.symbols, 1)
    np.testing.assert_allclose(rebuilt, symbols.expand(found.symbols) @ symbols.matrix.T, atol=1e-6)
    np.testing.assert_allclose(correlate(symbols, Y, 1), Y @ symbols.matrix, atol=1e-10)
    np.testing.assert_allclose(found.dots, (Y * rebuilt).sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.squares, (rebuilt**2).sum(axis=1), rtol=1e-4, atol=1e-5)


def test_what_is_learned_in_blocks_depends_on_the_seed_alone() -> None:
    first = LearnedEncoder(12, split=Split("codebooks", blocks=4), random_state=1, n_threads=1).fit(X).codec_
    for threads in (2, 3):
        again = LearnedEncoder(12, split=Split("codebooks", blocks=4), random_state=1, n_threads=threads).fit(X).codec_
        assert again == first
    assert LearnedEncoder(12, split=Split("codebooks", blocks=4), random_state=2).fit(X).codec_ != first


def test_blocks_lose_little_and_a_product_start_wins_at_many_bits() -> None:
    test = RNG.standard_normal((500, 24)) * SPREAD @ np.linalg.qr(np.random.default_rng(3).standard_normal((24, 24)))[0]
    train = (
        RNG.standard_normal((6000, 24)) * SPREAD @ np.linalg.qr(np.random.default_rng(3).standard_normal((24, 24)))[0]
    )
    error = {
        (n_bytes, blocks): relative_error(
            LearnedEncoder(n_bytes, split=Split("codebooks", blocks=blocks), random_state=0).fit(train).codec_, test
        )
        for n_bytes, blocks in ((7, 1), (7, 2), (13, 1), (13, 2))
    }
    assert error[7, 2] < 1.2 * error[7, 1] and error[13, 2] < 1.3 * error[13, 1]
    levels = LearnedEncoder(13, split=Split("levels"), random_state=0).fit(train).codec_
    assert isinstance(levels.symbols, Levels) and error[13, 1] < relative_error(levels, test)  # four bits a dimension


@pytest.mark.parametrize(("d", "count"), [(1, 1), (3, 5), (24, 6), (24, 40)])
def test_a_product_start_spends_its_bits_where_the_variance_is(d: int, count: int) -> None:
    vectors = (X - X.mean(axis=0))[:, :d]
    matrix = product_start(vectors, count, np.random.RandomState(0))
    assert matrix.shape == (d, 16 * count) and np.isfinite(matrix).all()
    rest = vectors.copy()
    for book in np.split(matrix, count, axis=1):  # greedy, as a residual quantiser
        nearest = ((book**2).sum(axis=0) - 2 * rest @ book).argmin(axis=1)
        rest -= book.T[nearest]
    assert (rest**2).sum() < (vectors**2).sum() * 0.7
    variances = np.sort(vectors.var(axis=0))[::-1]
    bits = _bits(variances, 4 * count)
    assert bits.sum() == pytest.approx(4 * count) and (np.diff(bits) <= 1e-9).all() and (bits >= 0).all()
    used = bits > 0
    left = variances[used] / 4 ** bits[used]
    np.testing.assert_allclose(left, left[0], rtol=1e-6)  # the water level
    assert (variances[~used] <= left[0] * (1 + 1e-9)).all()


def test_the_rule_picks_blocks_where_bytes_are_many() -> None:
    assert choose_split(64, 50_000, 768).blocks == 1 and choose_split(96, 50_000, 768).blocks == 6
    assert choose_split(192, 50_000, 1536) == Split("codebooks", blocks=12)
    assert choose_split(48, 50_000, 1536) == Split("codebooks", axes=384)
    assert choose_split(96, 50_000, 768, symbols="signs") == Split("signs", blocks=6)
    assert choose_split(96, 100, 768).symbols == "signs"


def test_what_blocks_cannot_be_is_an_error() -> None:
    part = Codebooks(np.ones((2, 32)))
    for wrong, error in (((), InputTypeError), ([part], InputTypeError), ((part, "x"), InputTypeError)):
        with pytest.raises(error, match="parts"):
            Blocks(wrong)
    with pytest.raises(InputError, match="whole bytes"):
        Blocks((Codebooks(np.ones((2, 16))), part))
    with pytest.raises(InputError, match="blocks"):
        Split("signs", scale=True, blocks=2)
    with pytest.raises(InputError, match="blocks = 9"):
        LearnedEncoder(4, split=Split("codebooks", blocks=9)).fit(X)
