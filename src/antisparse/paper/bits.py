"""Figure 1: recall@10 against the number of bits on the synthetic set."""

import numpy as np

from antisparse.datasets import synthetic
from antisparse.evaluation import exact_neighbors
from antisparse.paper.methods import Curve, fit_all, rank_all
from antisparse.paper.sample import Sample
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, Track, legend, new_figure, plot_recall, recall_table

R = 10
CURVES: list[Curve] = [
    ("lsh-gaussian", "NN_b"),
    ("lsh", "NN_b"),
    ("lsh", "NN_a"),
    ("lsh", "NN_e"),
    ("antisparse", "NN_b"),
    ("antisparse", "NN_a"),
    ("antisparse", "NN_a projection"),
    ("antisparse", "NN_e"),
    ("spectral", "NN_b"),
]


def measure(settings: Settings, track: Track) -> dict[int, Sample]:
    """Ranks by number of bits; within a seed, all share the vectors and the queries."""
    rows: dict[int, list[dict[Curve, np.ndarray]]] = {m: [] for m in settings.bits}
    for seed in track(settings.seeds, "Figure 1: recall against bits"):
        data = synthetic(settings.n, settings.d, queries=settings.queries, random_state=seed)
        nearest = exact_neighbors(data.base, data.query, 1)[1]
        for m in settings.bits:
            encoders = fit_all(CURVES, m, seed, data.learn)
            rows[m].append(rank_all(CURVES, encoders, data.base, data.query, nearest, R))
    return {m: Sample(row) for m, row in rows.items()}


def study(samples: dict[int, Sample], settings: Settings) -> Study:
    """The picture and the numbers."""
    figure, (ax,) = new_figure(height=6.2)
    bits = list(samples)
    for curve in CURVES:
        recalls = [samples[m].by_seed(curve, R) for m in bits]
        plot_recall(ax, bits, curve, [float(np.mean(r)) for r in recalls], [float(np.std(r)) for r in recalls])
    ax.set_xlabel("bits m", fontsize=12)
    ax.set_ylabel("recall@10", fontsize=12)
    ax.set_xticks(bits, [str(m) for m in bits])
    ax.set_ylim(0, 1)
    ax.set_title(f"{settings.n:,} vectors on the sphere of {settings.d} dimensions", fontsize=13)
    legend(figure, CURVES)
    last = bits[-1]
    at = {curve: samples[last].recall(curve, R).mean for curve in CURVES}
    return Study(
        name="figure1-bits",
        title="Figure 1. recall@10 against the number of bits, synthetic set",
        caption=(
            f"Mean of {len(settings.seeds)} seeds (vectors and frames); bands are one standard deviation. Bits "
            "alone (solid): LSH with a tight frame (blue) and anti-sparse coding (orange) are the same codes at m = d; "
            "see how they part as m grows, and what comparing rebuilt vectors (dotted) brings to each."
        ),
        alt=(
            f"Line chart of recall@10 against bits from {bits[0]} to {last}. At {last} bits: LSH with random "
            f"projections {at['lsh-gaussian', 'NN_b']:.2f}, LSH with a tight frame {at['lsh', 'NN_b']:.2f}, "
            f"anti-sparse {at['antisparse', 'NN_b']:.2f} by Hamming and {at['antisparse', 'NN_e']:.2f} by "
            f"reconstruction, spectral hashing {at['spectral', 'NN_b']:.2f}."
        ),
        numbers={"bits": {m: recall_table(sample, [1, R]) for m, sample in samples.items()}},
        figure=figure,
    )
