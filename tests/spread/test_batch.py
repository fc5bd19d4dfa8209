"""The native batch: input it takes, invariances, errors, degenerate cases."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import (
    AccuracyError,
    InputError,
    InputTypeError,
    RankError,
    SpreadSolver,
    StepLimitError,
    block_frame,
    certificate,
    gaussian_frame,
    objective,
    spread,
    spread_bits,
    tight_frame,
)

A = tight_frame(12, 30, 2)
Y = np.random.default_rng(3).standard_normal((50, 12))


def same(a, b) -> None:
    for name in ("x", "t", "h", "steps", "certificate"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("frame", [A, block_frame(12, 30, 5, 0)], ids=["dense", "block"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_do_not_depend_on_batch_threads_or_order(isa: str, frame, dtype) -> None:
    whole = spread(Y, frame, 0.1, dtype=dtype, n_threads=1)
    same(whole, spread(Y, frame, 0.1, dtype=dtype, n_threads=3))
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = spread(Y[order], frame, 0.1, dtype=dtype)
    np.testing.assert_array_equal(shuffled.x, whole.x[order])
    for n in (1, 2, 3, 5):
        np.testing.assert_array_equal(spread(Y[:n], frame, 0.1, dtype=dtype).x, whole.x[:n])


def test_chunks_of_input_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    from antisparse.spread import batch

    many = np.random.default_rng(0).standard_normal((3000, 12))
    whole = spread(many, A, 0.3)
    monkeypatch.setattr(batch, "_CHUNK_BYTES", 1)
    same(whole, spread(many, A, 0.3))
    many[2500, 3] = np.nan
    with pytest.raises(InputError, match="Y row 2500, column 3 is nan"):
        spread(many, A, 0.3)


@pytest.mark.parametrize("h", [0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("m", [1, 7, 8, 9, 30])
def test_bits_are_the_signs(isa: str, h: float, m: int) -> None:
    frame = gaussian_frame(12, m, 0)
    result = spread(Y, frame, h)
    x = result.x if h < 1 else Y @ frame
    np.testing.assert_array_equal(spread_bits(Y, frame, h), np.packbits(x >= 0, axis=1))
    assert h < 1 or not result.x.any()


def test_zero_vectors_and_zero_columns_have_fixed_bits() -> None:
    assert spread_bits(np.zeros((1, 12)), A).tolist() == [[255, 255, 255, 252]]
    padded = np.c_[A, np.zeros((12, 2))]
    assert np.unpackbits(spread_bits(Y, padded), axis=1)[:, 30:32].all()


def test_any_real_input_is_taken(tmp_path) -> None:
    whole = np.round(Y * 20).astype(np.int16)
    expected = spread(whole.astype(np.float64), A, 0.1)
    for variant in (
        whole.astype(np.float16),
        whole.astype(np.float32),
        whole.astype(np.int64),
        whole.astype(">f8"),
        np.asfortranarray(whole),
        np.repeat(np.repeat(whole, 2, axis=0), 3, axis=1)[::2, ::3],
        whole[::-1][::-1],
        whole.tolist(),
    ):
        same(spread(variant, A, 0.1), expected)
    np.save(tmp_path / "y.npy", whole)
    same(spread(np.load(tmp_path / "y.npy", mmap_mode="r"), A, 0.1), expected)
    same(spread(whole, np.asfortranarray(A), 0.1), expected)
    bits = Y > 0
    same(spread(bits, A, 0.1), spread(bits.astype(float), A, 0.1))


def test_no_vectors_is_no_error() -> None:
    result = spread(np.empty((0, 12)), A)
    assert result.x.shape == (0, 30) and result.t.shape == (0,)
    assert spread_bits(np.empty((0, 12)), A).shape == (0, 4)
    assert certificate(result).shape == certificate(np.empty((0, 12)), A, 0.1, result.x).shape == (0,)


def test_relative_h_is_a_fraction_of_h1_and_scales_with_y() -> None:
    result = spread(Y, A, 0.25)
    np.testing.assert_allclose(result.h, 0.25 * np.abs(Y @ A).sum(1))
    np.testing.assert_allclose(result.x[0], spread(Y[:1], A, result.h[0], relative=False).x[0], atol=1e-14)
    for power in (-90, -3, 90):
        scaled = spread(np.ldexp(Y, power), A, 0.25)
        np.testing.assert_array_equal(scaled.x, np.ldexp(result.x, power))
        np.testing.assert_array_equal(scaled.h, np.ldexp(result.h, power))
    for power in (-300, 5, 300):
        scaled = spread(Y, np.ldexp(A, power), 0.25)
        np.testing.assert_array_equal(scaled.x, np.ldexp(result.x, -power))


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), h=st.floats(0, 0.99), d=st.integers(1, 10), more=st.integers(0, 10))
def test_symmetries(seed: int, h: float, d: int, more: int) -> None:
    """-y gives -x; permuting or negating columns does the same to x; rotating A and y changes nothing."""
    rng = np.random.default_rng(seed)
    frame, y = gaussian_frame(d, d + more, rng), rng.standard_normal((1, d))
    x = spread(y, frame, h).x[0]
    t = np.abs(x).max()
    np.testing.assert_allclose(spread(-y, frame, h).x[0], -x, atol=1e-8 * t)
    order, signs = rng.permutation(d + more), rng.choice([-1.0, 1.0], d + more)
    np.testing.assert_allclose(spread(y, frame[:, order] * signs, h).x[0], x[order] * signs, atol=1e-8 * t)
    rotation = tight_frame(d, d, rng)
    np.testing.assert_allclose(spread(y @ rotation.T, rotation @ frame, h).x[0], x, atol=1e-8 * t)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), h=st.floats(0.001, 0.99))
def test_no_other_point_does_better(seed: int, h: float) -> None:
    rng = np.random.default_rng(seed)
    result = spread(Y[:1], A, h)
    others = result.x + rng.standard_normal((20, 30)) * 10.0 ** rng.uniform(-8, 0, (20, 1))
    best = objective(result)[0]
    assert objective(np.repeat(Y[:1], 20, 0), A, h, others).min() >= best * (1 - 1e-14)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-30, 1e30, 1e300])
def test_any_norm(scale: float) -> None:
    vectors = np.sign(Y) * scale if scale < 1e-310 else Y * scale
    for h in (0.0, 0.1):
        result = spread(vectors, A, h)
        assert certificate(result).max() < (1e-2 if scale < 1e-310 else 1e-12)
    if 1e-31 < scale < 1e31:
        single = spread(vectors, A, 0.1, dtype=np.float32)
        np.testing.assert_allclose(single.x, result.x, rtol=0, atol=1e-3 * result.t.max())


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(InputError, match="Y row 1 does not fit float32"):
        spread(np.array([[1.0], [1e300]]), np.ones((1, 2)), dtype=np.float32)
    with pytest.raises(InputError, match="Y row 0: its representation does not fit float64"):
        spread(np.array([[1e300]]), np.array([[1e-300]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_inf_are_named(bad: float, dtype) -> None:
    vectors = Y.astype(dtype)
    vectors[7, 4] = bad
    for call in (spread, spread_bits):
        with pytest.raises(InputError, match=f"Y row 7, column 4 is {bad}"):
            call(vectors, A)
    frame = A.copy()
    frame[1, 2] = bad
    with pytest.raises(InputError, match=f"A row 1, column 2 is {bad}"):
        spread(Y, frame)


def test_large_finite_values_whose_sum_overflows_are_taken() -> None:
    spread(np.full((4, 1), 1.7e308), np.ones((1, 2)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"Y": Y[0]}, InputError, r"Y has shape \(12,\)"),
        ({"Y": Y[None]}, InputError, r"Y has shape \(1, 50, 12\)"),
        ({"Y": Y[:, :5]}, InputError, "Y has 5 columns but the frame has 12 rows"),
        ({"Y": Y + 1j}, InputError, "Complex data not supported"),
        ({"Y": Y.astype(str)}, InputTypeError, "Y has dtype"),
        ({"Y": Y.astype(object)}, InputTypeError, "Y has dtype object"),
        ({"Y": [[1, 2], [3]]}, InputError, "Y is not a rectangular array"),
        ({"Y": None}, InputTypeError, "Y has dtype object"),
        ({"Y": np.ma.masked_less(Y, 0)}, InputError, "Y has masked entries"),
        ({"A": A[0]}, InputError, r"A has shape \(30,\)"),
        ({"A": np.ones((12, 0))}, InputError, r"A has shape \(12, 0\)"),
        ({"h": -0.1}, InputError, "h = -0.1"),
        ({"h": np.nan}, InputError, "h = nan"),
        ({"h": "auto"}, InputTypeError, "h must be a number"),
        ({"dtype": np.float16}, InputError, "dtype = float16"),
        ({"dtype": "nonsense"}, InputTypeError, "dtype = 'nonsense'"),
        ({"n_threads": 0}, InputError, "n_threads = 0"),
        ({"n_threads": 1.5}, InputTypeError, "n_threads must be an integer"),
        ({"max_steps": -1}, InputError, "max_steps = -1"),
    ],
)
def test_bad_arguments_are_named(change: dict, error: type[Exception], message: str) -> None:
    arguments = {"Y": Y, "A": A, **change}
    with pytest.raises(error, match=message):
        spread(**arguments)
    with pytest.raises(error, match=message):
        spread_bits(**arguments)


def test_sparse_input_is_told_how() -> None:
    import scipy.sparse

    with pytest.raises(InputTypeError, match=r"pass Y\.toarray\(\)"):
        spread(scipy.sparse.csr_array(Y), A)


def test_rank_deficient_frames_are_refused_at_once() -> None:
    deficient = A.copy()
    deficient[3] = deficient[:3].sum(0)
    with pytest.raises(RankError, match="A is 12 x 30 but has rank 11") as caught:
        spread(Y, deficient)
    assert caught.value.rank == 11
    with pytest.raises(RankError, match="rank 0"):
        spread(np.ones((1, 2)), np.zeros((2, 3)))
    with pytest.raises(RankError, match="rank 1"):
        spread(np.ones((1, 3)), np.ones((3, 2)))  # m < d: columns must be independent
    # Badly scaled is not deficient.
    spread(Y, A * np.logspace(-8, 8, 12)[:, None], 0.5)


def test_the_step_limit_says_which_vector(isa: str) -> None:
    mixed = np.zeros((40, 12))
    mixed[33] = Y[0]
    for threads in (1, 2, 4):
        with pytest.raises(StepLimitError, match=r"Y row 33: .* max_steps = 2") as caught:
            spread(mixed, A, max_steps=2, n_threads=threads)
        assert caught.value.row == 33
    assert spread(mixed, A, 0.99, max_steps=30).steps[33] <= 30


def test_a_frame_beyond_float64_is_an_error_not_a_wrong_answer() -> None:
    frame = gaussian_frame(30, 60, 0) * np.logspace(-9, 9, 30)[:, None]
    vectors = np.random.default_rng(0).standard_normal((20, 30))
    with pytest.raises(AccuracyError, match=r"Y row \d+: .* rescale its rows or raise h") as caught:
        spread(vectors, frame, 1e-16)
    assert caught.value.certificate > 1e-9


def test_float32_falls_back_where_it_must(isa: str) -> None:
    frame = gaussian_frame(30, 60, 0) * np.logspace(-3, 3, 30)[:, None]
    vectors = np.random.default_rng(0).standard_normal((20, 30))
    single, double = spread(vectors, frame, 1e-3, dtype=np.float32), spread(vectors, frame, 1e-3)
    np.testing.assert_allclose(single.t, double.t, rtol=1e-3)
    assert single.certificate.max() <= 1e-4


def test_the_result_owns_its_memory() -> None:
    result = spread(Y, A)
    before = result.x.copy()
    del_me = spread(-Y, A)
    del del_me
    gc.collect()
    np.testing.assert_array_equal(result.x, before)
    result.x[0] = 0  # writable


def test_the_gil_is_released_and_calls_run_side_by_side() -> None:
    expected = spread(Y, A).x
    found: list[bool] = []

    def work() -> None:
        for _ in range(20):
            found.append(np.array_equal(spread(Y, A, n_threads=2).x, expected))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160 and all(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_works_after_fork() -> None:
    code = (
        "import os, numpy as np, antisparse as a\n"
        "A = a.tight_frame(12, 30, 2); Y = np.ones((100, 12)); x = a.spread(Y, A, n_threads=2).x\n"
        "pid = os.fork()\n"
        "ok = np.array_equal(a.spread(Y, A, n_threads=2).x, x)\n"
        "if pid == 0: os._exit(0 if ok else 1)\n"
        "assert ok and os.waitpid(pid, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("value", "expected"), [("portable", "portable"), (None, None), ("nonsense", None)])
def test_the_environment_chooses_the_instruction_set(value: str | None, expected: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ANTISPARSE_ISA"}
    if value is not None:
        environment["ANTISPARSE_ISA"] = value
    code = "from antisparse import _core; print(_core.isa())"
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    if value == "nonsense":
        assert run.returncode != 0 and "ANTISPARSE_ISA" in run.stderr and "portable" in run.stderr
    else:
        assert run.stdout.strip() == (expected or run.stdout.strip())


def test_a_solver_in_one_line() -> None:
    assert repr(SpreadSolver(A)) == "SpreadSolver(A: 12 x 30)"
    assert repr(SpreadSolver(block_frame(12, 30, 5, 0))) == "SpreadSolver(A: 12 x 30 in 3 blocks)"
