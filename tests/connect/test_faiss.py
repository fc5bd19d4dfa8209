"""Bits to FAISS and back, and rotations."""

import re
from pathlib import Path

import numpy as np
import pytest
import zoo

from antisparse import Index, InputError, InputTypeError, LearnedEncoder, UnsupportedError
from antisparse.connect.faiss import add_faiss, reduced_faiss, to_faiss
from antisparse.evaluation import exact_neighbors, intersection_recall

faiss = pytest.importorskip("faiss", reason="FAISS is not installed")
WHOLE = [name for name in zoo.COMPARING if zoo.codec(name).symbols.n_bits % 8 == 0]
ALONE = [name for name in WHOLE if 8 * zoo.codec(name).n_bytes == zoo.codec(name).symbols.n_bits]


POOL = zoo.vectors(150, 1)
QUERIES = zoo.vectors(5, 2) + 0.1 * np.random.default_rng(2).standard_normal((5, 10))
fitted = zoo.codec


def filled(name):
    index = Index.create(None, fitted(name))
    index.add(POOL, np.arange(150) * 7 + 3)
    index.remove([3, 10])
    return index


def test_these_are_not_all_and_not_none() -> None:
    assert {"signs", "signs scale", "spread", "spread greedy", "paper", "lsh", "itq"} <= set(WHOLE)
    assert {"spread", "paper", "lsh", "itq"} <= set(ALONE) and "signs" not in ALONE


@pytest.mark.parametrize("name", WHOLE)
def test_faiss_finds_the_same(name: str) -> None:
    index = filled(name)
    binary = to_faiss(index)
    assert binary.ntotal == 148
    expected, _ = index.search(QUERIES, 12, method="hamming")
    own = index.codec.encode(QUERIES)[:, : index.codec.symbols.n_bits // 8]
    found, ids = binary.search(np.ascontiguousarray(own), 12)
    np.testing.assert_array_equal(found, expected)
    assert np.isin(ids, index.ids).all()


@pytest.mark.parametrize("name", ALONE)
def test_bits_come_back(name: str) -> None:
    index = filled(name)
    binary = to_faiss(index)
    again = Index.create(None, index.codec)
    np.testing.assert_array_equal(np.sort(add_faiss(again, binary)), index.ids)
    for method in zoo.methods(name):
        for found, expected in zip(
            again.search(QUERIES, 12, method=method), index.search(QUERIES, 12, method=method), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    plain = faiss.IndexBinaryFlat(index.codec.symbols.n_bits)
    plain.add(index.codec.encode(POOL))
    np.testing.assert_array_equal(add_faiss(Index.create(None, index.codec), plain), np.arange(150))


def test_an_empty_index() -> None:
    empty = Index.create(None, fitted("spread"))
    assert to_faiss(empty).ntotal == 0 and len(add_faiss(empty, to_faiss(empty))) == 0


def test_what_does_not_fit_is_an_error() -> None:
    index = Index.create(None, fitted("spread"))
    with pytest.raises(InputError, match="binary has codes of 48 bits, the index of 24"):
        add_faiss(index, faiss.IndexBinaryFlat(48))
    with pytest.raises(InputTypeError, match="IndexBinaryFlat"):
        add_faiss(index, object())
    for name in zoo.COMPARING:
        if name not in WHOLE:
            with pytest.raises(UnsupportedError, match="whole bytes"):
                to_faiss(Index.create(None, fitted(name)))
    for name in ("codebooks", "codebooks cells nibble", "many cells", "codebooks ip"):
        with pytest.raises(UnsupportedError, match="codebooks have no signs to compare"):
            to_faiss(Index.create(None, fitted(name)))
    for name in WHOLE:
        if name not in ALONE:
            with pytest.raises(UnsupportedError, match="the codes hold more than signs"):
                add_faiss(Index.create(None, fitted(name)), faiss.IndexBinaryFlat(fitted(name).symbols.n_bits))


def test_signs_relative_to_different_means_do_not_compare_in_faiss_either() -> None:
    for name in ("signs cells", "signs cells scale", "signs ip cells scale"):
        index = filled(name)
        with pytest.raises(UnsupportedError, match="relative to different means do not compare"):
            index.search(QUERIES, 1, method="hamming")
        with pytest.raises(UnsupportedError, match="relative to different means do not compare"):
            to_faiss(index)
    assert LearnedEncoder(5, symbols="signs", random_state=0).fit(zoo.TRAIN).codec_.cells is None  # so there is a way


def inner_index(codec):
    metric = faiss.METRIC_L2 if codec.metric.centres else faiss.METRIC_INNER_PRODUCT
    return faiss.IndexFlat(codec.reduction.reduced_dimension, metric)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_faiss_sees_the_reduced_vectors(name: str) -> None:
    codec = zoo.codec(name)
    inner = inner_index(codec)
    chain = reduced_faiss(codec, inner)
    assert chain.d == 10 and chain.is_trained
    chain.add(POOL.astype(np.float32))
    seen = faiss.vector_to_array(inner.codes).view(np.float32).reshape(150, -1)
    prepared = codec.metric.prepare(POOL, "X")
    expected = codec.reduction.reduce(prepared, 1, centre=codec.metric.centres)
    np.testing.assert_allclose(seen, expected, rtol=0, atol=4e-7 * np.abs(POOL).max() * 10)
    again = faiss.deserialize_index(faiss.serialize_index(chain))
    for one, other in zip(chain.search(QUERIES, 7), again.search(QUERIES, 7), strict=True):
        np.testing.assert_array_equal(one, other)


def test_faiss_cuts_vectors_to_the_dimensions_that_are_used() -> None:
    codec = LearnedEncoder(4, dimensions=6, metric="cosine", effort=1, random_state=0).fit(zoo.TRAIN).codec_
    inner = inner_index(codec)
    reduced_faiss(codec, inner).add(POOL.astype(np.float32))
    seen = faiss.vector_to_array(inner.codes).view(np.float32).reshape(150, -1)
    expected = codec.reduction.reduce(codec.metric.prepare(POOL[:, :6], "X"), 1)
    np.testing.assert_allclose(seen, expected, rtol=0, atol=2e-6)


def test_an_index_that_does_not_fit_behind_a_reduction_is_an_error() -> None:
    codec = zoo.codec("lsh reduced")
    with pytest.raises(InputTypeError, match="inner is a object"):
        reduced_faiss(codec, object())
    with pytest.raises(InputError, match="inner takes vectors of 10 dimensions, but reduced ones have 6"):
        reduced_faiss(codec, faiss.IndexFlatL2(10))
    with pytest.raises(InputError, match="another metric than the codec"):
        reduced_faiss(codec, faiss.IndexFlatIP(6))
    full = faiss.IndexFlatL2(6)
    full.add(np.zeros((3, 6), np.float32))
    with pytest.raises(InputError, match="inner holds 3 vectors"):
        reduced_faiss(codec, full)


def test_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks run, in order and in one namespace; ours finds more than FAISS in the same bytes, as it says."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "tutorials" / "from_faiss.md"
    namespace, found = {}, {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, str(page), "exec"), namespace)
        if "theirs" in block:
            X, Q = namespace["X"], namespace["Q"]
            _, truth = exact_neighbors(X, Q, 10)
            for name in ("theirs", "ours"):
                probes = {"probes": 8} if name == "ours" and namespace[name].codec.cells is not None else {}
                found[name, len(found) // 2] = intersection_recall(
                    namespace[name].search(Q, 10, **probes)[1], truth, 10
                )
    assert len(found) == 4 and all(found["ours", i] > found["theirs", i] for i in (0, 1)), found
