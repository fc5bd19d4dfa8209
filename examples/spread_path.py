"""The solver at work: the path of one vector as a table and a picture, and a certified batch.

Run by `make demo`; takes the folder to write to as its only argument (default: out).
"""

import sys
import time
from pathlib import Path

import matplotlib
import numpy as np

from antisparse import SpreadPath, certificate, spread, spread_path, tight_frame

matplotlib.use("Agg")
import matplotlib.pyplot as plt

D, M = 16, 48


def table(path: SpreadPath) -> None:
    """Print every breakpoint of the path."""
    print(f"The path of one vector, d = {D}, m = {M} (tight frame): {len(path.breakpoints)} breakpoints\n")
    print(f"{'h / h1':>10} {'||x||_inf':>10} {'stuck':>6}  what happens")
    print(f"{1:10.4f} {0:10.4f} {M:6d}  x = 0; the signs of A'y, the LSH code")
    for point, piece in zip(path.breakpoints, path.pieces[1:], strict=True):
        stuck = np.count_nonzero(piece.signs)
        print(f"{point.h / path.h1:10.4f} {point.t:10.4f} {stuck:6d}  x[{point.index}] {point.move}")
    print(f"{0:10.4f} {path.t:10.4f} {M - D + 1:6d}  A x = y, and no smaller range will do (m - d + 1 stuck)\n")


def picture(path: SpreadPath, file: Path) -> None:
    """Draw x(h), the number of stuck components and the reconstruction error along the path."""
    ends = [path.h1, *(p.h for p in path.breakpoints), 0.0]
    hs = np.unique(np.concatenate([np.linspace(a, b, 8) for a, b in zip(ends[1:], ends[:-1], strict=True)]))
    xs = np.array([path.at(h) for h in hs])
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 7), sharex=True, height_ratios=[3, 1], layout="constrained")
    top.plot(hs / path.h1, xs, lw=0.9)
    t = np.abs(xs).max(1)
    top.plot(hs / path.h1, np.c_[t, -t], "k", lw=2, label=r"$\pm\|x\|_\infty$")
    handles, labels = top.get_legend_handles_labels()
    top.legend(handles[:1], labels[:1], loc="upper right")
    top.set_ylabel("components of $x$")
    top.set_title(f"Spread representation of one vector along its path (d = {D}, m = {M})")
    stuck = (np.abs(xs) >= t[:, None] * (1 - 1e-9)).sum(1)
    bottom.plot(hs[:-1] / path.h1, stuck[:-1], "k", drawstyle="steps-mid")
    bottom.axhline(M - D + 1, color="tab:red", ls="--", label="m - d + 1")
    bottom.set(xlabel="h / h$_1$   (the path runs from right to left)", ylabel="stuck at $\\pm\\|x\\|_\\infty$")
    bottom.legend(loc="lower right")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    print(f"picture: {file}\n")


def batch(n: int = 20_000) -> None:
    """Solve a batch and certify it from the outside."""
    d, m = 48, 128
    A = tight_frame(d, m, seed=0)
    Y = np.random.default_rng(0).standard_normal((n, d))
    print(f"{n} vectors, d = {d}, m = {m}:")
    print(f"{'h / h1':>8} {'dtype':>8} {'vectors/s':>10} {'breakpoints':>12} {'worst certificate':>18}")
    for h in (0.0, 0.1, 0.3):
        for dtype in (np.float64, np.float32):
            start = time.perf_counter()
            result = spread(Y, A, h, dtype=dtype)
            rate = n / (time.perf_counter() - start)
            sample = slice(0, 500 if h == 0 else n)  # at h = 0 the certificate solves a problem of its own
            worst = certificate(A, Y[sample], result.x[sample], result.h[sample]).max()
            print(f"{h:8.1f} {np.dtype(dtype).name:>8} {rate:10.0f} {result.steps.mean():12.1f} {worst:18.1e}")
    print("\nThe certificate is the largest violation of the optimality conditions relative to ||A'y||_1,")
    print("recomputed from x alone in float64.")


def main() -> None:
    """Show all three."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    y = np.random.default_rng(1).standard_normal(D)
    path = spread_path(y, tight_frame(D, M, seed=1))
    table(path)
    picture(path, folder / "spread_path.png")
    batch()


if __name__ == "__main__":
    main()
