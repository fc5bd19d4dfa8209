"""Requests a second of the service, beside the library called in a loop, with and without shared scans.

    python benchmarks/serve.py [--seconds 10] [--clients 64] [--json FILE] | --smoke

`antisparse serve` runs in a process of its own, asked by clients of this one over loopback: a query a request, and 100,
as .npy. 200,000 random vectors of 128 dimensions in 16 bytes, k = 10, one search at a time (--searches 1). Then all
clients for a minute and 100,000 requests more, and the memory of the service before and after. Every answer is looked
at; whatever is not 200 is counted.
"""

import asyncio
import io
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import options, write_json

from antisparse import Index

Times = list[float]


def request(Q: npt.NDArray[np.float32]) -> bytes:
    """A search as bytes."""
    file = io.BytesIO()
    np.save(file, Q)
    body = file.getvalue()
    lines = ["POST /search?k=10 HTTP/1.1", "host: x", "content-type: application/x-npy", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def client(port: int, requests: list[bytes], until: float, times: Times, failed: list[bytes], most: int) -> None:
    """Ask until it is time, or often enough, one request after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = 0
    while time.perf_counter() < until and turn < most:
        start = time.perf_counter()
        writer.write(requests[turn % len(requests)])
        turn += 1
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1]) if length else 0)
        times.append(time.perf_counter() - start)
        if not head.startswith(b"HTTP/1.1 200") or not body.startswith(b'{"generation":'):
            failed.append(head)
    writer.close()


def load(port: int, requests: list[bytes], clients: int, seconds: float, most: int = 10**9) -> dict[str, Any]:
    """Requests a second, and how long they took."""

    async def all_of_them() -> tuple[float, Times, list[bytes]]:
        times: Times = []
        failed: list[bytes] = []
        start = time.perf_counter()
        asked = [requests[number:] + requests[:number] for number in range(clients)]
        await asyncio.gather(*(client(port, one, start + seconds, times, failed, most) for one in asked))
        return time.perf_counter() - start, times, failed

    taken, times, failed = asyncio.run(all_of_them())
    return {
        "clients": clients,
        "requests_a_second": round(len(times) / taken, 1),
        "p50_ms": round(1000 * float(np.percentile(times, 50)), 2),
        "p99_ms": round(1000 * float(np.percentile(times, 99)), 2),
        "requests": len(times),
        "failed": len(failed),
    }


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return round(int(found[1]) / 1024, 1) if found else 0.0


class Served:
    """A service on a port that is free."""

    def __init__(self, path: Path, *more: str) -> None:
        command = [sys.executable, "-m", "antisparse", "serve", str(path), "--port", "0", "--quiet", "--searches", "1"]
        self.process = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"listening on http://127.0.0.1:(\d+)", line):
                self.port = int(found[1])
                break

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()


def library(index: Index, Q: npt.NDArray[np.float32], seconds: float) -> float:
    """Calls a second of a search in a loop."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        index.search(Q, 10)
        calls += 1
    return round(calls / (time.perf_counter() - start), 1)


def main() -> None:
    """Print a line a way of asking."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=64)
    arguments = parser.parse_args()
    n, seconds = (5000, 1.0) if arguments.smoke else (200_000, arguments.seconds)
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 128)).astype(np.float32)
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        given: dict[str, Any] = {"symbols": "signs", "effort": 1, "cells": 1, "train": 5000}
        index = Index.build(X, 16, path=path, random_state=0, n_threads=None, **given)
        index.close()
        for queries in (1, 100):
            asked = [request(random.standard_normal((queries, 128)).astype(np.float32)) for _ in range(100)]
            index.n_threads = 1
            calls = library(index, random.standard_normal((queries, 128)).astype(np.float32), seconds)
            print(f"{queries} queries a call: the library in a loop {calls:,.0f} calls a second", flush=True)
            lines.append({"queries": queries, "library_calls_a_second": calls})
            for shared in (True, False):
                with Served(path, *([] if shared else ["--batch-ms", "0"])) as served:
                    for clients in (1, arguments.clients):
                        line = {"queries": queries, "shared": shared, **load(served.port, asked, clients, seconds)}
                        lines.append(line)
                        print(
                            f"  {clients:3} clients, scans {'shared' if shared else 'apart '}: "
                            f"{line['requests_a_second']:9,.1f} requests a second, p50 {line['p50_ms']:8.2f} ms, p99 "
                            f"{line['p99_ms']:8.2f} ms, {line['failed']} of {line['requests']:,} failed",
                            flush=True,
                        )
        with Served(path) as served:
            asked = [request(random.standard_normal((1, 128)).astype(np.float32)) for _ in range(100)]
            load(served.port, asked, arguments.clients, 1e9, 20)
            before = memory(served.process.pid)
            minute, many = (1.0, 1000) if arguments.smoke else (60.0, 100_000)
            ends = ((minute, 10**9), (1e9, -(-many // arguments.clients)))
            parts = [load(served.port, asked, arguments.clients, seconds, most) for seconds, most in ends]
            after = memory(served.process.pid)
        count, failed = (sum(part[name] for part in parts) for name in ("requests", "failed"))
        print(
            f"{arguments.clients} clients for {minute:.0f} s and on: {count:,} requests, {failed} failed; memory "
            f"before and after: {before} MB, {after} MB"
        )
    write_json(arguments.json, {"ways": lines, "memory_mb": [before, after], "requests": count, "failed": failed})


if __name__ == "__main__":
    main()
