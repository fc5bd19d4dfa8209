"""What is done to an estimator after `fit` reaches no code base and no index that were made before; nor do arrays that
a caller uses again.
"""

import contextlib
import pickle
import tempfile
from copy import deepcopy
from dataclasses import FrozenInstanceError
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zoo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import NAMES, POOL, QUERIES, Model, assert_same, check_holds, check_search, searches
from sklearn.base import clone

from antisparse import (
    AntisparseError,
    CodeBase,
    Codec,
    Index,
    InputError,
    InputTypeError,
    LearnedEncoder,
    LSHEncoder,
    Split,
)

OTHERS = zoo.vectors(400, 11)[:, ::-1] * np.linspace(0.2, 5, 10) - 9  # nothing like what the zoo was fitted on
METRICS = ("l2", "cosine", "ip")


@cache
def _fitted(name):
    return clone(zoo.ENCODERS[name]).fit(zoo.TRAIN)


def fitted_encoder(name):
    """One of the test's own."""
    return deepcopy(_fitted(name))


def answers(searched, name, k=8):
    return [searched.search(QUERIES, k, **options) for options in searches(name)]


def check_answers(searched, name, expected):
    for found, wanted in zip(answers(searched, name), expected, strict=True):
        assert_same(found, wanted)


def own_found(index, name, X, ids):
    """The share of vectors that are among the three nearest to themselves, by codes."""
    method = zoo.methods(name)[0]
    found = index.search(X, 3, method=method)[1]
    return (found == np.asarray(ids)[:, None]).any(axis=1).mean()


@pytest.mark.parametrize("name", NAMES)
def test_fitting_again_does_not_reach_the_index(tmp_path, name: str) -> None:
    encoder, model = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN), Model(name)
    with Index.create(tmp_path / "index", encoder) as index:
        model.put(model.encode(POOL[:75]), index.add(POOL[:75]))
        before = own_found(index, name, POOL[:75], np.arange(75))
        first = answers(index, name)
        encoder.fit(OTHERS)
        assert encoder.codec_ != index.codec and index.codec == model.codec
        check_answers(index, name, first)
        model.put(model.encode(POOL[75:]), index.add(POOL[75:]))  # by the codec of the index
        expected, share = answers(index, name), own_found(index, name, POOL, np.arange(150))
        check_search(index, model)
    with Index.open(tmp_path / "index", verify=True) as opened:
        assert opened.codec == model.codec
        check_holds(opened, model)
        check_search(opened, model)
        check_answers(opened, name, expected)
        assert own_found(opened, name, POOL, np.arange(150)) == share
    # Codes of a byte at most tell little apart, and by inner product a vector need not be nearest to itself.
    few = name in ("lsh reduced", "codebooks byte") or model.metric == "ip"
    assert min(before, share) > (0.2 if few else 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_changed_after_fit_make_no_index_that_cannot_be_opened(tmp_path, name: str) -> None:
    values = {
        "n_bytes": 11,
        "n_bits": 40,
        "metric": "cosine" if zoo.ENCODERS[name].metric == "l2" else "l2",
        "symbols": "signs",
        "cells": 4,
        "effort": 1,
        "split": Split("signs", scale=True),
        "frame": "gaussian",
        "h": 0.7,
        "relative_h": False,
        "center": False,
        "pca": 3,
        "n_iter": 1,
        "random_state": 99,
        "train": 7,
    }
    model = Model(name)
    model.put(model.encode(POOL), np.arange(150))
    for parameter in sorted(set(values) & set(zoo.ENCODERS[name].get_params())):
        encoder, path = fitted_encoder(name), tmp_path / parameter
        encoder.set_params(**{parameter: values[parameter]})
        with Index.create(path, encoder) as index:  # changed before and after
            setattr(encoder, parameter, object())
            index.add(POOL)
            check_holds(index, model)
        with Index.open(path, verify=True) as opened:
            check_holds(opened, model)
            check_search(opened, model, 3)
            assert opened.metric == model.metric and opened.add(POOL[:1])[0] == 150


# What may be done to an estimator; each returns the one to go on with.


def refit(encoder, random):
    with contextlib.suppress(AntisparseError):
        encoder.fit(OTHERS if random.random() < 0.7 else zoo.TRAIN[:, :4])
    return encoder


def failing_fit(encoder, random):
    with pytest.raises((InputError, InputTypeError)):
        encoder.fit(zoo.TRAIN * np.nan)
    return encoder


def change_parameters(encoder, random):
    names = sorted(encoder.get_params())
    some = [3, 8, "l2", "ip", "signs", "block", None, True, -1.5, Split("codebooks"), np.eye(3)]
    return encoder.set_params(**{str(random.choice(names)): some[random.integers(len(some))]})


def assign(encoder, random):
    names = sorted(vars(encoder))
    other = LSHEncoder(5, random_state=0).fit(OTHERS)
    some = [None, other.codec_, other, 7, "x", np.zeros(4)]
    setattr(encoder, str(random.choice([*names, "codec_", "anything"])), some[random.integers(len(some))])
    return encoder


def remove(encoder, random):
    names = sorted(vars(encoder))
    if names:
        delattr(encoder, str(random.choice(names)))
    return encoder


def copy(encoder, random):
    with contextlib.suppress(AttributeError, TypeError, RuntimeError):  # of an estimator that lost its parameters
        return clone(encoder)
    return encoder


def pickled(encoder, random):
    return pickle.loads(pickle.dumps(encoder))


def write_into(encoder, random):
    """The arrays of a codec cannot be written to, nor its fields replaced."""
    codec = getattr(encoder, "codec_", None)
    if not hasattr(codec, "reduction"):
        return encoder
    parts = [part for part in vars(codec).values() if hasattr(part, "__dataclass_fields__")]
    arrays = [array for part in parts for array in vars(part).values() if isinstance(array, np.ndarray)]
    assert arrays
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for part in (codec, *parts):
        with pytest.raises(FrozenInstanceError):
            setattr(part, next(iter(part.__dataclass_fields__)), None)
    return encoder


DEEDS = (refit, failing_fit, change_parameters, assign, remove, copy, pickled, write_into)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(NAMES),
    deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 2**32 - 1)), min_size=1, max_size=6),
)
def test_whatever_is_done_to_an_estimator_after_fit(name, deeds) -> None:
    encoder, model = fitted_encoder(name), Model(name)
    model.put(model.encode(POOL[:100]), np.arange(100))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        memory, stored = Index.create(None, encoder), Index.create(path, encoder)
        for index in (memory, stored):
            index.add(POOL[:100])
        base = CodeBase(encoder, encoder.transform(POOL[:100]))
        kept = [memory, stored, base]
        expected = answers(memory, name)
        for deed, seed in deeds:
            try:
                encoder = deed(encoder, np.random.default_rng(seed))
            except (AttributeError, ValueError, TypeError):
                # An estimator that lost its attributes, or holds nonsense, may fail: it must not take others with it.
                assert deed in (failing_fit, change_parameters, refit, copy)
            for one in kept:
                check_answers(one, name, expected)
        more = model.encode(POOL[100:])
        model.put(more, np.arange(100, 150))
        for index in (memory, stored):
            index.add(POOL[100:])
            check_holds(index, model)
        stored.close()
        with Index.open(path, verify=True) as opened:
            check_holds(opened, model)
            check_search(opened, model)
            check_answers(opened, name, answers(memory, name))
            assert opened.codec == memory.codec == base.codec == model.codec
        assert_same(
            pickle.loads(pickle.dumps(base)).search(POOL, 3, **searches(name)[0]),
            base.search(POOL, 3, **searches(name)[0]),
        )


def test_arrays_that_were_given_are_copied() -> None:
    frame, X = np.random.default_rng(0).standard_normal((10, 24)), zoo.TRAIN.copy()
    encoder = LSHEncoder(24, frame=frame).fit(X)
    index = Index.create(None, encoder)
    index.add(POOL)
    expected = index.search(QUERIES, 9)
    frame[:], X[:] = 1, 0
    assert_same(index.search(QUERIES, 9), expected)
    np.testing.assert_array_equal(index.codec.encode(POOL), index.codes(index.ids))


@pytest.mark.parametrize("name", NAMES)
def test_a_codec_for_another_metric_is_refused(tmp_path, name: str) -> None:
    encoder = fitted_encoder(name)
    own = encoder.metric
    for given_as in (encoder, encoder.codec_):
        assert Index.create(None, given_as, metric=own).metric == Index.create(None, given_as).metric == own
        for metric in METRICS:
            if metric == own:
                continue
            remedy = (
                f"metric = '{metric}', but the codec was fitted for '{own}'; fit the encoder with metric='{metric}'"
            )
            with pytest.raises(InputError, match=remedy):
                Index.create(tmp_path / "index", given_as, metric=metric)
            with pytest.raises(InputError, match=remedy):
                CodeBase(given_as, encoder.transform(POOL), metric=metric)
            assert not (tmp_path / "index").exists()
    remedied = LearnedEncoder(6, metric="cosine", random_state=0).fit(zoo.TRAIN)
    assert Index.create(tmp_path / "index", remedied, metric="cosine").metric == "cosine"


@pytest.mark.parametrize("name", NAMES)
def test_arrays_that_are_used_again_within_a_batch_are_stored_right(tmp_path, name: str) -> None:
    codec = zoo.codec(name)
    model = Model(name)
    model.put(model.encode(POOL), np.arange(150)[::-1])
    for path, batched in ((None, True), (None, False), (tmp_path / "index", True)):
        index = Index.create(path, codec)
        codes, ids = np.empty((50, codec.n_bytes), np.uint8), np.empty(50, np.int64)
        with index.batch() if batched else contextlib.nullcontext():
            for at in (0, 50, 100):
                codec.encode(POOL[at : at + 50], out=codes)
                ids[:] = np.arange(150)[::-1][at : at + 50]
                returned = index.add_codes(codes, ids)
                np.testing.assert_array_equal(returned, ids)
                returned[:] = -7  # nor is what it gives back its own
            codes[:], ids[:] = 255, 3
        check_holds(index, model)
        check_search(index, model)
        index.verify()
    codes = codec.encode(POOL)
    base = CodeBase(codec, codes)
    expected = answers(base, name)
    given_codes = codes.copy()
    codes[:] = 0
    check_answers(base, name, expected)
    np.testing.assert_array_equal(base.codes, given_codes)


def test_vectors_that_are_used_again_within_a_batch_are_stored_right() -> None:
    index, X = Index.create(None, zoo.codec("signs")), np.empty((50, 10))

    def parts():
        for at in (0, 50, 100):
            X[:] = POOL[at : at + 50]
            yield X
        X[:] = 0

    index.add(parts())
    np.testing.assert_array_equal(index.codes(np.arange(150)), zoo.codec("signs").encode(POOL))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("size", [1e-100, 1e100, 1e139])
def test_what_is_fitted_to_vectors_of_any_size_can_be_opened_again(tmp_path, metric: str, size: float) -> None:
    X = POOL * size
    splits = [Split("signs", cells=2, bias="nibble"), Split("signs", cells=2, bias="byte"), Split("codebooks")]
    for number, split in enumerate(splits):
        codec = LearnedEncoder(4, split=split, metric=metric, effort=1, random_state=0).fit(X).codec_
        assert Codec.from_bytes(codec.to_bytes()) == codec  # every number of it is finite
        with Index.create(tmp_path / str(number), codec) as index:
            index.add(X)
        with Index.open(tmp_path / str(number), verify=True) as opened:
            distances, ids = opened.search(X[:5], 3)
            assert np.isfinite(distances).all() and (ids >= 0).all()
