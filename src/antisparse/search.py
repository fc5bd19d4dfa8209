"""Search on codes: hamming (NN_b), asymmetric (NN_a) and reconstruction (NN_e), through one scan (docs/search.md)."""

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, integer, thread_count
from antisparse._core import ScanBase
from antisparse.codes import BLOCK, code_rows, hamming_distances, scan_blocks, scan_rows, unpack
from antisparse.encoders.base import Encoder
from antisparse.errors import InputError, UnsupportedError

Method = Literal["hamming", "asymmetric", "reconstruction"]
Query = Literal["projection", "spread"]
Ids = npt.NDArray[np.int64]

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

    def __init__(self, encoder: Encoder, codes: Any, *, n_threads: int | None = None) -> None:
        if not hasattr(encoder, "code_layout_"):
            raise InputError("encoder is not fitted; call encoder.fit(X) first")
        layout = encoder.code_layout_
        rows = code_rows(codes, layout.n_bits)
        if np.shape(codes)[1] not in (layout.bit_bytes, layout.code_size):
            raise InputError(f"codes has {np.shape(codes)[1]} bytes a row; the encoder's have {layout.code_size}")
        self.encoder = encoder
        thread_count(n_threads)
        self.n_threads = n_threads
        self._n = len(rows)
        self._bits = layout.n_bits
        self._blocks = scan_blocks(rows)
        self._plain = ScanBase(self._blocks, self._n, self._bits, None, None, 0.0)
        self._termed: ScanBase | None = None
        self._term_bytes = 0
        if encoder.reconstructs:
            self._add_terms(rows)

    def _add_terms(self, rows: npt.NDArray[np.uint8]) -> None:
        padded = len(self._blocks) * BLOCK
        exact_scale, exact_bias = np.zeros(padded), np.zeros(padded)
        for start in range(0, self._n, _CHUNK_CODES):
            part = slice(start, min(start + _CHUNK_CODES, self._n))
            exact_scale[part], exact_bias[part] = self.encoder.terms(rows[part])
        # Kept in float32, times powers of two that suit their range.
        self._scale_unit, self._score_unit = _power_of_two(exact_scale), _power_of_two(exact_bias)
        scale = (exact_scale / self._scale_unit).astype(np.float32)
        bias = (exact_bias / self._score_unit).astype(np.float32)
        same = self._n == 0 or bool((bias[: self._n] == bias[0]).all())
        self._termed = ScanBase(
            self._blocks, self._n, self._bits, scale, None if same else bias, float(bias[0]) if self._n else 0.0
        )
        self._term_bytes = 4 if same else 8

    def __len__(self) -> int:
        return self._n

    def __reduce__(self) -> tuple[Any, ...]:  # pickled as what it was made from
        return partial(CodeBase, n_threads=self.n_threads), (self.encoder, self.codes)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes the reconstruction scan reads of a vector: its bits and its terms. The other methods read the bits."""
        return int(self._blocks.shape[1]) + self._term_bytes

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """The bits as code rows (n, ceil(n_bits / 8))."""
        return scan_rows(self._blocks, self._n)

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
            reconstruction: the squared Euclidean distance from the query to the rebuilt vector.
        ids : ndarray of shape (n_queries, k), int64
            Row numbers of the codes, ordered by distance, then by number; -1, at the largest distance, where there are
            fewer than k.
        """
        k = integer(k, "k", 1)
        if method not in _METHODS:
            raise InputError(f"method = {method!r}; choose one of {', '.join(map(repr, _METHODS))}")
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
            signs = unpack(self.encoder.transform(Q), self._bits).astype(np.int32)
            scores, ids = self._plain.search(signs, np.ones(len(Q)), k, threads)
            return hamming_distances(scores), ids
        if method == "asymmetric":
            weights, units = round_weights(self.encoder.query_weights(Q, query))
            scores, ids = self._plain.search(weights, units, k, threads)
            return scores * units[:, None], ids
        scan, weights, units, offset = self._reconstruction(Q)
        scores, ids = scan.search(weights, units, k, threads)
        return np.maximum(scores * self._score_unit + offset[:, None], 0), ids

    def _rerank(self, Q: npt.NDArray[Any], k: int, candidates: Ids) -> tuple[Float64Array, Ids]:
        scan, weights, units, offset = self._reconstruction(Q)
        scores = scan.score(weights, units, np.ascontiguousarray(candidates))
        order = np.lexsort((candidates, scores))[:, :k]
        distances = np.full((len(Q), k), np.inf)
        ids = np.full((len(Q), k), -1, np.int64)
        kept = slice(0, order.shape[1])
        ids[:, kept] = np.take_along_axis(candidates, order, 1)
        distances[:, kept] = np.maximum(np.take_along_axis(scores, order, 1) * self._score_unit + offset[:, None], 0)
        return distances, ids

    def _reconstruction(
        self, Q: npt.NDArray[Any]
    ) -> tuple[ScanBase, npt.NDArray[np.int32], Float64Array, Float64Array]:
        """The scan, the rounded weights and units, and ||q - mean||^2, which every distance shares."""
        if self._termed is None:
            raise UnsupportedError(
                f"{type(self.encoder).__name__} cannot rebuild vectors; search by method='hamming' instead"
            )
        weights, units = round_weights(self.encoder.query_weights(Q, "projection"))
        units = units * (self._scale_unit / self._score_unit)
        centred = np.asarray(Q, np.float64) - self.encoder.mean_
        return self._termed, weights, units, (centred * centred).sum(axis=1)


def _power_of_two(values: Float64Array) -> float:
    """The power of two of the largest magnitude, 1 for zeros."""
    largest = float(np.abs(values).max(initial=0))
    if not np.isfinite(largest):
        raise InputError("encoder rebuilds vectors beyond the range of float64; scale the training vectors down")
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def round_weights(weights: Float64Array) -> tuple[npt.NDArray[np.int32], Float64Array]:
    """Weights as integers below 2^24 times a power of two, one a query: sums of integers are exact in any order."""
    largest = np.abs(weights).max(axis=1, initial=0)
    if not np.isfinite(largest).all():
        row = int(np.argmin(np.isfinite(largest)))
        raise InputError(f"Q row {row} is too large: its weights overflow; scale the vectors down")
    units: Float64Array = np.ldexp(1.0, np.where(largest > 0, np.maximum(np.frexp(largest)[1] - 23, -1022), 0))
    return np.round(weights / units[:, None]).astype(np.int32), units
