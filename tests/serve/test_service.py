"""The service as people have it: what is there, who may ask, items, where it listens."""

import hmac
import json
import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from asked import GOOD, filled, npy, same
from models import POOL, QUERIES
from running import Running, until

from antisparse import Index, InputError, StorageError, UnsupportedError
from antisparse.cli import main
from antisparse.client import Client
from antisparse.errors import FormatError
from antisparse.serve import Limits, Tokens
from antisparse.serve.bodies import ARROW, NPY

READ, WRITE = "read-token-0123456789", "write-token-0123456789"


def test_one_query_ranges_items_and_what_there_is(served: Running, index: Index) -> None:
    q = QUERIES[0]
    same(served.post("/search", json={"vector": q.tolist(), "k": 4}), *index.search(q, 4), index)
    found = served.post("/search", json={"vector": q.tolist(), "k": 4, "items": True}).json()["results"][0]
    assert found["items"] == index.items(index.search(q, 4)[1]).to_pylist()
    limits, distances, ids = index.range_search(QUERIES, 3.0)
    for body, headers in (
        ({"json": {"vectors": QUERIES.tolist(), "radius": 3.0}}, {}),
        ({"content": npy(QUERIES), "params": {"radius": 3.0}}, {"content-type": NPY}),
    ):
        said = served.post("/range", headers=headers, **body).json()["results"]
        for number, result in enumerate(said):
            part = slice(limits[number], limits[number + 1])
            assert result["ids"] == ids[part].tolist() and result["distances"] == distances[part].tolist()
    table = pa.ipc.open_stream(
        served.post(
            "/search", json={"vectors": QUERIES.tolist(), "k": 3, "items": True}, headers={"accept": ARROW}
        ).content
    ).read_all()
    expected = index.search(QUERIES, 3, items=True)
    assert table.to_pydict() == expected.to_pydict()
    key = index.items([7]).column("key").to_pylist()[0]
    assert served.get(f"/items/{key}").json()["item"] == index.items([7]).to_pylist()[0]
    assert served.get("/items/none").status_code == 404
    info = served.get("/info").json()
    assert info["vectors"] == len(index) and info["dimensions"] == 10 and not info["write"]
    assert served.get("/healthz").json() == {"status": "ok"} and served.get("/readyz").status_code == 200
    queries = served.metric("antisparse_queries_total")
    served.post("/search", content=npy(QUERIES), headers={"content-type": NPY})
    assert served.metric("antisparse_queries_total") == queries + len(QUERIES)
    assert served.metric("antisparse_index_generation") == index.snapshot.manifest.generation
    for path in ("/add", "/remove", "/update"):
        refused = served.post(path, json={})
        assert refused.status_code == 403 and "start it with --write" in refused.text
    assert served.post("/nowhere").status_code == 404
    assert served.metric('antisparse_requests_total{route="unknown",status="404"}') >= 1
    about = served.get("/openapi.json").json()
    assert {"/search", "/range", "/items/{key}", "/info", "/metrics", "/healthz", "/readyz"} <= set(about["paths"])


def test_tokens(place: Path, tmp_path: Path, serving: Any) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who\nread {READ}\nwrite {WRITE}\n")
    model = filled(tmp_path / "index", None)
    with serving(tmp_path / "index", "--token-file", str(file), "--write") as served:
        for header, status in ((None, 401), ("Bearer nothing", 401), (f"Basic {READ}", 401), (f"Bearer {READ}", 200)):
            headers = {} if header is None else {"authorization": header}
            assert served.post("/search", json=GOOD, headers=headers).status_code == status
            assert served.get("/metrics", headers=headers).status_code == status
        nearly = [READ[:-1], WRITE[:-1], READ + "x", READ.upper(), READ[1:], f"{READ},{WRITE}", "\xe9" * 20]
        for wrong in nearly:
            header = {"authorization": f"Bearer {wrong}".encode()}
            for path in ("/search", "/add", "/remove", "/update", "/explore"):
                assert served.post(path, json={}, headers=header).status_code == 401, wrong
        assert served.post("/search", json=GOOD, headers={"authorization": f"bearer {WRITE}"}).status_code == 200
        body = {"vectors": POOL[:2].tolist()}
        assert served.post("/add", json=body, headers={"authorization": f"Bearer {READ}"}).status_code == 403
        assert served.post("/add", json=body).status_code == 401
        with Client(served.url, WRITE) as client:
            ids = client.add(POOL[:2])
            assert ids.tolist() == [150, 151] and len(client) == 150
            client.update(POOL[3:5], ids)
            client.remove([150])
            model.put(model.encode(POOL[4:5]), [151])
            for one, other in zip(client.search(QUERIES, 7), model.search(QUERIES, 7), strict=True):
                np.testing.assert_array_equal(one, other)
            with pytest.raises(InputError, match=r"id 999 is not in the index \(400\)"):
                client.remove([999])
            with pytest.raises(UnsupportedError, match="keeps no items"):
                client.item(3)
        with Client(served.url) as client, pytest.raises(InputError, match=r"no token was sent .* \(401\)"):
            client.search(QUERIES)
        with Client(served.url, "none") as client, pytest.raises(InputError, match="the token is none that is known"):
            client.search(QUERIES)
        assert served.get("/healthz").status_code == 200
        named = [served.get(path).headers["x-request-id"] for path in ("/nowhere", "/info", "/healthz")]
        assert served.get("/search").status_code == 405
        until(lambda: '"status": 405' in "\n".join(served.said))
        lines = [json.loads(line) for line in served.said if line.startswith("{")]
        assert all(set(line) == {"request", "route", "status", "ms"} for line in lines)
        said = {line["request"]: (line["route"], line["status"]) for line in lines}
        assert [said[name] for name in named] == [("unknown", 404), ("/info", 401), ("/healthz", 200)]
        assert len(served.said) == len(lines) + 2  # nothing else, but what it serves and where
        assert READ not in "\n".join(served.said) and WRITE not in "\n".join(served.said)
    with Index.open(tmp_path / "index", verify=True) as index:
        np.testing.assert_array_equal(index.ids, model.ids)


def test_every_token_is_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of one is right, and whichever it is: the time tells nothing."""
    tokens, compared = Tokens((READ, READ + "2"), (WRITE,)), []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append((one, other)) or compare(one, other))
    for given, allowed in ((READ, True), (WRITE, True), ("x", None), (WRITE[:-1], None)):
        compared.clear()
        assert tokens.allow(f"Bearer {given}", "read") is allowed
        assert sorted(compared) == sorted((given.encode(), one.encode()) for one in (READ, READ + "2", WRITE))
    assert tokens.allow(f"Bearer {READ}", "write") is False


def test_items_are_added_and_replaced(tmp_path: Path, serving: Any) -> None:
    model = filled(tmp_path / "index")
    row = {"key": "new", "code": "x", "half": None, "tags": ["a", None]}
    with serving(tmp_path / "index", "--write", "--quiet") as served, Client(served.url) as client:
        client.add(POOL[:1], items=[row])
        assert client.item("new") == row
        client.update(POOL[1:2], items=[row | {"half": 3.5}])
        assert client.item("new")["half"] == 3.5
        (found,) = client.search(POOL[1], 1, items=True, filter="key = 'new'")
        assert found.pop("distance") >= 0 and found == row | {"half": 3.5}
        for items, message in (
            ([row | {"half": "x"}], "items, 'half'"),
            ([row | {"other": 3}], "items have 'other', which the index does not keep"),
            ([row], "is there already"),
            (None, "items is missing"),
        ):
            with pytest.raises(InputError, match=message):
                client.add(POOL[:1], items=items)
        client.remove(["new"])
        with pytest.raises(InputError, match=r"there is no such item \(404\)"):
            client.item("new")
        assert len(client) == len(model.rows)


def test_where_it_may_listen(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["serve", str(place), "--host", "0.0.0.0"]) == 2
    assert "--host = '0.0.0.0': whoever reaches it could ask; name a file of tokens" in capsys.readouterr().err
    assert main(["serve", str(place), "--k", "0"]) == 2 and "--k" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "none")]) == 2
    assert main(["serve", str(place), "--token-file", str(tmp_path / "none")]) in (1, 2)
    for text in ("", "read short", "other " + READ, "read", f"read {READ} more"):
        (tmp_path / "tokens").write_text(text)
        with pytest.raises(FormatError):
            Tokens.load(tmp_path / "tokens")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", str(place), "--port", str(taken.getsockname()[1])]) == 1
        assert "cannot listen there (Address already in use" in capsys.readouterr().err
    assert main(["serve", "s3://bucket/x", "--write"]) == 2
    assert "an index in an object store is read only" in capsys.readouterr().err


def test_limits_and_tokens_that_are_none() -> None:
    for wrong in ({"k": 0}, {"body_bytes": -1}, {"seconds": -1}, {"searches": 0}, {"waiting": -1}, {"batch_ms": "x"}):
        with pytest.raises((InputError, TypeError)):
            Limits(**wrong)
    with pytest.raises(InputError, match="at least 16 characters"):
        Tokens(read=("short",))
    assert not Tokens() and Tokens().allow(None, "write")
    assert READ not in repr(Tokens((READ,)))


def test_the_lines_of_the_page(served: Running, index: Index) -> None:
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {"Q": QUERIES}
    exec(block.replace("http://127.0.0.1:8000", served.url), namespace)
    np.testing.assert_array_equal(namespace["ids"], index.search(QUERIES, 10)[1])


def test_a_client_of_nothing() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(StorageError, match="did not answer"):
        client.info()
    with pytest.raises(InputError, match="must begin with http"):
        Client("127.0.0.1:8000")
