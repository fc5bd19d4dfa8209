"""Bits to FAISS and back."""

import numpy as np
import pytest

from antisparse import AntiSparseEncoder, Index, InputError, InputTypeError, UnsupportedError
from antisparse.index import add_faiss, to_faiss

faiss = pytest.importorskip("faiss", reason="FAISS is not installed")
RNG = np.random.default_rng(0)
X, Q = RNG.standard_normal((300, 10)), RNG.standard_normal((20, 10))
ENCODER = AntiSparseEncoder(40, frame="tight", effort=0, random_state=0).fit(X)


def test_faiss_finds_the_same_and_the_bits_come_back() -> None:
    index = Index.create(None, ENCODER)
    index.add(X, np.arange(300) * 7 + 3)
    index.remove([3, 10])
    binary = to_faiss(index)
    expected, _ = index.search(Q, 12, method="hamming")
    found, ids = binary.search(ENCODER.transform(Q), 12)
    np.testing.assert_array_equal(found, expected)
    assert np.isin(ids, index.ids).all()
    again = Index.create(None, ENCODER)
    np.testing.assert_array_equal(np.sort(add_faiss(again, binary)), index.ids)
    for one, other in zip(again.search(Q, 12), index.search(Q, 12), strict=True):
        np.testing.assert_array_equal(one, other)
    plain = faiss.IndexBinaryFlat(40)
    plain.add(ENCODER.transform(X))
    np.testing.assert_array_equal(add_faiss(Index.create(None, ENCODER), plain), np.arange(300))


def test_what_does_not_fit_is_an_error() -> None:
    index = Index.create(None, ENCODER)
    with pytest.raises(InputError, match="48 bits"):
        add_faiss(index, faiss.IndexBinaryFlat(48))
    with pytest.raises(InputTypeError, match="IndexBinaryFlat"):
        add_faiss(index, object())
    odd = AntiSparseEncoder(41, frame="tight", effort=0, random_state=0).fit(X)
    with pytest.raises(UnsupportedError, match="whole bytes"):
        to_faiss(Index.create(None, odd))
    words = AntiSparseEncoder(40, frame="words", random_state=0).fit(X)
    with pytest.raises(UnsupportedError, match="words have no signs"):
        to_faiss(Index.create(None, words))
    learned = AntiSparseEncoder(40, random_state=0).fit(X)
    with pytest.raises(UnsupportedError, match="side bytes"):
        add_faiss(Index.create(None, learned), faiss.IndexBinaryFlat(40))
