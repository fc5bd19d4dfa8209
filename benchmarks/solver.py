"""Speed of the spread solver, as ratios to its peers in the same run.

    python benchmarks/solver.py [--smoke] [--json FILE]

One thread unless said (`make bench` pins the BLAS to one too), best of several repeats. HiGHS runs through
scipy.optimize.linprog in several formulations of the same linear programme; the fastest is the peer.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog
from timing import best, options, write_json

from antisparse import SpreadSolver, _core, block_frame, certificate, spread, spread_path, tight_frame
from antisparse._arrays import Float64Array


def highs_formulations(A: Float64Array) -> dict[str, Callable[[Float64Array], float]]:
    """Ways to ask HiGHS for min ||x||_inf subject to A x = y; each returns the least range t."""
    d, m = A.shape
    eye, ones = np.eye(m), np.ones((m, 1))
    box: Any = [(-1.0, 1.0)] * m + [(0.0, None)]

    def scaled(y: Float64Array, presolve: bool) -> float:  # x = t u: maximise 1 / t over |u| <= 1
        cost = np.r_[np.zeros(m), -1.0]
        options: Any = {"presolve": presolve}
        found: Any = linprog(cost, A_eq=np.c_[A, -y], b_eq=np.zeros(d), bounds=box, method="highs-ds", options=options)
        return float(1 / found.x[-1])

    def two_sided(y: Float64Array) -> float:  # -t <= x <= t as 2 m rows
        cost = np.r_[np.zeros(m), 1.0]
        rows = np.r_[np.c_[eye, -ones], np.c_[-eye, -ones]]
        bounds = [(None, None)] * m + [(0.0, None)]
        found: Any = linprog(
            cost, A_eq=np.c_[A, np.zeros(d)], b_eq=y, A_ub=rows, b_ub=np.zeros(2 * m), bounds=bounds, method="highs-ds"
        )
        return float(found.fun)

    def shifted(y: Float64Array) -> float:  # x = p - t with 0 <= p <= 2 t
        cost = np.r_[np.zeros(m), 1.0]
        found: Any = linprog(
            cost, A_eq=np.c_[A, -A.sum(1)], b_eq=y, A_ub=np.c_[eye, -2 * ones], b_ub=np.zeros(m), method="highs-ds"
        )
        return float(found.fun)

    return {
        "x = t u, |u| <= 1": lambda y: scaled(y, True),
        "x = t u, no presolve": lambda y: scaled(y, False),
        "0 <= p <= 2 t": shifted,
        "-t <= x <= t": two_sided,
    }


def each(function: Callable[[Float64Array], Any], vectors: Float64Array) -> None:
    """Call the function on every vector."""
    for y in vectors:
        function(y)


def against_peers(smoke: bool) -> dict[str, Any]:
    """D = 48, m = 128: HiGHS, the NumPy reference, one and two threads, several h."""
    d, m, repeats = 48, 128, 2 if smoke else 7
    A = tight_frame(d, m, seed=0)
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((400 if smoke else 4000, d))
    few = Y[: 5 if smoke else 40]
    print(f"d = {d}, m = {m}, tight frame, instruction set {_core.isa()}, best of {repeats}\n")

    highs = {}
    for name, solve in highs_formulations(A).items():
        highs[name] = best(min(repeats, 4), each, solve, few) / len(few)
        print(f"  HiGHS, {name:22s} {highs[name] * 1e3:8.2f} ms a vector")
    peer = min(highs.values())
    reference = best(2, each, lambda y: spread_path(y, A), few) / len(few)
    print(f"  spread_path (NumPy){'':13s} {reference * 1e3:8.2f} ms a vector\n")

    print(f"{'h / h1':>8} {'dtype':>8} {'us/vector':>10} {'vectors/s':>10} {'steps':>6} {'x HiGHS':>8} {'x NumPy':>8}")
    rows = []
    for h in (0.0, 0.1, 0.3):
        for dtype in ("float64", "float32"):
            seconds = best(repeats, spread, Y, A, h, dtype=dtype, n_threads=1) / len(Y)
            row: dict[str, Any] = {"h": h, "dtype": dtype, "us": seconds * 1e6, "vectors_per_s": 1 / seconds}
            row["steps"] = float(spread(Y[:400], A, h).steps.mean())
            if h == 0:
                row |= {"times_highs": peer / seconds, "times_reference": reference / seconds}
            ratios = [f"{row[k]:8.0f}" if k in row else " " * 8 for k in ("times_highs", "times_reference")]
            print(f"{h:8.1f} {dtype:>8} {row['us']:10.1f} {1 / seconds:10.0f} {row['steps']:6.1f} {' '.join(ratios)}")
            rows.append(row)

    one = best(repeats, spread, Y, A, n_threads=1)
    two = best(repeats, spread, Y, A, n_threads=2)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"\n  two threads: {one / two:.2f} times one (float64, h = 0, {cpus} CPUs)\n")
    return {
        "highs_ms": {k: v * 1e3 for k, v in highs.items()},
        "reference_ms": reference * 1e3,
        "solver": rows,
        "two_threads": one / two,
    }


def high_dimension(smoke: bool) -> dict[str, Any]:
    """Blocks of 48: against the dense path at d = 768, and the cost as d grows."""
    d = 192 if smoke else 768
    rng = np.random.default_rng(0)
    frame = block_frame(d, 2 * d, 48, seed=0)
    Y = rng.standard_normal((32, d))
    result: dict[str, Any] = {"dense": [], "by_dimension": []}
    print(f"d = {d}, m = {2 * d}: blocks of 48 against a dense tight frame, one thread")
    print(f"{'h / h1':>8} {'dtype':>8} {'dense ms':>9} {'blocks ms':>10} {'ratio':>7} {'certificate':>12}")
    block_solver, dense_solver = SpreadSolver(frame), SpreadSolver(tight_frame(d, 2 * d, seed=0))
    for h in (0.0, 0.1):
        for dtype in ("float64", "float32"):
            blocks = best(3, block_solver.spread, Y, h, dtype=dtype, n_threads=1) / len(Y)
            dense = best(3, dense_solver.spread, Y[:2], h, dtype=dtype, n_threads=1) / 2
            solved = spread(Y, frame, h)
            worst = float(certificate(Y[:4], frame, h, solved.x[:4]).max())
            print(f"{h:8.1f} {dtype:>8} {dense * 1e3:9.2f} {blocks * 1e3:10.3f} {dense / blocks:7.0f} {worst:12.1e}")
            result["dense"].append(
                {"h": h, "dtype": dtype, "dense_ms": dense * 1e3, "blocks_ms": blocks * 1e3, "certificate": worst}
            )

    print("\nblocks of 48, m = 2 d, float32, h / h1 = 0.1, one thread")
    print(f"{'d':>6} {'steps':>7} {'us/vector':>10} {'us/vector/d':>12}")
    for d in (96, 192) if smoke else (96, 192, 384, 768, 1536):
        frame = block_frame(d, 2 * d, 48, seed=0)
        Y = rng.standard_normal((64 if smoke else 512, d))
        solver = SpreadSolver(frame)
        seconds = best(4, solver.spread, Y, 0.1, dtype=np.float32, n_threads=1) / len(Y)
        steps = float(solver.spread(Y, 0.1, dtype=np.float32).steps.mean())
        print(f"{d:6d} {steps:7.1f} {seconds * 1e6:10.1f} {seconds * 1e6 / d:12.3f}")
        result["by_dimension"].append({"d": d, "steps": steps, "us": seconds * 1e6})
    return result


def main() -> None:
    """Run everything and write the numbers."""
    arguments = options(__doc__).parse_args()
    write_json(
        arguments.json,
        {"against_peers": against_peers(arguments.smoke), "high_dimension": high_dimension(arguments.smoke)},
    )


if __name__ == "__main__":
    main()
