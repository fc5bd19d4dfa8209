"""The gate for input: what is masked, what is no number, and arguments that say too much."""

import numpy as np
import pytest
import zoo
from sklearn.base import clone

from antisparse import (
    CodeBase,
    Index,
    InputError,
    InputTypeError,
    LearnedEncoder,
    LSHEncoder,
    hamming,
    hamming_search,
    learn_codebooks,
    learn_frame,
    pack,
    refine,
    spread,
    tight_frame,
    to_lsb_first,
    tune,
    unpack,
)
from antisparse.evaluation import exact_neighbors, intersection_recall, nearest_rank, recall_at

CODEC = zoo.codec("lsh")
X = zoo.vectors(30, 1)
ROWS = CODEC.encode(X)


def masked(array: np.ndarray) -> np.ma.MaskedArray:
    """The array with its first entry masked."""
    mask = np.zeros(np.shape(array), bool)
    mask.reshape(-1)[:1] = True
    return np.ma.array(array, mask=mask)


def index() -> Index:
    found = Index.create(None, CODEC)
    found.add(X)
    return found


# Every argument that is an array: vectors, queries, codes, ids, filters, frames, originals.
ARRAYS = {
    "encode": lambda m: CODEC.encode(m(X)),
    "encode rows": lambda m: CODEC.encode([m(row) for row in X]),
    "decode": lambda m: CODEC.decode(m(ROWS)),
    "transform": lambda m: LSHEncoder(8, random_state=0).fit(X).transform(m(X)),
    "fit": lambda m: LSHEncoder(8).fit(m(X)),
    "fit learned": lambda m: LearnedEncoder(2, train=20).fit(m(X)),
    "code base": lambda m: CodeBase(CODEC, m(ROWS)),
    "code base search": lambda m: CodeBase(CODEC, ROWS).search(m(X), 2),
    "one query": lambda m: CodeBase(CODEC, ROWS).search(m(X[0]), 2),
    "build": lambda m: Index.build(m(X), 2),
    "build ids": lambda m: Index.build(X, 2, ids=m(np.arange(30))),
    "build learn": lambda m: Index.build(X, 2, learn=m(X)),
    "add": lambda m: index().add(m(X)),
    "add part": lambda m: index().add(iter([m(X)])),
    "add ids": lambda m: index().add(X, m(np.arange(100, 130))),
    "add list of ids": lambda m: index().add(X[:2], [m(np.array(100)), 101]),
    "add codes": lambda m: index().add_codes(m(ROWS)),
    "add codes ids": lambda m: index().add_codes(ROWS, m(np.arange(100, 130))),
    "remove": lambda m: index().remove(m(np.arange(3))),
    "update": lambda m: index().update(m(X[:3]), np.arange(3)),
    "update ids": lambda m: index().update(X[:3], m(np.arange(3))),
    "codes": lambda m: index().codes(m(np.arange(3))),
    "reconstruct": lambda m: index().reconstruct(m(np.arange(3))),
    "search": lambda m: index().search(m(X), 2),
    "filter": lambda m: index().search(X, 2, filter=m(np.arange(3))),
    "mask": lambda m: index().search(X, 2, filter=m(np.ones(30, bool))),
    "rerank": lambda m: index().search(X, 2, rerank=m(X)),
    "rerank function": lambda m: index().search(X, 2, rerank=lambda ids: m(X[ids])),
    "range search": lambda m: index().range_search(m(X), 2.0),
    "range filter": lambda m: index().range_search(X, 2.0, filter=m(np.arange(3))),
    "hamming": lambda m: hamming(m(ROWS), ROWS),
    "hamming others": lambda m: hamming(ROWS, m(ROWS)),
    "hamming search": lambda m: hamming_search(m(ROWS), ROWS, 2),
    "hamming search queries": lambda m: hamming_search(ROWS, m(ROWS), 2),
    "pack": lambda m: pack(m(X)),
    "unpack": lambda m: unpack(m(ROWS), 24),
    "to_lsb_first": lambda m: to_lsb_first(m(ROWS)),
    "spread": lambda m: spread(m(X), tight_frame(10, 24, 0)),
    "spread frame": lambda m: spread(X, m(tight_frame(10, 24, 0))),
    "refine codes": lambda m: refine(X, tight_frame(10, 24, 0), m(ROWS)),
    "learn_frame": lambda m: learn_frame(m(X), 8),
    "learn_codebooks": lambda m: learn_codebooks(m(X), 2),
    "tune": lambda m: tune(m(zoo.TRAIN), n_bytes=2),
    "tune queries": lambda m: tune(zoo.TRAIN, n_bytes=2, queries=m(X)),
    "exact neighbours": lambda m: exact_neighbors(m(X), X, 2),
    "nearest_rank": lambda m: nearest_rank(m(np.ones((3, 2), int)), np.ones(3, int)),
    "recall_at": lambda m: recall_at(np.ones((3, 2), int), m(np.ones(3, int)), 1),
    "intersection_recall": lambda m: intersection_recall(m(np.ones((3, 2), int)), np.ones((3, 2), int), 1),
    "scales": lambda m: type(CODEC.reduction)(m(np.ones(3))),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_masked_is_not_taken(name: str) -> None:
    with pytest.raises(InputError, match="masked entries"):
        ARRAYS[name](masked)


def test_a_masked_array_without_masked_entries_is_an_array() -> None:
    bare = np.ma.array(X)
    np.testing.assert_array_equal(CODEC.encode(bare), ROWS)
    np.testing.assert_array_equal(index().codes(np.ma.arange(3)), ROWS[:3])
    assert type(CODEC.encode(bare)) is np.ndarray


# What holds no vectors, though scikit-learn or numpy would make floats of it.
NO_VECTORS = {
    "datetime64": np.zeros((30, 10), "M8[s]"),
    "timedelta64": np.zeros((30, 10), "m8[s]"),
    "longdouble": X.astype(np.longdouble),
    "a list of datetimes": [[np.datetime64(3, "s")] * 10] * 30,
}


@pytest.mark.parametrize("kind", NO_VECTORS)
@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
def test_dates_and_long_floats_are_no_vectors(kind: str) -> None:
    value = NO_VECTORS[kind]
    for name in ("lsh", "codebooks", "itq", "spectral", "spread"):
        encoder = clone(zoo.ENCODERS[name])
        with pytest.raises(InputTypeError, match="X has dtype"):
            encoder.fit(value)
        encoder.fit(zoo.TRAIN)
        with pytest.raises(InputTypeError, match="X has dtype"):
            encoder.transform(value)
    for call in (CODEC.encode, index().add, lambda x: index().search(x, 2), lambda x: Index.build(x, 2)):
        with pytest.raises(InputTypeError, match=r"[XQ] has dtype"):
            call(value)


def test_dates_are_no_ids() -> None:
    for ids in (np.arange(30).astype("m8[s]"), np.arange(30).astype("M8[s]")):
        with pytest.raises(InputTypeError, match="ids has dtype"):
            index().remove(ids)
        with pytest.raises(InputTypeError, match="filter must be"):
            index().search(X, 2, filter=ids)


SEEDS = [-1, 2**32, 10**400, 1.5, "0", True, [1, 2], np.arange(3), object(), np.random.default_rng(0), np.nan, b"0"]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(type(seed).__name__))
def test_seeds_that_are_none(seed) -> None:
    for call in (
        lambda: LSHEncoder(8, random_state=seed).fit(X),
        lambda: LearnedEncoder(2, random_state=seed).fit(X),
        lambda: learn_frame(X, 8, random_state=seed),
        lambda: learn_codebooks(X, 2, random_state=seed),
        lambda: Index.build(X, 2, random_state=seed),
        lambda: tune(zoo.TRAIN, n_bytes=2, random_state=seed),
    ):
        with pytest.raises((InputError, InputTypeError), match="random_state"):
            call()


def test_numbers_beyond_all_bounds() -> None:
    A, many = tight_frame(10, 24, 0), 10**400
    for call, message in (
        (lambda: spread(X, A, many), "h = an integer of 1329 bits"),
        (lambda: zoo.ENCODERS["spread"].__class__(24, h=many).fit(X), "h = an integer"),
        (lambda: index().search(X, many), "k = an integer"),
        (lambda: index().search(X, 10**5000), "k = an integer"),
        (lambda: tight_frame(2**30, 2**31 - 1), "fewer than"),
        (lambda: tight_frame(many, many), "d = an integer"),
        (lambda: learn_frame(X * 1e154, 8), "X row 0 is too large"),
        (lambda: learn_codebooks(X * 1e154, 2), "X row 0 is too large"),
        (lambda: exact_neighbors(X, X, 2, metric=np.array(["l2", "ip"])), "metric"),
        (lambda: LSHEncoder(8, metric=np.array(["l2"])).fit(X), "metric"),
        (lambda: Index.create(None, CODEC, metric=np.array(["l2", "ip"])), "metric"),
        (lambda: index().add(X, [[1, 2], [3]]), "ids is not a rectangular array"),
        (lambda: index().search(X, 2, rerank=[[1.0], [1.0, 2.0]]), "rerank is not a rectangular array"),
        (lambda: index().search(X, 2, rerank=[]), "rerank has shape"),
    ):
        with pytest.raises((InputError, InputTypeError), match=message):
            call()
    assert index().range_search(X, many)[0][-1] == index().range_search(X, np.inf)[0][-1] == 30 * 30
    assert index().range_search(X, -many)[0][-1] == 0
    np.testing.assert_array_equal(index().search(X, 2, rerank=X.tolist())[1], index().search(X, 2, rerank=X)[1])


def test_where_codes_are_written_to() -> None:
    frozen = np.zeros_like(ROWS)
    frozen.flags.writeable = False
    shared = np.zeros((30, 10))
    for out, message in (
        (frozen, "out is read-only"),
        (masked(np.zeros_like(ROWS)), "out must be an array of uint8"),
        (ROWS.tolist(), "out must be an array of uint8"),
        (np.zeros((30, 4), np.uint8), "out must be an array of uint8"),
        (np.zeros((30, 3), np.int8), "out must be an array of uint8"),
        (shared.view(np.uint8)[:, :3], "out lies in the memory of what is encoded"),
    ):
        with pytest.raises(InputError, match=message):
            CODEC.encode(shared, out=out)


# A fit that is refused leaves what was fitted before.


REFUSED = {
    "a NaN": lambda e: e.fit(np.where(np.arange(10) == 3, np.nan, zoo.TRAIN[:, :7].repeat(2, 1)[:, :10])),
    "other dimensions": lambda e: e.set_params(n_threads=0).fit(zoo.TRAIN[:, :7]),
    "too large": lambda e: e.fit(zoo.TRAIN[:, :7] * 1e200),
    "no vectors": lambda e: e.fit(np.zeros((0, 7))),
    "no numbers": lambda e: e.fit([["x"] * 7] * 30),
    "an iterator": lambda e: e.fit(iter([zoo.TRAIN[:, :7]])),
    "a metric there is not": lambda e: e.set_params(metric="x").fit(zoo.TRAIN[:, :7]),
    "a size there is not": lambda e: e.set_params(**{e_size(e): -1}).fit(zoo.TRAIN[:, :7]),
    "a seed there is not": lambda e: setattr(e, "random_state", -1) or e.fit(zoo.TRAIN[:, :7]),
    "an interruption": lambda e: e.fit(Interrupting()),
}


class Interrupting:
    """Vectors on which someone presses Ctrl-C."""

    shape, ndim, dtype = (400, 10), 2, np.dtype(float)

    def __len__(self) -> int:
        return 400

    def __array__(self, dtype=None, copy=None):
        raise KeyboardInterrupt


def e_size(encoder) -> str:
    return "n_bytes" if hasattr(encoder, "n_bytes") else "n_bits"


@pytest.mark.parametrize("name", ["codebooks", "signs cells scale", "levels", "spread", "lsh", "itq", "spectral"])
@pytest.mark.parametrize("refusal", REFUSED)
def test_a_refused_refit_leaves_what_was_fitted(name: str, refusal: str) -> None:
    encoder = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN)
    fitted = {key: value for key, value in vars(encoder).items() if key.endswith("_")}
    codes = encoder.transform(X)
    with pytest.raises((InputError, InputTypeError, KeyboardInterrupt)):
        REFUSED[refusal](encoder)
    assert {key: value for key, value in vars(encoder).items() if key.endswith("_")} == fitted
    encoder.set_params(n_threads=None)
    np.testing.assert_array_equal(encoder.transform(X), codes)
