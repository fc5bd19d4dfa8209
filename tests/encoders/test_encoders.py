"""The paper's encoders, and what every encoder is: a scikit-learn transformer that fits a codec."""

from itertools import pairwise

import numpy as np
import pytest
import zoo
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from antisparse import (
    AntiSparseEncoder,
    CodeBase,
    Codec,
    InputError,
    InputTypeError,
    ITQEncoder,
    LearnedEncoder,
    LSHEncoder,
    SpectralHashEncoder,
    Split,
    UnsupportedError,
    block_frame,
    certificate,
    spread,
    tight_frame,
    unpack,
)
from antisparse.codec import FixedLength, SpreadSigns
from antisparse.evaluation import exact_neighbors, recall_at
from antisparse.learning.choose import H_GRID

X = np.random.default_rng(0).standard_normal((300, 10)) + 2


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        AntiSparseEncoder(),
        AntiSparseEncoder(16, effort=2, metric="ip"),
        LSHEncoder(),
        ITQEncoder(),
        SpectralHashEncoder(),
        LearnedEncoder(4),
        LearnedEncoder(6, effort=1, split=Split("signs", scale=True)),
    ]
)
def test_scikit_learn_estimator(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_an_encoder_does_what_its_codec_does(name: str) -> None:
    encoder = clone(zoo.ENCODERS[name]).fit(zoo.TRAIN)
    codec = encoder.codec_
    assert isinstance(codec, Codec) and codec == zoo.codec(name) and codec.metric_name == encoder.metric
    V = zoo.vectors(50, 4)
    codes = encoder.transform(V)
    np.testing.assert_array_equal(codes, codec.encode(V))
    for same in (V.tolist(), V.astype(np.float16), np.asfortranarray(V), np.round(V).astype(int)):
        np.testing.assert_array_equal(encoder.transform(same), codec.encode(np.asarray(same, float)))
    if codec.rebuilds:
        np.testing.assert_array_equal(encoder.inverse_transform(codes), codec.decode(codes))
    np.testing.assert_array_equal(clone(encoder).fit_transform(zoo.TRAIN), codec.encode(zoo.TRAIN))
    assert repr(encoder) == f"{clone(encoder)!r}, fitted: {codec.summary}" and "fitted" not in repr(clone(encoder))
    assert encoder.n_features_in_ == codec.dimension == 10


@pytest.mark.parametrize("name", zoo.NAMES)
def test_training_vectors_of_any_dtype_and_order_fit_the_same_codec(name: str) -> None:
    for same in (zoo.TRAIN.astype(np.float16), zoo.TRAIN.astype(np.float32), np.asfortranarray(zoo.TRAIN)):
        assert clone(zoo.ENCODERS[name]).fit(same).codec_ == zoo.codec(name)
    whole = np.clip(np.round(8 * zoo.TRAIN), 1, 255)
    expected = clone(zoo.ENCODERS[name]).fit(whole).codec_
    for dtype in (np.uint8, np.int64):
        assert clone(zoo.ENCODERS[name]).fit(whole.astype(dtype)).codec_ == expected


def test_encoders_that_are_not_fitted_say_so() -> None:
    for encoder in (LearnedEncoder(4), AntiSparseEncoder(8), LSHEncoder(8), ITQEncoder(8), SpectralHashEncoder(8)):
        for method in ("transform", "inverse_transform", "transform_real"):
            if hasattr(encoder, method):
                with pytest.raises(NotFittedError):
                    getattr(encoder, method)(X)


def test_a_pipeline_takes_an_encoder() -> None:
    for encoder, size in ((LSHEncoder(16, random_state=0), 2), (LearnedEncoder(5, random_state=0), 5)):
        pipeline = make_pipeline(StandardScaler(), encoder)
        assert pipeline.fit_transform(X).shape == (300, size)
        assert pipeline.inverse_transform(pipeline.transform(X)).shape == X.shape


def test_the_transposed_frame_of_a_caller_is_taken() -> None:
    frame = np.asfortranarray(tight_frame(10, 12, 0))
    encoder = LSHEncoder(12, frame=frame, center=False).fit(X)
    np.testing.assert_array_equal(encoder.codec_.symbols.frame, frame)
    np.testing.assert_array_equal(unpack(encoder.transform(X), 12), np.where(X @ frame < 0, -1, 1))


@pytest.mark.parametrize("frame", ["tight", "gaussian", "block", tight_frame(10, 24, 5), block_frame(10, 24, 4, 1)])
def test_anti_sparse_bits_are_the_signs_of_certified_representations(frame) -> None:
    encoder = AntiSparseEncoder(24, h=0.2, frame=frame, random_state=3).fit(X)
    Y = X - X.mean(0)
    result = spread(Y, encoder.codec_.symbols.frame, 0.2)
    assert certificate(result).max() < 1e-9
    assert np.mean(unpack(encoder.transform(X), 24) == np.where(result.x < 0, -1, 1)) > 0.999
    np.testing.assert_allclose(encoder.transform_real(X), result.x / result.t[:, None], atol=1e-9)


def test_a_block_frame_has_blocks_of_48_dimensions() -> None:
    wide = np.random.default_rng(0).standard_normal((200, 100))
    frame = AntiSparseEncoder(120, frame="block", random_state=0).fit(wide).codec_.symbols.frame
    assert [block.shape for block in frame.blocks] == [(34, 40), (33, 40), (33, 40)]


def test_lsh_bits_are_the_signs_of_projections() -> None:
    encoder = LSHEncoder(24, center=False, random_state=0).fit(X)
    frame = encoder.codec_.symbols.frame
    np.testing.assert_array_equal(unpack(encoder.transform(X), 24), np.where(X @ frame < 0, -1, 1))
    assert not encoder.codec_.reduction.mean.any()


def test_the_paper_is_a_tight_frame_with_h_one_and_nothing_centred() -> None:
    encoder = AntiSparseEncoder.paper(24, random_state=0).fit(X)
    assert encoder.get_params() == {
        "n_bits": 24,
        "frame": "tight",
        "h": 1.0,
        "relative_h": False,
        "effort": 0,
        "center": False,
        "pca": None,
        "metric": "l2",
        "verbose": False,
        "random_state": 0,
        "n_threads": None,
    }
    codec = encoder.codec_
    assert isinstance(codec.symbols, SpreadSigns) and isinstance(codec.scale, FixedLength)
    assert (codec.symbols.h, codec.symbols.relative_h, codec.symbols.effort) == (1.0, False, 0)
    assert not codec.reduction.mean.any() and codec.reduction.axes is None
    frame = codec.symbols.frame
    np.testing.assert_allclose(frame @ frame.T, np.eye(10), atol=1e-12)
    x = spread(X, frame, 1.0, relative=False).x
    assert np.mean(unpack(encoder.transform(X), 24) == np.where(x < 0, -1, 1)) > 0.999


def test_reconstruction_is_the_frame_times_the_code_at_the_mean_norm() -> None:
    for encoder in (AntiSparseEncoder(24, random_state=0), LSHEncoder(24, random_state=0)):
        codes = encoder.fit(X).transform(X)
        combined = unpack(codes, 24) @ encoder.codec_.symbols.frame.T
        sigma = np.linalg.norm(X - X.mean(0), axis=1).mean()
        expected = sigma * combined / np.linalg.norm(combined, axis=1, keepdims=True) + X.mean(0)
        np.testing.assert_allclose(encoder.inverse_transform(codes), expected, atol=1e-12)


def test_rebuilt_vectors_point_where_the_paper_says() -> None:
    rng = np.random.default_rng(1)
    sphere = rng.standard_normal((5000, 16))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)

    def cosine(encoder) -> float:
        rebuilt = encoder.fit(sphere).inverse_transform(encoder.transform(sphere))
        return float(((rebuilt * sphere).sum(1) / np.linalg.norm(rebuilt, axis=1)).mean())

    assert cosine(AntiSparseEncoder.paper(48, random_state=0)) >= 0.96
    assert 0.91 <= cosine(LSHEncoder(48, center=False, random_state=0)) <= 0.93


def test_effort_brings_codes_nearer_to_the_direction() -> None:
    new = np.random.default_rng(5).standard_normal((500, 10)) + 2

    def cosine(effort: int) -> float:
        encoder = AntiSparseEncoder(40, effort=effort, random_state=0).fit(X)
        mean = encoder.codec_.reduction.mean
        rebuilt, centred = encoder.inverse_transform(encoder.transform(new)) - mean, new - mean
        return ((rebuilt * centred).sum(1) / np.linalg.norm(rebuilt, axis=1) / np.linalg.norm(centred, axis=1)).mean()

    cosines = [cosine(effort) for effort in (0, 1, 2, 3)]
    assert all(one < other for one, other in pairwise(cosines)), cosines


def test_fewer_bits_than_dimensions_reduces_by_pca() -> None:
    codec = AntiSparseEncoder(6, random_state=0).fit(X).codec_
    axes = codec.reduction.axes
    assert axes.shape == (6, 10) and codec.symbols.frame.shape == (6, 6)
    np.testing.assert_allclose(axes @ axes.T, np.eye(6), atol=1e-12)
    reduced = codec.reduction.reduce(X, 1)
    variances = reduced.var(axis=0)
    assert (np.diff(variances) <= 1e-12).all()
    total = np.linalg.svd(X - X.mean(0), compute_uv=False)[:6] ** 2 / len(X)
    np.testing.assert_allclose(variances, total)
    np.testing.assert_allclose(codec.reduction.restore(reduced, 1), X.mean(0) + (X - X.mean(0)) @ axes.T @ axes)


def test_fitting_on_fewer_vectors_than_dimensions() -> None:
    axes = LSHEncoder(8, random_state=0).fit(X[:3]).codec_.reduction.axes
    np.testing.assert_allclose(axes @ axes.T, np.eye(8), atol=1e-10)
    with pytest.raises(InputError, match="pca = 5, but 3 vectors of 10 dimensions"):
        LSHEncoder(8, pca=5).fit(X[:3])


def test_itq_lowers_the_quantisation_error_of_its_first_rotation() -> None:
    skewed = X @ np.diag(np.logspace(0, 1.5, 10))

    def error(n_iter: int) -> float:
        codec = ITQEncoder(10, n_iter=n_iter, random_state=0).fit(skewed).codec_
        rotation = codec.symbols.frame
        projected = codec.reduction.reduce(skewed, 1) @ rotation
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(10), atol=1e-12)
        return float(((projected - np.where(projected < 0, -1, 1)) ** 2).sum())

    errors = [error(n) for n in (0, 1, 5, 50)]
    assert errors == sorted(errors, reverse=True) and errors[-1] < errors[0]


@pytest.mark.parametrize("n_bits", [4, 10, 30])
def test_itq_rebuilds_at_the_length_that_suits_training_vectors_best(n_bits: int) -> None:
    encoder = ITQEncoder(n_bits, random_state=0).fit(X)
    codec = encoder.codec_
    assert codec.symbols.frame.shape == (min(n_bits, 10), n_bits)
    codes = encoder.transform(X)

    def error(sigma: float) -> float:
        other = Codec("l2", codec.reduction, codec.symbols, scale=FixedLength(sigma))
        return float(((X - other.decode(codes)) ** 2).sum())

    sigma = codec.scale.sigma
    assert sigma > 0 and error(sigma) < min(error(0.98 * sigma), error(1.02 * sigma))


def test_spectral_hashing_takes_the_slowest_eigenfunctions() -> None:
    # A box 4 x 1: the first modes of the long side come before the first of the short one.
    box = np.random.default_rng(0).uniform(0, 1, (4000, 2)) * [4, 1]
    encoder = SpectralHashEncoder(6).fit(box)
    signs = encoder.codec_.symbols
    axis = signs.axis.astype(int)
    frequency = signs.mode / signs.extent[axis]
    assert (np.diff(frequency) >= 0).all()
    assert axis[:3].tolist() == [0, 0, 0] and signs.mode[:3].tolist() == [1, 2, 3]
    bits = np.unpackbits(encoder.transform(box), axis=1)
    middle = signs.lower[0] + signs.extent[0] / 2  # cos(pi x / r) changes sign in the middle
    np.testing.assert_array_equal(bits[:, 0], encoder.codec_.reduction.reduce(box, 1)[:, 0] <= middle)
    with pytest.raises(UnsupportedError, match="cannot rebuild"):
        encoder.inverse_transform(encoder.transform(box))


def test_spectral_hashing_of_vectors_that_do_not_vary() -> None:
    flat = np.c_[X[:, :3], np.ones((300, 2))]
    codec = SpectralHashEncoder(8).fit(flat).codec_
    assert codec.symbols.axis.max() <= 2  # a component that never varies tells nothing
    assert codec.encode(flat).shape == (300, 1)
    constant = SpectralHashEncoder(8).fit(np.ones((20, 5)))
    assert len(np.unique(constant.transform(np.ones((20, 5))), axis=0)) == 1


def test_h_by_name_finds_the_h_that_its_search_wants() -> None:
    rng = np.random.default_rng(5)
    data = rng.standard_normal((4000, 16))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    chosen = {}
    for method in ("hamming", "asymmetric", "reconstruction"):
        encoder = AntiSparseEncoder(48, h=method, random_state=0).fit(data)
        assert encoder.h_ in H_GRID and encoder.codec_.symbols.h == encoder.h_ and encoder.codec_.symbols.relative_h
        again = AntiSparseEncoder(48, h=method, random_state=0, n_threads=1)
        assert again.fit(data).h_ == encoder.h_
        plain = AntiSparseEncoder(48, h=encoder.h_, random_state=0).fit(data)
        assert (plain.transform(data[:50]) == encoder.transform(data[:50])).all()
        chosen[method] = encoder.h_
    assert chosen["hamming"] > chosen["reconstruction"]  # as the paper found

    def recall(h: float) -> float:
        encoder = AntiSparseEncoder(48, h=h, random_state=1).fit(data)
        found = CodeBase(encoder, encoder.transform(data[:3000])).search(data[3000:], 10, method="hamming")[1]
        return recall_at(found, exact_neighbors(data[:3000], data[3000:], 1)[1], 10)

    assert recall(chosen["hamming"]) > max(recall(H_GRID[0]), recall(H_GRID[-1]))


def test_bad_parameters_are_named() -> None:
    for encoder, error, message in (
        (LSHEncoder(0), InputError, "n_bits = 0"),
        (LSHEncoder("8"), InputTypeError, "n_bits must be an integer"),
        (LSHEncoder(8, frame="thight"), InputError, "frame = 'thight'; choose"),
        (LSHEncoder(8, frame=np.eye(10)), InputError, r"frame has shape \(10, 10\); .* n_bits = 8"),
        (LSHEncoder(12, frame=tight_frame(11, 12, 0)), InputError, r"frame has shape \(11, 12\)"),
        (LSHEncoder(12, frame=block_frame(11, 12, 3, 0)), InputError, r"frame has shape \(11, 12\)"),
        (LSHEncoder(8, pca=0), InputError, "pca = 0"),
        (LSHEncoder(2, frame=[[1.0, 2.0], [3.0, 4.0, 5.0]]), InputError, "frame is not a rectangular"),
        (LSHEncoder(2, frame=np.ones(2)), InputError, r"frame has shape \(2,\)"),
        (LSHEncoder(2, frame=3.0), InputError, r"frame has shape \(\)"),
        (LSHEncoder(2, frame=None), InputTypeError, "frame has dtype object"),
        (LSHEncoder(8, pca=11), InputError, "pca = 11"),
        (LSHEncoder(8, n_threads=0), InputError, "n_threads = 0"),
        (AntiSparseEncoder(8, h=-1), InputError, "h = -1"),
        (AntiSparseEncoder(8, h="best"), InputError, "h = 'best'; choose one of 'hamming'"),
        (AntiSparseEncoder(8, h=None), InputTypeError, "h must be a number"),
        (AntiSparseEncoder(8, effort=4), InputError, "effort = 4"),
        (AntiSparseEncoder(8, effort=True), InputError, "effort = True"),
        (AntiSparseEncoder(8, effort="2"), InputError, "effort = '2'"),
        (AntiSparseEncoder(8, frame="learned"), InputError, "frame = 'learned'"),
        (AntiSparseEncoder(8, metric="l1"), InputError, "metric = 'l1'"),
        (ITQEncoder(8, n_iter=-1), InputError, "n_iter = -1"),
        (ITQEncoder(0), InputError, "n_bits = 0"),
        (SpectralHashEncoder(0), InputError, "n_bits = 0"),
    ):
        with pytest.raises(error, match=message):
            encoder.fit(X)
    bad = X.copy()
    bad[2, 1] = np.inf
    for encoder in (LSHEncoder(8), LearnedEncoder(4), AntiSparseEncoder(8), ITQEncoder(8), SpectralHashEncoder(8)):
        with pytest.raises(InputError, match="X row 2, column 1 is inf"):
            encoder.fit(bad)
    with pytest.raises(InputError, match="too few to choose h by"):
        AntiSparseEncoder(24, h="hamming").fit(X[:19])
    fitted = AntiSparseEncoder(8, random_state=0).fit(X)
    with pytest.raises(InputError, match="X row 2, column 1 is inf"):
        fitted.transform_real(bad)


def test_what_was_removed_is_not_taken() -> None:
    for gone in ("means", "scale", "bias", "alpha", "h_for", "block_size"):
        with pytest.raises(TypeError, match=gone):
            AntiSparseEncoder(8, **{gone: 1})


@pytest.mark.parametrize("parameters", [{"center": "no"}, {"relative_h": 1}])
def test_switches_are_booleans(parameters: dict[str, object]) -> None:
    with pytest.raises(InputTypeError, match="must be True or False"):
        AntiSparseEncoder(8, **parameters).fit(np.eye(4))


def test_vectors_too_large_name_the_argument() -> None:
    for encoder in (AntiSparseEncoder(8, pca=2), LearnedEncoder(2), ITQEncoder(2)):
        with pytest.raises(InputError, match=r"X row \d+ is too large"):
            encoder.fit(np.eye(4) * 1e200)
    encoder = AntiSparseEncoder(8, random_state=0).fit(np.eye(4))
    with pytest.raises(InputError, match="X rows 0 to 2 cannot be encoded"):
        encoder.transform(np.full((3, 4), 1e60))


def test_what_is_fitted_does_not_depend_on_the_threads_of_blas() -> None:
    from threadpoolctl import threadpool_limits

    many = np.random.default_rng(0).standard_normal((3000, 40))
    for encoder in (LearnedEncoder(4, symbols="signs", random_state=0), ITQEncoder(32, random_state=0)):
        digests = set()
        for threads in (1, 2):
            with threadpool_limits(threads, "blas"):
                digests.add(clone(encoder).fit(many).codec_.digest)
        assert len(digests) == 1


@pytest.mark.parametrize(
    ("encoder", "words"),
    [(AntiSparseEncoder(12, h="hamming", random_state=0), "choosing h"), (ITQEncoder(4, random_state=0), "ITQ")],
)
def test_verbose_shows_the_time_left_of_fits_that_may_take_long(encoder, words, capfd) -> None:
    X = np.random.default_rng(0).standard_normal((60, 6))
    quiet = clone(encoder).fit(X)
    assert capfd.readouterr().err == ""
    loud = clone(encoder).set_params(verbose=True).fit(X)
    shown = capfd.readouterr().err
    assert words in shown and "left" in shown
    assert loud.codec_ == quiet.codec_
    with pytest.raises(InputTypeError, match="verbose must be True or False"):
        clone(encoder).set_params(verbose=1).fit(X)
