"""Speed and recall of an index with cells beside FAISS, and how costs grow with the number of codes.

    python benchmarks/index.py FOLDER [--cells 1024] [--json FILE] [--plot FILE]
    python benchmarks/index.py --growth [--json FILE]
    python benchmarks/index.py --smoke

With a folder (base, learn and query files, docs/datasets.md): recall@10 against queries a second, one thread, all
queries in one call, for FAISS IVF with fast-scan PQ, with 8-bit PQ and with fast-scan RaBitQ, and for our codes of as
many bytes as PQ, all with the same number of cells. The number of a cell is in the order of the codes for all of them,
and not counted. Also filtered search, where one id in a hundred is allowed, beside the same search without a filter.

--growth builds flat indexes and indexes with cells of 10^5, 10^6 and 10^7 codes of random vectors, and prints what they
take: to add, on disk, to open, and to search.
"""

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from timing import best, in_turn, options, save_figure, write_json

from antisparse import Index, LearnedEncoder, Split
from antisparse.datasets import Dataset, read_dataset, synthetic
from antisparse.evaluation import exact_neighbors, recall_at

Row = dict[str, Any]
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
BETWEEN = (3, 5, 6, 7, 9, 12, 24)  # for ours alone, to meet a peer's recall


def compare(data: Dataset, cells: int, probes: tuple[int, ...], between: tuple[int, ...], repeats: int) -> list[Row]:
    """Every method at every number of probes, ours at those between too."""
    base, learn, query = (np.asarray(X, np.float32) for X in (data.base, data.learn, data.query))
    d = base.shape[1]
    truth = exact_neighbors(base, query, 1)[1] if data.neighbors is None else np.asarray(data.neighbors)[:, :1]
    print(f"{data.name}: {len(base):,} x {d}, {len(query):,} queries, {cells} cells, one thread, best of {repeats}\n")
    peers = {}
    for name in (f"IVF{cells},PQ{d // 4}x4fs", f"IVF{cells},PQ{d // 8}x8", f"IVF{cells},RaBitQfs"):
        peers[name] = faiss.index_factory(d, name)
        peers[name].train(learn)
        peers[name].add(base)
    n_bytes = d // 8
    rows: list[Row] = []
    ours: dict[str, Index] = {}
    for split in (Split("signs", cells), Split("signs", cells, scale=True)):
        encoder = LearnedEncoder(n_bytes + (1 if cells <= 256 else 2), split=split, random_state=0).fit(learn)
        codec = encoder.codec_
        ours[f"antisparse, {codec.summary}"] = index = Index.create(None, codec, n_threads=1)
        index.add_codes(codec.encode(base))
    jobs: dict[tuple[int, str], Any] = {}
    for count in sorted(probes + between):
        for name, index in ours.items():
            jobs[count, name] = lambda index=index, count=count: index.search(query, 10, probes=count)
        for name, peer in peers.items() if count in probes else ():
            jobs[count, name] = lambda peer=peer, count=count: probed(peer, query, count)
    recalls = {key: recall_at(job()[1], truth, 10) for key, job in jobs.items()}
    # All in turn, whatever the number of probes, so that rates compare across it; what is soon done more often.
    times = in_turn(repeats, jobs)
    quick = {key: job for key, job in jobs.items() if times[key] < 0.1}
    times |= {key: min(seconds, times[key]) for key, seconds in in_turn(5 * repeats, quick).items()}
    print(f"{'probes':>6} {'recall@10':>9} {'queries/s':>10}  method")
    for (count, name), seconds in times.items():
        row: Row = {"method": name, "probes": count, "recall": recalls[count, name], "per_s": len(query) / seconds}
        rows.append(row)
        print(f"{count:6d} {row['recall']:9.3f} {row['per_s']:10.0f}  {name}")
    for name in peers:
        print(f"\n{name}: our rate where we reach its recall, over its own")
        for row in (row for row in rows if row["method"] == name):
            enough = [r for r in rows if r["method"] in ours and r["recall"] >= row["recall"]]
            best_row = max(enough, key=lambda r: r["per_s"], default=None)
            if best_row is not None:
                row["ratio"] = best_row["per_s"] / row["per_s"]
                print(f"{row['probes']:6d} {row['recall']:9.3f} {row['ratio']:6.2f}  with {best_row['probes']} probes")
    rows += filtered(next(iter(ours.values())), query, repeats)
    return rows


def probed(peer: Any, query: Any, count: int) -> Any:
    """The peer's search of so many cells."""
    faiss.extract_index_ivf(peer).nprobe = count
    return peer.search(query, 10)


def filtered(index: Index, query: Any, repeats: int) -> list[Row]:
    """One id in a hundred allowed, as ids and as a mask."""
    allowed = np.flatnonzero(np.random.default_rng(0).random(len(index)) < 0.01)
    mask = np.zeros(len(index), bool)
    mask[allowed] = True
    filters = {"no filter": None, "ids, 1 %": allowed, "mask, 1 %": mask}
    jobs: dict[str, Any] = {
        f"{name}, {probes} probes": lambda f=f, probes=probes: index.search(query, 10, probes=probes, filter=f)
        for name, f in filters.items()
        for probes in (min(32, index.cells), "all")
    }
    print()
    rows = []
    for name, seconds in in_turn(repeats, jobs).items():
        rows.append({"method": name, "per_s": len(query) / seconds})
        print(f"{len(query) / seconds:10.0f} queries/s  {name}")
    return rows


def growth(sizes: tuple[int, ...], cells: int) -> list[Row]:
    """Costs at several sizes: 120 signs and a bias byte of 32-dimensional vectors, made in parts."""
    rows = []
    columns = {
        "codes": 9,
        "cells": 6,
        "add/s": 9,
        "batch s": 8,
        "disk B": 7,
        "open ms": 8,
        "open MB": 8,
        "queries/s": 10,
    }
    print("\n" + " ".join(f"{name:>{width}}" for name, width in columns.items()))
    learn = np.random.default_rng(0).standard_normal((max(20_000, 50 * cells), 32)).astype(np.float32)
    query = np.random.default_rng(1).standard_normal((100, 32)).astype(np.float32)
    for means in (1, cells):
        n_bytes = 16 if means == 1 else 17 if means <= 256 else 18
        encoder = LearnedEncoder(n_bytes, split=Split("signs", means), effort=1, random_state=0).fit(learn)
        for n in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "index")
                rng = np.random.default_rng(2)
                with Index.create(path, encoder) as index:
                    start = time.perf_counter()
                    steps = range(0, n, 100_000)
                    index.add(rng.standard_normal((min(100_000, n - at), 32)).astype(np.float32) for at in steps)
                    added = time.perf_counter() - start
                    start = time.perf_counter()
                    index.add(rng.standard_normal((1000, 32)).astype(np.float32))
                    batch = time.perf_counter() - start
                    size = index.stats()["disk_bytes_per_vector"]
                opened = best(5, Index.open, path, read_only=True)
                gc.collect()
                before = anonymous()
                index = Index.open(path, read_only=True, n_threads=1)
                private = max(anonymous() - before, 0)  # less where something else was freed
                probes: Any = "all" if means == 1 else 16
                seconds = best(3, index.search, query, 10, probes=probes)
                row: Row = {"codes": n, "cells": means, "add_per_s": n / added, "batch_s": batch, "disk_bytes": size}
                row |= {"open_ms": opened * 1e3, "open_mb": private / 2**20, "per_s": len(query) / seconds}
                rows.append(row)
                print(
                    f"{n:9d} {means:6d} {row['add_per_s']:9.0f} {batch:8.3f} {size:7.1f} {row['open_ms']:8.1f} "
                    f"{row['open_mb']:8.1f} {row['per_s']:10.0f}",
                    flush=True,
                )
    print("\nadd: all threads; batch: 1,000 vectors more, on disk; queries: one thread, 16 probes of those with cells.")
    return rows


def anonymous() -> int:
    """Bytes of memory that are this process' own, mapped files left out; 0 where that is not to be had."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)


def plot(rows: list[Row], path: Path) -> None:
    """Queries a second against recall, one line a method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    for name in dict.fromkeys(row["method"] for row in rows if "recall" in row):
        points = [(row["recall"], row["per_s"]) for row in rows if row["method"] == name]
        ax.plot(*zip(*points, strict=True), "o-", lw=3 if name.startswith("antisparse") else 1.2, label=name)
    ax.set(xlabel="recall@10", ylabel="queries a second, one thread", yscale="log")
    ax.grid(True, color="#dddddd")
    ax.legend(frameon=False)
    save_figure(figure, path)


def main() -> None:
    """Run what was asked for and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--growth", action="store_true", help="10^5 to 10^7 codes")
    parser.add_argument("--plot", type=Path, help="where to draw the comparison")
    arguments: argparse.Namespace = parser.parse_args()
    faiss.omp_set_num_threads(1)
    numbers: dict[str, Any] = {"faiss": faiss.__version__}
    if arguments.smoke:
        numbers["cells"] = compare(synthetic(3000, 32, 50, 2000), 16, (1, 4, 16), (2,), 1)
        numbers["growth"] = growth((2000, 4000), 8)
    if arguments.folder:
        numbers["cells"] = compare(read_dataset(arguments.folder), arguments.cells, PROBES, BETWEEN, 5)
    if arguments.growth:
        numbers["growth"] = growth((10**5, 10**6, 10**7), 1024)
    if len(numbers) == 1:
        parser.error("name a folder with a data set, or --growth, or --smoke")
    write_json(arguments.json, numbers)
    if arguments.plot and "cells" in numbers:
        plot(numbers["cells"], arguments.plot)


if __name__ == "__main__":
    main()
