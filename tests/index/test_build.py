"""Index.build: vectors in, an index out."""

import os

import numpy as np
import pytest
import zoo
from models import Model, assert_same

from antisparse import AntisparseError, Index, InputError, InputTypeError, LearnedEncoder, StorageError
from antisparse.index import build as build_module
from antisparse.index.build import cell_count

X = zoo.vectors(900, 21)
Q = zoo.vectors(200, 22) + 0.1 * np.random.default_rng(3).standard_normal((200, 10))


def built(given=X, n_bytes=6, **options):
    return Index.build(given, n_bytes, random_state=0, n_threads=1, **options)


def same(one, other, ids=None):
    """Two indexes with the same codec and codes."""
    assert one.codec == other.codec and one.metric == other.metric
    np.testing.assert_array_equal(one.ids, other.ids if ids is None else np.sort(ids))
    np.testing.assert_array_equal(one.codes(one.ids if ids is None else ids), other.codes(other.ids))
    if ids is None:
        assert_same(one.search(Q, 9), other.search(Q, 9))


def test_it_is_the_learned_encoder_and_the_codes_of_all() -> None:
    index = built()
    encoder = LearnedEncoder(6, random_state=0, n_threads=1).fit(X)
    assert index.codec == encoder.codec_ and len(index) == 900 and index.codec.n_bytes == 6
    np.testing.assert_array_equal(index.ids, np.arange(900))
    np.testing.assert_array_equal(index.codes(index.ids), encoder.transform(X))
    true = ((Q[:, None] - X) ** 2).sum(2).argmin(1)
    assert np.mean([t in row for t, row in zip(true, index.search(Q, 10)[1], strict=True)]) > 0.8
    assert Index.build(X, random_state=0).codec.n_bytes == 16  # by default
    assert index.add(X[:1])[0] == 900


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_every_metric_finds_the_true_neighbours(metric: str) -> None:
    index = built(metric=metric)
    U, V = (Y / np.linalg.norm(Y, axis=1, keepdims=True) if metric == "cosine" else Y for Y in (Q, X))
    true = ((U[:, None] - V) ** 2).sum(2) if metric == "l2" else (metric == "cosine") - U @ V.T
    distances, ids = index.search(Q, 10)
    assert index.metric == metric
    assert np.mean([row.argmin() in found for row, found in zip(true, ids, strict=True)]) > 0.8
    assert np.abs(distances - np.take_along_axis(true, ids, 1)).mean() < 0.2 * true.std()
    if metric == "cosine":  # lengths do not matter, in learning neither
        longer = built(X * np.linspace(1, 50, 900)[:, None], metric=metric)
        assert np.mean(longer.search(3 * Q, 1)[1] == index.search(Q, 1)[1]) > 0.7
        with pytest.raises(InputError, match="X row 7 is zero"):
            built(X * (np.arange(900) != 7)[:, None], metric=metric)


def test_a_memory_map_a_list_and_other_types(tmp_path) -> None:
    index = built()
    np.save(tmp_path / "x.npy", X.astype(np.float32))  # which holds quarters
    same(built(np.load(tmp_path / "x.npy", mmap_mode="r")), index)
    same(built(X.tolist()), index)
    same(built(np.asfortranarray(X)), index)
    assert len(built((4 * X).astype(np.int16))) == 900


def test_an_iterator() -> None:
    index = built()
    same(built(X[at : at + 250] for at in range(0, 900, 250)), index)
    same(built(iter([X[:0], X[:500], X[500:500], X[500:]])), index)
    # The first vectors are learned from, whatever comes after; all are added, each once.
    first = LearnedEncoder(6, train=300, random_state=0, n_threads=1).fit(X[:300]).codec_
    taken = []

    def parts():
        for at in range(0, 900, 200):
            taken.append(at)
            yield X[at : at + 200]

    index = built(parts(), train=300)
    assert index.codec == first and taken == [0, 200, 400, 600, 800]
    np.testing.assert_array_equal(index.codes(np.arange(900)), first.encode(X))


def test_training_vectors_are_drawn_from_an_array() -> None:
    index = built(train=200)
    assert index.codec == LearnedEncoder(6, train=200, random_state=0, n_threads=1).fit(X).codec_
    assert index.codec != LearnedEncoder(6, random_state=0, n_threads=1).fit(X[:200]).codec_
    assert len(index) == 900


def test_ids(tmp_path) -> None:
    index = built()
    ids = np.random.default_rng(0).permutation(5000)[:900]
    for given in (X, iter([X[:300], X[300:]])):
        own = built(given, ids=ids)
        same(own, index, ids)
        assert own.add(X[:1])[0] == ids.max() + 1
    for wrong, message in (
        (ids[:899], "ids has 899 entries, but X has 900 vectors"),
        ([*ids, 6000], "ids has 901 entries, but X has 900 vectors"),
        ([*ids[:899], ids[0]], "twice|is there already"),
        (-ids, "out of range"),
    ):
        with pytest.raises(InputError, match=message):
            built(ids=wrong, path=tmp_path / "index")
        assert os.listdir(tmp_path) == []
    with pytest.raises(InputTypeError, match="ids has dtype float64"):
        built(ids=ids.astype(float), path=tmp_path / "index")


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_cells(metric: str) -> None:
    index = built(cells=7, metric=metric, n_bytes=7)
    assert index.cells == 7 and index.codec.n_bytes == 7 and len(index) == 900
    assert_same(index.search(Q, 5, probes=7), index.search(Q, 5))
    model = Model("codebooks")
    model.codec, model.metric = index.codec, metric
    model.put(model.encode(X), np.arange(900))
    assert_same(index.search(Q, 5), model.search(Q, 5))
    assert built(cells=1, metric=metric).codec == built(cells="auto", metric=metric).codec == built(metric=metric).codec


def test_the_cells_of_a_large_set() -> None:
    sizes = (10, 999_999, 10**6, 10**7, 10**9)
    assert [cell_count("auto", n, 100_000) for n in sizes] == [None, None, 1024, 2048, 2048]
    assert [cell_count("auto", n, 1 << 40) for n in (10**6, 10**7, 10**8, 10**9)] == [1024, 16_384, 32_768, 65_536]
    assert cell_count("auto", 10**9, 10**6) == 16_384
    assert cell_count("auto", 10**6, 2000) == 32 and cell_count("auto", 10**6, 10) == 1


def test_many_vectors_get_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "_FLAT", 900)
    assert built().cells == 16  # as many as 900 vectors can be learned from
    assert built(X[:899]).cells == 1
    assert built(iter([X])).cells == 1  # no one knows how many come


def test_a_folder_appears_when_the_index_is_whole(tmp_path) -> None:
    path, seen = tmp_path / "index", []

    def parts():
        for at in range(0, 900, 300):
            seen.append(path.exists())
            yield X[at : at + 300]

    with built(parts(), path=path) as index:
        assert seen == [False] * 3 and os.listdir(tmp_path) == ["index"]
        same(index, built())
        index.remove([3])  # it is open for writing
        assert index.add(X[:1])[0] == 900
    with Index.open(str(path), verify=True) as opened:
        assert len(opened) == 900 and 3 not in opened
    with built(path=str(tmp_path / "other"), metric="cosine", cells=3) as other:
        assert other.metric == "cosine" and other.cells == 3
    for where, message in ((path, "exists already"), (tmp_path / "no" / "where", "there is no folder")):
        with pytest.raises(InputError, match=f"path = .*{message}"):
            built(path=where)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        built(path=tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["index", "link", "other"]


class Stop(Exception):
    pass


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, OSError, MemoryError])
def test_a_failure_leaves_no_folder(tmp_path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    monkeypatch.setattr("antisparse.index.writer._SEGMENT_ROWS", 100)  # so that some are on the disk by then
    there = []

    def parts():
        yield X[:300]
        yield X[300:600]
        there.extend(tmp_path.rglob("segment-*"))
        raise error

    with pytest.raises(error):
        built(parts(), path=tmp_path / "index", train=200)
    assert there and os.listdir(tmp_path) == []
    bad = X.copy()
    bad[700, 2] = np.inf
    for given in (bad, iter([X[:300], bad])):
        with pytest.raises(InputError, match="is inf"):
            built(given, path=tmp_path / "index", train=200)
        assert os.listdir(tmp_path) == []
    with pytest.raises(InputError, match="X has 4 columns but the codec was fitted on vectors of 10 dimensions"):
        built(iter([X, X[:, :4]]), path=tmp_path / "index", train=900)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_leaves_no_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("antisparse._files.os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        built(path=tmp_path / "index")
    assert os.listdir(tmp_path) == []


def test_someone_else_takes_the_name_meanwhile(tmp_path) -> None:
    path = tmp_path / "index"

    def parts():
        yield X
        path.mkdir()
        (path / "mine").write_text("mine")

    with pytest.raises((AntisparseError, OSError)):
        built(parts(), path=path)
    assert os.listdir(tmp_path) == ["index"] and (path / "mine").read_text() == "mine"


def test_progress_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    built()
    assert capsys.readouterr() == ("", "")
    for given in (X, iter([X])):
        built(given, progress=True)
        shown = capsys.readouterr()
        assert shown.out == "" and "adding" in shown.err and "left" in shown.err


@pytest.mark.parametrize(
    ("given", "options", "kind", "message"),
    [
        (X[:0], {}, InputError, "X has no rows"),
        (iter([]), {}, InputError, "X has no rows"),
        (iter([X[:0]]), {}, InputError, "X has no rows"),
        (X[0], {}, InputError, "X has shape"),
        (iter([X, X[0]]), {}, InputError, "X has shape"),
        (iter([X[:50], X[:50, :4]]), {}, InputError, "different numbers of columns"),
        (X.astype(str), {}, InputTypeError, "X has dtype"),
        (X * np.nan, {}, InputError, "X row 0, column 0 is nan"),
        (X, {"n_bytes": 0}, InputError, "n_bytes = 0"),
        (X, {"n_bytes": 1.5}, InputTypeError, "n_bytes must be an integer"),
        (X, {"metric": "l1"}, InputError, "metric = 'l1'"),
        (X, {"cells": 0}, InputError, "cells = 0"),
        (X, {"cells": 2**20 + 1}, InputError, "cells = 1048577"),
        (X, {"cells": 901}, InputError, "cells = 901, but X has 900 vectors"),
        (X, {"cells": "many"}, InputTypeError, "cells must be an integer"),
        (X, {"cells": True}, InputTypeError, "cells must be an integer"),
        (X, {"cells": 1.0}, InputTypeError, "cells must be an integer"),
        (X, {"cells": None}, InputTypeError, "cells must be an integer"),
        (X, {"cells": 300, "n_bytes": 2}, InputError, "n_bytes = 2 leaves nothing for symbols"),
        (X, {"train": 0}, InputError, "train = 0"),
        (X, {"train": "all"}, InputTypeError, "train must be an integer"),
        (X, {"progress": 1}, InputTypeError, "progress must be True or False"),
        (X, {"ids": [1, 2]}, InputError, "ids has 2 entries"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, given, options, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        built(given, path=tmp_path / "index", **options)
    assert os.listdir(tmp_path) == []
    with pytest.raises(InputError, match="n_threads = 0"):
        Index.build(X, 6, n_threads=0)


def test_errors_name_the_row_of_the_caller_and_ids_are_checked_first() -> None:
    rows = np.random.default_rng(0).standard_normal((6000, 4))
    rows[5500, 2] = np.nan
    with pytest.raises(InputError, match="X row 5500, column 2"):
        Index.build(rows, 2, train=100, random_state=0)
    with pytest.raises(InputError, match="X row 5500, column 2"):
        Index.build(iter(np.array_split(rows, 60)), 2, train=100, random_state=0)
    for ids, message in ((np.arange(5), "ids has 5 entries, but X has 6000"), (np.zeros(6000, int), "ids has 0 twice")):
        with pytest.raises(InputError, match=message):
            Index.build(rows, 2, ids=ids)


def test_what_is_learned_from_may_be_other_vectors_than_those_added() -> None:
    apart = zoo.vectors(300, 33)
    encoder = LearnedEncoder(6, symbols="signs", effort=1, random_state=0, n_threads=1).fit(apart)
    options = {"symbols": "signs", "effort": 1, "learn": apart}
    for given in (X, iter([X[:500], X[500:]])):
        index = built(given, **options)
        assert index.codec == encoder.codec_
        np.testing.assert_array_equal(index.codes(index.ids), encoder.transform(X))
    assert len(built(np.zeros((0, 10)), **options)) == 0  # an index to be added to
    for learn, message in (
        (apart[:, :7], "learn has vectors of 7 dimensions; those to add have 10"),
        (apart[:0], "learn has no rows"),
        (apart * np.nan, r"learn row \d+, column 0 is nan"),
    ):
        with pytest.raises(InputError, match=message):
            built(learn=learn)
