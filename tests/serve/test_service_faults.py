"""Whatever the service is sent: refused in one shape, never an error of its own, and no one else waits."""

import json
import os
import re
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from asked import GOOD, arrow, filled, npy, same, stream
from in_thread import answering
from models import POOL, QUERIES
from running import Running, until

from antisparse import Index
from antisparse.serve import Limits, create_app
from antisparse.serve.bodies import ARROW, NPY
from antisparse.serve.service import Present

FUZZ = int(os.environ.get("ANTISPARSE_REQUESTS", "10000"))


PICKLED = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
PICKLED += b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n" + b"\x80\x04K\x01."
# Lists of no numbers, which take no bytes, however many.
NOTHING = pa.Array.from_buffers(pa.list_(pa.float32(), 0), 10**12, [None], children=[pa.array([], pa.float32())])
BAD: list[tuple[bytes, str, int]] = [
    (b"", "application/json", 400),
    (b"{", "application/json", 400),
    (b"null", "application/json", 400),
    (b"\xff\xfe", "application/json", 400),
    (b"[" * 200_000, "application/json", 400),
    (b'{"a":' * 100_000, "application/json", 400),
    (b'{"vector": [NaN]}', "application/json", 400),
    (b'{"vector": [1e999]}', "application/json", 400),
    (b'{"vectors": [[1,2],[3]]}', "application/json", 400),
    (b'{"vectors": []}', "application/json", 400),
    (b'{"vector": []}', "application/json", 400),
    (b'{"text": "words"}', "application/json", 400),
    (json.dumps(GOOD | {"k": 10**9}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"k": "many"}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"filter": "drop table"}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"filter": [-1]}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"filter": [True, False]}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"method": "magic"}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"unknown": 1}).encode(), "application/json", 400),
    (json.dumps(GOOD | {"texts": ["x"]}).encode(), "application/json", 400),
    (npy(QUERIES)[:-3], NPY, 400),
    (npy(QUERIES * np.nan), NPY, 400),
    (npy(QUERIES[:, :3]), NPY, 400),
    (npy(QUERIES[None]), NPY, 400),
    (npy(np.array(["a"])), NPY, 400),
    (PICKLED, NPY, 400),
    (b"\x93NUMPY\x01\x00\xff\xff", NPY, 400),
    (npy(np.zeros((2000, 10))), NPY, 400),
    (arrow(QUERIES)[:-200], ARROW, 400),
    (b"ARROW1", ARROW, 400),
    (arrow(QUERIES, compression="zstd"), ARROW, 400),
    (stream(pa.table({"vector": NOTHING}), allow_64bit=True), ARROW, 400),
    (stream(pa.table({"vector": QUERIES.tolist(), "x": pa.nulls(5)}).slice(0, 0)), ARROW, 400),
    (npy(np.zeros((10**12, 0))), NPY, 400),
    (b"x", "text/plain", 415),
    (b"x" * 2_000_001, NPY, 413),
]


def test_bad_bodies_are_refused_in_one_shape(served: Running, index: Index) -> None:
    for body, kind, status in BAD:
        answer = served.post("/search", content=body, headers={"content-type": kind})
        assert answer.status_code == status, (body[:60], answer.text)
        assert set(answer.json()) == {"error"} and set(answer.json()["error"]) == {"code", "message"}
        assert "Traceback" not in answer.text and "site-packages" not in answer.text
    same(served.post("/search", json=GOOD), *index.search(QUERIES[0], 10), index)
    assert not [line for line in served.said if "Traceback" in line]


def test_ten_thousand_mutated_requests(served: Running, index: Index) -> None:
    """Bytes of good requests changed, cut and doubled: each is answered, none by an error of the server."""
    random = np.random.default_rng(0)
    goods = [
        (json.dumps(GOOD | {"k": 3, "filter": "half > 2", "probes": "all"}).encode(), "application/json"),
        (npy(QUERIES), NPY),
        (arrow(QUERIES), ARROW),
    ]
    statuses: dict[int, int] = {}
    with httpx.Client(base_url=served.url, timeout=60) as client:
        for turn in range(FUZZ):
            body, kind = goods[turn % 3]
            data = bytearray(body)
            for _ in range(random.integers(1, 6)):
                at = int(random.integers(len(data)))
                what = random.integers(4)
                if what == 0:
                    data[at] = random.integers(256)
                elif what == 1:
                    del data[at : at + int(random.integers(1, 20))]
                elif what == 2:
                    data[at:at] = bytes(random.integers(0, 256, random.integers(1, 8), dtype=np.uint8))
                else:
                    data[at:at] = data[at : at + 30]
                if not data:
                    data = bytearray(b"x")
            answer = client.post(
                ("/search", "/range")[turn % 5 == 0], content=bytes(data), headers={"content-type": kind}
            )
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert answer.status_code in (200, 400), (turn, bytes(data)[:200], answer.text)
    assert statuses[400] > FUZZ // 4 and served.process.poll() is None
    same(served.post("/search", json=GOOD), *index.search(QUERIES[0], 10), index)


def test_connections_that_are_cut_or_slow_do_not_hold_up_others(served: Running, index: Index) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    head = b"POST /search HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    slow = []
    for number in range(30):
        one = socket.create_connection((host, int(port)))
        one.sendall(head[: 20 + number] if number % 2 else head + b"{")
        slow.append(one)
    for one in slow[::3]:
        one.close()
    begun = time.perf_counter()
    for _ in range(20):
        same(served.post("/search", json=GOOD), *index.search(QUERIES[0], 10), index)
    assert time.perf_counter() - begun < 20
    for one in slow:
        one.close()


def peak(served: Running) -> int:
    """Megabytes that a service ever held."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{served.process.pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_small_bodies_that_would_take_all_memory(place: Path, serving: Any) -> None:
    zeros = np.zeros((4_000_000, 64), np.float32)  # a gigabyte
    bombs = [
        (arrow(zeros, compression="zstd"), ARROW, "its buffers are compressed"),
        (b'{"vector":[' + b"1," * 16_000_000 + b"1]}", "application/json", "has more than 1,058,816 values"),
        (b'{"vectors":[' + b"[]," * 11_000_000 + b"[]]}", "application/json", "has more than 1,058,816 values"),
    ]
    del zeros
    with serving(place, "--quiet", "--results", "1000") as served:
        served.post("/search", json=GOOD)
        before = peak(served)
        for body, kind, said in bombs:
            for path in ("/search", "/range?radius=1"):
                answer = served.post(path, content=body, headers={"content-type": kind})
                assert answer.status_code == 400 and said in answer.text, answer.text
        assert peak(served) - before < 250
        for path, asked in (("/search", {"k": 148}), ("/range", {"radius": 1e9})):
            for count, status in ((6, 200), (7, 400)):  # of 148 results
                answer = served.post(path, json={"vectors": POOL[:count].tolist(), **asked})
                assert answer.status_code == status, answer.text
                assert status == 200 or "1,000 results" in answer.text or "1000 in all" in answer.text


def test_a_request_that_takes_too_long(place: Path, serving: Any) -> None:
    with serving(place, "--quiet", "--seconds", "1") as served:
        with connected(served) as one:
            one.sendall(b"POST /search HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert b"503" in one.recv(1000)
        until(lambda: served.post("/search", json=GOOD).status_code == 200)


def test_a_search_may_be_too_late_and_a_change_that_has_begun_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told to try again would add twice."""
    filled(tmp_path / "index", None)
    with Index.open(tmp_path / "index") as index:
        for kind, name in ((Index, "add"), (Present, "search")):
            deed = getattr(kind, name)
            slow = lambda *given, deed=deed, **named: time.sleep(1.5) or deed(*given, **named)  # noqa: E731
            monkeypatch.setattr(kind, name, slow)
        with answering(create_app(index, write=True, limits=Limits(seconds=0.5))) as url:
            answer = httpx.post(url + "search", json=GOOD, timeout=20)
            assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
            answer = httpx.post(url + "add", json={"vectors": POOL[:2].tolist()}, timeout=20)
            assert answer.status_code == 200 and answer.json()["ids"] == [150, 151]


def connected(served: Running) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)))
    made.settimeout(20)
    return made


def ends(one: socket.socket) -> bool:
    """Whether the other side ends a connection."""
    try:
        return one.recv(1000) == b""
    except ConnectionError:
        return True


def test_connections_that_do_nothing_are_ended(place: Path, serving: Any) -> None:
    body = npy(np.tile(POOL, (2, 1)))
    head = f"POST /search?k=148 HTTP/1.1\r\nhost: x\r\ncontent-type: {NPY}\r\ncontent-length: {len(body)}\r\n\r\n"
    with (
        serving(place, "--quiet", "--seconds", "3") as served,
        httpx.Client(base_url=served.url) as patient,
        connected(served) as idle,
        connected(served) as slow,
        connected(served) as deaf,
        connected(served) as hard,
    ):
        for one in (deaf, hard):  # one takes nothing of a long answer, and one a little at a time
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
            one.sendall(head.encode() + body)
        begun, cut, heard = time.monotonic(), False, hard.recv(1 << 16)
        assert heard.startswith(b"HTTP/1.1 200")
        length = int(heard.split(b"content-length: ")[1].split(b"\r")[0])
        heard = heard.split(b"\r\n\r\n", 1)[1]
        while len(heard) < length:
            try:
                slow.sendall(b"P")  # of a head without an end
            except ConnectionError:
                cut = True
            part = hard.recv(length // 60)
            assert part
            heard += part
            time.sleep(0.15)
            if time.monotonic() > begun + 3:  # after a pause
                assert patient.get("/healthz").status_code == 200
        assert time.monotonic() > begun + 5 and json.loads(heard)["generation"]
        assert cut and ends(idle)
        taken = 0
        with suppress(ConnectionError):
            while part := deaf.recv(1 << 20):
                taken += len(part)
        assert taken < length
