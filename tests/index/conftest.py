"""What the tests of the index share."""

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def in_memory(tmp_path):
    """A folder in memory where the system has one, for files by the ten thousand."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
