"""Search on codes: hamming (NN_b), asymmetric (NN_a) and reconstruction (NN_e), through one scan (docs/search.md)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, integer, thread_count
from antisparse._core import ScanBase, project
from antisparse.codes import BLOCK, cell_blocks, hamming_distances, scan_blocks, scan_rows, unpack
from antisparse.encoders.base import Encoder
from antisparse.errors import InputError, UnsupportedError

Method = Literal["hamming", "asymmetric", "reconstruction"]
Query = Literal["projection", "spread"]
Metric = Literal["l2", "cosine", "ip"]
Ids = npt.NDArray[np.int64]

METRICS = ("l2", "cosine", "ip")
_METHODS = ("hamming", "asymmetric", "reconstruction")
_CHUNK_QUERIES = 1024
_CHUNK_CODES = 16384


class CodeBase:
    """Codes laid out for the scan, with what each method needs to know of every code.

    Parameters
    ----------
    encoder : fitted encoder
        The one that made the codes.
    codes : ndarray of shape (n, code_size), uint8
    metric : {"l2", "cosine", "ip"}
        What reconstruction search ranks by: the squared distance to the rebuilt vector; for codes of vectors of unit
        length, half of it from the query brought to unit length, which estimates one less the cosine; or less the inner
        product with the rebuilt vector.
    n_threads : int, optional
        All available CPUs by default.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import AntiSparseEncoder, CodeBase
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> encoder = AntiSparseEncoder(48, random_state=0).fit(X)
    >>> base = CodeBase(encoder, encoder.transform(X))
    >>> distances, ids = base.search(X[:5], k=3, method="reconstruction")
    >>> ids[:, 0]
    array([0, 1, 2, 3, 4])
    """

    def __init__(self, encoder: Encoder, codes: Any, *, metric: Metric = "l2", n_threads: int | None = None) -> None:
        if not hasattr(encoder, "code_layout_"):
            raise InputError("encoder is not fitted; call encoder.fit(X) first")
        layout = encoder.code_layout_
        rows = layout.rows(codes, "codes")
        thread_count(n_threads)
        if metric not in METRICS:
            raise InputError(f"metric = {metric!r}; choose one of {', '.join(map(repr, METRICS))}")
        self.metric = metric
        self.encoder = encoder
        self.n_threads = n_threads
        self._n = len(rows)
        self._bits = layout.n_bits
        # What the scan reads: the bits, and the bias byte where there is one. The number of the mean is in the order.
        kept = rows[:, : layout.bit_bytes]
        parts = [name for name, _ in layout.side]
        self._scaled = "scale" in parts  # then scale and bias are kept apart, as bytes
        self._side = int("bias" in parts and not self._scaled)
        if self._side:
            at, _ = layout.place("bias")
            kept = np.concatenate([kept, rows[:, at : at + 1]], axis=1)
        self._positions: Ids | None = None
        self._cell_ends: Ids | None = None
        self._mean_bytes = 0
        if encoder.cell_means is None:
            self._blocks = scan_blocks(kept)
        else:
            self._mean_bytes = layout.place("mean")[1]
            self._blocks, self._positions, self._cell_ends = cell_blocks(
                kept, encoder.cells(rows), len(encoder.cell_means)
            )
        self._plain = self._scan(None, None, 0.0)
        self._termed: ScanBase | None = None
        self._term_bytes = 0
        if self._scaled:
            self._add_bytes(rows)
        elif encoder.reconstructs and not self._side:
            self._add_terms(rows)

    def _scan(self, scale: Any, bias: Any, bias0: float, *coded: Any) -> ScanBase:
        n = self._n if self._positions is None else len(self._positions)
        return ScanBase(
            self._blocks, n, self._bits, scale, bias, bias0, self._side, self._positions, self._cell_ends, *coded
        )

    def _add_bytes(self, rows: npt.NDArray[np.uint8]) -> None:
        layout, encoder = self.encoder.code_layout_, self.encoder
        self._scale_bytes, self._bias_bytes = (
            self._placed(rows[:, layout.place(name)[0]]) for name in ("scale", "bias")
        )
        # scale_i = -2 s_i = -0.5 / reach_i, so that reach_i = 1 / (4 s_i).
        reach = np.array([encoder.reach_low_, encoder.reach_step_]) / 4
        bias = np.array([encoder.bias_low_, encoder.bias_step_]) * (self.metric != "ip")
        self._scale_unit, self._score_unit = 1.0, _power_of_two(bias @ np.array([[1, 1], [0, 255]]))
        ranges = [*reach, *bias / self._score_unit]
        self._termed = self._scan(None, None, 0.0, self._scale_bytes, self._bias_bytes, ranges)
        self._term_bytes = 2

    def _add_terms(self, rows: npt.NDArray[np.uint8]) -> None:
        exact_scale, exact_bias = np.zeros(self._n), np.zeros(self._n)
        for start in range(0, self._n, _CHUNK_CODES):
            part = slice(start, min(start + _CHUNK_CODES, self._n))
            exact_scale[part], exact_bias[part] = self.encoder.terms(rows[part])
        if self.metric == "ip":
            exact_bias[:] = 0
        # Kept in float32, times powers of two that suit their range.
        self._scale_unit, self._score_unit = _power_of_two(exact_scale), _power_of_two(exact_bias)
        scale = self._placed((exact_scale / self._scale_unit).astype(np.float32))
        bias = (exact_bias / self._score_unit).astype(np.float32)
        same = self._n == 0 or bool((bias == bias[0]).all())
        self._termed = self._scan(
            scale, None if same else self._placed(bias), float(bias[0]) if same and self._n else 0.0
        )
        self._term_bytes = 4 if same else 8

    def _placed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values by row, at their places in the scan."""
        placed = np.zeros(len(self._blocks) * BLOCK, values.dtype)
        if self._positions is None:
            placed[: self._n] = values
        else:
            held = self._positions >= 0
            placed[held] = values[self._positions[held]]
        return placed

    def __len__(self) -> int:
        return self._n

    def __reduce__(self) -> tuple[Any, ...]:  # pickled as what it was made from
        return partial(CodeBase, metric=self.metric, n_threads=self.n_threads), (self.encoder, self.codes)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes the reconstruction scan reads of a vector: its bits, its terms or bias, and the number of its mean,
        which it reads as the order of the codes. The other methods read the bits.
        """
        return int(self._blocks.shape[1]) + self._mean_bytes + self._term_bytes

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """The code rows this was made from."""
        layout = self.encoder.code_layout_
        places = np.arange(self._n) if self._positions is None else np.flatnonzero(self._positions >= 0)
        ids = places if self._positions is None else self._positions[places]
        rows = np.zeros((self._n, layout.code_size), np.uint8)
        kept = scan_rows(self._blocks, BLOCK * len(self._blocks))[places]
        rows[ids, : layout.bit_bytes] = kept[:, : layout.bit_bytes]
        if self._cell_ends is not None:
            at, size = layout.place("mean")
            cells = np.searchsorted(self._cell_ends, places // BLOCK, side="right")
            rows[ids, at : at + size] = (cells[:, None] >> (8 * np.arange(size))) & 255
        if self._scaled:
            rows[ids, layout.place("scale")[0]] = self._scale_bytes[places]
            rows[ids, layout.place("bias")[0]] = self._bias_bytes[places]
        elif self._side:
            rows[ids, layout.place("bias")[0]] = kept[:, -1]
        return rows

    def search(
        self,
        Q: Any,
        k: int,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        shortlist: int | None = None,
        shortlist_method: Literal["hamming", "asymmetric"] = "hamming",
        n_threads: int | None = None,
    ) -> tuple[npt.NDArray[Any], Ids]:
        """The k codes nearest to each query.

        Parameters
        ----------
        Q : array of shape (n_queries, d)
        k : int
        method : {"reconstruction", "hamming", "asymmetric"}
            NN_e, NN_b or NN_a of the paper.
        query : {"projection", "spread"}
            What the asymmetric weights w are: ``A.T @ q``, or the query's spread representation ``x / ||x||_inf``.
        shortlist : int, optional
            The paper's two stages: so many candidates by `shortlist_method`, ranked anew by `method`
            "reconstruction".
        n_threads : int, optional
            That of the base by default. The result does not depend on it.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            hamming: bits that differ (int32). asymmetric: the sum of ``|w_j|`` over bits that disagree.
            reconstruction: by `metric`, the squared Euclidean distance from the query to the rebuilt vector.
        ids : ndarray of shape (n_queries, k), int64
            Row numbers of the codes, ordered by distance, then by number; -1, at the largest distance, where there are
            fewer than k.
        """
        k = integer(k, "k", 1)
        if method not in _METHODS:
            raise InputError(f"method = {method!r}; choose one of {', '.join(map(repr, _METHODS))}")
        if method != "reconstruction" or shortlist is not None:
            self._require_one_mean()
        if query not in ("projection", "spread"):
            raise InputError(f"query = {query!r}; choose 'projection' or 'spread'")
        threads = thread_count(self.n_threads if n_threads is None else n_threads)
        if shortlist is not None:
            shortlist = integer(shortlist, "shortlist", 1)
            if method != "reconstruction":
                raise InputError(f"shortlist re-ranks by reconstruction, but method = {method!r}")
            if shortlist_method not in ("hamming", "asymmetric"):
                raise InputError(f"shortlist_method = {shortlist_method!r}; choose 'hamming' or 'asymmetric'")
        Q = self.encoder.validated(Q, "Q")
        if self.metric == "cosine":
            Q = unit_rows(Q, "Q")
        distances = np.empty((len(Q), k), np.int32 if method == "hamming" else np.float64)
        ids = np.empty((len(Q), k), np.int64)
        for start in range(0, len(Q), _CHUNK_QUERIES):
            rows = slice(start, start + _CHUNK_QUERIES)
            if shortlist is None:
                distances[rows], ids[rows] = self._search(Q[rows], k, method, query, threads)
            else:
                _, found = self._search(Q[rows], shortlist, shortlist_method, query, threads)
                distances[rows], ids[rows] = self._rerank(Q[rows], k, found)
        return distances, ids

    def _search(
        self, Q: npt.NDArray[Any], k: int, method: Method, query: Query, threads: int
    ) -> tuple[npt.NDArray[Any], Ids]:
        if method == "hamming":
            bits = self.encoder.transform(Q)[:, : self.encoder.code_layout_.bit_bytes]
            signs = unpack(bits, self._bits).astype(np.int32)
            scores, ids = self._plain.search(signs, np.ones(len(Q)), k, threads, self._side_weights(len(Q)))
            return hamming_distances(scores), ids
        if method == "asymmetric":
            weights, units = round_weights(self.encoder.query_weights(Q, query))
            scores, ids = self._plain.search(weights, units, k, threads, self._side_weights(len(Q)))
            return scores * units[:, None], ids
        form = self._reconstruction(Q)
        scores, ids = form.scan.search(form.weights, form.units, k, threads, form.side, form.offsets)
        return form.distances(scores), ids

    def _side_weights(self, queries: int) -> npt.NDArray[np.int32] | None:
        """Weights that leave the bias out."""
        return np.zeros((queries, 1), np.int32) if self._side else None

    def _require_one_mean(self) -> None:
        if self.encoder.cell_means is not None:
            raise UnsupportedError(
                "signs relative to different means do not compare: with means > 1 search by method='reconstruction', "
                "without a shortlist"
            )

    def _rerank(self, Q: npt.NDArray[Any], k: int, candidates: Ids) -> tuple[Float64Array, Ids]:
        form = self._reconstruction(Q)
        scores = form.scan.score(form.weights, form.units, np.ascontiguousarray(candidates), form.side)
        order = np.lexsort((candidates, scores))[:, :k]
        distances = np.full((len(Q), k), np.inf)
        ids = np.full((len(Q), k), -1, np.int64)
        kept = slice(0, order.shape[1])
        ids[:, kept] = np.take_along_axis(candidates, order, 1)
        distances[:, kept] = form.distances(np.take_along_axis(scores, order, 1))
        return distances, ids

    def _reconstruction(self, Q: npt.NDArray[Any]) -> "_Form":
        """The linear form of ``||q - y_hat||^2``, or of ``-2 q . y_hat`` (docs/search.md)."""
        encoder = self.encoder
        if not encoder.reconstructs:
            raise UnsupportedError(
                f"{type(encoder).__name__} cannot rebuild vectors; search by method='hamming' instead"
            )
        inner = self.metric == "ip"
        # ||q - y_hat||^2 = ||q - m||^2 + low + step byte - 2 S with S = T - 2 D: 4 (D + step / 4 byte), and what all
        # codes of a mean share. -2 q . y_hat = -2 q . m - 2 S, where q is not centred.
        step, low = (encoder.bias_step_ / 4, encoder.bias_low_) if self._side and not inner else (0.0, 0.0)
        exact = np.asarray(Q, np.float64)
        if inner:
            exact = exact + encoder.mean_  # which `reduce` takes off
        weights, units = round_weights(encoder.query_weights(exact, "projection"), at_least=2 * step)
        centred = exact - encoder.mean_
        constant = -2 * centred @ encoder.mean_ if inner else (centred * centred).sum(axis=1)  # all of q, PCA or not
        offsets = None
        if encoder.cell_means is not None:  # ||q - mean - m_k||^2
            means = encoder.cell_means
            products: Float64Array = project(encoder.reduce(exact), np.ascontiguousarray(means.T), 1)
            lengths = 0.0 if inner else (means * means).sum(axis=1)
            offsets = constant[:, None] + lengths - 2 * products
        if not self._side:
            units = units * (self._scale_unit / self._score_unit)
            if offsets is not None:
                offsets = offsets / self._score_unit
                return _Form(self._terms_scan, weights, units, None, offsets, self._score_unit, 0.0, self.metric)
            return _Form(self._terms_scan, weights, units, None, None, self._score_unit, constant, self.metric)
        side = np.round(step / units).astype(np.int32)[:, None]
        shared = low - 2 * np.abs(weights.astype(np.float64)).sum(axis=1) * units
        if offsets is not None:
            offsets = offsets + shared[:, None]
            return _Form(self._plain, weights, 4 * units, side, offsets, 1.0, 0.0, self.metric)
        return _Form(self._plain, weights, 4 * units, side, None, 4 * units, constant + shared, self.metric)

    @property
    def _terms_scan(self) -> ScanBase:
        assert self._termed is not None
        return self._termed


@dataclass(frozen=True)
class _Form:
    """A linear form ready for the scan, and how its scores become distances."""

    scan: ScanBase
    weights: npt.NDArray[np.int32]
    units: Float64Array
    side: npt.NDArray[np.int32] | None
    offsets: Float64Array | None
    factor: float | Float64Array
    constant: float | Float64Array
    metric: Metric

    def distances(self, scores: Float64Array) -> Float64Array:
        """What the metric says; infinite where there is no code."""
        factor, constant = (np.asarray(v, np.float64).reshape(-1, 1) for v in (self.factor, self.constant))
        values: Float64Array = scores * factor + constant
        if self.metric == "ip":
            return values / 2
        return np.maximum(values, 0) / (2 if self.metric == "cosine" else 1)


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


def _power_of_two(values: Float64Array) -> float:
    """The power of two of the largest magnitude, 1 for zeros."""
    largest = float(np.abs(values).max(initial=0))
    if not np.isfinite(largest):
        raise InputError("encoder rebuilds vectors beyond the range of float64; scale the training vectors down")
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def round_weights(weights: Float64Array, at_least: float = 0.0) -> tuple[npt.NDArray[np.int32], Float64Array]:
    """Weights as integers below 2^24 times a power of two, one a query: sums of integers are exact in any order.

    The power of two is such that `at_least`, too, is below 2^23 of them.
    """
    largest = np.abs(weights).max(axis=1, initial=at_least)
    if not np.isfinite(largest).all():
        row = int(np.argmin(np.isfinite(largest)))
        raise InputError(f"Q row {row} is too large: its weights overflow; scale the vectors down")
    units: Float64Array = np.ldexp(1.0, np.where(largest > 0, np.maximum(np.frexp(largest)[1] - 23, -1022), 0))
    return np.round(weights / units[:, None]).astype(np.int32), units
