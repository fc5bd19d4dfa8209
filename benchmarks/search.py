"""Speed of the scan against FAISS, both on the same machine in the same run.

    python benchmarks/search.py [--smoke] [--json FILE]

One million random codes of 64 to 512 bits, 100 queries, k = 10 (and others at 128 bits), one thread for both sides,
best of nine, in turn. The peers are IndexBinaryFlat for hamming; fast-scan PQ with as many bits, and fast-scan RaBitQ
with as many dimensions as we have bits, for asymmetric and reconstruction. Codes and vectors are random: the scans'
work does not depend on what they find, but for the few codes that pass the pruning. Our queries are tables that are
made before the clock starts; "with tables" counts the making of them, from integer weights, too.
"""

import ctypes
import os
import resource
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from timing import best, in_turn, options, write_json

from antisparse import _core
from antisparse.codes import scan_blocks

RNG = np.random.default_rng(0)


def bandwidth() -> float:
    """Bytes a second one thread reads from memory: the sum of 256 MB, best of five."""
    data = np.ones(1 << 25, np.int64)
    return data.nbytes / best(5, data.max)


def scales(n: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Per-vector scales as an encoder's: a tenth of spread."""
    padded = np.zeros(-(-n // 32) * 32, np.float32)
    padded[:n] = np.abs(RNG.normal(1, 0.08, n))
    return padded


class Method:
    """One way to search: codes, and queries by integer weights of signs times a unit each."""

    def __init__(self, columns: _core.CodeColumns, weights: Any, units: Any, scaled: bool) -> None:
        self.columns, self.weights, self.units, self.scaled = columns, weights, units, scaled
        self.tables = self.make()
        self.first = self.make(slice(0, 1))

    def make(self, rows: slice = slice(None)) -> _core.QueryTables:
        """The queries as tables; a scaled dot product is s_i (peak - 2 unit D), and the least of 1 less it wins."""
        weights, units = self.weights[rows], self.units[rows]
        tables = _core.sign_tables(weights, weights.shape[1] // 4)
        if not self.scaled:
            return _core.QueryTables(tables, units, np.zeros((len(weights), 1)))
        peaks = np.abs(weights).sum(axis=1, dtype=np.int64) * units
        return _core.QueryTables(tables, 2 * units, np.ones((len(weights), 1)), base=-peaks)

    def search(self, k: int, threads: int = 1) -> Any:
        """By tables made before."""
        return self.columns.search(self.tables, k, threads)

    def whole(self, k: int) -> Any:
        """By tables made now."""
        return self.columns.search(self.make(), k, 1)

    def alone(self, k: int) -> Any:
        """The first query."""
        return self.columns.search(self.first, k, 1)


def table(n: int, queries: int, repeats: int) -> list[dict[str, Any]]:
    """Every method at every length, and several k at 128 bits."""
    rate = bandwidth()
    print(f"{n} codes, {queries} queries, one thread, best of {repeats}; memory reads {rate / 1e9:.1f} GB/s\n")
    names = f"{'ms/query':>9} {'with tables':>11} {'Gcodes/s':>9} {'GB/s':>6}"
    print(f"{'bits':>5} {'k':>5} {'method':>15} {names}  times the peers")
    rows = [row for bits in (64, 128, 256, 512) for row in one_length(bits, n, queries, repeats)]
    print("\nGB/s counts each code once a query: batches share a pass, so it may exceed the memory's.")
    for row in rows:
        if "two_threads" in row:
            print(
                f"128 bits, {row['method']}: two threads {row['two_threads']:.2f} times one; a single query reads "
                f"{row['single_gb_per_s']:.1f} GB/s of the memory's {rate / 1e9:.1f}"
            )
    return rows


def one_length(bits: int, n: int, queries: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The three methods and their peers at one code length."""
    codes = RNG.integers(0, 256, (n, bits // 8), dtype=np.uint8)
    query_codes = RNG.integers(0, 256, (queries, bits // 8), dtype=np.uint8)
    signs, ones = np.unpackbits(query_codes, axis=1).astype(np.int32) * 2 - 1, np.ones(queries)
    weights, units = _core.round_rows(RNG.standard_normal((queries, bits)), 0.0)
    blocks = scan_blocks(codes)
    plain, scaled = _core.CodeColumns(blocks, n), _core.CodeColumns(blocks, n, scales=scales(n))
    methods = {
        "hamming": Method(plain, signs, ones, False),
        "asymmetric": Method(plain, weights, units, False),
        "reconstruction": Method(scaled, weights, units, True),
    }
    flat = faiss.IndexBinaryFlat(bits)
    flat.add(codes)
    peers = {name: real_peer(name, bits, n) for name in (f"PQ{bits // 4}x4fs", "RaBitQfs")}
    Q = RNG.standard_normal((queries, bits)).astype(np.float32)
    for k in (1, 10, 100, 1000) if bits == 128 else (10,):
        jobs: dict[str, Any] = {"IndexBinaryFlat": partial(flat.search, query_codes, k)}
        jobs |= {name: partial(index.search, Q, k) for name, index in peers.items()}
        jobs |= {name: partial(method.search, k) for name, method in methods.items()}
        jobs |= {f"{name} with tables": partial(method.whole, k) for name, method in methods.items()}
        times = in_turn(repeats, jobs)
        for method, ours in methods.items():
            seconds = times[method]
            size = bits // 8 + (4 if ours.scaled else 0)
            row: dict[str, Any] = {"bits": bits, "k": k, "method": method, "ms": seconds / queries * 1e3}
            row["ms_with_tables"] = times[f"{method} with tables"] / queries * 1e3
            row["gcodes_per_s"] = n * queries / seconds / 1e9
            names = ["IndexBinaryFlat"] if method == "hamming" else list(peers)
            row["ratios"] = {name: times[name] / seconds for name in names}
            if bits == 128 and k == 10:
                # A second CPU is the first thing a busy machine takes away: many tries.
                turns: dict[str, Any] = {
                    "one": partial(ours.search, k, 1),
                    "two": partial(ours.search, k, 2),
                    "alone": partial(ours.alone, k),
                    "peer": partial(flat.search, query_codes[:1], k),
                }
                more = in_turn(8 * repeats, turns)
                row["two_threads"] = more["one"] / more["two"]
                row["single_gb_per_s"] = n * size / more["alone"] / 1e9
                if method == "hamming":
                    row["ratios"]["IndexBinaryFlat, a single query"] = more["peer"] / more["alone"]
            text = ", ".join(f"{value:.2f} {name}" for name, value in row["ratios"].items())
            rate = row["gcodes_per_s"]
            both = f"{row['ms']:9.3f} {row['ms_with_tables']:11.3f}"
            print(f"{bits:5d} {k:5d} {method:>15} {both} {rate:9.2f} {rate * size:6.1f}  {text}", flush=True)
            yield row


def real_peer(name: str, d: int, n: int) -> Any:
    """A FAISS index of n random vectors."""
    index = faiss.index_factory(d, name)
    index.train(RNG.standard_normal((max(2000, min(n, 20_000)), d)).astype(np.float32))
    part = RNG.standard_normal((min(n, 100_000), d)).astype(np.float32)
    for start in range(0, n, len(part)):
        index.add(part[: n - start])
    return index


def memory(n: int, queries: int) -> float:
    """MB that searching adds to the peak of the process, above the codes."""
    codes = RNG.integers(0, 256, (n, 16), dtype=np.uint8)
    columns = _core.CodeColumns(scan_blocks(codes), n, scales=scales(n))
    ours = Method(columns, *_core.round_rows(RNG.standard_normal((queries, 128)), 0.0), True)
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    before = resident()
    peak = before
    for k in (10, 1000):
        ours.search(k, 2)
        peak = max(peak, resident())
    return (peak - before) / 2**20


def resident() -> int:
    """Bytes of this process in memory; the peak where the present is not to be had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Run everything and write the numbers."""
    arguments = options(__doc__).parse_args()
    faiss.omp_set_num_threads(1)
    n, queries, repeats = (20_000, 20, 2) if arguments.smoke else (1_000_000, 100, 9)
    extra = memory(n, queries)
    print(f"searching {n} codes with {queries} queries adds {extra:.1f} MB to the process\n")
    write_json(arguments.json, {"faiss": faiss.__version__, "memory_mb": extra, "scan": table(n, queries, repeats)})


if __name__ == "__main__":
    main()
