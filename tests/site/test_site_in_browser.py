"""The built site in Chromium, light and dark, on a phone and a desktop: `make docs` names it in ANTISPARSE_SITE."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from browsers import chromium

if "ANTISPARSE_SITE" not in os.environ:
    pytest.skip("no site: make docs builds it and runs these tests", allow_module_level=True)

SITE = Path(os.environ["ANTISPARSE_SITE"]).resolve()
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
# The first page, a tutorial, a page of the reference, tables, formulas, the search.
LOOKED_AT = ("index", "tutorials/from_faiss", "api/modules/names/antisparse.Index", "compare", "results", "spread")
LOOKED_AT += ("tutorials/paper_in_pictures", "gallery/index", "gallery/plot_spread")  # pictures, and their code
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


class Quiet(SimpleHTTPRequestHandler):
    """A server of the site's files that prints nothing."""

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address at which this machine serves the site to itself."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def opened(browser: Any, served: str, name: str, viewport: dict[str, int], scheme: str = "light") -> Iterator[Any]:
    """A page of the site; at the end it must have said nothing and asked for nothing but files of the site."""
    said, asked = [], []
    context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{served}/{name}")
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith((f"{served}/", "data:"))] == []
    finally:
        context.close()


def sideways(page: Any) -> int:
    """How much wider than the window the page is."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_text_is_read_with_ease(browser: Any, served: str, name: str, viewport: dict[str, int], scheme: str) -> None:
    with opened(browser, served, f"{name}.html", viewport, scheme) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert sideways(page) <= 0
        seen, low = page.evaluate(CONTRAST)
        assert seen > 5
        assert low == []


def test_no_page_scrolls_sideways_on_a_phone(browser: Any, served: str) -> None:
    wide = []
    files = (path.relative_to(SITE) for path in sorted(SITE.rglob("*.html")))
    pages = [path.as_posix() for path in files if "_static" not in path.parts and "names" not in path.parts]
    with opened(browser, served, "index.html", PHONE) as page:
        for name in pages:
            page.goto(f"{served}/{name}", wait_until="load")
            if (by := sideways(page)) > 0:
                wide.append((name, by))
    assert len(pages) > 40
    assert wide == []


def test_the_search_finds_pages(browser: Any, served: str) -> None:
    with opened(browser, served, "search.html?q=recall", DESKTOP) as page:
        page.wait_for_selector("#search-results li a")
        page.wait_for_function("() => document.querySelectorAll('#search-results li').length > 10")
        assert page.evaluate(CONTRAST)[1] == []


def test_the_menu_of_a_phone_opens_and_leads_on(browser: Any, served: str) -> None:
    with opened(browser, served, "index.html", PHONE) as page:
        page.locator("button.primary-toggle").click()
        page.get_by_role("link", name="Tutorials").locator("visible=true").first.click()
        page.wait_for_url("**/tutorials/index.html")
