"""Speed of the scan against FAISS, both on the same machine in the same run.

    python benchmarks/search.py [--smoke] [--json FILE]

One million random codes of 64 to 512 bits, 100 queries, k = 10 (and others at 128 bits), one thread for both sides, best
of five. The peers are IndexBinaryFlat for hamming; fast-scan PQ with as many bits, and fast-scan RaBitQ with as many
dimensions as we have bits, for asymmetric and reconstruction. Random codes and vectors: the scans' work does not depend on
what they find, but for the few codes that pass the pruning.
"""

import argparse
import ctypes
import os
import resource
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from timing import best, write_json

from antisparse import _core
from antisparse.codes import scan_blocks
from antisparse.search import round_weights

RNG = np.random.default_rng(0)


def bandwidth() -> float:
    """Bytes a second one thread reads from memory: the sum of 256 MB, best of five."""
    data = np.ones(1 << 25, np.int64)
    return data.nbytes / best(lambda: data.max(), 5)


def terms(n: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Per-vector scales as an encoder's: a tenth of spread."""
    padded = np.zeros(-(-n // 32) * 32, np.float32)
    padded[:n] = -np.abs(RNG.normal(1, 0.08, n))
    return padded


def table(n: int, queries: int, repeats: int) -> list[dict[str, Any]]:
    """Every method at every length, and several k at 128 bits."""
    rows = []
    rate = bandwidth()
    print(f"{n} codes, {queries} queries, one thread, best of {repeats}; memory reads {rate / 1e9:.1f} GB/s\n")
    print(f"{'bits':>5} {'k':>5} {'method':>15} {'ms/query':>9} {'Gcodes/s':>9} {'GB/s':>6}  times the peers")
    units = np.ones(queries)
    for bits in (64, 128, 256, 512):
        codes = RNG.integers(0, 256, (n, bits // 8), dtype=np.uint8)
        query_codes = RNG.integers(0, 256, (queries, bits // 8), dtype=np.uint8)
        signs = np.unpackbits(query_codes, axis=1).astype(np.int32) * 2 - 1
        weights, weight_units = round_weights(RNG.standard_normal((queries, bits)))
        blocks = scan_blocks(codes)
        plain = _core.ScanBase(blocks, n, bits, None, None, 0.0)
        termed = _core.ScanBase(blocks, n, bits, terms(n), None, 1.0)
        flat = faiss.IndexBinaryFlat(bits)
        flat.add(codes)
        peers = {}
        for name, d in ((f"PQ{bits // 4}x4fs", bits), ("RaBitQfs", bits)):
            index = faiss.index_factory(d, name)
            index.train(RNG.standard_normal((max(2000, min(n, 20_000)), d)).astype(np.float32))
            part = RNG.standard_normal((min(n, 100_000), d)).astype(np.float32)
            for start in range(0, n, len(part)):
                index.add(part[: n - start])
            peers[name] = index, RNG.standard_normal((queries, d)).astype(np.float32)
        for k in (1, 10, 100, 1000) if bits == 128 else (10,):
            calls: dict[str, Any] = {
                "hamming": lambda k=k, count=queries, threads=1: plain.search(signs[:count], units[:count], k, threads),
                "asymmetric": lambda k=k, count=queries, threads=1: plain.search(
                    weights[:count], weight_units[:count], k, threads
                ),
                "reconstruction": lambda k=k, count=queries, threads=1: termed.search(
                    weights[:count], weight_units[:count], k, threads
                ),
            }
            peer_times = {
                name: best(lambda index=index, Q=Q, k=k: index.search(Q, k), repeats)  # type: ignore[misc]
                for name, (index, Q) in peers.items()
            }
            binary = best(lambda k=k: flat.search(query_codes, k), repeats)  # type: ignore[misc]
            for method, call in calls.items():
                seconds = best(call, repeats)
                ratios = {"IndexBinaryFlat": binary / seconds}
                if method != "hamming":
                    ratios = {name: value / seconds for name, value in peer_times.items()}
                size = bits // 8 + (4 if method == "reconstruction" else 0)
                row = {"bits": bits, "k": k, "method": method, "ms": seconds / queries * 1e3, "ratios": ratios}
                row["gcodes_per_s"] = n * queries / seconds / 1e9
                if bits == 128 and k == 10:
                    alone = best(lambda call=call: call(count=1), 4 * repeats)  # type: ignore[misc]
                    row["two_threads"] = seconds / best(lambda call=call: call(threads=2), repeats)  # type: ignore[misc]
                    row["single_gb_per_s"] = n * size / alone / 1e9
                    if method == "hamming":
                        peer = best(lambda k=k: flat.search(query_codes[:1], k), 4 * repeats)  # type: ignore[misc]
                        ratios["IndexBinaryFlat, a single query"] = peer / alone
                rows.append(row)
                text = ", ".join(f"{value:.2f} {name}" for name, value in ratios.items())
                print(
                    f"{bits:5d} {k:5d} {method:>15} {row['ms']:9.3f} {row['gcodes_per_s']:9.2f} "
                    f"{row['gcodes_per_s'] * size:6.1f}  {text}"
                )
    print("\nGB/s counts each code once a query: batches share a pass, so it may exceed the memory's.")
    for row in rows:
        if "two_threads" in row:
            print(
                f"128 bits, {row['method']}: two threads {row['two_threads']:.2f} times one; a single query reads "
                f"{row['single_gb_per_s']:.1f} GB/s of the memory's {rate / 1e9:.1f}"
            )
    return rows


def memory(n: int, queries: int) -> float:
    """MB that searching adds to the peak of the process, above the codes."""
    codes = RNG.integers(0, 256, (n, 16), dtype=np.uint8)
    base = _core.ScanBase(scan_blocks(codes), n, 128, terms(n), None, 1.0)
    weights, units = round_weights(RNG.standard_normal((queries, 128)))
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    before = resident()
    peak = before
    for k in (10, 1000):
        base.search(weights, units, k, 2)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    n, queries, repeats = (20_000, 20, 2) if arguments.smoke else (1_000_000, 100, 5)
    extra = memory(n, queries)
    print(f"searching {n} codes with {queries} queries adds {extra:.1f} MB to the process\n")
    write_json(arguments.json, {"faiss": faiss.__version__, "memory_mb": extra, "scan": table(n, queries, repeats)})


if __name__ == "__main__":
    main()
