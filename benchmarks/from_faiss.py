"""What the guide "from FAISS" says in numbers: factory strings, and the index that takes their place, in the same run.

    taskset -c 1 python benchmarks/from_faiss.py FOLDER [--base 200000] [--slow] [--json FILE]

A folder holds base, learn and query files (docs/datasets.md). Everything is trained on learn. 1@10
is the part of the queries whose true nearest neighbour is among the first ten results, 10@10 the part of the ten true
nearest that are among the first ten. Bytes are all that is stored of a vector but its id; the number of a cell is in
the order of the codes for both, and is not counted. Seconds of training, vectors added a second (the whole base), and
queries a second (100 in one call, k = 10, best of five) are of CPU time: one thread does all, and what else runs on the
machine disturbs it little.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import faiss
import numpy as np
from peers import make_peer
from recall import FEW, first, small_set
from timing import in_turn, options, write_json

from antisparse import Index, LearnedEncoder
from antisparse.datasets import Dataset, read_dataset
from antisparse.evaluation import intersection_recall, recall_at

Row = dict[str, Any]
PROBES = 16


def strings(d: int, cells: int, slow: bool, bits: int) -> list[tuple[str, int]]:
    """Factory strings for d dimensions, and the bytes of the codes that take their place."""
    n_bytes = d // 8
    product = f"PQ{n_bytes}x{bits}"
    names = [product, f"PQ{2 * n_bytes}x4fs", f"ITQ{8 * n_bytes},LSH", "RaBitQ1", f"IVF{cells},{product}"]
    names += [f"OPQ{n_bytes},{product}"] * slow
    return [(name, n_bytes) for name in names] + [(name, d // 2) for name in ("SQ4", "SQ8", "Flat")]


def theirs(name: str, data: Dataset) -> Row:
    """A FAISS index."""
    base, learn = (np.asarray(X, np.float32) for X in (data.base, data.learn))
    index, size = make_peer(name, base.shape[1])
    if name.startswith("IVF"):
        cells = faiss.extract_index_ivf(index)
        cells.nprobe, size = PROBES, cells.code_size  # without the number of the cell
    start = process_time()
    index.train(learn)
    trained = process_time()
    index.add(base)
    added = process_time()
    row: Row = {"name": name, "bytes": size or index.code_size, "train_s": trained - start}
    row["add_per_s"] = len(base) / (added - trained)
    return row | asked(lambda Q, k: index.search(Q, k), data)


def ours(n_bytes: int, cells: int, data: Dataset) -> Row:
    """Our index of codes of as many bytes, those of the number of the cell aside."""
    probes: Any = "all" if cells == 1 else PROBES
    beside = 0 if cells == 1 else 1 if cells <= 256 else 2
    encoder = LearnedEncoder(n_bytes + beside, cells=None if cells == 1 else cells, random_state=0, n_threads=1)
    start = process_time()
    codec = encoder.fit(data.learn).codec_
    trained = process_time()
    index = Index.create(None, codec, n_threads=1)
    index.add(np.asarray(data.base))
    added = process_time()
    name = f"antisparse, {codec.summary}"
    row: Row = {"name": name, "bytes": n_bytes, "train_s": trained - start, "add_per_s": len(index) / (added - trained)}
    return row | asked(lambda Q, k: index.search(Q, k, probes=probes), data)


def asked(search: Any, data: Dataset) -> Row:
    """Recall over all queries, and the rate of a few."""
    queries, neighbors = np.asarray(data.query, np.float32), np.asarray(data.neighbors)
    ids = search(queries, 10)[1]
    few = queries[:FEW]
    seconds = in_turn(5, {"search": lambda: search(few, 10)}, process_time)["search"]
    return {
        "recall": recall_at(ids, neighbors, 10),
        "intersection": intersection_recall(ids, neighbors, 10),
        "queries_per_s": len(few) / seconds,
    }


def measure(data: Dataset, cells: int, slow: bool, bits: int) -> list[Row]:
    """All rows of a set, printed as they come: each of ours stands below those whose place it takes."""
    base = np.asarray(data.base)
    print(f"\n{data.name}: {len(base):,} x {base.shape[1]}, {len(np.asarray(data.query)):,} queries, one thread")
    print(" bytes   1@10  10@10  train s    added/s  queries/s  index")
    pairs, rows = strings(base.shape[1], cells, slow, bits), []
    groups = dict.fromkeys((n_bytes, cells if name.startswith("IVF") else 1) for name, n_bytes in pairs)
    for n_bytes, in_cells in groups:
        names = [name for name, size in pairs if size == n_bytes and name.startswith("IVF") == (in_cells > 1)]
        for name in [*names, None]:
            row = ours(n_bytes, in_cells, data) if name is None else theirs(name, data)
            row |= {"set": data.name, "place_of": names if name is None else [], "cells": in_cells}
            rows.append(row)
            probed = f", {PROBES} of {in_cells} cells" * (in_cells > 1)
            print(
                f"{row['bytes']:6d} {row['recall']:6.3f} {row['intersection']:6.3f} {row['train_s']:8.1f} "
                f"{row['add_per_s']:10,.0f} {row['queries_per_s']:10,.0f}  {row['name']}{probed}",
                flush=True,
            )
    return rows


def main() -> None:
    """Run everything and write the numbers."""
    parser: argparse.ArgumentParser = options(__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="data sets")
    parser.add_argument("--base", type=int, help="use so many vectors of the base")
    parser.add_argument("--cells", type=int, default=1024, help="cells of both sides where there are some")
    parser.add_argument("--slow", action="store_true", help="the rotated product quantiser too, which trains for long")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    sets = [read_dataset(folder) for folder in arguments.folders]
    if arguments.base:
        sets = [first(data, arguments.base) if len(data.base) > arguments.base else data for data in sets]
    if arguments.smoke:
        sets, arguments.cells = [small_set()], 16
    if not sets:
        parser.error("name at least one folder with a data set")
    bits = 4 if arguments.smoke else 8  # of a codebook of product quantisers, which train quickly with 4
    rows = [row for data in sets for row in measure(data, arguments.cells, arguments.slow, bits)]
    write_json(arguments.json, {"faiss": faiss.__version__, "rows": rows})


if __name__ == "__main__":
    main()
