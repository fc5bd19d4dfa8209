"""Ten million vectors in 16,384 cells: what learning, adding and searching take, beside FAISS with the same cells.

    python benchmarks/cells.py [--codes 10000000] [--cells 16384] [--folder /tmp] [--json FILE]
    python benchmarks/cells.py --smoke

The vectors have 96 dimensions and a fixed seed: 20,000 clusters, some a hundred times as large as others, whose centres
and insides have variances that fall along rotated axes. They are made in parts and kept in a temporary file in the
folder, 4 bytes a number, which is removed afterwards. The true nearest neighbour of each query is found exactly.

All codes have 16 bytes; the number of a cell is the order of the codes, and is not counted. FAISS has the means that
were learned here, so that all search the same cells. Its way to find the cell of a vector is timed on some of them, as
a round of its k-means would take as long for each learning vector; when all are added it is given their cells. Recall
is 1@10: the share of queries whose true nearest neighbour is among the ten that are found. Rates are by CPU time.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
from timing import in_turn, options, write_json

from antisparse import Index, LearnedEncoder, Split
from antisparse.evaluation import recall_at

Vectors = npt.NDArray[np.float32]
Row = dict[str, Any]
DIMENSION, PART = 96, 100_000
CODE_BYTES = 16
PROBES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
WANTED = (0.8, 0.9)


class Model:
    """Vectors in clusters, drawn a part at a time: part i is the same whatever was drawn before."""

    def __init__(self, clusters: int) -> None:
        rng = np.random.default_rng(0)
        self._axes = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0].astype(np.float32)
        self._axes *= np.arange(1, DIMENSION + 1, dtype=np.float32)[:, None] ** -0.55
        self._centres = rng.standard_normal((clusters, DIMENSION), np.float32)
        shares = np.arange(1, clusters + 1, dtype=np.float64) ** -0.5
        self._ends = np.cumsum(shares / shares.sum())

    def part(self, number: int, count: int) -> Vectors:
        """So many vectors."""
        rng = np.random.default_rng([1, number])
        own = np.minimum(np.searchsorted(self._ends, rng.random(count)), len(self._ends) - 1)
        return np.asarray((self._centres[own] + 0.7 * rng.standard_normal((count, DIMENSION), np.float32)) @ self._axes)

    def many(self, first: int, total: int) -> Iterator[Vectors]:
        """A number of vectors, by parts from `first` on."""
        for i, at in enumerate(range(0, total, PART)):
            yield self.part(first + i, min(PART, total - at))


def nearest(base: Vectors, query: Vectors) -> npt.NDArray[np.int64]:
    """The nearest vector of the base to each query, exactly but for float32."""
    least, found = np.full(len(query), np.inf), np.zeros(len(query), np.int64)
    for at in range(0, len(base), PART):
        part = np.asarray(base[at : at + PART])
        values = (part * part).sum(axis=1) - 2 * (query @ part.T)
        best = values.argmin(axis=1)
        value = values[np.arange(len(query)), best]
        found, least = np.where(value < least, at + best, found), np.minimum(value, least)
    return found[:, None]


def nearest_of_all(vectors: npt.NDArray[np.float64], means: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The nearest mean of each vector, by comparing with all."""
    found: npt.NDArray[np.int64] = ((means * means).sum(axis=1) - 2 * (vectors @ means.T)).argmin(axis=1)
    return found


def timed(what: str, count: int, unit: str, function: Any) -> tuple[Any, Row]:
    """What a function gives, with the time that it took, which is printed."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<46} {wall:8.1f} s {cpu:8.1f} s of CPU {count / cpu:12,.0f} {unit} a second of CPU", flush=True)
    return result, {"what": what, "seconds": wall, "cpu_seconds": cpu, "per_cpu_s": count / cpu}


def run(total: int, cells: int, queries: int, clusters: int, folder: str | None) -> Row:
    """Everything, on one set of vectors."""
    model, rows = Model(clusters), []
    learn = np.concatenate(list(model.many(1_000_000, 40 * cells)))
    query = model.part(2_000_000, queries)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".float32") as file:
        base = np.memmap(file.name, np.float32, "w+", shape=(total, DIMENSION))
        for i, part in enumerate(model.many(0, total)):
            base[i * PART : i * PART + len(part)] = part
        said = f"{total:,} x {DIMENSION}, {cells:,} cells, {len(learn):,} to learn from, {queries:,} queries"
        print(f"{said}, FAISS {faiss.__version__}\n", flush=True)
        truth = nearest(base, query)
        number = 1 if cells <= 256 else 2 if cells <= 1 << 16 else 3
        encoder = LearnedEncoder(
            CODE_BYTES + number, split=Split("codebooks", cells), effort=1, train=100_000, random_state=0, n_threads=2
        )
        _, row = timed("antisparse: learning, two threads", len(learn), "vectors", lambda: encoder.fit(learn))
        rows.append(row)
        codec = encoder.codec_
        some = base[: min(total, 2 * PART)]
        alone = Index.create(None, codec, n_threads=1)
        rows.append(timed("antisparse: adding some, one thread", len(some), "vectors", lambda: alone.add(some))[1])
        index, labels = Index.create(None, codec, n_threads=2), np.empty(total, np.int64)

        def add() -> None:
            for at in range(0, total, 10 * PART):
                codes = codec.encode(base[at : at + 10 * PART], n_threads=2)
                labels[at : at + 10 * PART] = codec.layout.cells(codes)
                index.add_codes(codes)

        rows.append(timed("antisparse: adding all, two threads", total, "vectors", add)[1])
        rows.append(timed("antisparse: compact, two threads", total, "codes", index.compact)[1])
        index.n_threads = 1
        assert codec.cells is not None
        means, points = codec.cells.means + codec.reduction.mean, codec.cells.points
        centred = np.asarray(some, np.float64) - codec.reduction.mean
        exact = nearest_of_all(centred[:2000], codec.cells.means)
        own, row = timed(
            "antisparse: cells of some, one thread", len(some), "vectors", lambda: points.nearest(centred, 1, 1)
        )
        row["nearest"] = float((own[0][:2000, 0] == exact).mean())
        print(f"    of them the nearest: {row['nearest']:.4f}")
        rows.append(row)
        peers = faiss_indexes(np.asarray(means, np.float32), learn, base, labels, rows)
    found = searches(index, peers, query, truth)
    return {"build": rows, "search": found, "at": reached(found)}


def faiss_indexes(means: Vectors, learn: Vectors, base: Vectors, labels: Any, rows: list[Row]) -> dict[str, Any]:
    """FAISS with the same means, and codes of the same size; rows are added for what it was timed for."""
    cells, d = means.shape
    faiss.omp_set_num_threads(1)
    quantizer = faiss.IndexFlatL2(d)
    quantizer.add(means)
    some = np.ascontiguousarray(base[: PART // 2])
    rows.append(timed("FAISS: cells of some, one thread", len(some), "vectors", lambda: quantizer.assign(some, 1))[1])
    faiss.omp_set_num_threads(2)
    made = {}
    for name, codebooks, bits in ((f"IVF{cells},PQ32x4fs", 32, 4), (f"IVF{cells},PQ16x8", 16, 8)):
        index = faiss.IndexIVFPQ(quantizer, d, cells, codebooks, bits)
        index.train(learn[:100_000])

        def add(index: Any = index) -> None:
            for at in range(0, len(base), PART):
                part, own = np.ascontiguousarray(base[at : at + PART]), labels[at : at + PART]
                ids = np.arange(at, at + len(part))
                index.add_core(len(part), *map(faiss.swig_ptr, (part, ids, own)))
                index.ntotal = at + len(part)

        rows.append(timed(f"FAISS {name}: adding, cells given", len(base), "vectors", add)[1])
        made[name] = faiss.IndexIVFPQFastScan(index) if bits == 4 else index
    faiss.omp_set_num_threads(1)
    return made


def searches(index: Index, peers: dict[str, Any], query: Vectors, truth: Any) -> list[Row]:
    """Every method at every number of probes, one thread."""
    jobs: dict[tuple[int, str], Any] = {}
    for count in (count for count in PROBES if count <= index.cells):
        jobs[count, "antisparse"] = lambda count=count: index.search(query, 10, probes=count)
        for name, peer in peers.items():
            jobs[count, f"FAISS {name}"] = lambda peer=peer, count=count: probed(peer, query, count)
    recalls = {key: recall_at(job()[1], truth, 10) for key, job in jobs.items()}
    times = in_turn(3, jobs, time.process_time)
    print(f"\n{'probes':>6} {'1@10':>6} {'queries/s':>10}  method, one thread")
    rows = []
    for (count, name), seconds in times.items():
        rows.append({"method": name, "probes": count, "recall": recalls[count, name], "per_s": len(query) / seconds})
        print(f"{count:6d} {recalls[count, name]:6.3f} {len(query) / seconds:10,.0f}  {name}")
    return rows


def probed(peer: Any, query: Vectors, count: int) -> Any:
    """The peer's search of so many cells."""
    peer.nprobe = count
    return peer.search(query, 10)


def reached(rows: list[Row]) -> list[Row]:
    """The fastest search of each method that has a recall wanted."""
    found = []
    print(f"\n{'1@10':>6} {'probes':>6} {'queries/s':>10}  method")
    for wanted in WANTED:
        for name in dict.fromkeys(row["method"] for row in rows):
            enough = [row for row in rows if row["method"] == name and row["recall"] >= wanted]
            best = max(enough, key=lambda row: row["per_s"], default=None)
            found.append({"wanted": wanted, "method": name, "best": best})
            said = "     - " + 11 * " " if best is None else f"{best['probes']:6d} {best['per_s']:10,.0f} "
            print(f"{wanted:6.2f} {said} {name}")
    return found


def main() -> None:
    """Run it and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("--codes", type=int, default=10_000_000)
    parser.add_argument("--cells", type=int, default=16_384)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--folder", help="where the vectors are kept meanwhile")
    given: argparse.Namespace = parser.parse_args()
    if given.smoke:
        given.codes, given.cells, given.queries, clusters = 12_000, 64, 50, 100
    else:
        clusters = 20_000
    numbers = run(given.codes, given.cells, given.queries, clusters, given.folder)
    write_json(given.json, {"faiss": faiss.__version__} | numbers)


if __name__ == "__main__":
    main()
