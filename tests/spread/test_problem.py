"""`certificate` and `objective`: what they take, and what they say of misuse."""

import copy
import pickle

import numpy as np
import pytest

from antisparse import (
    InputError,
    InputTypeError,
    SpreadResult,
    SpreadSolver,
    block_frame,
    certificate,
    gaussian_frame,
    objective,
    spread,
    spread_path,
    tight_frame,
)

A = tight_frame(12, 30, 2)
Y = np.random.default_rng(3).standard_normal((50, 12))
BOTH = pytest.mark.parametrize("function", [certificate, objective])


@BOTH
@pytest.mark.parametrize("frame", [A, block_frame(12, 30, 5, 0)], ids=["dense", "block"])
@pytest.mark.parametrize(("h", "relative"), [(0.0, True), (0.1, True), (0.7, False), (0.0, False), (2.0, True)])
def test_a_result_alone_says_the_same_as_the_arguments_of_spread_and_x(function, frame, h: float, relative) -> None:
    result = spread(Y, frame, h, relative=relative)
    given = function(result)
    np.testing.assert_allclose(function(Y, frame, h, result.x, relative=relative), given, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(function(Y, frame, result.h, result.x, relative=False), given, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(function(SpreadSolver(frame).spread(Y, h, relative=relative)), given)


@BOTH
def test_the_defaults_are_those_of_spread(function) -> None:
    result = spread(Y, A)
    np.testing.assert_array_equal(function(Y, A, x=result.x), function(result))
    np.testing.assert_array_equal(function(Y, A, 0.0, result.x, relative=True), function(result))


def test_the_certificate_of_a_result_judges_x() -> None:
    for h in (0.0, 0.1):
        result = spread(Y, A, h)
        assert certificate(result).max() < 1e-12
        result.x[7] *= 1.01
        assert (certificate(result) > 1e-6).nonzero()[0].tolist() == [7]
    single = spread(Y, A, 0.1, dtype=np.float32)
    assert 1e-9 < certificate(single).max() < 1e-4


def test_the_objective_is_equation_3() -> None:
    result = spread(Y, A, 0.3)
    x, h = result.x, 0.3 * np.abs(Y @ A).sum(1)
    expected = 0.5 * ((x @ A.T - Y) ** 2).sum(1) + h * np.abs(x).max(1)
    np.testing.assert_allclose(objective(result), expected, rtol=1e-13)


@BOTH
def test_every_vector_may_have_its_own_h(function) -> None:
    h = np.linspace(0.05, 0.9, len(Y))
    x = np.concatenate([spread(y[None], A, a).x for y, a in zip(Y, h, strict=True)])
    apart = [function(y[None], A, a, b[None])[0] for y, a, b in zip(Y, h, x, strict=True)]
    np.testing.assert_allclose(function(Y, A, h, x), apart, rtol=1e-12, atol=1e-14)


def test_relative_h_of_any_norm() -> None:
    frame = gaussian_frame(12, 30, 0)
    for power in (-900, 900):
        assert certificate(spread(np.ldexp(Y, power), frame, 0.2)).max() < 1e-12
        x = np.ldexp(spread(Y, frame, 0.2).x, power)
        assert certificate(np.ldexp(Y, power), frame, 0.2, x).max() < 1e-12
    assert not certificate(Y, frame, 1e308, np.zeros((50, 30))).any()
    assert not certificate(np.ldexp(Y, -900), frame, 1e300, np.zeros((50, 30)), relative=False).any()


def test_a_result_refers_to_what_was_given() -> None:
    result = spread(Y, A, 0.1)
    assert result.Y is Y
    np.testing.assert_array_equal(result.A, A)
    assert isinstance(result.A, np.ndarray) and not result.A.flags.writeable
    frame = block_frame(12, 30, 5, 0)
    assert spread(Y, frame).A is frame
    solver = SpreadSolver(A)
    assert solver.spread(Y[:2]).A is solver.spread(Y[2:]).A
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(certificate(other), certificate(result))


@BOTH
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((spread(Y, A), A), InputTypeError, r"A is given beside a SpreadResult.* pass the result alone"),
        ((spread(Y, A), None, 0.0), InputTypeError, "h is given beside a SpreadResult"),
        ((spread(Y, A), None, None, Y), InputTypeError, "x is given beside a SpreadResult"),
        ((Y,), InputTypeError, r"A is missing; pass what spread returned, or \w+\(Y, A, h, x\)"),
        ((spread_path(Y[0], A),), InputTypeError, "A is missing; pass what spread returned"),
        ((Y, A), InputTypeError, "x is missing"),
        ((Y, A, 0.1), InputTypeError, "x is missing"),
        ((Y, A, 0.1, spread(Y, A, 0.1)), InputTypeError, "x is a SpreadResult; pass its attribute x"),
        ((A, Y, 0.1, Y @ A), InputError, r"Y has shape \(12, 30\) and A \(50, 12\): they seem to be swapped"),
        ((A, Y, Y @ A, 0.1), InputError, r"the order is \w+\(Y, A, h, x\), as for spread"),
        ((Y[:, :5], A, 0.1, Y @ A), InputError, "Y has 5 columns but the frame has 12 rows"),
        ((Y, A, 0.1, Y), InputError, r"x has shape \(50, 12\); Y and A ask for \(50, 30\)"),
        ((Y, A, Y @ A, 0.1), InputError, r"x has shape \(\)"),
        ((Y, A, Y @ A, Y @ A), InputError, r"h has shape \(50, 30\); pass a number, or one for each of the 50 rows"),
        ((Y, A, -0.1, Y @ A), InputError, "h must be finite and at least 0"),
        ((Y, A, "auto", Y @ A), InputTypeError, "h has dtype"),
    ],
)
def test_misuse_is_named(function, arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(*arguments)


@BOTH
def test_relative_is_true_or_false(function) -> None:
    with pytest.raises(InputTypeError, match=r"relative must be True or False, not 0\.1"):
        function(Y, A, 0.1, Y @ A, relative=0.1)
    with pytest.raises(InputTypeError, match="relative is given beside a SpreadResult"):
        function(spread(Y, A), relative=False)
    with pytest.raises(InputTypeError, match=r"relative must be True or False, not 0\.1"):
        spread(Y, A, relative=0.1)


def test_a_result_in_one_line() -> None:
    text = repr(spread(Y, A, 0.1))
    assert text.startswith("SpreadResult(x: 50 x 30 float64, t: 0.") and "\n" not in text and len(text) < 160
    assert repr(spread(Y[:0], A, dtype=np.float32)) == "SpreadResult(x: 0 x 30 float32)"
    one = SpreadResult(*(np.ones(s) for s in ((1, 2), 1, 1, 1, 1)), np.ones((1, 2)), np.eye(2))
    assert repr(one) == "SpreadResult(x: 1 x 2 float64, t: 1, h: 1, steps: 1, certificate: at most 1.0e+00)"
