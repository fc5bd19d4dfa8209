"""What the documentation shows must run and say what it says."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize(
    "name",
    [
        "antisparse.spread.problem",
        "antisparse.spread.path",
        "antisparse.spread.batch",
        "antisparse.search",
        "antisparse.datasets.named",
    ],
)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_readme_examples() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})


def test_the_map_and_the_links_of_the_readme_exist() -> None:
    text = README.read_text()
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (README.parent / link).exists(), link
    for module in re.findall(r"^  ([\w/]+\.(?:py|cpp|hpp)) ", text, re.MULTILINE):
        assert (README.parent / "src/antisparse" / module).exists() or (README.parent / "native" / module).exists()
