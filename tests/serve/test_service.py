"""The service, a real one on loopback: equal to the library, and unmoved by whatever it is sent."""

import io
import json
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import POOL, QUERIES, Model, searches
from running import Running

from antisparse import Index, InputError, StorageError, UnsupportedError
from antisparse.cli import main
from antisparse.client import Client
from antisparse.errors import FormatError
from antisparse.serve import Limits, Tokens
from antisparse.serve.bodies import ARROW, NPY

READ, WRITE = "read-token-0123456789", "write-token-0123456789"
NAME = "signs"


def filled(path: Path, keeps: str | None = "text", name: str = NAME) -> Model:
    model = Model(name, keeps=keeps)
    with model.create(path) as index:
        model.add(index, POOL[:100])
        model.add(index, POOL[100:])
        model.remove(index, [5, 120])
    return model


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


def npy(X: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


def arrow(X: np.ndarray) -> bytes:
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def same(answer: httpx.Response, distances: np.ndarray, ids: np.ndarray, index: Index) -> None:
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["generation"] == index.snapshot.manifest.generation
    for result, d, i in zip(said["results"], np.atleast_2d(distances), np.atleast_2d(ids), strict=True):
        assert result["ids"] == i[i >= 0].tolist() and result["distances"] == d[i >= 0].tolist()
        assert result["keys"] == index.items(i[i >= 0]).column("key").to_pylist()


FILTERS = st.one_of(
    st.none(),
    st.sampled_from(["half > 20", "half is null or half < 3", "key = 'none'"]),
    st.lists(st.integers(0, 200), max_size=30),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.integers(0, len(POOL) - 1), min_size=1, max_size=6),
    k=st.integers(1, 200),
    way=st.sampled_from(searches(NAME)),
    allowed=FILTERS,
    kind=st.sampled_from(("json", "npy", "npy64", "arrow")),
)
def test_searches_are_those_of_the_library(
    served: Running, index: Index, rows: list[int], k: int, way: dict, allowed: Any, kind: str
) -> None:
    Q = (POOL[rows] + 0.01).astype(np.float32 if kind == "npy" else np.float64)
    asked = {"k": k, **{name: value for name, value in way.items() if name != "shortlist_method"}}
    if "shortlist_method" in way:
        return
    expected = index.search(Q, k, filter=allowed if not isinstance(allowed, list) else np.array(allowed, int), **way)
    if kind == "json" or isinstance(allowed, list):
        body = {"vectors": Q.tolist(), **asked, "filter": allowed}
        expected = index.search(
            np.asarray(Q, float), k, filter=np.array(allowed, int) if isinstance(allowed, list) else allowed, **way
        )
        answer = served.post("/search", json=body)
    else:
        asked |= {} if allowed is None else {"filter": allowed}
        body, media = (arrow(Q), ARROW) if kind == "arrow" else (npy(Q), NPY)
        answer = served.post("/search", params=asked, content=body, headers={"content-type": media})
    same(answer, *expected, index)


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


PICKLED = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
PICKLED += b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n" + b"\x80\x04K\x01."
GOOD = {"vector": QUERIES[0].tolist()}
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


FUZZ = int(os.environ.get("ANTISPARSE_REQUESTS", "10000"))


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


def test_tokens(place: Path, tmp_path: Path, serving: Any) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who\nread {READ}\nwrite {WRITE}\n")
    model = filled(tmp_path / "index", None)
    with serving(tmp_path / "index", "--token-file", str(file), "--write") as served:
        for header, status in ((None, 401), ("Bearer nothing", 401), (f"Basic {READ}", 401), (f"Bearer {READ}", 200)):
            headers = {} if header is None else {"authorization": header}
            assert served.post("/search", json=GOOD, headers=headers).status_code == status
            assert served.get("/metrics", headers=headers).status_code == status
        body = {"vectors": POOL[:2].tolist()}
        assert served.post("/add", json=body, headers={"authorization": f"Bearer {READ}"}).status_code == 403
        assert served.post("/add", json=body).status_code == 401
        with Client(served.url, WRITE) as client:
            ids = client.add(POOL[:2])
            assert ids.tolist() == [150, 151] and len(client) == 150
            client.update(POOL[3:5], ids)
            client.remove([150])
            model.put(model.encode(POOL[4:5]), [151])
            for way in searches(NAME):
                if "shortlist_method" not in way:
                    for one, other in zip(
                        client.search(QUERIES, 7, **way), model.search(QUERIES, 7, **way), strict=True
                    ):
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
        lines = [json.loads(line) for line in served.said if line.startswith("{")]
        assert lines and all(set(line) == {"request", "route", "status", "ms"} for line in lines)
        assert READ not in "\n".join(served.said) and WRITE not in "\n".join(served.said)
    with Index.open(tmp_path / "index", verify=True) as index:
        np.testing.assert_array_equal(index.ids, model.ids)


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


def test_a_request_that_takes_too_long(place: Path, serving: Any) -> None:
    with serving(place, "--quiet", "--seconds", "0.3") as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as one:
            one.settimeout(20)
            one.sendall(b"POST /search HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            assert b"503" in one.recv(1000)
        assert served.post("/search", json=GOOD).status_code == 200


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


def test_the_client_answers_as_the_index_does(served: Running, index: Index) -> None:
    with Client(served.url) as client:
        mask = np.arange(150) < 50
        for allowed in (mask, np.flatnonzero(mask), set(range(50)), "half > 20", None):
            for one, other in zip(
                client.search(QUERIES, 5, filter=allowed), index.search(QUERIES, 5, filter=allowed), strict=True
            ):
                np.testing.assert_array_equal(one, other)
        for one, other in zip(client.range_search(QUERIES, 3.0), index.range_search(QUERIES, 3.0), strict=True):
            np.testing.assert_array_equal(one, other)
