"""LearnedEncoder: as many bytes as were asked for, split by rules or by hand, learned the same from the same seed."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zoo
from sklearn.base import clone

from antisparse import (
    AntiSparseEncoder,
    CodeBase,
    Codec,
    Index,
    InputError,
    InputTypeError,
    LearnedEncoder,
    Split,
    choose_split,
    learn_codebooks,
    learn_frame,
)
from antisparse.codec import BiasByte, BiasNibble, Codebooks, LearnedSigns, ScaleByte
from antisparse.evaluation import exact_neighbors, recall_at

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((30, 12)) * np.linspace(4, 0.5, 12)


def draw(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 30, n)] + rng.standard_normal((n, 12)) * np.linspace(1.5, 0.1, 12) + 5


X, NEW = draw(2000, 1), draw(1000, 2)
SMALL, FEW = X[:60, :4], X[:24, :3]


def rebuilt_error(encoder: LearnedEncoder, vectors: np.ndarray = X, new: np.ndarray = NEW) -> float:
    encoder.fit(vectors)
    return float(((new - encoder.inverse_transform(encoder.transform(new))) ** 2).sum(1).mean())


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("symbols", ["auto", "codebooks", "signs"])
def test_codes_have_as_many_bytes_as_were_asked_for(monkeypatch: pytest.MonkeyPatch, metric: str, symbols: str) -> None:
    for learn in (learn_codebooks, learn_frame):  # one round, to be fast
        monkeypatch.setattr(f"antisparse.learning.symbols.{learn.__name__}", partial(learn, rounds=1))
    for n_bytes in range(1, 41):
        encoder = LearnedEncoder(n_bytes, metric=metric, symbols=symbols, effort=1, random_state=0).fit(FEW)
        codec = encoder.codec_
        assert codec.n_bytes == n_bytes == encoder.transform(FEW).shape[1]
        assert codec.metric_name == metric
        assert encoder.split_ == choose_split(n_bytes, *FEW.shape, metric=metric, symbols=symbols)
        assert codec.rebuilds and isinstance(codec.symbols, Codebooks | LearnedSigns)
        if symbols != "auto":
            assert isinstance(codec.symbols, Codebooks if symbols == "codebooks" else LearnedSigns)
            assert encoder.split_.symbols == symbols
        assert (codec.bias is None) <= (metric == "ip")
    base = CodeBase(codec, encoder.transform(FEW))
    assert (base.search(FEW[:9], 1)[1][:, 0] == np.arange(9)).mean() > 0.5 or metric == "ip"


@pytest.mark.parametrize("n_bytes", [3, 8, 17, 40])
def test_cells_take_their_bytes(n_bytes: int) -> None:
    vectors = RNG.standard_normal((300, 3))
    for cells, size in ((1, 0), (2, 1), (40, 1), (256, 1), (257, 2)):
        if size + 1 > n_bytes:
            continue
        codec = LearnedEncoder(n_bytes, cells=cells, effort=1, random_state=0).fit(vectors).codec_
        assert codec.n_bytes == n_bytes and codec.n_cells == cells and codec.layout.cell_bytes == size


SPLITS = [
    Split("codebooks"),
    Split("codebooks", bias="nibble"),
    Split("codebooks", cells=7),
    Split("codebooks", 7, bias="nibble"),
    Split("signs"),
    Split("signs", bias="nibble"),
    Split("signs", 7),
    Split("signs", 7, True),
    Split("signs", scale=True),
]


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_split_is_followed(split: Split) -> None:
    # symbols and cells are then not looked at
    encoder = LearnedEncoder(7, split=split, symbols="whatever", cells=-3, random_state=0).fit(SMALL)
    codec = encoder.codec_
    assert encoder.split_ == split and codec.n_bytes == 7
    assert isinstance(codec.symbols, Codebooks if split.symbols == "codebooks" else LearnedSigns)
    assert codec.n_cells == split.cells and isinstance(codec.scale, ScaleByte) == split.scale
    assert isinstance(codec.bias, BiasNibble if split.bias == "nibble" else BiasByte)
    assert codec.symbols.n_bits == 4 * split.nibbles(7)
    assert (
        codec.summary in repr(encoder)
        and str(codec.symbols.n_bits // (4 if split.symbols == "codebooks" else 1)) in codec.summary
    )


@pytest.mark.parametrize("split", [Split("codebooks", bias="none"), Split("signs", 7, True, "none")], ids=str)
def test_without_a_bias_there_are_inner_products_alone(split: Split) -> None:
    codec = LearnedEncoder(7, metric="ip", split=split, random_state=0).fit(SMALL).codec_
    assert codec.bias is None and codec.n_bytes == 7
    for metric in ("l2", "cosine"):
        with pytest.raises(InputError, match=f"split has no bias, which metric='{metric}' needs"):
            LearnedEncoder(7, metric=metric, split=split).fit(SMALL)


def test_the_same_seed_learns_the_same() -> None:
    for split in (None, Split("signs", 9, True)):
        encoder = LearnedEncoder(6, split=split, train=500, random_state=3)
        one, other = (clone(encoder).set_params(n_threads=threads).fit(X) for threads in (1, 3))
        assert one.codec_ == other.codec_ == clone(encoder).fit(X).codec_
        assert one.codec_ != clone(encoder).set_params(random_state=4).fit(X).codec_
        state = np.random.RandomState(3)
        again = clone(encoder).set_params(random_state=state)
        assert LearnedEncoder(6, split=split, train=500, random_state=state).fit(X).codec_ == one.codec_
        first, second = again.fit(X).codec_, again.fit(X).codec_
        assert first != second  # a state goes on from fit to fit


class Counted(np.ndarray):
    """An array that knows how many of its rows were read."""

    read = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        if isinstance(key, np.ndarray):
            Counted.read += len(key)
        return found


def test_at_most_so_many_vectors_are_learned_from() -> None:
    encoder = LearnedEncoder(4, train=300, random_state=0)
    codec = clone(encoder).fit(X).codec_
    rows = np.sort(np.random.RandomState(0).choice(2000, 300, replace=False))
    # The sample is drawn first from the same state: the rest of X is not looked at.
    other = X.copy()
    other[np.setdiff1d(np.arange(2000), rows)] = np.nan
    assert clone(encoder).fit(other).codec_ == codec
    mean = codec.reduction.mean
    np.testing.assert_allclose(mean, X[rows].mean(axis=0), atol=0.3)
    assert clone(encoder).fit(X[:300]).codec_ != codec
    # All there are where they are fewer, in any container.
    assert clone(encoder).fit(X[:200]).codec_ == clone(encoder).set_params(train=200).fit(X[:200]).codec_
    assert clone(encoder).fit(X.tolist()).codec_ == codec
    Counted.read = 0
    clone(encoder).fit(X.view(Counted))
    assert 300 <= Counted.read < 2000
    for wrong, kind, message in ((0, InputError, "train = 0"), (1.5, InputTypeError, "train must be an integer")):
        for data in (X, X.tolist()):
            with pytest.raises(kind, match=message):
                LearnedEncoder(4, train=wrong).fit(data)


def test_a_memory_map_is_learned_from(tmp_path) -> None:
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    encoder = LearnedEncoder(4, train=300, random_state=0)
    assert clone(encoder).fit(mapped).codec_ == clone(encoder).fit(X.astype(np.float32)).codec_
    codec = encoder.fit(X).codec_
    np.testing.assert_array_equal(encoder.transform(mapped), codec.encode(X.astype(np.float32)))


@pytest.mark.parametrize(
    ("symbols", "words"), [("signs", "learning the frame"), ("codebooks", "learning the codebooks")]
)
def test_verbose_shows_rounds_and_the_time_left(symbols: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    LearnedEncoder(4, symbols=symbols, random_state=0).fit(SMALL)
    assert capfd.readouterr() == ("", "")
    LearnedEncoder(4, symbols=symbols, verbose=True, random_state=0).fit(SMALL)
    out, err = capfd.readouterr()
    assert not out and words in " ".join(err.split())
    assert re.search(r"\d+%", err) and re.search(r"error\s+\d\.\d+", err)
    assert re.search(r"\d:\d\d:\d\d\s+left\s+(\d|-):", err)


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"n_bytes": 0}, InputError, "n_bytes = 0; it must be at least 1"),
        ({"n_bytes": 2.0}, InputTypeError, "n_bytes must be an integer"),
        ({"n_bytes": True}, InputTypeError, "n_bytes must be an integer"),
        ({"metric": "l1"}, InputError, "metric = 'l1'"),
        ({"symbols": "words"}, InputError, "symbols = 'words'; choose one of 'auto', 'codebooks', 'signs'"),
        ({"cells": 0}, InputError, "cells = 0"),
        ({"cells": 65537}, InputError, "cells = 65537"),
        ({"cells": 61}, InputError, "cells = 61, but X has 60 vectors; lower it or fit on more vectors"),
        ({"cells": 2.0}, InputTypeError, "cells must be an integer"),
        ({"n_bytes": 1, "cells": 2}, InputError, "n_bytes = 1 leaves nothing for symbols"),
        ({"n_bytes": 2, "split": Split("signs", 2)}, InputError, "n_bytes = 2 leaves nothing for symbols"),
        ({"n_bytes": 2, "split": Split("signs", scale=True)}, InputError, "n_bytes = 2 leaves nothing"),
        ({"n_bytes": 2049}, InputError, "n_bytes = 2049; it must be below 2049"),
        ({"effort": 0}, InputError, "effort = 0; choose one of 1, 2, 3"),
        ({"effort": "2"}, InputError, "effort = '2'"),
        ({"effort": True}, InputError, "effort = True"),
        ({"split": "signs"}, InputTypeError, "split is a str; pass a Split"),
        ({"verbose": 1}, InputTypeError, "verbose must be True or False"),
        ({"n_threads": 0}, InputError, "n_threads = 0"),
        ({"n_threads": "2"}, InputTypeError, "n_threads must be an integer"),
    ],
)
def test_bad_parameters_are_named(parameters: dict, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        LearnedEncoder(**{"n_bytes": 4} | parameters).fit(SMALL)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"symbols": "words"}, InputError, "symbols = 'words'"),
        ({"symbols": "signs", "cells": 0}, InputError, "cells = 0"),
        ({"symbols": "signs", "scale": 1}, InputTypeError, "scale must be True or False"),
        ({"symbols": "signs", "bias": "half"}, InputError, "bias = 'half'"),
        ({"symbols": "codebooks", "scale": True}, InputError, "scale=True goes with symbols='signs'"),
        ({"symbols": "signs", "scale": True, "bias": "nibble"}, InputError, "scale=True goes with"),
    ],
)
def test_what_is_no_split_is_said(arguments: dict, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Split(**arguments)


def test_splits_count_nibbles() -> None:
    for split, n_bytes, nibbles in (
        (Split("codebooks"), 16, 30),
        (Split("codebooks", bias="nibble"), 8, 15),
        (Split("codebooks", bias="none"), 8, 16),
        (Split("signs", 256, True), 16, 26),
        (Split("signs", 257), 16, 26),
        (Split("signs", bias="nibble"), 1, 1),
    ):
        assert split.nibbles(n_bytes) == nibbles


@pytest.mark.parametrize("n_bytes", [2, 4, 6])
def test_what_is_learned_rebuilds_better_than_what_is_drawn(n_bytes: int) -> None:
    for symbols in ("signs", "codebooks"):
        encoder = LearnedEncoder(n_bytes, symbols=symbols, random_state=0)
        learned = rebuilt_error(encoder)
        drawn = AntiSparseEncoder(encoder.codec_.symbols.n_bits, effort=2, random_state=0).fit(X)
        error = ((NEW - drawn.inverse_transform(drawn.transform(NEW))) ** 2).sum(1).mean()
        assert learned < 0.7 * error


def test_cells_and_scales_lower_the_error() -> None:
    def signs(cells: int = 1, scale: bool = False) -> LearnedEncoder:  # 24 of them
        return LearnedEncoder(4 + (cells > 1) + scale, split=Split("signs", cells, scale), random_state=0)

    assert rebuilt_error(signs(cells=30)) < 0.8 * rebuilt_error(signs())
    # Vectors of very different lengths: a scale each.
    lengths = np.exp(RNG.standard_normal((2000, 1)))
    Y = X * lengths
    errors = []
    for scale in (False, True):
        encoder = signs(scale=scale).fit(Y)
        assert encoder.codec_.symbols.n_bits == 24
        errors.append(((Y - encoder.inverse_transform(encoder.transform(Y))) ** 2).sum(1) / (Y**2).sum(1))
    assert np.median(errors[1]) < 0.7 * np.median(errors[0])


@pytest.mark.parametrize("symbols", ["signs", "codebooks"])
def test_more_effort_rebuilds_better(symbols: str) -> None:
    errors = [rebuilt_error(LearnedEncoder(6, symbols=symbols, effort=effort, random_state=0)) for effort in (1, 2, 3)]
    assert errors[0] > errors[1] > errors[2]


def test_codebooks_rebuild_clusters_better_than_signs() -> None:
    rng = np.random.default_rng(0)
    clusters = 2 * rng.standard_normal((40, 12))
    data = clusters[rng.integers(0, 40, 3000)] + rng.standard_normal((3000, 12)) / 2
    errors = {
        symbols: rebuilt_error(LearnedEncoder(3, split=Split(symbols), random_state=0), data[300:], data[:300])
        for symbols in ("codebooks", "signs")
    }
    assert errors["codebooks"] < 0.7 * errors["signs"]


def test_more_bytes_find_more() -> None:
    truth = exact_neighbors(X, NEW[:300], 1)[1]
    recalls = []
    for n_bytes in (1, 3, 6, 12):
        encoder = LearnedEncoder(n_bytes, random_state=0).fit(X)
        found = CodeBase(encoder, encoder.transform(X)).search(NEW[:300], 10)[1]
        recalls.append(recall_at(found, truth, 10))
    assert recalls[0] < recalls[1] < recalls[2] <= recalls[3] and recalls[3] > 0.95


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_few_equal_and_extreme_vectors_can_be_learned_from(split: Split) -> None:
    samples = [X[:1], X[:3], X[:40], np.ones((20, 12)), np.zeros((9, 12)), X[:50] * 1e-100, X[:50] * 1e100, X[:50, :1]]
    for sample in samples:
        if len(sample) < split.cells:
            continue
        encoder = LearnedEncoder(5, split=split, random_state=0).fit(sample)
        rebuilt = encoder.inverse_transform(encoder.transform(sample))
        assert np.isfinite(rebuilt).all()
        assert np.abs(rebuilt - sample).max() <= 3 * np.abs(sample).max()
        distances, ids = CodeBase(encoder, encoder.transform(sample)).search(sample, 1)
        assert np.isfinite(distances).all() and (ids >= 0).all()


def test_as_many_cells_as_vectors() -> None:
    for n in (99, 100, 140):
        encoder = LearnedEncoder(4, cells=n, random_state=0).fit(X[:n])
        assert encoder.codec_.n_cells == n


def test_a_far_training_vector_leaves_the_others_their_codewords() -> None:
    rng = np.random.default_rng(0)
    data = 4 * rng.standard_normal((50, 16))[rng.integers(0, 50, 4000)] + rng.standard_normal((4000, 16)) / 2
    data[7] = 1e4
    encoder = LearnedEncoder(5, split=Split("codebooks"), random_state=0).fit(data)
    others = np.delete(data, 7, axis=0)
    error = ((others - encoder.inverse_transform(encoder.transform(others))) ** 2).sum()
    assert error < 0.05 * ((others - others.mean(axis=0)) ** 2).sum()


def test_far_vectors_have_the_codewords_of_their_direction() -> None:
    encoder = LearnedEncoder(2, metric="ip", split=Split("codebooks", bias="none"), random_state=0).fit(X)
    mean = encoder.codec_.reduction.mean
    far = X - mean
    expected = encoder.transform(mean + 1e9 * far)
    for size in (1e12, 1e20, 1e30, 1e130):
        assert (encoder.transform(mean + size * far) == expected).all(axis=1).mean() > 0.99


@pytest.mark.parametrize(
    "split", [Split("codebooks"), Split("signs"), Split("signs", scale=True), Split("codebooks", 5)]
)
def test_vectors_beyond_all_bounds_are_coded(split: Split) -> None:
    encoder = LearnedEncoder(5, split=split, random_state=0).fit(X)
    assert encoder.codec_.bias.alpha > 0 or encoder.codec_.bias.beta > 0
    codes = encoder.transform(np.concatenate([X[:5], X[:5] * 1e160]))
    np.testing.assert_array_equal(codes[:5], encoder.transform(X[:5]))
    assert (codes[5:, -1] == 255).all()


def test_summary_and_repr_say_what_was_chosen() -> None:
    encoder = LearnedEncoder(4, random_state=0)
    assert repr(encoder) == "LearnedEncoder(n_bytes=4, random_state=0)"
    encoder.fit(SMALL)
    assert repr(encoder) == f"LearnedEncoder(n_bytes=4, random_state=0), fitted: {encoder.codec_.summary}"
    assert repr(encoder.codec_) == f"Codec(4 bytes: {encoder.codec_.summary}; 4 dimensions, l2)"
    signs = LearnedEncoder(7, split=Split("signs", 5, True), random_state=0).fit(SMALL)
    assert signs.codec_.summary == "32 signs, 5 cells, scale byte, bias byte"
    books = LearnedEncoder(1, split=Split("codebooks", bias="nibble"), random_state=0).fit(SMALL)
    assert books.codec_.summary == "1 codebook, bias nibble" and "Codec(1 byte: " in repr(books.codec_)


def test_the_zoo_is_fitted_in_bytes_that_its_encoders_name() -> None:
    for name, encoder in zoo.ENCODERS.items():
        if isinstance(encoder, LearnedEncoder):
            assert zoo.codec(name).n_bytes == encoder.n_bytes


@pytest.mark.parametrize("n_bytes", [6, 16])
@pytest.mark.parametrize("symbols", ["auto", "codebooks", "signs", "levels"])
def test_one_far_training_vector_leaves_the_search_as_it_was(n_bytes: int, symbols: str) -> None:
    rng = np.random.default_rng(0)
    base, queries = rng.standard_normal((3000, 32)), rng.standard_normal((200, 32))
    nearest = exact_neighbors(base, queries, 1)[1]
    recalls = []
    for factor in (1, 30, 1e6):
        train = base.copy()
        train[-1] *= factor
        codec = LearnedEncoder(n_bytes, symbols=symbols, effort=1, random_state=0).fit(train).codec_
        recalls.append(recall_at(CodeBase(codec, codec.encode(base)).search(queries, 10)[1], nearest, 10))
    assert min(recalls) > recalls[0] - 0.06


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_the_first_dimensions_alone_are_those_of_vectors_cut_before(metric: str, tmp_path: Path) -> None:
    X = np.random.default_rng(8).standard_normal((300, 12)) + 1
    cut = LearnedEncoder(4, metric=metric, random_state=0).fit(X[:, :5]).codec_
    encoder = LearnedEncoder(4, metric=metric, dimensions=5, random_state=0).fit(X)
    codec = encoder.codec_
    assert replace(codec, given=None) == cut and codec != cut and "5 of 12 dimensions" in repr(codec)
    codec.save(tmp_path / "codec")
    assert Codec.load(tmp_path / "codec") == codec
    codes = encoder.transform(X)
    np.testing.assert_array_equal(codes, cut.encode(X[:, :5]))
    np.testing.assert_array_equal(codec.encode(X[:, :5]), codes)
    assert codec.decode(codes).shape == (300, 5)
    index = Index.build(X, 4, metric=metric, dimensions=5, random_state=0)
    other = Index.build(X[:, :5], 4, metric=metric, random_state=0)
    for options in ({}, {"rerank": X}):
        found = index.search(X[:9], 6, **options)
        expected = other.search(X[:9, :5], 6, **({"rerank": X[:, :5]} if options else {}))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(index.search(X[:9, :5], 6)[1], index.search(X[:9], 6)[1])
    assert len(index.range_search(X[:3], 1e9)[2]) == 900
    with pytest.raises(InputError, match="dimensions"):
        codec.encode(X[:, :7])
    for wrong in (0, 13, "5"):
        with pytest.raises((InputError, InputTypeError), match="dimensions"):
            LearnedEncoder(4, dimensions=wrong).fit(X)
