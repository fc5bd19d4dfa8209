"""Figure 2: recall@R against R on the synthetic set, at a fixed number of bits."""

from typing import TYPE_CHECKING

import numpy as np

from antisparse.datasets import synthetic
from antisparse.evaluation import exact_neighbors
from antisparse.paper.bits import CURVES as SHARED
from antisparse.paper.methods import Curve, fit_all, rank_all
from antisparse.paper.sample import Sample
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, Track, legend, log_axis, new_figure, plot_recall, recall_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES: list[Curve] = [
    *SHARED,
    ("antisparse-gaussian", "NN_b"),
    ("antisparse-gaussian", "NN_e"),
    ("itq", "NN_b"),
    ("itq", "NN_e"),
]


def measure(settings: Settings, track: Track) -> Sample:
    """Ranks down to the depth of the settings."""
    rows = []
    for seed in track(settings.seeds, "Figure 2: recall against R"):
        data = synthetic(settings.n, settings.d, queries=settings.queries, random_state=seed)
        nearest = exact_neighbors(data.base, data.query, 1)[1]
        encoders = fit_all(CURVES, settings.m, seed, data.learn)
        rows.append(rank_all(CURVES, encoders, data.base, data.query, nearest, settings.depth))
    return Sample(rows)


def study(sample: Sample, settings: Settings) -> Study:
    """The picture and the numbers."""
    figure, shown = draw(sample, settings.depth, f"m = {settings.m} bits, {settings.n:,} vectors")
    at = {curve: sample.recall(curve, 1).mean for curve in shown}
    return Study(
        name="figure2-ranking",
        title=f"Figure 2. recall@R against R at m = {settings.m}, synthetic set",
        caption=(
            f"Mean of {len(settings.seeds)} seeds; bands are one standard deviation. Compare, "
            "within a colour, rebuilt vectors (dotted), the real query against bits (dashed) and bits alone (solid)."
        ),
        alt=(
            f"Line chart of recall@R against R from 1 to {settings.depth}, logarithmic axis. The first result is the "
            f"true neighbour for {at['lsh', 'NN_b']:.2f} of the queries with LSH by Hamming, "
            f"{at['antisparse', 'NN_b']:.2f} with anti-sparse by Hamming and {at['antisparse', 'NN_e']:.2f} by "
            "reconstruction."
        ),
        numbers=recall_table(sample, ladder(settings.depth)),
        figure=figure,
    )


def ladder(depth: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... up to `depth`."""
    return [r for power in range(7) for r in (10**power, 2 * 10**power, 5 * 10**power) if r <= depth]


def draw(sample: Sample, depth: int, title: str) -> "tuple[Figure, list[Curve]]":
    """recall@R of every curve of the sample, R on a logarithmic axis."""
    figure, (ax,) = new_figure(height=6.6)
    R = np.unique(np.geomspace(1, depth, 40).astype(int)).tolist()
    shown = list(sample.ranks)
    for curve in shown:
        recalls = [sample.by_seed(curve, r) for r in R]
        plot_recall(ax, R, curve, [float(np.mean(r)) for r in recalls], [float(np.std(r)) for r in recalls])
    log_axis(ax)
    ax.set_xlabel("R", fontsize=12)
    ax.set_ylabel("recall@R", fontsize=12)
    ax.set_ylim(0, 1)
    ax.set_xlim(1, depth)
    ax.set_title(title, fontsize=13, parse_math=False)
    legend(figure, shown)
    return figure, shown
