"""Misuse and bad luck, one at a time: lost locks, forks, folders that change, files and paths that are none."""

import contextlib
import faulthandler
import importlib.metadata
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from interrupts import Handler
from models import POOL, QUERIES, Model, assert_same, check_holds, check_search, fitted, forked_threads, forks
from test_concurrency import contents, in_child

from antisparse import (
    Codec,
    FormatError,
    Index,
    InputError,
    InputTypeError,
    LockedError,
    StorageError,
    UnsupportedError,
)
from antisparse import _files as files

pytestmark = forked_threads
alarms = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "index", fitted("signs"), n_threads=1) as made:
        made.add(POOL[:20])
        made.remove([3])
        yield made


def held(index, n=20, without=(3,)):
    model = Model("signs")
    model.put(model.encode(POOL[:n]), range(n))
    model.drop(without)
    check_holds(index, model)
    return model


# Batches, locks, threads.


@pytest.mark.parametrize("on_disk", [True, False])
def test_an_index_is_not_closed_within_a_batch(tmp_path, on_disk: bool) -> None:
    path = tmp_path / "index"
    with Index.create(path if on_disk else None, fitted("signs")) as index:
        for leave in (index.close, lambda: index.__exit__(None, None, None)):
            with pytest.raises(UnsupportedError, match="leave the batch first"), index.batch():  # noqa: PT012
                index.add(POOL[:5])
                leave()
            assert len(index) == 0
        with index.batch():
            index.add(POOL[:5])
            with pytest.raises(UnsupportedError, match="within a batch"):
                index.close()
            if on_disk:
                with pytest.raises(LockedError):  # it still holds the lock
                    Index.open(path)
        assert len(index) == 5
    with pytest.raises(UnsupportedError, match="closed"):
        index.add(POOL)


def test_a_writer_that_lost_its_lock_does_not_write_over_another(tmp_path, index) -> None:
    path = tmp_path / "index"
    index._writer.store._lock.release(force=True)  # as a forked child did that exits, by filelock before 3.30
    with Index.open(path) as other:
        other.add(POOL[20:30])
        before = contents(path)
        for change in (lambda: index.add(POOL[:5]), lambda: index.remove([1]), index.compact):
            with pytest.raises(StorageError, match="changed by another writer; open the index again"):
                change()
            assert contents(path) == before
        held(index)  # as it was
        other.add(POOL[30:40])
        held(other, 40)


_CHILD_EXITS = """
import os, sys
from antisparse import Codec, Index
index = Index.create(sys.argv[1], Codec.load(sys.argv[2]))
if os.fork() == 0:
    if sys.argv[3] == "closed":
        index.close()
    del index
    sys.exit(0)  # all that Python does at its end
os.wait()
print("ready", flush=True)
sys.stdin.read()
"""


@forks
@pytest.mark.parametrize("how", ["closed", "left"])
def test_a_forked_child_that_exits_leaves_the_lock(tmp_path, how: str) -> None:
    fitted("signs").save(tmp_path / "codec")
    arguments = [sys.executable, "-W", "ignore", "-c", _CHILD_EXITS, tmp_path / "index", tmp_path / "codec", how]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"
        with pytest.raises(LockedError):
            Index.open(tmp_path / "index")
        parent.communicate()
    Index.open(tmp_path / "index").close()


def within(seconds, deed):
    """What a deed gives in a thread of its own, or raises there; it must not hang."""
    found = []

    def run():
        try:
            found.append(deed())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"
    return found[0]


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_a_batch_is_left_by_the_thread_that_entered_it(tmp_path, on_disk: bool, nested: bool, ends: bool) -> None:
    path = tmp_path / "index"
    index = Index.create(path if on_disk else None, fitted("signs"), n_threads=1)
    index.add(POOL[:20])
    index.remove([3])
    batches = [index.batch() for _ in range(1 + nested)]
    entered, over = threading.Event(), threading.Event()

    def enter():
        for number, batch in enumerate(batches):
            batch.__enter__()
            index.remove([number])
        entered.set()
        if not ends:
            over.wait()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    entered.wait()
    if ends:
        thread.join()
    for batch in batches[::-1]:
        with pytest.raises(UnsupportedError, match="by the thread that entered it, and was left by another"):
            batch.__exit__(None, None, None)
    held(index)  # nothing was changed
    for change in (lambda: index.remove([5]), index.batch().__enter__, index.compact):
        error = within(20, change)
        assert isinstance(error, UnsupportedError) and "is closed; open it again" in str(error)
    assert_same(within(20, lambda: index.search(QUERIES, 3)), index.search(QUERIES, 3))
    assert within(20, index.close) is None
    if on_disk:
        with Index.open(path, verify=True) as again:
            again.add(POOL[20:40])
            held(again, 40)
    over.set()
    thread.join()


def test_an_index_is_closed_though_another_thread_left_an_inner_batch(tmp_path, index) -> None:
    outer, inner = index.batch(), index.batch()
    thread = threading.Thread(target=lambda: (outer.__enter__(), inner.__enter__()))
    thread.start()
    thread.join()
    with pytest.raises(UnsupportedError, match="was left by another"):
        inner.__exit__(None, None, None)
    assert within(20, index.close) is None
    with pytest.raises(UnsupportedError, match="was left by another"):
        outer.__exit__(None, None, None)
    with Index.open(tmp_path / "index", verify=True) as again:
        held(again)


def test_any_thread_may_close_an_index(tmp_path, index) -> None:
    lock = index._writer.store._lock  # which is let go of, and not only forgotten
    thread = threading.Thread(target=index.close)
    thread.start()
    thread.join()
    assert not lock.is_locked
    with Index.open(tmp_path / "index") as again:
        held(again)


def test_an_iterator_that_changes_the_index_is_refused(index) -> None:
    def parts():
        yield POOL[20:25]
        assert index.add(POOL[20:30])[0] == 20  # acknowledged, so it stays

    with pytest.raises(UnsupportedError, match="changed the index itself"):
        index.add(parts())
    held(index, 30)
    index.verify()


MEANWHILE = ("meanwhile", "is closed")


def refusal(deed):
    """Why a change was refused: the words that say so; nothing if it was made."""
    try:
        deed()
    except UnsupportedError as error:
        return next((words for words in ("being changed", *MEANWHILE) if words in str(error)), str(error))
    return ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what an interrupt left open is closed
def test_a_handler_of_a_signal_that_changes_the_index_loses_nothing(in_memory) -> None:
    """It runs between any two lines of a change: another add, compact or close, or a look that ends in Ctrl-C."""
    path, turn, answers = in_memory / "index", 0, set()
    while True:
        turn += 1
        shutil.rmtree(path, ignore_errors=True)
        index = Index.create(path, fitted("signs"), n_threads=1)
        index.add(POOL[:20])
        deeds = (
            partial(index.add, POOL[40:43], [40, 41, 42]),
            index.compact,
            index.close,
            partial(signal.default_int_handler, 2, None),
        )
        kind, inner = turn % len(deeds), []

        def handler(deed=deeds[kind], inner=inner, index=index):
            assert len(index.ids) == len(index)
            inner.append(refusal(deed))

        with Handler(turn, handler) as tracer:
            try:
                outer = refusal(partial(index.remove, [3]))
            except KeyboardInterrupt:
                inner, outer = [""], "made" if 3 not in Index.open(path, read_only=True) else "not made"
        if not tracer.ran:
            break
        assert outer in ("", *MEANWHILE) or kind == 3
        assert inner[0] in ("", "being changed")
        answers.add((kind, inner[0]))
        model = Model("signs")
        model.put(model.encode(POOL[:20]), range(20))
        if not inner[0] and kind == 0:
            model.put(model.encode(POOL[40:43]), [40, 41, 42])
        if outer in ("", "made"):
            model.drop([3])
        check_holds(index, model)
        with Index.open(path, read_only=True, verify=True) as disk:
            check_holds(disk, model)
        if inner[0] or kind != 2:  # it is still open, and can be used on
            index.add(POOL[50:51], [50])
        index.close()
    assert turn > 300
    assert answers == {(kind, answer) for kind in range(3) for answer in ("", "being changed")} | {(3, "")}


# Forks.


def child_ends(function, seconds=20):
    """What a function gives in a fork that is killed if it hangs."""

    def guarded():
        signal.alarm(seconds)
        return function()

    return in_child(guarded)


@forks
@pytest.mark.parametrize("on_disk", [True, False])
def test_a_fork_while_a_thread_writes_does_not_hang(tmp_path, on_disk: bool) -> None:
    index = Index.create(tmp_path / "index" if on_disk else None, fitted("signs"), n_threads=1)
    index.add(POOL[:20])
    within, over = threading.Event(), threading.Event()

    def write():
        with index.batch():
            index.add(POOL[20:30])
            within.set()
            over.wait()

    thread = threading.Thread(target=write)
    thread.start()
    within.wait()

    def batch():
        with index.batch():
            index.add(POOL[:5])
        return len(index)

    changes = (lambda: len(index.add(POOL[:5])), batch, lambda: index.remove([0]), index.compact)
    try:
        for change in changes:
            result = child_ends(change)
            if on_disk:
                assert isinstance(result, UnsupportedError) and "its parent writes to it" in str(result)
            else:
                assert result in (5, 25, None)  # a copy of its own
        for deed in (index.close, index.refresh, index.verify):
            assert child_ends(deed) is None
        assert_same(child_ends(lambda: index.search(QUERIES, 3)), index.search(QUERIES, 3))
    finally:
        over.set()
        thread.join()
    held(index, 30, ())
    index.add(POOL[30:40])
    held(index, 40, ())
    index.verify()


@forks
def test_a_fork_while_a_thread_refreshes_does_not_hang(tmp_path, index) -> None:
    reader = Index.open(tmp_path / "index", read_only=True)
    within, over = threading.Event(), threading.Event()

    def refresh():
        with reader._writer._mutex:
            within.set()
            over.wait()

    thread = threading.Thread(target=refresh)
    thread.start()
    within.wait()
    try:
        for deed in (reader.refresh, reader.close, lambda: reader.search(QUERIES, 1) and None):
            assert child_ends(deed) is None
    finally:
        over.set()
        thread.join()


@forks
def test_a_fork_within_a_batch_leaves_the_batch_to_its_parent(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antisparse.index.writer._SEGMENT_ROWS", 4)  # so that files are there before the end
    path = tmp_path / "index"
    index = Index.create(path, fitted("signs"))
    statuses = []
    try:
        with index.batch():
            index.add(POOL[:20])
            before = contents(path)
            child = os.fork()
            if child:
                statuses.append(os.waitpid(child, 0)[1])
                assert contents(path) == before  # not even what is not yet part of the index
            index.add(POOL[20:30])
    except UnsupportedError:
        os._exit(7)
    finally:
        if not child:
            os._exit(1)
    assert [os.waitstatus_to_exitcode(status) for status in statuses] == [7]
    held(index, 30, ())
    index.verify()
    index.close()


# Folders that change.


def test_a_reader_finds_its_folder_made_anew(tmp_path, index) -> None:
    path, name = tmp_path / "index", "codebooks cells nibble"
    reader, old = Index.open(path, read_only=True), held(index)
    shutil.rmtree(path)
    model = Model(name)
    with Index.create(path, model.codec) as new:
        model.put(model.encode(POOL), new.add(POOL))
    check_holds(reader, old)
    check_search(reader, old)
    reader.refresh()
    assert reader.codec == model.codec and reader.stats()["cells"] == model.codec.n_cells
    check_holds(reader, model)
    check_search(reader, model)
    np.testing.assert_array_equal(reader.reconstruct([5]), model.codec.decode(model.codes([5])))


@pytest.mark.parametrize("way", ["create", "save"])
def test_a_folder_that_lost_its_manifest_is_not_taken_for_empty(tmp_path, index, way: str) -> None:
    path = tmp_path / "index"
    index.close()
    kept = (path / "manifest.json").read_bytes()
    (path / "manifest.json").unlink()
    before = contents(path)
    make = {"create": lambda: Index.create(path, fitted("lsh")), "save": lambda: index.save(path)}[way]
    with pytest.raises(InputError, match=r"holds files of an index, but no manifest\.json; put it back"):
        make()
    assert contents(path) == before
    (path / "manifest.json").write_bytes(kept)
    with Index.open(path, verify=True) as again:
        held(again)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_creation_that_fails_leaves_no_folder(tmp_path, monkeypatch: pytest.MonkeyPatch, there, call: str) -> None:
    path = tmp_path / "index"
    if there:
        path.mkdir()
    filled = Index.create(None, fitted("signs"))
    filled.add(POOL)

    def full(*_):
        raise OSError(28, "No space left on device")

    for make in (lambda: Index.create(path, fitted("signs")), lambda: filled.save(path)):
        with monkeypatch.context() as patch:
            patch.setattr(files.os, call, full)
            with pytest.raises(StorageError, match="No space left"):
                make()
        assert path.exists() == there and set(os.listdir(tmp_path)) <= {"index"}
        assert not there or set(os.listdir(path)) <= {".lock"}
    filled.save(path)
    held(Index.open(path, read_only=True, verify=True), 150, ())


@pytest.mark.parametrize("way", ["create", "save"])
def test_a_codec_that_could_not_be_opened_again_makes_no_index(tmp_path, way: str) -> None:
    filled = Index.create(None, Codec.from_bytes(fitted("lsh").to_bytes()))  # of its own
    filled.add(POOL[:20])
    object.__setattr__(filled.codec.scale, "sigma", float("nan"))  # whatever makes one so
    make = {"create": lambda: Index.create(tmp_path / "index", filled.codec), "save": lambda: filled.save("index")}[way]
    with pytest.raises(FormatError, match="sigma"), contextlib.chdir(tmp_path):
        make()
    assert os.listdir(tmp_path) == []


def test_a_new_folder_is_on_the_disk_before_its_manifest(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, at, real = [], [], os.fsync
    wanted = os.stat(tmp_path).st_ino

    def fsync(descriptor):
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    def replace(source, target):
        if target.name == "manifest.json":
            at.append(len(synced))
        os.rename(source, target)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    monkeypatch.chdir(tmp_path)
    for number, path in enumerate((tmp_path / "one", "two", "./three")):
        Index.create(path, fitted("signs")).close()
        assert wanted in synced[: at[number]]
        assert os.stat(path).st_ino in synced[at[number] :]
        at[number] += len(synced) - at[number]
        synced[:] = [0] * len(synced)


def test_a_relative_path_names_one_folder_wherever_the_process_goes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        with Index.create("index", fitted("signs"), n_threads=1) as made:
            made.add(POOL[:20] if folder == "here" else POOL[20:40])
    monkeypatch.chdir(tmp_path / "here")
    reader = Index.open("index", read_only=True)
    with Index.open("index") as writer:
        monkeypatch.chdir(tmp_path / "there")
        before = contents(tmp_path / "there" / "index")
        writer.remove([3])
        reader.refresh()
        for index in (writer, reader):
            held(index)
            index.verify()
    assert contents(tmp_path / "there" / "index") == before
    monkeypatch.chdir(tmp_path / "here")
    with Index.create("new", fitted("signs")) as created:
        monkeypatch.chdir(tmp_path)
        created.add(POOL[:20])
        created.remove([3])
    held(Index.open(tmp_path / "here" / "new", read_only=True, verify=True))


@forks
def test_a_process_whose_own_folder_is_gone(tmp_path) -> None:
    codec = fitted("signs")

    def gone():
        (tmp_path / "own").mkdir()
        os.chdir(tmp_path / "own")
        (tmp_path / "own").rmdir()
        for deed in (
            lambda: Index.create("index", codec),
            lambda: Index.build(POOL, 4, path="index"),
            lambda: Index.open("index"),
            lambda: Index.open("."),
            lambda: codec.save("codec"),
        ):
            with pytest.raises((InputError, StorageError, FormatError)):
                deed()
        with Index.create(tmp_path / "index", codec) as index:  # which does not depend on it
            index.add(POOL[:20])
            index.remove([3])

    assert in_child(gone) is None
    held(Index.open(tmp_path / "index", read_only=True, verify=True))


def test_a_package_that_is_replaced_beneath_a_process_stops_no_change(tmp_path, monkeypatch: pytest.MonkeyPatch, index):
    def gone(_):
        raise importlib.metadata.PackageNotFoundError("antisparse")

    monkeypatch.setattr(importlib.metadata, "distribution", gone)  # where the version of a package is read from
    index.remove([5])
    index.save(tmp_path / "copy")
    index.codec.save(tmp_path / "codec")
    for path in (tmp_path / "index", tmp_path / "copy"):
        held(Index.open(path, read_only=True, verify=True), 20, (3, 5))
    assert Codec.load(tmp_path / "codec") == index.codec


# Files that are none.


@alarms
@pytest.mark.parametrize("kind", ["fifo", "endless", "folder", "dangling"])
def test_only_regular_files_are_read(tmp_path, index, kind: str) -> None:
    path = tmp_path / "index"
    index.close()
    fitted("signs").save(tmp_path / "codec")

    def put(place):
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "endless":
            place.symlink_to("/dev/zero")
        elif kind == "dangling":
            place.symlink_to("nowhere")
        else:
            place.mkdir()

    def opened():
        signal.alarm(20)
        for options in ({"read_only": True}, {}, {"read_only": True, "memory": True}, {"verify": True}):
            with pytest.raises(FormatError):
                Index.open(path, **options)

    for name in sorted(contents(path)):
        (path / name).rename(tmp_path / "kept")
        put(path / name)
        assert in_child(opened) is None
        (path / name).rmdir() if kind == "folder" else (path / name).unlink()
        (tmp_path / "kept").rename(path / name)
    (tmp_path / "codec").unlink()
    put(tmp_path / "codec")
    error = child_ends(lambda: Codec.load(tmp_path / "codec"))
    assert isinstance(error, FileNotFoundError if kind == "dangling" else FormatError)
    (path / ".lock").unlink()
    put(path / ".lock")
    error = child_ends(lambda: Index.open(path))
    assert isinstance(error, FormatError) and ".lock is not a regular file" in str(error)
    assert not os.path.exists(path / "nowhere")
    (path / ".lock").rmdir() if kind == "folder" else (path / ".lock").unlink()
    with Index.open(path) as again:
        held(again)


def test_reads_are_bounded(tmp_path, index) -> None:
    index.close()
    for place, read in (
        (tmp_path / "codec", lambda: Codec.load(tmp_path / "codec")),
        (tmp_path / "index" / "manifest.json", lambda: Index.open(tmp_path / "index", read_only=True)),
    ):
        with open(place, "wb") as file:
            file.truncate(1 << 40)  # which takes no room on the disk
        with pytest.raises(FormatError, match="more than the"):
            read()


@forks
def test_codes_in_memory_outlive_files_that_are_truncated(tmp_path, index) -> None:
    path, model = tmp_path / "index", held(index)
    index.close()
    mapped = Index.open(path, read_only=True)
    with Index.open(path, memory=True) as writer:
        reader = Index.open(path, read_only=True, memory=True)
        model.put(model.encode(POOL[20:40]), writer.add(POOL[20:40]))
        reader.refresh()

        def truncated():
            faulthandler.disable()  # which has much to say of the last line
            for file in path.glob("*-*.safetensors"):
                os.truncate(file, 0)
            for one in (writer, reader):
                check_holds(one, model)
                check_search(one, model)
            (tmp_path / "outlived").touch()
            mapped.search(QUERIES, 3)  # where the system ends it

        child = multiprocessing.get_context("fork").Process(target=truncated)
        child.start()
        child.join()
        assert (tmp_path / "outlived").exists() and child.exitcode == -signal.SIGBUS  # in the last line
    with pytest.raises(FormatError, match="where the manifest says"):
        Index.open(path, memory=True)
    with pytest.raises(InputTypeError, match="memory must be True or False"):
        Index.open(path, memory=1)


# Paths that are none.


@pytest.mark.parametrize("path", [5, 1.5, b"index", object(), ["index"], "", "a\0b", "\ud800", np.array(["index"])])
def test_what_is_no_path_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch, path) -> None:
    monkeypatch.chdir(tmp_path)
    codec, filled = fitted("signs"), Index.create(None, fitted("signs"))
    deeds = (
        lambda: Index.open(path),
        lambda: Index.create(path, codec),
        lambda: Index.build(POOL, 4, path=path),
        lambda: filled.save(path),
        lambda: codec.save(path),
        lambda: Codec.load(path),
    )
    kind = InputError if isinstance(path, str) else InputTypeError
    for deed in deeds:
        with pytest.raises(kind, match="path"):
            deed()
    assert os.listdir() == []


def test_names_that_the_system_refuses(tmp_path) -> None:
    codec, path = fitted("signs"), tmp_path / ("x" * 300)
    with pytest.raises(InputError, match="no such folder"):
        Index.open(path)
    with pytest.raises(StorageError, match="path = "):
        Index.create(path, codec)
    with pytest.raises(StorageError, match="could not be written"):
        codec.save(path)
    with pytest.raises(StorageError, match="could not be read"):
        Codec.load(path)
    assert os.listdir(tmp_path) == []
