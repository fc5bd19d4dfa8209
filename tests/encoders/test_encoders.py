import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from antisparse import (
    AntiSparseEncoder,
    InputError,
    InputTypeError,
    ITQEncoder,
    LSHEncoder,
    SpectralHashEncoder,
    UnsupportedError,
    block_frame,
    certificate,
    spread,
    tight_frame,
    unpack,
)

X = np.random.default_rng(0).standard_normal((300, 10)) + 2
SPREAD = {"frame": "tight", "effort": 0, "random_state": 0}
ALL = [
    AntiSparseEncoder(24, random_state=0),
    AntiSparseEncoder(24, means=20, effort=1, random_state=0),
    AntiSparseEncoder(24, means=20, scale=True, random_state=0),
    AntiSparseEncoder(24, **SPREAD),
    AntiSparseEncoder(24, **SPREAD | {"effort": 3}),
    LSHEncoder(24, random_state=0),
    ITQEncoder(24, random_state=0),
    SpectralHashEncoder(24),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([AntiSparseEncoder(), LSHEncoder(), ITQEncoder(), SpectralHashEncoder()])
def test_scikit_learn_estimator(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("encoder", ALL, ids=str)
def test_a_vector_has_the_same_bits_in_any_batch(isa: str, encoder) -> None:
    encoder = clone(encoder).fit(X)
    codes = encoder.transform(X)
    assert codes.dtype == np.uint8 and codes.shape == (300, encoder.code_layout_.code_size)
    for size in (1, 3, 7):
        for start in (0, 41, 293):
            np.testing.assert_array_equal(encoder.transform(X[start : start + size]), codes[start : start + size])
    np.testing.assert_array_equal(clone(encoder).set_params(n_threads=1).fit(X).transform(X), codes)


@pytest.mark.parametrize("encoder", ALL, ids=str)
def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch, encoder) -> None:
    encoder = clone(encoder).fit(X)
    codes = encoder.transform(X)
    monkeypatch.setattr("antisparse.encoders.base._CHUNK_ROWS", 17)
    np.testing.assert_array_equal(encoder.transform(X), codes)
    assert encoder.transform(X[:0]).shape == (0, encoder.code_layout_.code_size)


@pytest.mark.parametrize("encoder", ALL, ids=str)
def test_integer_and_narrow_input_is_taken(encoder) -> None:
    whole = np.round(X * 20).astype(np.uint8)
    encoder = clone(encoder).fit(whole)
    expected = encoder.transform(whole.astype(float))
    for dtype in (np.uint8, np.int64, np.float16, np.float32):
        np.testing.assert_array_equal(encoder.transform(whole.astype(dtype)), expected)
    np.testing.assert_array_equal(encoder.transform(np.asfortranarray(whole)), expected)


def test_encoding_into_a_file_with_progress(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder = LSHEncoder(24, random_state=0).fit(X)
    out = np.lib.format.open_memmap(tmp_path / "codes.npy", "w+", np.uint8, (300, 3))
    assert encoder.encode(X, out=out, progress=True) is out
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), encoder.transform(X))
    assert "encoding" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"out has shape \(300, 2\)"):
        encoder.encode(X, out=np.empty((300, 2), np.uint8))


def test_a_pipeline_takes_an_encoder() -> None:
    pipeline = make_pipeline(StandardScaler(), AntiSparseEncoder(16, bias=False, random_state=0))
    assert pipeline.fit_transform(X).shape == (300, 2)
    assert pipeline.inverse_transform(pipeline.transform(X)).shape == X.shape


@pytest.mark.parametrize("frame", ["tight", "gaussian", "block", tight_frame(10, 24, 5), block_frame(10, 24, 4, 1)])
def test_anti_sparse_bits_are_the_signs_of_certified_representations(frame) -> None:
    encoder = AntiSparseEncoder(24, h=0.2, frame=frame, effort=0, block_size=4, random_state=3).fit(X)
    Y = X - X.mean(0)
    result = spread(Y, encoder.frame_, 0.2)
    assert certificate(result).max() < 1e-9
    assert np.mean(unpack(encoder.transform(X), 24) == np.where(result.x < 0, -1, 1)) > 0.999
    np.testing.assert_allclose(encoder.transform_real(X), result.x / result.t[:, None], atol=1e-9)


def test_lsh_bits_are_the_signs_of_projections() -> None:
    encoder = LSHEncoder(24, center=False, random_state=0).fit(X)
    np.testing.assert_array_equal(unpack(encoder.transform(X), 24), np.where(X @ encoder.frame_ < 0, -1, 1))
    assert not encoder.mean_.any()


def test_the_paper_is_a_tight_frame_with_h_one_and_nothing_centred() -> None:
    encoder = AntiSparseEncoder.paper(24, random_state=0).fit(X)
    assert encoder.get_params() == {
        "n_bits": 24,
        "frame": "tight",
        "effort": 0,
        "h": 1.0,
        "h_for": "hamming",
        "relative_h": False,
        "means": 1,
        "scale": False,
        "bias": True,
        "alpha": None,
        "center": False,
        "pca": None,
        "block_size": 48,
        "random_state": 0,
        "n_threads": None,
    }
    assert not encoder.mean_.any() and encoder.components_ is None
    np.testing.assert_allclose(encoder.frame_ @ encoder.frame_.T, np.eye(10), atol=1e-12)
    x = spread(X, encoder.frame_, 1.0, relative=False).x
    assert np.mean(unpack(encoder.transform(X), 24) == np.where(x < 0, -1, 1)) > 0.999


def test_reconstruction_is_the_frame_times_the_code_at_the_mean_norm() -> None:
    encoder = AntiSparseEncoder(24, **SPREAD).fit(X)
    codes = encoder.transform(X)
    combined = unpack(codes, 24) @ encoder.frame_.T
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


def test_fewer_bits_than_dimensions_reduces_by_pca() -> None:
    encoder = AntiSparseEncoder(6, **SPREAD).fit(X)
    assert encoder.components_.shape == (6, 10) and encoder.frame_.shape == (6, 6)
    np.testing.assert_allclose(encoder.components_ @ encoder.components_.T, np.eye(6), atol=1e-12)
    reduced = encoder.reduce(X)
    variances = reduced.var(axis=0)
    assert (np.diff(variances) <= 1e-12).all()
    total = np.linalg.svd(X - X.mean(0), compute_uv=False)[:6] ** 2 / len(X)
    np.testing.assert_allclose(variances, total)


def test_fitting_on_fewer_vectors_than_dimensions() -> None:
    encoder = LSHEncoder(8, random_state=0).fit(X[:3])
    np.testing.assert_allclose(encoder.components_ @ encoder.components_.T, np.eye(8), atol=1e-10)
    with pytest.raises(InputError, match="pca = 5, but 3 vectors of 10 dimensions"):
        LSHEncoder(8, pca=5).fit(X[:3])


def test_itq_lowers_the_quantisation_error_of_its_first_rotation() -> None:
    skewed = X @ np.diag(np.logspace(0, 1.5, 10))

    def error(n_iter: int) -> float:
        encoder = ITQEncoder(10, n_iter=n_iter, random_state=0).fit(skewed)
        projected = encoder.project(encoder.reduce(skewed))
        np.testing.assert_allclose(encoder.rotation_ @ encoder.rotation_.T, np.eye(10), atol=1e-12)
        return float(((projected - np.where(projected < 0, -1, 1)) ** 2).sum())

    errors = [error(n) for n in (0, 1, 5, 50)]
    assert errors == sorted(errors, reverse=True)


def test_spectral_hashing_takes_the_slowest_eigenfunctions() -> None:
    # A box 4 x 1: the first modes of the long side come before the first of the short one.
    box = np.random.default_rng(0).uniform(0, 1, (4000, 2)) * [4, 1]
    encoder = SpectralHashEncoder(6).fit(box)
    frequency = encoder.mode_ / encoder.range_[encoder.axis_]
    assert (np.diff(frequency) >= 0).all()
    assert encoder.axis_[:3].tolist() == [0, 0, 0] and encoder.mode_[:3].tolist() == [1, 2, 3]
    bits = np.unpackbits(encoder.transform(box), axis=1)
    middle = encoder.lower_[0] + encoder.range_[0] / 2  # cos(pi x / r) changes sign in the middle
    np.testing.assert_array_equal(bits[:, 0], encoder.reduce(box)[:, 0] <= middle)
    with pytest.raises(UnsupportedError, match="cannot rebuild"):
        encoder.inverse_transform(encoder.transform(box))


def test_bad_parameters_are_named() -> None:
    for encoder, error, message in (
        (LSHEncoder(0), InputError, "n_bits = 0"),
        (LSHEncoder("8"), InputTypeError, "n_bits must be an integer"),
        (LSHEncoder(8, frame="thight"), InputError, "frame = 'thight'; choose"),
        (LSHEncoder(8, frame=np.eye(10)), InputError, "frame has 10 columns but n_bits = 8"),
        (LSHEncoder(12, frame=tight_frame(11, 12, 0)), InputError, "frame has 11 rows"),
        (LSHEncoder(8, pca=0), InputError, "pca = 0"),
        (LSHEncoder(2, frame=[[1.0, 2.0], [3.0, 4.0, 5.0]]), InputError, "frame is not a rectangular"),
        (LSHEncoder(2, frame=np.ones(2)), InputError, r"frame has shape \(2,\)"),
        (LSHEncoder(8, pca=11), InputError, "pca = 11"),
        (LSHEncoder(8, n_threads=0), InputError, "n_threads = 0"),
        (AntiSparseEncoder(8, h=-1), InputError, "h = -1"),
        (AntiSparseEncoder(8, effort=4), InputError, "effort = 4"),
        (AntiSparseEncoder(8, means=0), InputError, "means = 0"),
        (AntiSparseEncoder(8, means=301), InputError, "means = 301, but X has 300"),
        (AntiSparseEncoder(8, means=2, frame="tight"), InputError, "means = 2 needs frame='learned'"),
        (AntiSparseEncoder(8, scale=True, bias=False), InputError, "scale needs"),
        (AntiSparseEncoder(12, scale=True, bias="half"), InputError, "scale needs"),
        (AntiSparseEncoder(16, bias="half"), InputError, "last half byte"),
        (AntiSparseEncoder(12, bias="whole"), InputTypeError, "bias"),
        (AntiSparseEncoder(8, alpha=-1), InputError, "alpha = -1"),
        (AntiSparseEncoder(8, frame="lerned"), InputError, "frame = 'lerned'"),
        (ITQEncoder(8, n_iter=-1), InputError, "n_iter = -1"),
    ):
        with pytest.raises(error, match=message):
            encoder.fit(X)
    bad = X.copy()
    bad[2, 1] = np.inf
    with pytest.raises(InputError, match="X row 2, column 1 is inf"):
        LSHEncoder(8).fit(bad)


@pytest.mark.parametrize("parameters", [{"center": "no"}, {"relative_h": 1}])
def test_switches_are_booleans(parameters: dict[str, object]) -> None:
    with pytest.raises(InputTypeError, match="must be True or False"):
        AntiSparseEncoder(8, **parameters).fit(np.eye(4))


def test_vectors_too_large_name_the_argument() -> None:
    with pytest.raises(InputError, match="X has entries beyond"):
        AntiSparseEncoder(8, pca=2).fit(np.eye(4) * 1e200)
    encoder = AntiSparseEncoder(8, **SPREAD).fit(np.eye(4))
    with pytest.raises(InputError, match="X rows 0 to 2 cannot be encoded"):
        encoder.transform(np.full((3, 4), 1e60))
