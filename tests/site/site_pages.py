"""The pages of a built site, parsed: for tests of the site alone, since the parser comes with Sphinx's theme."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

# What a page fetches by itself, and by which attribute.
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}


@dataclass(frozen=True)
class SitePage:
    """One HTML file of the site in `folder`."""

    folder: Path
    path: Path

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.path.read_text(encoding="utf-8"), "html.parser")

    @cached_property
    def anchors(self) -> set[str]:
        """The names that a link can end in."""
        named = self.soup.find_all(id=True) + self.soup.find_all("a", attrs={"name": True})
        return {one.get("id") or one.get("name") for one in named}

    @property
    def name(self) -> str:
        return self.path.relative_to(self.folder).as_posix()

    def targets(self, attribute: str = "href", tag: str = "a") -> list[str]:
        return [one[attribute] for one in self.soup.find_all(tag) if one.get(attribute)]

    def fetched(self) -> list[str]:
        return [target for tag, attribute in FETCHED.items() for target in self.targets(attribute, tag)]

    def meets(self, target: str) -> tuple[Path, str] | None:
        """The file and the anchor that a link of this page leads to, or None where it leads out of the site."""
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return None
        path = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
        return path, unquote(parts.fragment)


def site_pages(folder: Path) -> dict[Path, SitePage]:
    """Every page of the site, by its file."""
    folder = folder.resolve()
    return {path: SitePage(folder, path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
