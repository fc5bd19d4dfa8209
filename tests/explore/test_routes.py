"""What the page asks of a service: equal to the library, and refused in one shape where it cannot be."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explored_texts import KEYS, TEXTS, VECTORS
from running import Running, service

from antisparse import Index
from antisparse.datasets import write_vectors
from antisparse.explore import Explorer
from antisparse.explore.explorer import METHODS

READ = "read-token-0123456789"


@pytest.fixture(scope="module")
def place(explorer: Explorer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routes")
    explorer.index.save(folder / "index")
    write_vectors(folder / "X.npy", VECTORS)
    return folder


@pytest.fixture(scope="module")
def served(place: Path):
    options = ("--quiet", "--vectors", str(place / "X.npy"), "--bytes", "3,10", "--body-bytes", "20000")
    with service(place / "index", *options) as running:
        yield running


def test_answers_are_those_of_the_library(served: Running, explorer: Explorer) -> None:
    for i in range(0, len(TEXTS), 31):
        for size, n_bytes in ((0, 3), (1, 6)):
            said = served.post("/explore", json={"id": str(i), "size": n_bytes}).json()
            asked = explorer.items(np.array([i]))
            for method in METHODS:
                column = explorer.column(size, method, asked, 10)
                assert said["columns"][method]["ids"] == [str(one) for one in column.ids[0]]
                assert said["columns"][method]["distances"] == column.distances[0].tolist()
            exact = explorer.exact(asked, 10)
            assert said["columns"]["exact"]["distances"] == exact.distances[0].tolist()
            code = explorer.sizes[size].codec.encode(VECTORS[i : i + 1])
            assert said["query"]["code"] == code.tobytes().hex()
            assert said["query"]["rebuilt"] == explorer.sizes[size].codec.decode(code)[0].tolist()
            for one, item in said["items"].items():
                assert item["key"] == KEYS[int(one)]
                assert item["code"] == explorer.sizes[size].codes([int(one)]).tobytes().hex()


def test_what_the_index_is(served: Running) -> None:
    said = served.get("/explore").json()
    assert [size["bytes"] for size in said["sizes"]] == [3, 6, 10] and said["exact"] and not said["model"]
    assert said["asked"] == len(TEXTS) and said["dimensions"] == 24 and said["name"] == "index"
    found = served.get("/explore/items", params={"words": "river 14", "most": 3}).json()["items"]
    assert found and all("river" in one["text"] and "14" in one["key"] + one["text"] for one in found)
    (one,) = served.get("/explore/items", params={"any": "true"}).json()["items"]
    assert KEYS[int(one["id"])] == one["key"]


def test_the_page_has_a_policy_and_no_secret(served: Running) -> None:
    answer = served.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert (
        answer.headers["content-type"].startswith("text/html") and answer.headers["x-content-type-options"] == "nosniff"
    )
    assert not any(text in answer.text for text in TEXTS)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "give one of id, text and vector"),
        ({"id": "1", "text": "x"}, "give one of"),
        ({"id": "9999"}, "id 9999 is not in the index"),
        ({"id": "-1"}, "id"),
        ({"id": 1}, "id"),
        ({"id": "9" * 40}, "id"),
        ({"vector": [1, 2]}, "vector has 2 columns"),
        ({"vector": []}, "vector has 0 columns"),
        ({"vector": [0.0] * 24}, "vector row 0 is zero"),
        ({"vector": [1e300] * 24, "k": 3}, ""),
        ({"text": "no model"}, "holds text"),
        ({"id": "1", "size": 5}, "size = 5, but there are codes of"),
        ({"id": "1", "k": 0}, "k"),
        ({"id": "1", "k": 10**9}, "k"),
        ({"id": "1", "more": 1}, "'more' is none of the fields"),
    ],
)
def test_what_cannot_be_asked_is_refused(served: Running, body: dict[str, Any], said: str) -> None:
    answer = served.post("/explore", json=body)
    if said:
        assert answer.status_code == 400 and said in answer.json()["error"]["message"]
    assert answer.status_code in (200, 400)


def test_items_and_bodies_that_are_none(served: Running) -> None:
    for query in ({"most": 0}, {"most": 101}, {"words": "x" * 1001}, {"any": "maybe"}, {"else": 1}):
        assert served.get("/explore/items", params=query).status_code == 400
    assert served.post("/explore", content=b"{" * 5000).status_code == 400
    assert served.post("/explore", content=b"1" * 20_001).status_code == 413
    assert served.get("/healthz").status_code == 200


def test_a_token_is_needed_for_all_but_the_page(place: Path) -> None:
    (place / "tokens").write_text(f"read {READ}\n")
    with service(place / "index", "--quiet", "--token-file", str(place / "tokens")) as running:
        assert running.get("/").status_code == 200
        for path in ("/explore", "/explore/items"):
            assert running.get(path).status_code == 401
            assert running.get(path, headers={"authorization": f"Bearer {READ}"}).status_code == 200
        assert running.post("/explore", json={"id": "1"}).status_code == 401
        said = running.get("/explore", headers={"authorization": f"Bearer {READ}"}).json()
        assert not said["exact"] and said["sizes"][0]["recall"] == dict.fromkeys(METHODS)


def test_changes_are_seen_and_other_sizes_are_of_the_past(place: Path, tmp_path: Path) -> None:
    with Index.open(place / "index", read_only=True) as index:
        index.save(tmp_path / "index")
    options = ("--quiet", "--write", "--vectors", str(place / "X.npy"), "--bytes", "3")
    with service(tmp_path / "index", *options) as running:
        assert len(running.get("/explore").json()["sizes"]) == 2
        before = running.post("/explore", json={"id": "5"}).json()["columns"]["exact"]["ids"]
        assert running.post("/remove", json={"ids": [KEYS[int(before[0])]]}).status_code == 200
        said = running.get("/explore").json()
        assert len(said["sizes"]) == 1 and said["vectors"] == len(TEXTS) - 1
        after = running.post("/explore", json={"id": "5"}).json()["columns"]["exact"]["ids"]
        assert before[0] not in after and after[:9] == before[1:]
        assert running.post("/explore", json={"id": "5", "size": 3}).status_code == 400
        vector = (VECTORS[5] + 0.01).tolist()
        item = {"name": "new", "title": "a new <b>title</b>"}
        assert running.post("/add", json={"vectors": [vector], "items": [item]}).status_code == 200
        (found,) = running.get("/explore/items", params={"words": "new title"}).json()["items"]
        said = running.post("/explore", json={"id": found["id"]}).json()
        assert "added after" in said["columns"]["exact"]["why"] and said["query"]["original"] is None
