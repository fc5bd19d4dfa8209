"""A real service, in a process of its own."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx


@dataclass
class Running:
    """A service, and what it says on standard error."""

    process: subprocess.Popen
    url: str = ""
    said: list[str] = field(default_factory=list)

    def post(self, path: str, **what: object) -> httpx.Response:
        return httpx.post(self.url + path, timeout=60, **what)

    def get(self, path: str, **what: object) -> httpx.Response:
        return httpx.get(self.url + path, timeout=60, **what)

    def metric(self, name: str) -> float:
        found = re.search(rf"^{re.escape(name)} ([0-9.e+]+)$", self.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0


def until(what: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


@contextmanager
def service(path: Path, *options: str) -> Iterator[Running]:
    """`antisparse serve` on a port that is free."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "antisparse", "serve", str(path), "--port", "0"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=os.environ)
    running = Running(process)
    assert process.stderr is not None

    def listen() -> None:
        for line in process.stderr or ():
            running.said.append(line.rstrip("\n"))

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not running.url:
            assert process.poll() is None and time.monotonic() < deadline, running.said
            found = [re.search(r"listening on (http://\S+)", line) for line in running.said]
            running.url = next((match[1] for match in found if match), "")
            time.sleep(0.02)
        yield running
    finally:
        process.kill()
        process.wait()
        thread.join()
        process.stderr.close()
