"""More than 65,536 cells: a number of three bytes, in codes, files and searches, against NumPy."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zoo
from ordered import halved

from antisparse import CodeBase, Codec, Index, InputError, LearnedEncoder, Split, _core
from antisparse.codec import Cells

COUNT, D = 70_001, 4


@cache
def codec(metric: str = "l2", ordered: bool = True) -> Codec:
    """A codec whose means are made up, and all else is fitted."""
    made = LearnedEncoder(6, metric=metric, split=Split("codebooks", 9), random_state=0).fit(vectors(2000, 0)).codec_
    means = halved(vectors(COUNT, 1))
    return replace(made, cells=Cells(means if ordered else np.random.default_rng(2).permutation(means)))


def vectors(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-4, 4, (n, D))


X, Q = vectors(3000, 3), vectors(40, 4)


def nearest(reduced: np.ndarray, means: np.ndarray, k: int) -> np.ndarray:
    return np.argsort((means * means).sum(1) / 2 - reduced @ means.T, axis=1, kind="stable")[:, :k]


def test_a_number_takes_three_bytes_with_the_low_one_first() -> None:
    assert codec().layout.cell_bytes == 3 and codec().n_bytes == 8 and codec().cells.points.ordered
    codes, reduced = codec().encode(X[:300]), codec().reduction.reduce(X[:300], 1)
    cells = codec().layout.cells(codes)
    at = codec().layout.symbol_bytes
    np.testing.assert_array_equal(codes[:, at : at + 3].astype(int) @ [1, 256, 65_536], cells)
    assert cells.max() > 65_536
    assert (cells == nearest(reduced, codec().cells.means, 1)[:, 0]).mean() > 0.97
    errors = ((codec().decode(codes) - X[:300]) ** 2).sum(1)
    assert (errors < 0.05).mean() > 0.99 and (
        errors < ((reduced - codec().cells.means[cells]) ** 2).sum(1)
    ).mean() > 0.5
    wrong = codes.copy()
    wrong[5, at : at + 3] = 255
    with pytest.raises(InputError, match=f"names cell {2**24 - 1}, but the codec has {COUNT}"):
        codec().decode(wrong)


def test_means_in_no_order_are_exact() -> None:
    other = codec(ordered=False)
    assert not other.cells.points.ordered
    np.testing.assert_array_equal(
        other.layout.cells(other.encode(X[:100])),
        nearest(other.reduction.reduce(X[:100], 1), other.cells.means, 1)[:, 0],
    )


def test_codes_and_answers_are_those_of_any_batch_threads_and_instruction_set() -> None:
    before, found = _core.isa(), []
    try:
        for isa in _core.isas():
            _core.use_isa(isa)
            fresh = replace(codec())  # which prepares its points anew
            codes = fresh.encode(X)
            np.testing.assert_array_equal(codes[100:102], fresh.encode(X[100:102], n_threads=1))
            base = CodeBase(fresh, codes)
            answers = base.search(Q, 10)
            np.testing.assert_array_equal(answers[1][7], base.search(Q[7], 10)[1])
            index = Index.create(None, fresh)
            index.add_codes(codes)
            found.append((codes, *answers, *index.search(Q, 10, probes=200)))
    finally:
        _core.use_isa(before)
    for one in found[1:]:
        for mine, theirs in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_an_index(tmp_path: Path, metric: str) -> None:
    made = codec(metric)
    with Index.create(tmp_path / "index", made) as index:
        index.add(X[:2000], ids=np.arange(2000) * 7 + 3)
        index.add(X[2000:], ids=np.arange(2000, 3000) * 7 + 3)
        index.remove(np.arange(0, 500) * 7 + 3)
        index.update(X[10:11], [3 + 7 * 600])
        found = index.search(Q, 10, probes=300)
        everything = index.search(Q, 10)
    with Index.open(tmp_path / "index") as index:
        index.verify()
        assert len(index) == 2500 and index.cells == COUNT
        for one, other in ((found, index.search(Q, 10, probes=300)), (everything, index.search(Q, 10))):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])
        index.compact()
        for answer, probes in ((found, 300), (everything, "all")):
            for mine, theirs in zip(answer, index.search(Q, 10, probes=probes), strict=True):
                np.testing.assert_array_equal(mine, theirs)
        # All of them, by the codes alone.
        ids = index.ids
        codes = index.codes(ids)
        base = CodeBase(made, codes)
        distances, rows = base.search(Q, 10)
        np.testing.assert_array_equal(everything[0], distances)
        np.testing.assert_array_equal(everything[1], ids[rows])
        # The cells that are visited are nearly the nearest, and all codes in them are found.
        reduced = made.reduction.reduce(made.metric.prepare(Q, "Q"), 1, centre=made.metric.centres)
        half = (made.cells.means**2).sum(1) / 2 if made.metric.centres else 0
        visited = np.argsort(half - reduced @ made.cells.means.T, axis=1, kind="stable")[:, :300]
        cells = made.layout.cells(codes)
        inside = np.array([np.isin(cells, row).sum() for row in visited])
        assert ((found[1] >= 0).sum(1) <= np.minimum(10, 1.2 * inside + 2)).all()
        shares = [
            np.isin(mine[mine >= 0], ids[np.isin(cells, row)]).mean()
            for mine, row in zip(found[1], visited, strict=True)
            if (mine >= 0).any()
        ]
        assert np.mean(shares) > 0.9
        allowed = ids[::5]
        np.testing.assert_array_equal(
            index.search(Q, 10, filter=allowed)[1], ids[::5][CodeBase(made, codes[::5]).search(Q, 10)[1]]
        )
        limits, near_distances, near_ids = index.range_search(Q, float(np.median(everything[0][:, 4])))
        assert limits[-1] == len(near_ids) == len(near_distances) > 0


def test_few_queries_at_a_time_visit_all_cells() -> None:
    """What is kept of every cell for every query is bounded; answers do not depend on it."""
    codes = codec().encode(X)
    base, many = CodeBase(codec(), codes), vectors(300, 9)
    distances, ids = base.search(many, 3)
    np.testing.assert_array_equal(base.search(many[150:151], 3)[1][0], ids[150])
    rebuilt = codec().decode(codes)
    exact = ((many[:, None] - rebuilt[None]) ** 2).sum(2)
    assert (exact.argmin(1) == ids[:, 0]).mean() > 0.8 and np.isfinite(distances).all()


def test_the_codec_and_an_empty_index_are_stored(tmp_path: Path) -> None:
    codec().save(tmp_path / "codec.safetensors")
    assert Codec.load(tmp_path / "codec.safetensors") == codec()
    with pytest.raises(InputError, match="cells are 2 to 1,048,576"):
        Cells(np.zeros((2**20 + 1, 1)))
    assert len(Cells(np.zeros((2**20, 1)))) == 2**20
    assert zoo.codec("many cells").layout.cell_bytes == 2
