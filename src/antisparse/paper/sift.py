"""Figure 3: recall@R on SIFT descriptors, PCA without renormalising, 128 bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA

from antisparse import AntiSparseEncoder
from antisparse._arrays import finite
from antisparse.datasets import Dataset
from antisparse.errors import InputError
from antisparse.evaluation import exact_neighbors
from antisparse.paper.bits import CURVES as SHARED
from antisparse.paper.methods import Curve, fit_all, rank_all
from antisparse.paper.ranking import draw, ladder
from antisparse.paper.sample import Sample
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, Track, recall_table

CURVES: list[Curve] = [
    *SHARED,
    ("antisparse-tuned", "NN_b"),
    ("antisparse-tuned", "NN_e"),
    ("itq", "NN_b"),
    ("itq", "NN_e"),
]
_CHUNK = 16384


@dataclass(frozen=True)
class Sift:
    """Ranks, and how they came about."""

    sample: Sample
    name: str
    n: int
    queries: int
    axes: int  # kept by PCA
    h: float  # the tuned one, relative
    depth: int


def measure(data: Dataset, settings: Settings, track: Track) -> Sift:
    """Ranks of the true neighbour in the original space; everything is fitted on the learning vectors."""
    given = check(data)
    axes = min(settings.sift_pca, *given.shape)
    finite(given, "learn")
    pca = PCA(axes, svd_solver="full", random_state=0).fit(np.asarray(given, np.float64))
    parts = (("learn", given), ("base", data.base), ("query", data.query))
    learn, base, query = (_reduced(pca, X, name) for name, X in parts)
    truth = data.neighbors
    nearest = exact_neighbors(data.base, data.query, 1, progress=True)[1] if truth is None else np.asarray(truth)[:, :1]
    tuned = AntiSparseEncoder(settings.sift_bits, frame="tight", effort=0, h="hamming", center=False, random_state=0)
    h = tuned.fit(learn).h_
    depth = min(settings.depth, len(base))
    rows = []
    for seed in track(settings.sift_seeds, f"Figure 3: {data.name}"):
        encoders = fit_all(CURVES, settings.sift_bits, seed, learn, **{"antisparse-tuned": {"h": h}})
        rows.append(rank_all(CURVES, encoders, base, query, nearest, depth))
    return Sift(Sample(rows), data.name, len(base), len(query), axes, h, depth)


def check(data: Dataset) -> npt.NDArray[Any]:
    """The learning vectors; an error if there is too little to measure."""
    if data.learn is None:
        raise InputError(f"{data.name} has no learning vectors; Figure 3 fits PCA on them, apart from the base")
    for part, least in (("learn", 2), ("base", 11), ("query", 2)):  # recall@10 among 10 is always 1
        if len(getattr(data, part)) < least:
            raise InputError(f"{data.name} has {len(getattr(data, part))} {part} vectors; Figure 3 needs {least}")
    return data.learn


def _reduced(pca: PCA, X: npt.NDArray[Any], name: str) -> npt.NDArray[np.float32]:
    """The principal components kept, a block at a time."""
    out = np.empty((len(X), pca.n_components_), np.float32)
    for start in range(0, len(X), _CHUNK):
        finite(X[start : start + _CHUNK], name, start)
        out[start : start + _CHUNK] = pca.transform(np.asarray(X[start : start + _CHUNK], np.float64))
    return out


def study(result: Sift, settings: Settings) -> Study:
    """The picture and the numbers."""
    title = f"{result.name}: {result.n:,} vectors, {result.queries:,} queries, m = {settings.sift_bits}"
    figure, shown = draw(result.sample, result.depth, title)
    at = {curve: result.sample.recall(curve, min(10, result.depth)).mean for curve in shown}
    return Study(
        name="figure3-sift",
        title=f"Figure 3. recall@R on {result.name}, PCA to {result.axes}, m = {settings.sift_bits}",
        caption=(
            f"Mean of {len(settings.sift_seeds)} frames; bands are one standard deviation. The longer the "
            f"vectors, the smaller is h = 1 beside their h₁; the tuned h is {result.h:g} h₁, the best for bits alone "
            "(solid) among the learning vectors. Dotted: rebuilt vectors."
        ),
        alt=(
            f"Line chart of recall@R against R from 1 to {result.depth}, logarithmic axis. At R = 10: LSH by Hamming "
            f"{at['lsh', 'NN_b']:.2f}, anti-sparse at h = 1 {at['antisparse', 'NN_b']:.2f} by Hamming and "
            f"{at['antisparse', 'NN_e']:.2f} by reconstruction, spectral hashing {at['spectral', 'NN_b']:.2f}."
        ),
        numbers=recall_table(result.sample, ladder(result.depth))
        | {
            "set": result.name,
            "n": result.n,
            "queries": result.queries,
            "axes": result.axes,
            "tuned relative h": result.h,
        },
        figure=figure,
    )
