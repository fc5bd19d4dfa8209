"""Cost of learned codes in high dimension: learning, encoding and the scan, from 96 to 3,072 dimensions.

    python benchmarks/embeddings.py [--smoke] [--large] [--json FILE] [--plot FILE]

Unit vectors whose variances fall as a power law, one bit a dimension. Encoding is of one thread, beside FAISS RaBitQ
of one bit, the best of several rounds in turn; learning uses all CPUs and runs in a process of its own, whose peak
memory is printed. The scan is beside FAISS PQ fast-scan and RaBitQ fast-scan of as many bits, a million codes, 100
queries, k = 10. --large learns from 50,000 x 1,536 and 100,000 x 3,072 vectors, and does nothing else.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from timing import options, save_figure, write_json

from antisparse import CodeBase, Codec, LearnedEncoder

Row = dict[str, Any]
DIMENSIONS = (96, 192, 384, 768, 1536, 3072)


def power_law(n: int, d: int, seed: int = 0) -> npt.NDArray[np.float16]:
    """Unit vectors, rotated at random by blocks, with variances that fall as 1 / (1 + j)."""
    rng, out = np.random.default_rng(seed), np.empty((n, d), np.float16)
    rotation = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0].astype(np.float32)
    for first in range(0, n, 4096):
        part = rng.standard_normal((len(out[first : first + 4096]), d), np.float32)
        turned = (part / np.sqrt(np.arange(1, d + 1, dtype=np.float32))) @ rotation
        out[first : first + 4096] = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    return out


def learn(vectors: str, n_bytes: int, out: str) -> None:
    """In a process of its own: fit, save, and print seconds and peak memory."""
    X = np.load(vectors, mmap_mode="r")
    start = time.perf_counter()
    encoder = LearnedEncoder(n_bytes, random_state=0, verbose=sys.stderr.isatty()).fit(X)
    seconds = time.perf_counter() - start
    encoder.codec_.save(out)
    print(json.dumps({"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def learned(folder: Path, X: npt.NDArray[Any], n_bytes: int) -> tuple[Codec, Row]:
    """A codec learned by another process, and what that took."""
    np.save(folder / "x.npy", X)
    command = [sys.executable, __file__, "--learn", str(folder / "x.npy"), str(n_bytes), str(folder / "codec")]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Codec.load(folder / "codec"), json.loads(printed)


def learn_large() -> list[Row]:
    """Learning from samples that are read from a memory map, on all CPUs."""
    rows = []
    for n, d, n_bytes in ((50_000, 1536, 192), (100_000, 3072, 384)):
        with tempfile.TemporaryDirectory() as folder:
            codec, took = learned(Path(folder), power_law(n, d), n_bytes)
        rows.append({"n": n, "d": d, "bytes": n_bytes, **took})
        cost = f"{took['seconds']:.0f} s, {took['peak_mb']:.0f} MB at most"
        print(f"{n:,} x {d:,} to {n_bytes} bytes: {cost}; {codec.summary}", flush=True)
    return rows


def rates(jobs: dict[str, Any], n: int, rounds: int) -> dict[str, float]:
    """How many of n each job does in a second: the best of several rounds, in turn."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: n / seconds for name, seconds in best.items()}


def cost(d: int, n_train: int, n: int, rounds: int, folder: Path) -> Row:
    """What d dimensions cost at one bit each."""
    X = power_law(n_train, d)
    codec, took = learned(folder, X, max(d // 8, 2))
    some = X[:n].astype(np.float32)
    fast = with_effort(codec, 1)  # the same codec, whose codes are found with less effort
    rabitq: Any = faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), faiss.IndexRaBitQ(d, faiss.METRIC_L2))
    rabitq.train(some)
    encoded = rates(
        {
            "effort 2": lambda: codec.encode(some, n_threads=1),
            "effort 1": lambda: fast.encode(some, n_threads=1),
            "RaBitQ": lambda: (rabitq.reset(), rabitq.add(some)),
        },
        n,
        rounds,
    )
    row: Row = {"d": d, "bytes": codec.n_bytes, "codec": codec.summary, **took, "encode": encoded}
    print(
        f"{d:5d} {codec.n_bytes:5d}  {took['seconds']:8.1f} {1e6 * took['seconds'] / n_train / d:9.3f} "
        f"{took['peak_mb']:8.0f}  {encoded['effort 2']:9.0f} {1e6 / encoded['effort 2'] / d:9.3f} "
        f"{encoded['effort 1']:9.0f} {encoded['RaBitQ']:9.0f}  {codec.summary}",
        flush=True,
    )
    return row


def with_effort(codec: Codec, effort: int) -> Codec:
    """The codec with another effort."""
    from dataclasses import replace

    symbols: Any = codec.symbols
    if hasattr(symbols, "parts"):
        symbols = replace(symbols, parts=tuple(replace(part, effort=effort) for part in symbols.parts))
    else:
        symbols = replace(symbols, effort=effort)
    return replace(codec, symbols=symbols)


def scan(d: int, n: int, rounds: int) -> Row:
    """Codes scanned a second by one thread, as many bits as dimensions."""
    rng = np.random.default_rng(1)
    X = power_law(min(n, 20_000), d)
    codec = LearnedEncoder(d // 8, train=4000, effort=1, random_state=0).fit(X).codec_
    codes = codec.encode(X)
    codes = codes[rng.integers(0, len(codes), n)]
    base, Q = CodeBase(codec, codes), X[:100].astype(np.float32)
    pq = faiss.index_factory(d, f"PQ{d // 4}x4fs")
    rabitq = faiss.IndexRaBitQFastScan(d, faiss.METRIC_L2)
    for index in (pq, rabitq):
        index.train(X[:5000].astype(np.float32))
        for first in range(0, n, len(X)):
            index.add(X[: min(len(X), n - first)].astype(np.float32))
    found = rates(
        {
            "antisparse": lambda: base.search(Q, 10, n_threads=1),
            "PQ fast-scan": lambda: pq.search(Q, 10),
            "RaBitQ fast-scan": lambda: rabitq.search(Q, 10),
        },
        n * len(Q),
        rounds,
    )
    own = found["antisparse"]
    print(f"{d:5d} bits  {own / 1e9:6.3f} " + " ".join(f"{own / found[k]:17.2f}" for k in list(found)[1:]), flush=True)
    return {"bits": d, "codes_per_s": found}


def plot(rows: list[Row], path: Path) -> None:
    """Microseconds a vector and dimension against the dimension."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    d = [row["d"] for row in rows]
    for name in ("effort 2", "effort 1", "RaBitQ"):
        ax.plot(d, [1e6 / row["encode"][name] / row["d"] for row in rows], "o-", label=f"encoding, {name}")
    ax.set(xscale="log", yscale="log", xlabel="dimensions", ylabel="microseconds a vector and dimension")
    ax.set_xticks(d, [str(value) for value in d])
    ax.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"])
    ax.minorticks_off()
    ax.grid(True, color="#dddddd")
    ax.legend(frameon=False)
    save_figure(figure, path)


def main() -> None:
    """Run everything and write the numbers."""
    if sys.argv[1:2] == ["--learn"]:
        learn(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    parser = options(__doc__)
    parser.add_argument("--dimensions", nargs="+", type=int, default=DIMENSIONS)
    parser.add_argument("--train", type=int, default=20_000, help="training vectors")
    parser.add_argument("--plot", type=Path, help="where to draw them")
    parser.add_argument("--no-scan", action="store_true", help="leave the scan out")
    parser.add_argument("--large", action="store_true", help="learn from large samples, and nothing else")
    arguments = parser.parse_args()
    if arguments.large:
        write_json(arguments.json, {"learned": learn_large()})
        return
    faiss.omp_set_num_threads(1)
    dimensions, n_train, n, rounds = arguments.dimensions, arguments.train, 2000, 5
    if arguments.smoke:
        dimensions, n_train, n, rounds = (32, 64), 1000, 200, 1
    print("    d bytes   learn s  us/(n d)  peak MB  encode/s  us/(n d)  effort 1    RaBitQ")
    with tempfile.TemporaryDirectory() as folder:
        costs = [cost(d, n_train, n, rounds, Path(folder)) for d in dimensions]
    scans = []
    if not arguments.no_scan:
        print("\n           G codes/s  / PQ fast-scan  / RaBitQ fast-scan")
        scans = [scan(d, 2000 if arguments.smoke else 1_000_000, rounds) for d in dimensions if d in (64, 768, 1536)]
    write_json(arguments.json, {"costs": costs, "scans": scans})
    if arguments.plot:
        plot(costs, arguments.plot)


if __name__ == "__main__":
    main()
