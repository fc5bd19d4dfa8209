import numpy as np
import pytest

from antisparse.paper.sample import Estimate, Sample, estimate, worst


def test_an_estimate_counts_seeds_and_queries() -> None:
    rng = np.random.default_rng(0)
    seeds, queries = 40, 500
    # Variance of the mean: 1/40 from seeds, 4/500 from queries, 9/(40 * 500) from the rest.
    truth = (1 / seeds + 4 / queries + 9 / (seeds * queries)) ** 0.5
    means, errors = [], []
    for _ in range(200):
        values = (
            rng.standard_normal((seeds, 1))
            + 2 * rng.standard_normal((1, queries))
            + 3 * rng.standard_normal((seeds, queries))
        )
        result = estimate(values)
        means.append(result.mean)
        errors.append(result.error)
    assert np.mean(errors) == pytest.approx(truth, rel=0.05)
    assert np.std(means) == pytest.approx(truth, rel=0.2)


def test_one_seed_leaves_the_error_of_the_queries() -> None:
    values = np.array([[0.0, 1.0, 1.0, 0.0]])
    assert estimate(values).error == pytest.approx(values.std(ddof=1) / 2)


@pytest.mark.parametrize(
    ("mean", "above", "within"),
    [(0.5, "holds", "does not hold"), (-0.5, "does not hold", "does not hold"), (0.15, "undecided", "undecided")],
)
def test_verdicts_need_two_standard_errors(mean: float, above: str, within: str) -> None:
    assert Estimate(mean, 0.1).above() == above
    assert Estimate(mean, 0.1).within(0.1) == within


def test_verdicts_with_a_margin() -> None:
    assert Estimate(0.5, 0.1).above(0.31) == "undecided"
    assert Estimate(0.5, 0.1).above(0.29) == "holds"
    assert Estimate(0.0, 0.001).within(0.01) == "holds"
    assert worst(["holds", "undecided"]) == "undecided"
    assert worst(["holds", "does not hold", "undecided"]) == "does not hold"


def test_recall_and_gain_of_known_ranks() -> None:
    a, b = ("lsh", "NN_b"), ("lsh", "NN_e")
    sample = Sample(
        [{a: np.array([0, 9, 10]), b: np.array([0, 0, 0])}, {a: np.array([0, 0, 10]), b: np.array([0, 0, 9])}]
    )
    assert sample.recall(a, 10).mean == pytest.approx(4 / 6)
    assert sample.by_seed(a, 1) == pytest.approx([1 / 3, 2 / 3])
    assert sample.gain(b, a, 10).mean == pytest.approx(2 / 6)
    assert sample.gain(a, b, 10).mean == -sample.gain(b, a, 10).mean
