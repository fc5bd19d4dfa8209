"""Codes in LanceDB, against the package itself: what test_stores.py does not ask of every database."""

import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antisparse import (
    CodeBase,
    Codec,
    FormatError,
    InputError,
    InputTypeError,
    LearnedEncoder,
    MissingDependencyError,
    Split,
    StorageError,
    UnsupportedError,
)
from antisparse.connect.lancedb import LanceCodes
from antisparse.errors import MissingFileError

lancedb = pytest.importorskip("lancedb", reason="LanceDB is not installed")

X = np.random.default_rng(0).standard_normal((2000, 16))
Q = np.random.default_rng(1).standard_normal((20, 16))
YEARS = np.arange(2000) % 50


def codec(n_bytes: int = 8, **options: Any) -> Codec:
    return LearnedEncoder(n_bytes, symbols="signs", cells=1, effort=1, random_state=0, **options).fit(X).codec_


def test_an_index_finds_most_and_what_is_added_later(tmp_path: Path) -> None:
    own = codec(16)
    with LanceCodes.create(tmp_path, "codes", own, keys="integer", columns={"year": "int32"}) as store:
        store.add(X[:1500], range(1500), columns={"year": YEARS[:1500].tolist()})
        store.build_ivf(8)
        assert [index.columns for index in store.table.list_indices()] == [["bits"]]
        store.add(X[1500:], range(1500, 2000), columns={"year": YEARS[1500:].tolist()})
        wanted = CodeBase(own, own.encode(X)).search(Q, 10, shortlist=200)
        exact = store.search(Q, 10, shortlist=200, exact=True)
        assert [keys for _, keys in exact] == wanted[1].tolist()  # whatever index there is
        np.testing.assert_array_equal([distances for distances, _ in exact], wanted[0])

        few = store.search(Q, 10, shortlist=100, exact=True)

        def recall(probes: int) -> float:
            store.probes = probes
            near = store.search(Q, 10, shortlist=100)
            return float(np.mean([len(set(one) & set(two)) / 10 for (_, one), (_, two) in zip(near, few, strict=True)]))

        assert recall(8) > 0.9 and 0.25 < recall(1) < recall(3)  # of 8 partitions; of equal bits others may be taken
        assert all(store.search(X[row], 1)[1] == [row] for row in range(1500, 2000, 100))  # in no partition yet
        store.table.optimize()
        assert recall(8) > 0.9
        store.probes = 1
        years = store.search(Q, 10, shortlist=30, where="year = %s", parameters=[7])
        assert all(len(keys) == 10 and (YEARS[keys] == 7).all() for _, keys in years)  # more than one partition has
        store.remove(exact[0][1])
        assert not set(exact[0][1]) & set(store.search(Q[0], 50)[1])


def test_of_equal_distances_the_rows_of_the_table_decide(tmp_path: Path) -> None:
    """With 20 bits most distances are shared by many: the shortlist is that of a code base in the table's order."""
    own, keys = codec(3), np.random.default_rng(3).permutation(2000)
    base = CodeBase(own, own.encode(X))
    with LanceCodes.create(tmp_path, "codes", own, keys="integer") as store:
        for first in range(0, 2000, 100):
            store.add(X[first : first + 100], keys[first : first + 100])
        for _ in range(2):
            for shortlist in (10, 30, 400):
                wanted = base.search(Q, 10, shortlist=shortlist)
                found = store.search(Q, 10, shortlist=shortlist, exact=True)
                np.testing.assert_array_equal([distances for distances, _ in found], wanted[0])
                for row, (_, own_keys) in enumerate(found):  # of equal distances in the answer the least keys
                    assert set(own_keys[:-1]) <= set(keys[base.search(Q[row], 2000, shortlist=shortlist)[1]])
            store.table.optimize()  # fewer files, and the same order


def test_parameters_of_every_kind(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901)
    columns = {
        "name": ("string", "o'neil \\ %s"),
        "half": ("float64", 0.1 + 0.2),
        "tiny": ("float64", -5e-324),
        "long": ("int64", -(2**63)),
        "day": ("date32", date(1969, 12, 31)),
        "moment": ("timestamp[us]", moment),
        "yes": ("bool", True),
    }
    kinds = {name: kind for name, (kind, _) in columns.items()}
    with LanceCodes.create(tmp_path, "codes", codec(), columns=kinds) as store:
        store.add(X[:1], ["a"], columns={name: [value] for name, (_, value) in columns.items()})
        store.add(X[1:2], ["b"])
        for name, (_, value) in columns.items():
            assert store.search(X[0], where=f"{name} = %s", parameters=[value])[1] == ["a"], name
            assert store.search(X[0], where=f"{name} <> %s", parameters=[value])[1] == [], name
            assert store.search(X[0], where=f"{name} IN %s", parameters=[[value]])[1] == ["a"], name
        assert store.search(X[0], where="yes = %s", parameters=[np.bool_(False)])[1] == []
        assert store.search(X[0], where="(yes = %s) IS NULL", parameters=[None])[1] == ["a", "b"]
        many = [f"no {i}" for i in range(10_000)]
        assert store.search(X[0], where="key IN %s", parameters=[(*many, "b")])[1] == ["b"]
        for value in ([], {}, b"a", np.nan, np.inf, 2**63, object(), datetime(2026, 1, 1, tzinfo=UTC).time()):
            with pytest.raises(InputTypeError, match=r"^parameters holds"):
                store.search(X[0], where="key = %s", parameters=[value])


def test_what_only_lancedb_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with LanceCodes.create(tmp_path, "codes", codec(), columns={"year": "int32"}) as store:
        store.add(X[:10], [f"k{i}" for i in range(10)])
        for deed, kind, message in [
            (lambda: store.search(X[0], where="read_parquet('/etc/passwd')"), InputError, "^where: .*Invalid function"),
            (lambda: store.search(X[0], where="year IN (SELECT 1)"), InputError, "^where: .*not supported"),
            (lambda: store.search(X[0], where="year + 1"), InputError, "^where: .*boolean"),
            (lambda: store.search(X[0], where="NOT " * 300 + "true"), InputError, "1000 at most; lists go into"),
            (lambda: store.search(X[0], where="(" * 450 + "true" + ")" * 450), InputError, "^where: "),
            (lambda: store.build_ivf(0), InputError, "partitions = 0"),
            (lambda: LanceCodes.create(tmp_path, "../codes", codec()), InputError, "name"),
            (lambda: LanceCodes.create(tmp_path, "a/b", codec()), InputError, "name"),
            (lambda: LanceCodes.create(tmp_path, 5, codec()), InputTypeError, "name must be text"),
            (lambda: LanceCodes.create(tmp_path, "x", codec(), columns={"a.b": "int32"}), InputError, "no name"),
            (lambda: LanceCodes.create(tmp_path, "x", codec(), columns={"a`b": "int32"}), InputError, "no name"),
            (lambda: LanceCodes.create(tmp_path, "x", codec(), columns={"_rowid": "int64"}), InputError, "_rowid"),
            (lambda: LanceCodes.create(tmp_path, "x", codec(), columns={"a": 5}), InputError, "no type of Arrow"),
            (lambda: LanceCodes.create(tmp_path / "file", "x", codec()), StorageError, "LanceDB failed"),
            (lambda: LanceCodes.open(tmp_path, "x", probes=0), InputError, "probes = 0"),
            (lambda: LanceCodes.open(tmp_path / "none", "x"), MissingFileError, "no such folder"),
            (lambda: LanceCodes.open(5, "x"), InputTypeError, "uri must be"),
            (lambda: LanceCodes.open(b"x", "x"), InputTypeError, "uri must be"),
            (lambda: LanceCodes.open("a\0b", "x"), InputError, "zero character"),
            (lambda: LanceCodes.open("db://cloud", "x"), UnsupportedError, "LanceDB Cloud"),
            (lambda: LanceCodes.create("memory://", "x", codec()), UnsupportedError, "memory://"),
            (lambda: LanceCodes.open("http://host/x", "x"), InputError, "^uri: "),
        ]:
            with pytest.raises(kind, match=message) as caught:
                deed()
            assert ".rs" not in str(caught.value)
        assert sorted(store.search(X[0], 20)[1]) == [f"k{i}" for i in range(10)]
    assert not (tmp_path / "none").exists()


READER = """
import sys
import numpy as np
from antisparse.connect.lancedb import LanceCodes
Q = np.random.default_rng(1).standard_normal((20, 16))
with LanceCodes.open(sys.argv[1], "codes") as store:
    for distances, keys in store.search(Q, 5, where="year < 20", exact=True):
        print(distances.tobytes().hex(), *keys)
"""


def test_another_process_finds_the_same(tmp_path: Path) -> None:
    with LanceCodes.create(tmp_path, "codes", codec(), columns={"year": "int32"}) as store:
        store.add(X, [f"k{i}" for i in range(2000)], columns={"year": YEARS.tolist()})
        own = store.search(Q, 5, where="year < 20", exact=True)
    ran = subprocess.run([sys.executable, "-c", READER, tmp_path], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [" ".join([distances.tobytes().hex(), *keys]) for distances, keys in own]


def test_readers_see_what_is_written_and_outlive_compaction(tmp_path: Path) -> None:
    with LanceCodes.create(tmp_path, "codes", codec(17), keys="integer") as store:
        other = LanceCodes.open(tmp_path, "codes")
        for row in range(10):
            store.add(X[row : row + 1], [row])
            assert other.search(X[row], 1)[1] == [row] and len(other) == row + 1
        store.remove([0])
        assert other.search(X[0], 1)[1] != [0]
        with pytest.warns(UserWarning, match="removes every version"):
            store.table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        assert other.search(X[5], 1)[1] == [5] and len(other) == 9
        assert len(list((tmp_path / "codes.lance" / "data").iterdir())) == 1


def test_codecs_of_tables_do_not_mix(tmp_path: Path) -> None:
    """A table that was made anew, with another codec of as many bits, takes no codes of the former."""
    first, second = codec(8), codec(8, metric="cosine")
    LanceCodes.create(tmp_path, "other", second).close()
    with LanceCodes.create(tmp_path, "codes", first) as held:
        held.add(X[:5], list("abcde"))
        database = lancedb.connect(tmp_path)
        database.drop_table("codes")
        for deed in (lambda: held.search(X[0]), lambda: len(held), lambda: held.add(X[:1], ["f"])):
            with pytest.raises(StorageError, match=r"LanceDB failed: .*Not found"):
                deed()
        LanceCodes.create(tmp_path, "codes", second).close()  # the codec of the former is still beside it
        with pytest.raises(FormatError, match="made anew"):
            held.add(X[:1], ["f"])
    with LanceCodes.open(tmp_path, "codes") as again:
        assert again.codec == second and len(again) == 0


def damaged_rest(table: Any) -> None:
    table.update(values={"rest": b""})


def renamed(table: Any) -> None:
    table.alter_columns({"path": "rest", "rename": "more"})


def no_bits(table: Any) -> None:
    table.drop_columns(["bits"])


@pytest.mark.parametrize("change", [damaged_rest, renamed, no_bits])
def test_a_table_that_others_changed_is_an_error(tmp_path: Path, change: Any) -> None:
    with LanceCodes.create(tmp_path, "codes", codec()) as store:
        store.add(X[:5], list("abcde"))
        change(lancedb.connect(tmp_path).open_table("codes"))
        with pytest.raises((FormatError, StorageError), match=r"changed|column bits does not exist"):
            store.search(X[0])
        with pytest.raises(FormatError, match="changed"):
            LanceCodes.open(tmp_path, "codes").search(X[0])


def test_nibbles_that_others_changed_are_an_error(tmp_path: Path) -> None:
    with LanceCodes.create(tmp_path, "codes", codec(6, split=Split("signs", bias="nibble"))) as store:
        store.add(X[:5], list("abcde"))
        store.table.update(values={"rest": b"\xff"})
        with pytest.raises(FormatError, match="more beside their signs"):
            store.search(X[0])


def test_tables_of_others_are_an_error(tmp_path: Path) -> None:
    import pyarrow as pa

    with LanceCodes.create(tmp_path, "codes", codec()) as store:
        store.add(X[:5], list("abcde"))
        database, schema = lancedb.connect(tmp_path), store.table.schema
    database.create_table("own", pa.table({"key": ["a"], "bits": [1], "rest": [b""]}))
    database.create_table("alike", schema=schema)
    for name in ("own", "alike", "codes_codec"):
        with pytest.raises(FormatError, match="the table is none that"):
            LanceCodes.open(tmp_path, name)
    database.open_table("codes_codec").update(values={"codec": b"x"})
    with pytest.raises(FormatError, match="codes_codec"):
        LanceCodes.open(tmp_path, "codes")
    database.drop_table("codes_codec")
    with pytest.raises(FormatError, match="codes_codec"):
        LanceCodes.open(tmp_path, "codes")


@pytest.mark.parametrize("how", ["cut short", "emptied", "gone", "last bytes"])
@pytest.mark.parametrize("table", ["codes", "codes_codec"])
def test_damaged_files_are_an_error(tmp_path: Path, table: str, how: str) -> None:
    with LanceCodes.create(tmp_path, "codes", codec()) as store:
        store.add(X[:500], [f"k{i}" for i in range(500)])
    (file,) = (tmp_path / f"{table}.lance" / "data").glob("*.lance")
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes({"cut short": content[: len(content) // 2], "emptied": b""}.get(how, content[:-4] + b"\0" * 4))
    with pytest.raises((StorageError, FormatError), match="'codes'"):
        LanceCodes.open(tmp_path, "codes").search(X[0])


def test_without_lancedb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(MissingDependencyError, match=re.escape("pip install 'antisparse[lancedb]'")):
        LanceCodes.open(tmp_path, "codes")


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text()
    section = page.split("\n## LanceDB\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    assert namespace["keys"][0] == "doc 7"
    with LanceCodes.open("data", "documents") as store:
        assert len(store) == 999
