"""The path itself: x(h) of one vector, and how many of its components are stuck."""

import numpy as np

from antisparse import spread_path, tight_frame
from antisparse.datasets import synthetic
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study, new_figure


def study(settings: Settings) -> Study:
    """The picture and the numbers."""
    d, m = settings.d, settings.m
    y = synthetic(1, d, queries=1, random_state=0).query[0]
    path = spread_path(y, tight_frame(d, m, 0))
    ends = [path.h1, *(point.h for point in path.breakpoints), 0.0]
    hs = np.unique(np.concatenate([np.linspace(a, b, 8) for a, b in zip(ends[1:], ends[:-1], strict=True)]))
    xs = np.array([path.at(h) for h in hs])
    t = np.abs(xs).max(axis=1)
    stuck = (np.abs(xs) >= t[:, None] * (1 - 1e-9)).sum(axis=1)
    figure, (upper, lower) = new_figure(2)
    upper.plot(hs / path.h1, xs, lw=0.9)
    upper.plot(hs / path.h1, np.c_[t, -t], color="black", lw=2)
    upper.annotate(
        r"$+\|x\|_\infty$", (0.3, t[np.searchsorted(hs, 0.3 * path.h1)]), xytext=(4, 6), textcoords="offset points"
    )
    upper.set_ylabel("components of x", fontsize=12)
    lower.plot(hs[:-1] / path.h1, stuck[:-1], color="black", drawstyle="steps-mid", lw=1.5)
    lower.axhline(m - d + 1, color="#d55e00", ls="--", lw=1.5)
    lower.annotate(f"m - d + 1 = {m - d + 1}", (1, m - d + 1), xytext=(0, 5), textcoords="offset points", ha="right")
    lower.set_ylabel("components at ±||x||$_\\infty$", fontsize=12)
    for ax in (upper, lower):
        ax.set_xlabel("h / h$_1$ (the path runs from right to left)", fontsize=12)
    return Study(
        name="path",
        title=f"The path of one vector, d = {d}, m = {m}",
        caption=(
            "From x = 0 at h = h₁ all components leave together, with the signs of A'y: the LSH code. As h falls, some "
            "come free of the bound and some return to it, one at a time; at h = 0, where A x = y, m - d + 1 are at "
            "the bound."
        ),
        alt=(
            f"Above: the {m} components of x against h, most of them on the two black lines at plus and minus the "
            f"largest magnitude. Below: the number of components on those lines, which falls from {m} to {m - d + 1}."
        ),
        numbers={
            "h": [point.h for point in path.breakpoints],
            "t": [point.t for point in path.breakpoints],
            "component": [int(point.index) for point in path.breakpoints],
            "move": [str(point.move) for point in path.breakpoints],
            "h1": path.h1,
            "stuck at h = 0": int(stuck[0]),
        },
        figure=figure,
    )
