"""Codecs, codes, distances and ids are equal bit for bit on every instruction set, whoever fitted the codec."""

import json
import os
import subprocess
import sys
from pathlib import Path

import digests
import numpy as np
import pytest
import zoo

from antisparse import _core
from antisparse._core import project


def answers(folder: Path | None = None, **environment: str) -> dict[str, dict[str, str]]:
    """What `digests.py` prints in a process with this environment."""
    command = [sys.executable, digests.__file__, *([] if folder is None else [str(folder)])]
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def differing(one: dict[str, dict[str, str]], other: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    return [(name, what) for name in one if name != "isa" for what in one[name] if one[name][what] != other[name][what]]


def numpy_features() -> str:
    """What NumPy chooses among at run time, and this machine has."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))


def test_every_instruction_set_fits_encodes_and_finds_the_same_bits() -> None:
    others = [isa for isa in _core.isas() if isa != _core.isa()]
    if not others:
        pytest.skip("the portable instruction set is the only one")
    here = digests.all_digests()
    assert set(here) == {"isa", "solver", *zoo.NAMES}
    for isa in others:
        there = answers(ANTISPARSE_ISA=isa)
        assert there["isa"] == {"name": isa} and set(there) == set(here)
        assert differing(here, there) == []


def test_machines_that_share_a_codec_have_the_same_codes_and_answers(tmp_path: Path) -> None:
    """Another BLAS kernel, another NumPy and another instruction set, as on another CPU, change nothing."""
    for name in zoo.NAMES:
        zoo.codec(name).save(tmp_path / f"{name}.safetensors")
    other = {"ANTISPARSE_ISA": "portable", "OPENBLAS_CORETYPE": "NEHALEM", "NPY_DISABLE_CPU_FEATURES": numpy_features()}
    here, there = digests.all_digests(), answers(tmp_path, **other)
    # The equations of a frame that is not tight are made so by LAPACK, where h = 0.
    assert [which for which in differing(here, there) if not which[1].endswith("h=0.0")] == []


def hard_numbers(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of all sizes: near each other, far apart, whole, subnormal, zero, and the largest."""
    kinds = [
        rng.standard_normal(count),
        np.ldexp(rng.standard_normal(count), rng.integers(-1070, 1020, count)),
        np.ldexp(rng.integers(-8, 8, count).astype(float), rng.integers(-60, 60, count)),
        rng.choice([0.0, -0.0, 5e-324, -2.2e-308, 1.7e308, -1.0, 2.0**-500, 2.0**990, 2.0**-960], count),
    ]
    return np.choose(rng.integers(0, 4, count), kinds)


@pytest.mark.parametrize("seed", range(4))
def test_a_multiply_add_is_rounded_once_on_every_instruction_set(seed: int) -> None:
    """``c + a b``, as the sum of two products, the first of which is exact."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = hard_numbers(rng, 500), hard_numbers(rng, 40)
        c = np.where(rng.random(500) < 0.5, -a * rng.choice(b, 500), hard_numbers(rng, 500))
        c = np.where(np.isfinite(c), c, 1.0)
        c = np.where(rng.random(500) < 0.5, np.nextafter(c, rng.choice([-1e308, 1e308], 500)), c)
    x, m = np.ascontiguousarray(np.stack([c, a], axis=1)), np.stack([np.ones(40), b])
    before, found = _core.isa(), []
    try:
        for isa in _core.isas():
            _core.use_isa(isa)
            found.append(project(x, m, 1))
    finally:
        _core.use_isa(before)
    held = ~np.isnan(found[0])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
        np.testing.assert_array_equal(np.signbit(found[0])[held], np.signbit(other)[held])
    if before != "portable":
        return
    from fractions import Fraction

    for i, j in zip(rng.integers(0, 500, 2000), rng.integers(0, 40, 2000), strict=True):
        if np.isfinite(found[0][i, j]) and found[0][i, j] != 0:
            assert found[0][i, j] == float(Fraction(c[i]) + Fraction(a[i]) * Fraction(b[j]))
