"""The picture of a solution path: the components of x against h."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse.errors import InputTypeError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f5fbf")
_ENVELOPE = "#222222"


@dataclass(frozen=True)
class Vertices:
    """A piecewise linear path of K pieces, given by its K + 1 vertices in the order of decreasing h.

    Piece k lies between the vertices k and k + 1. At each of the vertices 1 to K - 1, the breakpoints, `moved` is the
    component that moves and `moves` says how.
    """

    h: Float64Array  # (K + 1,)
    t: Float64Array  # (K + 1,)
    x: Float64Array  # (K + 1, m)
    signs: npt.NDArray[np.int8]  # (K, m): 1 or -1 where a component is stuck at +t or -t, else 0
    free: npt.NDArray[np.bool_]  # (K, m)
    moved: Sequence[int]  # (K - 1,)
    moves: Sequence[str]  # (K - 1,)


def plot_path(path: Vertices, ax: Any = None) -> "Axes":
    """Draw a path into `ax`, or into a new figure, and return the axes."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.lines import Line2D
    except ImportError:
        raise MissingDependencyError("plot needs matplotlib: pip install 'antisparse[plot]'") from None
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(8, 5), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise InputTypeError(
            f"ax must be matplotlib Axes, not {type(ax).__name__}; leave it out for a new figure, "
            "and save a picture with path.plot().figure.savefig(name)"
        )
    # Components that are ever inside the envelope, each with a colour.
    inside = path.signs == 0
    colours = {int(i): _COLOURS[k % len(_COLOURS)] for k, i in enumerate(np.flatnonzero(inside.any(axis=0)))}
    _draw_envelope(ax, path)
    _draw_components(ax, path, colours)
    _draw_breakpoints(ax, path, colours)
    _draw_labels(ax, path)
    handles = [
        Line2D([], [], color=_ENVELOPE, lw=4, label=r"$\pm\|x\|_\infty$, wider with more components stuck"),
        Line2D([], [], color=_COLOURS[0], lw=1.6, label="a free component"),
        Line2D([], [], color=_COLOURS[0], marker="o", mfc="white", lw=0, label="breakpoint: a component is freed"),
        Line2D([], [], color=_COLOURS[0], marker="o", lw=0, label="breakpoint: a component sticks"),
    ]
    if "parked" in path.moves:
        label = "breakpoint: a component is parked"
        handles.append(Line2D([], [], color=_COLOURS[0], marker="s", mfc="white", ls=":", label=label))
    ax.legend(handles=handles, loc="upper right", frameon=False)
    return ax


def _draw_envelope(ax: "Axes", path: Vertices) -> None:
    """The lines at +t and -t, each wider the more components are stuck at it, and the area between them."""
    h, t, m = path.h, path.t, path.x.shape[1]
    ax.fill_between(h, -t, t, color="#f0f0f0", lw=0, zorder=0)
    ax.vlines(h[1:-1], -t[1:-1], t[1:-1], color="white", lw=np.clip(30 / len(h), 0.4, 1), zorder=1)
    # Above h_1, x = 0: a short stretch of it shows where the path starts.
    ax.plot([1.04 * h[0], h[0]], [0, 0], color=_ENVELOPE, lw=5, solid_capstyle="butt", zorder=2)
    for sign in (1, -1):
        for k, count in enumerate((path.signs == sign).sum(axis=1)):
            style = {"lw": 1 + 4 * count / m, "ls": "-" if count else ":", "solid_capstyle": "round"}
            ax.plot(h[k : k + 2], sign * t[k : k + 2], color=_ENVELOPE, zorder=2, **style)


def _draw_components(ax: "Axes", path: Vertices, colours: dict[int, str]) -> None:
    """Lines of the components that are not stuck; after one sticks, its line goes on along the envelope."""
    width = float(np.clip(40 / max(len(colours), 1), 0.8, 1.6))
    for i, colour in colours.items():
        stuck = path.signs[:, i] != 0
        again = stuck & np.logical_or.accumulate(~stuck)
        parked = ~stuck & ~path.free[:, i]
        for held, line in ((path.free[:, i], "-"), (parked, ":"), (again, "-")):
            for start, end in _runs(held):
                span = slice(start, end + 1)
                ax.plot(path.h[span], path.x[span, i], line, color=colour, lw=width, zorder=3)


def _draw_breakpoints(ax: "Axes", path: Vertices, colours: dict[int, str]) -> None:
    """A marker at each breakpoint, on the component that moves there."""
    size = float(np.clip(600 / max(len(path.moved), 1), 12, 34))
    for kind, marker in {"freed": "o", "stuck": "o", "parked": "s"}.items():
        at = [k for k, move in enumerate(path.moves, 1) if move.startswith(kind)]
        edges = [colours[path.moved[k - 1]] for k in at]
        faces = edges if kind == "stuck" else "white"
        heights = [path.x[k, path.moved[k - 1]] for k in at]
        ax.scatter(path.h[at], heights, s=size, marker=marker, c=faces, edgecolors=edges, linewidths=1.2, zorder=4)


def _draw_labels(ax: "Axes", path: Vertices) -> None:
    """The labels of the axes, and how many components are stuck at the end of the path."""
    ax.set_xlabel(f"h (the path starts at $h_1$ = {path.h[0]:.4g} and runs to the left)")
    ax.set_ylabel("components of x")
    ax.spines[["top", "right"]].set_visible(False)
    if path.t[-1] == 0:
        return
    ax.margins(y=0.1)
    for sign, word in ((1, "+"), (-1, "-")):
        count = int((path.signs[-1] == sign).sum())
        ax.annotate(
            rf"{count} of {path.x.shape[1]} stuck at ${word}\|x\|_\infty$",
            (path.h[-1], sign * path.t[-1]),
            xytext=(8, sign * 6),
            textcoords="offset points",
            va="bottom" if sign > 0 else "top",
        )


def _runs(held: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The stretches of True, each as its first index and the index after its last."""
    edges = np.flatnonzero(np.diff(np.r_[False, held, False]))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
