"""What the tests of the service share."""

import sys
from pathlib import Path
from typing import Any

import pytest

from antisparse import Index

sys.path[:0] = [str(Path(__file__).parent.parent / name) for name in ("index", "explore")]


@pytest.fixture(scope="session")
def serving():
    """Starts a service."""
    from running import service

    return service


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with items."""
    from asked import filled

    path = tmp_path_factory.mktemp("served") / "index"
    filled(path)
    return path


@pytest.fixture(scope="module")
def served(place: Path, serving: Any):
    """A service of it."""
    with serving(place, "--quiet", "--body-bytes", "2000000") as running:
        yield running


@pytest.fixture(scope="module")
def index(place: Path):
    """The same index, here."""
    with Index.open(place, read_only=True, n_threads=1) as index:
        yield index
