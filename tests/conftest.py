"""Fixtures shared by all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from antisparse import _core

# Tests measure no time: a machine may be busy.
settings.register_profile("antisparse", deadline=None)
settings.load_profile("antisparse")


def _available() -> list[str]:
    before = _core.isa()
    names = []
    for name in ("portable", "avx2", "avx512"):
        try:
            _core.use_isa(name)
        except ValueError:
            continue
        names.append(name)
    _core.use_isa(before)
    return names


@pytest.fixture(params=_available())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on each instruction set this machine has."""
    before = _core.isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
