"""antisparse in big-ann-benchmarks, as an entry of a track of neurips23: an index of codes in a folder."""

import os
import shutil
import tarfile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from benchmark.algorithms.base import BaseANN
from benchmark.datasets import DATASETS

from antisparse import Index

METRICS: dict[str, Literal["l2", "cosine", "ip"]] = {"euclidean": "l2", "angular": "cosine", "ip": "ip"}
BLOCK = 100_000  # vectors that are read at once, and learned from
SHARDS = 50  # places of a large set that learning vectors are read from


class Antisparse(BaseANN):
    """An index of codes.

    Parameters
    ----------
    metric : {"euclidean", "angular", "ip"}
    index_params : dict
        "n_bytes": of a code, that of the number of its cell included. "cells": of which a query visits some.
    """

    def __init__(self, metric: str, index_params: dict[str, int]) -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"antisparse has no metric {metric!r}; it has {', '.join(METRICS)}")
        self._metric, self._n_bytes, self._cells = METRICS[metric], index_params["n_bytes"], index_params["cells"]
        self._probes: int | Literal["all"] = "all"
        self.name = f"antisparse-{metric}-{self._n_bytes}-{self._cells}"
        self.res: Any = None

    def track(self) -> str:
        """Where it competes."""
        return "ood"

    def fit(self, dataset: str) -> None:
        """Learn from vectors of all parts of the set, and code it a block at a time, into a folder."""
        vectors, place = DATASETS[dataset](), self._place(dataset)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        self._index = Index.build(
            vectors.get_dataset_iterator(bs=BLOCK),
            self._n_bytes,
            path=place,
            metric=self._metric,
            cells=self._cells,
            learn=sample(vectors),
            random_state=0,
        )

    def load_index(self, dataset: str) -> bool:
        """Open the folder that `fit` made, or the archive of one that was downloaded; False where there is neither."""
        place = self._place(dataset)
        if not os.path.isdir(place):
            if not os.path.exists(f"{place}.tar"):
                return False
            with tarfile.open(f"{place}.tar") as archive:
                archive.extractall(os.path.dirname(place), filter="data")
        self._index = Index.open(place, read_only=True, memory=True)
        return True

    def index_files_to_store(self, dataset: str) -> tuple[str, str, list[str]]:
        """The archive of the folder, made where there is one: its files have names that only their content tells."""
        place = self._place(dataset)
        folder, name = os.path.split(place)
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(place):
            with tarfile.open(f"{place}.tar", "w") as archive:
                archive.add(place, name)
        return folder, name, [".tar"]

    def set_query_arguments(self, query_args: dict[str, Any]) -> None:
        """Cells to visit."""
        self._probes = query_args.get("probes", "all")

    def query(self, X: Any, k: int) -> None:
        """The k nearest to each query."""
        self.res = self._index.search(X, k, probes=self._probes)[1]

    def get_results(self) -> npt.NDArray[np.int64]:
        """The ids of `query` (n_queries, k)."""
        return self.res

    def range_query(self, X: Any, radius: float) -> None:
        """All within a squared Euclidean distance of each query."""
        if self._metric != "l2":
            raise NotImplementedError("the radius of a range search is a squared Euclidean distance")
        self.res = self._index.range_search(X, radius, probes=self._probes)

    def get_range_results(self) -> tuple[Any, Any, Any]:
        """The limits, distances and ids of `range_query`."""
        return self.res

    def get_additional(self) -> dict[str, Any]:
        """What is stored with the results."""
        return {"bytes_per_vector": self._index.codec.n_bytes}

    def _place(self, dataset: str) -> str:
        return os.path.join("data", "indices", self.track(), self.name, DATASETS[dataset]().short_name(), "index")


def sample(vectors: Any) -> npt.NDArray[Any]:
    """Vectors to learn from: all of a small set, and of a large one some of each part."""
    if vectors.nb <= BLOCK:
        return np.concatenate(list(vectors.get_dataset_iterator(bs=BLOCK)))
    parts = [vectors.get_dataset_iterator(bs=BLOCK // SHARDS, split=(SHARDS, part)) for part in range(SHARDS)]
    return np.concatenate([next(part) for part in parts])
