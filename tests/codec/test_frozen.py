"""A codec never changes: not by assignment, not by its estimator, not by threads that use it at once."""

import copy
import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from test_invariance import arrays

from antisparse import AntiSparseEncoder, CodeBase, Codec, InputError, LearnedEncoder, LSHEncoder, Split, block_frame

X, Q = zoo.vectors(300, 1), zoo.vectors(20, 2)
every = pytest.mark.parametrize("name", zoo.NAMES)


@every
def test_nothing_of_a_codec_can_be_assigned(name: str) -> None:
    codec = zoo.codec(name)
    for part in (codec, *(getattr(codec, field.name) for field in fields(codec))):
        if part is None or isinstance(part, str):
            continue
        for field in fields(part):
            with pytest.raises(FrozenInstanceError):
                setattr(part, field.name, None)
            with pytest.raises(FrozenInstanceError):
                delattr(part, field.name)
    for _, array in arrays(codec):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_arrays_that_were_given_stay_the_callers() -> None:
    frame, blocks = np.eye(10), block_frame(10, 24, 3, 0)
    for encoder, given_array in (
        (LSHEncoder(10, frame=frame), frame),
        (AntiSparseEncoder(24, frame=copy.deepcopy(blocks)), None),
    ):
        codec = encoder.fit(X).codec_
        before, codes = codec.digest, codec.encode(X)
        held = [given_array] if given_array is not None else [*encoder.frame.blocks, encoder.frame.rotation]
        for array in held:
            assert array.flags.writeable  # else there is nothing to test
            array[...] = 0
        fresh = pickle.loads(pickle.dumps(codec))
        assert fresh.digest == before
        np.testing.assert_array_equal(fresh.encode(X), codes)


def run_at_once(work, count: int = 8) -> list:
    """What `work(i)` returns in so many threads that start together; an error in any is raised."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@every
def test_threads_may_use_a_codec_that_has_prepared_nothing(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X, n_threads=1)
    fresh = pickle.loads(pickle.dumps(codec))
    for found in run_at_once(lambda i: fresh.encode(X, n_threads=1 + i % 2)):
        np.testing.assert_array_equal(found, codes)
    methods = zoo.methods(name)
    expected = {method: CodeBase(codec, codes).search(Q, 7, method=method) for method in methods}
    base = CodeBase(pickle.loads(pickle.dumps(codec)), codes)

    def work(i: int):
        method = methods[i % len(methods)]
        return method, base.search(Q, 7, method=method, n_threads=1 + i % 3)

    for method, found in run_at_once(work):
        for one, other in zip(found, expected[method], strict=True):
            np.testing.assert_array_equal(one, other)
    if codec.rebuilds:
        fresh = pickle.loads(pickle.dumps(codec))
        for found in run_at_once(lambda i: (fresh.decode(codes), fresh.digest, fresh.layout)):
            np.testing.assert_array_equal(found[0], codec.decode(codes))
            assert found[1:] == (codec.digest, codec.layout)


OTHER = zoo.vectors(200, 9)[:, :6]


def failing_fit(encoder: LearnedEncoder) -> None:
    with pytest.raises(InputError):
        encoder.fit(np.full((9, 4), np.nan))


CHANGES = {
    "fit again": lambda encoder: encoder.fit(zoo.vectors(250, 8)),
    "fit on other dimensions": lambda encoder: encoder.fit(OTHER),
    "set the metric": lambda encoder: encoder.set_params(metric="ip"),
    "set the bytes": lambda encoder: encoder.set_params(n_bytes=3),
    "set the effort": lambda encoder: encoder.set_params(effort=1),
    "set the split": lambda encoder: encoder.set_params(split=Split("signs", cells=3)),
    "set the seed and fit": lambda encoder: encoder.set_params(random_state=5, train=90).fit(X),
    "a fit that fails": failing_fit,
    "take the codec away": lambda encoder: encoder.__dict__.pop("codec_", None),
    "another codec": lambda encoder: setattr(encoder, "codec_", zoo.codec("lsh")),
    "attributes": lambda encoder: encoder.__dict__.update(n_features_in_=3, split_=None, junk=1),
    "clone and fit": lambda encoder: clone(encoder).set_params(n_bytes=4).fit(OTHER),
    "pickle and fit": lambda encoder: pickle.loads(pickle.dumps(encoder)).fit(OTHER),
    "copy and fit": lambda encoder: copy.copy(encoder).fit(OTHER),
    "encode": lambda encoder: hasattr(encoder, "codec_") and encoder.codec_.encode(X[:3, : encoder.codec_.dimension]),
}


@settings(deadline=None, max_examples=40)
@given(
    split=st.sampled_from([Split("codebooks"), Split("signs", scale=True), Split("codebooks", cells=5, bias="nibble")]),
    changes=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=6),
)
def test_whatever_is_done_to_an_encoder_does_not_reach_a_base_made_before(split: Split, changes: list[str]) -> None:
    encoder = LearnedEncoder(5, split=split, effort=1, random_state=0).fit(X[:150])
    codec, codes = encoder.codec_, encoder.transform(X)
    base = CodeBase(encoder, codes)
    expected, digest = base.search(Q, 9), codec.digest
    for change in changes:
        CHANGES[change](encoder)
        for one, other in zip(base.search(Q, 9), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert base.codec is codec
    assert pickle.loads(pickle.dumps(codec)).digest == digest
    np.testing.assert_array_equal(base.codes, codes)
    np.testing.assert_array_equal(base.codec.encode(X), codes)


def test_a_fit_that_fails_leaves_all_that_was_fitted() -> None:
    encoder = LearnedEncoder(6, split=Split("signs", cells=4), random_state=0).fit(X)
    before = {name: getattr(encoder, name) for name in ("codec_", "split_", "n_features_in_")}
    for wrong, data in (({"split": Split("signs", cells=500)}, OTHER), ({"metric": "cosine"}, np.zeros((30, 4)))):
        with pytest.raises(InputError):
            encoder.set_params(**wrong).fit(data)
        assert {name: getattr(encoder, name) for name in before} == before
    whole = np.round(X).astype(int)  # integers pass scikit-learn's own check
    np.testing.assert_array_equal(encoder.transform(whole), before["codec_"].encode(whole))
    spread = AntiSparseEncoder(16, random_state=0).fit(X)
    with pytest.raises(InputError):
        spread.set_params(h=0.7, frame=np.eye(3)).fit(X)
    assert spread.h_ == 0.1
    never = LSHEncoder(4, frame=np.eye(3))
    with pytest.raises(InputError):
        never.fit(X)
    assert not hasattr(never, "codec_") and not hasattr(never, "n_features_in_")


@pytest.mark.parametrize("module", ["antisparse", "antisparse.codec", "antisparse.scan", "antisparse.metrics"])
def test_codecs_and_searches_do_not_import_scikit_learn(module: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.split('.')[0] == 'sklearn'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_codec_is_loaded_and_searched_without_scikit_learn(tmp_path) -> None:
    for name in ("codebooks cells nibble", "spread refined", "signs scale", "spectral"):
        codec = zoo.codec(name)
        codec.save(tmp_path / "codec")
        np.save(tmp_path / "codes.npy", codec.encode(X))
        method = zoo.methods(name)[0]
        code = (
            "import sys, numpy as np; from antisparse import Codec, CodeBase\n"
            "codec, codes = Codec.load('codec'), np.load('codes.npy')\n"
            f"ids = CodeBase(codec, codes).search(np.load('Q.npy'), 3, method={method!r})[1]\n"
            "assert 'sklearn' not in sys.modules; print(ids.tolist())"
        )
        np.save(tmp_path / "Q.npy", Q)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
        expected = CodeBase(Codec.load(tmp_path / "codec"), codec.encode(X)).search(Q, 3, method=method)[1]
        assert run.stdout == f"{expected.tolist()}\n"
