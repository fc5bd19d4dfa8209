"""Builds of many files, whatever runs their tasks, in whatever order, however often, and wherever they stop."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from lake import DIMENSION, assert_equal_indexes, codec, files_of, vectors, write_lake
from s3 import BUCKET, CREDENTIALS, s3_server

from antisparse import FormatError, Index, InputError, InputTypeError, MissingFileError
from antisparse.cli import main
from antisparse.cluster import build
from antisparse.index import staging
from antisparse.index.staging import staging_of
from antisparse.index.table_files import TableFiles

ROWS, UNIT = 4000, 300
Q = vectors(20, 5)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake") / "files"
    write_lake(folder, ROWS, 5, 110)
    return folder


@pytest.fixture(scope="module")
def one(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process builds."""
    path = tmp_path_factory.mktemp("one") / "index"
    built = build(lake, path, codec=codec(), unit_rows=UNIT, engine=map)
    assert built.vectors == ROWS and built.resumed == 0 and built.segments == len(files_of(path))
    return path


def shuffled(task: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
    """An engine that does everything twice, backwards, by several threads."""
    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(task, [*values][::-1])
    for value in values:
        task(value)


def test_an_index_is_the_one_that_is_added_at_once(lake: Path, one: Path, tmp_path: Path) -> None:
    with Index.create(tmp_path / "added", codec()) as added, Index.open(one, read_only=True, verify=True) as built:
        added.add(lake, vector="vector")
        np.testing.assert_array_equal(built.ids, added.ids)
        np.testing.assert_array_equal(built.codes(built.ids), added.codes(added.ids))
        for way in ({}, {"method": "hamming"}, {"shortlist": 30}, {"filter": np.arange(0, ROWS, 3)}):
            for found, wanted in zip(built.search(Q, 10, **way), added.search(Q, 10, **way), strict=True):
                np.testing.assert_array_equal(found, wanted)


def test_the_order_and_the_number_of_runs_do_not_matter(lake: Path, one: Path, tmp_path: Path) -> None:
    build(lake, tmp_path / "index", codec=codec(), unit_rows=UNIT, engine=shuffled)
    assert_equal_indexes(tmp_path / "index", one, Q)


@pytest.mark.parametrize("key", [None, "key", "number"])
def test_keys_and_columns(lake: Path, tmp_path: Path, key: str | None) -> None:
    given: Any = {"key": key, "columns": ["year"], "n_bytes": 6, "train": 2000}
    build(lake, tmp_path / "index", unit_rows=UNIT, engine=shuffled, **given)
    build(str(lake / "*.parquet"), tmp_path / "other", unit_rows=UNIT, engine=map, **given)
    assert files_of(tmp_path / "index") == files_of(tmp_path / "other")
    with Index.open(tmp_path / "index", verify=True) as index:
        items = index.items()
        assert items.column("year").to_pylist() == [i % 50 for i in range(ROWS)]
        if key == "key":
            assert items.column("key").to_pylist() == [f"key {i}" for i in range(ROWS)]
        if key == "number":
            np.testing.assert_array_equal(index.ids, np.arange(ROWS) * 3 + 1)
        found = index.search(vectors(ROWS)[:5], 1, items=True, filter="year < 10")
        assert found.column("year").to_pylist() == [0, 1, 2, 3, 4]
        index.add(pa.table(pq.read_table(lake / "part-0.parquet")).slice(0, 0))


class Stops(Exception):
    pass


def fails(*arguments: Any, **options: Any) -> None:
    raise Stops


@pytest.mark.parametrize("key", [None, "key"])
def test_a_driver_that_stops_anywhere_goes_on_where_it_was(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    """It stops after each write of a file in turn: of a segment, of a note, of the index, of the commit."""
    given: Any = {"codec": codec(), "unit_rows": 1000, "key": key, "engine": map}
    build(lake, tmp_path / "one", **given)
    from antisparse import _files
    from antisparse.index import manifest, staged_folder, store

    turn, resumed = 0, set()
    while True:
        path, writes = tmp_path / f"index{turn}", 0

        def stopping(place: Path, parts: Any, turn: int = turn) -> None:
            nonlocal writes
            writes += 1
            if writes > turn:
                raise Stops
            _files.write_file(place, parts)

        with monkeypatch.context() as patch:
            for module in (manifest, staged_folder, store):
                patch.setattr(module, "write_file", stopping)
            try:
                build(lake, path, **given)
                break
            except Stops:
                pass
        resumed.add(build(lake, path, **given).resumed)
        assert_equal_indexes(path, tmp_path / "one", Q)
        shutil.rmtree(path)
        turn += 1
    units = len(files_of(tmp_path / "one")) // (1 if key is None else 2)
    assert turn > 2 * units and resumed == set(range(units + 1))


def test_units_whose_files_are_gone_are_done_again(
    lake: Path, one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes outlive files that someone took for forgotten."""
    path = tmp_path / "index"

    def stops(task: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
        yield from map(task, values[:6])
        raise Stops

    with pytest.raises(Stops):
        build(lake, path, codec=codec(), unit_rows=UNIT, engine=stops)
    for name in sorted(staging_of(path).waiting())[:2]:
        (path / "staged" / name).unlink()
    assert build(lake, path, codec=codec(), unit_rows=UNIT, engine=map).resumed == 4
    assert_equal_indexes(path, one, Q)


def test_engines_that_do_not_give_what_they_should(lake: Path, tmp_path: Path) -> None:
    for number, (engine, message) in enumerate(
        (
            (lambda task, values: None, "it must give the results of all tasks"),
            (lambda task, values: [3], "engine gave 3, which is not what the task returned"),
            (lambda task, values: [task(values[0])], "engine ended with 14 of 15 tasks not done"),
        )
    ):
        with pytest.raises((InputError, InputTypeError), match=message):
            build(lake, tmp_path / str(number), codec=codec(), unit_rows=UNIT, engine=engine)


def test_a_build_that_is_done_is_done(lake: Path, tmp_path: Path) -> None:
    given: Any = {"codec": codec(), "unit_rows": 1000, "engine": map}
    first = build(lake, tmp_path / "index", **given)
    before = staging_of(tmp_path / "index").manifest()
    again = build(lake, tmp_path / "index", **given)
    assert again.resumed == again.segments == first.segments
    assert staging_of(tmp_path / "index").manifest() == before
    with pytest.raises(InputError, match=r"it exists already \(an index, of other files or .*\); remove it first"):
        build(lake, tmp_path / "index", codec=codec(9), unit_rows=1000, engine=map)


def test_another_build_that_was_begun_is_not_taken_for_this_one(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("antisparse.cluster.job.stage", fails)
        with pytest.raises(Stops):
            build(lake, tmp_path / "index", codec=codec(), engine=map)
    with pytest.raises(InputError, match="a build of other files, or with other arguments, was begun there"):
        build(lake, tmp_path / "index", codec=codec(9), engine=map)

    def one_unit(task: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
        yield task(values[0])
        raise Stops

    with pytest.raises(Stops):
        build(lake, tmp_path / "index", codec=codec(), engine=one_unit)
    shutil.copytree(tmp_path / "index", tmp_path / "used")
    with Index.open(tmp_path / "used") as index:
        index.add(vectors(3))
    with pytest.raises(InputError, match="others added vectors to it since the build was begun"):
        build(lake, tmp_path / "used", codec=codec(), engine=map)
    (note,) = (tmp_path / "index" / "staged").glob("note-*.json")
    for wrong in (b"{", b"{}", b"3"):
        note.write_bytes(wrong)
        with pytest.raises(FormatError, match="is damaged; remove it"):
            build(lake, tmp_path / "index", codec=codec(), engine=map)


def test_a_file_that_changes_meanwhile_is_an_error(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, tmp_path / "lake")

    def changing(task: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
        yield task(values[0])
        table = pq.read_table(tmp_path / "lake" / "part-1.parquet")
        pq.write_table(table.slice(1), tmp_path / "lake" / "part-1.parquet")
        (tmp_path / "lake" / "part-4.parquet").unlink()
        yield from map(task, values[order])

    order = slice(1, None)
    with pytest.raises(InputError, match=r"part-1\.parquet was changed since it was planned"):
        build(tmp_path / "lake", tmp_path / "index", codec=codec(), engine=changing)
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(lake, tmp_path / "lake")
    order = slice(4, None)
    with pytest.raises(MissingFileError, match=r"part-4\.parquet is gone since it was planned"):
        build(tmp_path / "lake", tmp_path / "again", codec=codec(), engine=changing)


def test_bad_rows_are_named_by_their_file(tmp_path: Path) -> None:
    X = vectors(100)
    (tmp_path / "lake").mkdir()
    for number, value in enumerate((0.0, np.nan)):
        X[50] += value
        column = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), DIMENSION)
        pq.write_table(pa.table({"vector": column}), tmp_path / "lake" / f"{number}.parquet")
    with pytest.raises(InputError, match=r"1\.parquet, rows from 100: X.*contains NaN"):
        build(tmp_path / "lake", tmp_path / "index", codec=codec(), engine=map)
    with pytest.raises(InputError, match="column"):
        build(tmp_path / "lake", tmp_path / "index2", codec=codec(), vector="none", engine=map)
    with pytest.raises(MissingFileError, match=r"source = .* there are no such files"):
        build(tmp_path / "lake" / "*.orc", tmp_path / "index2", engine=map)
    with pytest.raises(InputTypeError, match="source must be"):
        build(3, tmp_path / "index2", engine=map)
    with pytest.raises(InputError, match="there is no folder"):
        build(tmp_path / "lake", tmp_path / "none" / "index2", engine=map)
    pq.write_table(pa.table({"vector": column}).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="source has no rows"):
        build(tmp_path / "empty.parquet", tmp_path / "index2", engine=map)
    assert not (tmp_path / "index2").exists()
    with pytest.raises(InputError, match="lies in the folder of the source"):
        build(tmp_path / "lake", tmp_path / "lake" / "index", codec=codec(), engine=map)
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="it exists already, and is no index"):
        build(tmp_path / "lake", tmp_path / "there", codec=codec(), engine=map)


def test_partitions_and_other_formats(lake: Path, tmp_path: Path) -> None:
    for lang in ("de", "en"):
        (tmp_path / "parts" / f"lang={lang}").mkdir(parents=True)
        shutil.copy(lake / "part-0.parquet", tmp_path / "parts" / f"lang={lang}" / "x.parquet")
    build(tmp_path / "parts", tmp_path / "index", codec=codec(), columns=["lang"], unit_rows=UNIT, engine=map)
    with Index.open(tmp_path / "index", verify=True) as index:
        assert index.items().column("lang").to_pylist() == ["de"] * 800 + ["en"] * 800
    feather.write_feather(pq.read_table(lake / "part-0.parquet"), tmp_path / "x.arrow", compression="uncompressed")
    assert build(tmp_path / "x.arrow", tmp_path / "arrow", codec=codec(), unit_rows=UNIT, engine=map).segments == 1


def test_units_cover_all_rows_once(lake: Path) -> None:
    files = TableFiles.of(lake, "source")
    for rows in (1, 110, 111, 300, 800, 10**6):
        units = files.units(rows)
        assert [unit.first for unit in units] == list(np.cumsum([0, *(unit.rows for unit in units)])[:-1])
        assert sum(unit.rows for unit in units) == ROWS
        last = {unit.file: unit for unit in units}
        assert all(unit.rows >= rows or unit == last[unit.file] for unit in units)
        json.dumps([unit.to_dict() for unit in units])


def test_a_sample_is_drawn_from_some_of_many_row_groups(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from antisparse.cluster import job

    monkeypatch.setattr(job, "_LEAST_GROUPS", 3)
    monkeypatch.setattr(job, "_LEAST_SHARE", 2)
    read: list[str] = []
    part = TableFiles.part
    monkeypatch.setattr(TableFiles, "part", lambda self, unit, schema: read.append(unit) or part(self, unit, schema))
    first = build(lake, tmp_path / "one", 6, train=100, unit_rows=10**6, engine=map)
    assert len(read) == 3 + 5 and len({unit.file for unit in read[:3]}) > 1
    assert build(lake, tmp_path / "two", 6, train=100, unit_rows=10**6, engine=map).codec == first.codec
    assert build(lake, tmp_path / "three", 6, train=100, random_state=1, engine=map).codec != first.codec


@pytest.mark.skipif(find_spec("moto") is None or find_spec("obstore") is None, reason="moto or obstore is missing")
def test_a_build_in_an_object_store(lake: Path, one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as server:
        for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": f"http://{server}"}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ANTISPARSE_CACHE", str(tmp_path / "cache"))
        address, stage, left = f"s3://{BUCKET}/lake/index", staging.stage, 5

        def stopping(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stops
            return stage(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr("antisparse.cluster.job.stage", stopping)
            with pytest.raises(Stops):
                build(lake, address, codec=codec(), unit_rows=UNIT, engine=map)
        assert len(Index.open(address)) == 0
        built = build(lake, address, codec=codec(), unit_rows=UNIT, engine=map)
        assert built.resumed == 5
        assert_equal_indexes(address, one, Q)
        assert build(lake, address, codec=codec(), unit_rows=UNIT, engine=map).resumed == built.segments
        with pytest.raises(InputError, match="it exists already"):
            build(lake, address, codec=codec(9), engine=map)
        # One who dies before there is an index leaves nothing that another build could be taken for.
        with monkeypatch.context() as patch:
            patch.setattr(Index, "save", fails)
            with pytest.raises(Stops):
                build(lake, address + "3", codec=codec(9), engine=map)
        build(lake / "part-0.parquet", address + "3", codec=codec(), engine=map)
        with pytest.raises(InputError, match=r"it exists already \(an index, of other files"):
            build(lake, address + "3", codec=codec(9), engine=map)
        # The commands that read take addresses, and copy writes to them.
        np.save(tmp_path / "q.npy", Q)
        assert main(["search", address, str(tmp_path / "q.npy"), "-k", "2"]) == 0
        assert main(["verify", address]) == main(["info", address]) == 0
        assert main(["copy", str(one), address + "2"]) == 0
        assert main(["copy", address + "2", str(tmp_path / "back")]) == 0
        assert main(["remove", address, "1"]) == main(["copy", str(one), address]) == 2
        assert_equal_answers_of(address + "2", tmp_path / "back")


def assert_equal_answers_of(address: str, folder: Path) -> None:
    with Index.open(address) as one, Index.open(folder) as two:
        np.testing.assert_array_equal(one.codes(one.ids), two.codes(two.ids))


def test_the_command(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["cluster", "build", str(lake), "-o", str(tmp_path / "index"), "--bytes", "6", "--here", "--key", "key"]
    words += ["--columns", "year", "--train", "1000", "--unit-rows", "1000"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path / 'index'}: 4,000 vectors, 6 bytes each" in said and "in 5 segments" in said
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resumed"] == 5
    assert main([*words[:4], str(tmp_path / "none" / "x"), "--here"]) == 2
    assert main(["cluster", "build", str(tmp_path / "none"), "-o", str(tmp_path / "x"), "--here"]) == 2
    assert "SOURCE" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["index"]
