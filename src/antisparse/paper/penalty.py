"""The choice of h: recall of NN_b and NN_e against it, and how few components a small change of it touches."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from antisparse import AntiSparseEncoder, tight_frame
from antisparse.datasets import synthetic
from antisparse.evaluation import exact_neighbors
from antisparse.paper.methods import SEARCHES, Curve, rank_all
from antisparse.paper.sample import Estimate, Sample, estimate
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, Track, log_axis, new_figure, plot_recall
from antisparse.spread import spread

R = 10
ABSOLUTE = (0.01, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0)
RELATIVE = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)
STEP = 1.1  # what a small change of h is
CURVES: list[Curve] = [("antisparse", "NN_b"), ("antisparse", "NN_e")]
CHOOSING, JUDGING = slice(0, None, 2), slice(1, None, 2)  # the queries that choose an h, and those that judge it


@dataclass(frozen=True)
class Penalty:
    """What was measured: ranks by h on both scales, and the change from h = 1 to h = 1.1."""

    absolute: dict[float, Sample]
    relative: dict[float, Sample]
    moved: Estimate  # part of the components that turn from stuck to free or back
    flipped: Estimate  # part of the signs that change
    stuck: list[int]  # components at +-||x||_inf at h = 0, by vector
    expected_stuck: int  # m - d + 1


def measure(settings: Settings, track: Track) -> Penalty:
    """All of it, at the fixed number of bits."""
    rows: dict[tuple[bool, float], list[Any]] = {}
    moved, flipped, stuck = [], [], []
    for seed in track(settings.seeds, "the choice of h"):
        data = synthetic(settings.n, settings.d, queries=settings.queries, random_state=seed)
        nearest = exact_neighbors(data.base, data.query, 1)[1]
        for relative, grid in ((False, ABSOLUTE), (True, RELATIVE)):
            for h in grid:
                encoder = AntiSparseEncoder(
                    settings.m, frame="tight", effort=0, h=h, relative_h=relative, center=False, random_state=seed
                ).fit(data.learn)
                ranks = rank_all(CURVES, {"antisparse": encoder}, data.base, data.query, nearest, R)
                rows.setdefault((relative, h), []).append(ranks)
        A = tight_frame(settings.d, settings.m, seed)
        before, after, least = (spread(data.query, A, h, relative=False) for h in (1.0, STEP, 0.0))
        free = [np.abs(result.x) < result.t[:, None] * (1 - 1e-9) for result in (before, after, least)]
        moved.append((free[0] != free[1]).mean(axis=1))
        flipped.append(((before.x > 0) != (after.x > 0)).mean(axis=1))
        stuck += (settings.m - free[2].sum(axis=1)).tolist()
    samples = {key: Sample(row) for key, row in rows.items()}
    return Penalty(
        {h: samples[False, h] for h in ABSOLUTE},
        {h: samples[True, h] for h in RELATIVE},
        estimate(np.array(moved)),
        estimate(np.array(flipped)),
        stuck,
        settings.m - settings.d + 1,
    )


def study(penalty: Penalty, settings: Settings) -> Study:
    """The picture and the numbers."""
    figure, axes = new_figure(2)
    numbers: dict[str, Any] = {
        "components that change state from h = 1 to 1.1": penalty.moved.mean,
        "signs that change from h = 1 to 1.1": penalty.flipped.mean,
        "components stuck at h = 0, fewest and most": [min(penalty.stuck), max(penalty.stuck)],
        "m - d + 1": penalty.expected_stuck,
    }
    names = {"absolute": penalty.absolute, "relative": penalty.relative}
    for ax, (name, samples) in zip(axes, names.items(), strict=True):
        numbers[name] = {}
        for curve in CURVES:
            recalls = [sample.by_seed(curve, R) for sample in samples.values()]
            mean = [float(np.mean(r)) for r in recalls]
            plot_recall(ax, samples, curve, mean, [float(np.std(r)) for r in recalls])
            numbers[name][curve[1]] = {"h": list(samples), "recall@10": mean}
        log_axis(ax)
        ax.set_ylim(0, 1)
        ax.set_xlabel("h" if name == "absolute" else "h / h$_1$, h$_1$ = ||A'y||$_1$", fontsize=12)
        ax.set_ylabel("recall@10", fontsize=12)
        ax.set_title(f"{name} h", fontsize=13)
    axes[0].axvline(1, color="black", lw=0.8, ls=":")
    axes[0].annotate(
        "the paper's h = 1", (1, 0.05), xytext=(-6, 0), textcoords="offset points", ha="right", fontsize=10
    )
    axes[1].legend(axes[1].get_lines(), [SEARCHES[search].label for _, search in CURVES], frameon=False, fontsize=11)
    best = {name: chosen_h(samples) for name, samples in names.items()}
    return Study(
        name="h",
        title=f"The choice of h, m = {settings.m}, synthetic set",
        caption=(
            "A small h codes for the reconstruction (NN_e, dotted), a larger one for the Hamming distance (NN_b, "
            f"solid). On half of the queries, as in the table, the best relative h is {best['relative']['NN_e']:g} "
            f"for the first and {best['relative']['NN_b']:g} for the second. From h = 1 to "
            f"h = 1.1, {penalty.moved.mean:.1%} of the components leave or join the stuck ones and "
            f"{penalty.flipped.mean:.1%} of the bits change."
        ),
        alt=(
            "Two line charts of recall@10 against h, absolute and relative. Hamming search is best at relative h = "
            f"{best['relative']['NN_b']:g}, reconstruction at {best['relative']['NN_e']:g}."
        ),
        numbers=numbers | {"best h": best},
        figure=figure,
    )


def chosen_h(samples: dict[float, Sample]) -> dict[str, float]:
    """The best h on every other query, so that the rest can judge it: where it was chosen, the best never loses."""
    return best_h({h: sample.queries(CHOOSING) for h, sample in samples.items()})


def best_h(samples: dict[float, Sample]) -> dict[str, float]:
    """The h of the highest recall@10 by search."""
    best = {}
    for curve in CURVES:
        recall = {h: sample.recall(curve, R).mean for h, sample in samples.items()}
        best[curve[1]] = max(recall, key=recall.__getitem__)
    return best
