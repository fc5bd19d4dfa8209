"""What the tests of the explorer share: an index of texts, hostile ones among them, and a browser."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from letters import TITLES, Letters

from antisparse import Index
from antisparse.explore import Explorer, Originals, other_sizes

sys.path.insert(0, str(Path(__file__).parent.parent / "serve"))

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
# No network is there, and none is asked for.
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
SWITCHES += ("--disable-sync", "--no-first-run")


def built(**options: Any) -> Index:
    """An index in memory of the texts."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), VECTORS.shape[1])
    table = pa.table({"name": KEYS, "title": TEXTS, "vector": lists})
    settings = {"metric": "cosine", "symbols": "signs", "effort": 1, "random_state": 0, **options}
    return Index.build(table, 6, vector="vector", key="name", columns=["title"], **settings)


@pytest.fixture(scope="session")
def index() -> Index:
    return built()


@pytest.fixture(scope="session")
def explorer(index: Index) -> Explorer:
    """The index with originals and two sizes more."""
    originals = Originals.of(index, VECTORS)
    return Explorer(index, originals, other_sizes(index, originals, SIZES))


@pytest.fixture(scope="session")
def codebooks() -> Explorer:
    """An index of codebooks, whose bits do not compare."""
    index = built(symbols="codebooks", metric="l2")
    return Explorer(index, Originals.of(index, VECTORS))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; without either there is nothing to test, unless `make test-page` asks for it."""
    needed = "ANTISPARSE_PAGE" in os.environ
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if needed:
            raise
        pytest.skip("no Playwright here; make test-page installs it")
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next((found for name in names if (found := shutil.which(name))), playwright.chromium.executable_path)
        if not needed and not os.path.exists(path):
            pytest.skip("no Chromium on this machine")
        chromium = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield chromium
        chromium.close()


def are_nearest(ids: list[int], q: np.ndarray, own: int | None, metric: str) -> bool:
    """Whether these are the nearest in order, but for ties, by distances that are worked out one by one."""
    X, q = VECTORS.astype(float), np.asarray(q, float)
    if metric == "cosine":
        X, q = X / np.linalg.norm(X, axis=1, keepdims=True), q / np.linalg.norm(q)
    distances = ((X - q) ** 2).sum(axis=1)
    least = np.sort(np.delete(distances, [] if own is None else [own]))[: len(ids)]
    return own not in ids and len(set(ids)) == len(ids) == 10 and bool(np.allclose(distances[ids], least, atol=1e-9))
