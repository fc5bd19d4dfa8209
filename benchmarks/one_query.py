"""One query at a time, as a caller in Python has it: `Index.search` of a 1-dimensional float32 array, beside FAISS.

    python benchmarks/one_query.py [--smoke] [--json FILE]

10,000 and 100,000 vectors of 64 dimensions in codes of 16 bytes, k = 10, one thread. Everything is counted: the checks
of the query, its tables, the scan and the answer. Microseconds of CPU time, the best of many calls in turn. The peer is
fast-scan PQ of as many bytes, asked by its own Python.
"""

from functools import partial
from time import thread_time
from typing import Any

import faiss
import numpy as np
from timing import in_turn, options, write_json

from antisparse import Index

PEER = "PQ32x4fs"


def measured(n: int, repeats: int) -> dict[str, Any]:
    """Microseconds of one query among n codes."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 64)).astype(np.float32)
    q = random.standard_normal(64).astype(np.float32)
    peer = faiss.index_factory(64, PEER)
    peer.train(X[:10_000])
    peer.add(X)
    given: dict[str, Any] = {"effort": 1, "cells": 1, "train": 5000, "random_state": 0}
    signs = Index.build(X, 16, symbols="signs", **given)
    codebooks = Index.build(X, 16, symbols="codebooks", **given)
    deeds: dict[str, Any] = {PEER: partial(peer.search, q[None], 10)}
    for name, index in (("signs", signs), ("codebooks", codebooks)):
        index.n_threads = 1
        deeds[f"{name}, reconstruction"] = partial(index.search, q, 10)
    deeds["signs, hamming"] = partial(signs.search, q, 10, method="hamming")
    seconds = in_turn(repeats, deeds, thread_time)
    return {"codes": n, **{name: round(1e6 * one, 1) for name, one in seconds.items()}}


def main() -> None:
    """A line a size."""
    arguments = options(__doc__).parse_args()
    faiss.omp_set_num_threads(1)
    rows = []
    for n in (10_000,) if arguments.smoke else (10_000, 100_000):
        rows.append(row := measured(n, 20 if arguments.smoke else 2000))
        print(f"{n:,} codes: " + ", ".join(f"{name} {row[name]} us" for name in row if name != "codes"), flush=True)
    write_json(arguments.json, {"faiss": faiss.__version__, "sizes": rows})


if __name__ == "__main__":
    main()
