"""The methods the paper compares and the ways it searches, each with one colour or line style in every picture."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from antisparse import AntiSparseEncoder, CodeBase, ITQEncoder, LSHEncoder, SpectralHashEncoder, gaussian_frame
from antisparse.evaluation import nearest_rank
from antisparse.paper.sample import Ranks


@dataclass(frozen=True)
class Method:
    """How vectors become codes: `make(d, n_bits, seed)` gives an encoder to fit."""

    label: str
    colour: str
    make: Callable[[int, int, int], Any]


def _antisparse_gaussian(d: int, n_bits: int, seed: int) -> AntiSparseEncoder:
    # Scaled as a tight frame is (A A' = I on average), so that h = 1 means the same.
    frame = gaussian_frame(d, n_bits, seed)
    frame = frame * np.sqrt(d / (frame * frame).sum())
    return AntiSparseEncoder(n_bits, frame=frame, effort=0, h=1.0, relative_h=False, center=False)


# Nothing is centred for LSH and anti-sparse coding: the paper does not.
METHODS = {
    "lsh-gaussian": Method(
        "LSH, random projections",
        "#7f7f7f",
        lambda d, m, seed: LSHEncoder(m, frame="gaussian", center=False, random_state=seed),
    ),
    "lsh": Method(
        "LSH, tight frame", "#0072b2", lambda d, m, seed: LSHEncoder(m, frame="tight", center=False, random_state=seed)
    ),
    "antisparse": Method(
        "anti-sparse, h = 1", "#d55e00", lambda d, m, seed: AntiSparseEncoder.paper(m, random_state=seed)
    ),
    "antisparse-gaussian": Method("anti-sparse, random projections", "#cc79a7", _antisparse_gaussian),
    "antisparse-tuned": Method(
        "anti-sparse, h tuned",
        "#e69f00",
        lambda d, m, seed: AntiSparseEncoder(m, frame="tight", effort=0, h=0.3, center=False, random_state=seed),
    ),
    "spectral": Method("spectral hashing", "#009e73", lambda d, m, seed: SpectralHashEncoder(m)),
    "itq": Method("ITQ", "#56b4e9", lambda d, m, seed: ITQEncoder(m, random_state=seed)),
}


@dataclass(frozen=True)
class Search:
    """How codes are searched: options of `CodeBase.search`."""

    label: str
    line: str
    options: dict[str, Any]


# The paper's NN_a keeps the query's own representation: x / ||x||_inf for anti-sparse coding, A'q for LSH.
SEARCHES = {
    "NN_b": Search("NN$_b$: Hamming", "-", {"method": "hamming"}),
    "NN_a": Search("NN$_a$: query kept real", "--", {"method": "asymmetric", "query": "spread"}),
    "NN_a projection": Search("NN$_a$, weights A'q", "-.", {"method": "asymmetric", "query": "projection"}),
    "NN_e": Search("NN$_e$: rebuilt vectors", ":", {"method": "reconstruction"}),
}

Curve = tuple[str, str]  # names of a method and of a search


def options(curve: Curve) -> dict[str, Any]:
    """What `CodeBase.search` takes for a curve."""
    method, search = curve
    chosen = dict(SEARCHES[search].options)
    if not method.startswith("antisparse") and chosen.get("query") == "spread":
        chosen["query"] = "projection"  # the query as LSH keeps it real
    return chosen


def label(curve: Curve) -> str:
    """What a curve is called in words."""
    method, search = curve
    return f"{METHODS[method].label}, {search}"


def fit_all(curves: list[Curve], n_bits: int, seed: int, learn: Any, **parameters: dict[str, Any]) -> dict[str, Any]:
    """An encoder for every method of the curves, fitted; `parameters` of a method, under its name, are set first."""
    encoders = {}
    for name in dict.fromkeys(method for method, _ in curves):
        encoder = METHODS[name].make(learn.shape[1], n_bits, seed)
        encoders[name] = encoder.set_params(**parameters.get(name, {})).fit(learn)
    return encoders


def rank_all(curves: list[Curve], encoders: dict[str, Any], base: Any, Q: Any, nearest: Any, depth: int) -> Ranks:
    """Where each curve's search puts the true nearest neighbour of each query; `depth` where not among so many."""
    ranks: Ranks = {}
    for method, encoder in encoders.items():
        mine = [curve for curve in curves if curve[0] == method]
        if not mine:
            continue
        codes = CodeBase(encoder, encoder.transform(base))
        for curve in mine:
            _, ids = codes.search(Q, min(depth, len(base)), **options(curve))
            rank = nearest_rank(ids, nearest)
            rank[rank == ids.shape[1]] = depth
            ranks[curve] = rank
    return ranks
