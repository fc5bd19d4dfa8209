"""Segments that others write: staged without a lock, committed at once, each once, whoever dies in between."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from models import NAMES, POOL, Model, check_holds, check_search, fitted, forked_threads, forks
from test_crash import CRASHES, KINDS, FailingOS, strays

from antisparse import FormatError, Index, InputError, InputTypeError, LockedError, MissingFileError, StorageError
from antisparse import _files as files
from antisparse.errors import AntisparseError
from antisparse.index import commit, stage, writer
from antisparse.index.manifest import read_manifest

KEEPS = (None, "text", "integer", "columns")
PARTS = (slice(0, 40), slice(40, 41), slice(41, 90), slice(90, 150))


def made(path: Path, name: str = "signs", keeps: str | None = None) -> Model:
    model = Model(name, keeps=keeps)
    model.create(path).close()
    return model


def staged(path: Path, model: Model, X: np.ndarray, ids: np.ndarray) -> dict[str, Any]:
    """As it comes back from another machine."""
    codes, given = model.encode(X), {"ids": ids}
    if model.keeps == "columns":
        given["items"] = model.items(ids, codes)
    elif model.keeps == "integer":
        del given["ids"]
    what = X if model.keeps in (None, "columns") else model.table(X, ids, codes)
    return json.loads(json.dumps(stage(path, what, **given)))


def all_staged(path: Path, model: Model, first: int = 0) -> list[dict[str, Any]]:
    ids = first + np.arange(len(POOL))
    return [staged(path, model, POOL[part], ids[part]) for part in PARTS]


def put(model: Model, first: int = 0) -> None:
    model.put(model.encode(POOL), first + np.arange(len(POOL)))


@pytest.mark.parametrize(("name", "keeps"), [*((name, None) for name in NAMES), *(("signs", one) for one in KEEPS[1:])])
def test_what_is_committed_is_what_would_have_been_added(tmp_path: Path, name: str, keeps: str | None) -> None:
    path = tmp_path / "index"
    model = made(path, name, keeps)
    with Index.open(path) as index:
        model.add(index, POOL[:7])
        entries = all_staged(path, model, 1000)  # while another writes
    assert commit(path, reversed(entries)) == len(POOL)
    put(model, 1000)
    with Index.open(path, verify=True) as index:
        check_holds(index, model)
        check_search(index, model)
        assert len(index.snapshot.segments) == 5
        model.remove(index, [3, 1010])
        model.add(index, POOL[:3])
        index.compact()
        check_holds(index, model)
    assert not strays(path) - {"staged"} and not os.listdir(path / "staged")


@pytest.mark.parametrize("keeps", KEEPS)
def test_a_task_that_runs_twice_adds_once(tmp_path: Path, keeps: str | None) -> None:
    model = made(tmp_path / "index", keeps=keeps)
    entries, again = all_staged(tmp_path / "index", model), all_staged(tmp_path / "index", model)
    assert entries == again and len(os.listdir(tmp_path / "index" / "staged")) == len(PARTS) * (
        1 if keeps is None else 2
    )
    assert commit(tmp_path / "index", [*entries, *again, entries[0]]) == len(POOL)
    put(model)
    with Index.open(tmp_path / "index", verify=True) as index:
        check_holds(index, model)


def test_a_commit_that_is_repeated_finds_its_work_done(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path)
    entries = all_staged(path, model)
    commit(path, entries[:2])
    generation = read_manifest(path).generation
    commit(path, entries[:2])
    assert read_manifest(path).generation == generation
    commit(path, entries)  # of which two are there
    put(model)
    with Index.open(path) as index:
        model.remove(index, [0, 1])
        index.compact()  # the segments have other names now
    assert commit(path, entries) == len(POOL)
    with Index.open(path, verify=True) as index:
        check_holds(index, model)
        index.save(tmp_path / "copy")
    commit(tmp_path / "copy", entries)  # the copy remembers
    with Index.open(tmp_path / "copy", verify=True) as index:
        check_holds(index, model)


def refused(path: Path, entries: Any, kind: type[Exception], message: str, model: Model) -> None:
    files = sorted(os.listdir(path / "staged"))
    with pytest.raises(kind, match=message):
        commit(path, entries)
    assert sorted(os.listdir(path / "staged")) == files and strays(path) == {"staged"}
    with Index.open(path, verify=True) as index:
        check_holds(index, model)


def test_what_is_refused_changes_nothing_and_stays_staged(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path)
    with Index.open(path) as index:
        model.add(index, POOL[:20])
    good = staged(path, model, POOL[:5], np.arange(100, 105))
    for ids, message in (
        ([19, 200, 201, 202, 203], "entries have id 19, which is there already"),
        ([104, 300, 301, 302, 303], "entries has 104 twice"),
    ):
        refused(path, [good, staged(path, model, POOL[:5], np.array(ids))], InputError, message, model)
    # Ranges that overlap are no fault.
    with Index.open(path) as index:
        model.remove(index, [7])
    between = staged(path, model, POOL[30:32], np.array([7, 1000]))
    commit(path, [between])
    model.put(model.encode(POOL[30:32]), [7, 1000])
    refused(path, [good, {**good, "lowest": 99}, {**between, "rows": 2}][1:2], FormatError, "are not 99 to 104", model)
    refused(path, [{**good, "rows": 6}], FormatError, "number of codes", model)
    refused(path, [{**good, "codec": {**good["codec"], "crc32": 1}}], InputError, "another codec; stage it", model)
    place = path / "staged" / good["codes"]["file"]
    data = place.read_bytes()
    place.write_bytes(data[:-1])
    refused(path, [good], FormatError, "bytes where the manifest says", model)
    place.write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
    refused(path, [good], FormatError, "its header does not match", model)
    place.unlink()
    refused(path, [good], MissingFileError, r"of ids 100 to 104, but .* is not among what is staged", model)
    staged(path, model, POOL[:5], np.arange(100, 105))
    commit(path, [good])
    model.put(model.encode(POOL[:5]), np.arange(100, 105))
    with Index.open(path, verify=True) as index:
        check_holds(index, model)


def test_keys_are_committed_once(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path, keeps="text")
    codes = model.encode(POOL[:5])
    commit(path, [stage(path, model.table(POOL[:5], np.arange(5), codes), np.arange(5))])
    model.put(codes, np.arange(5))
    same_keys = stage(path, model.table(POOL[:5], np.arange(4, 9), codes), np.arange(50, 55))
    refused(path, [same_keys], InputError, "entries have a key that is there already", model)
    with pytest.raises(InputError, match="X has a key twice"):
        stage(path, model.table(POOL[:2], np.array([70, 70]), codes[:2]), [70, 71])


def test_segments_with_equal_items_have_files_of_their_own(tmp_path: Path) -> None:
    """What one commit takes is not taken away from the other, nor from readers."""
    schema = pa.schema([("lang", pa.string())])
    path = tmp_path / "index"
    Index.create(path, fitted("signs"), items=schema).close()
    same, other = (pa.table({"lang": [lang] * 10}, schema) for lang in ("en", "de"))
    entries = [stage(path, POOL[:10], np.arange(10 * n, 10 * n + 10), items=same) for n in range(3)]
    for entry in entries:
        commit(path, [entry])
        assert len(Index.open(path, read_only=True, verify=True)) == entry["highest"] + 1
    # The same vectors and ids with other items are not what was committed.
    changed = stage(path, POOL[:10], np.arange(10), items=other)
    assert changed["codes"] == entries[0]["codes"] and changed["items"] != entries[0]["items"]
    with pytest.raises(InputError, match="entries have id 0, which is there already"):
        commit(path, [changed])
    with pytest.raises(InputError, match="entries has 50 twice"):
        commit(path, [stage(path, POOL[:10], np.arange(50, 60), items=items) for items in (same, other)])
    with Index.open(path, verify=True) as index:
        assert index.items().column("lang").to_pylist() == ["en"] * 30


def test_a_file_that_is_committed_is_never_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second link to it replaces it in one step, whatever fails."""
    target, source = tmp_path / "target", tmp_path / "source"
    target.write_bytes(b"x")
    source.write_bytes(b"x")
    seen = []
    replace = os.replace

    def looking(one: Any, other: Any) -> None:
        seen.append(target.exists())
        replace(one, other)
        seen.append(target.exists())

    monkeypatch.setattr(files.os, "replace", looking)
    for _ in range(2):
        files.link_file(source, target)
        assert sorted(os.listdir(tmp_path)) == ["source", "target"]
    assert seen == [True] * 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": POOL[:3]}, "ids is missing"),
        ({"X": POOL[:3], "ids": [1, 2]}, "ids has 2 entries for 3 vectors"),
        ({"X": POOL[:3], "ids": [1, 2, 2]}, "ids has 2 twice"),
        ({"X": POOL[:3], "ids": [1, 2, -2]}, "ids has entries out of range"),
        ({"X": POOL[:0], "ids": []}, "X has no rows"),
        ({"X": POOL[:3, :2], "ids": [1, 2, 3]}, "X has 2 columns"),
        ({"X": POOL[:1] * np.nan, "ids": [1]}, "X contains NaN"),
    ],
)
def test_what_cannot_be_staged(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    made(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        stage(tmp_path / "index", **given)
    assert not (tmp_path / "index" / "staged").exists()


@pytest.mark.parametrize("entries", [3, "x", [3], [{}], [{"codes": 1}], {"rows": 1}, None, ["x"]])
def test_entries_that_stage_did_not_return(tmp_path: Path, entries: Any) -> None:
    made(tmp_path / "index")
    with pytest.raises(InputTypeError, match=r"^entries"):
        commit(tmp_path / "index", entries)


def test_every_part_of_an_entry_may_be_anything(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path, keeps="text")
    good = staged(path, model, POOL[:5], np.arange(5))
    hostile = (None, -1, 2**70, 1.5, True, "", "../manifest.json", "manifest.json", [], {}, {"file": "x"})
    for name, value in good.items():
        for wrong in hostile:
            changed = [{**good, name: wrong}]
            if isinstance(value, dict):
                changed += [{**good, name: {**value, inner: wrong}} for inner in value]
            for entry in changed:
                with pytest.raises(AntisparseError):
                    commit(path, [entry])
                assert not len(Index.open(path, read_only=True, verify=True))
    commit(path, [good])


def test_one_commits_at_a_time_and_any_number_stage(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path)
    with Index.open(path):
        entries = all_staged(path, model)
        with pytest.raises(LockedError):
            commit(path, entries)
    commit(path, entries)


def test_staged_files_are_spared_until_they_are_old(tmp_path: Path) -> None:
    path = tmp_path / "index"
    model = made(path)
    entries = all_staged(path, model)
    with Index.open(path) as index:  # whose clean-up is another
        index.add(POOL[:3], [900, 901, 902])
        index.compact()
    (path / "staged" / ".tmp-0123").write_bytes(b"of one who died")
    old = time.time() - 8 * 24 * 3600
    for name in (".tmp-0123", entries[0]["codes"]["file"]):
        os.utime(path / "staged" / name, (old, old))
    commit(path, entries[1:2])
    assert sorted(os.listdir(path / "staged")) == sorted(entry["codes"]["file"] for entry in entries[2:])
    commit(path, entries[2:3], keep=0)
    assert not os.listdir(path / "staged")


@pytest.mark.parametrize("keeps", [None, "text"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_of_the_system_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, keeps: str | None
) -> None:
    template, calls = tmp_path / "template", {"stage": 0, "commit": 0}
    model = made(template, keeps=keeps)
    before = model.copy()
    put(model)
    for deed in calls:
        turn = failed = 0
        while failed == turn:
            turn += 1
            path = tmp_path / f"{deed}{turn}"
            shutil.copytree(template, path)
            entries = all_staged(path, model) if deed == "commit" else []
            with monkeypatch.context() as patch:
                patch.setattr(files, "os", FailingOS(turn, kind))
                try:
                    if deed == "stage":
                        all_staged(path, model)
                    else:
                        commit(path, entries)
                except (StorageError, KeyboardInterrupt):
                    failed += 1
            with Index.open(path, verify=True) as index:
                if deed == "stage" or (failed == turn and kind == "one"):
                    check_holds(index, before)
            commit(path, all_staged(path, model))  # done again, whatever was done
            with Index.open(path, verify=True) as index:
                check_holds(index, model)
            assert strays(path) == {"staged"}
            commit(path, [], keep=0)
            assert not os.listdir(path / "staged")
        calls[deed] = turn
    assert calls["stage"] > 10 and calls["commit"] > 4


@forks
@forked_threads
def test_whoever_is_killed_nothing_is_lost_and_nothing_is_twice(tmp_path: Path) -> None:
    """Two stage the same, one of them commits; they are killed at any moment, and done again."""
    path, random = tmp_path / "index", np.random.default_rng(0)
    model = made(path, keeps="text")
    outcomes, begun = [0, 0], time.perf_counter()
    commit(path, all_staged(path, model))
    put(model)
    seconds = time.perf_counter() - begun
    for turn in range(1, 1 + CRASHES // 2):
        first = 1000 * turn
        children = []
        for number in range(2):
            child = os.fork()
            if child == 0:
                try:
                    entries = all_staged(path, model, first)
                    while number == 0:
                        commit(path, entries)
                    time.sleep(60)
                finally:  # nothing of the test runs twice
                    os._exit(1)
            children.append(child)
        time.sleep(random.uniform(0, 2.5 * seconds))
        for child in children:
            os.kill(child, signal.SIGKILL)
            assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        after = model.copy()
        put(after, first)
        with Index.open(path, verify=True) as index:
            made_it = len(index) != len(model.rows)
            outcomes[made_it] += 1
            check_holds(index, after if made_it else model)
        commit(path, all_staged(path, model, first))
        model = after
        with Index.open(path, verify=True) as index:
            check_holds(index, model)
            if len(model.rows) > 1000:
                model.remove(index, model.ids)
        assert strays(path) == {"staged"}
    commit(path, [], keep=0)
    assert not os.listdir(path / "staged") and min(outcomes) > 0


def test_a_change_rewrites_a_share_of_the_index_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_SEGMENT_ROWS", 100)
    path = tmp_path / "index"
    model = made(path)
    for turn in range(8):
        commit(path, [staged(path, model, POOL, np.arange(len(POOL)) + 1000 * turn)])
        put(model, 1000 * turn)
    with Index.open(path) as index:
        for _ in range(12):
            before = {segment.file for segment in index.snapshot.segments}
            model.add(index, POOL[:1])
            new = [segment for segment in index.snapshot.segments if segment.file not in before]
            assert sum(segment.rows for segment in new) <= len(index) / 4 + 2
        check_holds(index, model)
        assert 1 < len(index.snapshot.segments) < 12
