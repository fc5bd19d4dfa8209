"""The service as a process: where it listens, what it says, and how it ends."""

import json
import logging
import math
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from antisparse._arrays import integer, nonnegative
from antisparse.errors import InputError, MissingDependencyError, StorageError
from antisparse.serve.limits import Limits
from antisparse.serve.tokens import Tokens

_UNSENT = 1 << 17  # bytes that the system keeps of an answer: with more, a slow client would seem to take nothing
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    index: Any,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    write: bool = False,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    follow: float = 1.0,
    end: float = 10.0,
    log: bool = True,
    **explorer: Any,
) -> None:
    """Serve an index until the process is told to end, by SIGTERM or Ctrl-C, which lets what runs end.

    Parameters
    ----------
    index : Index or ShardedIndex
    host : str
        Where to listen: this machine alone by default. Anywhere else takes tokens.
    port : int
    write, tokens, limits, follow, **explorer
        As for `create_app`; the last are what its explorer shows: originals, others, name.
    end : float
        Seconds that requests have to end when the process is told to.
    log : bool
        A line of JSON for every request on standard error: its number, route, status and milliseconds.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingDependencyError("a service needs uvicorn: pip install 'antisparse[serve]'") from None
    from antisparse.serve.app import create_app
    from antisparse.serve.connections import patient_for

    integer(port, "port", 0, 2**16)
    check_host(host, tokens)
    app = create_app(index, write=write, tokens=tokens, limits=limits, follow=follow, **explorer)
    _log_to(sys.stderr, log)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Its protocol is named, or asyncio would not send small answers at once (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise StorageError(f"host = {host!r}, port = {port}: cannot listen there ({error.strerror or error})") from None
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(nonnegative(end, "end")),
        timeout_keep_alive=30,
        http=patient_for((Limits() if limits is None else limits).seconds),
        ws="none",
        h11_max_incomplete_event_size=64 << 10,
    )

    class Server(uvicorn.Server):
        """One that says where it listens, ends when it is told to, and does not die of that."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Say where it listens when it does."""
            await super().startup(sockets)
            at, number = listening.getsockname()[:2]
            if self.started:
                print(f"listening on http://{f'[{at}]' if ':' in at else at}:{number}", file=sys.stderr, flush=True)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """SIGTERM and SIGINT end it; whoever handled them before does so after it."""
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {name: signal.signal(name, self.handle_exit) for name in (signal.SIGTERM, signal.SIGINT)}
            try:
                yield
            finally:
                for name, handler in before.items():
                    signal.signal(name, handler)

    with listening:
        Server(config).run(sockets=[listening])


class _Line(logging.Formatter):
    """A line of JSON, of the kinds of errors alone: what they say may hold what was asked."""

    def format(self, record: logging.LogRecord) -> str:
        said = {"server": record.getMessage()}
        kind = record.exc_info[0] if record.exc_info else None
        return json.dumps(said if kind is None else {**said, "error": kind.__name__})


def _log_to(stream: Any, requests: bool) -> None:
    """Lines of JSON alone: of requests, where these are wanted, and of the server."""
    for name, formatter in (("antisparse.serve", logging.Formatter("%(message)s")), ("uvicorn.error", _Line())):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if requests and name != "uvicorn.error" else logging.ERROR)


def check_host(host: str, tokens: Tokens | None) -> None:
    """Raise if others could ask without a token."""
    if host not in LOOPBACK and not tokens:
        raise InputError(
            f"host = {host!r}: whoever reaches it could ask; name a file of tokens (--token-file), or listen on "
            "127.0.0.1"
        )
