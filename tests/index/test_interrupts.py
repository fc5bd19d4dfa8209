"""An operation that is interrupted, at whatever line, is made or not made: on the disk, in memory and in the model."""

import gc
import os
import shutil
import signal
import time
from functools import partial

import numpy as np
import pytest
from interrupts import Interrupter
from models import POOL, Model, check_holds, check_search
from test_crash import CASES, CODECS, operations, same, strays

from antisparse import Codec, Index

INTERRUPTS = int(os.environ.get("ANTISPARSE_INTERRUPTS", "2000"))
# What an interrupted `with` leaves open is closed when its frame is freed, as Python says it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
_NEVER = 10**9


def interrupted(operation, kind, lengths, random):
    """Whether the operation was interrupted; at any of its events, as far as one that was not interrupted told."""
    measured = kind in lengths and random.random() < 0.95
    was, count = interrupted_at(operation, int(random.integers(1, lengths[kind] + 1)) if measured else _NEVER)
    if not was:
        lengths[kind] = count
    return was


def interrupted_at(operation, turn):
    """Whether the operation was interrupted, and how many events it had until then."""
    with Interrupter(turn) as tracer:
        try:
            operation()
        except KeyboardInterrupt:
            assert tracer.raised
            return True, tracer.count
        except BaseException as error:
            raise AssertionError(f"an interrupt at event {turn} became {error!r}") from error
    return False, tracer.count


@pytest.mark.parametrize(("name", "keeps"), CASES)
def test_an_interrupted_operation_is_made_or_not_made(in_memory, name: str, keeps: str | None) -> None:
    path, random = in_memory / "index", np.random.default_rng([INTERRUPTS, CASES.index((name, keeps))])
    model, lengths = Model(name, keeps=keeps), {}
    index = model.create(path, n_threads=1)
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    changes, count, outcomes = operations(0, model), 0, [0, 0]
    while count < INTERRUPTS // len(CODECS):
        if random.random() < 0.15:  # a copy of the whole, and of the codec alone
            count += check_save(index, model, in_memory / "copy", lengths, random)
            continue
        kind, operation, after = next(changes)
        before = index.snapshot.manifest
        was = interrupted(partial(operation, index), kind, lengths, random)
        count += was
        with Index.open(path, read_only=True, verify=count % 10 == 0) as disk:
            made = same(disk, after) and disk.snapshot.next_id == after.next_id
            outcomes[made] += was
            assert was or made
            if not made:
                after = model
            check_holds(disk, after)
            check_holds(index, after)
            assert index.snapshot.next_id == disk.snapshot.next_id == after.next_id
            assert index.snapshot.manifest == disk.snapshot.manifest
        if not was and index.snapshot.manifest != before:  # a change cleans up; there may be none to make
            assert not strays(path)
        if len(after.rows) > 400:
            after = after.copy()
            index.remove(after.ids)
            after.drop(after.ids)
        model = after
        if count % 50 == 0:
            check_search(index, model)
            index.close()
            index = Index.open(path, n_threads=1, memory=bool(count % 100))
        changes = operations(count + 10**6 * sum(outcomes), model)
    index.close()
    del index, disk, operation, changes  # and their maps
    gc.collect()
    if descriptors is not None:  # a descriptor is lost where the interrupt comes in the line that opened or closes it
        files = 1 if keeps is None else 2  # of a segment, of the snapshots that warnings of what was left open hold
        assert len(os.listdir("/proc/self/fd")) <= descriptors + files * (12 + count // 20)
    assert min(outcomes) > INTERRUPTS // 100


def check_save(index, model, path, lengths, random):
    """Save a copy, interrupted: it is whole, or not there; then the codec over another one. Returns how many were."""
    was = interrupted(lambda: index.save(path), "save", lengths, random)
    assert was or path.exists()
    if path.exists():
        with Index.open(path, verify=True) as copy:
            check_holds(copy, model)
            assert copy.snapshot.next_id == model.next_id
        assert not strays(path)
        shutil.rmtree(path)
    count = was
    before = Model("lsh").codec
    path.mkdir()
    before.save(path / "codec")
    was = interrupted(lambda: model.codec.save(path / "codec"), "codec", lengths, random)
    assert Codec.load(path / "codec") in (before, model.codec)
    assert os.listdir(path) == ["codec"]
    shutil.rmtree(path)
    return count + was


def test_an_interrupted_creation_leaves_nothing(in_memory) -> None:
    path, turn, was = in_memory / "index", 0, True
    while was:
        turn += 1
        was, _ = interrupted_at(lambda: Index.create(path, Model("spread").codec).close(), turn)
        if path.exists():  # all of it is there
            with Index.open(path, verify=True) as index:
                assert len(index.add(POOL[:3])) == 3
            shutil.rmtree(path)
        assert os.listdir(in_memory) == []
    assert turn > 100


def test_an_interrupted_open_or_refresh_leaves_no_lock(in_memory) -> None:
    path, turn, was = in_memory / "index", 0, True
    model = Model("spread")
    with Index.create(path, model.codec) as index:
        model.put(model.encode(POOL[:9]), index.add(POOL[:9]))
        reader = Index.open(path, read_only=True)
        model.put(model.encode(POOL[:9]), index.add(POOL[:9]))
    while was:
        turn += 1
        was, _ = interrupted_at(lambda: Index.open(path).close(), turn)
        again, _ = interrupted_at(reader.refresh, turn)
        assert len(reader) == 18 or (again and len(reader) == 9)
        with Index.open(path) as index:  # no one holds the lock
            check_holds(index, model)
    check_holds(reader, model)
    assert turn > 100


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize("keeps", [None, "text"])
def test_signals_that_come_at_any_time(in_memory, keeps: str | None) -> None:
    """The same by real signals, which come within NumPy, filelock and the kernels too."""
    path, random = in_memory / "index", np.random.default_rng(INTERRUPTS)
    model, count, seconds = Model("signs", keeps=keeps), 0, 0.01
    index = model.create(path, n_threads=1)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for turn in range(INTERRUPTS // 10):
            _, operation, after = next(operations(turn, model))
            start, was = time.perf_counter(), False
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, seconds))
                operation(index)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                was = True
            else:
                seconds = 1.2 * (time.perf_counter() - start)
            count += was
            with Index.open(path, read_only=True) as disk:
                model = after if same(disk, after) else model
                assert was or model is after
                check_holds(disk, model)
                check_holds(index, model)
            if len(model.rows) > 400:
                index.remove(model.ids)
                model.drop(model.ids)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert count > INTERRUPTS // 50
    index.close()
    with Index.open(path, verify=True) as opened:
        check_holds(opened, model)
