"""`antisparse tune`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from antisparse._arrays import integer
from antisparse.errors import InputError


def add_tune(commands: Any) -> None:
    """The command `tune`."""
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
