"""CodeBase: codes in memory, searched by their row numbers."""

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import thread_count
from antisparse.codec.codec import Codec, codec_of
from antisparse.codec.queries import Method, Query
from antisparse.codes import Codes
from antisparse.metrics import MetricName
from antisparse.scan.columns import Columns, Ids, lay_out, scanned_bytes
from antisparse.scan.search import Search, Searcher


class CodeBase:
    """Code rows laid out for the scan. The ids are the numbers of the rows.

    Parameters
    ----------
    codec : Codec or fitted encoder
        The one that made the codes. What is done to an encoder later does not reach the code base.
    codes : ndarray of shape (n, n_bytes), uint8
    metric : {"l2", "cosine", "ip"}, optional
        Checked against the codec, which knows it.
    n_threads : int, optional
        All available CPUs by default.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import CodeBase, LearnedEncoder
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> encoder = LearnedEncoder(8, random_state=0).fit(X)
    >>> base = CodeBase(encoder, encoder.transform(X))
    >>> distances, ids = base.search(X[:5], k=3)
    >>> ids[:, 0]
    array([0, 1, 2, 3, 4])
    """

    def __init__(
        self, codec: Any, codes: Any, *, metric: MetricName | None = None, n_threads: int | None = None
    ) -> None:
        self.codec: Codec = codec_of(codec, metric)
        rows = self.codec.check_codes(codes, "codes")
        thread_count(n_threads)
        self.n_threads = n_threads
        self._part = _Rows(lay_out(self.codec, rows), len(rows))
        self._searcher = Searcher(self.codec)

    def __len__(self) -> int:
        return self._part.rows

    def __repr__(self) -> str:
        return f"CodeBase({len(self):,} codes, {self.codec!r})"

    def __reduce__(self) -> tuple[Any, ...]:  # pickled as what it was made from
        return partial(CodeBase, n_threads=self.n_threads), (self.codec, self.codes)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes the reconstruction scan reads of a vector, the number of its cell, which it reads as the order of the
        codes, included. The other methods read the bits alone.
        """
        return scanned_bytes(self.codec)

    @property
    def codes(self) -> Codes:
        """The code rows this was made from."""
        columns = self._part.columns
        if not isinstance(columns.ids, np.ndarray):  # row after row
            return columns.rows(np.arange(len(self)))
        places = np.flatnonzero(columns.ids >= 0)
        rows = np.zeros((len(self), self.codec.n_bytes), np.uint8)
        rows[columns.ids[places]] = columns.rows(places)
        return rows

    def search(
        self,
        Q: Any,
        k: int = 10,
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
        Q : array of shape (n_queries, d), or (d,) for a single query
        k : int
        method : {"reconstruction", "hamming", "asymmetric"}
            NN_e, NN_b or NN_a of the paper.
        query : {"projection", "spread"}
            What the asymmetric weights w are: ``A.T @ q``, or the query's spread representation ``x / ||x||_inf``.
        shortlist : int, optional
            The paper's two stages: so many candidates by `shortlist_method`, ranked again by reconstruction. With fewer
            than k of them, fewer than k are found.
        n_threads : int, optional
            That of the base by default. The result does not depend on it.

        Returns
        -------
        distances : ndarray of shape (n_queries, k), or (k,)
            k beyond both the number of codes and 1,024 counts as the larger of these.
            hamming: bits that differ (int32). asymmetric: the sum of ``|w_j|`` over bits that disagree.
            reconstruction: an estimate of the squared distance, of one minus the cosine, or of the negative inner
            product, by the codec's metric. Estimates below 0 of what cannot be negative are given as 0.
        ids : ndarray of the same shape, int64
            Row numbers of the codes, ordered by distance, then by number; -1, at the largest distance, where fewer are
            found.
        """
        what = Search(k, method, query, None, shortlist, shortlist_method)
        threads = thread_count(self.n_threads if n_threads is None else n_threads)
        return self._searcher.search([self._part], Q, what, threads, len(self))


class _Rows:
    """All codes of a code base, as a part of a search."""

    live_bits = None

    def __init__(self, columns: Columns, rows: int) -> None:
        self.columns, self.rows = columns, rows

    def find(self, ids: Ids) -> Ids:
        """The places of row numbers, which a single cell keeps in order; others have no shortlist."""
        return ids
