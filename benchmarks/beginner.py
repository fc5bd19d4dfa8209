"""What four lines give: an index of a set's base in 32 bytes a vector, nothing else said, and its recall.

    python benchmarks/beginner.py FOLDER [--bytes 32] [--json FILE] | --smoke

A folder holds base and query files, and true neighbours (docs/datasets.md). Codes are learned from the base itself.
"""

import time
from pathlib import Path

import numpy as np
from timing import options, write_json

from antisparse import Index
from antisparse.datasets import Dataset, read_dataset, synthetic
from antisparse.evaluation import exact_neighbors, intersection_recall, recall_at


def measure(data: Dataset, n_bytes: int) -> dict[str, float | int | str]:
    """Build, search, count."""
    base, query = np.asarray(data.base), np.asarray(data.query)
    truth = exact_neighbors(base, query, 10)[1] if data.neighbors is None else np.asarray(data.neighbors)
    start = time.perf_counter()
    index = Index.build(base, n_bytes=n_bytes, random_state=0)
    seconds = time.perf_counter() - start
    _, ids = index.search(query, k=10)
    found = {"1@1": recall_at(ids, truth, 1), "1@10": recall_at(ids, truth, 10)}
    found["10@10"] = intersection_recall(ids, truth, 10)
    print(f"{data.name}: {index}, built in {seconds:.0f} s")
    print(", ".join(f"{name} {value:.3f}" for name, value in found.items()))
    return {"set": str(data.name), "bytes": n_bytes, "seconds": seconds, **found}


def main() -> None:
    """Run it and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--bytes", type=int, default=32)
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.smoke:
        parser.error("name a folder with a data set, or --smoke")
    data = synthetic(1000, 16, 50, 10) if arguments.smoke else read_dataset(arguments.folder)
    write_json(arguments.json, measure(data, 4 if arguments.smoke else arguments.bytes))


if __name__ == "__main__":
    main()
