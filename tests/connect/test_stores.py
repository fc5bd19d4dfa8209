"""What every store of codes must do, in PostgreSQL and in LanceDB alike."""

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import zoo

from antisparse import CodeBase, InputError, InputTypeError, LearnedEncoder, UnsupportedError
from antisparse.errors import AntisparseError, MissingFileError

X = np.random.default_rng(0).standard_normal((2000, 16))
Q = np.random.default_rng(1).standard_normal((20, 16))
YEARS = np.arange(2000) % 50


@dataclass
class Database:
    """Where stores are, and what their types are called."""

    kind: Any
    place: str
    integer: str
    text: str

    def create(self, name: str, codec: Any, **options: Any) -> Any:
        return self.kind.create(self.place, name, codec, **options)

    def open(self, name: str) -> Any:
        return self.kind.open(self.place, name)


def pgvector(request: pytest.FixtureRequest) -> Database:
    from antisparse.connect.pgvector import PgCodes

    return Database(PgCodes, request.getfixturevalue("address"), "integer", "text")


def lancedb(request: pytest.FixtureRequest) -> Database:
    pytest.importorskip("lancedb", reason="LanceDB is not installed")
    from antisparse.connect.lancedb import LanceCodes

    return Database(LanceCodes, str(request.getfixturevalue("tmp_path") / "lance"), "int32", "string")


@pytest.fixture(params=[pgvector, lancedb], ids=lambda made: made.__name__)
def database(request: pytest.FixtureRequest) -> Database:
    return request.param(request)


@cache
def codec(n_bytes: int = 8, metric: Any = "l2") -> Any:
    return LearnedEncoder(n_bytes, symbols="signs", cells=1, effort=1, random_state=0, metric=metric).fit(X).codec_


def assert_finds(store: Any, base: CodeBase, queries: Any, k: int, shortlist: int, keys: Any) -> None:
    """Distances and keys are those of the two-stage search in this process, to the last bit."""
    distances, rows = base.search(queries, k, shortlist=max(shortlist, k))
    found = store.search(queries, k, shortlist=shortlist, exact=True)
    assert [own for _, own in found] == [[keys[row] for row in one] for one in rows]
    np.testing.assert_array_equal([own for own, _ in found], distances)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("n_bytes", [4, 8, 17])
def test_it_finds_what_two_stages_in_process_find(database: Database, metric: str, n_bytes: int) -> None:
    own = codec(n_bytes, metric)
    base = CodeBase(own, own.encode(X))
    with database.create("codes", own, keys="integer") as store:
        for first in range(0, 2000, 500):
            store.add(X[first : first + 500], np.arange(first, first + 500))
        assert len(store) == 2000
        for shortlist in (1, 30, 400, 5000):
            assert_finds(store, base, Q, 7, shortlist, range(2000))
        one = store.search(Q[3], 7, shortlist=30, exact=True)
        np.testing.assert_array_equal(one[0], store.search(Q, 7, shortlist=30, exact=True)[3][0])
    with database.open("codes") as again:
        assert again.codec == own
        assert again.search(Q[3], 7, shortlist=30, exact=True)[1] == one[1]


@pytest.mark.parametrize("name", zoo.NAMES)
def test_every_codec_is_taken_or_refused_with_a_remedy(database: Database, name: str) -> None:
    own, table = zoo.codec(name), name.replace(" ", "-")
    if not (own.symbols.compares and own.cells is None and own.rebuilds):
        with pytest.raises(UnsupportedError, match="symbols='signs'"):
            database.create(table, own)
        with pytest.raises((InputError, MissingFileError), match=r"no such table|no such folder"):
            database.open(table)
        return
    vectors = zoo.vectors(300, 1)
    with database.create(table, own, keys="integer") as store:
        store.add(vectors, range(300))
        assert_finds(store, CodeBase(own, own.encode(vectors)), vectors[:5], 4, 40, range(300))


def test_filters_come_before_the_shortlist(database: Database) -> None:
    own, names = codec(), [f"key {i}" for i in range(2000)]
    columns = {"year": database.integer, "Odd name": database.text}
    with database.create("codes", own, columns=columns) as store:
        store.add(X, names, columns={"year": YEARS.tolist(), "Odd name": ["%x"] * 2000})
        assert store.columns == ("year", "Odd name")
        for bound in (1, 10, 45):
            allowed = np.flatnonzero(bound > YEARS)
            hamming = CodeBase(own, own.encode(X[allowed])).search(Q, len(allowed), method="hamming")[0]
            found = store.search(Q, 5, shortlist=50, where="year < %s", parameters=[bound], exact=True)
            for row, (_, keys) in enumerate(found):
                numbers = [names.index(key) for key in keys]
                assert len(keys) == 5 and (YEARS[numbers] < bound).all()
                code = own.layout.symbols(own.encode(Q[row : row + 1]))
                bits = np.bitwise_count(own.layout.symbols(own.encode(X[numbers])) ^ code).sum(axis=1)
                assert (bits <= hamming[row, min(50, len(allowed)) - 1]).all()
            whole = store.search(Q, 5, shortlist=2000, where="year < %s", parameters=[bound])  # all that are allowed
            rows = CodeBase(own, own.encode(X[allowed])).search(Q, 5, method="reconstruction")[1]
            assert [keys for _, keys in whole] == [[names[allowed[row]] for row in one] for one in rows]
        assert store.search(Q[0], 3, where="\"Odd name\" LIKE '%%x'")[1]
        assert store.search(Q[0], 3, where="year %% 50 = 7 AND key <> %s", parameters=["it's \\ %s"])[1]
        assert store.search(Q[0], 3, where="year > 1000 -- a comment")[1] == []
        assert store.search(Q[0], 3, where="year = %s", parameters=[np.int64(1000)])[1] == []


def test_removals_and_what_comes_again(database: Database) -> None:
    own = codec()
    with database.create("codes", own, columns={"year": database.integer}) as store:
        store.add(X, [f"key {i}" for i in range(2000)])
        gone = store.search(Q[0], 3, exact=True)[1]
        assert store.remove(gone) == 3 and store.remove(gone) == 0 and store.remove([]) == 0
        assert len(store) == 1997 and not set(gone) & set(store.search(Q[0], 50, exact=True)[1])
        left = np.setdiff1d(np.arange(2000), [int(key.split()[1]) for key in gone])
        assert_finds(store, CodeBase(own, own.encode(X[left])), Q, 5, 2000, [f"key {i}" for i in left])
        store.add(X[:1], [gone[0]], columns={"year": np.array([7])})
        assert len(store) == 1998
        assert store.search(X[0], 3, where="year = 7 AND key = %s", parameters=[gone[0]])[1] == [gone[0]]
        assert store.remove([f"key {i}" for i in range(2000)]) == 1998  # many at once
        assert len(store) == 0


def test_a_store_without_codes(database: Database) -> None:
    with database.create("codes", codec(), keys="integer") as store:
        store.add(X[:0], [])
        assert len(store) == 0 and store.remove([3]) == 0
        distances, keys = store.search(Q[0])
        assert distances.shape == (0,) and keys == []
        assert [keys for _, keys in store.search(Q[:2])] == [[], []] and store.search(Q[:0]) == []
        store.add(X[:3], [-(2**63), 2**63 - 1, 0])
        assert sorted(store.search(Q[0], 2**30)[1]) == [-(2**63), 0, 2**63 - 1]
        assert store.remove([-(2**63), 2**63 - 1]) == 2 and store.search(Q[0])[1] == [0]


def test_hostile_keys_are_keys(database: Database) -> None:
    keys = ["'; DROP TABLE codes; --", '"', "\\", "%s", "%%", "\t\n", "", "ключ", "🙂" * 50, "\\N", "\\.", " a ", "'"]
    with database.create("codes", codec()) as store:
        store.add(X[: len(keys)], keys)
        assert sorted(store.search(X[0], 20)[1]) == sorted(keys)
        for key in keys:
            assert store.search(X[0], 20, where="key = %s", parameters=[key])[1] == [key]
        assert store.remove(keys[:3]) == 3
    with database.open("codes") as again:
        assert len(again) == len(keys) - 3
        for text in ("true); DELETE FROM codes; --", "1=1) OR (1=1", "key = ''; DROP TABLE codes", "year ="):
            with suppress(InputError):
                again.search(X[0], where=text)
            assert len(again) == len(keys) - 3  # a condition changes nothing, whatever it says


# What each is refused for, before any database is asked.
REFUSED: list[tuple[Callable[[Any], Any], type[AntisparseError], str]] = [
    (lambda store: store.add(X[:2], ["new", "k3"]), InputError, "keys holds one that is there already"),
    (lambda store: store.add(X[:2], ["a", "a"]), InputError, "keys holds one twice"),
    (lambda store: store.add(X[:2], ["a"]), InputError, "keys has 1 entries, but X has 2"),
    (lambda store: store.add(X[:2], ["a", 5]), InputTypeError, "keys must be a sequence of strings"),
    (lambda store: store.add(X[:1], ["a\0b"]), InputError, "zero character"),
    (lambda store: store.add(X[:1], "a"), InputTypeError, "keys must be a sequence"),
    (lambda store: store.add(X[:1], None), InputTypeError, "keys must be a sequence"),
    (lambda store: store.add(X[:1], [True]), InputTypeError, "keys holds True"),
    (lambda store: store.add(X[:1], [3]), InputTypeError, "keys must be texts"),
    (lambda store: store.remove([3]), InputTypeError, "keys must be texts"),
    (lambda store: store.add(X[:1], [2**63]), InputError, "64 bits"),
    (lambda store: store.add(X[:1], ["\ud800"]), InputError, "half a character"),
    (lambda store: store.remove(["\ud800"]), InputError, "half a character"),
    (lambda store: store.add(X[:1, :5], ["a"]), InputError, "^X "),
    (lambda store: store.add(X[0], ["a"]), InputError, "^X "),
    (lambda store: store.add("text", ["a"]), InputTypeError, "^X "),
    (lambda store: store.add(X[:1] * np.nan, ["a"]), InputError, "X contains NaN"),
    (lambda store: store.add(X[:1], ["a"], columns={"no": [1]}), InputError, "columns names 'no'; there are: year"),
    (lambda store: store.add(X[:1], ["a"], columns={"year": []}), InputError, "a value for each"),
    (lambda store: store.add(X[:1], ["a"], columns={"year": ["x"]}), InputError, "^columns"),
    (lambda store: store.add(X[:1], ["a"], columns={"year": [2**40]}), InputError, "^columns"),
    (lambda store: store.add(X[:1], ["a"], columns={"year": [object()]}), InputError, "^columns"),
    (lambda store: store.add(X[:1], ["a"], columns={"name": ["\ud800"]}), InputError, "half a character"),
    (lambda store: store.add(X[:1], ["a"], columns={"year": 5}), InputTypeError, "columns: 'year' must be a sequence"),
    (lambda store: store.add(X[:1], ["a"], columns=5), InputTypeError, "columns must be a mapping"),
    (lambda store: store.search(X[0], 0), InputError, "k = 0"),
    (lambda store: store.search(X[0], 10**18), InputError, "k = "),
    (lambda store: store.search(X[0], shortlist=0), InputError, "shortlist = 0"),
    (lambda store: store.search(X[0, :5]), InputError, "^Q "),
    (lambda store: store.search(X[0] * np.nan), InputError, "Q contains NaN"),
    (lambda store: store.search(X[0], where=5), InputTypeError, "where must be a condition"),
    (lambda store: store.search(X[0], where=""), InputError, "^where: "),
    (lambda store: store.search(X[0], where="year ="), InputError, "^where: "),
    (lambda store: store.search(X[0], where="nothing = 1"), InputError, "^where: .*nothing"),
    (lambda store: store.search(X[0], where="'\ud800' = ''"), InputError, "where: it holds half a character"),
    (lambda store: store.search(X[0], where="year = %s"), InputError, "^where: "),
    (lambda store: store.search(X[0], where="year = 1", parameters=[1]), InputError, "^where: "),
    (lambda store: store.search(X[0], where="year = %d", parameters=[1]), InputError, "^where: .*%d"),
    (lambda store: store.search(X[0], where="key = %s", parameters=["\ud800"]), InputError, "half a character"),
    (lambda store: store.search(X[0], parameters="x"), InputTypeError, "parameters must be a sequence"),
    (lambda store: store.search(X[0], parameters=[1]), InputError, "no where"),
]


def test_what_cannot_be_done_changes_nothing(database: Database) -> None:
    columns = {"year": database.integer, "name": database.text}
    with database.create("codes", codec(), columns=columns) as store:
        store.add(X[:10], [f"k{i}" for i in range(10)])
        for deed, kind, message in REFUSED:
            with pytest.raises(kind, match=message):
                deed(store)
        assert len(store) == 10
        assert sorted(store.search(X[0], 20)[1]) == [f"k{i}" for i in range(10)]
    made: list[tuple[dict[str, Any], type[AntisparseError], str]] = [
        ({"name": "codes"}, InputError, "name = 'codes'.* already exists"),
        ({"name": ""}, InputError, "name"),
        ({"name": "\ud800"}, InputError, "half a character"),
        ({"name": "x", "columns": {"bits": database.text}}, InputError, "column of its own"),
        ({"name": "x", "columns": {"a": "text); --"}}, InputError, "columns"),
        ({"name": "x", "columns": ["a"]}, InputTypeError, "columns must be a mapping"),
        ({"name": "x", "columns": {5: database.text}}, InputError, "columns has 5"),
        ({"name": "x", "keys": "uuid"}, InputError, "keys = 'uuid'"),
    ]
    for options, kind, message in made:
        with pytest.raises(kind, match=message):
            database.create(codec=codec(), **options)
    with pytest.raises(InputError, match="there is no such table of codes"):
        database.open("none")
    with pytest.raises(InputTypeError, match="encoder"):
        database.create("x", X)


def test_threads_share_a_store(database: Database) -> None:
    failed: list[BaseException] = []

    def work(store: Any, first: int) -> None:
        try:
            for row in range(first, 60, 4):
                store.add(X[row : row + 1], [row])
                assert store.search(X[row], 1)[1] == [row]
        except BaseException as error:
            failed.append(error)

    with database.create("codes", codec(17), keys="integer") as store:
        threads = [threading.Thread(target=work, args=(store, first)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed and len(store) == 60
        assert [keys for _, keys in store.search(X[:60], 1)] == [[row] for row in range(60)]


WRITER = """
import sys
import numpy as np
from antisparse.errors import AntisparseError, MissingFileError
module, name, place, first, step = sys.argv[1:]
kind = getattr(__import__(module, fromlist=[name]), name)
X = np.random.default_rng(0).standard_normal((2000, 16))
with kind.open(place, "codes") as store:
    for start in range(int(first), 2000 - 9, int(step)):
        try:
            store.add(X[start : start + 10], range(start, start + 10))
            print(f"added {start}", flush=True)
        except AntisparseError as error:
            print(f"refused {start} {error}", flush=True)
"""


def writer(database: Database, first: int, step: int) -> subprocess.Popen:
    named = [database.kind.__module__, database.kind.__name__, database.place, str(first), str(step)]
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", WRITER, *named], stdout=subprocess.PIPE, text=True)


def test_writers_in_other_processes(database: Database) -> None:
    """Of two that add the same keys one has them, whole; what this process reads follows."""
    with database.create("codes", codec(), keys="integer") as store:
        said = [one.communicate(timeout=300)[0].splitlines() for one in [writer(database, 0, 200) for _ in range(2)]]
        assert len(store) == 100
        keys = store.search(X[0], 200)[1]
        assert sorted(keys) == sorted({start + i for start in range(0, 2000, 200) for i in range(10)})
        for lines in zip(*said, strict=True):
            assert sorted(line.split()[0] for line in lines) in (["added", "refused"], ["refused", "refused"])
            assert all("these keys" in line or "already" in line for line in lines if line.startswith("refused"))


def test_a_writer_that_is_killed_leaves_whole_additions(database: Database) -> None:
    with database.create("codes", codec(), keys="integer") as store:
        first = 0
        for lines in (1, 5):
            killed = writer(database, first, 10)
            assert killed.stdout is not None
            for _ in range(lines):
                first = int(killed.stdout.readline().split()[1]) + 10
            killed.kill()
            rest = killed.communicate(timeout=60)[0].splitlines()
            first = max([first, *(int(line.split()[1]) + 10 for line in rest if line.startswith("added"))])
            keys = sorted(store.search(X[0], 2000)[1])
            assert keys in (list(range(first)), list(range(first + 10)))  # what it was about to say, or not
            store.remove(range(first, first + 10))
            store.add(X[:1], [first])  # and more can be added
            first += 10
            store.remove([first - 10])
            store.add(X[first - 10 : first], range(first - 10, first))
