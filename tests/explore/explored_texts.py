"""An index of texts, hostile ones among them, whose true neighbours NumPy knows."""

from typing import Any

import numpy as np
import pyarrow as pa
from letters import TITLES, Letters

from antisparse import Index

HOSTILE = {
    "script": "<script>window.hacked = 1</script>",
    "end": "</script><img src=x onerror='window.hacked = 1'>",
    "comment": "<!-- <script> {{SCRIPT}} &amp; &lt; \u2028 \\u003c",
    "long": "long " * 2000,
    "one word": "w" * 3000,
    "right to left": "שלום עולם, مرحبا بالعالم <b>bold</b>",
    "emoji": "😀 👩‍👩‍👧‍👦 🇺🇳 e\u0301 \u202e reversed",
    "<b>key</b>": "a key that is markup",
}
TEXTS = [*TITLES[:400:2], *HOSTILE.values()]
KEYS = [*(f"k{i}" for i in range(200)), *HOSTILE]
VECTORS = Letters().encode(TEXTS)
SIZES = (3, 6, 10)


def built(**options: Any) -> Index:
    """An index in memory of the texts."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), VECTORS.shape[1])
    table = pa.table({"name": KEYS, "title": TEXTS, "vector": lists})
    settings = {"metric": "cosine", "symbols": "signs", "effort": 1, "random_state": 0, **options}
    return Index.build(table, 6, vector="vector", key="name", columns=["title"], **settings)


def are_nearest(ids: list[int], q: np.ndarray, own: int | None, metric: str) -> bool:
    """Whether these are the nearest in order, but for ties, by distances that are worked out one by one."""
    X, q = VECTORS.astype(float), np.asarray(q, float)
    if metric == "cosine":
        X, q = X / np.linalg.norm(X, axis=1, keepdims=True), q / np.linalg.norm(q)
    distances = ((X - q) ** 2).sum(axis=1)
    least = np.sort(np.delete(distances, [] if own is None else [own]))[: len(ids)]
    return own not in ids and len(set(ids)) == len(ids) == 10 and bool(np.allclose(distances[ids], least, atol=1e-9))
