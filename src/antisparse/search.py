"""Search on codes: hamming (NN_b), asymmetric (NN_a) and reconstruction (NN_e), through one scan (docs/search.md)."""

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, integer, thread_count
from antisparse.codes import Codes
from antisparse.encoders.base import Encoder
from antisparse.encoders.choose import Method
from antisparse.errors import InputError
from antisparse.forms import METHODS, METRICS, Forms, Metric, Query, unit_rows
from antisparse.layout import Ids, Scanner, lay_out

_CHUNK_QUERIES = 512


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
        rows = encoder.code_layout_.rows(codes, "codes")
        thread_count(n_threads)
        check_metric(metric)
        self.metric: Metric = metric
        self.encoder = encoder
        self.n_threads = n_threads
        self._n = len(rows)
        self._forms = Forms(encoder, metric)
        self._scanner = Scanner(encoder, lay_out(encoder, rows, metric), self._n, metric)

    def __len__(self) -> int:
        return self._n

    def __reduce__(self) -> tuple[Any, ...]:  # pickled as what it was made from
        return partial(CodeBase, metric=self.metric, n_threads=self.n_threads), (self.encoder, self.codes)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes the reconstruction scan reads of a vector: its bits, its terms or bias, and the number of its mean,
        which it reads as the order of the codes. The other methods read the bits.
        """
        return bytes_per_vector(self.encoder, self._scanner)

    @property
    def codes(self) -> Codes:
        """The code rows this was made from."""
        positions = self._scanner.layout.positions
        if positions is None:
            return self._scanner.rows(self.encoder, np.arange(self._n))
        places = np.flatnonzero(positions >= 0)
        rows = np.zeros((self._n, self.encoder.code_layout_.code_size), np.uint8)
        rows[positions[places]] = self._scanner.rows(self.encoder, places)
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
        check_search(method, query, shortlist, shortlist_method)
        threads = thread_count(self.n_threads if n_threads is None else n_threads)
        Q = checked_queries(self.encoder, Q, self.metric)
        distances = np.empty((len(Q), k), np.int32 if method == "hamming" else np.float64)
        ids = np.empty((len(Q), k), np.int64)
        for start in range(0, max(len(Q), 1), _CHUNK_QUERIES):  # once without queries too, for what cannot be asked
            rows = slice(start, start + _CHUNK_QUERIES)
            first = method if shortlist is None else shortlist_method
            form = self._forms.make(Q[rows], first, query)
            values, found = self._scanner.search(form, k if shortlist is None else shortlist, threads)
            if shortlist is not None:
                form = self._forms.make(Q[rows], method, query)
                values, found = best_of(self._scanner.score(form, found), found, k)
            distances[rows], ids[rows] = form.distances(values), found
        return distances, ids


def check_metric(metric: str) -> None:
    """Raise unless there is such a metric."""
    if metric not in METRICS:
        raise InputError(f"metric = {metric!r}; choose one of {', '.join(map(repr, METRICS))}")


def check_search(method: str, query: str, shortlist: int | None, shortlist_method: str) -> None:
    """Raise unless the arguments of a search fit each other."""
    if method not in METHODS:
        raise InputError(f"method = {method!r}; choose one of {', '.join(map(repr, METHODS))}")
    if query not in ("projection", "spread"):
        raise InputError(f"query = {query!r}; choose 'projection' or 'spread'")
    if shortlist is not None:
        integer(shortlist, "shortlist", 1)
        if method != "reconstruction":
            raise InputError(f"shortlist re-ranks by reconstruction, but method = {method!r}")
        if shortlist_method not in ("hamming", "asymmetric"):
            raise InputError(f"shortlist_method = {shortlist_method!r}; choose 'hamming' or 'asymmetric'")


def checked_queries(encoder: Encoder, Q: Any, metric: Metric) -> npt.NDArray[Any]:
    """Queries as an array, as the metric wants them."""
    array = encoder.validated(Q, "Q")
    return unit_rows(array, "Q") if metric == "cosine" else array


def bytes_per_vector(encoder: Encoder, scanner: Scanner) -> int:
    """Bytes the reconstruction scan reads of a vector, the number of its mean included."""
    mean = encoder.code_layout_.place("mean")[1] if encoder.cell_means is not None else 0
    return int(scanner.layout.blocks.shape[1]) + mean + scanner.layout.term_bytes


def best_of(values: Float64Array, ids: Ids, k: int) -> tuple[Float64Array, Ids]:
    """The k least of each row, by (value, id); where there are fewer, infinity and -1."""
    order = np.lexsort((ids, values))[:, :k]
    best = np.full((len(values), k), np.inf)
    kept = np.full((len(values), k), -1, np.int64)
    best[:, : order.shape[1]] = np.take_along_axis(values, order, 1)
    kept[:, : order.shape[1]] = np.take_along_axis(ids, order, 1)
    return best, kept
