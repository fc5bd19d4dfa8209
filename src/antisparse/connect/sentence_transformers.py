"""Codes in the way of sentence-transformers: embeddings quantised, and searched as its own functions do it."""

import time
from typing import Any

import numpy as np

from antisparse._arrays import boolean, integer, plain_array, renamed
from antisparse.codec.codec import Codec, codec_of
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError
from antisparse.index.index import Index
from antisparse.metrics import MetricName
from antisparse.scan.code_base import CodeBase

Results = list[list[dict[str, Any]]]

__all__ = ["SearchIndex", "quantize_embeddings", "semantic_search_antisparse"]


def quantize_embeddings(
    embeddings: Any,
    n_bytes: int = 48,
    *,
    codec: Any = None,
    calibration_embeddings: Any = None,
    metric: MetricName = "cosine",
    random_state: Any = None,
    n_threads: int | None = None,
) -> tuple[Codes, Codec]:
    """Embeddings as codes, and the codec that made them: what `ranges` are to the function of sentence-transformers.

    Parameters
    ----------
    embeddings : array or tensor of shape (n, d)
        Of floats, as `SentenceTransformer.encode` gives them.
    n_bytes : int
        Of a code: all that is stored of an embedding.
    codec : Codec or fitted encoder, optional
        One that was learned before. The other parameters are not used then.
    calibration_embeddings : array or tensor of shape (n', d), optional
        Learn from these; by default from the embeddings themselves.
    metric : {"cosine", "ip", "l2"}
        What is nearest.
    random_state : int, RandomState or None
    n_threads : int, optional
        All available CPUs by default.

    Returns
    -------
    codes : ndarray of shape (n, n_bytes), uint8
    codec : Codec
    """
    if codec is not None:
        fitted = codec_of(codec)
    else:
        from antisparse.encoders.learned import LearnedEncoder

        learned = embeddings if calibration_embeddings is None else calibration_embeddings
        encoder = LearnedEncoder(n_bytes, metric=metric, random_state=random_state, n_threads=n_threads)
        with renamed(X="embeddings" if calibration_embeddings is None else "calibration_embeddings"):
            fitted = codec_of(encoder.fit(learned))
    with renamed(X="embeddings"):
        return fitted.encode(embeddings, n_threads=n_threads), fitted


def semantic_search_antisparse(
    query_embeddings: Any,
    corpus_embeddings: Any = None,
    corpus_index: CodeBase | Index | None = None,
    *,
    top_k: int = 10,
    n_bytes: int = 48,
    codec: Any = None,
    calibration_embeddings: Any = None,
    metric: MetricName = "cosine",
    output_index: bool = False,
    random_state: Any = None,
    n_threads: int | None = None,
) -> Any:
    """Search codes as `semantic_search_faiss` of sentence-transformers searches its indexes.

    Parameters
    ----------
    query_embeddings : array or tensor of shape (q, d)
        Of floats: queries are not quantised.
    corpus_embeddings : array or tensor of shape (n, d), or codes
        Embeddings, which are made codes as `quantize_embeddings` makes them; or, with `codec`, codes (uint8).
    corpus_index : CodeBase or Index, optional
        What to search in place of `corpus_embeddings`.
    top_k : int
    n_bytes, codec, calibration_embeddings, metric, random_state, n_threads
        As for `quantize_embeddings`.
    output_index : bool
        Give the index as well, to search it again.

    Returns
    -------
    results : list of list of dict
        For every query at most `top_k` of ``{"corpus_id": int, "score": float}``, the best first. The score is an
        estimate of the cosine, of the inner product, or of the negative squared distance, by the metric.
    seconds : float
        That the search took.
    index : CodeBase or Index
        With ``output_index=True``.
    """
    k = integer(top_k, "top_k", 1)
    wanted = boolean(output_index, "output_index")
    if (corpus_embeddings is None) == (corpus_index is None):
        raise InputError("corpus_embeddings or corpus_index: pass one of them, and not both")
    if corpus_index is None:
        given = plain_array(corpus_embeddings, "corpus_embeddings")
        if codec is not None and given.dtype == np.uint8:
            with renamed(codes="corpus_embeddings"):
                corpus_index = CodeBase(codec, given, n_threads=n_threads)
        else:
            with renamed(embeddings="corpus_embeddings"):
                codes, fitted = quantize_embeddings(
                    given,
                    n_bytes,
                    codec=codec,
                    calibration_embeddings=calibration_embeddings,
                    metric=metric,
                    random_state=random_state,
                    n_threads=n_threads,
                )
            corpus_index = CodeBase(fitted, codes, n_threads=n_threads)
    elif not isinstance(corpus_index, CodeBase | Index):
        raise InputTypeError(
            f"corpus_index must be a CodeBase or an Index, not {type(corpus_index).__name__}; pass embeddings as "
            "corpus_embeddings"
        )
    queries = plain_array(query_embeddings, "query_embeddings")
    if queries.ndim == 1:
        queries = queries[None]
    start = time.perf_counter()
    with renamed(Q="query_embeddings"):
        distances, ids = corpus_index.search(queries, k, n_threads=n_threads)
    seconds = time.perf_counter() - start
    results = _results(distances, ids, corpus_index.codec)
    return (results, seconds, corpus_index) if wanted else (results, seconds)


class SearchIndex:
    """Texts that are found by their meaning: a model of sentence-transformers, and codes of what it makes of them.

    Parameters
    ----------
    model : SentenceTransformer, or any object with a method encode
    texts : sequence of str
        What is searched.
    n_bytes : int
        That are kept of each embedding.
    options
        As for `Index.build`: ``path="FOLDER"`` keeps the index on disk, ``metric`` is "cosine" by default.

    Attributes
    ----------
    index : Index
        It keeps the texts as the column "text", and takes more of them: ``found.index.add(texts)``.

    Examples
    --------
    >>> from antisparse.connect.sentence_transformers import SearchIndex
    >>> found = SearchIndex(model, texts, n_bytes=32)  # doctest: +SKIP
    >>> found.search("a question", top_k=3)  # doctest: +SKIP
    [[{'corpus_id': 7, 'score': 0.71, 'text': '...'}, ...]]
    """

    def __init__(self, model: Any, texts: Any, n_bytes: int = 48, **options: Any) -> None:
        self.index = Index.build(texts, n_bytes, model=model, **{"metric": "cosine", **options})

    @classmethod
    def open(cls, path: Any, model: Any = None, **options: Any) -> "SearchIndex":
        """One that is on disk, with the model that made its embeddings; options as for `Index.open`."""
        found = cls.__new__(cls)
        found.index = Index.open(path, model=model, **options)
        return found

    def search(self, queries: Any, top_k: int = 10, *, filter: Any = None) -> Results:
        """For every text that is asked at most `top_k` of ``{"corpus_id", "score", "text"}``, the best first.

        Where the index was built from a table, the id is the key, and its columns stand beside. `filter` is that of
        `Index.search`.
        """
        k = integer(top_k, "top_k", 1)
        with renamed(texts="queries"):
            vectors = self.index.embed(queries)
        results: Results = [[] for _ in vectors]
        for row in self.index.search(vectors, k, filter=filter, items=True).to_pylist():
            query, _, distance, corpus_id = (row.pop(name) for name in list(row)[:4])
            score = float(_scores(np.float64(distance), self.index.codec))
            results[query].append({"corpus_id": corpus_id, "score": score, **row})
        return results


def _scores(distances: Any, codec: Codec) -> Any:
    """Distances as scores, of which the largest is the best."""
    return 1 - distances if codec.metric_name == "cosine" else -distances


def _results(distances: Any, ids: Any, codec: Codec) -> Results:
    """In the shape that sentence-transformers gives."""
    return [
        [{"corpus_id": i, "score": score} for i, score in zip(*row, strict=True) if i >= 0]
        for row in zip(ids.tolist(), _scores(distances, codec).tolist(), strict=True)
    ]
