import multiprocessing
import os
import shutil
import threading
import time

import numpy as np
import pytest
from models import (
    NAMES,
    POOL,
    QUERIES,
    Model,
    assert_same,
    check_holds,
    check_search,
    fitted,
    forked_threads,
    forks,
    searches,
)
from zoo import methods

from antisparse import Index, LockedError, StorageError, UnsupportedError

SECONDS, MOST_SECONDS = 3.0, 120.0  # a busy machine takes longer to do what a test asks for


def going_on(seconds, enough):
    """True for some time, and then until there was enough, but not for ever."""
    start = time.monotonic()

    def ask():
        took = time.monotonic() - start
        return took < seconds or (took < MOST_SECONDS and not enough())

    return ask


pytestmark = forked_threads


def in_child(function):
    """What a function gives in a forked process, or its error."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def run():
        try:
            sending.send(function())
        except BaseException as error:
            sending.send(error)

    child = context.Process(target=run)
    child.start()
    sending.close()
    try:
        result = receiving.recv()
    except EOFError:  # it was killed
        result = None
    child.join()
    assert child.exitcode == 0
    return result


# A bias byte, cells with a nibble that changes between them, cells with a scale byte, floats of scales. Each takes a
# second and a half, so not all of the zoo.
@pytest.mark.parametrize("name", ["signs", "codebooks cells nibble", "signs cells scale", "spread"])
def test_searches_see_one_state_while_another_thread_writes(tmp_path, name: str) -> None:
    index = Index.create(tmp_path / "index", fitted(name))
    model = Model(name)
    states, checked, errors = [], [], []
    over = threading.Event()

    def expect():
        ids = model.ids
        distances = model.search(QUERIES[:2], 6)[0]
        states.append((ids, distances, model.search(QUERIES[:2], 6)[1]))

    def look():
        try:
            while not over.is_set():
                first = max(len(states) - 2, 0)  # the operation under way may be over before it is written down
                ids = index.ids
                distances, found = index.search(QUERIES[:2], 6, n_threads=1)
                limits, _, near = index.range_search(QUERIES[:1], np.inf)
                assert limits[-1] == len(np.unique(near)) == len(near)
                time.sleep(0.001)
                checked.append((first, len(states) + 1, ids, distances, found, np.sort(near)))
        except BaseException as error:
            errors.append(error)
            raise

    expect()
    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    random, more = np.random.default_rng(0), going_on(SECONDS / 2, lambda: len(states) > 3 and len(checked) > 8)
    while not errors and more():
        kind = random.integers(4)
        if kind == 0 or len(model.rows) < 20:
            X = random.permutation(POOL)[:15]
            model.put(model.encode(X), index.add(X))
        elif kind == 1:
            ids = random.permutation(model.ids)[:10]
            index.remove(ids)
            model.drop(ids)
        elif kind == 2:
            ids, X = random.permutation(model.ids)[:10], random.permutation(POOL)[:10]
            index.update(X, ids)
            model.put(model.encode(X), ids)
        else:
            index.compact()
        expect()
    over.set()
    for thread in threads:
        thread.join()
    assert not errors and len(states) > 3 and len(checked) > 8
    for first, last, ids, distances, found, near in checked:
        between = states[first : last + 1]
        assert any(np.array_equal(ids, state[0]) for state in between)
        assert any(np.array_equal(near, state[0]) for state in between)
        assert any(np.array_equal(found, s[2]) and np.array_equal(distances, s[1]) for s in between)
    index.verify()
    check_holds(index, model)


def test_batches_of_threads_come_one_after_the_other(tmp_path) -> None:
    index = Index.create(tmp_path / "index", fitted("spread"))

    given = []

    def write():
        for _ in range(4):
            with index.batch():
                given.append([*index.add(POOL[:3]), *index.add(POOL[:2])])

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 4 * 4 * 5 == len(np.unique(given)) and (np.diff(given) == 1).all()
    index.verify()


@forks
@pytest.mark.parametrize("name", ["signs", "codebooks cells nibble", "signs cells scale", "spread", "spectral"])
def test_an_index_can_be_searched_after_a_fork(tmp_path, name: str) -> None:
    index = Index.create(tmp_path / "index", fitted(name))
    index.add(POOL)
    for options in searches(name):
        expected = index.search(QUERIES, 5, **options)
        assert_same(in_child(lambda o=options: index.search(QUERIES, 5, n_threads=2, **o)), expected)
        opened = in_child(lambda o=options: Index.open(tmp_path / "index", read_only=True).search(QUERIES, 5, **o))
        assert_same(opened, expected)


@forks
def test_a_fork_does_not_write_and_does_not_unlock(tmp_path) -> None:
    index = Index.create(tmp_path / "index", fitted("signs"))
    error = in_child(lambda: index.add(POOL))
    assert isinstance(error, UnsupportedError) and "fork" in str(error)
    in_child(index.close)
    assert isinstance(in_child(lambda: Index.open(tmp_path / "index")), LockedError)
    index.add(POOL)
    index.close()
    assert in_child(lambda: len(Index.open(tmp_path / "index"))) == len(POOL)


@forks
def test_one_process_writes(tmp_path) -> None:
    path = tmp_path / "index"
    index = Index.create(path, fitted("spread"))
    for function in (lambda: Index.open(path), lambda: Index.create(path, fitted("spread"))):
        error = in_child(lambda function=function: type(function()))
        assert isinstance(error, LockedError) or "is an index already" in str(error)
    with pytest.raises(LockedError, match="open for writing elsewhere"):
        Index.open(path)  # nor twice in one
    assert in_child(lambda: len(Index.open(path, read_only=True))) == 0
    index.close()
    index.close()
    with Index.open(path) as again:
        again.add(POOL[:4])
    assert in_child(lambda: len(Index.open(path))) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_outlives_its_files(tmp_path, name: str) -> None:
    path = tmp_path / "index"
    model = Model(name)
    index = Index.create(path, model.codec)
    for at in range(0, 60, 20):
        model.put(model.encode(POOL[at : at + 20]), index.add(POOL[at : at + 20]))
    index.remove([3])
    model.drop([3])
    reader, before = Index.open(path, read_only=True), set(os.listdir(path))
    index.remove([0, 1, 2])
    index.compact()
    assert len(before & set(os.listdir(path))) == 3  # the codec, the manifest, the lock
    check_holds(reader, model)
    check_search(reader, model, allowed=np.arange(30), given=np.arange(30))
    assert reader.stats()["vectors"] == 59 and reader.stats()["disk_bytes"] > 0
    reader.verify()  # of what is there now
    reader.refresh()
    model.drop([0, 1, 2])
    check_holds(reader, model)
    reader.close()
    reader.refresh()
    assert len(reader) == 56


@forks
def test_readers_open_while_a_process_writes(tmp_path) -> None:
    path = tmp_path / "index"
    Index.create(path, fitted("spread")).close()
    context = multiprocessing.get_context("fork")
    over = context.Event()

    def write():
        with Index.open(path) as index:
            while not over.is_set():
                index.update(POOL[:10], index.add(POOL[:10]))
                index.compact()

    writer = context.Process(target=write)
    writer.start()
    seen = set()
    more = going_on(SECONDS / 2, lambda: len(seen) > 1)
    try:
        reader = Index.open(path, read_only=True)
        while more():
            seen.add(len(reader))
            assert len(reader) % 10 == 0 and (reader.search(POOL[:2], 1)[1] >= 0).all() == bool(len(reader))
            reader.verify()
            reader.refresh()
            Index.open(path, read_only=True, verify=True).close()
    finally:
        over.set()
    writer.join()
    assert writer.exitcode == 0 and len(seen) > 1


@pytest.mark.parametrize("name", ["signs", "codebooks cells nibble", "signs cells scale", "spread"])
def test_readers_refresh_while_threads_search_with_them(tmp_path, name: str) -> None:
    path, method = tmp_path / "index", methods(name)[0]
    index, model = Index.create(path, fitted(name)), Model(name)
    model.put(model.encode(POOL[:40]), index.add(POOL[:40]))
    reader, states, checked, errors = Index.open(path, read_only=True), [], [], []
    over = threading.Event()

    def looked_at():
        return {ids.tobytes() for ids, _ in list(checked)}

    def expect():
        states.append((model.ids, model.search(QUERIES, 9, method=method)))

    def look():
        try:
            while not over.is_set():
                snapshot = reader.snapshot  # never changes, whatever is refreshed meanwhile
                ids = snapshot.ids
                checked.append((ids, reader.search(QUERIES, 9, method=method, n_threads=1)))
                reader.stats()
                np.testing.assert_array_equal(snapshot.ids, ids)
                time.sleep(0.001)
        except BaseException as error:
            errors.append(error)
            raise

    def refresh():
        try:
            while not over.is_set():
                reader.refresh()
        except BaseException as error:
            errors.append(error)
            raise

    expect()
    threads = [threading.Thread(target=target) for target in [look] * 4 + [refresh] * 2]
    for thread in threads:
        thread.start()
    random = np.random.default_rng(0)
    more = going_on(SECONDS / 3, lambda: len(states) > 5 and len(checked) > 20 and len(looked_at()) > 2)
    while not errors and more():
        gone = random.permutation(model.ids)[:8]
        X = random.permutation(POOL)[:10]
        model.drop(gone)
        model.put(model.encode(X), model.next_id + np.arange(10))
        expect()  # before it can be seen
        with index.batch():
            index.remove(gone)
            index.add(X)
        if random.random() < 0.2:
            index.compact()
    over.set()
    for thread in threads:
        thread.join()
    assert not errors and len(states) > 5 and len(checked) > 20
    seen = set()
    for ids, found in checked:
        seen.add(next(at for at, state in enumerate(states) if np.array_equal(state[0], ids)))
        assert any(np.array_equal(found[1], s[1]) and np.array_equal(found[0], s[0]) for _, s in states)
    assert len(seen) > 2  # the reader did move on
    reader.refresh()
    check_holds(reader, model)
    check_search(reader, model)


# A writer whose folder was taken away.


def contents(path):
    return {name: (path / name).read_bytes() for name in os.listdir(path) if name != ".lock"}


@pytest.mark.parametrize("how", ["remove", "rename", "same"])
@pytest.mark.parametrize("locked", [False, True])
def test_a_stale_writer_does_not_touch_the_index_that_is_there_now(tmp_path, how: str, locked: bool) -> None:
    path = tmp_path / "index"
    stale = Index.create(path, fitted("signs"))
    stale.add(POOL[:20])
    if how == "remove":
        shutil.rmtree(path)
    else:
        path.rename(tmp_path / "elsewhere")
    if how == "same":  # a copy of itself, say from a backup: the very same manifest
        shutil.copytree(tmp_path / "elsewhere", path)
        model = Model("signs")
        model.put(model.encode(POOL[:20]), range(20))
        new = Index.open(path)
    else:
        model = Model("codebooks cells nibble")
        new = Index.create(path, model.codec)
        model.put(model.encode(POOL), new.add(POOL))
    if not locked:
        new.close()
    before = contents(path)
    changes = (
        lambda: stale.add(POOL[:5]),
        lambda: stale.remove([1]),
        lambda: stale.update(POOL[:1], [2]),
        stale.compact,
    )
    for _ in range(2):  # nor after the first refusal
        for change in changes:
            if change is stale.compact and not len(stale.snapshot.segments) > 1:
                continue  # there is nothing to do
            with pytest.raises(StorageError, match=r"was (removed or replaced|changed by another writer).*open"):
                change()
            assert contents(path) == before
    assert len(stale) == 20 and stale.codec == fitted("signs")  # what it has it still finds
    stale.search(QUERIES, 3)
    stale.close()
    if locked:  # nor does it give away the lock that another holds
        with pytest.raises(LockedError):
            Index.open(path)
        model.put(model.encode(POOL[:3]), new.add(POOL[:3]))
        new.close()
    with Index.open(path, verify=True) as opened:
        check_holds(opened, model)
        check_search(opened, model)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("writes", [True, False])  # a segment, or the manifest alone
def test_a_folder_that_is_replaced_during_a_batch_is_not_written_to(tmp_path, same: bool, writes: bool) -> None:
    path, other = tmp_path / "index", tmp_path / "other"
    with Index.create(path, fitted("signs")) as index:
        index.add(POOL[:20])
        if same:
            shutil.copytree(path, other)  # with the very same manifest
        else:
            Index.create(other, fitted("codebooks")).close()
        with pytest.raises(StorageError, match="was removed or replaced since it was opened"), index.batch():  # noqa: PT012
            index.add(POOL[:5]) if writes else index.remove(index.ids)
            path.rename(tmp_path / "before")
            other.rename(path)
            before = contents(path)
        assert len(index) == 20
        assert contents(path) == before
    with Index.open(tmp_path / "before", verify=True) as moved:
        assert len(moved) == 20


def test_a_writer_whose_folder_is_gone_says_so(tmp_path) -> None:
    path = tmp_path / "index"
    index = Index.create(path, fitted("signs"))
    index.add(POOL[:20])
    shutil.rmtree(path)
    for _ in range(2):
        with pytest.raises(StorageError):
            index.add(POOL[:5])
    assert len(index) == 20 and not path.exists()
