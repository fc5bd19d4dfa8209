"""`antisparse cluster build`: an index of many files, by many machines."""

import argparse
import json
import sys
from contextlib import redirect_stdout
from typing import Any

from antisparse._arrays import renamed
from antisparse.cli._shared import index_place, on_terminal
from antisparse.cli.build import item_arguments, kept_columns, learning_arguments

# What the arguments of `antisparse.cluster.build` are called here.
_NAMES = {
    "source": "SOURCE",
    "path": "-o",
    "vector": "--column",
    "key": "--key",
    "columns": "--columns",
    "n_bytes": "--bytes",
    "cells": "--cells",
    "train": "--train",
    "random_state": "--seed",
    "n_threads": "--threads",
    "unit_rows": "--unit-rows",
    "address": "--address",
    "cpus": "--threads",
    "max_retries": "--retries",
    "in_flight": "--in-flight",
    "timeout": "--timeout",
}


def add_cluster(commands: Any) -> None:
    """The commands of many machines."""
    parser = commands.add_parser("cluster", help="work on many machines", description="Work on many machines.")
    inner = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    parser = inner.add_parser(
        "build",
        help="make an index of tables in many files, by tasks on a Ray cluster",
        description="Make an index of tables in many files, by tasks on a Ray cluster. The ids are the numbers of the "
        "rows, unless there is a key. A command that is repeated after it was stopped goes on where it was.",
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a Parquet, Arrow or ORC file, a folder, a glob or an address of such, that all machines see",
    )
    parser.add_argument(
        "-o", "--out", type=index_place, required=True, metavar="INDEX", help="the folder or the address to make"
    )
    item_arguments(parser)
    learning_arguments(parser)
    parser.add_argument("--column", help="the column of vectors")
    parser.add_argument(
        "--address", help="the cluster, such as ray://host:10001 or auto (by default one is started on this machine)"
    )
    parser.add_argument("--here", action="store_true", help="do all of it in this process, without Ray")
    parser.add_argument("--unit-rows", type=int, default=1 << 20, help=f"rows of a task, at least ({1 << 20:,})")
    parser.add_argument("--in-flight", type=int, help="tasks at a time (twice as many as the cluster can run)")
    parser.add_argument("--retries", type=int, default=3, help="how often a task is run again that died (3)")
    parser.add_argument("--threads", type=int, default=1, help="threads and CPUs of a task (1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_build)


def _kept(build: Any, *arguments: Any, **options: Any) -> Any:
    """What a build gives; Ctrl-C says that nothing is lost."""
    try:
        return build(*arguments, **options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command goes on where it was") from None


def _build(given: argparse.Namespace, command: str) -> int:
    from antisparse.cluster import RayEngine, build

    with renamed(**_NAMES), redirect_stdout(sys.stderr):  # Ray says there what becomes of workers
        engine: Any = map
        if not given.here:
            engine = RayEngine(given.address, cpus=given.threads, max_retries=given.retries, in_flight=given.in_flight)
        built = _kept(
            build,
            given.source,
            given.out,
            given.bytes,
            metric=given.metric,
            vector=given.column,
            key=given.key,
            columns=kept_columns(given),
            cells=given.cells,
            symbols=given.symbols,
            effort=given.effort,
            dimensions=given.dimensions,
            train=given.train,
            unit_rows=given.unit_rows,
            engine=engine,
            progress=on_terminal(),
            random_state=given.seed,
            n_threads=given.threads,
        )
    counts = {"vectors": built.vectors, "segments": built.segments, "resumed": built.resumed}
    if given.json:
        print(json.dumps({"command": command, "index": built.path, **counts, "code": built.codec.summary}, indent=2))
    else:
        before = f", {built.resumed:,} of them done before" if built.resumed else ""
        print(
            f"{built.path}: {built.vectors:,} vectors, {built.codec.n_bytes} bytes each ({built.codec.summary}), in "
            f"{built.segments:,} segments{before}"
        )
    return 0
