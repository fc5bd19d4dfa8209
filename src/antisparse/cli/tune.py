"""`antisparse tune`."""

import argparse
import json
import sys
from typing import Any

import numpy as np

from antisparse._arrays import integer, thread_count
from antisparse.cli._shared import check_columns, check_output, read_part
from antisparse.evaluation import Measure


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
    parser.add_argument(
        "--measure",
        default="1@10",
        metavar="1@R or k@k",
        help="what the recall is: 1@R, the true nearest neighbour among the first R results, or k@k, the part of the "
        "true k nearest among the first k results (1@10)",
    )
    parser.add_argument("--metric", choices=("l2", "cosine", "ip"), default="l2", help="what is nearest (l2)")
    parser.add_argument("--queries", help="a file of queries; without it some of the vectors are held out for them")
    parser.add_argument("--limit", type=int, help="use so many of the vectors, drawn at random (all)")
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file")
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--plot", metavar="FILE", help="draw recall against bytes: a .png, .svg or .pdf file")
    parser.set_defaults(run=_tune)


def _tune(given: argparse.Namespace, command: str) -> int:
    from antisparse.tuning import picture_path, tune

    # What is wrong with the arguments is said before the work, not after it.
    Measure.parse(given.measure, "--measure")
    seed = integer(given.seed, "--seed", 0, 2**32)
    thread_count(given.threads, "--threads")
    if given.limit is not None:
        integer(given.limit, "--limit", 1)
    if given.bytes is not None:
        integer(given.bytes, "--bytes", 1, 2049)
    if given.plot is not None:
        check_output(picture_path(given.plot), "--plot", [given.data, given.queries])
    X = read_part(given.data, "base", "DATA", given.column)
    queries = None if given.queries is None else read_part(given.queries, "query", "--queries")
    if queries is not None:
        check_columns(queries, "--queries", X.shape[1])
    n_indexed = len(X)
    if given.limit is not None and given.limit < len(X):
        X = X[np.sort(np.random.default_rng(seed).choice(len(X), given.limit, replace=False))]
    tuning = tune(
        X,
        queries=queries,
        n_bytes=given.bytes,
        recall=given.recall,
        measure=given.measure,
        metric=given.metric,
        random_state=seed,
        n_threads=given.threads,
        progress=True,
    )
    data = [given.data, *([] if given.column is None else ["--column", given.column])]
    if given.json:
        print(json.dumps({"command": command, **tuning.to_dict(data, n_indexed)}, indent=2))
    else:
        print(tuning.report(data, n_indexed))
    if given.plot is not None:
        tuning.plot(given.plot)
        print(f"picture: {given.plot}", file=sys.stderr if given.json else sys.stdout)
    return 1 if tuning.chosen is None else 0
