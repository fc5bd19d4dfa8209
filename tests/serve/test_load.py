"""Many at once: each has its own answer, of one state of the index, and SIGTERM loses none."""

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from asked import GOOD, filled, npy, same
from models import POOL, QUERIES
from running import Running

from antisparse import Index
from antisparse.serve.bodies import NPY


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


def test_sigterm_lets_what_runs_end(place: Path, serving: Any) -> None:
    """Whatever the service has taken it answers; connections that no one took are refused."""
    with serving(place) as served:
        outcomes = {"answered": 0, "refused": 0, "lost": 0}
        stop = threading.Event()

        def ask() -> None:
            while not stop.is_set():
                try:
                    answer = httpx.post(served.url + "/search", json=GOOD, timeout=30)
                    outcomes["answered" if answer.status_code == 200 else "lost"] += 1
                except httpx.HTTPError:
                    outcomes["refused"] += 1
                    return

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while outcomes["answered"] < 30 and time.monotonic() < deadline:
            time.sleep(0.01)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(30) == 0
        stop.set()
        for thread in threads:
            thread.join()
    taken = [json.loads(line) for line in served.said if line.startswith("{")]
    assert outcomes["answered"] >= 30 and outcomes["lost"] == 0
    assert len([line for line in taken if line["route"] == "/search"]) == outcomes["answered"]


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
