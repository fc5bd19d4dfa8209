"""What the tests of the service share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "index"))


@pytest.fixture(scope="session")
def serving():
    """Starts a service."""
    from running import service

    return service
