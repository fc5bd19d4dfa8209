"""What the tests of the explorer share: an index of texts, as it is explored, and a browser."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from explored_texts import SIZES, VECTORS, built

from antisparse import Index
from antisparse.explore import Explorer, Originals, other_sizes

sys.path.insert(0, str(Path(__file__).parent.parent / "serve"))


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
    """Chromium, driven by Playwright."""
    with chromium() as one:
        yield one
