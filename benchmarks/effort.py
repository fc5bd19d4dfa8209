"""What each effort of LearnedEncoder costs and gains, beside FAISS PQ of as many bits.

    python benchmarks/effort.py FOLDER [--base N] [--json FILE] | --smoke

A folder holds base, learn and query files (docs/datasets.md). 128 bits, one thread; the error is the mean squared
distance from a base vector to what its code rebuilds, over the variance; recall is of the rebuilt vectors' full scan.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import faiss
import numpy as np
from timing import in_turn, options, write_json

from antisparse import CodeBase, LearnedEncoder, Split
from antisparse.datasets import Dataset, read_dataset, synthetic
from antisparse.evaluation import exact_neighbors, recall_at

Row = dict[str, Any]


def measure(data: Dataset, bits: int) -> list[Row]:
    """A row an effort, of signs and of codebooks, with a bias byte beside the bits."""
    base, query = np.asarray(data.base, np.float64), np.asarray(data.query, np.float64)
    nearest = exact_neighbors(base, query, 1)[1]
    variance = float(((base - base.mean(axis=0)) ** 2).sum(axis=1).mean())
    rows: list[Row] = []
    print(f"{data.name}: {len(base):,} x {base.shape[1]}, {bits} bits, one thread\n")
    print(f"{'symbols':>9} {'effort':>6} {'us/vector':>10} {'x PQ rate':>9} {'error':>7} {'1@1':>9} {'1@10':>6}")
    learn = np.asarray(data.learn, np.float32)
    index: Any = faiss.index_factory(base.shape[1], f"PQ{bits // 8}x8")
    index.train(learn)
    sample = np.ascontiguousarray(base[:2000], np.float32)
    kinds: tuple[Literal["signs", "codebooks"], ...] = ("signs", "codebooks")
    efforts: tuple[Literal[1, 2, 3], ...] = (1, 2, 3)
    for kind, effort in product(kinds, efforts):
        encoder = LearnedEncoder(bits // 8 + 1, split=Split(kind), effort=effort, random_state=0).fit(learn)
        codec = encoder.codec_
        codes = codec.encode(base)
        jobs: dict[str, Any] = {"ours": partial(codec.encode, sample, n_threads=1), "peer": partial(index.add, sample)}
        times = in_turn(20, jobs)  # many short tries: on a busy machine some of them are undisturbed
        seconds = times["ours"] / len(sample)
        error = float(((base - codec.decode(codes)) ** 2).sum(axis=1).mean()) / variance
        ids = CodeBase(codec, codes).search(query, 10)[1]
        recall = [recall_at(ids, nearest, R) for R in (1, 10)]
        row: Row = {"symbols": kind, "effort": effort, "us": seconds * 1e6, "error": error, "recall": recall}
        row["times_pq_rate"] = times["peer"] / times["ours"]
        rows.append(row)
        print(
            f"{kind:>9} {effort:6d} {row['us']:10.1f} {row['times_pq_rate']:9.2f} {error:7.4f} {recall[0]:9.3f} "
            f"{recall[1]:6.3f}",
            flush=True,
        )
    return rows


def main() -> None:
    """Run everything and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--base", type=int, default=100_000, help="vectors of the base to use")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    if arguments.smoke:
        data, bits = synthetic(1000, 16, 50, 1000), 32
    elif arguments.folder:
        whole, bits = read_dataset(arguments.folder), 128
        data = Dataset(whole.base[: arguments.base], whole.learn, whole.query, None, whole.name)
    else:
        parser.error("name a folder with a data set, or --smoke")
    write_json(arguments.json, {"faiss": faiss.__version__, "rows": measure(data, bits)})


if __name__ == "__main__":
    main()
