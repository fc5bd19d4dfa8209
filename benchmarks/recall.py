"""Recall at equal bytes against FAISS, on the same base and queries, in the same run.

    python benchmarks/recall.py [FOLDER ...] [--bytes 8 16 ... | --bits 0.25 1 ...] [--seeds N] [--slow] [--plot FILE]

A folder holds base, learn and query files (docs/datasets.md). Everything is trained on learn; queries are used once, to
report. Ours is LearnedEncoder(n_bytes), nothing else said. Bytes are all that is stored of a vector but its id: what
`codec.n_bytes` says of ours, and `sa_code_size` of FAISS. 1@R is the part of the queries whose true nearest neighbour
is among the first R results, 10@10 the part of the ten true nearest that are among the first ten. The whole base is
scanned, and no float vectors are kept. Rates are of one thread: vectors encoded, and codes scanned (in thousands of
millions, 100 queries, k = 10), a second.
"""

import argparse
import re
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from peers import RaBitQLibrary, ScaNN, make_peer, peers_by_bits, peers_of
from timing import options, save_figure, write_json

from antisparse import CodeBase, LearnedEncoder
from antisparse.datasets import Dataset, read_dataset
from antisparse.evaluation import exact_neighbors, intersection_recall, recall_at

Row = dict[str, Any]
SAMPLE, FEW = 5_000, 100  # vectors that encoding rates are measured on, and queries for those of the scan
DEPTH = 100
THREADS = faiss.omp_get_max_threads()


def ours(data: Dataset, n_bytes: int, seeds: int, effort: Any) -> Row:
    """Our recall, mean and standard deviation over seeds, and the encoding rate of one thread."""
    recalls, base = [], np.asarray(data.base)
    for seed in range(seeds):
        start = time.perf_counter()
        codec = LearnedEncoder(n_bytes, effort=effort, random_state=seed).fit(data.learn).codec_
        trained = time.perf_counter()
        assert codec.n_bytes == n_bytes
        codes = CodeBase(codec, codec.encode(base))
        assert codes.bytes_per_vector == n_bytes
        recalls.append(scores(codes.search(data.query, DEPTH)[1], data))
    row: Row = {
        "name": f"antisparse: {codec.summary}" + f", effort {effort}" * (effort != 2),
        "bytes": n_bytes,
        "recall": np.mean(recalls, axis=0).tolist(),
        "deviation": np.std(recalls, axis=0).tolist(),
        "train_s": trained - start,
        "encode_per_s": rate(lambda X: codec.encode(X, n_threads=1), base[:SAMPLE]),
        "scan_per_s": rate(lambda Q: codes.search(Q, 10, n_threads=1), np.asarray(data.query)[:FEW]) * len(base),
    }
    return row


def peer(name: str, data: Dataset) -> Row:
    """A FAISS index, by its factory name, or another library's."""
    base, learn, query = (np.asarray(X, np.float32) for X in (data.base, data.learn, data.query))
    index, size = make_peer(name, base.shape[1])
    start = time.perf_counter()
    index.train(learn)
    trained = time.perf_counter() - start
    index.add(base)
    recall = scores(index.search(query, DEPTH)[1], data)
    faiss.omp_set_num_threads(1)
    row: Row = {"name": name, "bytes": size or index.code_size, "recall": recall, "train_s": trained}
    row["scan_per_s"] = rate(lambda Q: index.search(Q, 10), query[:FEW]) * len(base)
    if isinstance(index, RaBitQLibrary | ScaNN):  # which encode all that they hold at once
        index, size = make_peer(name, base.shape[1])
        index.train(learn)
    row["encode_per_s"] = rate(index.add, base[:SAMPLE])
    faiss.omp_set_num_threads(THREADS)
    return row


def rate(function: Any, X: npt.NDArray[Any]) -> float:
    """Vectors or queries a second, the best of three."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        function(X)
        seconds.append(time.perf_counter() - start)
    return len(X) / min(seconds)


def scores(ids: npt.NDArray[Any], data: Dataset) -> list[float]:
    """1@1, 1@10, 1@100 and 10@10."""
    neighbors = np.asarray(data.neighbors)
    return [*(recall_at(ids, neighbors, R) for R in (1, 10, 100)), intersection_recall(ids, neighbors, 10)]


def small_set() -> Dataset:
    """Clustered vectors, to see that it runs."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((50, 32)) * np.linspace(3, 0.3, 32)
    parts = [centres[rng.integers(0, 50, n)] + rng.standard_normal((n, 32)) * 0.4 for n in (3000, 2000, 50)]
    base, learn, query = (part.astype(np.float32) for part in parts)
    return Dataset(base, learn, query, exact_neighbors(base, query, 100)[1], "clusters")


def first(data: Dataset, n: int) -> Dataset:
    """The set with the first n vectors of its base, and their own true neighbours."""
    base = np.asarray(data.base)[:n]
    return Dataset(base, data.learn, data.query, exact_neighbors(base, data.query, 100)[1], f"{data.name}, first {n:,}")


def measure(data: Dataset, arguments: argparse.Namespace) -> list[Row]:
    """All methods on one set, printed as they come."""
    base = np.asarray(data.base)
    print(f"\n{data.name}: {len(base):,} x {base.shape[1]}, {len(np.asarray(data.query)):,} queries")
    titles = ("1@1", "1@10", "1@100", "10@10")
    print("bytes " + " ".join(f"{title:>6}" for title in titles) + "  train s  encode/s  Gscan/s  method")
    rows = []
    jobs: list[tuple[str | None, int]] = []
    by_bits = [round(bits * base.shape[1] / 8) for bits in arguments.bits or ()]
    for n_bytes in arguments.bytes or by_bits or ([8, 16, 24, 32] if base.shape[1] <= 128 else [16, 32, 48, 56]):
        jobs += [(None, n_bytes)] + [(name, n_bytes) for name in peers_of(base, n_bytes, arguments.slow)]
    jobs += [(name, 0) for name in (peers_by_bits() if arguments.bits else ["RaBitQ1"])]
    jobs = [job for job in jobs if job[0] is None or re.search(arguments.peers, job[0])]
    if arguments.smoke:
        jobs = [job for job in jobs if job[0] is None or "x8" not in job[0]]
    for name, n_bytes in jobs:
        row = ours(data, n_bytes, arguments.seeds, arguments.effort) if name is None else peer(name, data)
        row["set"] = data.name
        rows.append(row)
        recall = row["recall"]
        spread = ""
        if arguments.seeds > 1 and "deviation" in row:
            spread = " (deviations " + ", ".join(f"{v:.3f}" for v in row["deviation"]) + ")"
        print(
            f"{row['bytes']:5d} " + " ".join(f"{value:6.3f}" for value in recall) + f" {row['train_s']:8.1f} "
            f"{row['encode_per_s']:9.0f} {row['scan_per_s'] / 1e9:8.2f}  {row['name']}{spread}",
            flush=True,
        )
    return rows


def plot(rows: list[Row], path: Path) -> None:
    """1@1 and 10@10 against bytes, one line a kind of method."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(11, 4.5 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), 2, squeeze=False)
    for line, name in zip(axes, sets, strict=True):
        for ax, place, measure in zip(line, (0, 3), ("1@1", "10@10"), strict=True):
            kinds: dict[str, list[tuple[int, float]]] = {}
            for row in rows:
                if row["set"] == name:
                    kinds.setdefault(kind(row["name"]), []).append((row["bytes"], row["recall"][place]))
            for label, points in kinds.items():
                mine = label == "antisparse"
                ax.plot(*zip(*sorted(points), strict=True), "o-", lw=3 if mine else 1.2, label=label)
            sizes = sorted({row["bytes"] for row in rows if row["set"] == name and kind(row["name"]) == "antisparse"})
            ax.set(xlabel="bytes a vector", ylabel=measure, title=name, ylim=(0, 1.02), xscale="log")
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
            ax.grid(True, color="#dddddd")
        line[0].legend(frameon=False)
    save_figure(figure, path)


def kind(name: str) -> str:
    """A method without its sizes."""
    if name.startswith("antisparse"):
        return "antisparse"
    rotated = "OPQ+" if name.startswith("OPQ") else ""
    last = name.split(",")[-1]
    if "ITQ" in name:
        return "ITQ+LSH"
    if "ScaNN" in name:
        return "ScaNN"
    return rotated + ("PQx4fs" if "x4" in last else "".join(c for c in last.split("x")[0] if not c.isdigit()))


def main() -> None:
    """Run everything and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="data sets")
    parser.add_argument("--bytes", nargs="+", type=int, help="8 16 24 32 up to 128 dimensions, 16 32 48 56 beyond")
    parser.add_argument("--bits", nargs="+", type=float, help="bits a dimension, in place of bytes")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--effort", type=int, default=2, choices=(1, 2, 3), help="how long our codes are sought")
    parser.add_argument("--peers", default="", help="those whose names this regular expression finds")
    parser.add_argument("--base", type=int, help="use so many vectors of the base")
    parser.add_argument("--slow", action="store_true", help="residual and local-search quantisers too; they take long")
    parser.add_argument("--plot", type=Path, help="where to draw them")
    arguments = parser.parse_args()
    sets = [read_dataset(folder) for folder in arguments.folders]
    if arguments.base:
        sets = [first(data, arguments.base) for data in sets]
    if arguments.smoke:
        sets, arguments.bytes = [small_set()], [4, 8]
    rows = [row for data in sets for row in measure(data, arguments)]
    if not rows:
        parser.error("name at least one folder with a data set")
    write_json(arguments.json, {"faiss": faiss.__version__, "rows": rows})
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
