"""Many at once: each has its own answer, of one state of the index, and SIGTERM loses none."""

import json
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from asked import GOOD, filled, npy, same
from models import POOL, QUERIES
from running import Running

from antisparse import Index
from antisparse.serve.bodies import JSON, NPY


def test_many_at_once_share_scans_and_get_their_own_answers(served: Running, index: Index) -> None:
    wrong: list[Any] = []

    def ask(number: int) -> None:
        with httpx.Client(base_url=served.url, timeout=60) as client:
            for turn in range(30):
                q = POOL[(7 * number + turn) % len(POOL)]
                k = 1 + (number + turn) % 3
                try:
                    same(client.post("/search", json={"vector": q.tolist(), "k": k}), *index.search(q, k), index)
                except BaseException as error:
                    wrong.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_index_is_followed_and_every_answer_is_of_one_state(tmp_path: Path, serving: Any) -> None:
    filled(tmp_path / "index", None)
    known: dict[int, Any] = {}
    answers: list[Any] = []

    def remember(index: Index) -> int:
        generation = index.snapshot.manifest.generation
        known[generation] = index.search(QUERIES, 10)
        return generation

    with Index.open(tmp_path / "index") as index, serving(tmp_path / "index", "--quiet", "--follow", "0.02") as served:
        remember(index)
        stop = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=served.url, timeout=60) as client:
                while not stop.is_set():
                    answers.append(client.post("/search", content=npy(QUERIES), headers={"content-type": NPY}).json())

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            random = np.random.default_rng(0)
            for turn in range(15):
                if turn % 5 == 4:
                    index.compact()
                elif turn % 3 == 2:
                    index.remove(random.permutation(index.ids)[:9])
                else:
                    index.add(POOL[random.integers(len(POOL), size=5)] + 0.01)
                wanted, deadline = remember(index), time.monotonic() + 30
                while answers[-1:] == [] or answers[-1]["generation"] < wanted:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert len({said["generation"] for said in answers}) > 12
    for said in answers:
        distances, ids = known[said["generation"]]
        assert [result["ids"] for result in said["results"]] == ids.tolist()
        assert [result["distances"] for result in said["results"]] == distances.tolist()


def sent(served: Running, path: str, kind: str, body: bytes) -> socket.socket:
    """A connection on which a request was sent whole."""
    host, port = served.url.removeprefix("http://").split(":")
    one = socket.create_connection((host, int(port)))
    one.settimeout(60)
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    one.sendall(head.encode() + body)
    return one


def heard(one: socket.socket) -> bytes:
    """The body of the answer, if it is one that is whole and good; the connection ends."""
    parts = []
    with one, suppress(ConnectionError):
        while part := one.recv(1 << 20):
            parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    return body if head.startswith(b"HTTP/1.1 200") and f"content-length: {len(body)}".encode() in head else b""


@pytest.mark.parametrize("end", [30, 0])
def test_sigterm_loses_no_request_that_was_taken(tmp_path: Path, serving: Any, end: int) -> None:
    """Searches that take a while, and changes: all are answered, and what was added is there.

    With no time to end some are lost, which shows that the test can tell.
    """
    model = filled(tmp_path / "index", None)
    search, add = npy(np.tile(POOL, (6, 1))), json.dumps({"vectors": POOL[:3].tolist()}).encode()
    words = ("--write", "--quiet", "--searches", "1", "--batch-ms", "0", "--end", str(end))
    with serving(tmp_path / "index", *words) as served:
        asked = [sent(served, "/search?k=148", NPY, search) for _ in range(12)]
        changes = [sent(served, "/add", JSON, add) for _ in range(4)]
        for _ in range(2):  # who came later was taken later
            assert served.get("/readyz").status_code == 200
        answered, _, _ = select.select([*asked, *changes], [], [], 0)
        served.process.send_signal(signal.SIGTERM)
        found, made = [heard(one) for one in asked], [heard(one) for one in changes]
        assert served.process.wait(60) == 0
        assert len(answered) < 8  # the others were at work, or waited
    with Index.open(tmp_path / "index", verify=True) as index:
        if end:
            assert all(found) and all(made) and len(index) == len(model.rows) + 3 * len(made)
        else:
            assert not all([*found, *made]) and len(index) >= len(model.rows) + 3 * sum(map(bool, made))


def test_too_many_are_told_to_come_again(place: Path, serving: Any) -> None:
    with serving(place, "--quiet", "--searches", "1", "--waiting", "1", "--batch-ms", "0") as served:
        statuses: list[tuple[int, str | None]] = []
        body = npy(np.tile(POOL, (6, 1))[:900])

        def ask() -> None:
            with httpx.Client(base_url=served.url, timeout=60) as client:
                for _ in range(5):
                    answer = client.post("/search", params={"k": 500}, content=body, headers={"content-type": NPY})
                    statuses.append((answer.status_code, answer.headers.get("retry-after")))

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {(200, None), (503, "1")}
        assert served.post("/search", json=GOOD).status_code == 200
