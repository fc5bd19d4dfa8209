"""`antisparse add`, `remove`, `info`, `verify` and `compact`: an index that is there."""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from antisparse._arrays import renamed, thread_count
from antisparse.cli._shared import (
    bar,
    changing,
    check_columns,
    check_output,
    index_place,
    model_arguments,
    on_terminal,
    open_index,
    read_ids,
    read_lines,
    read_source,
    text_model,
    whole_numbers,
)
from antisparse.cli.build import VECTORS
from antisparse.errors import FormatError, InputError, InputTypeError

if TYPE_CHECKING:
    from antisparse.index import Index


def add_index(commands: Any) -> None:
    """The commands that show or change an index."""
    parser = _command(
        commands, _add, "add", "add vectors to an index", "Add vectors to an index, all of them or, if it fails, none."
    )
    parser.add_argument("vectors", metavar="VECTORS", help=VECTORS)
    parser.add_argument(
        "--ids", metavar="FILE", help="their ids: .npy, or text with one a line; by default they go on from the largest"
    )
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file")
    model_arguments(parser, "the model that makes vectors of texts (the one that the index keeps)")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser = _command(
        commands,
        _remove,
        "remove",
        "remove vectors from an index",
        "Remove vectors by id, all or, if one is not there, none.",
    )
    parser.add_argument(
        "ids", metavar="IDS", nargs="+", help="ids or keys, or files of them: .npy, or text with one a line"
    )
    _command(commands, _info, "info", "say what is in an index", "Say what is in an index.")
    _command(
        commands,
        _verify,
        "verify",
        "read a whole index and compare its checksums",
        "Read every byte of an index and compare its checksums. Exit code 1 if it is damaged.",
    )
    _command(
        commands,
        _compact,
        "compact",
        "rewrite an index without what was removed",
        "Make all segments of an index one, without what was removed.",
    )
    parser = _command(
        commands,
        _copy,
        "copy",
        "copy an index to a folder or an object store",
        "Copy an index to a folder or an address, such as s3://bucket/folder, where there is none.",
    )
    parser.add_argument("target", metavar="TARGET", type=index_place, help="the folder or the address to make")


def _command(commands: Any, run: Any, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=description)
    parser.add_argument("index", metavar="INDEX", type=index_place, help="the folder of the index, or its address")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _add(given: argparse.Namespace, command: str) -> int:
    from antisparse.index.build import in_batches, with_bar

    thread_count(given.threads, "--threads")
    X = read_source(given.vectors, "base", "VECTORS", given.column)
    vector = given.column if not isinstance(X, np.ndarray) else None
    ids = None if given.ids is None else read_ids(given.ids, "--ids")
    if ids is not None and isinstance(X, np.ndarray) and len(ids) != len(X):
        raise InputError(f"--ids {given.ids} has {len(ids)} ids for {len(X)} vectors")
    names = {"X": "VECTORS", "ids": "--ids", "vector": "--column", "model": "--model"}
    with changing(given.index, given.threads, text_model(given, given.index)) as index, renamed(**names):
        if isinstance(X, list) and (index.snapshot.model is None or index.snapshot.model.text is None):
            raise InputError(f"VECTORS {given.vectors} holds texts, but the index was not built from texts")
        if isinstance(X, np.ndarray):
            check_columns(X, "VECTORS", index.codec.input_dimension)
            X = with_bar(in_batches(X), len(X), on_terminal())
        added = index.add(X, ids, vector=vector, progress=on_terminal())
        n = len(index)
    content = {"added": len(added), "first_id": None, "last_id": None, "vectors": n}
    said = f"added no vectors to {n:,}"
    if len(added):
        content |= {"first_id": int(added[0]), "last_id": int(added[-1])}
        said = f"added {_count(len(added))}, ids {added[0]} to {added[-1]}: now {n:,}"
    _say(given, command, content, said)
    return 0


def _remove(given: argparse.Namespace, command: str) -> int:
    with changing(given.index) as index:
        schema = index.snapshot.schema
        if schema is not None and schema.key_is_text:
            ids: Any = [key for word in given.ids for key in _keys(index, word)]
        else:
            ids = np.concatenate([_ids(word) for word in given.ids])
        index.remove(ids)
        n = len(index)
    _say(given, command, {"removed": len(ids), "vectors": n}, f"removed {_count(len(ids))}: now {n:,}")
    return 0


def _keys(index: "Index", word: str) -> list[str]:
    """A key, or the keys in a file."""
    return read_lines(word, "IDS") if word not in index and os.path.isfile(word) else [word]


def _ids(word: str) -> Any:
    """An id, or the ids in a file."""
    try:
        return whole_numbers([int(word)], "IDS")
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    if not os.path.exists(word):
        raise InputError(f"IDS {word}: neither a number nor a file")
    ids = read_ids(word, "IDS")
    if ids.dtype == bool:
        raise InputTypeError(f"IDS {word} has dtype bool; ids are integers")
    return ids


def _info(given: argparse.Namespace, command: str) -> int:
    with open_index(given.index) as index:
        stats = index.stats()
    if given.json:
        print(json.dumps({"command": command, **stats}, indent=2))
        return 0
    table = Table(show_header=False, box=None)
    for name, value in stats.items():
        table.add_row(name.replace("_", " "), value if isinstance(value, str) else f"{value:,}")
    Console().print(table)
    return 0


def _verify(given: argparse.Namespace, command: str) -> int:
    try:
        with open_index(given.index, verify=True) as index:
            n = len(index)
    except FormatError as error:
        if given.json:
            print(json.dumps({"command": command, "sound": False, "error": str(error)}, indent=2))
        raise
    _say(given, command, {"sound": True, "vectors": n}, f"sound: {n:,} vectors")
    return 0


def _compact(given: argparse.Namespace, command: str) -> int:
    with changing(given.index) as index:
        before = index.stats()
        with bar("compacting", None):
            index.compact()
        after = index.stats()
    names = {"segments": "segments", "deleted": "removed vectors kept", "disk_bytes": "bytes"}
    said = ", ".join(f"{name} {before[key]:,} -> {after[key]:,}" for key, name in names.items())
    _say(given, command, {"before": before, "after": after}, said)
    return 0


def _copy(given: argparse.Namespace, command: str) -> int:
    if isinstance(given.target, Path):
        check_output(given.target, "TARGET", [given.index])
    with open_index(given.index) as index:
        with bar("copying", None), renamed(path="TARGET"):
            index.save(given.target)
        stats = index.stats()
    said = f"{given.target}: {_count(stats['vectors'])}, {stats['disk_bytes']:,} bytes"
    _say(given, command, {"target": str(given.target), **stats}, said)
    return 0


def _count(n: int) -> str:
    return f"{n:,} vector{'s' * (n != 1)}"


def _say(given: argparse.Namespace, command: str, content: dict[str, Any], words: str) -> None:
    print(json.dumps({"command": command, **content}, indent=2) if given.json else words)
