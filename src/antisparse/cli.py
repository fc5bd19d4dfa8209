"""The command `antisparse`: arguments, progress and how results are shown; the work is done elsewhere."""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import track as rich_track
from rich.table import Table

from antisparse import __version__
from antisparse._arrays import integer
from antisparse.errors import AntisparseError, DownloadError, InputError, InputTypeError

_VERDICTS = {"holds": "green", "does not hold": "red", "undecided": "yellow", "not measured": "bright_black"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0, 1 for a failure, 2 for arguments that cannot be used."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _Parser(prog="antisparse", description="Compact binary codes for vectors.")
    parser.add_argument("--version", action="version", version=f"antisparse {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_paper(commands)
    _add_tune(commands)
    given = parser.parse_args(arguments)
    try:
        return int(given.run(given, "antisparse " + shlex.join(arguments)))
    except (InputError, InputTypeError, FileNotFoundError) as error:
        print(f"antisparse {given.command}: {error}", file=sys.stderr)
        return 2
    except (AntisparseError, OSError) as error:
        print(f"antisparse {given.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"antisparse {given.command}: stopped", file=sys.stderr)
        return 130


def _add_paper(commands: Any) -> None:
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


def _add_tune(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="find the cheapest codes that reach a recall, or the best for some bytes",
        description="Measure settings on a sample of your vectors: the cheapest that reaches a recall, or the best "
        "for a number of bytes. Exit code 1 where none reaches the recall.",
    )
    parser.add_argument("data", metavar="DATA", help="a file of vectors, or a folder whose base file is used")
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--recall", type=float, help="the recall wanted, such as 0.95")
    goal.add_argument("--bytes", type=int, help="the bytes to spend on a vector")
    parser.add_argument("--at", type=int, default=10, help="results the true neighbour shall be among (10)")
    parser.add_argument("--queries", help="a file of queries; without it some of the vectors are held out for them")
    parser.add_argument("--limit", type=int, help="use so many of the vectors, drawn at random (all)")
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--plot", metavar="FILE", help="draw recall against bytes: a .png, .svg or .pdf file")
    parser.set_defaults(run=_tune)


def _tune(given: argparse.Namespace, command: str) -> int:
    from antisparse.datasets import read_dataset, read_vectors
    from antisparse.tuning import picture_path, tune

    if given.plot is not None:
        picture_path(given.plot)  # what is wrong with it is said before the work, not after it
    if not Path(given.data).exists():
        raise InputError(f"DATA {given.data}: there is no such file or folder")
    X = read_dataset(given.data).base if Path(given.data).is_dir() else read_vectors(given.data)
    queries = None if given.queries is None else read_vectors(given.queries)
    seed = integer(given.seed, "--seed", 0)
    if given.limit is not None and integer(given.limit, "--limit", 1) < len(X):
        X = X[np.sort(np.random.default_rng(seed).choice(len(X), given.limit, replace=False))]
    tuning = tune(
        X,
        queries=queries,
        n_bytes=given.bytes,
        recall=given.recall,
        at=given.at,
        random_state=seed,
        n_threads=given.threads,
        progress=True,
    )
    print(json.dumps({"command": command, **tuning.to_dict()}, indent=2) if given.json else tuning.report())
    if given.plot is not None:
        tuning.plot(given.plot)
        print(f"picture: {given.plot}", file=sys.stderr if given.json else sys.stdout)
    return 1 if tuning.chosen is None else 0


def _track(items: Iterable[Any], name: str) -> Iterable[Any]:
    return rich_track(list(items), description=escape(name.ljust(32)), console=Console(stderr=True))
