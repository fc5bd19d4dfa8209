"""Queries as linear forms: what each search method asks of the scan (docs/search.md)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse._core import FormMaker, project
from antisparse._core import round_weights as round_rows
from antisparse.codes import hamming_distances, unpack
from antisparse.encoders.base import Encoder
from antisparse.encoders.choose import Method
from antisparse.errors import InputError, UnsupportedError

Query = Literal["projection", "spread"]
Metric = Literal["l2", "cosine", "ip"]

METHODS = get_args(Method)
METRICS = get_args(Metric)


@dataclass(frozen=True)
class Form:
    """Queries, ready for the scan of any codes of one encoder.

    The value of a code of cell k is ``offsets[:, k] + factor D``, D being the weight of the bits that disagree and of
    the side byte; with terms it is ``offsets[:, k] + bias + scale S factor``, S = T - 2 D the weighted sum of signs.
    """

    weights: npt.NDArray[np.int32]
    factor: Float64Array
    side: npt.NDArray[np.int32] | None
    offsets: Float64Array  # (queries, cells), or (queries, probes)
    termed: bool
    method: Method
    metric: Metric
    probes: npt.NDArray[np.int64] | None = None  # the cells that each query visits; None: all

    def distances(self, values: Float64Array) -> npt.NDArray[Any]:
        """What method and metric say; the largest there is where there is no code."""
        if self.method == "hamming":
            return hamming_distances(values)
        if self.method == "asymmetric":
            return values
        if self.metric == "ip":
            return values / 2
        return np.maximum(values, 0) / (2 if self.metric == "cosine" else 1)


class Forms:
    """Makes forms of queries for the codes of one encoder, by one metric; what all queries share is made once."""

    def __init__(self, encoder: Encoder, metric: Metric) -> None:
        self._encoder, self._metric = encoder, metric
        self._side = has_side(encoder) or encoder.code_layout_.nibble

    def make(
        self, Q: npt.NDArray[Any], method: Method, query: Query, probes: int | None = None, threads: int = 1
    ) -> Form:
        """Validated queries for a method; with `probes` for so many cells of each alone."""
        if method == "reconstruction":
            return self._reconstruction(Q, probes, threads)
        encoder = self._encoder
        if encoder.words:
            raise UnsupportedError(
                "words have no signs to compare: with frame='words' search by method='reconstruction', without a "
                "shortlist"
            )
        if encoder.cell_means is not None:
            raise UnsupportedError(
                "signs relative to different means do not compare: with means > 1 search by method='reconstruction', "
                "without a shortlist"
            )
        if method == "hamming":
            layout = encoder.code_layout_
            weights = unpack(layout.bits(encoder.transform(Q)), layout.n_bits).astype(np.int32)
            units = np.ones(len(Q))
        else:
            weights, units = round_weights(encoder.query_weights(encoder.reduce(Q), query))
        left_out = np.zeros((len(Q), 1), np.int32) if self._side else None  # the bias counts for nothing
        return Form(weights, units, left_out, np.zeros((len(Q), 1)), False, method, self._metric)

    def _reconstruction(self, Q: npt.NDArray[Any], probes: int | None, threads: int) -> Form:
        """The linear form of ``||q - y_hat||^2``, or of ``-2 q . y_hat``."""
        encoder, inner, side = self._encoder, self._metric == "ip", self._side
        if not encoder.reconstructs:
            raise UnsupportedError(
                f"{type(encoder).__name__} cannot rebuild vectors; search by method='hamming' instead"
            )
        # ||q - y_hat||^2 = ||q - m||^2 + low + step byte - 2 S with S = T - 2 D: 4 (D + step / 4 byte), and what all
        # codes of a mean share. -2 q . y_hat = -2 q . m - 2 S, where q is not centred.
        step, low = np.zeros(()), np.zeros(())
        if side and not inner:
            step, low = np.asarray(encoder.bias_step_) / 4, np.asarray(encoder.bias_low_)
        maker, lengths = self._maker
        some = probes if lengths is not None and probes is not None and probes < len(lengths) else 0
        plain: npt.NDArray[Any] = Q if encoder.components_ is None else self._reduced(Q)
        if plain.dtype != np.float32:
            plain = np.asarray(plain, np.float64)
        weights, units, totals, squares, nearest, products = maker.make(
            np.ascontiguousarray(plain), (4 if encoder.words else 2) * float(step.max()), some, threads
        )
        _check_units(units)
        visited = nearest if some else None
        offsets = self._constant(Q, squares)[:, None]
        if lengths is not None:  # ||q - mean - m_k||^2
            if visited is None:
                products = project(self._reduced(Q), self._columns, threads)
            offsets = offsets + (lengths if visited is None else lengths[visited]) - 2 * products
        if has_terms(encoder):
            return Form(weights, units, None, offsets, True, "reconstruction", self._metric, visited)
        side_weights = None
        if side:
            # One step for all, or one a mean.
            count = offsets.shape[1] if encoder.code_layout_.nibble else 1
            if visited is not None and step.ndim:
                step, low = step[visited], low[visited]
            side_weights = np.round(np.broadcast_to(step / units[:, None], (len(Q), count))).astype(np.int32)
        offsets = offsets + (low - 2 * totals[:, None])
        return Form(weights, 4 * units, side_weights, offsets, False, "reconstruction", self._metric, visited)

    def _constant(self, Q: npt.NDArray[Any], squares: Float64Array) -> Float64Array:
        """``||q - mean||^2``, of all of q, PCA or not; or ``-2 q . mean``."""
        mean, inner = self._encoder.mean_, self._metric == "ip"
        if not inner and self._encoder.components_ is None:
            return squares
        # Not by BLAS, whose order of operations depends on the batch.
        products = np.asarray(Q, np.float64) * (-2 * mean) if inner else (Q - mean) ** 2
        constant: Float64Array = products.sum(axis=1)
        return constant

    def _reduced(self, Q: npt.NDArray[Any]) -> Float64Array:
        """Reduced queries; not centred for an inner product."""
        exact = np.asarray(Q, np.float64)
        return self._encoder.reduce(exact + self._encoder.mean_ if self._metric == "ip" else exact)

    @cached_property
    def _maker(self) -> tuple[FormMaker, Float64Array | None]:
        """What makes forms of queries, reduced where there is PCA; and what the cells' lengths count for."""
        encoder = self._encoder
        shift = encoder.mean_ if encoder.components_ is None and self._metric != "ip" else None
        frame = np.ascontiguousarray(encoder.matrix_)
        if encoder.cell_means is None:
            return FormMaker(frame, shift, words=encoder.words), None
        means = np.ascontiguousarray(encoder.cell_means)
        lengths = np.zeros(len(means)) if self._metric == "ip" else (means * means).sum(axis=1)
        return FormMaker(frame, shift, means, lengths / 2, encoder.words), lengths

    @cached_property
    def _columns(self) -> Float64Array:
        return np.ascontiguousarray(np.asarray(self._encoder.cell_means).T)


def has_side(encoder: Encoder) -> bool:
    """Whether the bias is a byte beside the bits, as one more byte of the code."""
    parts = dict(encoder.code_layout_.side)
    return parts.get("bias") == 1 and "scale" not in parts


def has_terms(encoder: Encoder) -> bool:
    """Whether reconstruction search reads terms."""
    return encoder.reconstructs and not has_side(encoder) and not encoder.code_layout_.nibble


def round_weights(weights: Float64Array) -> tuple[npt.NDArray[np.int32], Float64Array]:
    """Weights as integers below 2^24 times a power of two, one a query: sums of integers are exact in any order."""
    rounded, units = round_rows(np.ascontiguousarray(weights), 0.0)
    _check_units(units)
    return rounded, units


def _check_units(units: Float64Array) -> None:
    if not np.isfinite(units).all():
        row = int(np.argmin(np.isfinite(units)))
        raise InputError(f"Q row {row} is too large: its weights overflow; scale the vectors down")


def unit_rows(X: npt.NDArray[Any], name: str) -> Float64Array:
    """Vectors brought to unit length; an error names one that has none."""
    exact = np.asarray(X, np.float64)
    largest = np.abs(exact).max(axis=1, initial=0, keepdims=True)
    if not largest.all():
        row = int(np.argmin(largest))
        raise InputError(f"{name} row {row} is zero, and has no cosine with anything; remove it, or use another metric")
    exact = exact / largest  # first, so that squares stay in range
    unit: Float64Array = exact / np.sqrt((exact * exact).sum(axis=1, keepdims=True))
    return unit
