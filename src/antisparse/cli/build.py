"""`antisparse build`: an index from a file of vectors."""

import argparse
import json
import math
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from antisparse._arrays import integer, thread_count
from antisparse.cli._shared import Array, bar, batches, check_columns, check_vectors, read_part
from antisparse.errors import InputError

_TRAIN = 100_000
_FLAT = 100_000  # below so many vectors one cell is enough
_LEAST_CELLS, _MOST_CELLS = 64, 4096
_PER_CELL = 40  # training vectors that a mean needs


def add_build(commands: Any) -> None:
    """The command `build`."""
    parser = commands.add_parser(
        "build",
        help="make an index of a file of vectors",
        description="Learn codes from some of the vectors and make an index of all. The ids are the rows of the file. "
        "The folder appears when it is whole.",
    )
    parser.add_argument("vectors", metavar="VECTORS", help="a file of vectors, or a folder whose base file is used")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="INDEX", help="the folder to make")
    parser.add_argument("--bits", type=int, default=128, help="bits of a code (128)")
    parser.add_argument(
        "--cells",
        type=_cells,
        default="auto",
        help=f"cells, of which a search may visit some; auto (default): 1 below {_FLAT:,} vectors, else about the root "
        "of their number",
    )
    parser.add_argument("--metric", choices=("l2", "cosine", "ip"), default="l2", help="what is nearest (l2)")
    parser.add_argument("--train", type=int, default=_TRAIN, help=f"learn from at most so many vectors ({_TRAIN:,})")
    parser.add_argument("--learn", metavar="FILE", help="learn from these vectors in place of some of VECTORS")
    parser.add_argument("--words", action="store_true", help="code by words: more recall in few bytes (docs/words.md)")
    parser.add_argument("--scale", action="store_true", help="give every vector a scale, in one byte more")
    parser.add_argument("--effort", type=int, choices=range(4), default=2, help="how hard to look for each code (2)")
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file")
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_build)


def _cells(text: str) -> int | str:
    return text if text == "auto" else int(text)


def auto_cells(n: int, trained: int) -> int:
    """The cells for n vectors: a power of two, as many as the training vectors allow."""
    if n < _FLAT:
        return 1
    wanted = min(max(1 << round(math.log2(n) / 2), _LEAST_CELLS), _MOST_CELLS)
    return min(wanted, 1 << int(math.log2(max(trained / _PER_CELL, 1))))


def _build(given: argparse.Namespace, command: str) -> int:
    from antisparse.index.files import sync_folder

    integer(given.bits, "--bits", 1)
    if given.words and (given.scale or given.effort == 0):
        raise InputError("--words does not go with --scale or --effort 0; drop the one or the other")
    integer(given.seed, "--seed", 0, 2**32)
    integer(given.train, "--train", 1)
    thread_count(given.threads, "--threads")
    if given.cells != "auto":
        integer(given.cells, "--cells", 1, 2**16 + 1)
    target: Path = given.out
    if os.path.lexists(target):
        raise InputError(f"-o {target}: it exists already; remove it first, or choose another name")
    if not target.parent.is_dir():
        raise InputError(f"-o {target}: there is no folder {target.parent}; make it first")
    X = read_part(given.vectors, "base", "VECTORS", given.column)
    temporary = target.with_name(f".{target.name}.tmp-{secrets.token_hex(4)}")
    try:
        made = _make(temporary, X, given)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(target.parent)
    if given.json:
        print(json.dumps({"command": command, "index": str(target), **made}, indent=2))
    else:
        shape = f"{made['vectors']:,} vectors of {made['dimensions']} dimensions, {made['code_bytes']} bytes each"
        cells = f"{made['cells']:,} cell{'s' * (made['cells'] > 1)}"
        print(f"{target}: {shape}, in {cells}; learned from {made['trained']:,}")
    return 0


def _make(folder: Path, X: Array, given: argparse.Namespace) -> dict[str, Any]:
    """The whole index, in a folder of its own; returns what is in it."""
    from threadpoolctl import threadpool_limits

    from antisparse.encoders import AntiSparseEncoder
    from antisparse.index import Index

    train = _training_vectors(X, given)
    cells = auto_cells(len(X), len(train)) if given.cells == "auto" else given.cells
    encoder = AntiSparseEncoder(
        given.bits,
        frame="words" if given.words else "learned",
        means=cells,
        scale=given.scale,
        effort=given.effort,
        random_state=given.seed,
        n_threads=given.threads,
    )
    with bar(f"learning from {len(train):,} vectors", None), threadpool_limits(given.threads):
        encoder.fit(train)
    encoder.set_params(n_threads=None)  # what is stored is for other machines, too
    with Index.create(folder, encoder, metric=given.metric) as index, bar("adding", len(X)) as done:
        encoder.set_params(n_threads=given.threads)
        index.add(batches(X, given.metric, done))
        return {"trained": len(train), **index.stats()}


def _training_vectors(X: Array, given: argparse.Namespace) -> Array:
    from antisparse.forms import unit_rows

    name = "VECTORS" if given.learn is None else "--learn"
    source = X if given.learn is None else read_part(given.learn, "learn", name)
    check_columns(source, name, X.shape[1])
    if not len(source):
        raise InputError(f"{name} has no vectors to learn from")
    rows = np.arange(len(source))
    if given.train < len(source):
        rows = np.sort(np.random.default_rng(given.seed).choice(len(source), given.train, replace=False))
    train: Array = source[rows]
    check_vectors(train, name, given.metric, rows)
    return unit_rows(train, name) if given.metric == "cosine" else train
