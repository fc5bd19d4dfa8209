"""antisparse in ann-benchmarks: codes, in cells or one list, with or without floats for the last step."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse import Index

from ..base.module import BaseANN

METRICS: dict[str, Literal["l2", "cosine"]] = {"euclidean": "l2", "angular": "cosine"}


class Antisparse(BaseANN):
    """An index of codes, of so many bits a dimension.

    Parameters
    ----------
    metric : {"euclidean", "angular"}
    parameters : dict
        "bits": of a code, a dimension. "cells": of which a query visits some; 1 is a full scan.
    """

    def __init__(self, metric: str, parameters: dict[str, Any]) -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"antisparse has no metric {metric!r}; it has {', '.join(METRICS)}")
        self._metric, self._bits, self._cells = METRICS[metric], parameters["bits"], parameters["cells"]
        self._probes: int | Literal["all"] = "all"
        self._rescored = 0
        self.res: list[npt.NDArray[np.int64]] = []

    def fit(self, X: Any) -> None:
        """Learn codes from a sample, and code all vectors. The floats stay for those runs that rank again by them."""
        self._vectors = np.asarray(X)
        rows = np.arange(len(self._vectors))
        if self._metric == "cosine":  # a zero has none: it is never found
            rows = np.flatnonzero(self._vectors.any(axis=1))
        n_bytes = max(2, round(self._bits * self._vectors.shape[1] / 8))
        beside = 0 if self._cells == 1 else 1 if self._cells <= 256 else 2  # the number of the cell
        kept = self._vectors if len(rows) == len(self._vectors) else self._vectors[rows]
        self._index = Index.build(
            kept, n_bytes + beside, metric=self._metric, ids=rows, cells=self._cells, random_state=0
        )

    def set_query_arguments(self, probes: int | Literal["all"], rescored: int) -> None:
        """Cells to visit, and candidates to rank again by the floats: 0 for the answer of the codes alone."""
        self._probes, self._rescored = probes, rescored

    def query(self, v: Any, n: int) -> npt.NDArray[np.int64]:
        """The ids of the n nearest to one query."""
        return self._search(np.asarray(v)[None], n)[0]

    def batch_query(self, X: Any, n: int) -> None:
        """The same for many queries at once."""
        self.res = self._search(np.asarray(X), n)

    def get_batch_results(self) -> list[npt.NDArray[np.int64]]:
        """The ids of `batch_query`."""
        return self.res

    def _search(self, Q: npt.NDArray[Any], n: int) -> list[npt.NDArray[np.int64]]:
        if self._metric == "cosine":  # a zero is as far from all
            Q = np.where(Q.any(axis=1, keepdims=True), Q, 1)
        if self._rescored:
            shortlist = max(n, self._rescored)
            found = self._index.search(Q, n, probes=self._probes, rerank=self._vectors, shortlist=shortlist)
        else:
            found = self._index.search(Q, n, probes=self._probes)
        return [row[row >= 0] for row in found[1]]  # fewer where the cells that were visited hold fewer

    def get_additional(self) -> dict[str, Any]:
        """What is stored with the results."""
        return {"bytes_per_vector": self._index.codec.n_bytes}

    def __str__(self) -> str:
        rescored = f", rescored={self._rescored}" * bool(self._rescored)
        return f"Antisparse(bits={self._bits}, cells={self._cells}, probes={self._probes}{rescored})"
