"""A browser for the tests of pages: Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# No network is there, and none is asked for.
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
SWITCHES += ("--disable-sync", "--no-first-run")
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    """Chromium; without it or Playwright the test is skipped, unless ANTISPARSE_PAGE says that both must be there."""
    needed = "ANTISPARSE_PAGE" in os.environ
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if needed:
            raise
        pytest.skip("no Playwright here; make test-page installs it")
    with sync_playwright() as playwright:
        path = next((found for name in NAMES if (found := shutil.which(name))), playwright.chromium.executable_path)
        if not needed and not os.path.exists(path):
            pytest.skip("no Chromium on this machine; make test-page fetches one")
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield browser
        browser.close()
