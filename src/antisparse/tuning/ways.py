"""The ways to spend bytes on a code: which are tried for a number of bytes, the default one first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from antisparse.codec.queries import Method
from antisparse.errors import InputError
from antisparse.learning.split import Split, choose_split
from antisparse.metrics import METRICS, MetricName

TRAIN = 100_000  # vectors that Index.build and antisparse build learn from, at most
DEFAULT_EFFORT, MORE_EFFORT = 2, 3

_HALF_BYTES = 16  # bytes up to which the half byte between the two kinds of bias is worth a trial
_FEW_BYTES = 32  # bytes up to which cells and scales are tried: beyond, learning takes long and they gain little
_EFFORT_BYTES = 64  # bytes up to which more effort is tried
_CELLS, _PER_CELL = 256, 80  # training vectors a cell: with fewer, means fit these and not the base
_H = 0.3  # the penalty of drawn frames, relative: a good one for the Hamming distance

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A way to spend bytes: the parameters of an encoder for any number of them.

    Attributes
    ----------
    name : str
    estimator : {"LearnedEncoder", "AntiSparseEncoder"}
    method : {"reconstruction", "hamming"}
        How its codes are searched.
    parameters : callable
        Of the number of bytes; None where this way is not tried for so many.
    """

    name: str
    estimator: str
    method: Method
    parameters: Callable[[int], Parameters | None]


def default_split(n_bytes: int, n_indexed: int, dimension: int, metric: MetricName, symbols: str = "auto") -> Split:
    """The split that building an index of `n_indexed` vectors chooses."""
    return choose_split(n_bytes, min(n_indexed, TRAIN), dimension, metric=metric, symbols=symbols)


def all_ways(dimension: int, n_indexed: int, n_train: int, metric: MetricName) -> list[Way]:
    """Every way, the default one first.

    Parameters
    ----------
    dimension : int
    n_indexed : int
        How many vectors there will be to index, which the default split may depend on.
    n_train : int
        How many vectors encoders are fitted on.
    metric : {"l2", "cosine", "ip"}
    """
    learned = METRICS[metric].centres

    def rule(symbols: str) -> Callable[[int], Parameters | None]:
        return lambda n_bytes: _fitting(n_bytes, lambda: default_split(n_bytes, n_indexed, dimension, metric, symbols))

    def fixed(most: int, **split: Any) -> Callable[[int], Parameters | None]:
        return lambda n_bytes: _fitting(n_bytes, lambda: Split(**split)) if n_bytes <= most else None

    ways = [
        Way("default", "LearnedEncoder", "reconstruction", rule("auto")),
        Way("codebooks", "LearnedEncoder", "reconstruction", rule("codebooks")),
        Way("signs", "LearnedEncoder", "reconstruction", rule("signs")),
    ]
    splits: list[tuple[str, int, Parameters]] = []
    if learned:
        splits += [
            ("codebooks, bias byte", _HALF_BYTES, {"symbols": "codebooks"}),
            ("codebooks, bias nibble", _HALF_BYTES, {"symbols": "codebooks", "bias": "nibble"}),
        ]
    bias = "byte" if learned else "none"
    splits.append(("signs, scale", _FEW_BYTES, {"symbols": "signs", "scale": True, "bias": bias}))
    if n_train >= _CELLS * _PER_CELL:
        splits += [
            (f"{symbols}, {_CELLS} cells", _FEW_BYTES, {"symbols": symbols, "cells": _CELLS, "bias": bias})
            for symbols in ("codebooks", "signs")
        ]
    ways += [Way(name, "LearnedEncoder", "reconstruction", fixed(most, **split)) for name, most, split in splits]
    if learned:
        ways.append(Way("Hamming", "AntiSparseEncoder", "hamming", lambda n_bytes: _drawn(n_bytes, dimension, n_train)))
    return ways


def with_more_effort(way: Way) -> Way:
    """The same codes, searched for longer when vectors are encoded."""

    def parameters(n_bytes: int) -> Parameters | None:
        found = way.parameters(n_bytes) if n_bytes <= _EFFORT_BYTES else None
        return None if found is None else {**found, "effort": MORE_EFFORT}

    return Way(f"{way.name}, effort {MORE_EFFORT}", way.estimator, way.method, parameters)


def _fitting(n_bytes: int, make: Callable[[], Split]) -> Parameters | None:
    """The parameters of a split, if so many bytes have room for it."""
    try:
        split = make()
        split.nibbles(n_bytes)
    except InputError:
        return None
    return {"n_bytes": n_bytes, "split": split, "effort": DEFAULT_EFFORT}


def _drawn(n_bytes: int, dimension: int, n_train: int) -> Parameters:
    """The paper's codes in a drawn frame, of two bits a dimension at least: with one they are plain projections."""
    bits = 8 * n_bytes
    kept = min(bits // 2, n_train)
    reduced = {"pca": kept} if kept < dimension else {}
    return {"n_bits": bits, "frame": "block", "h": _H, **reduced}
