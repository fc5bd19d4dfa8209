"""Real servers of one file, by HTTP and FTP, that can be made to misbehave."""

import http.server
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Served:
    """What is served, how, and what was asked for."""

    content: bytes
    cuts: list[int] = field(default_factory=list)  # bytes to send before the connection is cut, one an answer
    ranges: bool = True  # whether requests to resume are obeyed
    length: bool = True  # whether the length is said
    status: list[int] = field(default_factory=list)  # to answer instead, one an answer
    delay: float = 0.0  # seconds before the bytes are sent
    shift: int = 0  # resumed answers begin so many bytes late
    starts: list[int | None] = field(default_factory=list)  # the byte each request began at; None: no such wish
    sent: int = 0
    url: str = ""

    def body(self, start: int) -> bytes:
        """The bytes of this answer."""
        time.sleep(self.delay)
        data = self.content[start:]
        if self.cuts:
            data = data[: self.cuts.pop(0)]
        self.sent += len(data)
        return data


@contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def http_server(served: Served) -> Iterator[Served]:
    """Serve by HTTP at `served.url`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wish = self.headers.get("Range")
            served.starts.append(int(wish.removeprefix("bytes=").removesuffix("-")) if wish else None)
            start = served.starts[-1] if served.ranges and wish else 0
            size = len(served.content)
            if served.status:
                self.send_error(served.status.pop(0))
                return
            if wish and served.ranges and start >= size:
                self.send_error(416)
                return
            start += served.shift if start else 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            if served.length:
                self.send_header("Content-Length", str(size - start))
            self.end_headers()
            self.wfile.write(served.body(start))

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}/folder/file.bin"
    with _running(server):
        yield served


@contextmanager
def ftp_server(served: Served) -> Iterator[Served]:
    """Serve by FTP at `served.url`: as much of the protocol as a download takes."""

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 ready")
            start, rest = 0, None
            with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as data:
                for line in self.rfile:
                    command, _, argument = line.decode().strip().partition(" ")
                    if command == "USER":
                        self.say("230 welcome")
                    elif command == "TYPE":
                        self.say("200 binary")
                    elif command in ("SIZE", "RETR") and argument != "/folder/file.bin":
                        self.say("550 no such file")
                    elif command == "SIZE":
                        self.say(f"213 {len(served.content)}")
                    elif command == "EPSV":
                        self.say(f"229 entering (|||{data.server_address[1]}|)")
                    elif command == "PASV":
                        port = data.server_address[1]
                        self.say(f"227 entering (127,0,0,1,{port // 256},{port % 256})")
                    elif command == "REST":
                        start = rest = int(argument)
                        self.say("350 from there")
                    elif command == "RETR":
                        served.starts.append(rest)
                        self.say("150 here it comes")
                        connection, _ = data.socket.accept()
                        with connection:
                            connection.sendall(served.body(start))
                        self.say("226 done")
                    elif command == "QUIT":
                        self.say("221 bye")
                        return
                    else:
                        self.say("502 unknown")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True

    server = Server(("127.0.0.1", 0), Handler)
    served.url = f"ftp://127.0.0.1:{server.server_address[1]}/folder/file.bin"
    with _running(server):
        yield served
