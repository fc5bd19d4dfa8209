"""`antisparse search` and `eval`: what an index finds, and how much of what it should."""

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from antisparse._arrays import integer, renamed, thread_count
from antisparse.cli._shared import (
    Array,
    bar,
    check_columns,
    check_output,
    check_vectors,
    index_place,
    model_arguments,
    open_index,
    read_ids,
    read_lines,
    read_part,
    read_queries,
    text_model,
)
from antisparse.cli.results import SUFFIXES, Results, outputs, parquet
from antisparse.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from antisparse.index import Index

_CHUNK_QUERIES = 1024
_RECALLS, _ALL = (1, 10, 100), 10


def add_search(commands: Any) -> None:
    """The commands that ask an index."""
    parser = commands.add_parser(
        "search",
        help="find the nearest vectors to queries",
        description="Find the nearest vectors to each query.",
    )
    _arguments(parser, 10, texts=True)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="write the results: NAME.npy (ids, and NAME.distances.npy), .parquet, .json, .jsonl (JSON Lines) or .csv",
    )
    parser.add_argument(
        "--filter",
        metavar="FILE",
        help="search these ids or keys alone: .npy of ids or of bool, or text with one id or key a line",
    )
    parser.add_argument(
        "--filter-expr",
        metavar="TEXT",
        help="search the items alone of which this is true: lang = 'en' and year >= 2020",
    )
    parser.add_argument("--query-key", metavar="COLUMN", help="the column of QUERIES that names them in the results")
    parser.add_argument(
        "--text", action="append", metavar="TEXT", help="ask this, in place of QUERIES; may be repeated"
    )
    model_arguments(parser, "the model that makes vectors of texts (the one that the index keeps)")
    parser.set_defaults(run=_search)
    parser = commands.add_parser(
        "eval",
        help="measure the recall of an index",
        description="Search, and print two measures of recall. 1@R: the part of the queries whose true nearest "
        "neighbour is among the first R results. 10@10: the part of the ten true nearest neighbours that are among the "
        "first ten results.",
    )
    _arguments(parser, 100, texts=False)
    parser.add_argument(
        "truth",
        metavar="TRUTH",
        help="the ids of each query's true neighbours, nearest first: .ivecs, .ibin, .npy, ...",
    )
    parser.set_defaults(run=_eval)


def _arguments(parser: argparse.ArgumentParser, k: int, texts: bool) -> None:
    parser.add_argument("index", metavar="INDEX", type=index_place, help="the folder of the index, or its address")
    parser.add_argument(
        "queries",
        metavar="QUERIES",
        nargs="?" if texts else None,
        help="a file of vectors, or a folder whose query file is used; a .txt of texts, one a line, with a model",
    )
    parser.add_argument("-k", type=int, default=k, help=f"results a query ({k})")
    parser.add_argument(
        "--method",
        choices=("reconstruction", "hamming", "asymmetric"),
        default="reconstruction",
        help="what the distance is (reconstruction)",
    )
    parser.add_argument("--probes", type=_probes, default="all", help="visit so many cells, the nearest (all)")
    parser.add_argument("--shortlist", type=int, help="rank so many candidates anew")
    parser.add_argument(
        "--rerank", metavar="VECTORS", help="rank by true distances; row i of this file is the vector of id i"
    )
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file, of QUERIES")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _probes(text: str) -> int | str:
    return text if text == "all" else int(text)


def _search(given: argparse.Namespace, command: str) -> int:
    if given.out is not None:
        _check_output(given.out)
        for file in outputs(given.out):
            check_output(file, "-o", [given.queries, given.filter, given.rerank])
    with _open(given) as index:
        schema = index.snapshot.schema
        options: dict[str, Any] = {}
        if given.filter is not None and given.filter_expr is not None:
            raise InputError("--filter and --filter-expr say two things; give one")
        if given.filter_expr is not None:
            options["filter"] = given.filter_expr
        elif given.filter is not None:
            read = read_lines if schema is not None and schema.key_is_text else read_ids
            options["filter"] = read(given.filter, "--filter")
        Q, keys = _queries(given, index)
        with renamed(filter="--filter-expr"):
            distances, ids = _find(index, Q, given, options)
        found = None
        if schema is not None or keys is not None:
            from antisparse.index.tables import answers

            found = answers(index.snapshot, distances, ids, keys)
    results = Results(distances, ids, {"command": command, "queries": len(ids), "k": given.k}, found)
    if given.out is not None:
        files = [str(file) for file in results.write(given.out)]
        said = f"ids and distances of {len(ids):,} queries, {given.k} each: {', '.join(files)}"
        print(json.dumps(results.content | {"files": files}, indent=2) if given.json else said)
    elif given.json:
        print(results.dumps())
    else:
        results.show()
    return 0


def _eval(given: argparse.Namespace, command: str) -> int:
    from antisparse.evaluation import intersection_recall, recall_at

    truth = read_part(given.truth, "neighbors", "TRUTH")
    if truth.dtype.kind not in "iu":
        raise InputTypeError(f"TRUTH {given.truth} has dtype {truth.dtype}; it holds ids, which are integers")
    with _open(given) as index:
        Q, _ = _queries(given, index)
        if len(truth) != len(Q) or not len(Q):
            raise InputError(
                f"TRUTH has {len(truth)} rows for {len(Q)} queries; it needs one a query, and at least one"
            )
        start = time.perf_counter()
        ids = _find(index, Q, given, {})[1]
        seconds = time.perf_counter() - start
    recalls = {f"1@{R}": recall_at(ids, truth, R) for R in _RECALLS if given.k >= R}
    if given.k >= _ALL and truth.shape[1] >= _ALL:
        recalls[f"{_ALL}@{_ALL}"] = intersection_recall(ids, truth, _ALL)
    rate = len(Q) / seconds
    if given.json:
        content = {"command": command, "queries": len(Q), "k": given.k, **recalls, "queries_per_second": round(rate, 1)}
        print(json.dumps(content, indent=2))
        return 0
    table = Table("queries", *recalls, "queries/s")
    table.add_row(f"{len(Q):,}", *(f"{value:.4f}" for value in recalls.values()), f"{rate:,.0f}")
    Console().print(table)
    return 0


def _open(given: argparse.Namespace) -> "Index":
    thread_count(given.threads, "--threads")
    integer(given.k, "-k", 1)
    model = text_model(given, given.index) if hasattr(given, "model") else None
    return open_index(given.index, threads=given.threads, model=model)


def _queries(given: argparse.Namespace, index: "Index") -> tuple[Array, Any]:
    texts = getattr(given, "text", None)
    if (texts is None) == (given.queries is None):
        raise InputError("QUERIES or --text: give one of them")
    if texts is None and given.queries.lower().endswith(".txt"):
        texts = read_lines(given.queries, "QUERIES")
    if texts:
        with renamed(model="--model"):
            return index.embed(texts), texts
    Q, keys = read_queries(given.queries, given.column, getattr(given, "query_key", None))
    check_columns(Q, "QUERIES", index.codec.input_dimension)
    check_vectors(Q, "QUERIES", index.metric, range(len(Q)))
    return Q, keys


def _find(index: "Index", Q: Array, given: argparse.Namespace, options: dict[str, Any]) -> tuple[Array, Array]:
    """Distances and ids, a chunk of queries at a time."""
    options = {"method": given.method, "probes": given.probes, "shortlist": given.shortlist, **options}
    if given.rerank is not None:
        options["rerank"] = read_part(given.rerank, "base", "--rerank")
        check_columns(options["rerank"], "--rerank", index.codec.input_dimension)
    parts = []
    with bar("searching", len(Q)) as done:
        for start in range(0, max(len(Q), 1), _CHUNK_QUERIES):  # once without queries too, for the shapes
            chunk = Q[start : start + _CHUNK_QUERIES]
            parts.append(index.search(chunk, given.k, **options))
            done(len(chunk))
    distances, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return distances, ids


def _check_output(path: Path) -> None:
    """Say what is wrong with it before the work, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"-o {path}: its suffix must be one of {', '.join(SUFFIXES)}")
    if not os.path.isdir(path.parent):
        raise InputError(f"-o {path}: there is no folder {path.parent}; make it first")
    if os.path.isdir(path):
        raise InputError(f"-o {path}: it is a folder")
    if path.suffix.lower() == ".parquet":
        parquet()
