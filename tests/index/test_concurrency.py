import multiprocessing
import os
import threading
import time

import numpy as np
import pytest
from models import POOL, QUERIES, Model, assert_same, check_holds, check_search, fitted, forked_threads, forks

from antisparse import Index, LockedError, UnsupportedError

SECONDS = 3.0
pytestmark = forked_threads


def in_child(function):
    """What a function gives in a forked process, or its error."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def run():
        try:
            results.put(function())
        except BaseException as error:
            results.put(error)

    child = context.Process(target=run)
    child.start()
    result = results.get()
    child.join()
    assert child.exitcode == 0
    return result


@pytest.mark.parametrize("name", ["byte", "scale cells"])
def test_searches_see_one_state_while_another_thread_writes(tmp_path, name: str) -> None:
    index = Index.create(tmp_path / "index", fitted(name))
    model = Model(index.encoder, "l2")
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
    random, end = np.random.default_rng(0), time.monotonic() + SECONDS / 2
    while time.monotonic() < end and not errors:
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
        assert any(np.array_equal(found, s[2]) and np.allclose(distances, s[1], rtol=1e-9) for s in between)
    index.verify()
    check_holds(index, model)


def test_batches_of_threads_come_one_after_the_other(tmp_path) -> None:
    index = Index.create(tmp_path / "index", fitted("tight"))

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
def test_an_index_can_be_searched_after_a_fork(tmp_path) -> None:
    index = Index.create(tmp_path / "index", fitted("byte"))
    index.add(POOL)
    expected = index.search(QUERIES, 5)
    assert_same(in_child(lambda: index.search(QUERIES, 5, n_threads=2)), expected)
    assert_same(in_child(lambda: Index.open(tmp_path / "index", read_only=True).search(QUERIES, 5)), expected)


@forks
def test_a_fork_does_not_write_and_does_not_unlock(tmp_path) -> None:
    index = Index.create(tmp_path / "index", fitted("byte"))
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
    index = Index.create(path, fitted("tight"))
    for function in (lambda: Index.open(path), lambda: Index.create(path, fitted("tight"))):
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


def test_a_reader_outlives_its_files(tmp_path) -> None:
    path = tmp_path / "index"
    model = Model(fitted("scale cells"), "l2")
    index = Index.create(path, model.encoder)
    for at in range(0, 60, 20):
        model.put(model.encode(POOL[at : at + 20]), index.add(POOL[at : at + 20]))
    index.remove([3])
    model.drop([3])
    reader, before = Index.open(path, read_only=True), set(os.listdir(path))
    index.remove([0, 1, 2])
    index.compact()
    assert len(before & set(os.listdir(path))) == 3  # the encoder, the manifest, the lock
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
    Index.create(path, fitted("tight")).close()
    context = multiprocessing.get_context("fork")
    over = context.Event()

    def write():
        with Index.open(path) as index:
            while not over.is_set():
                index.update(POOL[:10], index.add(POOL[:10]))
                index.compact()

    writer = context.Process(target=write)
    writer.start()
    end, seen = time.monotonic() + SECONDS / 2, set()
    try:
        reader = Index.open(path, read_only=True)
        while time.monotonic() < end:
            seen.add(len(reader))
            assert len(reader) % 10 == 0 and (reader.search(POOL[:2], 1)[1] >= 0).all() == bool(len(reader))
            reader.verify()
            reader.refresh()
            Index.open(path, read_only=True, verify=True).close()
    finally:
        over.set()
    writer.join()
    assert writer.exitcode == 0 and len(seen) > 1
