"""The built site, page by page, and in a browser: `make docs` builds it and names it in ANTISPARSE_SITE."""

import importlib.util
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

if "ANTISPARSE_SITE" not in os.environ:
    pytest.skip("no site: make docs builds it and runs these tests", allow_module_level=True)

from site_pages import SitePage, site_pages

SITE = Path(os.environ["ANTISPARSE_SITE"]).resolve()
DOCS = Path(__file__).parents[2] / "docs"
PAGES = site_pages(SITE)


@pytest.fixture(params=PAGES.values(), ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> SitePage:
    return request.param


def configuration() -> Any:
    """docs/conf.py, which lists the public names."""
    spec = importlib.util.spec_from_file_location("site_configuration", DOCS / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_of_docs_is_there() -> None:
    names = configuration().PAGE_NAMES
    for source in DOCS.rglob("*.md"):
        name = source.relative_to(DOCS).with_suffix("").as_posix()
        assert SITE / f"{names.get(name, name)}.html" in PAGES


def test_links_lead_to_something(page: SitePage) -> None:
    wrong = []
    for target in page.targets() + page.fetched():
        if (met := page.meets(target)) is None:
            continue
        path, anchor = met
        there = path.is_file() and path.is_relative_to(SITE)
        if not there or (anchor and path in PAGES and anchor not in PAGES[path].anchors):
            wrong.append(target)
    assert wrong == []


def test_nothing_is_fetched_from_another_host(page: SitePage) -> None:
    assert [target for target in page.fetched() if not target.startswith("data:") and page.meets(target) is None] == []


def test_styles_fetch_nothing_from_another_host() -> None:
    styles = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")]
    styles += [one.get_text() for page in PAGES.values() for one in page.soup.find_all("style")]
    fetched = [found for text in styles for found in re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", text)]
    assert fetched
    assert [one for one in fetched if re.match(r"(\w+:)?//", one)] == []


def test_headings_descend_by_one(page: SitePage) -> None:
    levels = [int(one.name[1]) for one in page.soup.find_all(re.compile(r"^h[1-6]$"))]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels


def test_pictures_are_described(page: SitePage) -> None:
    for picture in page.soup.find_all("img"):
        alt, name = picture.get("alt", "").strip(), Path(picture["src"]).name
        assert len(alt) > 10 and alt not in picture["src"] and Path(name).stem not in alt, picture


def test_ids_are_given_once(page: SitePage) -> None:
    ids = Counter(one["id"] for one in page.soup.find_all(id=True))
    assert [name for name, times in ids.items() if times > 1] == []


def test_title_and_description(page: SitePage) -> None:
    assert page.soup.html["lang"] == "en"
    assert len(page.soup.title.get_text(strip=True)) > len("antisparse")
    (description,) = page.soup.find_all("meta", attrs={"name": "description"})
    assert 10 < len(description["content"]) <= 200


def test_every_public_name_has_a_page_in_the_reference() -> None:
    configured, missing = configuration(), []
    for module in configured.public_modules():
        listed = PAGES[SITE / "api" / "modules" / f"{module.__name__}.html"]
        links = [met for target in listed.targets() if (met := listed.meets(target))]
        for name in configured.public_names(module):
            names = {f"{module.__name__}.{name}", f"antisparse.{name}"}
            described = (PAGES[path].soup.find(id=anchor) for path, anchor in links if anchor in names)
            if not any(one and one.find_next("dd").get_text(strip=True) for one in described):
                missing.append(f"{module.__name__}.{name}")
    assert missing == []
