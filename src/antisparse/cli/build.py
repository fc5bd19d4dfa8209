"""`antisparse build`: an index from a file of vectors."""

import argparse
import json
from typing import Any

from antisparse._arrays import renamed, without_secrets
from antisparse.cli._shared import (
    check_output,
    index_place,
    is_table_path,
    model_arguments,
    on_terminal,
    read_part,
    read_source,
    text_model,
)
from antisparse.errors import InputError
from antisparse.learning.split import sample_size
from antisparse.learning.symbols import SYMBOLS

_TRAIN = 100_000
# What the arguments of `Index.build` are called here.
_NAMES = {
    "X": "VECTORS",
    "vector": "--column",
    "key": "--key",
    "columns": "--columns",
    "text": "--text-column",
    "model": "--model",
    "learn": "--learn",
    "n_bytes": "--bytes",
    "cells": "--cells",
    "train": "--train",
    "random_state": "--seed",
    "n_threads": "--threads",
}


VECTORS = (
    "a file of vectors, or a folder whose base file is used; tables: a Parquet or Arrow file, a folder, a glob or an "
    "address of such; a .txt of texts, one a line, with a model; - for Arrow IPC or .npy from standard input"
)


def add_build(commands: Any) -> None:
    """The command `build`."""
    parser = commands.add_parser(
        "build",
        help="make an index of a file of vectors, or of tables",
        description="Learn codes from some of the vectors and make an index of all. The ids are the rows of the file, "
        "unless there is a key. The folder appears when it is whole.",
    )
    parser.add_argument("vectors", metavar="VECTORS", help=VECTORS)
    item_arguments(parser)
    parser.add_argument("--text-column", metavar="COLUMN", help="the column of texts that the model makes vectors of")
    model_arguments(parser, "the model of sentence-transformers that makes, or made, the vectors; the index keeps it")
    parser.add_argument("-o", "--out", type=index_place, required=True, metavar="INDEX", help="the folder to make")
    learning_arguments(parser)
    parser.add_argument("--learn", metavar="FILE", help="learn from these vectors in place of some of VECTORS")
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_build)


def item_arguments(parser: argparse.ArgumentParser) -> None:
    """What is kept beside the codes."""
    parser.add_argument("--key", help="the column that is the key of every item: text, or integers")
    parser.add_argument("--columns", help="the columns to keep beside the codes: text,lang")


def kept_columns(given: argparse.Namespace) -> list[str] | None:
    """The names of the columns to keep."""
    return None if given.columns is None else [name for name in given.columns.split(",") if name]


def learning_arguments(parser: argparse.ArgumentParser) -> None:
    """How codes are learned."""
    parser.add_argument("--bytes", type=int, default=16, help="bytes of a code: all that is stored but the id (16)")
    parser.add_argument("--metric", choices=("l2", "cosine", "ip"), default="l2", help="what is nearest (l2)")
    parser.add_argument(
        "--cells",
        type=_cells,
        default="auto",
        help="cells, of which a search may visit some; auto (default): what recall wants below a million vectors, else "
        "about the root of their number, and four times it from ten millions on",
    )
    parser.add_argument(
        "--symbols",
        choices=("auto", *SYMBOLS),
        default="auto",
        help="what codes are made of (auto); signs keep hamming and asymmetric search",
    )
    parser.add_argument("--train", type=int, default=_TRAIN, help=f"learn from at most so many vectors ({_TRAIN:,})")
    parser.add_argument("--effort", type=int, choices=(1, 2, 3), default=2, help="how hard to look for each code (2)")
    parser.add_argument("--dimensions", type=int, help="use the first so many dimensions of each vector (all)")
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")


def _cells(text: str) -> int | str:
    return text if text == "auto" else int(text)


def _build(given: argparse.Namespace, command: str) -> int:
    from antisparse.index import Index
    from antisparse.index.build import check_new_path

    if isinstance(given.out, str):
        raise InputError(
            f"-o {without_secrets(given.out)} is an address, where a folder is wanted; make a folder and copy it there "
            "(antisparse copy), or use antisparse cluster build"
        )
    check_new_path(given.out, "-o")
    check_output(given.out, "-o", ())
    X = read_source(given.vectors, "base", "VECTORS", given.column)
    vector = given.column if given.vectors == "-" or is_table_path(given.vectors) else None
    learn = None if given.learn is None else read_part(given.learn, "learn", "--learn")
    if isinstance(X, list) and not X:
        raise InputError(f"VECTORS {given.vectors} holds no text")
    if isinstance(X, list) and given.model is None:
        raise InputError(f"VECTORS {given.vectors} holds texts; name the model that makes vectors of them by --model")
    with (
        renamed(**_NAMES),
        Index.build(
            X,
            given.bytes,
            path=given.out,
            metric=given.metric,
            vector=vector,
            key=given.key,
            columns=kept_columns(given),
            text=given.text_column,
            model=text_model(given),
            cells=given.cells,
            symbols=given.symbols,
            effort=given.effort,
            dimensions=given.dimensions,
            train=given.train,
            learn=learn,
            progress=on_terminal(),
            random_state=given.seed,
            n_threads=given.threads,
        ) as index,
    ):
        made = {
            "trained": min(sample_size(given.train, index.cells), len(index if learn is None else learn)),
            **index.stats(),
        }
    if given.json:
        print(json.dumps({"command": command, "index": str(given.out), **made}, indent=2))
    else:
        shape = f"{made['vectors']:,} vectors of {made['dimensions']} dimensions, {made['code_bytes']} bytes each"
        print(f"{given.out}: {shape} ({made['code']}); learned from {made['trained']:,}")
    return 0
