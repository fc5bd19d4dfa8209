"""Pages that are sessions: their Python blocks and their commands run in order, and print what the page says."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot

from antisparse.cli import main

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```\n+", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(\d[\d,.]*) *")
TUTORIALS = ("texts_to_answers", "image_descriptors", "ten_million", "paper_in_pictures")
SESSIONS = ["tables.md", *(f"tutorials/{name}.md" for name in TUTORIALS)]
# What the tests put in the place of a line, as the page says.
SMALLER = {"tutorials/ten_million.md": ("N, CELLS = 10_000_000, 1024", "N, CELLS = 20_000, 16")}


def steps(page: str) -> list[tuple[str, str, str | None]]:
    """(kind, what is run, what is printed, or None where the page does not say)."""
    found: list[tuple[str, str, str | None]] = []
    end = -1
    for match in BLOCK.finditer(page):
        kind, text = match.groups()
        if kind == "python":
            found.append((kind, "\n" * page[: match.start(2)].count("\n") + text, None))
        elif kind == "console":
            commands = (command.partition("\n") for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])
            found += [(kind, words, shown) for words, _, shown in commands]
        elif kind == "":
            assert match.start() == end and found[-1][0] == "python", "what is printed stands right below its block"
            found[-1] = (*found[-1][:2], text)
        end = match.end()
    return found


def run(kind: str, text: str, page: Path, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if kind == "python":
            exec(compile(text, str(page), "exec"), namespace)  # errors name the page's line
        else:
            assert main(shlex.split(text)[1:]) == 0
    return printed.getvalue()


def agree(printed: str, shown: str) -> bool:
    """The same words, and numbers that differ by a tenth or by 0.05 at most: versions of other packages change them."""
    lines = [[NUMBER.sub("0 ", line).rstrip() for line in text.strip().splitlines()] for text in (printed, shown)]
    a, b = ([float(found.replace(",", "").rstrip(".")) for found in NUMBER.findall(text)] for text in (printed, shown))
    return lines[0] == lines[1] and all(abs(x - y) <= max(0.05, 0.1 * y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", SESSIONS)
def test_the_session_prints_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("ANTISPARSE_DATA", str(tmp_path / "cache"))
    pyplot.switch_backend("agg")
    page, namespace = DOCS / name, {}
    large, small = SMALLER.get(name, ("", ""))
    assert large in page.read_text()
    compared = 0
    for kind, text, shown in steps(page.read_text().replace(large, small) if large else page.read_text()):
        printed = run(kind, text, page, namespace)
        if shown is not None:
            assert agree(printed, shown), f"{text.strip()}\nprinted:\n{printed}\nthe page says:\n{shown}"
            compared += 1
    assert compared >= 1
    pyplot.close("all")


def test_a_page_that_says_something_else_is_noticed(tmp_path: Path) -> None:
    page = "```python\nprint('one 1')\n```\n\n```\none 2\n```\n\n```python\nx = 1\n```\n"
    assert steps(page) == [("python", "\nprint('one 1')\n", "one 2\n"), ("python", "\n" * 9 + "x = 1\n", None)]
    assert agree("one 1,000 a\n", "one 990 a") and agree("0.05 | 2", "0.1  | 2")
    assert not agree("one 1", "two 1") and not agree("one 1,000", "one 800") and not agree("0.05", "0.11")
    with pytest.raises(AssertionError, match="right below"):
        steps(page.replace("\n\n```\none", "\n\nSo:\n\n```\none"))
