"""Whatever the service is sent: refused in one shape, never an error of its own, and no one else waits."""

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from asked import GOOD, arrow, filled, npy, same
from models import QUERIES
from running import Running

from antisparse import Index
from antisparse.serve.bodies import ARROW, NPY

FUZZ = int(os.environ.get("ANTISPARSE_REQUESTS", "10000"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "index"
    filled(path)
    return path


@pytest.fixture(scope="module")
def served(place: Path, serving: Any):
    with serving(place, "--quiet", "--body-bytes", "2000000") as running:
        yield running


@pytest.fixture(scope="module")
def index(place: Path):
    with Index.open(place, read_only=True, n_threads=1) as index:
        yield index


PICKLED = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
PICKLED += b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n" + b"\x80\x04K\x01."
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


def test_a_request_that_takes_too_long(place: Path, serving: Any) -> None:
    with serving(place, "--quiet", "--seconds", "0.3") as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as one:
            one.settimeout(20)
            one.sendall(b"POST /search HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert b"503" in one.recv(1000)
        assert served.post("/search", json=GOOD).status_code == 200
