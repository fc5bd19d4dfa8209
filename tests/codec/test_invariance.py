"""A vector has one code: in any batch, dtype, order, number of threads and on any instruction set."""

import copy
import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from antisparse import CodeBase, Codec, learn_codebooks, learn_frame
from antisparse.codec import Codebooks

X = zoo.vectors(300, 1)
every = pytest.mark.parametrize("name", zoo.NAMES)


@every
def test_a_vector_has_the_same_code_in_any_batch(isa: str, name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X, n_threads=1)
    assert codes.dtype == np.uint8 and codes.shape == (300, codec.n_bytes)
    for size in (1, 3, 7):
        for start in (0, 41, 293):
            np.testing.assert_array_equal(codec.encode(X[start : start + size]), codes[start : start + size])
    for threads in (2, 3):
        np.testing.assert_array_equal(codec.encode(X, n_threads=threads), codes)


@every
def test_codes_follow_their_vectors_in_any_order(name: str) -> None:
    codec, order = zoo.codec(name), np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(codec.encode(X[order]), codec.encode(X)[order])
    np.testing.assert_array_equal(codec.encode(X[::-1]), codec.encode(X)[::-1])


@every
def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    monkeypatch.setattr("antisparse.codec.codec._CHUNK_ROWS", 17)
    np.testing.assert_array_equal(codec.encode(X), codes)
    assert codec.encode(X[:0]).shape == (0, codec.n_bytes)


@every
def test_vectors_of_any_dtype_and_order_have_the_same_code(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    for dtype in (np.float16, np.float32, np.dtype(">f8")):  # quarters, which all of these hold
        np.testing.assert_array_equal(codec.encode(X.astype(dtype)), codes)
    wide = np.repeat(X, 2, axis=1)
    for same in (np.asfortranarray(X), wide[:, ::2], X.tolist(), np.ma.array(X)):
        np.testing.assert_array_equal(codec.encode(same), codes)
    whole = np.clip(np.round(8 * X), 1, 255)
    expected = codec.encode(whole)
    for dtype in (np.uint8, np.int64, np.uint16, np.float32):
        np.testing.assert_array_equal(codec.encode(whole.astype(dtype)), expected)
    np.testing.assert_array_equal(codec.encode(np.asfortranarray(whole.astype(np.uint8))), expected)


@pytest.mark.parametrize("name", zoo.REBUILDING)
def test_decoding_does_not_depend_on_batch_and_threads(isa: str, name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    rebuilt = codec.decode(codes, n_threads=1)
    assert rebuilt.shape == X.shape and rebuilt.dtype == np.float64
    np.testing.assert_array_equal(codec.decode(codes, n_threads=3), rebuilt)
    np.testing.assert_array_equal(codec.decode(np.asfortranarray(codes)), rebuilt)
    for start, size in ((0, 1), (5, 7), (299, 1), (3, 0)):
        np.testing.assert_array_equal(codec.decode(codes[start : start + size]), rebuilt[start : start + size])


@every
def test_the_same_seed_fits_the_same_codec_on_any_number_of_threads(name: str) -> None:
    one = clone(zoo.ENCODERS[name]).set_params(n_threads=1).fit(zoo.TRAIN)
    other = clone(zoo.ENCODERS[name]).set_params(n_threads=2).fit(zoo.TRAIN)
    assert one.codec_ == other.codec_ == zoo.codec(name)
    assert hash(one.codec_) == hash(other.codec_)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@every
def test_the_same_seed_fits_the_same_codec_on_any_number_of_threads_of_blas(name: str) -> None:
    X = np.random.default_rng(0).standard_normal((400, 24)) * np.linspace(3, 1, 24)  # large enough for BLAS to share
    X = X[:, :10] if name == "spread greedy" else X  # whose frame is given
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(clone(zoo.ENCODERS[name]).fit(X).codec_)
    assert found[0] == found[1]


def test_learned_frames_do_not_depend_on_threads_of_blas() -> None:
    X = np.random.default_rng(0).standard_normal((3000, 48)) * np.linspace(3, 1, 48)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(
                (learn_frame(X, 96, rounds=2, random_state=0), learn_codebooks(X, 6, rounds=2, random_state=0))
            )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.matrix, other.matrix)


def test_codecs_differ() -> None:
    assert len({zoo.codec(name).digest for name in zoo.NAMES}) == len(zoo.NAMES)
    assert zoo.codec("lsh") != "lsh" and zoo.codec("lsh") is not None


def arrays(value: object, path: str = "codec"):
    """Every array in a codec, with where it is."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from arrays(part, f"{path}.{place}")


def pickled(codec: Codec) -> Codec:
    return pickle.loads(pickle.dumps(codec))


def through_a_file(codec: Codec, tmp_path) -> Codec:
    codec.save(tmp_path / "codec")
    return Codec.load(tmp_path / "codec")


@every
@pytest.mark.parametrize("way", [pickled, copy.deepcopy, copy.copy, through_a_file, replace])
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_a_copy_is_equal_frozen_and_does_the_same(name: str, way, used: bool, tmp_path) -> None:
    codec = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN).codec_
    if used:  # with all that it prepares
        CodeBase(codec, codec.encode(X)).search(X[:3], 2, method=zoo.methods(name)[0])
    again = way(codec, tmp_path) if way is through_a_file else way(codec)
    assert again == codec and again.digest == codec.digest and hash(again) == hash(codec)
    assert again.n_bytes == codec.n_bytes and repr(again) == repr(codec) and again.layout == codec.layout
    codes = codec.encode(X)
    np.testing.assert_array_equal(again.encode(X), codes)
    if codec.rebuilds:
        np.testing.assert_array_equal(again.decode(codes), codec.decode(codes))
    for method in zoo.methods(name):
        for one, other in zip(
            CodeBase(codec, codes).search(X[:9], 5, method=method),
            CodeBase(again, codes).search(X[:9], 5, method=method),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)
    found = dict(arrays(again))
    assert found and not [path for path, array in found.items() if array.flags.writeable]


@every
def test_every_number_in_a_codec_is_in_its_digest(name: str) -> None:
    """Whatever changes what a codec is changes its digest: each array and each number, by the last bit."""
    codec = zoo.codec(name)

    def changed(value):
        """Copies of a value, each with one thing in it changed."""
        if isinstance(value, np.ndarray):
            yield np.where(np.arange(value.size).reshape(value.shape) == 0, np.nextafter(value, 1e9), value)
        elif is_dataclass(value):
            for field in fields(value):
                if field.name in ("axis", "metric_name", "rotation"):  # not every number will do
                    continue
                for other in changed(getattr(value, field.name)):
                    yield replace(value, **{field.name: other})
        elif isinstance(value, tuple):
            for place, part in enumerate(value):
                for other in changed(part):
                    yield (*value[:place], other, *value[place + 1 :])
        elif isinstance(value, bool):
            yield not value
        elif isinstance(value, int):
            yield value % 3 + 1  # an effort
        elif isinstance(value, float):
            yield float(np.nextafter(value, 1e9))

    others = list(changed(codec))
    assert len(others) >= 3
    assert len({other.digest for other in others} | {codec.digest}) == len(others) + 1
    assert all(other != codec for other in others)


def test_equal_fields_have_one_digest() -> None:
    codec = zoo.codec("codebooks")
    assert isinstance(codec.symbols, Codebooks)
    same = replace(
        codec,
        symbols=Codebooks(
            codec.symbols.matrix.astype(object).astype(np.float64, order="F"), np.int64(codec.symbols.effort)
        ),
        bias=replace(codec.bias, alpha=np.float64(codec.bias.alpha)),
    )
    assert same == codec
    whole = [
        replace(codec, bias=replace(codec.bias, low=low, step=step)) for low, step in ((-3, 2), (-3.0, np.int64(2)))
    ]
    assert whole[0] == whole[1] and whole[0] != codec


@settings(deadline=None, max_examples=30)
@given(
    name=st.sampled_from(zoo.NAMES),
    rows=st.lists(st.integers(0, 299), max_size=40),
    threads=st.integers(1, 3),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    fortran=st.booleans(),
)
def test_any_selection_of_vectors_has_their_codes(name: str, rows, threads: int, dtype, fortran: bool) -> None:
    codec = zoo.codec(name)
    part = X[np.array(rows, int)].astype(dtype)
    part = np.asfortranarray(part) if fortran else part
    np.testing.assert_array_equal(codec.encode(part, n_threads=threads), codec.encode(X)[np.array(rows, int)])


def test_encoding_into_a_file_with_progress(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    codec = zoo.codec("lsh")
    out = np.lib.format.open_memmap(tmp_path / "codes.npy", "w+", np.uint8, (300, 3))
    assert codec.encode(X, out=out, progress=True) is out
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codec.encode(X))
    assert "encoding" in capsys.readouterr().err
    codec.encode(X)
    assert capsys.readouterr() == ("", "")
