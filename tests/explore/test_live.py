"""A service that is explored while its index changes, or is large, or oddly named: what it shows stays true."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
import zoo
from in_thread import answering

from antisparse import Index
from antisparse.explore import Originals, other_sizes
from antisparse.explore.explorer import METHODS
from antisparse.index.items import Items
from antisparse.serve import create_app
from antisparse.serve import explorer as serving
from antisparse.serve.bodies import ItemsAsked
from antisparse.serve.service import Present

X = zoo.vectors(60, 1)


@contextmanager
def explored(index: Index, **options: Any) -> Iterator[httpx.Client]:
    with answering(create_app(index, **options)) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture(params=["on the disk", "in memory"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    path = tmp_path / "index" if request.param == "on the disk" else None
    with Index.create(path, zoo.codec("signs")) as made:
        made.add(X)
        yield made


def asked(client: httpx.Client, number: int) -> dict[str, Any]:
    answer = client.post("/explore", json={"id": str(number)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_was_changed_has_no_original(index: Index) -> None:
    with explored(index, write=True, originals=Originals.of(index, X)) as client:
        assert asked(client, 1)["query"]["original"] == X[1].tolist()
        assert client.post("/update", json={"vectors": [X[7].tolist()], "ids": [1]}).status_code == 200
        assert client.post("/remove", json={"ids": [2, 3]}).status_code == 200
        again = {"vectors": [X[9].tolist(), X[3].tolist()], "ids": [2, 3]}  # one is another, and one what it was
        assert client.post("/add", json=again).status_code == 200
        for number in (1, 2):
            said = asked(client, number)
            assert "changed" in said["columns"]["exact"]["why"] and said["query"]["original"] is None
        assert asked(client, 3)["query"]["original"] == X[3].tolist()
        order = np.argsort(((X - X[7]) ** 2).sum(axis=1), kind="stable")
        exact = asked(client, 7)["columns"]["exact"]["ids"]
        assert exact == [str(i) for i in order if i not in (1, 2, 7)][:10]


def test_nothing_is_measured_when_all_that_had_originals_are_gone(index: Index) -> None:
    with explored(index, write=True, originals=Originals.of(index, X)) as client:
        assert client.get("/explore").json()["asked"] == len(X)
        client.post("/add", json={"vectors": (X[:5] + 0.25).tolist()})
        client.post("/remove", json={"ids": list(range(len(X)))})
        said = client.get("/explore")
        assert said.status_code == 200 and said.json()["asked"] == 0 and said.json()["vectors"] == 5
        assert said.json()["sizes"][0]["recall"] == dict.fromkeys(METHODS)


def test_what_is_kept_is_that_of_the_present_index(index: Index) -> None:
    originals = Originals.of(index, X)
    with explored(index, write=True, originals=originals, others=other_sizes(index, originals, [3])) as client:
        assert len(client.get("/explore").json()["sizes"]) == 2
        assert client.get("/explore/items", params={"words": "61"}).json()["items"] == []
        client.post("/add", json={"vectors": X[:2].tolist()})
        said = client.get("/explore").json()
        assert said["vectors"] == 62 and len(said["sizes"]) == 1
        assert [one["id"] for one in client.get("/explore/items", params={"words": "61"}).json()["items"]] == ["61"]


def test_a_reader_that_looks_again_keeps_what_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.create(tmp_path / "index", zoo.codec("signs")) as made:
        made.add(X)
    calls = []
    monkeypatch.setattr(serving, "measured", lambda explorer: calls.append(1) or (0, [{}]))
    with Index.open(tmp_path / "index", read_only=True) as index, explored(index) as client:
        client.get("/explore")
        index.refresh()
        client.get("/explore")
    assert len(calls) == 1


def test_only_what_is_shown_is_read_and_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2500
    lists = pa.FixedSizeListArray.from_arrays(pa.array(zoo.vectors(count, 2).reshape(-1)), 10)
    columns = {"title": [f"title {i}" for i in range(count)], "large": ["x" * 50] * count}
    table = pa.table({"name": [f"k{i}" for i in range(count)], **columns, "vector": lists})
    index = Index.build(table, 4, vector="vector", key="name", columns=["title", "large"], effort=1, random_state=0)
    read: list[tuple[int, Any]] = []
    take = Items.take

    def counting(self: Items, rows: Any, names: Any = None) -> Any:
        read.append((len(rows), names))
        return take(self, rows, names)

    monkeypatch.setattr(Items, "take", counting)
    with explored(index) as client:
        found = client.get("/explore/items", params={"words": "title 2499"}).json()["items"]
    assert found == [{"id": "2499", "key": "k2499", "text": "title 2499"}]
    assert max(rows for rows, _ in read) <= 1000 and sum(rows for rows, _ in read) == count
    assert all(set(names) == {"name", "title"} for _, names in read)


def test_who_asks_at_once_waits_for_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.create(None, zoo.codec("signs"))
    index.add(X)
    service: Any = SimpleNamespace(present=Present(index._state, None, 1))
    shown = serving.Explored(service, None, (), "name")
    calls = []

    def slow(*given: Any) -> list[Any]:
        calls.append(given)
        time.sleep(0.1)
        return []

    monkeypatch.setattr(serving, "labels", slow)
    threads = [threading.Thread(target=shown.items, args=(ItemsAsked(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_ids_of_63_bits(index: Index) -> None:
    largest = 2**63 - 2
    index.add(X[:1], [largest])
    with explored(index) as client:
        assert asked(client, largest)["query"]["id"] == str(largest)
        for number in (largest + 1, 2**63, 2**64, 10**19 - 1):
            answer = client.post("/explore", json={"id": str(number)})
            assert answer.status_code == 400 and "id" in answer.json()["error"]["message"]


def test_a_name_that_is_not_utf8(index: Index) -> None:
    with explored(index, name="a\udcff") as client:
        answer = client.get("/explore")
        assert answer.status_code == 200 and answer.json()["name"] == "a?"
