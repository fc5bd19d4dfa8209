import json
import mmap
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from models import METHODS, METRICS, POOL, QUERIES, Model, as_metric, assert_same, check_search, fitted

from antisparse import (
    AntiSparseEncoder,
    Index,
    InputError,
    InputTypeError,
    LSHEncoder,
    SpectralHashEncoder,
    StorageError,
    UnsupportedError,
)
from antisparse.index import index as index_module
from antisparse.index.manifest import read_manifest

GOLDEN = Path(__file__).parent / "golden"
RNG = np.random.default_rng(1)
MANY = RNG.standard_normal((3000, 6)) * np.linspace(2, 0.5, 6) + 0.5


def filled(name="tight", X=POOL, path=None, metric="l2"):
    index = Index.create(path, fitted(name, metric), metric=metric)
    index.add(X)
    return index


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
    with pytest.raises(InputError, match="ids has 1 entries for 2 vectors"):
        index.add(iter([X, X]), [500, 501, 502])
    np.testing.assert_array_equal(index.ids, np.arange(150))


def test_the_largest_id(tmp_path) -> None:
    with Index.create(tmp_path / "index", fitted("tight")) as index:
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
        with pytest.raises(InputError, match="X row 1, column 2 is nan"):
            change(bad)
        with pytest.raises(InputError, match=r"X: .*features"):
            change(bad[:, :4])
    with pytest.raises(InputError, match="Q row 1, column 2 is nan"):
        index.search(bad, 1)
    with pytest.raises(InputError, match=r"Q: .*features"):
        index.range_search(POOL[:, :4], 1.0)
    with pytest.raises(InputError, match="bytes a row"):
        index.add_codes(np.zeros((2, 9), np.uint8))
    with pytest.raises(InputTypeError, match="codes has dtype"):
        index.add_codes(np.zeros((2, 2)))
    cosine = filled(metric="cosine")
    with pytest.raises(InputError, match="X row 1 is zero"):
        cosine.add(np.eye(3, 6) - np.eye(3, 6, 0) * (np.arange(3) == 1)[:, None])
    cells = filled("cells")
    codes = cells.codes([0])
    codes[0, cells.encoder.code_layout_.place("mean")[0]] = 200
    with pytest.raises(InputError, match="mean"):
        cells.add_codes(codes)
    assert len(index) == len(cosine) == len(cells) == 150


def test_bad_searches_are_named() -> None:
    index = filled()
    for k in (0, -1):
        with pytest.raises(InputError, match=f"k = {k}"):
            index.search(QUERIES, k)
    for probes in (0, -2):
        with pytest.raises(InputError, match=f"probes = {probes}"):
            index.search(QUERIES, 1, probes=probes)
    for options in ({"probes": "some"}, {"probes": 1.5}, {"probes": True}, {"n_threads": 1.0}):
        with pytest.raises(InputTypeError, match="must be an integer"):
            index.search(QUERIES, 1, **options)
    for given in (0.5, [0.5], ["a"], [[1, 2]], 3, np.ones((2, 2), bool)):
        with pytest.raises(InputTypeError, match="filter must be a 1-dimensional array of ids or of bool"):
            index.search(QUERIES, 1, filter=given)
    with pytest.raises(InputError, match="method = 'x'"):
        index.search(QUERIES, 1, method="x")
    for radius in ("1", None, True, np.nan):
        with pytest.raises(InputTypeError, match="radius"):
            index.range_search(QUERIES, radius)
    with pytest.raises(InputTypeError, match="range_search takes no 'shortlist'"):
        index.range_search(QUERIES, 1.0, shortlist=3)


def test_rerank_must_give_the_vectors_asked_for() -> None:
    index = filled()
    with pytest.raises(InputError, match="rerank has 9 rows, but id"):
        index.search(QUERIES, 3, rerank=POOL[:9])
    with pytest.raises(InputError, match="rerank gave vectors of shape"):
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
        Index.create(path, fitted("tight"))
    (tmp_path / "other").mkdir()
    for name in ("notes.txt", "encoder-mine.safetensors", "segment-of-mine", "deleted-mail"):
        mine = tmp_path / "other" / name
        mine.write_text("mine")
        with pytest.raises(InputError, match="a folder with other files in it"):
            Index.create(tmp_path / "other", fitted("tight"))
        assert mine.read_text() == "mine"
        mine.rename(path / name)  # nor are they touched in an index
    with Index.open(path) as index:
        index.add(POOL)
        index.compact()
    assert (path / "segment-of-mine").exists() and (path / "encoder-mine.safetensors").exists()
    for where in (tmp_path / "no" / "where", path / "notes.txt"):
        with pytest.raises(StorageError, match="path = "):
            Index.create(where, fitted("tight"))
    with pytest.raises(InputError, match="not fitted"):
        Index.create(None, LSHEncoder(8))
    with pytest.raises(InputError, match="metric = 'l1'"):
        Index.create(None, fitted("tight"), metric="l1")
    with pytest.raises(InputError, match="cells = 3, but the encoder has 5 means; fit it with means=3"):
        Index.create(None, fitted("cells"), cells=3)
    with pytest.raises(InputError, match="cells = 2, but the encoder has 1 means"):
        Index.create(None, fitted("tight"), cells=2)
    assert Index.create(None, fitted("cells"), cells=5).cells == 5
    assert Index.create(None, fitted("tight"), cells=1).cells == 1
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
        np.testing.assert_array_equal(index.codes([4]), index.encoder.transform(POOL[7:8]))
        index.verify()


# Results.


@pytest.mark.parametrize("name", ["tight", "byte", "scale", "cells", "exact cells", "scale cells"])
@pytest.mark.parametrize("metric", METRICS)
def test_segments_batches_threads_and_order_do_not_matter(tmp_path, name: str, metric: str) -> None:
    encoder, random = fitted(name, metric), np.random.default_rng(0)
    whole = filled(name, POOL, metric=metric)
    pieces = Index.create(tmp_path / "index", encoder, metric=metric)
    for part in np.split(random.permutation(150), [1, 40, 41, 120]):
        pieces.add(POOL[part], part)
    pieces.update(POOL[:10], random.permutation(10))
    pieces.update(POOL[:10], np.arange(10))
    options = METHODS if encoder.cell_means is None else ({}, {"probes": 2})
    for arguments in options:
        expected = whole.search(QUERIES, 12, n_threads=1, **arguments)
        for found in (
            whole.search(QUERIES, 12, n_threads=3, **arguments),
            pieces.search(QUERIES, 12, n_threads=2, **arguments),
            [np.concatenate(c) for c in zip(*(pieces.search(q[None], 12, **arguments) for q in QUERIES), strict=True)],
        ):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
    pieces.compact()
    for found, wanted in zip(pieces.search(QUERIES, 12), whole.search(QUERIES, 12), strict=True):
        np.testing.assert_array_equal(found, wanted)
    many = np.tile(QUERIES, (300, 1))  # more than one chunk
    np.testing.assert_array_equal(pieces.search(many, 3)[1], np.tile(whole.search(QUERIES, 3)[1], (300, 1)))


def test_all_probes_are_an_exhaustive_search() -> None:
    index = filled("scale cells", MANY)
    model = Model(index.encoder, "l2")
    model.put(model.encode(MANY), np.arange(3000))
    expected = index.search(QUERIES, 20)
    assert_same(expected, model.search(QUERIES, 20))
    for probes in ("all", 5, 6, 1000, np.int64(5)):
        assert_same(index.search(QUERIES, 20, probes=probes), expected)
    fewer = [index.search(QUERIES, 20, probes=probes)[0] for probes in (1, 2, 3, 4, 5)]
    assert (np.diff(fewer, axis=0) <= 1e-12).all() and (np.diff(fewer, axis=0) < -0.01).any()
    flat = filled("tight", MANY)
    assert_same(flat.search(QUERIES, 5, probes=1), flat.search(QUERIES, 5))


@pytest.mark.parametrize("name", ["tight", "byte", "scale cells"])
def test_a_filter_leaves_k_where_there_are_k(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    index = filled(name, MANY[:600])
    index.add(MANY[600:700])
    index.remove(np.arange(0, 700, 7))
    model = Model(index.encoder, "l2")
    model.put(model.encode(MANY[:700]), np.arange(700))
    model.drop(np.arange(0, 700, 7))
    for share in (0.005, 0.02, 0.24, 0.26, 0.9, 1):
        mask = np.random.default_rng(1).random(700) < share
        live = np.flatnonzero(mask & (np.arange(700) % 7 > 0))
        for given in (mask, np.flatnonzero(mask), np.flatnonzero(mask).astype(np.uint16), [*live, 10**6, -5]):
            for dense in (0, 4, 10**9):  # searched in place, as it comes, apart
                monkeypatch.setattr(index_module, "_DENSE", dense)
                found = index.search(QUERIES, len(live), filter=given)[1]
                assert (np.sort(found) == live).all()
        check_search(index, model, 6, live, mask)
    for nothing in ([], np.zeros(700, bool), np.zeros(0, bool), [0, 7, 5000]):
        distances, ids = index.search(QUERIES, 3, filter=nothing)
        assert (ids == -1).all() and np.isinf(distances).all()
        assert index.range_search(QUERIES, np.inf, filter=nothing)[0][-1] == 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["byte", "scale cells"])
def test_rerank_gives_true_distances(name: str, metric: str) -> None:
    index = filled(name, MANY, metric=metric)
    X, Q = as_metric(MANY, metric), as_metric(QUERIES, metric)
    true = ((Q[:, None] - X) ** 2).sum(2) if metric == "l2" else (metric == "cosine") - Q @ X.T
    for originals in (
        MANY,
        MANY.astype(np.float32).astype(np.float64),
        lambda ids: MANY[ids],
        lambda ids: MANY[ids].tolist(),
    ):
        distances, ids = index.search(QUERIES, 7, rerank=originals, shortlist=200)
        np.testing.assert_allclose(distances, np.take_along_axis(true, ids, 1), rtol=1e-5, atol=1e-6)
    candidates = index.search(QUERIES, 200)[1]
    for row, held in enumerate(candidates):
        order = np.lexsort((held, true[row, held]))[:7]
        np.testing.assert_array_equal(index.search(QUERIES, 7, rerank=MANY, shortlist=200)[1][row], held[order])
    whole = index.search(QUERIES, 7, rerank=MANY, shortlist=3000)
    np.testing.assert_allclose(whole[0], np.sort(true, axis=1)[:, :7], rtol=1e-9, atol=1e-12)
    few = index.search(QUERIES, 7, rerank=MANY, filter=[4, 5])
    assert (np.sort(few[1][:, :2]) == [4, 5]).all() and (few[1][:, 2:] == -1).all() and np.isinf(few[0][:, 2:]).all()


def test_within_a_radius() -> None:
    index = filled("exact", MANY)
    everything = index.search(QUERIES, 3000)
    for radius in (-1.0, 0, 0.5, np.float32(3), 20, np.inf):
        limits, distances, ids = index.range_search(QUERIES, radius)
        assert limits[0] == 0 and limits[-1] == len(distances) == len(ids)
        for row in range(len(QUERIES)):
            inside = everything[0][row] <= radius
            np.testing.assert_array_equal(ids[limits[row] : limits[row + 1]], everything[1][row][inside])
            np.testing.assert_array_equal(distances[limits[row] : limits[row + 1]], everything[0][row][inside])
    assert index.range_search(QUERIES, 2, method="hamming")[1].dtype == np.int32
    assert index.range_search(QUERIES[:0], 2)[0].tolist() == [0]


def test_an_index_without_vectors(tmp_path) -> None:
    for path in (None, tmp_path / "index"):
        index = Index.create(path, fitted("scale cells"))
        for _ in range(2):
            assert len(index) == 0 and 0 not in index and len(index.ids) == 0 and index.stats()["vectors"] == 0
            assert (index.search(QUERIES, 3)[1] == -1).all() and index.range_search(QUERIES, 1.0)[0][-1] == 0
            assert (index.search(QUERIES, 3, rerank=MANY)[1] == -1).all()
            assert index.reconstruct([]).shape == (0, 6)
            assert len(index.add(np.zeros((0, 6)))) == len(index.add(iter([]))) == 0
            index.remove([])
            index.compact()
            index.verify()
            index.remove(index.add(POOL))
        assert index.add(POOL[:1])[0] == 300  # ids do not come back


def test_hamming_alone_where_vectors_cannot_be_rebuilt() -> None:
    index = Index.create(None, SpectralHashEncoder(9).fit(POOL))
    index.add(POOL)
    assert (index.search(POOL[:5], 1, method="hamming")[0] == 0).all()
    for ask in (lambda: index.search(QUERIES, 1), lambda: index.search(QUERIES, 1, method="asymmetric")):
        with pytest.raises(UnsupportedError, match="hamming"):
            ask()


# On the disk.


def test_an_add_writes_its_own_vectors_and_no_more(tmp_path) -> None:
    path = tmp_path / "index"
    index = filled("byte", MANY[:2000], path=path)
    before = {name: (path / name).stat() for name in os.listdir(path)}
    index.add(MANY[:32])
    new = [name for name in os.listdir(path) if name.startswith("segment") and name not in before]
    assert len(new) == 1 and (path / new[0]).stat().st_size < 2048
    assert all((path / name).stat().st_ino == s.st_ino for name, s in before.items() if "manifest" not in name)
    index.remove([5])
    assert len(list(path.glob("deleted-*"))) == 1 and next(path.glob("deleted-*")).stat().st_size < 512


def test_many_small_adds_stay_few_segments(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_SMALLEST", 8)
    index, most, written = Index.create(None, fitted("tight")), 0, []
    save = index._store.save
    monkeypatch.setattr(index._store, "save", lambda segment: (written.append(segment.rows), save(segment))[1])
    for at in range(1000):
        index.add(POOL[at % 150 : at % 150 + 1])
        most = max(most, index.stats()["segments"])
    assert most <= 7 * 4 and len(index) == 1000
    assert sum(written) < 1000 * 6  # a vector is written anew a few times
    expected = filled("tight", POOL[np.arange(1000) % 150]).search(QUERIES, 30)
    assert_same(index.search(QUERIES, 30), expected)
    index.remove(np.arange(1000))
    assert len(index) == 0 and index.stats()["segments"] == 0


def test_an_iterator_is_written_as_it_comes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_SEGMENT_ROWS", 500)
    path = tmp_path / "index"
    index = Index.create(path, fitted("byte"))
    seen = []

    def parts():
        for at in range(0, 3000, 250):
            seen.append(len(list(path.glob("segment-*"))))
            yield MANY[at : at + 250]

    index.add(parts())
    assert seen == sorted(seen) and seen[-1] >= 4
    assert_same(index.search(QUERIES, 9), filled("byte", MANY).search(QUERIES, 9))
    index.verify()


def test_codes_are_mapped_and_not_read(tmp_path) -> None:
    path = tmp_path / "index"
    with filled("byte", MANY, path=path) as index:
        for opened in (index, Index.open(path, read_only=True)):
            for segment in opened._state.segments:
                for array in (segment.layout.blocks, segment.ids, segment.order):
                    while isinstance(array, np.ndarray):
                        assert not array.flags.owndata and not array.flags.writeable
                        array = array.base
                    assert isinstance(getattr(array, "obj", array), mmap.mmap)


def test_stats(tmp_path) -> None:
    index = filled("byte", MANY[:100], path=tmp_path / "index")
    index.remove([1, 2])
    stats = index.stats()
    files = sum((tmp_path / "index" / name).stat().st_size for name in os.listdir(tmp_path / "index"))
    assert stats["disk_bytes"] == files and stats["vectors"] == 98 and stats["deleted"] == 2
    assert stats["bits"] == 12 and stats["code_bytes"] == stats["scan_bytes"] == 3 and stats["dimensions"] == 6


# Indexes that were written once, and must be read for ever.


def golden_indexes():
    """Encoders and vectors of the golden indexes."""
    X = np.random.default_rng(5).standard_normal((60, 4)).round(2)
    flat = AntiSparseEncoder(8, frame="tight", effort=0, random_state=0).fit(X)
    cells = AntiSparseEncoder(8, means=3, scale=True, random_state=0).fit(X)
    return {"flat": (flat, "cosine", X), "cells": (cells, "l2", X)}


def golden_queries():
    return np.random.default_rng(6).standard_normal((4, 4)).round(2)


def write_golden():
    """Run by hand, once a version of the format: python -c "import test_index; test_index.write_golden()"."""
    for name, (encoder, metric, X) in golden_indexes().items():
        path = GOLDEN / name
        path.mkdir(parents=True)
        with Index.create(path, encoder, metric=metric) as index:
            index.add(X[:40])
            index.remove([2, 3, 17])
            index.add(X[40:], np.arange(100, 120))
            methods = ("reconstruction",) if name == "cells" else ("reconstruction", "hamming", "asymmetric")
            expected = {"ids": index.ids.tolist(), "codes": index.codes(index.ids).tolist(), "methods": {}}
            for method in methods:
                distances, ids = index.search(golden_queries(), 6, method=method)
                expected["methods"][method] = {"distances": distances.tolist(), "ids": ids.tolist()}
            expected["rebuilt"] = index.reconstruct([0, 119]).tolist()
        (path / ".lock").unlink(missing_ok=True)
        (GOLDEN / f"{name}.json").write_text(json.dumps(expected))


@pytest.mark.parametrize("name", ["flat", "cells"])
def test_the_first_version_of_the_format_is_read(name: str) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    index = Index.open(GOLDEN / name, read_only=True, verify=True)
    assert index.ids.tolist() == expected["ids"] and index.codes(index.ids).tolist() == expected["codes"]
    np.testing.assert_allclose(index.reconstruct([0, 119]), expected["rebuilt"], rtol=1e-12)
    for method, wanted in expected["methods"].items():
        distances, ids = index.search(golden_queries(), 6, method=method)
        assert ids.tolist() == wanted["ids"]
        np.testing.assert_allclose(distances, wanted["distances"], rtol=1e-12)


def test_a_golden_index_can_be_written_to(tmp_path) -> None:
    import shutil

    for name in ("flat", "cells"):
        path = tmp_path / name
        shutil.copytree(GOLDEN / name, path)
        with Index.open(path) as index:
            assert index.add(golden_queries())[0] == 120
            index.compact()
        with Index.open(path, verify=True) as index:
            assert len(index) == 61 and set(os.listdir(path)) - {".lock"} == {
                "manifest.json",
                *read_manifest(path).files(),
            }
