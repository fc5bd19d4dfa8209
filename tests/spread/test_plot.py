"""The picture of a path: what is drawn is the path."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="wheels are tested without it")
import matplotlib.figure
from matplotlib import pyplot

from antisparse import InputTypeError, MissingDependencyError, gaussian_frame, spread_path, tight_frame
from antisparse.spread.plot import Vertices, plot_path

Y = np.random.default_rng(3).standard_normal((4, 12))
A = tight_frame(12, 30, 2)


@pytest.fixture(autouse=True)
def _no_window_and_no_figure_left() -> Iterator[None]:
    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def new_axes():
    return matplotlib.figure.Figure().add_subplot()


def markers(ax) -> list:
    """One collection of markers a kind of breakpoint."""
    return [c for c in ax.collections if c.get_zorder() == 4 and len(c.get_offsets())]


def points(ax) -> np.ndarray:
    """Where the markers are, from the largest h down."""
    found = np.concatenate([np.asarray(c.get_offsets()) for c in markers(ax)])
    return found[np.argsort(-found[:, 0], kind="stable")]


@pytest.mark.parametrize("frame", [A, np.repeat(gaussian_frame(12, 16, 1), 2, axis=1)], ids=["tight", "duplicates"])
@pytest.mark.parametrize("h", [0.0, 0.7])
def test_every_line_is_on_the_path(frame, h: float) -> None:
    for y in Y:
        path = spread_path(y, frame, h)
        ax = path.plot(new_axes())
        breakpoints = {path.h1, path.h, *(point.h for point in path.breakpoints)}
        seen = set()
        for line in ax.lines:
            for at, value in np.asarray(line.get_xydata()):
                if at > path.h1:
                    assert value == 0
                    continue
                assert at in breakpoints  # linear in between
                x = np.r_[path.at(at), np.abs(path.at(at)).max() * np.array([1, -1])]
                assert np.abs(x - value).min() <= 1e-9 * path.t
                seen.add(at)
        assert seen == breakpoints
        # At the end of the path every component is on a line that is drawn.
        ends = np.array([v for line in ax.lines for at, v in np.asarray(line.get_xydata()) if at == path.h])
        assert np.abs(path.x[:, None] - ends).min(axis=1).max() <= 1e-9 * path.t


def test_every_breakpoint_has_a_marker_on_the_envelope() -> None:
    path = spread_path(Y[0], A)
    ax = path.plot(new_axes())
    found = points(ax)
    np.testing.assert_allclose(found[:, 0], [point.h for point in path.breakpoints])
    np.testing.assert_allclose(np.abs(found[:, 1]), [point.t for point in path.breakpoints])
    filled = [len(c.get_offsets()) for c in markers(ax) if (np.asarray(c.get_facecolor()) != 1).any()]
    assert sum(filled) == sum(point.move != "freed" for point in path.breakpoints)


def test_labels_and_legend() -> None:
    path = spread_path(Y[0], A)
    ax = path.plot(new_axes())
    assert ax.get_xlabel().startswith("h (the path starts at $h_1$ = ") and f"{path.h1:.4g}" in ax.get_xlabel()
    assert ax.get_ylabel() == "components of x"
    plus, minus = (int((path.x * sign >= path.t * (1 - 1e-9)).sum()) for sign in (1, -1))
    assert plus + minus == 30 - 12 + 1
    texts = [text.get_text() for text in ax.texts]
    assert texts[0].startswith(f"{plus} of 30 stuck at $+") and texts[1].startswith(f"{minus} of 30 stuck at $-")
    assert len(ax.get_legend().get_texts()) == 4


def test_a_new_figure_or_the_axes_given(tmp_path) -> None:
    path = spread_path(Y[0], A)
    own = path.plot()
    assert own.figure.number in pyplot.get_fignums()
    own.figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 10_000
    given = matplotlib.figure.Figure().subplots(1, 2)
    assert path.plot(given[1]) is given[1] and path.plot(ax=given[0]) is given[0]


@pytest.mark.parametrize(
    ("y", "frame", "h"),
    [
        (np.ones(2), np.eye(2), 5.0),
        (np.zeros(2), np.eye(2), 0.0),
        (np.array([-3.0]), np.array([[1.0, -2.0, 0.5]]), 0.0),
        (np.array([3e200, 1e200]), np.eye(2), 0.0),
        (np.array([3.0, 1.0]), np.eye(2) * 1e-200, 0.0),
    ],
    ids=["above h1", "zero vector", "no breakpoints", "large", "small"],
)
def test_paths_with_little_to_draw(tmp_path, y, frame, h: float) -> None:
    spread_path(y, frame, h).plot().figure.savefig(tmp_path / "path.png")


def test_parked_components_are_dotted() -> None:
    parked = Vertices(
        h=np.array([3.0, 2.0, 1.0]),
        t=np.array([0.0, 1.0, 2.0]),
        x=np.array([[0.0, 0.0], [1.0, -1.0], [2.0, -1.0]]),
        signs=np.array([[1, -1], [1, 0]], dtype=np.int8),
        free=np.zeros((2, 2), dtype=bool),
        moved=[1],
        moves=["parked"],
    )
    ax = plot_path(parked, new_axes())
    (dotted,) = [line for line in ax.lines if line.get_linestyle() == ":" and line.get_zorder() == 3]
    np.testing.assert_array_equal(dotted.get_xydata(), [[2, -1], [1, -1]])
    assert ax.get_legend().get_texts()[-1].get_text() == "breakpoint: a component is parked"
    np.testing.assert_array_equal(points(ax), [[2, -1]])


def test_what_is_not_axes_is_named() -> None:
    path = spread_path(Y[0], A)
    with pytest.raises(InputTypeError, match=r"ax must be matplotlib Axes, not str.*savefig"):
        path.plot("path.png")
    with pytest.raises(InputTypeError, match="ax must be matplotlib Axes, not Figure"):
        path.plot(matplotlib.figure.Figure())


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = spread_path(Y[0], A)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'antisparse\[plot\]'"):
        path.plot()
