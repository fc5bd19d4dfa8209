"""The picture of a tuning: recall against bytes, a panel a measure."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from antisparse._arrays import path_of
from antisparse._files import replacing
from antisparse.errors import InputError, MissingDependencyError, StorageError

if TYPE_CHECKING:
    from antisparse.tuning.result import Tuning
    from antisparse.tuning.setting import Setting

_LOOKS = {
    "default": ("#d55e00", "o"),
    "codebooks, otherwise split": ("#009e73", "D"),
    "signs": ("#0072b2", "s"),
    "more effort": ("#cc79a7", "v"),
    "Hamming distance, drawn frame": ("#7f7f7f", "^"),
}


def picture_path(path: str | Path) -> Path:
    """`path`, once it is sure that a picture can be drawn of that name."""
    place = path_of(path)
    if place.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"picture {str(path)!r}: its name must end in .png, .svg or .pdf")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'antisparse[plot]'") from None
    return place


def draw(tuning: "Tuning", path: str | Path) -> None:
    """Draw a tuning into a file."""
    place = picture_path(path)
    from matplotlib.figure import Figure

    measures = tuning.measures
    figure = Figure(figsize=(1 + 5 * len(measures), 5.8), layout="constrained")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for measure, ax in zip(measures, panels, strict=True):
        decides = measure.name == tuning.measure
        meaning = fill(measure.meaning, 56)
        ax.set_title(f"{measure.name}{', which decides' if decides else ''}:\n{meaning}", fontsize=11)
        ax.set_ylabel(f"{measure.name}, with 95 % intervals", fontsize=12)
        ax.tick_params(labelleft=True)
        _points(tuning, measure.name, ax)
        if decides and tuning.wanted is not None:
            ax.axhline(tuning.wanted, color="black", lw=1, ls=":")
            ax.annotate(
                f"wanted: {tuning.wanted:g}", (0.01, tuning.wanted), xycoords=("axes fraction", "data"), va="bottom"
            )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    searched = f"{tuning.n_base:,} vectors searched, {tuning.n_queries:,} queries"
    figure.suptitle(f"Recall against bytes: {searched}, {tuning.dimension} dimensions", fontsize=14)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"picture {str(place)!r}: its folder cannot be made: {error}") from error
    with replacing(place) as temporary:
        figure.savefig(temporary, dpi=130, format=place.suffix[1:].lower())


def _points(tuning: "Tuning", measure: str, ax: Any) -> None:
    ax.grid(True, color="#dddddd", lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=11)
    sizes = sorted({row.n_bytes for row in tuning.rows})
    places = {n_bytes: place for place, n_bytes in enumerate(sizes)}
    for look, (colour, mark) in _LOOKS.items():
        rows = [row for row in tuning.rows if _look(row) == look]
        if not rows:
            continue
        # Settings of as many bytes stand side by side.
        same = {id(row): [other for other in tuning.rows if other.n_bytes == row.n_bytes] for row in rows}
        step = 0.6 / max(len(others) for others in same.values())
        x = [places[r.n_bytes] + step * (same[id(r)].index(r) - (len(same[id(r)]) - 1) / 2) for r in rows]
        recalls = [row.recalls[measure] for row in rows]
        y = [recall.value for recall in recalls]
        errors = [[r.value - r.low for r in recalls], [r.high - r.value for r in recalls]]
        ax.errorbar(x, y, errors, fmt=mark, color=colour, ms=7, lw=1.2, capsize=3, label=look)
        for row, at, value in zip(rows, x, y, strict=True):
            if row is tuning.chosen:
                ax.plot([at], [value], "o", ms=17, mfc="none", mec="black", mew=1.5, ls="none", label="chosen")
    ax.set_xticks(range(len(sizes)), [str(n_bytes) for n_bytes in sizes])
    ax.set_xlim(-0.6, len(sizes) - 0.4)
    ax.set_xlabel("bytes a vector (settings of equal bytes side by side)", fontsize=11)


def _look(row: "Setting") -> str:
    if row.method == "hamming":
        return "Hamming distance, drawn frame"
    if row.way == "default":
        return "default"
    if "effort" in row.way:
        return "more effort"
    return "signs" if row.parameters["split"].symbols == "signs" else "codebooks, otherwise split"
