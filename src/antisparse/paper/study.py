"""What an experiment hands over: numbers, a picture, and words for both; and the look all pictures share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antisparse.errors import MissingDependencyError
from antisparse.paper.methods import METHODS, SEARCHES, Curve
from antisparse.paper.sample import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Track = Callable[[Iterable[Any], str], Iterable[Any]]  # shows progress over something, under a name


@dataclass(frozen=True)
class Study:
    """One experiment's outcome."""

    name: str  # of its files
    title: str
    caption: str  # what to see
    alt: str  # the picture in words, with its main figures
    numbers: dict[str, Any]
    figure: "Figure"


def new_figure(panels: int = 1, height: float = 4.0) -> tuple["Figure", list["Axes"]]:
    """A figure of panels below each other, narrow enough to be read on a phone."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'antisparse[plot]'") from None
    figure = Figure(figsize=(6.2, height * panels), layout="constrained")
    axes = figure.subplots(panels, 1, squeeze=False)[:, 0].tolist()
    for ax in axes:
        ax.grid(True, color="#dddddd", lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=11)
    return figure, axes


def plot_recall(ax: "Axes", x: Iterable[float], curve: Curve, mean: list[float], spread: list[float]) -> None:
    """One curve of recall with a band of one standard deviation over seeds."""
    method, search = curve
    colour = METHODS[method].colour
    x = list(x)
    ax.plot(x, mean, SEARCHES[search].line, color=colour, lw=2)
    low, high = ([a + sign * b for a, b in zip(mean, spread, strict=True)] for sign in (-1, 1))
    ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)


def log_axis(ax: "Axes") -> None:
    """A logarithmic axis below, with plain numbers."""
    from matplotlib.ticker import FuncFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}" if x < 1 else f"{x:,.0f}"))


def legend(figure: "Figure", curves: list[Curve]) -> None:
    """Colours for methods and line styles for searches, below the axes."""
    from matplotlib.lines import Line2D

    methods = [name for name in METHODS if any(name == curve[0] for curve in curves)]
    searches = [name for name in SEARCHES if any(name == curve[1] for curve in curves)]
    handles = [Line2D([], [], color=METHODS[name].colour, lw=4, label=METHODS[name].label) for name in methods]
    handles += [
        Line2D([], [], color="black", lw=2, ls=SEARCHES[name].line, label=SEARCHES[name].label) for name in searches
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=11)


def recall_table(sample: Sample, R: Iterable[int]) -> dict[str, Any]:
    """recall@R of every curve: mean, standard error, and every seed's."""
    R = list(R)
    table = {}
    for curve in sample.ranks:
        estimates = [sample.recall(curve, r) for r in R]
        table[" ".join(curve)] = {
            "mean": [e.mean for e in estimates],
            "standard error": [e.error for e in estimates],
            "by seed": [sample.by_seed(curve, r) for r in R],
        }
    return {"R": R, "recall@R": table}
