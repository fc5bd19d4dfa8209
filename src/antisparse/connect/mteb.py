"""Codes in mteb: a search index for its `SearchEncoderWrapper`, so that any model can be scored through codes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from antisparse._arrays import integer, plain_array, renamed, shown, texts
from antisparse.codec.codec import Codec, codec_of
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError, UnsupportedError
from antisparse.metrics import MetricName, metric_named
from antisparse.scan.code_base import CodeBase

__all__ = ["AntisparseSearchIndex"]

_METRICS: dict[str, MetricName] = {"cosine": "cosine", "dot": "ip", "euclidean": "l2"}  # by mteb's names


class AntisparseSearchIndex:
    """What mteb calls an `IndexEncoderSearchProtocol`: documents are kept as codes, and no floats.

    Parameters
    ----------
    model : model of mteb, optional
        It says what is nearest (its `mteb_model_meta`); the cosine without one.
    n_bytes : int
        Of a code.
    metric : {"cosine", "ip", "l2"}, optional
        What is nearest, in place of what the model says.
    codec : Codec or fitted encoder, optional
        One that was learned elsewhere. By default a codec is learned from the first documents that are added after the
        index was made or cleared: mteb adds those of a task at once.
    random_state : int, RandomState or None
    n_threads : int, optional

    Examples
    --------
    >>> from antisparse.connect.mteb import AntisparseSearchIndex
    >>> from mteb.models import SearchEncoderWrapper  # doctest: +SKIP
    >>> searched = SearchEncoderWrapper(model, index_backend=AntisparseSearchIndex(model, n_bytes=48))  # doctest: +SKIP
    >>> mteb.evaluate(searched, task)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any = None,
        n_bytes: int = 48,
        *,
        metric: MetricName | None = None,
        codec: Any = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bytes = integer(n_bytes, "n_bytes", 1)
        self.metric: MetricName = _metric_of(model) if metric is None else metric_named(metric).name
        self._given: Codec | None = None if codec is None else codec_of(codec, metric)
        self.random_state, self.n_threads = random_state, n_threads
        self.clear()

    def clear(self) -> None:
        """Forget all documents, and what was learned from them."""
        self.codec: Codec | None = self._given
        self.ids: list[str] = []
        self._parts: list[Codes] = []
        self._base: CodeBase | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def add_documents(self, embeddings: Any, idxs: Sequence[str]) -> None:
        """Keep the codes of documents.

        Parameters
        ----------
        embeddings : array or tensor of shape (n, d)
        idxs : sequence of str
            Their ids.
        """
        names = _listed(idxs)
        vectors = plain_array(embeddings, "embeddings")
        if vectors.ndim == 2 and len(vectors) != len(names):
            raise InputError(f"idxs has {len(names)} entries, but embeddings has {len(vectors)} rows")
        with renamed(X="embeddings"):
            codec = self.codec
            if codec is None:
                from antisparse.encoders.learned import LearnedEncoder

                encoder = LearnedEncoder(
                    self.n_bytes, metric=self.metric, random_state=self.random_state, n_threads=self.n_threads
                )
                codec = codec_of(encoder.fit(vectors))
            codes = codec.encode(vectors, n_threads=self.n_threads)
        self.codec, self._base = codec, None
        self._parts.append(codes)
        self.ids += names

    def search(
        self,
        embeddings: Any,
        top_k: int,
        similarity_fn: Callable[..., Any] | None = None,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        query_idx_to_id: Mapping[int, str] | None = None,
    ) -> tuple[list[list[float]], list[list[int]]]:
        """The best documents for each query: their scores and their places.

        Parameters
        ----------
        embeddings : array or tensor of shape (q, d)
        top_k : int
        similarity_fn
            Not used: floats that it could be given are not kept.
        top_ranked : mapping of str to sequence of str, optional
            The ids of documents that are ranked for each query, by the id of the query. Places are then those in this
            sequence, as mteb takes them; else those in the order in which documents were added.
        query_idx_to_id : mapping of int to str, optional
            The ids of the queries, which `top_ranked` needs.
        """
        k = integer(top_k, "top_k", 1)
        if self.codec is None or not self._parts:
            raise InputError("embeddings: there is nothing to search; call add_documents first")
        queries = plain_array(embeddings, "embeddings")
        with renamed(Q="embeddings"):
            if top_ranked is not None:
                return self._ranked(queries, k, top_ranked, query_idx_to_id)
            if self._base is None:
                self._parts = [np.concatenate(self._parts)]
                self._base = CodeBase(self.codec, self._parts[0], n_threads=self.n_threads)
            return _as_lists(self.codec, *self._base.search(queries, k))

    def _ranked(self, queries: Any, k: int, ranked: Any, names: Any) -> tuple[list[list[float]], list[list[int]]]:
        """The candidates of each query, ranked."""
        assert self.codec is not None
        if not isinstance(ranked, Mapping) or not isinstance(names, Mapping):
            raise InputTypeError(
                "top_ranked and query_idx_to_id must be mappings: the ids of candidates by the id of the query, and "
                f"the ids of the queries by their numbers; not {shown(ranked)} and {shown(names)}"
            )
        self.codec.queries(queries)
        rows, places = np.concatenate(self._parts), {name: place for place, name in enumerate(self.ids)}
        scores: list[list[float]] = []
        found: list[list[int]] = []
        for number, query in enumerate(queries):
            candidates = ranked.get(names.get(number)) or []
            if missing := [name for name in candidates if name not in places]:
                raise InputError(f"top_ranked names the document {shown(missing[0])}, which was not added")
            if not candidates:
                scores.append([])
                found.append([])
                continue
            base = CodeBase(self.codec, rows[[places[name] for name in candidates]], n_threads=self.n_threads)
            own = _as_lists(self.codec, *base.search(query[None], k))
            scores += own[0]
            found += own[1]
        return scores, found


def _as_lists(codec: Codec, distances: Any, ids: Any) -> tuple[list[list[float]], list[list[int]]]:
    """Scores, the largest first, and places: the cosine, the inner product, or the negative distance."""
    if codec.metric_name == "l2":
        scores = -np.sqrt(distances)
    else:
        scores = (1.0 if codec.metric_name == "cosine" else 0.0) - distances
    there = [row >= 0 for row in ids]
    return (
        [row[which].tolist() for row, which in zip(scores, there, strict=True)],
        [row[which].tolist() for row, which in zip(ids, there, strict=True)],
    )


def _listed(idxs: Any) -> list[str]:
    """Ids in whatever holds several: a column of a data set, say."""
    try:
        listed = idxs if isinstance(idxs, str) else list(idxs)
    except TypeError:
        listed = idxs
    return list(texts(listed, "idxs"))


def _metric_of(model: Any) -> MetricName:
    """What a model says is nearest."""
    if model is None:
        return "cosine"
    meta = getattr(model, "mteb_model_meta", None)
    if meta is None:
        raise InputTypeError(f"model must be a model of mteb, which has mteb_model_meta, not {shown(model)}")
    name = getattr(meta, "similarity_fn_name", None)
    if name is None:
        return "cosine"
    found = _METRICS.get(str(getattr(name, "value", name)))
    if found is None:
        raise UnsupportedError(f"model compares by {shown(name)}, which codes do not; there are: {', '.join(_METRICS)}")
    return found
