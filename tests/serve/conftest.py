"""What the tests of the service share."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent.parent / name) for name in ("index", "explore")]


@pytest.fixture(scope="session")
def serving():
    """Starts a service."""
    from running import service

    return service
