"""Vectors and numbers at the edge of what there is: an answer, or an error that names them; never a damaged index."""

import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import zoo
from sklearn.base import clone

from antisparse import CodeBase, Index, InputError, hamming_search
from antisparse.codes import pack
from antisparse.evaluation import exact_neighbors

X = np.random.default_rng(0).standard_normal((200, 10))
ODD = ["lsh", "lsh reduced", "itq", "itq ip", "signs", "signs cosine scale", "codebooks ip", "levels ip", "codebooks"]
MANY = (10**8, 2**31 - 1)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-120, 1.0, 1e130])
@pytest.mark.parametrize("name", ODD)
def test_sound_codes_are_never_called_damaged(name: str, size: float) -> None:
    vectors = X * size
    if size < 1e-140 and name in ("signs", "codebooks"):  # whose bias is a square
        with pytest.raises(InputError, match=r"X: its vectors differ .* scale them up"):
            clone(zoo.ENCODERS[name]).fit(vectors)
        return
    codec = clone(zoo.ENCODERS[name]).fit(vectors).codec_
    base = CodeBase(codec, codec.encode(vectors))
    for query in (vectors[:5], vectors[:5] * 1e-5, X[:5], X[:5] * 1e80, X[:5] * 1e138, X[:5] * 1e200, X[:5] * 1e-160):
        for method in zoo.methods(name):
            with suppress(InputError):  # which says so, and which row it is
                distances, ids = base.search(query, 3, method=method)
                assert np.isfinite(distances).all() and (ids >= 0).all()


def test_queries_too_large_or_too_small_are_named() -> None:
    for name, size in (("lsh", 1e-160), ("itq", 1e-160), ("itq ip", 1e-300)):
        codec = clone(zoo.ENCODERS[name]).fit(X * size).codec_
        with pytest.raises(InputError, match=r"Q row 0 .*scale the vectors"):
            CodeBase(codec, codec.encode(X * size)).search(X * size, 3)
    codec = zoo.codec("lsh")
    with pytest.raises(InputError, match=r"Q row 2 .*scale the vectors down"):
        CodeBase(codec, codec.encode(X)).search(np.where(np.arange(200)[:, None] == 2, 1e200, X), 3)


@pytest.mark.parametrize("name", ["signs", "signs nibble", "codebooks cells nibble"])
def test_vectors_far_beyond_the_ones_learned_from_have_a_code(name: str) -> None:
    train = np.concatenate([X, X[:, ::-1]]) * 1e-120  # enough for shares of the error in the bias
    codec = clone(zoo.ENCODERS[name]).fit(train).codec_
    codes = codec.encode(train)
    for size in (1e80, 1e130):
        assert codec.encode(X[:5] * size).shape == (5, codec.n_bytes)
        if codec.cells is None:
            assert CodeBase(codec, codes).search(X[:5] * size, 3, method="hamming")[1].shape == (5, 3)


@pytest.mark.parametrize("k", MANY)
@pytest.mark.parametrize("name", ["codebooks", "signs", "many cells"])
def test_memory_does_not_grow_with_k_beyond_the_codes(name: str, k: int) -> None:
    codec = zoo.codec(name)
    vectors = zoo.vectors(1500, 2)
    codes = codec.encode(vectors)
    base, index = CodeBase(codec, codes), Index.create(None, codec)
    index.add(vectors[:700])
    index.add(vectors[700:])
    wanted = base.search(vectors[:3], 1500)
    answers = {
        "base": lambda: base.search(vectors[:3], k),
        "index": lambda: index.search(vectors[:3], k),
        "filter": lambda: index.search(vectors[:3], k, filter=np.arange(1500)),
        "rerank": lambda: index.search(vectors[:3], 1500, rerank=vectors, shortlist=k),
        "rerank all": lambda: index.search(vectors[:3], k, rerank=vectors),
    }
    if name == "signs":
        answers["shortlist"] = lambda: base.search(vectors[:3], 1500, shortlist=k)
        answers["shortlist of an index"] = lambda: index.search(vectors[:3], 1500, shortlist=k)
    for name_of_answer, ask in answers.items():
        tracemalloc.start()
        distances, ids = ask()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 50e6, name_of_answer
        assert distances.shape == ids.shape == (3, 1500)
        if "rerank" not in name_of_answer:
            np.testing.assert_array_equal(ids, wanted[1])


@pytest.mark.parametrize("k", MANY)
def test_few_codes_and_a_large_k(k: int) -> None:
    """Answers of small sets keep the shape that was asked for, as far as that is sensible."""
    codes = pack(X)
    assert hamming_search(codes, codes[:2], 300)[1].shape == (2, 300)
    distances, ids = hamming_search(codes, codes[:2], k)
    assert ids.shape == (2, 1024) and (ids[:, :200] >= 0).all() and (ids[:, 200:] == -1).all()
    assert (distances[:, 200:] == np.iinfo(np.int32).max).all()
    codec = zoo.codec("codebooks")
    base = CodeBase(codec, codec.encode(zoo.vectors(7, 0)))
    distances, ids = base.search(zoo.vectors(2, 1), k)
    assert ids.shape == (2, 1024) and (ids[:, 7:] == -1).all() and np.isinf(distances[:, 7:]).all()
    distances, ids = exact_neighbors(X, X[:2], k)
    assert ids.shape == (2, 1024) and (ids[:, 200:] == -1).all() and np.isinf(distances[:, 200:]).all()
    np.testing.assert_array_equal(ids[:, :200], exact_neighbors(X, X[:2], 200)[1])
    empty = CodeBase(codec, codec.encode(zoo.vectors(0, 0)))
    assert (empty.search(zoo.vectors(2, 1), k)[1] == -1).all()


def test_many_queries_and_a_long_list_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = zoo.codec("signs")
    vectors = zoo.vectors(300, 2)
    base = CodeBase(codec, codec.encode(vectors))
    whole = base.search(vectors, 40, shortlist=200), hamming_search(base.codes, base.codes, 9)
    monkeypatch.setattr("antisparse.scan.search._LIST_ENTRIES", 1000)
    monkeypatch.setattr("antisparse.codes._QUERIES", 7)
    parts = base.search(vectors, 40, shortlist=200), hamming_search(base.codes, base.codes, 9)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
