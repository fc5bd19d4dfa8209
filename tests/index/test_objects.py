"""Indexes in an object store: a real S3 server, whose connections are cut, whose objects and copies are damaged."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import NAMES, POOL, QUERIES, Model, check_holds, check_probes, check_search
from s3 import BUCKET, CREDENTIALS, Way, s3_server, way_to

from antisparse import FormatError, Index, InputError, MissingFileError, StorageError, UnsupportedError
from antisparse.errors import AntisparseError
from antisparse.index import commit, objects, stage, staged_objects
from antisparse.index.manifest import NAME
from antisparse.index.objects import Objects
from antisparse.index.remote import remote_manifest

RACES = int(os.environ.get("ANTISPARSE_RACES", "20"))
KEEPS = (None, "text", "integer", "columns")
pytestmark = pytest.mark.skipif(
    find_spec("moto") is None or find_spec("obstore") is None, reason="moto, an S3 server, or obstore is not installed"
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as server:
        yield server


@pytest.fixture
def way(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Way]:
    """The environment of those who go to the server, by a way that can be cut, and keep files in a folder."""
    with way_to(server) as way:
        for name, value in CREDENTIALS.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{way.port}")
        monkeypatch.setenv("ANTISPARSE_CACHE", str(tmp_path / "cache"))
        yield way


@pytest.fixture
def address(way: Way, request: pytest.FixtureRequest) -> str:
    """An address of its own for every test."""
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid)):x}/index"


def made(address: str, name: str = "signs", keeps: str | None = None) -> Model:
    model = Model(name, keeps=keeps)
    model.create(None).save(address)
    return model


def staged(address: str, model: Model, X: np.ndarray, ids: Any) -> dict[str, Any]:
    codes, ids = model.encode(X), np.asarray(ids)
    if model.keeps == "columns":
        entry = stage(address, X, ids, items=model.items(ids, codes))
    elif model.keeps == "integer":
        entry = stage(address, model.table(X, ids, codes))
    else:
        entry = stage(address, X if model.keeps is None else model.table(X, ids, codes), ids)
    model.put(codes, ids)
    return json.loads(json.dumps(entry))


def names(address: str) -> set[str]:
    return {found.name for found in Objects(address).listed()}


@pytest.mark.parametrize(
    ("name", "keeps"), [*((name, None) for name in NAMES[::3]), *(("signs", k) for k in KEEPS[1:])]
)
def test_an_index_at_an_address_is_the_one_that_was_saved(
    address: str, name: str, keeps: str | None, tmp_path: Path
) -> None:
    model = Model(name, keeps=keeps)
    with model.create(tmp_path / "index") as index:
        model.add(index, POOL[:100])
        model.add(index, POOL[100:])
        model.remove(index, [3, 40, 120])
        index.save(address)
    with Index.open(address, verify=True) as index:
        check_holds(index, model)
        check_search(index, model)
        check_search(index, model, allowed=np.arange(50), given=model.given([i for i in range(50) if i not in (3, 40)]))
        if model.codec.n_cells > 1:
            check_probes(index, model, 2)
        index.verify()
        assert repr(index).endswith(f"{address!r})")
        # And in memory, and back in a folder.
        check_holds(Index.open(address, memory=True), model)
        index.save(tmp_path / "back")
    with Index.open(tmp_path / "back", verify=True) as index:
        check_holds(index, model)


@pytest.mark.parametrize("keeps", KEEPS)
def test_what_is_staged_and_committed_there_is_there(address: str, keeps: str | None) -> None:
    model = made(address, keeps=keeps)
    before = model.copy()
    reader = Index.open(address)
    first = [staged(address, model, POOL[:40], np.arange(40)), staged(address, model, POOL[40:90], np.arange(40, 90))]
    again = staged(address, model, POOL[:40], np.arange(40))
    assert again["codes"] != first[0]["codes"]  # a name of its own
    check_holds(reader, before)
    assert commit(address, [*first, again]) == 90  # a task that ran twice adds once
    generation = remote_manifest(Objects(address))[0].generation
    assert commit(address, first) == 90  # a commit that is repeated finds its work done
    assert remote_manifest(Objects(address))[0].generation == generation
    commit(address, [staged(address, model, POOL[90:], np.arange(90, 150)), first[0]])
    reader.refresh()
    check_holds(reader, model)
    check_search(reader, model)
    check_holds(Index.open(address, verify=True), model)
    # What was staged twice is forgotten, and goes when it is old.
    assert len(names(address)) == len(remote_manifest(Objects(address))[0].files()) + 1 + (1 if keeps is None else 2)
    time.sleep(1.1)  # the server tells seconds, and its clock counts: that of the newest object
    commit(address, [staged(address, model, POOL[:3], [900, 901, 902])], keep=0)
    assert names(address) == {*remote_manifest(Objects(address))[0].files(), NAME}
    check_holds(Index.open(address, verify=True), model)


def test_what_is_refused_changes_nothing(address: str) -> None:
    model = made(address)
    commit(address, [staged(address, model, POOL[:20], np.arange(20))])
    held = model.copy()
    good = staged(address, model, POOL[:5], np.arange(100, 105))
    taken = staged(address, model, POOL[:5], [19, 200, 201, 202, 203])
    twice = staged(address, model, POOL[:5], [104, 300, 301, 302, 303])
    gone = staged(address, model, POOL[:5], np.arange(400, 405))
    Objects(address).discard([gone["codes"]["file"]])
    for entries, kind, message in (
        ([good, taken], InputError, "entries have id 19, which is there already"),
        ([good, twice], InputError, "entries has 104 twice"),
        ([{**good, "lowest": 99}], FormatError, "are not 99 to 104"),
        ([{**good, "rows": 6}], FormatError, "its number of codes is not 6"),
        ([{**good, "codec": {**good["codec"], "crc32": 1}}], InputError, "another codec; stage it"),
        ([{**good, "codes": {**good["codes"], "crc32": 1}}], FormatError, "its header does not match"),
        ([{**good, "codes": {**good["codes"], "size": 1}}], FormatError, "bytes where the manifest says 1"),
        ([{**good, "items": good["codes"]}], FormatError, "its items are missing, or some too many"),
        ([good, gone], MissingFileError, r"of ids 400 to 404, but .* is not among what is staged"),
    ):
        with pytest.raises(kind, match=message):
            commit(address, entries)
        check_holds(Index.open(address, verify=True), held)
    commit(address, [good])
    held.put(held.encode(POOL[:5]), np.arange(100, 105))
    check_holds(Index.open(address, verify=True), held)


def test_ids_may_overlap_and_keys_are_committed_once(address: str) -> None:
    model = made(address, keeps="text")
    commit(address, [staged(address, model, POOL[:5], np.arange(0, 10, 2))])
    commit(address, [staged(address, model, POOL[5:10], np.arange(1, 11, 2))])
    check_holds(Index.open(address, verify=True), model)
    codes = model.encode(POOL[:2])
    same = stage(address, model.table(POOL[:2], np.array([4, 77]), codes), [50, 51])
    with pytest.raises(InputError, match="entries have a key that is there already"):
        commit(address, [same])
    check_holds(Index.open(address, verify=True), model)


def test_what_was_staged_long_ago_is_not_committed(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another may be about to remove it, and says so in the manifest before it does."""
    model = made(address)
    old = staged(address, model.copy(), POOL[:5], np.arange(5))
    time.sleep(1.1)
    new = staged(address, model, POOL[10:12], [10, 11])
    with monkeypatch.context() as patch:  # who marks it, and dies before it is removed
        patch.setattr(Objects, "discard", lambda self, names: None)
        commit(address, [new], keep=0)
    with pytest.raises(InputError, match="was staged long ago and may be gone; stage it anew"):
        commit(address, [old])
    check_holds(Index.open(address), model)
    commit(address, [staged(address, model, POOL[:5], np.arange(5))])
    check_holds(Index.open(address, verify=True), model)
    commit(address, [], keep=0)
    assert old["codes"]["file"] not in names(address)


def test_a_clock_that_is_wrong_does_no_harm(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(address)
    for hours in (0, 1000, -1000):
        first = staged(address, model, POOL[:2], len(model.rows) + np.arange(2))
        waiting = staged(address, model, POOL[2:4], len(model.rows) + np.arange(2))
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda hours=hours: time.time_ns() / 1e9 + 3600 * hours)
            commit(address, [first])
        commit(address, [waiting])
    check_holds(Index.open(address, verify=True), model)


def test_verifying_looks_at_the_store_too(address: str) -> None:
    model = made(address)
    entry = staged(address, model, POOL, np.arange(len(POOL)))
    commit(address, [entry])
    with Index.open(address, verify=True) as index:
        Objects(address).discard([entry["codes"]["file"]])
        check_holds(Index.open(address), model)  # from the cache
        for deed in (index.verify, lambda: Index.open(address, verify=True)):
            with pytest.raises(FormatError, match="is missing, or cut: the index is damaged"):
                deed()


def test_of_two_who_commit_at_once_one_wins_and_nothing_is_lost(address: str) -> None:
    model, losses = made(address), []
    replace = Objects.replace

    def counted(self: Objects, *arguments: Any) -> bool:
        won = replace(self, *arguments)
        losses.append(not won)
        return won

    Objects.replace = counted  # type: ignore[method-assign]
    try:
        for turn in range(RACES):
            entries = [
                staged(address, model, POOL[:3], np.arange(3) + 1000 * turn),
                staged(address, model, POOL[3:6], np.arange(3) + 1000 * turn + 500),
            ]
            together, errors = threading.Barrier(2), []

            def one(entry: dict[str, Any], together: threading.Barrier = together, errors: list = errors) -> None:
                together.wait()
                try:
                    commit(address, [entry])
                except BaseException as error:
                    errors.append(error)

            before = remote_manifest(Objects(address))[0]
            threads = [threading.Thread(target=one, args=(entry,)) for entry in entries]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            after = remote_manifest(Objects(address))[0]
            assert not errors and after.generation == before.generation + 2
            assert len(after.segments) == len(before.segments) + 2
    finally:
        Objects.replace = replace  # type: ignore[method-assign]
    assert losses.count(False) == 2 * RACES and losses.count(True) > RACES // 10
    check_holds(Index.open(address, verify=True), model)


READ = (
    "import sys, numpy as np; from antisparse import Index\n"
    "index = Index.open(sys.argv[1], n_threads=1)\n"
    "print(*index.search(np.load(sys.argv[2]), 3)[1].reshape(-1))\n"
)


def test_several_processes_with_one_cold_cache(address: str, tmp_path: Path) -> None:
    model = made(address)
    commit(address, [staged(address, model, POOL, np.arange(len(POOL)))])
    np.save(tmp_path / "queries.npy", QUERIES)
    command = [sys.executable, "-c", READ, address, str(tmp_path / "queries.npy")]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [reader.communicate(timeout=120)[0] for reader in readers]
    assert all(reader.returncode == 0 for reader in readers)
    expected = " ".join(map(str, model.search(QUERIES, 3)[1].reshape(-1)))
    assert [one.strip() for one in said] == [expected] * 4
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == sorted(remote_manifest(Objects(address))[0].files())


def damages(data: bytes) -> Iterator[bytes]:
    """All bytes of a small file changed one after the other, and the file cut."""
    yield from (data[:-1], data[: len(data) // 2], b"", data + b"x")
    for at in range(0, len(data), max(1, len(data) // 40)):
        yield data[:at] + bytes([data[at] ^ 32]) + data[at + 1 :]


def test_a_damaged_copy_is_found_and_fetched_again(address: str, tmp_path: Path) -> None:
    model = made(address, keeps="columns")
    commit(address, [staged(address, model, POOL, np.arange(len(POOL)))])
    with Index.open(address) as index:
        check_holds(index, model)
    for path in [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]:
        data = path.read_bytes()
        for wrong in damages(data):
            path.unlink()
            path.write_bytes(wrong)
            with Index.open(address) as index:
                check_holds(index, model)
            assert path.read_bytes() == data


def test_a_damaged_object_is_an_error(address: str) -> None:
    model = made(address)
    commit(address, [staged(address, model, POOL, np.arange(len(POOL)))])
    there = Objects(address)
    for name, size in remote_manifest(there)[0].files().items():
        data = there.read(name, size)[0]
        there.write(name, [data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]])
        shutil.rmtree(os.environ["ANTISPARSE_CACHE"])
        with pytest.raises(FormatError, match="is not the file that the manifest names: it is damaged"):
            Index.open(address)
        there.discard([name])
        with pytest.raises(FormatError, match=f"{name} is missing: the index is damaged"):
            Index.open(address)
        there.write(name, [data])
        assert len(Index.open(address)) == len(POOL)
    data = there.read(NAME, 1 << 20)[0]
    there.write(NAME, [data[:-1]])
    with pytest.raises(FormatError, match=f"{address}/{NAME}"):
        Index.open(address)


def test_the_cache_keeps_what_was_used_last(address: str, tmp_path: Path) -> None:
    sizes, models = [], []
    for number in range(3):
        models.append(made(f"{address}{number}"))
        place = f"{address}{number}"
        commit(place, [staged(place, models[-1], POOL, np.arange(len(POOL)))])
        sizes.append(sum(remote_manifest(Objects(place))[0].files().values()))
    cache = tmp_path / "small"

    def opened(number: int, most: int) -> list[int]:
        """The bytes that each index has in the cache."""
        with Index.open(f"{address}{number}", cache=cache, cache_bytes=most) as index:
            time.sleep(0.02)
            check_holds(index, models[number])
        return sorted(
            sum(path.stat().st_size for path in folder.iterdir()) for folder in cache.iterdir() if any(folder.iterdir())
        )

    assert sum(opened(0, sum(sizes))) == sizes[0]
    assert sum(opened(1, sum(sizes))) == sum(sizes[:2])
    kept = Index.open(f"{address}1", cache=cache)
    assert sum(opened(0, sum(sizes))) == sum(sizes[:2])  # used now
    assert sum(opened(2, sizes[0] + sizes[2])) <= sizes[0] + sizes[2]
    check_holds(kept, models[1])  # whose files are gone, but mapped
    kept.refresh()
    check_holds(Index.open(f"{address}1", cache=cache), models[1])
    with pytest.raises(StorageError, match=r"takes [\d,]+ bytes, and the cache .* at most 100; raise cache_bytes="):
        Index.open(f"{address}0", cache=cache, cache_bytes=100)
    (cache / "leftover").mkdir()
    for name, age in ((".tmp-old", 10**6), (".tmp-new", 0)):
        (cache / "leftover" / name).write_bytes(b"x")
        os.utime(cache / "leftover" / name, (time.time() - age,) * 2)
    opened(0, sum(sizes))
    assert os.listdir(cache / "leftover") == [".tmp-new"]


def test_connections_that_are_cut_are_made_again(address: str, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(address)
    commit(address, [staged(address, model, POOL, np.arange(len(POOL)))])
    monkeypatch.setattr(objects, "_PAUSE", 0.01)
    for number, cut in enumerate((0, 10, 300, 900, 2000)):
        way.cuts[:] = [cut, cut, None, cut, cut]
        before = way.connections
        monkeypatch.setenv("ANTISPARSE_CACHE", f"{os.environ['ANTISPARSE_CACHE']}{number}")
        with Index.open(address) as index:
            check_holds(index, model)
        assert way.connections > before
        way.cuts[:] = [cut, None, cut, None, None, cut, cut]
        more = staged(address, model, POOL[:2], [1000 * number + 500, 1000 * number + 501])
        way.cuts[:] = [cut, None, cut, cut, None, cut]
        commit(address, [more])
        way.cuts.clear()
        check_holds(Index.open(address, verify=True), model)


def test_a_store_that_is_not_there_is_an_error(address: str, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(address)
    entry = staged(address, model, POOL[:5], np.arange(5))
    index = Index.open(address)
    way.closed = True
    monkeypatch.setattr(objects, "_PAUSE", 0.01)
    monkeypatch.setattr(objects, "_TRIES", 2)
    monkeypatch.setattr(objects, "_RETRIES", 1)
    begun = time.perf_counter()
    for deed in (
        lambda: Index.open(address),
        lambda: stage(address, POOL[:5], np.arange(5)),
        lambda: commit(address, [entry]),
        lambda: index.save(address + "2"),
    ):
        with pytest.raises(StorageError, match=r"could not be (read|written)") as caught:
            deed()
        for secret in CREDENTIALS.values():
            assert secret == "true" or secret not in str(caught.value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert time.perf_counter() - begun < 60
    with pytest.raises(StorageError):
        index.refresh()
    assert len(index) == 0  # as it was
    way.closed = False
    commit(address, [entry])
    index.refresh()
    check_holds(index, model)


def test_a_save_that_fails_leaves_no_index(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Model("signs").create(None)
    index.add(POOL)
    written = Objects.write

    def fails(self: Objects, name: str, parts: Any) -> None:
        if name.startswith("segment"):
            raise StorageError("no more room")
        written(self, name, parts)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "write", fails)
        with pytest.raises(StorageError, match="no more room"):
            index.save(address)
    assert not names(address)
    index.save(address)
    with pytest.raises(InputError, match="is an index already; open it, or choose another address"):
        index.save(address)
    # Another who was first, and another whose answer was lost.
    monkeypatch.setattr(Objects, "listed", lambda self: [])
    with pytest.raises(StorageError, match="another has made an index there meanwhile"):
        index.save(address)
    monkeypatch.undo()


def test_an_index_at_an_address_is_read_only(address: str) -> None:
    made(address)
    with Index.open(address) as index:
        for deed in (lambda: index.add(POOL), lambda: index.remove([1]), lambda: index.compact()):
            with pytest.raises(UnsupportedError, match="an index in an object store is read only; stage and commit"):
                deed()
    with pytest.raises(FormatError, match="is not an index: it has no manifest"):
        Index.open(address + "/deeper")
    with pytest.raises(InputError, match=r"index\.save\(address\)"):
        Index.create(address, Model("signs").codec)
    with pytest.raises(InputError, match=r"index\.save\(address\)"):
        Index.build(POOL, 4, path=address)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("s3://key:secret@bucket/x", "path holds credentials"),
        ("s3://key:a/secret@bucket/x", "path holds credentials"),
        ("abfss://key:secret@bucket/x", "path holds credentials"),
        ("https://host/x?sig=secret", "begin with s3"),
        ("s3://bucket/x?sig=secret", "must be an address such as"),
        ("s3://bucket/%2e%2e/x", "must be an address such as"),
        ("ftp://bucket/x", "begin with s3"),
        ("s3://bucket/x?region=1", "must be an address such as"),
        ("s3://", "must be an address such as"),
        ("s3://bucket//x", "has an empty part"),
        ("s3://bucket/../x", "has an empty part, or one of dots"),
        ("s3://bucket/x\n", "must be an address such as"),
        (Path("s3://bucket/x"), "is an address that was made a Path; pass it as text"),
    ],
)
def test_addresses_that_cannot_be_used(wrong: Any, message: str) -> None:
    for deed in (Index.open, lambda path: stage(path, POOL, np.arange(len(POOL))), lambda path: commit(path, [])):
        with pytest.raises(AntisparseError, match=message) as caught:
            deed(wrong)
        assert "secret" not in str(caught.value)


def test_the_examples_of_the_page(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "objects.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    assert len(namespace["index"]) == 2000


def test_the_environment_of_the_cache(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(address)
    for wrong in ("x", "0", "-1"):
        monkeypatch.setenv("ANTISPARSE_CACHE_BYTES", wrong)
        with pytest.raises(InputError, match="it must be a number of bytes"):
            Index.open(address)
    monkeypatch.setenv("ANTISPARSE_CACHE_BYTES", "10")
    with pytest.raises(StorageError, match="at most 10"):
        Index.open(address)


def test_a_commit_that_others_overtake_for_ever_ends(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(address)
    entry = staged(address, model, POOL[:3], np.arange(3))
    monkeypatch.setattr(staged_objects, "_TRIES", 3)
    monkeypatch.setattr(Objects, "replace", lambda *arguments: False)
    with pytest.raises(StorageError, match="was changed by others 3 times"):
        commit(address, [entry])
