"""Learned frames: better than drawn ones, the same for the same seed, sound on any input."""

import numpy as np
import pytest

from antisparse import AntiSparseEncoder, CodeBase, InputError, InputTypeError
from antisparse.encoders.choose import H_GRID
from antisparse.evaluation import exact_neighbors, recall_at
from antisparse.learn import learn_frame, nearest_mean

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((30, 12)) * np.linspace(4, 0.5, 12)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 30, n)] + rng.standard_normal((n, 12)) * np.linspace(1.5, 0.1, 12) + 5


X, NEW = draw(2000, 1), draw(1000, 2)


def rebuilt_error(encoder) -> float:
    encoder.fit(X)
    return float(((NEW - encoder.inverse_transform(encoder.transform(NEW))) ** 2).sum(1).mean())


@pytest.mark.parametrize("n_bits", [6, 12, 30])
def test_a_learned_frame_rebuilds_better_than_a_drawn_one(n_bits: int) -> None:
    learned = rebuilt_error(AntiSparseEncoder(n_bits, random_state=0))
    drawn = rebuilt_error(AntiSparseEncoder(n_bits, frame="tight", random_state=0))
    assert learned < 0.7 * drawn


def test_means_and_scales_lower_the_error() -> None:
    plain = rebuilt_error(AntiSparseEncoder(24, random_state=0))
    assert rebuilt_error(AntiSparseEncoder(24, means=30, random_state=0)) < 0.8 * plain
    # Vectors of very different lengths: a scale each.
    lengths = np.exp(RNG.standard_normal((2000, 1)))
    Y = X * lengths
    errors = []
    for scale in (False, True):
        encoder = AntiSparseEncoder(24, scale=scale, random_state=0).fit(Y)
        errors.append(((Y - encoder.inverse_transform(encoder.transform(Y))) ** 2).sum(1) / (Y**2).sum(1))
    assert np.median(errors[1]) < 0.7 * np.median(errors[0])


def test_more_effort_rebuilds_better() -> None:
    errors = [rebuilt_error(AntiSparseEncoder(40, effort=effort, random_state=0)) for effort in (0, 1, 2, 3)]
    assert errors == sorted(errors, reverse=True)


def test_effort_helps_drawn_frames_too() -> None:
    def cosine(effort):
        encoder = AntiSparseEncoder(40, frame="tight", effort=effort, random_state=0).fit(X)
        rebuilt = encoder.inverse_transform(encoder.transform(NEW)) - encoder.mean_
        centred = NEW - encoder.mean_
        return ((rebuilt * centred).sum(1) / np.linalg.norm(rebuilt, axis=1) / np.linalg.norm(centred, axis=1)).mean()

    cosines = [cosine(effort) for effort in (0, 1, 3)]
    assert cosines == sorted(cosines)


def test_the_same_seed_gives_the_same_frame() -> None:
    one, other = (learn_frame(X, 20, means=8, random_state=3, n_threads=threads) for threads in (1, 2))
    np.testing.assert_allclose(one.frame, other.frame)
    np.testing.assert_allclose(one.means, other.means)
    assert one.errors == pytest.approx(other.errors)
    assert learn_frame(X, 20, random_state=4).errors != one.errors


def test_the_frame_of_the_best_round_is_returned() -> None:
    learned = learn_frame(X, 20, random_state=0, rounds=8)
    assert len(learned.errors) <= 8 and min(learned.errors) < learned.errors[0]
    assert learned.frame.shape == (12, 20) and learned.means.shape == (1, 12)
    shorter = learn_frame(X, 20, random_state=0, rounds=1 + int(np.argmin(learned.errors)))
    np.testing.assert_array_equal(shorter.frame, learned.frame)


def test_the_nearest_mean_is_the_nearest() -> None:
    means = X[:50]
    expected = ((NEW[:, None] - means) ** 2).sum(2).argmin(1)
    np.testing.assert_array_equal(nearest_mean(NEW, means), expected)
    np.testing.assert_array_equal(nearest_mean(NEW[7:9], means), expected[7:9])


@pytest.mark.parametrize("means", [1, 3])
def test_few_or_equal_vectors(means: int) -> None:
    for sample in (X[:3], X[:40], np.ones((20, 12)), np.zeros((5, 12)), X[:50] * 1e-100, X[:50] * 1e100):
        for scale in (False, True):
            encoder = AntiSparseEncoder(16, means=means, scale=scale, random_state=0).fit(sample)
            rebuilt = encoder.inverse_transform(encoder.transform(sample))
            assert np.isfinite(rebuilt).all()
            assert np.abs(rebuilt - sample).max() <= 3 * np.abs(sample).max()


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    learn_frame(X[:200], 8, rounds=2, random_state=0, progress=True)
    assert "learning the frame" in capsys.readouterr().err


def test_bad_arguments_are_named() -> None:
    for arguments, kind, message in (
        ({"n_bits": 0}, InputError, "n_bits = 0"),
        ({"n_bits": 8, "means": 2001}, InputError, "means = 2001, but X has 2000"),
        ({"n_bits": 8, "rounds": 0}, InputError, "rounds = 0"),
        ({"n_bits": 8.0}, InputTypeError, "n_bits must be an integer"),
    ):
        with pytest.raises(kind, match=message):
            learn_frame(X, **arguments)
    with pytest.raises(InputError, match="X has no rows"):
        learn_frame(X[:0], 8)
    with pytest.raises(InputError, match="X row 1"):
        learn_frame(np.array([[1.0], [np.nan]]), 2)


def test_h_auto_finds_the_h_that_its_search_wants() -> None:
    rng = np.random.default_rng(5)
    data = rng.standard_normal((4000, 16))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    chosen = {}
    for method in ("hamming", "asymmetric", "reconstruction"):
        encoder = AntiSparseEncoder(48, frame="tight", effort=0, h="auto", h_for=method, random_state=0).fit(data)
        assert encoder.h_ in H_GRID
        again = AntiSparseEncoder(48, frame="tight", effort=0, h="auto", h_for=method, random_state=0, n_threads=1)
        assert again.fit(data).h_ == encoder.h_
        plain = AntiSparseEncoder(48, frame="tight", effort=0, h=encoder.h_, random_state=0).fit(data)
        assert (plain.transform(data[:50]) == encoder.transform(data[:50])).all()
        chosen[method] = encoder.h_
    assert chosen["hamming"] > chosen["reconstruction"]  # as the paper found

    def recall(h: float) -> float:
        encoder = AntiSparseEncoder(48, frame="tight", effort=0, h=h, random_state=1).fit(data)
        found = CodeBase(encoder, encoder.transform(data[:3000])).search(data[3000:], 10, method="hamming")[1]
        return recall_at(found, exact_neighbors(data[:3000], data[3000:], 1)[1], 10)

    assert recall(chosen["hamming"]) > max(recall(H_GRID[0]), recall(H_GRID[-1]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"h": "best"}, "h = 'best'"),
        ({"h": "auto", "relative_h": False}, "relative_h"),
        ({"h": "auto", "h_for": "nearest"}, "h_for"),
        ({"h": "auto", "frame": "learned", "means": 4}, "means"),
    ],
)
def test_h_auto_says_what_is_wrong(parameters, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AntiSparseEncoder(24, **{"frame": "tight", "effort": 0} | parameters).fit(X)
    with pytest.raises(InputError, match="too few"):
        AntiSparseEncoder(24, frame="tight", effort=0, h="auto").fit(X[:19])
