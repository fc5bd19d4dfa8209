"""Speed of the scan against FAISS, both on the same machine in the same run.

    python benchmarks/search.py [--smoke] [--json FILE]
    python benchmarks/search.py --bits 128 --k 10 1000 --codes 20000 --methods reconstruction --peers PQ

20,000 and a million random codes of 64 to 1,536 bits, 100 queries and one alone, k = 1 to 10,000, one thread for both
sides, best of nine, in turn; options run some of the rows. The peers are IndexBinaryFlat for hamming; fast-scan PQ with
as many bits, and fast-scan RaBitQ with as many dimensions as we have bits, for asymmetric and reconstruction. Codes and
vectors are random: the scans' work does not depend on what they find, but for the few codes that pass the pruning. Our
queries are tables that are made before the clock starts; "with tables" counts the making of them, from integer weights,
too. Beside every row stands its share of what the machine could do: look-ups of the ports, bytes of the memory.
"""

import argparse
import ctypes
import os
import platform
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import faiss
import numpy as np
from timing import in_turn, options, write_json

from antisparse import _core
from antisparse.codes import scan_blocks

RNG = np.random.default_rng(0)
METHODS = ("hamming", "asymmetric", "reconstruction")
PEERS = ("IndexBinaryFlat", "PQ", "RaBitQ")


class Limits:
    """What one thread of this machine can do at most: look-ups of its ports, and bytes it reads.

    Measured by loops that are compiled here, since no Python package runs them bare; where there is no compiler, or the
    CPU is of another kind, nothing is known.
    """

    def __init__(self, folder: str) -> None:
        compiler = shutil.which("c++")
        self.lookups = 0.0  # in tables of 16 entries a second, by the widest shuffle there is
        self._reading: dict[int, float] = {}
        if compiler is None or platform.machine() not in ("x86_64", "AMD64"):
            return
        source, library = Path(__file__).with_name("machine.cpp"), Path(folder, "machine.so")
        subprocess.run([compiler, "-O2", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
        self._machine = ctypes.CDLL(str(library))
        rounds = ctypes.c_long(10**5)
        self.lookups = self._machine.shuffles(rounds) / in_turn(200, {0: partial(self._machine.shuffles, rounds)})[0]

    def __str__(self) -> str:
        if not self.lookups:
            return "limits of the machine not measured"
        rate = 1e-9 * (1 << 28) / self.reading(1 << 28)
        return f"memory reads {rate:.1f} GB/s, ports look up {self.lookups / 1e9:.0f} G nibbles/s"

    def looking_up(self, count: int) -> float:
        """Seconds for so many look-ups."""
        return count / self.lookups if self.lookups else 0.0

    def reading(self, size: int) -> float:
        """Seconds to read so many bytes again and again: from memory, or, where they fit one, from a cache."""
        if not self.lookups:
            return 0.0
        if size not in self._reading:
            memory = np.ones(size // 512 * 512 + 64, np.uint8)
            start, count = memory.ctypes.data + -memory.ctypes.data % 64, ctypes.c_long(size // 512 * 512)
            read = partial(self._machine.read, ctypes.c_void_p(start), count)
            self._reading[size] = in_turn(max(5, min(1000, (1 << 28) // size)), {0: read}, thread_time)[0]
        return self._reading[size]


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


class Peers:
    """FAISS indexes of as many random vectors, made when they are first asked for."""

    def __init__(self, bits: int, codes: Any, chosen: tuple[str, ...]) -> None:
        self.bits, self.codes, self.chosen = bits, codes, chosen
        self.made: dict[str, Any] = {}

    def of(self, method: str) -> list[str]:
        """The names of the peers of a method."""
        own = ("IndexBinaryFlat",) if method == "hamming" else (f"PQ{self.bits // 4}x4fs", "RaBitQfs")
        return [name for name in own if name.startswith(self.chosen)]

    def get(self, name: str) -> Any:
        """The peer itself."""
        if name not in self.made:
            if name == "IndexBinaryFlat":
                self.made[name] = faiss.IndexBinaryFlat(self.bits)
                self.made[name].add(self.codes)
            else:
                self.made[name] = real_peer(name, self.bits, len(self.codes))
        return self.made[name]


def table(wanted: argparse.Namespace, repeats: int, limits: Limits) -> list[dict[str, Any]]:
    """Every row that is wanted."""
    print(f"{wanted.queries} queries, one thread, CPU time, best of {repeats}; {limits}\n")
    names = f"{'ms/query':>9} {'with tables':>11} {'Gcodes/s':>9} {'GB/s':>6} {'limit':>6} {'alone ms':>9} {'limit':>6}"
    print(f"{'codes':>8} {'bits':>5} {'k':>5} {'method':>15} {names}  times the peers; alone")
    rows = [row for bits in wanted.bits for n in wanted.codes for row in one_length(bits, n, wanted, repeats, limits)]
    print(
        "\nGB/s counts each code once a query: batches share a pass, so it may exceed the memory's. The limits are the "
        "shares of a row's\ntime that the ports would take for a look-up a nibble, and, of a query alone, that or "
        "reading the codes (from a cache where they fit one)."
    )
    for row in rows:
        if "two_threads" in row:
            print(f"{row['bits']} bits, {row['method']}: two threads {row['two_threads']:.2f} times one")
    return rows


def one_length(bits: int, n: int, wanted: argparse.Namespace, repeats: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """The methods that are wanted and their peers, at one code length."""
    queries = wanted.queries
    codes = RNG.integers(0, 256, (n, bits // 8), dtype=np.uint8)
    query_codes = RNG.integers(0, 256, (queries, bits // 8), dtype=np.uint8)
    signs, ones = np.unpackbits(query_codes, axis=1).astype(np.int32) * 2 - 1, np.ones(queries)
    weights, units = _core.round_rows(RNG.standard_normal((queries, bits)), 0.0)
    blocks = scan_blocks(codes)
    plain, scaled = _core.CodeColumns(blocks, n), _core.CodeColumns(blocks, n, scales=scales(n))
    made = {
        "hamming": lambda: Method(plain, signs, ones, False),
        "asymmetric": lambda: Method(plain, weights, units, False),
        "reconstruction": lambda: Method(scaled, weights, units, True),
    }
    methods = {name: made[name]() for name in wanted.methods}
    peers = Peers(bits, codes, tuple(wanted.peers))
    names = dict.fromkeys(name for method in methods for name in peers.of(method))
    Q = RNG.standard_normal((queries, bits)).astype(np.float32)
    asked = {name: query_codes if name == "IndexBinaryFlat" else Q for name in names}
    # What is soon done is done more often: a disturbance is as long as many such calls.
    repeats = repeats * max(1, min(10, 200_000 // n))
    for k in (k for k in wanted.k if k <= n):
        jobs: dict[Any, Any] = {name: partial(peers.get(name).search, asked[name], k) for name in names}
        jobs |= {name: partial(method.search, k) for name, method in methods.items()}
        jobs |= {(name, "with tables"): partial(method.whole, k) for name, method in methods.items()}
        alone: dict[Any, Any] = {name: partial(peers.get(name).search, asked[name][:1], k) for name in names}
        alone |= {name: partial(method.alone, k) for name, method in methods.items()}
        times, single = in_turn(repeats, jobs, thread_time), in_turn(5 * repeats, alone, thread_time)
        for method, ours in methods.items():
            seconds = times[method]
            size = bits // 8 + (4 if ours.scaled else 0)
            row: dict[str, Any] = {"codes": n, "bits": bits, "k": k, "method": method}
            row |= {"ms": seconds / queries * 1e3, "ms_with_tables": times[method, "with tables"] / queries * 1e3}
            row |= {"alone_ms": single[method] * 1e3, "gcodes_per_s": n * queries / seconds / 1e9}
            lookups = limits.looking_up(n * bits // 4)
            row["limit"] = lookups * queries / seconds
            row["alone_limit"] = max(lookups, limits.reading(n * size)) / single[method]
            row["ratios"] = {name: times[name] / seconds for name in peers.of(method)}
            row["alone_ratios"] = {name: single[name] / single[method] for name in peers.of(method)}
            if (bits, k, n) == (128, 10, max(wanted.codes)):
                # A second CPU is the first thing a busy machine takes away: many tries.
                more = in_turn(8 * repeats, {threads: partial(ours.search, k, threads) for threads in (1, 2)})
                row["two_threads"] = more[1] / more[2]
            rate = row["gcodes_per_s"]
            text = ", ".join(f"{row['ratios'][p]:.2f}; {row['alone_ratios'][p]:.2f} {p}" for p in row["ratios"])
            both = f"{row['ms']:9.4f} {row['ms_with_tables']:11.4f} {rate:9.2f} {rate * size:6.1f} {row['limit']:6.0%}"
            print(
                f"{n:8d} {bits:5d} {k:5d} {method:>15} {both} {row['alone_ms']:9.4f} {row['alone_limit']:6.0%}  {text}",
                flush=True,
            )
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
    parser = options(__doc__)
    several: Any = {"nargs": "+", "metavar": "N"}
    parser.add_argument("--bits", type=int, default=[64, 128, 256, 512, 1536], **several)
    parser.add_argument("--k", type=int, default=[1, 10, 100, 1000, 10_000], **several)
    parser.add_argument("--codes", type=int, default=[20_000, 1_000_000], **several)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    if arguments.smoke:
        arguments.codes, arguments.k, arguments.queries, arguments.repeats = [20_000], [1, 1000], 20, 1
    most = max(arguments.codes)
    extra = memory(most, arguments.queries)
    print(f"searching {most} codes with {arguments.queries} queries adds {extra:.1f} MB to the process\n")
    with tempfile.TemporaryDirectory() as folder:
        rows = table(arguments, arguments.repeats, Limits(folder))
    write_json(arguments.json, {"faiss": faiss.__version__, "memory_mb": extra, "scan": rows})


if __name__ == "__main__":
    main()
