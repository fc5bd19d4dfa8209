"""The two-stage search: a shortlist by NN_b or NN_a, ranked anew by NN_e (section 3.5 of the paper); and times."""

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from antisparse import AntiSparseEncoder, CodeBase
from antisparse.codec.queries import Method
from antisparse.datasets import synthetic
from antisparse.evaluation import exact_neighbors, nearest_rank
from antisparse.paper.methods import METHODS, SEARCHES
from antisparse.paper.ranking import ladder
from antisparse.paper.sample import Estimate, Sample
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, Track, log_axis, new_figure

R = 10
STAGES: dict[str, Literal["hamming", "asymmetric"]] = {"NN_b": "hamming", "NN_a projection": "asymmetric"}
_REPEATS = 7


@dataclass(frozen=True)
class TwoStage:
    """Ranks and seconds a query after a shortlist of L by S, under ``(S, str(L))``; and the times of whole scans."""

    sample: Sample
    seconds: dict[tuple[str, str], float]
    lengths: list[int]
    times: dict[str, list[float]]  # seconds a query of whole scans, by method, over repeats


def measure(settings: Settings, track: Track) -> TwoStage:
    """Recall over seeds; times on one thread, the best of a few."""
    lengths = [length for length in ladder(settings.n // 10) if length >= R]
    rows: list[dict[tuple[str, str], Any]] = []
    seconds: dict[tuple[str, str], float] = {}
    for seed in track(settings.seeds, "the two-stage search"):
        data = synthetic(settings.n, settings.d, queries=settings.queries, random_state=seed)
        nearest = exact_neighbors(data.base, data.query, 1)[1]
        encoder = AntiSparseEncoder.paper(settings.m, random_state=seed, n_threads=1).fit(data.learn)
        base = CodeBase(encoder, encoder.transform(data.base))
        row = {}
        for stage, method in STAGES.items():
            for length in lengths:
                start = time.perf_counter()
                _, ids = base.search(data.query, R, shortlist=length, shortlist_method=method, n_threads=1)
                taken = (time.perf_counter() - start) / settings.queries
                key = (stage, str(length))
                row[key] = nearest_rank(ids, nearest)
                seconds[key] = min(taken, seconds.get(key, np.inf))
            # The first stage alone.
            row[stage, "alone"] = nearest_rank(base.search(data.query, R, method=method, n_threads=1)[1], nearest)
        row["NN_e", "alone"] = nearest_rank(base.search(data.query, R, n_threads=1)[1], nearest)
        rows.append(row)
    return TwoStage(Sample(rows), seconds, lengths, _whole_scans(settings))


def _whole_scans(settings: Settings) -> dict[str, list[float]]:
    """Seconds a query over a larger base, by search; the last rebuilds every vector, as the paper's NN_e would."""
    data = synthetic(settings.timed, settings.d, queries=100, random_state=0)
    encoder = AntiSparseEncoder.paper(settings.m, random_state=0, n_threads=1).fit(data.learn)
    codes = encoder.transform(data.base)
    base = CodeBase(encoder, codes, n_threads=1)
    # What a query costs before the scan (its own code, its weights) is not the scan's: the same for any base.
    empty = CodeBase(encoder, codes[:1], n_threads=1)
    searches: dict[str, Method] = {"NN_b": "hamming", "NN_a": "asymmetric", "NN_e": "reconstruction"}
    times: dict[str, list[float]] = {name: [] for name in (*searches, "NN_e rebuilt")}
    for _ in range(_REPEATS):
        for name, method in searches.items():
            taken = []
            for which in (base, empty):
                start = time.perf_counter()
                which.search(data.query, R, method=method)
                taken.append(time.perf_counter() - start)
            times[name].append(max(taken[0] - taken[1], 1e-9) / len(data.query))
        start = time.perf_counter()
        rebuilt = encoder.inverse_transform(codes)
        difference = rebuilt - data.query[0]
        np.argpartition((difference * difference).sum(axis=1), R)
        times["NN_e rebuilt"].append(time.perf_counter() - start)
    return times


def ratio(times: dict[str, list[float]], name: str, other: str) -> Estimate:
    """How many times as long `name` takes as `other`: the median over turns, which a busy moment does not move."""
    ratios = np.array(times[name]) / np.array(times[other])
    median = float(np.median(ratios))
    # The standard error of a median, from the median deviation, for values that are normal but for a few.
    return Estimate(median, 1.2533 * 1.4826 * float(np.median(np.abs(ratios - median))) / len(ratios) ** 0.5)


def study(result: TwoStage, settings: Settings) -> Study:
    """The picture and the numbers."""
    figure, (upper, lower) = new_figure(2)
    colour = METHODS["antisparse"].colour
    numbers: dict[str, Any] = {"shortlist": result.lengths}
    for stage in STAGES:
        recall = [result.sample.recall((stage, str(length)), R).mean for length in result.lengths]
        micro = [result.seconds[stage, str(length)] * 1e6 for length in result.lengths]
        numbers[stage] = {"recall@10": recall, "microseconds a query": micro}
        line, name = SEARCHES[stage].line, SEARCHES[stage].label
        upper.plot(result.lengths, recall, line, color=colour, lw=2, label=f"{name}, then NN$_e$")
        lower.plot(result.lengths, micro, line, color=colour, lw=2, label=f"{name}, then NN$_e$")
        alone = result.sample.recall((stage, "alone"), R).mean
        numbers[stage]["recall@10 alone"] = alone
        upper.axhline(alone, color="#7f7f7f", ls=line, lw=1.2, label=f"{name}, alone")
    whole = result.sample.recall(("NN_e", "alone"), R).mean
    numbers["NN_e over the whole base, recall@10"] = whole
    numbers["scan of one query, microseconds"] = {name: min(taken) * 1e6 for name, taken in result.times.items()}
    numbers["codes in the timed scan"] = settings.timed
    upper.axhline(whole, color="black", lw=1.2, ls=":", label="NN$_e$ over the whole base")
    for ax, name in ((upper, "recall@10"), (lower, "microseconds a query, one thread")):
        log_axis(ax)
        ax.set_xlabel("length of the shortlist", fontsize=12)
        ax.set_ylabel(name, fontsize=12)
        ax.legend(frameon=False, fontsize=10)
    upper.set_ylim(0, 1)
    lower.set_ylim(bottom=0)
    first, slower = numbers["NN_b"], ratio(result.times, "NN_e", "NN_b").mean
    return Study(
        name="two-stage",
        title=f"The two-stage search, m = {settings.m}, synthetic set",
        caption=(
            "A shortlist ranked anew by the rebuilt vectors, from the bits alone: recall@10 goes from "
            f"{first['recall@10 alone']:.2f} (NN_b) to {first['recall@10'][-1]:.2f} with {result.lengths[-1]:,} "
            f"candidates; the whole scan by NN_e has {whole:.2f}, and takes {slower:.2f} "
            f"times as long as that by NN_b ({settings.timed:,} codes)."
        ),
        alt=(
            f"Two line charts against the shortlist's length: recall@10, which rises from {first['recall@10'][0]:.2f} "
            f"at {result.lengths[0]} to {first['recall@10'][-1]:.2f} at {result.lengths[-1]} candidates by Hamming, "
            "and time."
        ),
        numbers=numbers,
        figure=figure,
    )
