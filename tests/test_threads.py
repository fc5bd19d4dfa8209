"""Threads share objects of the native core: each finds what one thread finds. `make tsan` looks for races here."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
import zoo

from antisparse import CodeBase, Codec, SpreadSolver, _core, block_frame, hamming_search, tight_frame
from antisparse.codes import scan_blocks
from antisparse.scan.columns import lay_out

X = zoo.vectors(60, 1) + 1 / 3
RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 256, (40_000, 8), np.uint8)
THREADS, TURNS = 4, 3


def together(call: Callable[[int], object]) -> list[object]:
    """What `call` gives in each of several threads that start at once, each a few times."""
    start, found, errors = threading.Barrier(THREADS), [], []

    def work(number: int) -> None:
        start.wait()
        try:
            for turn in range(TURNS):
                found.append(call(number + turn))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return found


def assert_all(found: list[object], wanted: object) -> None:
    assert len(found) == THREADS * TURNS
    for one in found:
        for array, other in zip(one, wanted, strict=True):
            np.testing.assert_array_equal(array, other)


def fresh(codec: Codec) -> Codec:
    """A copy that has prepared nothing yet."""
    return Codec.from_bytes(codec.to_bytes())


@pytest.mark.parametrize("name", zoo.NAMES)
def test_one_codec_encodes_and_searches_in_many_threads(isa: str, name: str) -> None:
    codec = zoo.codec(name)
    codes, method = codec.encode(X, n_threads=1), zoo.methods(name)[0]
    wanted = codes, *CodeBase(codec, codes).search(X, 7, method=method, n_threads=1)
    shared = fresh(codec)
    base = CodeBase(shared, codes)  # what it prepares for searches is prepared by all at once
    assert_all(
        together(lambda n: (shared.encode(X, n_threads=1 + n % 3), *base.search(X, 7, method=method, n_threads=2))),
        wanted,
    )


@pytest.mark.parametrize("name", ["codebooks cells nibble", "signs cells scale", "many cells"])
def test_queries_that_probe_share_the_codes(isa: str, name: str) -> None:
    from antisparse.codec.queries import QueryTabler

    codec = zoo.codec(name)
    columns, tabler = lay_out(codec, codec.encode(X)), QueryTabler(codec)

    def ask(number: int) -> tuple[np.ndarray, np.ndarray]:
        tabled = tabler.make(X, "reconstruction", "projection", 4, 1 + number % 3)
        return columns.search(tabled, 5, 1 + number % 2)

    wanted = ask(0)
    assert_all(together(ask), wanted)


def test_hamming_searches_share_the_codes(isa: str) -> None:
    """Few queries, so that threads share the base; many, so that they share the queries."""
    columns = _core.CodeColumns(scan_blocks(BITS), len(BITS))
    for count in (1, 3, 200):
        queries = np.unpackbits(BITS[:count], axis=1).astype(np.int32) * 2 - 1
        tables = _core.QueryTables(_core.sign_tables(queries, 16), np.ones(count), np.zeros((count, 1)))
        wanted = columns.search(tables, 10, 1)
        assert_all(together(lambda n, tables=tables: columns.search(tables, 10, 1 + n % 4)), wanted)
    wanted = hamming_search(BITS[:5000], BITS[:20], 5, n_threads=1)
    assert_all(together(lambda n: hamming_search(BITS[:5000], BITS[:20], 5, n_threads=3)), wanted)


@pytest.mark.parametrize("frame", [tight_frame(12, 30, 0), block_frame(12, 30, 4, 0), RNG.standard_normal((12, 30))])
def test_one_solver_serves_many_threads(isa: str, frame) -> None:
    solver, Y = SpreadSolver(frame), RNG.standard_normal((60, 12))
    for h, dtype in ((0.1, np.float32), (0.1, np.float64), (0.0, np.float64)):
        wanted = SpreadSolver(frame).spread(Y, h, dtype=dtype, n_threads=1).x
        found = together(lambda n, h=h, dtype=dtype: (solver.spread(Y, h, dtype=dtype, n_threads=1 + n % 3).x,))
        assert_all(found, (wanted,))


def test_an_error_in_one_thread_of_a_call_ends_the_others(isa: str) -> None:
    """Entries are checked by the thread that reads them."""
    tables = np.zeros((64, 16, 16), np.int32)
    tables[40, 3, 2] = -1
    queries = _core.QueryTables(tables, np.ones(64), np.zeros((64, 1)))
    columns = _core.CodeColumns(scan_blocks(BITS), len(BITS))

    def fail(number: int) -> tuple[()]:
        with pytest.raises(ValueError, match="an entry is negative"):
            columns.search(queries, 10, 1 + number % 4)
        return ()

    assert_all(together(fail), ())


def test_products_and_refinement_on_shared_arrays(isa: str) -> None:
    M, A = RNG.standard_normal((10, 33)), tight_frame(10, 24, 0)
    wanted = _core.project(X, M, 1), _core.nearest(X, M, np.ones(33), 1)
    assert_all(
        together(lambda n: (_core.project(X, M, 1 + n % 3), _core.nearest(X, M, np.ones(33), 1 + n % 3))), wanted
    )
    from antisparse.refine import anneal

    wanted = (anneal(X, A, flips=20, n_threads=1),)
    assert_all(together(lambda n: (anneal(X, A, flips=20, n_threads=1 + n % 3),)), wanted)
