"""What is learned from vectors: frames, codebooks and means; the same for the same seed, sound on any input."""

import re

import numpy as np
import pytest

from antisparse import InputError, InputTypeError, Learned, learn_codebooks, learn_frame
from antisparse.codec.cells import nearest_mean
from antisparse.codes import unpack
from antisparse.codewords import TENURE, CodewordFinder, one_hot
from antisparse.learning.choose import bias_shares
from antisparse.learning.training import Rounds, Training, held_out, kmeans
from antisparse.refine import anneal

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((30, 12)) * np.linspace(4, 0.5, 12)


def draw(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 30, n)] + rng.standard_normal((n, 12)) * np.linspace(1.5, 0.1, 12) + 5


X, NEW = draw(2000, 1), draw(1000, 2)


def test_the_same_seed_gives_the_same_frame() -> None:
    one, other = (learn_frame(X, 20, means=8, random_state=3, n_threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.matrix, other.matrix)
    np.testing.assert_array_equal(one.means, other.means)
    assert one.errors == other.errors
    assert learn_frame(X, 20, random_state=4).errors != one.errors


def test_the_same_seed_gives_the_same_codebooks() -> None:
    one, other = (learn_codebooks(X, 5, means=8, random_state=3, n_threads=threads, rounds=6) for threads in (1, 2))
    np.testing.assert_array_equal(one.matrix, other.matrix)
    np.testing.assert_array_equal(one.means, other.means)
    assert one.errors == other.errors
    assert learn_codebooks(X, 5, random_state=4, rounds=6).errors != one.errors


def test_the_frame_of_the_best_round_is_returned() -> None:
    learned = learn_frame(X, 20, random_state=0, rounds=8)
    assert len(learned.errors) <= 8 and min(learned.errors) < learned.errors[0]
    assert learned.matrix.shape == (12, 20) and learned.means.shape == (1, 12)
    shorter = learn_frame(X, 20, random_state=0, rounds=1 + int(np.argmin(learned.errors)))
    np.testing.assert_array_equal(shorter.matrix, learned.matrix)


def test_codebooks_learn_round_by_round() -> None:
    learned = learn_codebooks(X, 5, random_state=0, rounds=8)
    assert learned.matrix.shape == (12, 80) and learned.means.shape == (1, 12)
    assert len(learned.errors) == 8 and learned.errors[-1] < 0.8 * learned.errors[0]
    again = learn_codebooks(X, 5, random_state=0, rounds=8, n_threads=1)
    np.testing.assert_array_equal(again.matrix, learned.matrix)
    assert learn_codebooks(X, 5, means=7, random_state=0, rounds=2).means.shape == (7, 12)


def test_rounds_of_codebooks_take_other_vectors_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antisparse.learning.codebooks._BATCH", 100)
    monkeypatch.setattr("antisparse.learning.codebooks._LAST", 250)
    learned = learn_codebooks(X, 5, random_state=0, rounds=12)
    residual = NEW - learned.means[0]
    rows = CodewordFinder(learned.matrix).find(residual, 60, TENURE, 1)[0]
    whole = learn_codebooks(X[:100], 5, random_state=0, rounds=12)  # the same hundred in every round
    others = CodewordFinder(whole.matrix).find(residual, 60, TENURE, 1)[0]
    error = relative_error(one_hot(rows, 5) @ learned.matrix.T, learned)
    assert error < relative_error(one_hot(others, 5) @ whole.matrix.T, whole)


def relative_error(rebuilt: np.ndarray, learned: Learned) -> float:
    residual = NEW - learned.means[nearest_mean(NEW, learned.means)]
    return float(((residual - rebuilt) ** 2).sum(1).mean() / ((NEW - NEW.mean(0)) ** 2).sum(1).mean())


@pytest.mark.parametrize("means", [1, 6])
def test_errors_are_those_of_new_vectors(means: int) -> None:
    """What is held out tells what vectors that were never seen lose."""
    frame = learn_frame(X, 20, means=means, random_state=0)
    residual = NEW - frame.means[nearest_mean(NEW, frame.means)]
    codes = anneal(residual, frame.matrix, sweeps=20, flips=50)
    error = relative_error(unpack(codes, 20) @ frame.matrix.T, frame)
    assert error == pytest.approx(min(frame.errors), rel=0.2)
    books = learn_codebooks(X, 5, means=means, random_state=0)
    residual = NEW - books.means[nearest_mean(NEW, books.means)]
    rows = CodewordFinder(books.matrix).find(residual, 60, TENURE, 1)[0]
    error = relative_error(one_hot(rows, 5) @ books.matrix.T, books)
    assert 0.4 * books.errors[-1] < error < 1.4 * books.errors[-1]  # which is of residuals, with some noise


def test_rounds_keep_the_best_and_end_when_two_do_not_gain() -> None:
    start, variance = Training.of(X, 1, np.random.RandomState(0), 1), 3.0
    rounds, ended = Rounds(start, variance), []
    for number, error in enumerate((10.0, 8.0, 7.9999, 7.0, 6.999, 9.0)):
        ended.append(rounds.end(np.full((1, 1), number), start.means, error * variance))
    assert ended == [False, False, False, False, False, True]  # a gain below a thousandth is none; two in a row end it
    assert rounds.best.matrix[0, 0] == 4 and rounds.best.errors == pytest.approx([10, 8, 7.9999, 7, 6.999, 9])
    assert rounds.note == "error 6.9990"
    assert repr(rounds.best) == "Learned(1 x 1 matrix, 1 means; error 6.9990 after 6 rounds)"


def test_a_tenth_is_held_out() -> None:
    held, train = held_out(X, 4, np.random.RandomState(0))
    assert len(held) == 200 and len(train) == 1800
    np.testing.assert_array_equal(np.sort(np.concatenate([held, train]), axis=0), np.sort(X, axis=0))
    assert len(held_out(X[:99], 1, np.random.RandomState(0))[1]) == 99  # too few to hold some out
    assert len(held_out(X[:100], 95, np.random.RandomState(0))[1]) == 95  # as many as there are means
    start = Training.of(train, 4, np.random.RandomState(0), 1)
    assert len(start.means) == 4
    residual = start.residual()
    np.testing.assert_array_equal(residual, start.vectors - start.means[start.labels])
    assert start.norm == np.sqrt((residual**2).sum(1).mean())
    np.testing.assert_array_equal(start.unit(), residual / start.norm)
    root = start.root(start.unit())
    np.testing.assert_allclose(root @ root.T, residual.T @ residual / 1800, atol=1e-9)


def test_kmeans_does_not_depend_on_threads_and_finds_clusters() -> None:
    found = kmeans(X, 30, np.random.RandomState(0))
    np.testing.assert_array_equal(found, kmeans(X, 30, np.random.RandomState(0)))
    distances = ((X[:, None] - found) ** 2).sum(2).min(1)
    assert distances.mean() < 0.4 * ((X - X.mean(0)) ** 2).sum(1).mean()
    np.testing.assert_allclose(kmeans(X, 1, np.random.RandomState(0)), X.mean(0, keepdims=True))


def test_the_nearest_mean_is_the_nearest(isa: str) -> None:
    means = X[:50]
    expected = ((NEW[:, None] - means) ** 2).sum(2).argmin(1)
    np.testing.assert_array_equal(nearest_mean(NEW, means), expected)
    np.testing.assert_array_equal(nearest_mean(NEW[7:9], means), expected[7:9])
    np.testing.assert_array_equal(nearest_mean(NEW, means, 2), expected)
    twice = np.concatenate([means, means])
    np.testing.assert_array_equal(nearest_mean(NEW, twice), expected)  # the first of equals
    assert not nearest_mean(NEW, means[:1]).any() and len(nearest_mean(NEW[:0], means)) == 0


def test_shares_of_the_bias_are_those_of_a_regression_on_near_neighbours() -> None:
    rng = np.random.default_rng(1)
    base, queries = rng.standard_normal((500, 6)), rng.standard_normal((200, 6))
    rebuilt = np.round(base)
    error = base - rebuilt
    near = np.argsort(((queries[:, None] - base) ** 2).sum(2), axis=1, kind="stable")[:, :3].reshape(-1)
    e, r, q = error[near], rebuilt[near], np.repeat(queries, 3, axis=0)
    terms = np.stack([(r * e).sum(1), (e * e).sum(1), np.ones(600)], axis=1)
    k, share, _ = np.linalg.lstsq(terms, (q * e).sum(1), rcond=None)[0]
    expected = np.clip([1 - 2 * share, 2 - 2 * k], 0, 1)
    np.testing.assert_allclose(bias_shares(queries, base, base, error), expected, atol=1e-9)
    assert 0 < expected[0] < 1 or 0 < expected[1] < 1  # not all of it is clipped
    assert bias_shares(queries[:19], base, base, error) == (0.0, 0.0)  # too few to tell
    assert all(np.isfinite(bias_shares(queries, base, base, 0 * error)))


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    learn_frame(X[:200], 8, rounds=2, random_state=0, progress=True)
    shown = capsys.readouterr().err
    assert "learning the frame" in shown and "left" in shown and re.search(r"error \d\.\d{4}", shown)
    learn_codebooks(X[:200], 2, rounds=2, random_state=0, progress=True)
    shown = capsys.readouterr().err
    assert "learning the codebooks" in " ".join(shown.split()) and "left" in shown
    learn_frame(X[:200], 8, rounds=2, random_state=0)
    learn_codebooks(X[:200], 2, rounds=2, random_state=0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("learn", "name"), [(learn_frame, "n_bits"), (learn_codebooks, "count")])
def test_bad_arguments_are_named(learn, name: str) -> None:
    told = "codebooks" if name == "count" else name
    for arguments, kind, message in (
        ({name: 0}, InputError, f"{told} = 0"),
        ({name: 8, "means": 2001}, InputError, "means = 2001, but X has 2000"),
        ({name: 8, "means": 0}, InputError, "means = 0"),
        ({name: 8, "rounds": 0}, InputError, "rounds = 0"),
        ({name: 8, "n_threads": 0}, InputError, "n_threads = 0"),
        ({name: 8, "progress": 1}, InputTypeError, "progress must be True or False"),
        ({name: 8.0}, InputTypeError, f"{told} must be an integer"),
    ):
        with pytest.raises(kind, match=message):
            learn(X, **arguments)
    for wrong, message in (
        (X[:0], r"X has shape \(0, 12\)"),
        (np.ones(3), "X has shape"),
        ([[1.0], [np.nan]], "X row 1"),
    ):
        with pytest.raises(InputError, match=message):
            learn(wrong, 8)


def test_more_codebooks_than_their_numbers_can_count_are_refused() -> None:
    with pytest.raises(InputError, match="codebooks = 4097; there can be 4096 at most: use fewer bytes, or signs"):
        learn_codebooks(X, 4097)


@pytest.mark.parametrize("means", [1, 3])
def test_few_equal_and_extreme_vectors(means: int) -> None:
    for sample in (X[:3], X[:40], np.ones((20, 12)), np.zeros((5, 12)), X[:50] * 1e-100, X[:50] * 1e100):
        for learned in (
            learn_frame(sample, 16, means=means, random_state=0),
            learn_frame(sample, 16, means=means, scale=True, random_state=0),
            learn_codebooks(sample, 4, means=means, random_state=0),
        ):
            assert np.isfinite(learned.matrix).all() and np.isfinite(learned.means).all() and learned.norm > 0
            assert np.abs(learned.means).max() <= 2 * np.abs(sample).max()
            assert len(learned.means) == means and np.isfinite(learned.errors).all()
