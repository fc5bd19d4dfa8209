"""One of every kind of codec: what every test of invariance, storage, search and index runs over."""

from functools import cache

import numpy as np
from sklearn.base import clone

from antisparse import (
    AntiSparseEncoder,
    Codec,
    ITQEncoder,
    LearnedEncoder,
    LSHEncoder,
    SpectralHashEncoder,
    Split,
    block_frame,
)

# Clusters away from the origin, so that means, norms and directions all matter. Rounded to quarters, so that any dtype
# of 16 bits or more holds them.
_RNG = np.random.default_rng(7)
_CENTRES = _RNG.standard_normal((12, 10)) * np.linspace(3, 0.5, 10) + 2


def vectors(n: int, seed: int) -> np.ndarray:
    """Vectors like the ones the zoo was fitted on."""
    rng = np.random.default_rng(seed)
    return np.round(4 * (_CENTRES[rng.integers(0, 12, n)] + 0.7 * rng.standard_normal((n, 10)))) / 4


TRAIN = vectors(400, 0)

ENCODERS = {
    "codebooks": LearnedEncoder(6, symbols="codebooks", split=Split("codebooks"), random_state=0),
    "codebooks nibble": LearnedEncoder(5, split=Split("codebooks", bias="nibble"), random_state=0),
    "codebooks cells": LearnedEncoder(6, split=Split("codebooks", cells=9), effort=1, random_state=0),
    "codebooks cells nibble": LearnedEncoder(6, split=Split("codebooks", cells=9, bias="nibble"), random_state=0),
    "codebooks cosine": LearnedEncoder(6, metric="cosine", split=Split("codebooks"), random_state=0),
    "codebooks ip": LearnedEncoder(5, metric="ip", split=Split("codebooks", bias="none"), random_state=0),
    "codebooks cosine cells": LearnedEncoder(
        6, metric="cosine", split=Split("codebooks", cells=9, bias="nibble"), random_state=0
    ),
    "codebooks ip cells": LearnedEncoder(6, metric="ip", split=Split("codebooks", cells=9), random_state=0),
    "codebooks byte": LearnedEncoder(1, random_state=0),
    "codebooks blocks": LearnedEncoder(7, split=Split("codebooks", blocks=3), random_state=0),
    "codebooks blocks cells": LearnedEncoder(
        7, metric="cosine", split=Split("codebooks", cells=9, blocks=2, bias="nibble", axes=8), random_state=0
    ),
    "codebooks axes ip": LearnedEncoder(4, metric="ip", split=Split("codebooks", bias="none", axes=6), random_state=0),
    "signs blocks": LearnedEncoder(5, split=Split("signs", blocks=3), effort=1, random_state=0),
    "signs": LearnedEncoder(5, symbols="signs", split=Split("signs"), random_state=0),
    "signs nibble": LearnedEncoder(4, split=Split("signs", bias="nibble"), effort=3, random_state=0),
    "signs cells": LearnedEncoder(5, split=Split("signs", cells=9), effort=1, random_state=0),
    "signs cells nibble": LearnedEncoder(5, split=Split("signs", cells=9, bias="nibble"), random_state=0),
    "signs scale": LearnedEncoder(6, split=Split("signs", scale=True), random_state=0),
    "signs cells scale": LearnedEncoder(7, split=Split("signs", cells=9, scale=True), random_state=0),
    "signs cosine scale": LearnedEncoder(6, metric="cosine", split=Split("signs", scale=True), random_state=0),
    "signs ip cells scale": LearnedEncoder(6, metric="ip", split=Split("signs", 9, True, "none"), random_state=0),
    "many cells": LearnedEncoder(6, split=Split("codebooks", cells=300), random_state=0),
    "levels": LearnedEncoder(6, split=Split("levels"), random_state=0),
    "levels cells nibble": LearnedEncoder(4, split=Split("levels", cells=9, bias="nibble"), random_state=0),
    "levels ip": LearnedEncoder(4, metric="ip", split=Split("levels", bias="none"), random_state=0),
    "spread": AntiSparseEncoder(24, random_state=0),
    "spread refined": AntiSparseEncoder(21, frame="block", effort=3, metric="cosine", random_state=0),
    "spread greedy": AntiSparseEncoder(24, frame=block_frame(10, 24, 3, 0), effort=1, metric="ip"),
    "spread reduced": AntiSparseEncoder(24, pca=7, metric="cosine", random_state=0),
    "paper": AntiSparseEncoder.paper(24, random_state=0),
    "lsh": LSHEncoder(24, random_state=0),
    "lsh reduced": LSHEncoder(6, frame="gaussian", random_state=0),
    "itq": ITQEncoder(16, random_state=0),
    "itq ip": ITQEncoder(7, metric="ip", random_state=0),
    "spectral": SpectralHashEncoder(17),
}
NAMES = list(ENCODERS)
REBUILDING = [name for name in NAMES if name != "spectral"]
COMPARING = [name for name in NAMES if not {"codebooks", "levels", "cells"} & set(name.split())]  # by hamming
SPREAD = ["spread", "spread refined", "spread greedy", "spread reduced", "paper"]  # with a real-valued representation


@cache
def codec(name: str) -> Codec:
    """The codec of this name, fitted on TRAIN: the same on every instruction set, whichever test asks first."""
    return clone(ENCODERS[name]).fit(TRAIN).codec_


def methods(name: str) -> list[str]:
    """The search methods that a codec allows."""
    found = ["reconstruction"] if name in REBUILDING else []
    if name in COMPARING:
        found += ["hamming"] + ["asymmetric"] * (name != "spectral")
    return found
