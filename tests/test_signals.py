"""Every long call of the native core handles signals while it works, on one thread and on several."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from antisparse import _core, hamming_search, tight_frame
from antisparse.codes import scan_blocks

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
Call = Callable[[], object]
RNG = np.random.default_rng(0)
LATEST = 0.5  # seconds after a signal
BITS = RNG.integers(0, 256, (200_000, 16), np.uint8)


class Alarm(Exception):
    """Raised by the handler of a signal, as KeyboardInterrupt is by that of Ctrl-C."""


@contextmanager
def alarm(after: float) -> Iterator[None]:
    """A signal on its way, whose handler raises."""

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def unit_rows(n: int, d: int) -> np.ndarray:
    return RNG.standard_normal((n, d)) / np.sqrt(d)


def all_tables(n: int) -> _core.QueryTables:
    return _core.QueryTables(_core.sign_tables(np.ones((n, 128), np.int32), 32), np.ones(n), np.zeros((n, 1)))


# Each prepares a call that takes far longer than the signal is away, and gives it.
def scan(threads: int) -> Call:
    return partial(hamming_search, BITS, BITS[:40_000], 10, n_threads=threads)


def scan_for_all(threads: int) -> Call:
    """A list of all codes, for every query: sorting them is most of the work."""
    return partial(_core.CodeColumns(scan_blocks(BITS), len(BITS)).search, all_tables(200), len(BITS), threads)


def score(threads: int) -> Call:
    places = np.ascontiguousarray(np.broadcast_to(np.arange(len(BITS)), (200, len(BITS))))
    return partial(_core.CodeColumns(scan_blocks(BITS), len(BITS)).score, all_tables(200), places)


def orthonormal(threads: int) -> Call:
    return partial(tight_frame, 1600, 1600, 0)


def project(threads: int) -> Call:
    return partial(_core.project, unit_rows(1500, 1500), unit_rows(1500, 15_000), threads)


def nearest(threads: int) -> Call:
    return partial(_core.nearest, unit_rows(1500, 1500), unit_rows(1500, 15_000), np.ones(15_000), threads)


def frame(threads: int) -> Call:
    return partial(_core.SpreadFrame, [unit_rows(1500, 2000)], None, 0)


def spread(threads: int) -> Call:
    prepared = _core.SpreadFrame([unit_rows(48, 96)], None, 0)
    return partial(prepared.solve, unit_rows(200_000, 48), 0.05, True, 10**6, threads, True)


def signs(threads: int) -> Call:
    m = 2048
    rows, gram = np.zeros((64, m // 8), np.uint8), np.eye(m, dtype=np.float32)
    correlations = RNG.standard_normal((64, m)).astype(np.float32)
    return partial(_core.refine, correlations, gram, np.array([m]), 2000, 10**5, 5, False, rows, threads)


def codewords(threads: int) -> Call:
    finder = _core.Codebooks(RNG.standard_normal((64, 16, 16)).astype(np.float32), np.eye(1024, dtype=np.float32))
    return partial(finder.find, unit_rows(500, 16), 1.0, 10**6, 5, np.zeros((500, 32), np.uint8), threads)


def moments(threads: int) -> Call:
    rows, books = RNG.integers(0, 256, (400_000, 64), dtype=np.uint8), 128
    counts, sums = np.zeros((16 * books, 16 * books), np.uint32), np.zeros((16 * books, 16))
    return partial(_core.add_moments, rows, books, RNG.standard_normal((len(rows), 16)), counts, sums, threads)


def project_in_single(threads: int) -> Call:
    prepared = _core.Projection(unit_rows(1500, 15_000))
    return partial(prepared.project, unit_rows(3000, 1500), threads)


def tables(threads: int) -> Call:
    points = _core.Points(unit_rows(4096, 1024), np.zeros(4096))
    maker = _core.TableMaker([unit_rows(1024, 4096)], 4, 1024, points=points)
    return partial(maker.make, np.tile(unit_rows(400, 1024), (4, 1)), 0.0, 64, threads)


LONG = [scan, scan_for_all, score, orthonormal, project, project_in_single, nearest, frame, spread, signs, codewords]
LONG += [moments, tables]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("prepare", LONG)
def test_a_signal_is_handled_while_a_call_works(prepare: Callable[[int], Call], threads: int) -> None:
    call, due = prepare(threads), 0.1
    start = time.perf_counter()
    with pytest.raises(Alarm), alarm(due):
        call()
    assert time.perf_counter() - start < due + LATEST


def test_a_handler_that_returns_changes_nothing() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        found = hamming_search(BITS, BITS[:4000], 10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung
    for one, other in zip(found, hamming_search(BITS, BITS[:4000], 10), strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_threads_are_left_alone() -> None:
    """A signal belongs to the main thread: a call on another one goes on."""
    found: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: found.append(hamming_search(BITS, BITS[:4000], 3, n_threads=1)[1]))
    thread.start()
    with pytest.raises(Alarm), alarm(0.1):
        time.sleep(60)
    while not found:
        time.sleep(0.01)
    thread.join()
    np.testing.assert_array_equal(found[0], hamming_search(BITS, BITS[:4000], 3)[1])


_FORKED = """
import os, signal, sys, threading, time
import numpy as np
from antisparse import hamming_search
codes = np.random.default_rng(0).integers(0, 256, (200_000, 16), np.uint8)
def child():
    pid = os.fork()
    if pid == 0:  # this thread is the main thread of the child
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            hamming_search(codes, codes[:60_000], 10, n_threads=1)
        except KeyboardInterrupt:
            os._exit(7)
        os._exit(1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.signal(signal.SIGALRM, signal.default_int_handler)
threading.Thread(target=child).start()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_thread_that_forked_handles_signals_in_the_child() -> None:
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKED], capture_output=True, text=True, timeout=60)
    assert run.returncode == 7, run.stderr
    assert time.perf_counter() - start < 20
