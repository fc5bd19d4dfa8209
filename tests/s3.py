"""A real S3 server on this machine, in a process of its own, and a way to it that can be cut."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "the-key-of-the-test",
    "AWS_SECRET_ACCESS_KEY": "the-secret-of-the-test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
BUCKET = "bucket"

# One request at a time: moto compares tags and writes objects in two steps.
_SERVER = (
    "import sys; from werkzeug.serving import run_simple\n"
    "from moto.server import DomainDispatcherApplication, create_backend_app\n"
    "run_simple('127.0.0.1', int(sys.argv[1]), DomainDispatcherApplication(create_backend_app))\n"
)


@contextmanager
def s3_server() -> Iterator[str]:
    """Its host and port; there is one bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVER, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | CREDENTIALS,
    )
    try:
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
        from urllib.request import Request, urlopen

        urlopen(Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT"), timeout=60).close()
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@dataclass
class Way:
    """A way to a server that cuts connections.

    `cuts` are the bytes of an answer after which each of the next connections is cut; None lets one pass. With
    `closed` none is taken.
    """

    port: int = 0
    cuts: list[int | None] = field(default_factory=list)
    closed: bool = False
    connections: int = 0


@contextmanager
def way_to(server: str) -> Iterator[Way]:
    """A way to a server on this machine."""
    host, port = server.split(":")
    way = Way()
    listening = socket.create_server(("127.0.0.1", 0))
    way.port = listening.getsockname()[1]

    open_sockets: list[socket.socket] = []

    def copy(source: socket.socket, target: socket.socket, most: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if most is not None and len(data) >= most:
                    target.sendall(data[:most])
                    break
                most = None if most is None else most - len(data)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                way.connections += 1
                if way.closed:
                    client.close()
                    continue
                far = socket.create_connection((host, int(port)))
                open_sockets.extend([client, far])
                cut = way.cuts.pop(0) if way.cuts else None
                threading.Thread(target=copy, args=(client, far, None), daemon=True).start()
                threading.Thread(target=copy, args=(far, client, cut), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield way
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for one in open_sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
