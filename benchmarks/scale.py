"""What 10^9 vectors would take, from constants that are measured here (docs/scale.md).

    python benchmarks/scale.py [--smoke] [--json FILE]

Vectors whose variances fall as a power law, of 128 dimensions in 16 bytes and of 1,536 in 192, one thread, CPU seconds,
the best of several runs. Measured: learning; a task of a build, from a Parquet file to a staged segment; bytes on the
disk; a query, which is a fixed part, a part for every segment, and a part for every code that it visits; and, where Ray
is installed, what it takes to ask shards in place of one process. Codes beyond the first are drawn from those that were
encoded. Computed from these: a build, memory, and queries a second, with units of a million rows.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from timing import options, write_json

from antisparse import Codec, Index
from antisparse.cluster import ShardedIndex, build
from antisparse.index import commit, stage
from antisparse.index.build import Learning
from antisparse.index.segment import make_segment
from antisparse.index.snapshot import Snapshot
from antisparse.scan.search import Search, Searcher

KINDS = ((128, 16), (1536, 192))  # dimensions, bytes
PROBES = (1, 4, 16, 64)
UNIT, TOTAL, THREADS = 1_000_000, 10**9, 16  # rows of a segment, vectors, threads of a machine
CALL = 100  # queries in one call


def power_law(n: int, d: int, seed: int) -> npt.NDArray[np.float32]:
    """Unit vectors with variances that fall as 1 / (1 + j)."""
    X = np.random.default_rng(seed).standard_normal((n, d), np.float32) / np.sqrt(np.arange(1, d + 1, dtype=np.float32))
    unit: npt.NDArray[np.float32] = X / np.linalg.norm(X, axis=1, keepdims=True)
    return unit


def cpu(repeats: int, deed: Callable[[], Any]) -> float:
    """CPU seconds of the cheapest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        deed()
        times.append(time.process_time() - start)
    return min(times)


def staged(folder: Path, X: npt.NDArray[np.float32], codec: Codec) -> float:
    """CPU seconds a vector of a build by one process: read, encode, write, commit."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])
    pq.write_table(pa.table({"vector": column}), folder / "x.parquet")
    places = iter([folder / "first", folder / "second"])
    return cpu(2, lambda: build(folder / "x.parquet", next(places), codec=codec, engine=map)) / len(X)


def spread_out(codec: Codec, rows: npt.NDArray[np.uint8], count: int, segments: int) -> Snapshot:
    """An index in memory of `count` codes, drawn from some, in so many segments."""
    random = np.random.default_rng(count)
    parts = np.array_split(np.arange(count), segments)
    made = (make_segment(codec, rows[random.integers(len(rows), size=len(part))], part) for part in parts)
    return Snapshot(Searcher(codec), tuple(made))


def visited(index: Snapshot, Q: npt.NDArray[np.float32], probes: int | None) -> float:
    """The places of codes that a query visits, on average; blocks of 32 are not always full."""
    codec = index.codec
    sizes = np.zeros(codec.n_cells)
    for segment in index.segments:
        ends = segment.columns.cell_ends
        assert ends is not None
        sizes += 32 * np.diff(ends, prepend=0)
    if probes is None:
        return float(sizes.sum())
    assert codec.cells is not None
    means = codec.cells.means
    y = codec.reduction.reduce(codec.queries(Q), 1)
    nearest = np.argsort((means * means).sum(axis=1) - 2 * y @ means.T, axis=1)[:, :probes]
    return float(sizes[nearest].sum(axis=1).mean())


def fitted(lines: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Seconds of a query, of a segment of it, and of a code that it visits, from (segments, codes, seconds)."""
    table = np.array(lines)
    columns = np.column_stack([np.ones(len(table)), table[:, 0], table[:, 1]]) / table[:, 2:]
    found = np.linalg.lstsq(columns, np.ones(len(table)), rcond=None)[0]  # relative errors
    return tuple(np.maximum(found, 0.0))


def measure(folder: Path, d: int, n_bytes: int, smoke: bool) -> dict[str, Any]:
    """The constants of one kind of vectors."""
    train, n = (3000, 3000) if smoke else (100_000, 200_000 if d < 1000 else 30_000)
    counts = (4000, 8000) if smoke else (250_000, 1_000_000)
    cells = 16 if smoke else 2048
    X, Q = power_law(train, d, 0), power_law(CALL, d, 1)
    start = time.perf_counter()
    codec = Learning(n_bytes, cells=cells, train=train, random_state=0).codec(X, "X", TOTAL, False, None)
    learning = time.perf_counter() - start
    X = power_law(n, d, 2)
    rows = codec.encode(X)
    seconds = staged(folder, X[: 2000 if smoke else 20_000], codec)
    whole = make_segment(
        codec, rows[np.random.default_rng(0).integers(len(rows), size=max(counts))], np.arange(max(counts))
    )
    on_disk = sum(len(part) for part in whole.pack()[0]) / max(counts)
    lines, rates = [], {}
    for count, segments in ((counts[1], 16), (counts[0], 1), (counts[1], 1)):
        index = spread_out(codec, rows, count, segments)
        for probes in (*PROBES, None):
            what = Search(10, probes=probes)
            one = cpu(2 if smoke else 5, partial(index.search, Q, what, None, 1)) / len(Q)
            lines.append((segments, visited(index, Q, probes), one))
            rates[f"{count} codes, {segments} segments, {probes or 'all'} probes"] = round(1 / one, 1)
    fixed, a_segment, a_code = fitted(lines)
    share = {str(probes or "all"): visited(index, Q, probes) / len(index) for probes in (*PROBES, None)}  # of a unit
    return {
        "dimensions": d,
        "bytes": n_bytes,
        "cells": cells,
        "learn_s": round(learning, 1),
        "vectors_a_second": round(1 / seconds),
        "disk_bytes": round(on_disk, 2),
        "query_us": round(1e6 * fixed, 1),
        "segment_us": round(1e6 * a_segment, 2),
        "code_ns": round(1e9 * a_code, 4),
        "share_visited": {probes: round(part, 5) for probes, part in share.items()},
        "queries_a_second": rates,
    }


def shards(folder: Path, smoke: bool) -> list[dict[str, float]]:
    """Milliseconds that a call takes more with shards than in this process: a small index, so that it is the way."""
    if find_spec("ray") is None:
        print("Ray is not installed: what asking shards takes is not measured")
        return []
    X = power_law(4000, 128, 3)
    path = folder / "sharded"
    Index.create(path, Learning(16, cells=1, train=2000, random_state=0).codec(X, "X", len(X), False, None)).close()
    commit(path, [stage(path, X[at : at + 500], np.arange(at, at + 500)) for at in range(0, 4000, 500)])
    lines = []
    with Index.open(path, read_only=True, n_threads=1) as index:
        for count in (1, 2, 4):
            with ShardedIndex(path, shards=count, cpus=0.25, n_threads=1) as sharded:
                for queries in (1, CALL):
                    repeats = 20 if smoke else 300
                    here: list[float] = []
                    there: list[float] = []
                    for _ in range(repeats):
                        for asked, times in ((index, here), (sharded, there)):
                            start = time.perf_counter()
                            asked.search(X[:queries], 10)
                            times.append(time.perf_counter() - start)
                    more = 1000 * float(np.median(there) - np.median(here))
                    lines.append({"shards": count, "queries": queries, "ms_more": round(more, 2)})
    return lines


def computed(found: dict[str, Any]) -> None:
    """What 10^9 such vectors would take."""
    hours = TOTAL / found["vectors_a_second"] / 3600
    print(
        f"  10^9 vectors: {hours:,.0f} CPU hours to build, {hours / THREADS:,.1f} hours of a machine of {THREADS} "
        f"threads; {TOTAL * found['disk_bytes'] / 1e9:,.0f} GB on the disk, and in memory if all is searched"
    )
    print(f"  queries a second, of machines of {THREADS} threads, a shard each:")
    print(f"  {'shards':>8}" + "".join(f"{f'{probes} probes':>12}" for probes in PROBES) + f"{'all cells':>12}")
    found["computed"] = {}
    for count in (4, 16, 64):
        rates = []
        for probes in (*PROBES, None):
            share = found["share_visited"][str(probes or "all")]
            segments = TOTAL / UNIT / count
            one = 1e-6 * (found["query_us"] + segments * found["segment_us"])
            one += 1e-9 * found["code_ns"] * share * TOTAL / count
            rates.append(THREADS / one)
        found["computed"][str(count)] = [round(rate, 1) for rate in rates]
        print(f"  {count:8}" + "".join(f"{rate:12,.1f}" if rate < 100 else f"{rate:12,.0f}" for rate in rates))


def main() -> None:
    """Print the constants, and what follows from them."""
    arguments = options(__doc__).parse_args()
    kinds = []
    with tempfile.TemporaryDirectory() as name:
        for d, n_bytes in ((32, 8),) if arguments.smoke else KINDS:
            folder = Path(name, str(d))
            folder.mkdir()
            kinds.append(found := measure(folder, d, n_bytes, arguments.smoke))
            print(
                f"{d} dimensions in {n_bytes} bytes, {found['cells']:,} cells: learned in {found['learn_s']:,} s (all "
                f"threads); {found['vectors_a_second']:,} vectors a second and thread from Parquet to a segment; "
                f"{found['disk_bytes']} bytes on the disk;\n  a query {found['query_us']} us, a segment "
                f"{found['segment_us']} us, a code {found['code_ns']} ns; cells visited hold "
                + ", ".join(f"{100 * part:.2f} % ({probes})" for probes, part in found["share_visited"].items()),
                flush=True,
            )
            computed(found)
        asked = shards(Path(name), arguments.smoke)
    for line in asked:
        print(f"{line['shards']} shards, {line['queries']} queries a call: {line['ms_more']} ms more than one process")
    write_json(arguments.json, {"kinds": kinds, "shards": asked})


if __name__ == "__main__":
    main()
