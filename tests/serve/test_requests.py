"""Whatever the routes are sent is answered, changes among them; and an index that another takes the place of."""

import asyncio
import copy
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import zoo
from models import POOL, Model

from antisparse import Index
from antisparse.serve.batching import Batcher, Gather

REQUESTS = int(os.environ.get("ANTISPARSE_REQUESTS", "10000")) // 5
STRANGE: list[Any] = [None, True, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, 1e308, 5e-324, "", "x", "\0"]
STRANGE += [
    "\ud800",
    "a" * 3000,
    "half > 2",
    "half > 1e999",
    "half in ()",
    "(" * 2000,
    "not " * 3000 + "true",
    "key like '%'",
]
STRANGE += [[], {}, [[]], [[[1]]], [None], [{}], ["a", "b"], {"a": 1}, [1e308] * 10, [0] * 10, list(range(10)), "NaN"]
FIELDS = ("k", "probes", "method", "filter", "items", "shortlist", "radius", "ids", "vectors", "vector", "text", "size")


def mutated(body: Any, random: np.random.Generator) -> Any:
    """A body some of whose values are others, gone, or there twice."""
    body = copy.deepcopy(body)
    for _ in range(random.integers(4)):
        place, name, node = None, None, body
        while isinstance(node, dict | list) and node and (place is None or random.random() < 0.7):
            place, name = node, random.choice(list(node)) if isinstance(node, dict) else int(random.integers(len(node)))
            node = place[name]
        strange, what = copy.deepcopy(STRANGE[random.integers(len(STRANGE))]), random.integers(4)
        if place is None or what == 0:
            body[FIELDS[random.integers(len(FIELDS))]] = strange
        elif what == 1:
            del place[name]
        elif what == 2 and isinstance(place, list):
            place.insert(name, copy.deepcopy(node))
        else:
            place[name] = strange
    return body


def test_whatever_the_routes_are_sent(tmp_path: Path, serving: Any) -> None:
    """None is an error of the server, and the index is whole afterwards."""
    model, random, q = Model("signs", keeps="text"), np.random.default_rng(0), POOL[0].tolist()
    with model.create(tmp_path / "index") as index:
        model.add(index, POOL)
        row = index.items([0]).to_pylist()[0]
    goods: list[tuple[str, dict[str, Any]]] = [
        ("/search", {"vector": q, "k": 3, "filter": "half > 2", "probes": "all", "items": True}),
        ("/search", {"vectors": [q, q], "k": 3, "filter": [1, 2, row["key"]], "method": "asymmetric"}),
        ("/search", {"vector": q, "k": 5, "shortlist": 20}),
        ("/range", {"vectors": [q], "radius": 3.0, "method": "hamming"}),
        ("/add", {"vectors": [q], "items": [row | {"key": "new"}]}),
        ("/add", {"vectors": [q, q], "ids": [5000, 5001], "items": [row | {"key": "one"}, row | {"key": "two"}]}),
        ("/update", {"vectors": [q], "ids": [row["key"]]}),
        ("/update", {"vectors": [q], "items": [row]}),
        ("/remove", {"ids": ["new"]}),
        ("/remove", {"ids": ["one", "two"]}),
        ("/explore", {"id": "3", "k": 5}),
        ("/explore", {"vector": q}),
    ]
    statuses: dict[str, set[int]] = {}
    with (
        serving(tmp_path / "index", "--quiet", "--write", "--body-bytes", "300000") as served,
        httpx.Client(base_url=served.url, timeout=60) as client,
    ):
        about = client.get("/openapi.json").json()["paths"]
        for turn in range(REQUESTS):
            if turn % 10 == 0:
                name = "".join(f"%{byte:02x}" for byte in random.integers(256, size=random.integers(1, 12)))
                route, answer = "/items/", client.get(f"/items/{name}")
            elif turn % 10 == 1:
                asked = {name: str(STRANGE[random.integers(10)]) for name in random.choice(["words", "most", "any"], 2)}
                route, answer = "/explore/items", client.get("/explore/items", params=asked)
            else:
                route, good = goods[random.integers(len(goods))]
                said = json.dumps(mutated(good, random)).encode()
                answer = client.post(route, content=said, headers={"content-type": "application/json"})
            statuses.setdefault(route, set()).add(answer.status_code)
            assert answer.status_code in (200, 400, 404), (turn, route, answer.request.content[:500], answer.text)
            assert answer.status_code == 200 or set(answer.json()) == {"error"}
            if answer.status_code == 200 and route != "/items/":
                promised = about[route]["get" if route == "/explore/items" else "post"]["responses"]["200"]
                wanted = promised["content"]["application/json"]
                assert set(wanted["schema"]["required"]) <= set(answer.json()) == set(wanted["example"]), route
        assert served.process.poll() is None
        assert not [line for line in served.said if "Traceback" in line]
    found = {route: found for route, found in statuses.items() if route != "/items/"}
    assert len(found) == 7 and all(found[route] >= {200, 400} for route in found)
    with Index.open(tmp_path / "index", verify=True) as index:
        assert len(index.items(index.ids)) == len(index)


def test_an_index_that_another_takes_the_place_of(tmp_path: Path, serving: Any) -> None:
    """A folder that is renamed into its place, under load: every answer is of the one or the other."""
    X, place, random = zoo.vectors(200, 1), tmp_path / "index", np.random.default_rng(0)
    known, answers, refused = set(), [], []

    def made(path: Path, name: str) -> str:
        with Index.create(path, zoo.codec(name)) as index:
            index.add(random.permutation(X)[: random.integers(50, len(X))])
            rows = zip(*index.search(X[:7], 10), strict=True)
        known.add(said := json.dumps([{"ids": ids.tolist(), "distances": d.tolist()} for d, ids in rows]))
        return said

    first = made(place, "signs")
    with serving(place, "--quiet", "--follow", "0.02") as served:
        stop = threading.Event()

        def answered(wanted: str) -> None:
            deadline = time.monotonic() + 30
            while wanted not in answers[-9:]:
                assert time.monotonic() < deadline
                time.sleep(0.01)

        def ask() -> None:
            with httpx.Client(base_url=served.url, timeout=60) as client:
                while not stop.is_set():
                    answer = client.post("/search", json={"vectors": X[:7].tolist()})
                    if answer.status_code == 200:
                        answers.append(json.dumps(answer.json()["results"]))
                    else:
                        refused.append(answer.text)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            answered(first)
            for turn, name in enumerate(("codebooks", "signs cells scale", "spread", "levels", "signs")):
                wanted = made(tmp_path / "new", name)
                os.rename(place, tmp_path / f"old{turn}")
                os.rename(tmp_path / "new", place)
                if turn % 2:
                    shutil.rmtree(tmp_path / f"old{turn}")
                answered(wanted)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert not refused and set(answers) == known


def test_searches_of_other_dimensions_share_no_scan() -> None:
    """Those that were meant for the index before and those for the one that took its place."""

    async def search(gather: Gather, what: Any) -> Any:
        Q = gather()
        return Q.shape, Q[:, 0], Q[:, 1]

    async def ask() -> Any:
        batcher = Batcher(0.01, lambda: True, search)
        return await asyncio.gather(*(batcher.ask(np.full((2, width), width), "what") for width in (3, 4, 3)))

    for width, (shape, first, second) in zip((3, 4, 3), asyncio.run(ask()), strict=True):
        assert shape == ((4, 3) if width == 3 else (2, 4))
        assert first.tolist() == second.tolist() == [width] * 2
