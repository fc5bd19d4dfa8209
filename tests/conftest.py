"""Fixtures shared by all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from antisparse import _core

# Tests measure no time: a machine may be busy.
settings.register_profile("antisparse", deadline=None)
settings.load_profile("antisparse")
_ALL = ("avx512", "avx2", "neon", "portable")


def pytest_report_header() -> str:
    """Which instruction sets are tested, and which this machine cannot run."""
    here = _core.isas()
    return f"instruction sets: {', '.join(here)}; not on this machine: {', '.join(sorted({*_ALL} - {*here})) or 'none'}"


@pytest.fixture(params=_core.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on each instruction set this machine has."""
    before = _core.isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
