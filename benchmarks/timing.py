"""What the benchmarks share: their options, the best of several runs, and how the numbers are written."""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy

import antisparse
from antisparse import _core

Key = TypeVar("Key")


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    return parser


def best(repeats: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Seconds of the fastest of several calls."""
    return _best(time.perf_counter, repeats, partial(function, *arguments, **options))


def in_turn(
    repeats: int, functions: dict[Key, Callable[[], Any]], clock: Callable[[], float] = time.perf_counter
) -> dict[Key, float]:
    """Seconds of the fastest call of each, called in turn: what disturbs one of them disturbs its neighbours too.

    Where none of them starts threads the clock may be `time.thread_time`, which stands still while others have the CPU.
    """
    times = [{name: _best(clock, 1, function) for name, function in functions.items()} for _ in range(repeats)]
    return {name: min(one[name] for one in times) for name in functions}


def _best(clock: Callable[[], float], repeats: int, function: Callable[[], Any]) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def write_json(path: Path | None, numbers: dict[str, Any]) -> None:
    """The numbers with the command and the versions that made them."""
    if path is None:
        return
    about = {
        "command": " ".join(["python", *sys.argv]),
        "versions": {"antisparse": antisparse.__version__, "numpy": np.__version__, "scipy": scipy.__version__},
        "python": platform.python_version(),
        "isa": _core.isa(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | numbers, indent=2) + "\n")
    print(f"\nnumbers: {path}")


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"picture: {path}")
