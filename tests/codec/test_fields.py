"""The fields of a code row one by one: their bytes, what they stand for, and what cannot be a codec."""

from dataclasses import replace

import numpy as np
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st

from antisparse import InputError, InputTypeError, LSHEncoder, UnsupportedError
from antisparse.codec import (
    BiasByte,
    BiasNibble,
    Cells,
    Codebooks,
    Codec,
    FixedLength,
    LearnedSigns,
    Levels,
    ProjectedSigns,
    Reduction,
    RowLayout,
    ScaleByte,
    SpectralSigns,
    SpreadSigns,
    codec_of,
)

X = zoo.vectors(300, 1)
layouts = st.builds(
    lambda nibbles, half, cells, scale, bias: RowLayout(
        8 * nibbles - 4 * half, half, cells, scale, 0 if half else bias
    ),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 1),
    st.integers(0, 1),
)


@given(layout=layouts, n=st.integers(0, 40), seed=st.integers(0, 10**6))
def test_rows_come_apart_and_together_again(layout: RowLayout, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (n, layout.n_bytes), dtype=np.uint8)
    scanned, cells = layout.scanned(rows), layout.cells(rows) if layout.cell_bytes else None
    assert scanned.shape == (n, layout.scanned_bytes)
    scales = layout.scales(rows) if layout.scale_bytes else None
    np.testing.assert_array_equal(layout.join(scanned, cells, scales), rows)
    # Byte by byte: symbols, the cell with its low byte first, the scale, the bias.
    np.testing.assert_array_equal(scanned[:, : layout.symbol_bytes], rows[:, : layout.symbol_bytes])
    at = layout.symbol_bytes
    if cells is not None:
        expected = rows[:, at : at + layout.cell_bytes].astype(int) @ 256 ** np.arange(layout.cell_bytes)
        np.testing.assert_array_equal(cells, expected)
    if scales is not None:
        np.testing.assert_array_equal(scales, rows[:, at + layout.cell_bytes])
    if layout.bias_bytes:
        np.testing.assert_array_equal(scanned[:, -1], rows[:, -1])
    bits = np.unpackbits(layout.symbols(rows), axis=1)
    np.testing.assert_array_equal(
        bits[:, : layout.symbol_bits], np.unpackbits(rows[:, :at], axis=1)[:, : layout.symbol_bits]
    )
    assert not bits[:, layout.symbol_bits :].any()


def test_layout_counts_bytes() -> None:
    layout = RowLayout(13, cell_bytes=1, bias_bytes=1)
    assert (layout.symbol_bytes, layout.n_bytes, layout.scanned_bytes, layout.padding) == (2, 4, 3, 7)
    assert RowLayout(16).n_bytes == 2 and RowLayout(16).padding == 0
    half = RowLayout(60, bias_nibble=True, cell_bytes=2)
    assert (half.symbol_bytes, half.n_bytes, half.padding) == (8, 10, 0)
    assert RowLayout(58, bias_nibble=True).padding == 0b110000


def test_padding_bits_are_refused() -> None:
    for layout in (RowLayout(13), RowLayout(58, bias_nibble=True)):
        rows = np.zeros((3, layout.n_bytes), np.uint8)
        assert layout.check(rows, "codes") is rows
        for bit in range(8):
            bad = rows.copy()
            bad[1, -1] = 1 << bit
            if layout.padding >> bit & 1:
                with pytest.raises(InputError, match="codes has padding bits set"):
                    layout.check(bad, "codes")
            else:
                layout.check(bad, "codes")


@pytest.mark.parametrize("name", zoo.NAMES)
def test_rows_say_what_the_summary_says(name: str) -> None:
    codec = zoo.codec(name)
    parts = (codec.symbols.n_bits, isinstance(codec.bias, BiasNibble), codec.n_cells, codec.scale, codec.bias)
    bits, nibble, cells, scale, bias = parts
    expected = -(-(bits + 4 * nibble) // 8) + (0 if cells == 1 else 1 if cells <= 256 else 2)
    expected += isinstance(scale, ScaleByte) + isinstance(bias, BiasByte)
    assert codec.n_bytes == expected
    size = "1 byte" if expected == 1 else f"{expected} bytes"
    assert repr(codec) == f"Codec({size}: {codec.summary}; 10 dimensions, {codec.metric_name})"
    for word, there in (
        ("scale byte", isinstance(scale, ScaleByte)),
        ("bias byte", isinstance(bias, BiasByte)),
        ("bias nibble", nibble),
        (f"{cells} cells", cells > 1),
        ("codebook", codec.symbols.columns_per_nibble == 16 and not isinstance(codec.symbols, Levels)),
        ("signs", codec.symbols.columns_per_nibble != 16),
        ("one length for all", isinstance(scale, FixedLength)),
    ):
        assert (word in codec.summary) == there, word


@pytest.mark.parametrize("name", [name for name in zoo.NAMES if zoo.codec(name).bias is not None])
def test_a_bias_is_the_nearest_number_to_what_it_stands_for(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    layout, bias = codec.layout, codec.bias
    rows, cells = layout.symbols(codes), layout.cells(codes)
    combined = codec.symbols.expand(rows) @ codec.symbols.matrix.T
    scales = codec.scale.decode(layout.scales(codes)) if codec.scale else np.ones(len(X))
    rebuilt = scales[:, None] * combined
    means = codec.cells.means[cells] if codec.cells else np.zeros((1, 10))
    reduced = codec.reduction.reduce(codec.metric.prepare(X, "X"), 1)
    error = ((reduced - means - rebuilt) ** 2).sum(1)
    leaning = (rebuilt * (reduced - means - rebuilt)).sum(1)
    exact = ((rebuilt**2).sum(1) + 2 * (means * rebuilt).sum(1) + bias.alpha * error + bias.beta * leaning) / scales
    if isinstance(bias, BiasByte):
        low, step, number, most = bias.low, bias.step, codes[:, -1].astype(int), 255
    else:
        low, step, number, most = bias.low[cells], bias.step[cells], codes[:, layout.symbol_bytes - 1] & 15, 15
    stored = low + step * number
    inside = (number > 0) & (number < most)
    assert inside.mean() > 0.5
    assert (np.abs(stored - exact) <= 0.5001 * step + 1e-5)[inside].all()
    assert (exact <= low + 0.5001 * step + 1e-5)[number == 0].all()
    assert (exact >= low + (most - 0.5001) * step - 1e-5)[number == most].all()


@pytest.mark.parametrize("name", [name for name in zoo.NAMES if isinstance(zoo.codec(name).scale, ScaleByte)])
def test_a_scale_is_the_nearest_to_the_best(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    cells, residual = codec.residuals(codec.reduction.reduce(codec.metric.prepare(X, "X"), 1), 1)
    np.testing.assert_array_equal(cells, codec.layout.cells(codes))
    combined = codec.symbols.expand(codec.layout.symbols(codes)) @ codec.symbols.matrix.T
    inverse = (combined**2).sum(1) / np.maximum((residual * combined).sum(1), 1e-12)
    numbers = codes[:, codec.layout.symbol_bytes + codec.layout.cell_bytes].astype(int)
    inside = (numbers > 0) & (numbers < 255)
    assert inside.mean() > 0.5
    stored = codec.scale.low + codec.scale.step * numbers
    assert (np.abs(stored - inverse) <= 0.5001 * codec.scale.step + 1e-4 * inverse)[inside].all()
    np.testing.assert_allclose(codec.scale.decode(numbers.astype(np.uint8)), 1 / stored)


def test_a_fixed_length_is_the_length_of_all_rebuilt_vectors() -> None:
    for name in zoo.NAMES:
        codec = zoo.codec(name)
        if isinstance(codec.scale, FixedLength):
            rebuilt = codec.decode(codec.encode(X)) - codec.reduction.mean
            np.testing.assert_allclose(np.linalg.norm(rebuilt, axis=1), codec.scale.sigma, rtol=1e-12)


def test_a_combination_that_vanishes_is_rebuilt_as_the_mean() -> None:
    frame = np.array([[1.0, 1.0], [0.0, 0.0]])
    codec = Codec("l2", Reduction(np.array([3.0, 4.0])), ProjectedSigns(frame), scale=FixedLength(2.0))
    codes = np.array([[0b10000000], [0b11000000]], np.uint8)
    np.testing.assert_array_equal(codec.decode(codes), [[3.0, 4.0], [5.0, 4.0]])


def test_vectors_go_to_their_nearest_cell() -> None:
    codec = zoo.codec("many cells")
    reduced = codec.reduction.reduce(X, 1)
    means = codec.cells.means
    distances = ((reduced[:, None] - means) ** 2).sum(2)
    cells = codec.layout.cells(codec.encode(X))
    assert (distances[np.arange(300), cells] <= distances.min(1) + 1e-10).all()
    assert cells.max() > 255  # both bytes count


L2 = Reduction(np.zeros(3))
LEARNED, DRAWN = LearnedSigns(np.eye(3)), ProjectedSigns(np.eye(3))
BIAS = BiasByte(0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Codec("angle", L2, DRAWN), InputError, "metric = 'angle'"),
        (lambda: Codec("l2", None, DRAWN), InputTypeError, "reduction is a NoneType"),
        (lambda: Codec("l2", L2, np.eye(3)), InputTypeError, "symbols is a ndarray"),
        (lambda: Codec("l2", L2, DRAWN, scale=2.0), InputTypeError, "scale is a float"),
        (lambda: Codec("l2", L2, LEARNED), InputError, "needs a bias"),
        (lambda: Codec("cosine", L2, LEARNED), InputError, "needs a bias"),
        (lambda: Codec("l2", Reduction(np.zeros(4)), LEARNED, bias=BIAS), InputError, "symbols are of 3 dimensions"),
        (lambda: Codec("ip", L2, LEARNED, Cells(np.zeros((2, 4)))), InputError, "means have 4 columns"),
        (lambda: Codec("l2", L2, LEARNED, bias=BiasNibble([0.0, 1], [1.0, 1], 0.0, 0.0)), InputError, "2 ranges for 1"),
        (
            lambda: Codec("l2", L2, LearnedSigns(np.ones((3, 6))), bias=BiasNibble([0.0], [1.0], 0.0, 0.0)),
            InputError,
            "last half byte",
        ),
        (
            lambda: Codec("l2", L2, LEARNED, None, ScaleByte(1.0, 0.1), BiasNibble([0.0], [1.0], 0.0, 0.0)),
            InputError,
            "does not go with a scale byte",
        ),
        (lambda: Codec("l2", L2, DRAWN, scale=FixedLength(1.0), bias=BIAS), InputError, "neither"),
        (lambda: Codec("l2", L2, DRAWN, bias=BIAS), InputError, "go with neither a scale byte nor a bias"),
        (
            lambda: Codec("ip", L2, SpreadSigns(np.eye(3)), scale=ScaleByte(1.0, 0.1)),
            InputError,
            "go with neither a scale byte nor a bias",
        ),
        (
            lambda: Codec("l2", Reduction(np.zeros(2)), SpectralSigns([0.0], [1.0], [0.0], [1.0])),
            InputError,
            "symbols are of 1 dimensions, but reduced vectors of 2",
        ),
        (
            lambda: Codec("l2", Reduction(np.zeros(1)), SpectralSigns([0.0], [1.0], [0.0], [1.0]), bias=BIAS),
            InputError,
            "spectral signs (go with neither|rebuild nothing)",
        ),
        (lambda: SpectralSigns([0.0], [1.0], [1.0], [1.0]), InputError, "does not exist"),
        (lambda: SpectralSigns([0.0], [1.0, 2], [0.0], [1.0]), InputError, "not of one length"),
        (lambda: Codebooks(np.ones((3, 20))), InputError, "codebooks have 16 each"),
        (lambda: Codebooks(np.ones((1, 16 * 4097))), InputError, "codebooks = 4097"),
        (lambda: Codebooks(np.ones((3, 16)), 0), InputError, "effort = 0"),
        (lambda: LearnedSigns(np.eye(3), 0), InputError, "effort = 0"),
        (lambda: LearnedSigns(np.eye(3), 2, -1.0), InputError, "norm = -1"),
        (lambda: SpreadSigns(np.eye(3), h="x"), InputTypeError, "h must be a number"),
        (lambda: ProjectedSigns(np.ones(3)), InputError, "frame has shape"),
        (lambda: ProjectedSigns(np.full((3, 3), np.inf)), InputError, "frame row 0"),
        (lambda: Cells(np.zeros((1, 3))), InputError, "means has 1 rows"),
        (lambda: Cells(np.zeros((2**20 + 1, 1))), InputError, "means has 1048577 rows"),
        (lambda: ScaleByte(0.0, 1.0), InputError, "low = 0"),
        (lambda: ScaleByte(1.0, -1.0), InputError, "step = -1"),
        (lambda: BiasByte(np.nan, 1.0, 0.0, 0.0), InputError, "low = nan"),
        (lambda: BiasByte(True, 1.0, 0.0, 0.0), InputTypeError, "low must be a number"),
        (lambda: BiasNibble([0.0], [-1.0], 0.0, 0.0), InputError, "a step is negative"),
        (lambda: FixedLength(-1.0), InputError, "sigma = -1"),
        (lambda: FixedLength(1e155), InputError, r"sigma = 1e\+155; its square"),
        (lambda: Reduction(np.zeros(3), np.eye(2)), InputError, "axes has 2 columns"),
        (lambda: Reduction(np.zeros((3, 3))), InputError, "mean has shape"),
    ],
)
def test_what_is_no_codec_is_said(make, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_codes_of_another_codec_are_refused() -> None:
    codec = zoo.codec("codebooks cells")
    codes = codec.encode(X[:5])
    for wrong, kind, message in (
        (codes.astype(int), InputTypeError, "codes has dtype int64; code rows are uint8"),
        (codes[:, :5], InputError, "codes has 5 bytes a row; codes of this codec have 6"),
        (codes[0], InputError, r"codes has shape \(6,\)"),
        (codes[:, :0], InputError, r"codes has shape \(5, 0\)"),
    ):
        with pytest.raises(kind, match=message):
            codec.decode(wrong)
    codes[3, codec.layout.symbol_bytes] = 9
    with pytest.raises(InputError, match="codes names cell 9, but the codec has 9"):
        codec.decode(codes)
    padded = zoo.codec("spread refined").encode(X[:5])
    padded[2, -1] |= 1
    with pytest.raises(InputError, match="padding bits"):
        zoo.codec("spread refined").decode(padded)
    with pytest.raises(UnsupportedError, match="cannot rebuild"):
        zoo.codec("spectral").decode(zoo.codec("spectral").encode(X))


def test_vectors_that_cannot_be_encoded_are_named() -> None:
    codec = zoo.codec("codebooks")
    bad = X.copy()
    bad[7, 3] = np.nan
    for wrong, kind, message in (
        (bad, InputError, "X row 7, column 3 is nan"),
        (X[:, :4], InputError, "X has 4 columns but the codec was fitted on vectors of 10 dimensions"),
        (X[0], InputError, r"X has shape \(10,\)"),
        (X.astype(complex), InputError, "Complex data"),
        (X.astype(str), InputTypeError, "X has dtype"),
        (np.ma.masked_greater(X, 1), InputError, "X has masked entries"),
    ):
        with pytest.raises(kind, match=message):
            codec.encode(wrong)
    for out in (np.empty((300, 2), np.uint8), np.empty((300, 6), np.int8), [[0] * 6] * 300):
        with pytest.raises(InputError, match=r"out must be an array of uint8 of shape \(300, 6\)"):
            codec.encode(X, out=out)
    with pytest.raises(InputError, match="n_threads = 0"):
        codec.encode(X, n_threads=0)


def test_a_bad_vector_beyond_the_first_chunk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antisparse.codec.codec._CHUNK_ROWS", 16)
    bad = X.copy()
    bad[100, 2] = np.inf
    with pytest.raises(InputError, match="X row 100, column 2 is inf"):
        zoo.codec("lsh").encode(bad)
    bad[100] = 0
    with pytest.raises(InputError, match="X row 100 is zero, and has no cosine"):
        zoo.codec("codebooks cosine").encode(bad)
    bad[100] = 1e60
    with pytest.raises(InputError, match="X rows 96 to 111 cannot be encoded"):
        zoo.codec("spread").encode(bad)


def test_the_codec_of_an_encoder() -> None:
    encoder = LSHEncoder(8, random_state=0).fit(X)
    assert codec_of(encoder) is encoder.codec_ is codec_of(encoder.codec_, "l2")
    with pytest.raises(InputError, match="LSHEncoder is not fitted; call fit"):
        codec_of(LSHEncoder(8))
    with pytest.raises(InputTypeError, match="codec is a int; pass a Codec or a fitted encoder"):
        codec_of(3)
    with pytest.raises(InputError, match="metric = 'ip', but the codec was fitted for 'l2'; fit the encoder with"):
        codec_of(encoder, "ip")
    with pytest.raises(InputError, match="metric = 'angle'"):
        codec_of(encoder, "angle")
    encoder.codec_ = "codec"
    with pytest.raises(InputTypeError, match="codec_ is a str"):
        codec_of(encoder)


def test_a_bias_step_of_zero_stands_for_one_value() -> None:
    codec = zoo.codec("codebooks")
    flat = replace(codec, bias=BiasByte(codec.bias.low, 0.0, codec.bias.alpha, codec.bias.beta))
    codes = flat.encode(X)
    np.testing.assert_array_equal(codes[:, :-1], codec.encode(X)[:, :-1])


def test_far_values_do_not_set_the_range_of_a_bias_nibble() -> None:
    values = np.random.default_rng(0).standard_normal(3000)
    cells = np.zeros(3000, np.int64)
    usual = BiasNibble.fit(values, cells, 1, 0.0, 0.0)
    values[7] = 1e6
    far = BiasNibble.fit(values, cells, 1, 0.0, 0.0)
    assert far.step[0] == pytest.approx(usual.step[0], rel=0.05) and far.low[0] == pytest.approx(usual.low[0], rel=0.05)
