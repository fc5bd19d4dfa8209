"""Whatever is asked over HTTP, in whatever form, the answer is the library's, to the last bit."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from asked import arrow, filled, npy, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_thread import answering
from letters import TITLES, Letters
from models import POOL, QUERIES, Model, check_holds, key_of, searches
from running import Running, service

from antisparse import Index, InputError
from antisparse.client import Client
from antisparse.serve import create_app
from antisparse.serve.bodies import ARROW, JSON, NPY

# Text keys, ids that are keys, no items; signs and cells, whose searches differ.
KINDS = {"text": "signs", "integer": "signs cells scale", "none": "codebooks cells nibble"}
Shape = dict[str, Any]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Running, Index]]]:
    """A service of every kind, and the index that the library sees."""
    running, folder = [], tmp_path_factory.mktemp("equal")
    found: dict[str, tuple[Running, Index]] = {}
    try:
        for keeps, name in KINDS.items():
            filled(folder / keeps, None if keeps == "none" else keeps, name)
            running.append(service(folder / keeps, "--quiet"))
            found[keeps] = running[-1].__enter__(), Index.open(folder / keeps, read_only=True, n_threads=1)
        yield found
    finally:
        for one in running:
            one.__exit__(*sys.exc_info())


VECTORS = st.lists(st.integers(0, len(POOL) - 1), min_size=1, max_size=6)
FORMS = st.sampled_from(("json", "one", "<f4", "<f8", ">f8", "fortran", "arrow", "arrow f4"))
FILTERS = st.one_of(
    st.none(),
    st.just([]),
    st.lists(st.integers(0, 200), min_size=1, max_size=30),
    st.sampled_from(["half > 20", "half is null or half < 3", "half > 1000", "code like '%a%'"]),
)
EXAMPLES = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def asking(served: Running, route: str, rows: list[int], form: str, asked: Shape, accept: str = JSON) -> Any:
    """The answer to some queries in some form, and the queries as they were read there."""
    Q = POOL[rows] + 0.01
    if form == "one" or isinstance(asked.get("filter"), list):  # a list has no place in an address
        body = {"vector": Q[0].tolist()} if form == "one" else {"vectors": Q.tolist()}
        return served.post(route, json=body | asked, headers={"accept": accept}), Q[: 1 if form == "one" else len(Q)]
    if form == "json":
        return served.post(route, json={"vectors": Q.tolist()} | asked, headers={"accept": accept}), Q
    if form.startswith("arrow"):
        Q = Q.astype(np.float32) if form == "arrow f4" else Q
        content, kind = arrow(Q), ARROW
    else:
        Q = np.asfortranarray(Q) if form == "fortran" else Q.astype(form)
        content, kind = npy(Q), NPY
    headers = {"content-type": kind, "accept": accept}
    return served.post(route, params=asked, content=content, headers=headers), np.ascontiguousarray(
        Q, Q.dtype.newbyteorder("=")
    )


def allowed_in(keeps: str, wanted: Any) -> Any:
    """A filter that this index can have: keys where it has such, and no expression where it keeps nothing."""
    if isinstance(wanted, str):
        return wanted if keeps != "none" else None
    return [key_of(i) for i in wanted] if wanted is not None and keeps == "text" else wanted


def given_to(index: Index, allowed: Any) -> Any:
    """The same filter for the library."""
    return np.array(allowed, np.int64) if isinstance(allowed, list) and not any(map(_text, allowed)) else allowed


def _text(value: object) -> bool:
    return isinstance(value, str)


@EXAMPLES
@given(
    keeps=st.sampled_from(list(KINDS)),
    rows=VECTORS,
    k=st.integers(1, 200),
    way=st.integers(0, 10),
    probes=st.sampled_from(("all", 1, 2, 50)),
    wanted=FILTERS,
    form=FORMS,
    items=st.booleans(),
    in_arrow=st.booleans(),
)
def test_searches(
    places: Any,
    keeps: str,
    rows: list[int],
    k: int,
    way: int,
    probes: Any,
    wanted: Any,
    form: str,
    items: bool,
    in_arrow: bool,
) -> None:
    served, index = places[keeps]
    ways = searches(KINDS[keeps])
    asked = {"k": k, "probes": probes, **ways[way % len(ways)]}
    if "shortlist" in asked:
        asked["shortlist"] = max(asked["shortlist"], k)
    allowed = allowed_in(keeps, wanted)
    said = asked | ({} if allowed is None else {"filter": allowed}) | ({"items": True} if items else {})
    answer, Q = asking(served, "/search", rows, form, said, ARROW if in_arrow else JSON)
    if items and keeps == "none":
        assert answer.status_code == 400 and "keeps no items" in answer.text
        return
    expected = index.search(Q, filter=given_to(index, allowed), **asked)
    if in_arrow:
        assert answer.status_code == 200
        table = pa.ipc.open_stream(answer.content).read_all()
        assert table.schema.metadata == {b"generation": str(index.snapshot.manifest.generation).encode()}
        if items:
            assert (
                table.to_pydict() == index.search(Q, filter=given_to(index, allowed), items=True, **asked).to_pydict()
            )
            return
        distances, ids = expected
        assert table.column("distance").to_pylist() == distances[ids >= 0].tolist()
        assert table.column("query").to_pylist() == np.nonzero(ids >= 0)[0].tolist()
        name = {"text": "key", "integer": "key", "none": "id"}[keeps]
        names = [key_of(i) for i in ids[ids >= 0]] if keeps == "text" else ids[ids >= 0].tolist()
        assert table.column(name).to_pylist() == names
        return
    same(answer, *expected, index)
    for result, ids in zip(answer.json()["results"], expected[1], strict=True):
        assert ("items" in result) == items
        if items:
            assert result["items"] == index.items(index_keys(keeps, ids[ids >= 0])).to_pylist()


def index_keys(keeps: str, ids: np.ndarray) -> Any:
    return [key_of(i) for i in ids] if keeps == "text" else ids


@EXAMPLES
@given(
    keeps=st.sampled_from(list(KINDS)),
    rows=VECTORS,
    far=st.integers(0, 140),
    way=st.integers(0, 10),
    probes=st.sampled_from(("all", 1, 50)),
    wanted=FILTERS,
    form=FORMS,
)
def test_ranges(
    places: Any, keeps: str, rows: list[int], far: int, way: int, probes: Any, wanted: Any, form: str
) -> None:
    served, index = places[keeps]
    ways = [one for one in searches(KINDS[keeps]) if "shortlist" not in one]
    asked = {"probes": probes, **ways[way % len(ways)]}
    radius = float(index.search(POOL[rows[0]], 148, **ways[way % len(ways)])[0][far])  # one that some are as near as
    allowed = allowed_in(keeps, wanted)
    said = asked | {"radius": radius} | ({} if allowed is None else {"filter": allowed})
    answer, Q = asking(served, "/range", rows, form, said)
    limits, distances, ids = index.range_search(Q, radius, filter=given_to(index, allowed), **asked)
    assert answer.status_code == 200
    for number, result in enumerate(answer.json()["results"]):
        part = slice(limits[number], limits[number + 1])
        assert result["ids"] == ids[part].tolist() and result["distances"] == distances[part].tolist()
    assert number + 2 == len(limits)


def test_every_item_and_what_is_said_of_the_index(places: Any) -> None:
    for keeps, (served, index) in places.items():
        info = served.get("/info").json()
        stats = index.stats()
        assert {name: info[name] for name in stats} == stats
        assert info["generation"] == index.snapshot.manifest.generation == served.get("/readyz").json()["generation"]
        client = httpx.Client(base_url=served.url, timeout=60)
        for i in range(len(POOL)):
            answer = client.get(f"/items/{key_of(i) if keeps == 'text' else i}")
            if keeps == "none":
                assert answer.status_code == 400 and "keeps no items" in answer.text
            elif i in (5, 120):
                assert answer.status_code == 404
            else:
                assert answer.json()["item"] == index.items(index_keys(keeps, np.array([i]))).to_pylist()[0]
        client.close()


@pytest.mark.parametrize("keeps", [None, "columns", "text", "integer"])
def test_changes(tmp_path: Path, keeps: str | None) -> None:
    """Random ones: the index holds what one holds to which the library did the same; so do all answers between them."""
    random, model = np.random.default_rng(0), Model("signs cells scale", keeps=keeps)
    model.create(tmp_path / "index").close()
    generations = []
    with service(tmp_path / "index", "--quiet", "--write") as served, Client(served.url) as client:
        for turn in range(30):
            deed = random.choice(["add", "add", "own", "update", "remove"]) if len(model.rows) else "add"
            X = POOL[random.integers(len(POOL), size=random.integers(1, 12))] + 0.01 * turn
            there = random.permutation(model.ids)[: len(X)]
            if deed == "own":
                free = np.setdiff1d(np.arange(1000), model.ids)
                ids = (
                    np.sort(random.choice(free, len(X), replace=False))
                    if keeps != "text"
                    else model.next_id + np.arange(len(X))
                )
            else:
                ids = model.next_id + np.arange(len(X)) if deed == "add" else there
            X = X[: len(ids)]
            codes = model.encode(X)
            body: Shape = {} if deed == "remove" else {"vectors": X.tolist()}
            if keeps is not None and deed != "remove":
                body["items"] = model.items(ids, codes).to_pylist()
            if deed == "remove":
                body["ids"] = list(model.given(ids)) if keeps == "text" else ids.tolist()
            elif keeps in (None, "columns") and deed != "add":
                body["ids"] = ids.tolist()
            answer = served.post({"own": "/add"}.get(deed, f"/{deed}"), json=body)
            assert answer.status_code == 200, (deed, answer.text)
            said = answer.json()
            generations.append(said["generation"])
            if deed == "remove":
                assert said["removed"] == len(ids)
                model.drop(ids)
            else:
                model.put(codes, ids)
                assert (said["updated"] == len(ids)) if deed == "update" else (said["ids"] == ids.tolist())
            if len(model.rows):
                for found, wanted in zip(client.search(QUERIES, 7), model.search(QUERIES, 7), strict=True):
                    np.testing.assert_array_equal(found, wanted)
            assert len(client) == len(model.rows)
    assert generations == sorted(set(generations))
    with Index.open(tmp_path / "index", verify=True) as index:
        check_holds(index, model)


def test_texts_where_there_is_a_model(tmp_path: Path) -> None:
    texts, vectors = TITLES[:80], Letters().encode(TITLES[:80])
    index = Index.build(vectors, 6, path=tmp_path / "index", symbols="signs", effort=1, random_state=0, model=Letters())
    asked = ["a mapped harbour", "leaving the desert", "", "ü \U0001f600 <b>"][:2]
    with index, answering(create_app(index)) as url, Client(url) as client, httpx.Client(base_url=url) as plain_client:
        for way in ({}, {"method": "hamming"}, {"shortlist": 20}, {"filter": np.arange(0, 80, 3)}):
            for found, wanted in zip(client.search(asked, 5, **way), index.search(asked, 5, **way), strict=True):
                np.testing.assert_array_equal(found, wanted)
            for found, wanted in zip(client.search(asked[0], 5, **way), index.search(asked[0], 5, **way), strict=True):
                np.testing.assert_array_equal(found, wanted)
        for found, wanted in zip(client.range_search(asked, 0.9), index.range_search(asked, 0.9), strict=True):
            np.testing.assert_array_equal(found, wanted)
        one = plain_client.post("/search", json={"text": asked[1], "k": 3}).json()["results"]
        assert [result["ids"] for result in one] == [index.search(asked[1], 3)[1].tolist()]
        assert (
            plain_client.post("/search", json={"texts": texts * 20}).status_code == 400
        )  # more than a request may have


def test_the_client(places: Any) -> None:
    for keeps, (served, index) in places.items():
        with Client(served.url) as client:
            mask = np.arange(150) < 50
            filters: list[Any] = [mask, np.flatnonzero(mask), set(range(50)), None]
            if keeps == "text":
                filters = ["half > 20", [key_of(i) for i in range(50)], mask, None]
            for way in searches(KINDS[keeps]):
                for allowed in filters:
                    for Q in (QUERIES, QUERIES[0], QUERIES.astype(np.float32)):
                        found, wanted = (
                            client.search(Q, 5, filter=allowed, **way),
                            index.search(Q, 5, filter=allowed, **way),
                        )
                        for one, other in zip(found, wanted, strict=True):
                            np.testing.assert_array_equal(one, other)
                            assert one.dtype == other.dtype and one.shape == other.shape
            for allowed in filters:
                found, wanted = (one.range_search(QUERIES, 3.0, filter=allowed) for one in (client, index))
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(one, other)
            with pytest.raises(InputError, match="'rerank' is none of the fields"):
                client.search(QUERIES, rerank="x")
