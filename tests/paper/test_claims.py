"""Claims on made-up ranks, whose verdicts are known."""

import re

import numpy as np
import pytest

from antisparse.paper import bits, ranking, sift
from antisparse.paper.claims import Claim, penalty_claims, shortlist_claims, sift_claims, synthetic_claims
from antisparse.paper.penalty import RELATIVE, Penalty
from antisparse.paper.sample import Estimate, Sample
from antisparse.paper.settings import quick
from antisparse.paper.shortlist import STAGES, TwoStage
from antisparse.paper.sift import Sift

SEEDS, QUERIES = 4, 2000


def sample(recalls: dict, seed: int = 0) -> Sample:
    """Ranks with a given recall@10 by curve: 0 if found, else 10."""
    draw = np.random.default_rng(seed)
    return Sample({c: np.where(draw.random(QUERIES) < r, 0, 150) for c, r in recalls.items()} for _ in range(SEEDS))


def verdict(claims: list[Claim], start: str) -> str:
    return next(claim.verdict for claim in claims if claim.statement.startswith(start))


def trade(recalls: dict[float, tuple[float, float]], seed: int = 0) -> Claim:
    relative = {
        h: sample({("antisparse", "NN_b"): b, ("antisparse", "NN_e"): e}, seed + i)
        for i, (h, (b, e)) in enumerate(recalls.items())
    }
    none = Estimate(0.0, 0.0)
    return penalty_claims(Penalty({}, relative, none, none, [33], 33))[-1]


def test_h_trades_one_for_the_other() -> None:
    assert trade({0.1: (0.3, 0.9), 0.5: (0.6, 0.5)}).verdict == "holds"
    assert trade({0.1: (0.9, 0.3), 0.5: (0.5, 0.6)}).verdict == "does not hold"
    assert trade({0.1: (0.9, 0.9), 0.5: (0.3, 0.3)}).verdict == "undecided"  # one h is best for both


def test_h_is_not_judged_where_it_was_chosen() -> None:
    claims = [trade(dict.fromkeys(RELATIVE, (0.5, 0.5)), 100 * seed) for seed in range(20)]
    assert {claim.verdict for claim in claims} == {"undecided"}
    losses = [float(x) for claim in claims for x in re.findall(r"(-?[\d.]+) ±", claim.measured)]
    assert len(losses) == 40
    assert min(losses) < 0  # the best never loses on the queries that chose it


@pytest.mark.parametrize(("moved", "expected"), [(0.01, "holds"), (0.09, "does not hold"), (0.05, "undecided")])
def test_few_components_are_few(moved: float, expected: str) -> None:
    same = sample({("antisparse", "NN_b"): 0.5, ("antisparse", "NN_e"): 0.5})
    penalty = Penalty({}, {0.1: same}, Estimate(moved, 0.01), Estimate(0.0, 0.0), [33, 32], 33)
    claims = penalty_claims(penalty)
    assert verdict(claims, "A slight change of h") == expected
    assert verdict(claims, "As h goes to 0") == "does not hold"  # one vector has 32


@pytest.mark.parametrize(
    ("listed", "slower", "rebuilt", "expected"),
    [
        (0.8, 1.5, 9, ["holds", "holds", "holds"]),
        (0.4, 0.5, 1, ["does not hold", "does not hold", "does not hold"]),
        (0.8, 2.5, 9, ["holds", "does not hold", "holds"]),
    ],
)
def test_the_claims_on_two_stages(listed: float, slower: float, rebuilt: float, expected: list[str]) -> None:
    recalls = {(s, n): listed if n == "100" else 0.6 for s in STAGES for n in ("alone", "10", "100")}
    noise = 1 + np.linspace(-0.02, 0.02, 7)
    seconds = {"NN_b": 1.0, "NN_a": slower, "NN_e": 1.1, "NN_e rebuilt": rebuilt}
    times = {name: (value * noise[:: -1 if name == "NN_b" else 1]).tolist() for name, value in seconds.items()}
    claims = shortlist_claims(TwoStage(sample(recalls), {}, [10, 100], times))
    assert [claim.verdict for claim in claims] == expected


def test_the_claims_on_figures_1_and_2_follow_the_ranks() -> None:
    settings = quick()
    low = dict.fromkeys(ranking.CURVES, 0.4) | {("spectral", "NN_b"): 0.1}
    high = low | {
        ("lsh", "NN_b"): 0.5,
        ("lsh", "NN_a"): 0.6,
        ("lsh", "NN_e"): 0.6,
        ("antisparse", "NN_b"): 0.65,
        ("antisparse", "NN_a"): 0.8,
        ("antisparse", "NN_e"): 0.97,
        ("antisparse", "NN_a projection"): 0.9,
    }
    same = sample(dict.fromkeys(bits.CURVES, 0.3))
    same.ranks["lsh", "NN_b"] = same.ranks["antisparse", "NN_b"]
    good = synthetic_claims({16: same, 48: sample(high)}, sample(high), settings)
    assert {claim.verdict for claim in good} == {"holds"}
    worse = dict.fromkeys(ranking.CURVES, 0.6) | {c: 0.2 for c in ranking.CURVES if c[0] == "antisparse"}
    worse |= {
        ("lsh", "NN_b"): 0.4,
        ("antisparse", "NN_a"): 0.15,
        ("antisparse", "NN_e"): 0.1,
        ("antisparse", "NN_a projection"): 0.1,
    }
    bad = synthetic_claims({16: same, 48: sample(worse)}, sample(worse), settings)
    assert verdict(bad, "Anti-sparse coding equals LSH at m = d") == "holds"
    rest = {claim.statement: claim.verdict for claim in bad if "equals LSH" not in claim.statement}
    assert set(rest.values()) == {"does not hold"}, rest


@pytest.mark.parametrize(
    ("changed", "start", "expected"),
    [
        ({}, "On SIFT, LSH is slightly", "holds"),
        ({("antisparse", "NN_b"): 0.2}, "On SIFT, LSH is slightly", "does not hold"),  # not slightly
        ({("antisparse", "NN_b"): 0.7}, "On SIFT, LSH is slightly", "does not hold"),
        ({}, "Tuning h", "holds"),
        ({("antisparse-tuned", "NN_b"): 0.4}, "Tuning h", "does not hold"),
        ({}, "NN_e is clearly best", "holds"),
        ({("itq", "NN_e"): 0.95}, "NN_e is clearly best", "does not hold"),
        ({}, "NN_e is significantly better", "holds"),
        ({("spectral", "NN_b"): 0.7}, "NN_e is significantly better", "holds"),  # better, if not by much
        ({("spectral", "NN_b"): 0.95}, "NN_e is significantly better", "does not hold"),
        ({}, "On SIFT, anti-sparse coding outperforms ITQ", "holds"),
        ({("itq", "NN_e"): 0.95}, "On SIFT, anti-sparse coding outperforms ITQ", "does not hold"),
    ],
)
def test_the_claims_on_sift_follow_the_ranks(changed: dict, start: str, expected: str) -> None:
    recalls = dict.fromkeys(sift.CURVES, 0.45) | {
        ("lsh", "NN_b"): 0.55,
        ("antisparse", "NN_b"): 0.47,
        ("antisparse-tuned", "NN_b"): 0.65,
        ("antisparse", "NN_e"): 0.8,
    }
    result = Sift(sample(recalls | changed), "made up", 1000, QUERIES, 16, 0.3, 200)
    assert verdict(sift_claims(result), start) == expected
