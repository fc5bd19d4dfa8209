"""scikit-learn: the graph of nearest neighbours, found on codes, where KNeighborsTransformer would keep the floats."""

from hashlib import blake2b
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from antisparse._arrays import Float64Array, boolean, choice, integer
from antisparse.encoders.learned import LearnedEncoder
from antisparse.errors import InputError
from antisparse.metrics import MetricName
from antisparse.scan.code_base import CodeBase
from antisparse.scan.columns import Ids

Mode = Literal["distance", "connectivity"]
_METRICS: dict[str, MetricName] = {"euclidean": "l2", "cosine": "cosine"}


class CodeNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The graph of nearest neighbours of vectors, as scikit-learn's `KNeighborsTransformer` gives it, found on codes.

    Of each vector a code of `n_bytes` is kept, and 16 bytes to know it again. Distances are estimated from codes and
    float queries. A vector that was given to `fit`, bit for bit, is at distance 0 from itself and first in its row,
    which those who take precomputed neighbours count on.

    Parameters
    ----------
    mode : {"distance", "connectivity"}
        What `transform` gives: distances to `n_neighbors` + 1 neighbours, of which a vector that was fitted is the
        first itself, or ones for `n_neighbors` of them.
    n_neighbors : int
    n_bytes : int
        All that a code keeps of a vector.
    metric : {"euclidean", "cosine"}
        The distance, not squared, or 1 - cos.
    effort : {1, 2, 3}
        How long codes are sought, as for `LearnedEncoder`.
    random_state : int, RandomState or None
    n_threads : int, optional
        All available CPUs by default. Results do not depend on it.

    Attributes
    ----------
    encoder_ : LearnedEncoder
        Its ``codec_`` is what the codes are of.
    base_ : CodeBase
        The codes.
    n_samples_fit_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse.connect.sklearn import CodeNeighborsTransformer
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> graph = CodeNeighborsTransformer(n_neighbors=10, n_bytes=8, random_state=0).fit_transform(X)
    >>> graph.shape, graph.nnz
    ((1000, 1000), 11000)
    """

    encoder_: LearnedEncoder
    base_: CodeBase
    n_samples_fit_: int

    def __init__(
        self,
        *,
        mode: Mode = "distance",
        n_neighbors: int = 5,
        n_bytes: int = 16,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        effort: Literal[1, 2, 3] = 2,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.n_bytes = n_bytes
        self.metric = metric
        self.effort = effort
        self.random_state = random_state
        self.n_threads = n_threads

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn codes from vectors (n, d), and keep those of all of them."""
        choice(self.mode, "mode", ("distance", "connectivity"))
        integer(self.n_neighbors, "n_neighbors", 1)
        metric = _METRICS[choice(self.metric, "metric", _METRICS)]
        encoder = LearnedEncoder(
            self.n_bytes, metric=metric, effort=self.effort, random_state=self.random_state, n_threads=self.n_threads
        ).fit(X)
        base = CodeBase(encoder, encoder.transform(X), n_threads=self.n_threads)
        digests = _digests(encoder._validated(X, fit=False))
        self.encoder_, self.base_ = encoder, base
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._order = np.argsort(digests, kind="stable")
        self._digests = digests[self._order]
        self.n_samples_fit_ = self._n_features_out = len(base)
        return self

    def transform(self, X: Any) -> csr_matrix:
        """The graph, ``(n, n_samples_fit_)``, of the vectors (n, d): rows sorted by distance, zeros explicit."""
        check_is_fitted(self)
        mode = choice(self.mode, "mode", ("distance", "connectivity"))
        more = int(mode == "distance")
        return self._graph(X, integer(self.n_neighbors, "n_neighbors", 1) + more, mode)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest vectors of those that were fitted: distances and ids (n, n_neighbors), or the ids alone.

        Without X, those of every vector that was fitted, rebuilt from its code, itself left out.
        """
        check_is_fitted(self)
        both = boolean(return_distance, "return_distance")
        distances, ids = self._search(X, n_neighbors)
        return (distances, ids) if both else ids

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: Mode = "connectivity"
    ) -> csr_matrix:
        """The same as a sparse matrix, ``(n, n_samples_fit_)``, of ones or of distances."""
        check_is_fitted(self)
        return self._graph(X, n_neighbors, choice(mode, "mode", ("distance", "connectivity")))

    def _graph(self, X: Any, n_neighbors: int | None, mode: Mode) -> csr_matrix:
        distances, ids = self._search(X, n_neighbors)
        data = distances.ravel() if mode == "distance" else np.ones(distances.size)
        starts = np.arange(0, distances.size + 1, distances.shape[1])
        return csr_matrix((data, ids.ravel(), starts), shape=(len(distances), self.n_samples_fit_))

    def _search(self, X: Any, n_neighbors: int | None) -> tuple[Float64Array, Ids]:
        k = integer(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors", 1)
        there = self.n_samples_fit_ - (X is None)
        if k > there:
            raise InputError(f"n_neighbors = {k}, but there are {there} vectors to find; lower it or fit on more")
        if X is None:
            rebuilt = self.encoder_.codec_.decode(self.base_.codes, n_threads=self.n_threads)
            distances, ids = self.base_.search(rebuilt, k + 1, n_threads=self.n_threads)
            own = ids == np.arange(len(ids))[:, None]
            own[~own.any(axis=1), -1] = True  # so many have the same code: it is not among them
            distances, ids = (found[~own].reshape(len(ids), k) for found in (distances, ids))
        else:
            queries = self.encoder_._validated(X, fit=False)
            distances, ids = self.base_.search(queries, k, n_threads=self.n_threads)
            self._know_again(queries, distances, ids)
        return (np.sqrt(distances) if self.encoder_.metric == "l2" else distances), ids

    def _know_again(self, queries: npt.NDArray[Any], distances: Float64Array, ids: Ids) -> None:
        """Put the vectors that were fitted first in their own rows, at distance 0."""
        digests = _digests(queries)
        first, last = (np.searchsorted(self._digests, digests, side) for side in ("left", "right"))
        for row in np.flatnonzero(first < last):
            own = self._order[first[row] : last[row]][: ids.shape[1]]
            others = ~np.isin(ids[row], own)
            count = ids.shape[1] - len(own)
            ids[row] = np.concatenate([own, ids[row][others][:count]])
            distances[row] = np.concatenate([np.zeros(len(own)), distances[row][others][:count]])


def _digests(X: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A number of 64 bits for each vector, by which it is known again."""
    digests = np.empty(len(X), np.uint64)
    for i, row in enumerate(X):
        exact = np.ascontiguousarray(row, np.float64) + 0.0  # of -0.0 it makes 0.0
        digests[i] = int.from_bytes(blake2b(exact.tobytes(), digest_size=8).digest(), "little")
    return digests
