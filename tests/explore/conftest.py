"""What the tests of the explorer share: an index of texts, as it is explored, and a browser."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from explored_texts import SIZES, VECTORS, built

from antisparse import Index
from antisparse.explore import Explorer, Originals, other_sizes

sys.path.insert(0, str(Path(__file__).parent.parent / "serve"))

# No network is there, and none is asked for.
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
SWITCHES += ("--disable-sync", "--no-first-run")


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
