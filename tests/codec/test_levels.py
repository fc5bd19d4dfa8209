"""Scalar levels: Lloyd-Max levels of coordinates along principal axes, certified by their optimality conditions."""

import numpy as np
import pytest

from antisparse import InputError, LearnedEncoder
from antisparse.codec.levels import Levels, lloyd

RNG = np.random.default_rng(0)
Y = RNG.standard_normal((4000, 12)) @ np.diag(np.linspace(3, 0.3, 12)) @ np.linalg.qr(RNG.standard_normal((12, 12)))[0]


@pytest.mark.parametrize("count", [4, 16])
def test_levels_are_the_means_of_what_is_nearest_to_them(count: int) -> None:
    values = np.concatenate([RNG.standard_normal(3000), 4 + 0.5 * RNG.standard_normal(500)])
    levels = lloyd(values, count)
    assert (np.diff(levels) > 0).all()
    nearest = np.abs(values[:, None] - levels).argmin(axis=1)
    np.testing.assert_allclose([values[nearest == k].mean() for k in range(count)], levels, atol=1e-9)


@pytest.mark.parametrize(("count", "left"), [(4, 0.1175), (16, 0.0095)])
def test_levels_of_a_gaussian_leave_what_max_found(count: int, left: float) -> None:
    values = np.random.default_rng(1).standard_normal(200_000)
    error = np.abs(values[:, None] - lloyd(values, count)).min(axis=1) ** 2
    assert error.mean() == pytest.approx(left, rel=0.05)


@pytest.mark.parametrize("nibbles", [1, 4, 7, 12])
def test_the_nearest_of_all_codes_is_found(nibbles: int) -> None:
    levels = Levels.fit(Y, nibbles, np.random.RandomState(0))
    assert levels.n_bits == 4 * nibbles and levels.matrix.shape == (12, 16 * nibbles)
    found = levels.find(Y[:50], 1, False)
    x = levels.expand(found.symbols)
    assert (x.reshape(50, nibbles, 16).sum(axis=2) == 1).all()
    rebuilt = x @ levels.matrix.T
    np.testing.assert_allclose(found.dots, (Y[:50] * rebuilt).sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.squares, (rebuilt * rebuilt).sum(axis=1), atol=1e-6)
    # The columns of different nibbles are orthogonal, so every nibble may be judged by itself.
    columns = levels.matrix.T.reshape(nibbles, 16, 12)
    costs = (columns**2).sum(axis=2)[None] - 2 * np.einsum("nd,gvd->ngv", Y[:50], columns)
    chosen = np.take_along_axis(costs, x.reshape(50, nibbles, 16).argmax(axis=2)[:, :, None], 2)[:, :, 0]
    np.testing.assert_allclose(chosen, costs.min(axis=2), atol=1e-9)


def test_levels_go_where_they_lower_the_error_most() -> None:
    levels = Levels.fit(Y, 6, np.random.RandomState(0))
    variance = ((Y @ levels.axes.T) ** 2).mean(axis=0)
    assert levels.fine is not None and levels.coarse is not None
    assert variance[: len(levels.fine)].min() > variance[len(levels.fine) :].max()
    # No coordinate left out is worth more than the least of those kept.
    kept = len(levels.axes)
    values = np.sort(np.linalg.eigvalsh(Y.T @ Y / len(Y)))[::-1]
    np.testing.assert_allclose(np.sort(variance)[::-1], values[:kept], rtol=1e-6)


def test_more_bytes_leave_less() -> None:
    variance = ((Y - Y.mean(axis=0)) ** 2).sum()
    errors = []
    for n_bytes in (2, 3, 5, 6):
        encoder = LearnedEncoder(n_bytes, symbols="levels", random_state=0).fit(Y)
        assert encoder.codec_.n_bytes == n_bytes
        errors.append(((Y - encoder.inverse_transform(encoder.transform(Y))) ** 2).sum() / variance)
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.02


def test_what_levels_cannot_be_is_said() -> None:
    with pytest.raises(InputError, match="four bits a dimension at most"):
        LearnedEncoder(9, symbols="levels").fit(Y[:, :6])
    axes, fine, coarse = np.eye(4)[:3], np.arange(16.0)[None], np.arange(8.0).reshape(2, 4)
    assert Levels(axes, fine, coarse).n_bits == 8
    for bad, message in (
        ((2 * axes, fine, coarse), "not orthonormal"),
        ((axes, fine[:, ::-1], coarse), "fine must be 16 ascending numbers"),
        ((axes, fine, coarse[:, :3]), "coarse must be 4 ascending numbers"),
        ((axes, fine, None), "as many as coordinates"),
        ((axes[:2], fine, coarse[:1]), "come in pairs"),
        ((axes, None, None), "as many as coordinates"),
        ((axes, fine, np.full((2, 4), np.nan)), "coarse"),
    ):
        with pytest.raises(InputError, match=message):
            Levels(*bad)


def test_few_distinct_vectors_have_levels_in_order() -> None:
    for seed in range(5):
        few = np.repeat(np.random.default_rng(seed).standard_normal((8, 8)), 100, axis=0)
        encoder = LearnedEncoder(4, symbols="levels", random_state=0).fit(few)
        assert ((few - encoder.inverse_transform(encoder.transform(few))) ** 2).max() < 1
