import mmap
import os
import pickle
from functools import partial

import numpy as np
import pytest
import zoo
from models import (
    METRICS,
    NAMES,
    POOL,
    QUERIES,
    Fields,
    Model,
    assert_same,
    check_holds,
    check_probes,
    check_search,
    fitted,
    searches,
    unit,
)

from antisparse import (
    CodeBase,
    Index,
    InputError,
    InputTypeError,
    LearnedEncoder,
    LSHEncoder,
    StorageError,
    UnsupportedError,
)
from antisparse.index import filter as filter_module
from antisparse.index import writer as writer_module

MANY = zoo.vectors(3000, 3)
# One of each kind of column: a bias byte, floats of scales, cells with a scale byte, a nibble that changes with the
# cell, two bytes of cells, no bias at all.
COLUMNS = ("signs", "spread", "signs cells scale", "codebooks cells nibble", "many cells", "codebooks ip")


def filled(name="spread", X=POOL, path=None, metric=None):
    index = Index.create(path, fitted(name, metric), metric=metric)
    index.add(X)
    return index


def method_of(name):
    """One that the codes allow."""
    return zoo.methods(name)[0]


# Arguments.


def test_bad_ids_are_named() -> None:
    index = filled()
    X = POOL[:2]
    for ids, message in [
        ([500, -1], "out of range"),
        (np.array([2**63, 1], np.uint64), "out of range"),
        ([2**63 - 1, 500], "out of range"),
        ([500, 500], "500 twice"),
        ([500, 3], "id 3 is there already"),
        ([500], "ids has 1 entries for 2 vectors"),
        ([[500], [501]], "1-dimensional"),
    ]:
        with pytest.raises(InputError, match=message):
            index.add(X, ids)
    for ids in ([0.0, 1.0], [True, False], ["a", "b"], [2**64, 1]):
        for change in (lambda ids=ids: index.add(X, ids), lambda ids=ids: index.remove(ids)):
            with pytest.raises(InputTypeError, match="ids has dtype"):
                change()
    for change in (index.remove, index.codes, index.reconstruct, lambda ids: index.update(X, ids)):
        with pytest.raises(InputError, match="id 150 is not in the index"):
            change([0, 150])
    with pytest.raises(InputError, match="ids has 3 twice"):
        index.remove([3, 3])
    with pytest.raises(InputError, match="ids has 3 twice"):
        index.update(X, [3, 3])
    with pytest.raises(InputError, match="ids has 1 entries for 2 vectors"):
        index.update(X, [3])
    with pytest.raises(InputError, match="ids has 4 entries, but X has 2 vectors"):
        index.add(iter([X]), [500, 501, 502, 503])
    for ids, count in (([500, 501, 502], 3), ([500], 1), (500, 1)):
        with pytest.raises(InputError, match=f"ids has {count} entries, but X has more vectors"):
            index.add(iter([X, X]), ids)
    np.testing.assert_array_equal(index.ids, np.arange(150))


def test_the_largest_id(tmp_path) -> None:
    with Index.create(tmp_path / "index", fitted("spread")) as index:
        index.add(POOL[:1], [2**63 - 2])
        with pytest.raises(InputError, match="do not fit int64"):
            index.add(POOL[:1])
        index.add(POOL[1:2], [0])
    with Index.open(tmp_path / "index", verify=True) as index:
        assert 2**63 - 2 in index and 2**63 - 1 not in index and 2**63 not in index
        assert set(index.search(POOL[:1], 2)[1][0]) == {0, 2**63 - 2}


def test_bad_vectors_are_named() -> None:
    index = filled()
    bad = POOL[:3].copy()
    bad[1, 2] = np.nan
    for change in (index.add, lambda X: index.add(iter([POOL[:2], X])), lambda X: index.update(X, [0, 1, 2])):
        with pytest.raises(InputError, match=r"X row [13], column 2 is nan"):  # of all that the iterator gave
            change(bad)
        with pytest.raises(InputError, match="X has 4 columns but the codec was fitted on vectors of 10 dimensions"):
            change(bad[:, :4])
        with pytest.raises(InputTypeError, match="X has dtype"):
            change(bad.astype(str))
        with pytest.raises(InputError, match=r"X has shape \(10,\)"):
            change(bad[0])
    for search in (
        partial(index.search, k=1),
        partial(index.search, k=1, rerank=POOL),
        partial(index.range_search, radius=1),
    ):
        with pytest.raises(InputError, match="Q row 1, column 2 is nan"):
            search(bad)
        with pytest.raises(InputError, match="Q has 4 columns but the codec was fitted on vectors of 10 dimensions"):
            search(POOL[:, :4])
    with pytest.raises(InputError, match="bytes a row"):
        index.add_codes(np.zeros((2, 9), np.uint8))
    with pytest.raises(InputTypeError, match="codes has dtype"):
        index.add_codes(np.zeros((2, 2)))
    cosine = filled(metric="cosine")
    zero = POOL[:3] * (np.arange(3) != 1)[:, None]
    for change in (cosine.add, lambda X: cosine.add(iter([POOL[:2], X])), lambda X: cosine.update(X, [0, 1, 2])):
        with pytest.raises(InputError, match=r"X row [13] is zero"):
            change(zero)
    for search in (partial(cosine.search, k=1), partial(cosine.search, k=1, rerank=POOL)):
        with pytest.raises(InputError, match="Q row 1 is zero"):
            search(zero)
    assert len(index) == len(cosine) == 150


@pytest.mark.parametrize("name", ["signs cells scale", "codebooks cells nibble", "many cells"])
def test_codes_of_a_cell_there_is_not_are_refused(name: str) -> None:
    index = filled(name)
    codec, codes = index.codec, index.codes([0, 1])
    width = 2 if name == "many cells" else 1
    at = -(-(codec.symbols.n_bits + 4 * ("nibble" in name)) // 8)
    codes[1, at : at + width] = [codec.n_cells & 255, codec.n_cells >> 8][:width]
    with pytest.raises(InputError, match=f"codes names cell {codec.n_cells}, but the codec has {codec.n_cells}"):
        index.add_codes(codes)
    assert len(index) == 150 and index.cells == codec.n_cells == len(codec.cells)


def test_bad_searches_are_named() -> None:
    index = filled()
    for k in (0, -1):
        with pytest.raises(InputError, match=f"k = {k}"):
            index.search(QUERIES, k)
    for probes in (0, -2):
        with pytest.raises(InputError, match=f"probes = {probes}"):
            index.search(QUERIES, 1, probes=probes)
    with pytest.raises(InputTypeError, match="probes must be 'all' or a number of cells, not 'some'"):
        index.search(QUERIES, 1, probes="some")
    for options in ({"probes": 1.5}, {"probes": True}, {"n_threads": 1.0}):
        with pytest.raises(InputTypeError, match="must be an integer"):
            index.search(QUERIES, 1, **options)
    for given in (0.5, [0.5], ["a"], [[1, 2]], 3, np.ones((2, 2), bool)):
        with pytest.raises(InputTypeError, match="filter must be a 1-dimensional array of ids or of bool"):
            index.search(QUERIES, 1, filter=given)
    with pytest.raises(InputError, match="method = 'x'"):
        index.search(QUERIES, 1, method="x")
    for radius in ("1", None, True, np.nan):
        with pytest.raises((InputError, InputTypeError), match="radius"):
            index.range_search(QUERIES, radius)
    with pytest.raises(TypeError, match="shortlist"):
        index.range_search(QUERIES, 1.0, shortlist=3)
    for options in ({"method": "hamming"}, {"method": "asymmetric"}):
        with pytest.raises(InputError, match="shortlist re-ranks by reconstruction"):
            index.search(QUERIES, 1, shortlist=5, **options)


def test_rerank_must_give_the_vectors_asked_for() -> None:
    index = filled()
    with pytest.raises(InputError, match="rerank has 9 rows, but id"):
        index.search(QUERIES, 3, rerank=POOL[:9])
    with pytest.raises(InputError, match="rerank has 4 columns"):
        index.search(QUERIES, 3, rerank=POOL[:, :4])
    with pytest.raises(InputError, match="rerank gave vectors of shape"):
        index.search(QUERIES, 3, rerank=lambda ids: POOL[:1])
    with pytest.raises(InputError, match="rerank has shape"):
        index.search(QUERIES, 3, rerank=lambda ids: POOL[0])
    with pytest.raises(InputError, match="shortlist = 2"):
        index.search(QUERIES, 3, rerank=POOL, shortlist=2)


def test_read_only_and_closed(tmp_path) -> None:
    path = tmp_path / "index"
    index = filled(path=path)
    reader = Index.open(path, read_only=True)
    index.close()
    for closed, message in ((reader, "read_only"), (index, "is closed")):
        changes = (partial(closed.add, POOL), partial(closed.remove, [0]), partial(closed.update, POOL[:1], [0]))
        for change in (*changes, closed.compact, closed.batch().__enter__):
            with pytest.raises(UnsupportedError, match=message):
                change()
        assert len(closed) == 150 and (closed.search(POOL[:2], 1)[1] >= 0).all()
        closed.verify()
    for options in ({"read_only": 1}, {"verify": "yes"}, {"n_threads": 1.5}):
        with pytest.raises(InputTypeError, match="must be"):
            Index.open(path, **options)


def test_creation_is_careful(tmp_path) -> None:
    path = tmp_path / "index"
    filled(path=path).close()
    with pytest.raises(InputError, match="is an index already"):
        Index.create(path, fitted("spread"))
    (tmp_path / "other").mkdir()
    for name in ("notes.txt", "codec-mine.safetensors", "segment-of-mine", "deleted-mail"):
        mine = tmp_path / "other" / name
        mine.write_text("mine")
        with pytest.raises(InputError, match="a folder with other files in it"):
            Index.create(tmp_path / "other", fitted("spread"))
        assert mine.read_text() == "mine"
        mine.rename(path / name)  # nor are they touched in an index
    with Index.open(path) as index:
        index.add(POOL)
        index.compact()
    assert (path / "segment-of-mine").exists() and (path / "codec-mine.safetensors").exists()
    for where in (tmp_path / "no" / "where", path / "notes.txt"):
        with pytest.raises(StorageError, match="path = "):
            Index.create(where, fitted("spread"))
    with pytest.raises(InputError, match="not fitted"):
        Index.create(None, LSHEncoder(8))
    for wrong in (object(), None, "codec.safetensors", fitted("spread").symbols):
        with pytest.raises(InputTypeError, match="pass a Codec or a fitted encoder"):
            Index.create(None, wrong)
    with pytest.raises(InputError, match=r"metric = 'l1'; choose one of 'l2', 'cosine', 'ip'"):
        Index.create(None, fitted("spread"), metric="l1")
    with pytest.raises(InputError, match="n_threads = 0"):
        Index.create(tmp_path / "new", fitted("spread"), n_threads=0)
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob("other/*.json"))


def test_an_operation_that_fails_in_a_batch_leaves_the_rest(tmp_path) -> None:
    for path in (None, tmp_path / "index"):
        index = filled(X=POOL[:4], path=path)
        with index.batch():
            index.add(POOL[:2])
            with pytest.raises(InputError, match="nan"):
                index.add(iter([POOL[:1], POOL[:1] * np.nan]))
            with pytest.raises(InputError, match="there already"):
                index.add(POOL[:2], [9, 5])
            with pytest.raises(InputError, match="not in the index"):
                index.remove([4, 6])
            index.update(POOL[7:8], [4])
        np.testing.assert_array_equal(index.ids, np.arange(6))
        np.testing.assert_array_equal(index.codes([4]), index.codec.encode(POOL[7:8]))
        index.verify()


# Results.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("metric", METRICS)
def test_segments_batches_threads_and_order_do_not_matter(tmp_path, name: str, metric: str) -> None:
    codec, random = fitted(name, metric), np.random.default_rng(0)
    whole = filled(name, POOL, metric=metric)
    pieces = Index.create(tmp_path / "index", codec, metric=metric)
    for part in np.split(random.permutation(150), [1, 40, 41, 120]):
        pieces.add(POOL[part], part)
    pieces.update(POOL[:10], random.permutation(10))
    pieces.update(POOL[:10], np.arange(10))
    options = searches(name) + [{"probes": 2}] * (codec.cells is not None)
    for arguments in options:
        expected = whole.search(QUERIES, 12, n_threads=1, **arguments)
        for found in (
            whole.search(QUERIES, 12, n_threads=3, **arguments),
            pieces.search(QUERIES, 12, n_threads=2, **arguments),
            [np.concatenate(c) for c in zip(*(pieces.search(q[None], 12, **arguments) for q in QUERIES), strict=True)],
            [np.stack(c) for c in zip(*(pieces.search(q, 12, **arguments) for q in QUERIES), strict=True)],
        ):
            assert_same(found, expected)
    method = method_of(name)
    pieces.compact()
    assert_same(pieces.search(QUERIES, 12, method=method), whole.search(QUERIES, 12, method=method))
    many = np.tile(QUERIES, (500, 1))  # more than one chunk
    few = whole.search(QUERIES, 3, method=method)
    assert_same(pieces.search(many, 3, method=method), [np.tile(part, (500, 1)) for part in few])


@pytest.mark.parametrize("name", [name for name in NAMES if "cells" in name])
def test_all_probes_are_an_exhaustive_search(name: str) -> None:
    index = filled(name, MANY)
    model = Model(name)
    model.put(model.encode(MANY), np.arange(3000))
    cells, between = index.cells, (zoo.vectors(20, 4) + zoo.vectors(20, 5)) / 2  # the clusters that cells are of
    expected = index.search(between, 20)
    assert_same(expected, model.search(between, 20))
    for probes in ("all", cells, cells + 1, 1000, np.int64(cells)):
        assert_same(index.search(between, 20, probes=probes), expected)
    fewer = [index.search(between, 20, probes=probes)[0] for probes in (1, 2, 3, 4, 5, cells)]
    fewer = np.minimum(fewer, 1e9)  # where they are not twenty
    assert (np.diff(fewer, axis=0) <= 1e-12).all() and (np.diff(fewer, axis=0) < -0.01).any()
    flat = filled("spread", MANY)
    assert_same(flat.search(QUERIES, 5, probes=1), flat.search(QUERIES, 5))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", [name for name in NAMES if "cells" in name])
def test_some_probes_are_a_search_of_these_cells(name: str, metric: str) -> None:
    index, model = Index.create(None, fitted(name, metric)), Model(name, metric)
    for part in (MANY[:500], MANY[500:600]):
        model.put(model.encode(part), index.add(part))
    index.remove(np.arange(0, 600, 7))
    model.drop(np.arange(0, 600, 7))
    for probes in (1, 2, 5, index.cells - 1, index.cells):
        check_probes(index, model, probes)


@pytest.mark.parametrize("name", NAMES)
def test_a_filter_leaves_k_where_there_are_k(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    index, method = filled(name, MANY[:600]), method_of(name)
    index.add(MANY[600:700])
    index.remove(np.arange(0, 700, 7))
    model = Model(name)
    model.put(model.encode(MANY[:700]), np.arange(700))
    model.drop(np.arange(0, 700, 7))
    for share in (0.005, 0.02, 0.24, 0.26, 0.9, 1):
        mask = np.random.default_rng(1).random(700) < share
        live = np.flatnonzero(mask & (np.arange(700) % 7 > 0))
        for given in (mask, np.flatnonzero(mask), np.flatnonzero(mask).astype(np.uint16), [*live, 10**6, -5]):
            for dense in (0, 4, 10**9):  # searched in place, as it comes, apart
                monkeypatch.setattr(filter_module, "_DENSE", dense)
                found = index.search(QUERIES, len(live), filter=given, method=method)[1]
                assert (np.sort(found) == live).all()
        check_search(index, model, 6, live, mask)
    for nothing in ([], np.zeros(700, bool), np.zeros(0, bool), [0, 7, 5000], np.array([2**63 + 1], np.uint64)):
        distances, ids = index.search(QUERIES, 3, filter=nothing, method=method)
        missing = np.iinfo(np.int32).max if method == "hamming" else np.inf
        assert (ids == -1).all() and (distances == missing).all()
        assert index.range_search(QUERIES, np.inf, filter=nothing, method=method)[0][-1] == 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", NAMES)
def test_rerank_gives_true_distances(name: str, metric: str) -> None:
    index, method = filled(name, MANY, metric=metric), method_of(name)
    X, Q = (unit(MANY), unit(QUERIES)) if metric == "cosine" else (MANY, QUERIES)
    true = ((Q[:, None] - X) ** 2).sum(2) if metric == "l2" else (metric == "cosine") - Q @ X.T
    search = partial(index.search, QUERIES, 7, method=method)
    for originals in (
        MANY,
        MANY.astype(np.float32),  # which holds quarters
        lambda ids: MANY[ids],
        lambda ids: MANY[ids].tolist(),
    ):
        distances, ids = search(rerank=originals, shortlist=200)
        np.testing.assert_allclose(distances, np.take_along_axis(true, ids, 1), rtol=1e-9, atol=1e-12)
    candidates = index.search(QUERIES, 200, method=method)[1]
    for row, held in enumerate(candidates):
        order = np.lexsort((held, true[row, held].round(9)))[:7]  # the pool has vectors twice
        np.testing.assert_allclose(distances[row], true[row, held[order]], rtol=1e-9, atol=1e-12)
    one = index.search(QUERIES[2], 7, method=method, rerank=MANY, shortlist=200)
    assert_same(one, [part[2] for part in search(rerank=MANY, shortlist=200)])
    whole = search(rerank=MANY, shortlist=3000)
    np.testing.assert_allclose(whole[0], np.sort(true, axis=1)[:, :7], rtol=1e-9, atol=1e-12)
    few = search(rerank=MANY, filter=[4, 5])
    assert (np.sort(few[1][:, :2]) == [4, 5]).all() and (few[1][:, 2:] == -1).all() and np.isinf(few[0][:, 2:]).all()


@pytest.mark.parametrize("name", zoo.COMPARING)
def test_candidates_of_any_method_may_be_reranked(name: str) -> None:
    index = filled(name, MANY, metric="l2")
    true = ((QUERIES[:, None] - MANY) ** 2).sum(2)
    for method in zoo.methods(name):
        held = index.search(QUERIES, 50, method=method)[1]
        distances, ids = index.search(QUERIES, 5, method=method, shortlist=50, rerank=MANY)
        expected = np.sort(np.take_along_axis(true, held, 1), axis=1)[:, :5]
        np.testing.assert_allclose(distances, expected, rtol=1e-9)
        assert all(np.isin(found, allowed).all() for found, allowed in zip(ids, held, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_within_a_radius(name: str) -> None:
    index, method = filled(name, MANY), method_of(name)
    everything = index.search(QUERIES, 3000, method=method)
    radii = (-1.0, 0, *np.quantile(everything[0], [0.001, 0.03, 0.5]), np.float32(3), np.inf)
    for radius in radii:
        limits, distances, ids = index.range_search(QUERIES, radius, method=method)
        assert limits[0] == 0 and limits[-1] == len(distances) == len(ids)
        for row in range(len(QUERIES)):
            inside = everything[0][row] <= radius
            np.testing.assert_array_equal(ids[limits[row] : limits[row + 1]], everything[1][row][inside])
            np.testing.assert_array_equal(distances[limits[row] : limits[row + 1]], everything[0][row][inside])
    assert limits[-1] == 3000 * len(QUERIES)
    kind = np.int32 if method == "hamming" else np.float64
    assert index.range_search(QUERIES, 2, method=method)[1].dtype == kind
    assert index.range_search(QUERIES[:0], 2, method=method)[0].tolist() == [0]


@pytest.mark.parametrize("name", ["spread", "spread refined", "spread greedy", "paper"])
def test_queries_by_their_spread_representation(name: str) -> None:
    index, codec = filled(name, MANY), fitted(name)
    codes = codec.encode(MANY)
    options = {"method": "asymmetric", "query": "spread"}
    found = index.search(QUERIES, 9, **options)
    assert_same(found, CodeBase(codec, codes).search(QUERIES, 9, **options))
    Q = (unit(QUERIES) if codec.metric_name == "cosine" else QUERIES) - codec.reduction.mean
    x = codec.symbols.weights(Q, "spread", 1)
    full = (np.abs(x)[:, None] * ((x < 0)[:, None] != (Fields(codec, codes).signs < 0))).sum(2)
    np.testing.assert_allclose(found[0], np.sort(full, axis=1)[:, :9], atol=1e-5)
    for other in ("lsh", "signs"):
        with pytest.raises(UnsupportedError, match="query='projection'"):
            filled(other).search(QUERIES, 9, **options)


def test_a_single_query_gets_a_single_answer() -> None:
    for name in NAMES:
        index = filled(name)
        for options in searches(name):
            expected = index.search(QUERIES, 6, filter=np.arange(90), **options)
            for row, q in enumerate(QUERIES):
                for given in (q, q.tolist()):
                    found = index.search(given, 6, filter=np.arange(90), **options)
                    assert found[0].shape == found[1].shape == (6,)
                    assert_same(found, [part[row] for part in expected])
        for wrong in (QUERIES[None], np.float64(3)):
            with pytest.raises(InputError, match="Q has shape"):
                index.search(wrong, 6, method=method_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_an_index_without_vectors(tmp_path, name: str) -> None:
    for path in (None, tmp_path / "index"):
        index = Index.create(path, fitted(name))
        method = method_of(name)
        for _ in range(2):
            assert len(index) == 0 and 0 not in index and len(index.ids) == 0 and index.stats()["vectors"] == 0
            assert (index.search(QUERIES, 3, method=method)[1] == -1).all()
            assert index.range_search(QUERIES, 1.0, method=method)[0][-1] == 0
            assert (index.search(QUERIES, 3, rerank=MANY, method=method)[1] == -1).all()
            assert index.codes([]).shape == (0, index.codec.n_bytes)
            if index.codec.rebuilds:
                assert index.reconstruct([]).shape == (0, 10)
            assert len(index.add(np.zeros((0, 10)))) == len(index.add(iter([]))) == 0
            index.remove([])
            index.compact()
            index.verify()
            index.remove(index.add(POOL))
        assert index.add(POOL[:1])[0] == 300  # ids do not come back


def test_hamming_alone_where_vectors_cannot_be_rebuilt() -> None:
    index = filled("spectral")
    assert (index.search(POOL[:5], 1, method="hamming")[0] == 0).all()
    for ask in (lambda: index.search(QUERIES, 1), lambda: index.search(QUERIES, 1, method="asymmetric")):
        with pytest.raises(UnsupportedError, match="hamming"):
            ask()


# Copies.


@pytest.mark.parametrize("name", NAMES)
def test_what_was_in_memory_is_the_same_when_saved_and_opened(tmp_path, name: str) -> None:
    model, index = Model(name), Index.create(None, fitted(name))
    for part in (MANY[:300], MANY[300:350]):
        model.put(model.encode(part), index.add(part))
    gone = np.arange(0, 350, 9)
    index.remove([*gone, 349])  # the last id too: it does not come back
    model.drop([*gone, 349])
    index.save(tmp_path / "saved")
    (tmp_path / "empty").mkdir()
    index.save(tmp_path / "empty")
    for path in (tmp_path / "saved", tmp_path / "empty"):
        with Index.open(path, verify=True) as opened:
            assert opened.codec == index.codec and opened.snapshot.next_id == index.snapshot.next_id == 350
            for key, value in index.stats().items():
                assert opened.stats()[key] == value or "disk" in key
            check_holds(opened, model)
            check_search(opened, model)
            for options in searches(name):
                assert_same(opened.search(QUERIES, 9, **options), index.search(QUERIES, 9, **options))
            for one, other in zip(opened.snapshot.segments, index.snapshot.segments, strict=True):
                np.testing.assert_array_equal(one.deleted, other.deleted)
                assert one.ids.same(other.ids)
                for column in ("blocks", "scales", "cell_ends"):
                    a, b = getattr(one.columns, column), getattr(other.columns, column)
                    assert (a is None) == (b is None) and (a is None or (a.dtype == b.dtype and np.array_equal(a, b)))
            assert opened.add(POOL[:1])[0] == 350
    with Index.open(tmp_path / "saved") as opened:  # one in a folder may be copied, too
        opened.save(tmp_path / "again")
    with Index.open(tmp_path / "again", verify=True) as again:
        assert len(again) == len(index) + 1 and len(index) == len(model.rows)
    for wrong in (tmp_path / "again", tmp_path / "saved"):
        with pytest.raises(InputError, match="is an index already"):
            index.save(wrong)


def test_an_empty_index_is_saved(tmp_path) -> None:
    index = filled("signs")
    index.remove(index.ids)
    index.save(tmp_path / "index")
    with Index.open(tmp_path / "index", verify=True) as opened:
        assert len(opened) == 0 and opened.add(POOL[:1])[0] == 150


@pytest.mark.parametrize("name", NAMES)
def test_an_index_in_memory_is_pickled(tmp_path, name: str) -> None:
    index = Index.create(None, fitted(name), n_threads=1)
    index.add(POOL[:90])
    index.add(POOL[90:], np.arange(500, 560))
    index.remove([3, 559])
    again = pickle.loads(pickle.dumps(index))
    assert again.codec == index.codec and again.n_threads == 1 and again.metric == index.metric
    np.testing.assert_array_equal(again.ids, index.ids)
    np.testing.assert_array_equal(again.codes(again.ids), index.codes(index.ids))
    for options in searches(name):
        assert_same(again.search(QUERIES, 9, **options), index.search(QUERIES, 9, **options))
    assert again.add(POOL[:1])[0] == 560 and 560 not in index
    empty = pickle.loads(pickle.dumps(Index.create(None, fitted(name))))
    assert len(empty) == 0 and empty.add(POOL[:1])[0] == 0


def test_an_index_in_a_folder_is_not_pickled(tmp_path) -> None:
    with filled(path=tmp_path / "index") as index:
        for one in (index, Index.open(tmp_path / "index", read_only=True)):
            with pytest.raises(UnsupportedError, match=r"send its path.*Index\.open\(path, read_only=True\)"):
                pickle.dumps(one)


def test_representations_are_short(tmp_path) -> None:
    index = filled("signs", np.tile(POOL, (10, 1)))
    codec = "Codec(5 bytes: 32 signs, bias byte; 10 dimensions, l2)"
    assert repr(index) == f"Index(1,500 vectors, {codec}, in memory)"
    assert repr(CodeBase(index.codec, index.codes([0, 1]))) == f"CodeBase(2 codes, {codec})"
    with filled("signs", path=tmp_path / "index") as stored:
        assert repr(stored) == f"Index(150 vectors, {codec}, {str(tmp_path / 'index')!r})"
    for name in NAMES:
        assert len(repr(filled(name))) < 130 and "\n" not in repr(filled(name))


# On the disk.


@pytest.mark.parametrize("name", COLUMNS)
def test_an_add_writes_its_own_vectors_and_no_more(tmp_path, name: str) -> None:
    path = tmp_path / "index"
    index = filled(name, MANY[:2000], path=path)
    before = {name: (path / name).stat() for name in os.listdir(path)}
    index.add(MANY[:32])
    new = [name for name in os.listdir(path) if name.startswith("segment") and name not in before]
    blocks = 32 if "cells" in name else 1  # of 32 codes, perhaps each in a cell of its own
    room = index.cells * 8 * (index.cells > 1)
    assert len(new) == 1 and (path / new[0]).stat().st_size < 1024 + room + blocks * 32 * (8 + 4 + index.codec.n_bytes)
    assert all((path / name).stat().st_ino == s.st_ino for name, s in before.items() if "manifest" not in name)
    index.remove([5])
    assert len(list(path.glob("deleted-*"))) == 1 and next(path.glob("deleted-*")).stat().st_size < 512


def test_many_small_adds_stay_few_segments(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_SMALLEST", 8)
    index, most, written = Index.create(None, fitted("spread")), 0, []
    store = index._writer.store
    save = store.save
    monkeypatch.setattr(store, "save", lambda segment: (written.append(segment.rows), save(segment))[1])
    for at in range(1000):
        index.add(POOL[at % 150 : at % 150 + 1])
        most = max(most, index.stats()["segments"])
    assert most <= 7 * 4 and len(index) == 1000
    assert sum(written) < 1000 * 6  # a vector is written anew a few times
    expected = filled("spread", POOL[np.arange(1000) % 150]).search(QUERIES, 30)
    assert_same(index.search(QUERIES, 30), expected)
    index.remove(np.arange(1000))
    assert len(index) == 0 and index.stats()["segments"] == 0


def test_an_iterator_is_written_as_it_comes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_SEGMENT_ROWS", 500)
    path = tmp_path / "index"
    index = Index.create(path, fitted("signs"))
    seen = []

    def parts():
        for at in range(0, 3000, 250):
            seen.append(len(list(path.glob("segment-*"))))
            yield MANY[at : at + 250]

    index.add(parts())
    assert seen == sorted(seen) and seen[-1] >= 4
    assert_same(index.search(QUERIES, 9), filled("signs", MANY).search(QUERIES, 9))
    index.verify()


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_are_mapped_and_not_read(tmp_path, name: str) -> None:
    path = tmp_path / "index"
    with filled(name, MANY, path=path) as index:
        for opened in (index, Index.open(path, read_only=True)):
            for segment in opened.snapshot.segments:
                columns = segment.columns
                arrays = (columns.blocks, columns.cell_ends, columns.scales, *segment.ids.arrays.values())
                for array in arrays:
                    assert (array is None) == (array is columns.scales and fitted(name).scale is None)
                    while isinstance(array, np.ndarray):
                        assert not array.flags.owndata and not array.flags.writeable
                        array = array.base
                    assert array is None or isinstance(getattr(array, "obj", array), mmap.mmap)


@pytest.mark.parametrize(
    ("name", "code_bytes", "scan_bytes", "code"),
    [
        ("signs", 5, 5, "32 signs, bias byte"),
        ("spread", 3, 7, "24 signs, one length for all"),  # and a float a code
        ("signs cells scale", 7, 7, "32 signs, 9 cells, scale byte, bias byte"),
        ("many cells", 6, 6, "6 codebooks, 300 cells, bias byte"),
        ("codebooks cells nibble", 6, 6, "9 codebooks, 9 cells, bias nibble"),
        ("codebooks ip", 5, 5, "10 codebooks"),
    ],
)
def test_stats(tmp_path, name: str, code_bytes: int, scan_bytes: int, code: str) -> None:
    index = filled(name, MANY[:100], path=tmp_path / "index")
    index.remove([1, 2])
    stats = index.stats()
    files = sum((tmp_path / "index" / file).stat().st_size for file in os.listdir(tmp_path / "index"))
    assert stats["disk_bytes"] == files and stats["vectors"] == 98 and stats["deleted"] == 2
    assert stats["disk_bytes_per_vector"] == round(files / 98, 2) and stats["segments"] == 1
    assert stats["code"] == code and (stats["code_bytes"], stats["scan_bytes"]) == (code_bytes, scan_bytes)
    assert stats["dimensions"] == 10 and stats["cells"] == index.codec.n_cells and stats["metric"] == index.metric
    index.compact()
    left = [tmp_path / "index" / file for file in os.listdir(tmp_path / "index")]
    assert index.stats()["deleted"] == 0 and index.stats()["disk_bytes"] == sum(path.stat().st_size for path in left)
    assert not any(path.name.startswith("deleted") for path in left)


def test_masked_and_ragged_arrays_and_unsound_originals_are_named() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 5))
    index = Index.build(rows, 2, random_state=0)
    masked = np.ma.masked_array([1, 2], [1, 0])
    for call, name in (
        (lambda: index.search(rows[:1], 2, filter=masked), "filter has masked"),
        (lambda: index.add(rows[:2], masked), "ids has masked"),
        (lambda: index.search([[1.0], [1.0, 2.0]], 2), "Q is not a rectangular"),
        (lambda: index.search(rows[:1], 2, rerank=rows * np.nan), "rerank row"),
    ):
        with pytest.raises(InputError, match=name):
            call()
    assert len(index) == 30


def test_vectors_beyond_all_bounds_have_the_last_number_of_the_bias() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 12))
    for symbols in ("levels", "signs"):
        codec = LearnedEncoder(6, symbols=symbols, random_state=0).fit(rows * 1e139).codec_
        index = Index.create(None, codec)
        index.add(rows * 1e139)
        index.add(rows[:1] * 1e200)
        assert index.codec.encode(rows[:1] * 1e200)[0, -1] & 15 == 15  # the last number of the bias
        assert (index.search(rows[:1] * 1e139, 301)[1] >= 0).all()
