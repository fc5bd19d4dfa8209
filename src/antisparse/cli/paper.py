"""`antisparse paper`."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track as rich_track
from rich.table import Table

from antisparse.cli._shared import check_output
from antisparse.errors import DownloadError, InputError

_VERDICTS = {"holds": "green", "does not hold": "red", "undecided": "yellow", "not measured": "bright_black"}


def add_paper(commands: Any) -> None:
    """The command `paper`."""
    parser = commands.add_parser(
        "paper",
        help="run the experiments of the 2011 paper and check its claims",
        description="Run the experiments of the 2011 paper, write pictures, numbers and a page, and check its claims.",
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("out/paper"), help="where to write (out/paper)")
    parser.add_argument(
        "--data",
        help="SIFT vectors for Figure 3: sift1m (default; 161 MB to fetch once), siftsmall (with --quick; 5 MB), "
        "a folder with base, learn and query files, an HDF5 file, or 'none'",
    )
    parser.add_argument("--only", help="some of the experiments, by commas: path, figures, h, two-stage, sift")
    parser.add_argument("--seeds", type=int, help="how many seeds the synthetic experiments average over (10)")
    parser.add_argument("--sift-seeds", type=int, help="how many frames Figure 3 averages over (3)")
    parser.add_argument("--quick", action="store_true", help="everything on small sizes, in seconds")
    parser.set_defaults(run=_paper)


def _paper(given: argparse.Namespace, command: str) -> int:
    from antisparse import paper

    only = paper.EXPERIMENTS if given.only is None else tuple(name.strip() for name in given.only.split(","))
    settings = paper.quick() if given.quick else paper.Settings()
    paper.check_names(only)
    for option, value in (("--seeds", given.seeds), ("--sift-seeds", given.sift_seeds)):
        if value is not None and not 1 <= value <= 1000:
            raise InputError(f"{option} {value}: it must be from 1 to 1000")
    if given.seeds is not None:
        settings = replace(settings, seeds=list(range(given.seeds)))
    if given.sift_seeds is not None:
        settings = replace(settings, sift_seeds=list(range(given.sift_seeds)))
    check_output(given.out, "-o", [given.data])
    data = _sift(given.data, "siftsmall" if given.quick else "sift1m") if "sift" in only else None
    studies, claims, page = paper.reproduce(
        given.out, settings=settings, data=data, only=only, track=_track, command=command
    )
    console = Console()
    for study in studies:
        if "recall@R" in study.numbers:
            console.print(_recalls(study.title, study.numbers))
    table = Table("claim", "measured", "verdict", title="The claims of the paper", show_lines=True)
    for claim in claims:
        verdict = f"[{_VERDICTS[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(f"{claim.statement}\n[dim]{claim.rule}[/]", escape(claim.measured), verdict)
    if claims:
        console.print(table)
    print(f"everything, with pictures: {page}")
    return 0


def _recalls(title: str, numbers: dict[str, Any]) -> Table:
    """recall@1, @10 and @100 by method and search, with standard errors."""
    shown = [R for R in (1, 10, 100) if R in numbers["R"]]
    table = Table("method and search", *(f"recall@{R}" for R in shown), title=escape(title))
    for curve, values in numbers["recall@R"].items():
        places = [numbers["R"].index(R) for R in shown]
        table.add_row(curve, *(f"{values['mean'][i]:.3f} ± {values['standard error'][i]:.3f}" for i in places))
    return table


def _sift(name: str | None, default: str) -> Any:
    """The data of Figure 3, or None where there is none to be had and none was asked for."""
    from antisparse.datasets import load, read_dataset

    if name == "none":
        return None
    if name in ("sift1m", "siftsmall"):
        return load(name)
    if name is not None:
        if not Path(name).exists():
            raise InputError(f"--data {name}: there is no such folder; or give sift1m, siftsmall or none")
        return read_dataset(name)
    try:
        return load(default)
    except DownloadError as error:
        print(f"Figure 3 is left out: {error}", file=sys.stderr)
        return None


def _track(items: Iterable[Any], name: str) -> Iterable[Any]:
    return rich_track(list(items), description=escape(name.ljust(32)), console=Console(stderr=True))
