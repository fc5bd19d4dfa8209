"""Recall on the paper's synthetic set at the points a prototype measured, as mean and standard deviation of ten seeds."""

import numpy as np
import pytest

from antisparse.paper import bits
from antisparse.paper.settings import Settings

# (bits, method, search) -> recall@10, its standard deviation over seeds.
POINTS = {
    (48, "lsh-gaussian", "NN_b"): (0.381, 0.015),
    (48, "lsh", "NN_b"): (0.489, 0.010),
    (48, "lsh", "NN_a"): (0.729, 0.012),
    (48, "lsh", "NN_e"): (0.749, 0.012),
    (48, "antisparse", "NN_b"): (0.608, 0.016),
    (48, "antisparse", "NN_a"): (0.749, 0.020),
    (48, "antisparse", "NN_a projection"): (0.883, 0.008),
    (48, "antisparse", "NN_e"): (0.938, 0.011),
    (96, "lsh", "NN_b"): (0.722, 0.015),
    (96, "antisparse", "NN_b"): (0.884, 0.008),
}


@pytest.fixture(scope="module")
def samples() -> dict:
    return bits.measure(Settings(bits=(16, 48, 96)), lambda items, name: items)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: " ".join(map(str, point)))
def test_recall_is_the_prototypes(samples: dict, point: tuple[int, str, str]) -> None:
    m, *curve = point
    expected, deviation = POINTS[point]
    ours = samples[m].by_seed(tuple(curve), 10)
    # Two standard errors of the difference of two means of ten seeds.
    error = ((np.var(ours, ddof=1) + deviation**2) / 10) ** 0.5
    assert len(ours) == 10
    assert abs(np.mean(ours) - expected) < 2 * error


def test_at_m_equal_to_d_the_codes_are_those_of_lsh(samples: dict) -> None:
    np.testing.assert_array_equal(samples[16].ranks["antisparse", "NN_b"], samples[16].ranks["lsh", "NN_b"])
