"""Recall at equal bytes against FAISS, on the same base and queries, in the same run.

    python benchmarks/recall.py [FOLDER ...] [--bytes 8 16 ...] [--seeds N] [--base N] [--slow] [--plot FILE]

A folder holds base, learn and query files (docs/datasets.md). Everything is trained on learn; queries are used once, to
report. Bytes are all that is stored of a vector but its id: bits, mean, scale and bias for us, what `sa_code_size` says
for FAISS. The whole base is scanned, and no float vectors are kept. Rates are of one thread: vectors encoded,
and codes scanned (in thousands of millions, 100 queries, k = 10), a second.
"""

import argparse
import re
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from timing import options, write_json

from antisparse import AntiSparseEncoder, CodeBase
from antisparse.datasets import Dataset, read_dataset
from antisparse.evaluation import exact_neighbors, recall_at

Row = dict[str, Any]
SAMPLE, FEW = 5_000, 100  # vectors that encoding rates are measured on, and queries for those of the scan
DEPTH = 100
THREADS = faiss.omp_get_max_threads()


def split(n_bytes: int, learn: int) -> dict[str, Any]:
    """How bytes are split: rules found on learning vectors alone.

    Words up to 16 bytes, half a byte of bias in 8. Beyond, signs; with a mean where there are some 80 learning vectors
    for each, or they fit these and not the base, and then with a scale.
    """
    if n_bytes <= 8:
        return {"frame": "words", "n_bits": 8 * n_bytes - 4, "bias": "half"}
    if n_bytes <= 16:
        return {"frame": "words", "n_bits": 8 * (n_bytes - 1)}
    means = 256 if learn >= 80 * 256 else 1
    return {"n_bits": 8 * (n_bytes - 1 - 2 * (means > 1)), "means": means, "scale": means > 1}


def ours(data: Dataset, n_bytes: int, seeds: int) -> Row:
    """Our recall, mean and standard deviation over seeds, and the encoding rate of one thread."""
    recalls, base = [], np.asarray(data.base)
    parameters = split(n_bytes, len(np.asarray(data.learn)))
    for seed in range(seeds):
        start = time.perf_counter()
        encoder = AntiSparseEncoder(**parameters, random_state=seed).fit(data.learn)
        trained = time.perf_counter()
        codes = CodeBase(encoder, encoder.transform(base))
        assert codes.bytes_per_vector == n_bytes
        recalls.append(scores(codes.search(data.query, DEPTH)[1], data))
    encoder.set_params(n_threads=1)
    row: Row = {
        "name": "antisparse " + " ".join(f"{key}={value}" for key, value in parameters.items()),
        "bytes": n_bytes,
        "recall": np.mean(recalls, axis=0).tolist(),
        "deviation": np.std(recalls, axis=0).tolist(),
        "train_s": trained - start,
        "encode_per_s": rate(encoder.transform, base[:SAMPLE]),
        "scan_per_s": rate(lambda Q: codes.search(Q, 10, n_threads=1), np.asarray(data.query)[:FEW]) * len(base),
    }
    return row


def peer(name: str, data: Dataset) -> Row:
    """A FAISS index, by its factory name."""
    base, learn, query = (np.asarray(X, np.float32) for X in (data.base, data.learn, data.query))
    d = base.shape[1]
    if name.startswith("RaBitQ"):
        inner: Any = faiss.IndexRaBitQ(d, faiss.METRIC_L2, int(name[6:]))
        inner.qb = 8
        index: Any = faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), inner)
        size = inner.code_size
    else:
        index = faiss.index_factory(d, name)
        size = index.sa_code_size()
    start = time.perf_counter()
    index.train(learn)
    trained = time.perf_counter() - start
    index.add(base)
    recall = scores(index.search(query, DEPTH)[1], data)
    faiss.omp_set_num_threads(1)
    row: Row = {"name": name, "bytes": size, "recall": recall, "train_s": trained}
    row["scan_per_s"] = rate(lambda Q: index.search(Q, 10), query[:FEW]) * len(base)
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
    """recall@1, @10 and @100."""
    return [recall_at(ids, np.asarray(data.neighbors), R) for R in (1, 10, 100)]


def peers_of(d: int, n_bytes: int, slow: bool) -> list[str]:
    """Who stores so many bytes."""
    names = []
    if d % (2 * n_bytes) == 0:
        names += [f"PQ{2 * n_bytes}x4fs"] + [f"OPQ{2 * n_bytes},PQ{2 * n_bytes}x4fs"] * (n_bytes <= 16)
    if d % n_bytes == 0:
        names += [f"PQ{n_bytes}x8", f"OPQ{n_bytes},PQ{n_bytes}x8"]
    if 8 * n_bytes <= d:
        names.append(f"ITQ{8 * n_bytes},LSH")
    if slow and n_bytes <= 16:
        names += [f"RQ{n_bytes}x8", f"LSQ{n_bytes}x8"]
    return names


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
    return Dataset(base, data.learn, data.query, exact_neighbors(base, data.query, 1)[1], f"{data.name}, first {n:,}")


def measure(data: Dataset, arguments: argparse.Namespace) -> list[Row]:
    """All methods on one set, printed as they come."""
    base = np.asarray(data.base)
    print(f"\n{data.name}: {len(base):,} x {base.shape[1]}, {len(np.asarray(data.query)):,} queries")
    print(f"{'bytes':>5} {'recall@1':>9} {'@10':>6} {'@100':>6} {'train s':>8} {'encode/s':>9} {'Gscan/s':>8}  method")
    rows = []
    jobs: list[tuple[str | None, int]] = []
    for n_bytes in arguments.bytes or ([8, 16, 24, 32] if base.shape[1] <= 128 else [16, 32, 56]):
        jobs += [(None, n_bytes)] + [(name, n_bytes) for name in peers_of(base.shape[1], n_bytes, arguments.slow)]
    jobs += [("RaBitQ1", 0)]
    jobs = [job for job in jobs if job[0] is None or re.search(arguments.peers, job[0])]
    if arguments.smoke:
        jobs = [job for job in jobs if job[0] is None or "x8" not in job[0]]
    for name, n_bytes in jobs:
        row = ours(data, n_bytes, arguments.seeds) if name is None else peer(name, data)
        row["set"] = data.name
        rows.append(row)
        recall = row["recall"]
        spread = "".join(f" ±{v:.3f}" for v in row.get("deviation", [])[:2]) if arguments.seeds > 1 else ""
        print(
            f"{row['bytes']:5d} {recall[0]:9.3f} {recall[1]:6.3f} {recall[2]:6.3f} {row['train_s']:8.1f} "
            f"{row['encode_per_s']:9.0f} {row['scan_per_s'] / 1e9:8.2f}  {row['name']}{spread}",
            flush=True,
        )
    return rows


def plot(rows: list[Row], path: Path) -> None:
    """recall@1 and @10 against bytes, one line a kind of method."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(11, 4.5 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), 2, squeeze=False)
    for line, name in zip(axes, sets, strict=True):
        for ax, place, R in zip(line, (0, 1), (1, 10), strict=True):
            kinds: dict[str, list[tuple[int, float]]] = {}
            for row in rows:
                if row["set"] == name:
                    kinds.setdefault(kind(row["name"]), []).append((row["bytes"], row["recall"][place]))
            for label, points in kinds.items():
                mine = label == "antisparse"
                ax.plot(*zip(*sorted(points), strict=True), "o-", lw=3 if mine else 1.2, label=label)
            ax.set(xlabel="bytes a vector", ylabel=f"recall@{R}", title=name, ylim=(0, 1.02))
            ax.grid(True, color="#dddddd")
        line[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"picture: {path}")


def kind(name: str) -> str:
    """A method without its sizes."""
    if name.startswith("antisparse"):
        return "antisparse"
    rotated = "OPQ+" if name.startswith("OPQ") else ""
    last = name.split(",")[-1]
    if "ITQ" in name:
        return "ITQ+LSH"
    return rotated + ("PQx4fs" if "x4" in last else "".join(c for c in last.split("x")[0] if not c.isdigit()))


def main() -> None:
    """Run everything and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="data sets")
    parser.add_argument("--bytes", nargs="+", type=int, help="8 16 24 32 up to 128 dimensions, 16 32 56 beyond")
    parser.add_argument("--seeds", type=int, default=1)
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
