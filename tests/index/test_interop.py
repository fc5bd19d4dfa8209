"""Bits to FAISS and back."""

import numpy as np
import pytest
import zoo
from models import POOL, QUERIES, assert_same, fitted, searches

from antisparse import Index, InputError, InputTypeError, LearnedEncoder, UnsupportedError
from antisparse.index import add_faiss, to_faiss

faiss = pytest.importorskip("faiss", reason="FAISS is not installed")
WHOLE = [name for name in zoo.COMPARING if zoo.codec(name).symbols.n_bits % 8 == 0]
ALONE = [name for name in WHOLE if 8 * zoo.codec(name).n_bytes == zoo.codec(name).symbols.n_bits]


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
    for options in searches(name):
        assert_same(again.search(QUERIES, 12, **options), index.search(QUERIES, 12, **options))
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
