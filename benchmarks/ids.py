"""What ids take on the disk, and how fast they are found (docs/format.md).

    python benchmarks/ids.py [--smoke] [--json FILE]

Indexes of 10^7 random codes of 16 bytes, besides the number of the cell, which is where they stand: with 1,024 cells
and random ids below 2^32, and flat with ids that follow each other. The bytes are those of all files. Ids that are
there are looked up, beside the way that takes 12 bytes a code: an array of ids, and their places in the order of ids,
by binary search in NumPy. Microseconds of CPU time an id, the best of several runs in turn.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import options, write_json

from antisparse import Index, LearnedEncoder, Split
from antisparse.index.segment import Segment

Ids = npt.NDArray[np.int64]
CALLS = (1, 100, 100_000)  # ids in one call


def plain_look_up(segment: Segment) -> Callable[[Ids], Ids]:
    """Places of ids by binary search in plain arrays."""
    by_place, order, rows = segment.ids.by_place(), segment.order, segment.rows

    def find(ids: Ids) -> Ids:
        low, high = np.zeros(len(ids), np.int64), np.full(len(ids), rows, np.int64)
        for _ in range(rows.bit_length()):
            middle = (low + high) >> 1
            less = (by_place[order[np.minimum(middle, rows - 1)]] < ids) & (middle < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        at = order[np.minimum(low, rows - 1)].astype(np.int64)
        return np.where(by_place[at] == ids, at, -1)

    return find


def cpu_in_turn(repeats: int, deeds: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """CPU seconds of the cheapest call of each, called in turn."""
    times: dict[str, list[float]] = {name: [] for name in deeds}
    for _ in range(repeats):
        for name, deed in deeds.items():
            start = time.process_time()
            deed()
            times[name].append(time.process_time() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def measured(folder: Path, cells: int, n: int, ids: Ids | None) -> dict[str, Any]:
    """Bytes a code and microseconds an id of one index."""
    random = np.random.default_rng(0)
    learning = random.standard_normal((4 * cells + 256, 16)).astype(np.float32)
    encoder = LearnedEncoder(16 + 2 * (cells > 256), split=Split("signs", cells), effort=1, random_state=0)
    codec = encoder.fit(learning).codec_
    rows = random.integers(0, 256, (n, codec.n_bytes), np.uint8)
    if codec.cells is not None:
        number = random.integers(cells, size=n)
        rows[:, codec.layout.symbol_bytes] = number % 256
        rows[:, codec.layout.symbol_bytes + 1] = number // 256
    with Index.create(folder, codec) as index:
        index.add_codes(rows, ids)
        index.compact()
    opened = Index.open(folder, read_only=True)
    (segment,) = opened.snapshot.segments
    found: dict[str, Any] = {"codes": n, "cells": cells, "bytes": opened.stats()["disk_bytes"] / n}
    for part in ("id", "cell"):
        arrays = [array for name, array in segment.ids.arrays.items() if name.startswith(f"{part}_")]
        found[f"bytes of {part}s"] = sum(array.nbytes for array in arrays) / n
    held, plain = opened.ids, plain_look_up(segment)
    for count in CALLS:
        wanted = random.choice(held, count)
        np.testing.assert_array_equal(segment.find(wanted), plain(wanted))
        repeats = 9 if count >= 1000 else 200
        times = cpu_in_turn(repeats, {"plain": partial(plain, wanted), "packed": partial(segment.find, wanted)})
        found[f"microseconds of {count}"] = {name: 1e6 * seconds / count for name, seconds in times.items()}
    return found


def main() -> None:
    """Both indexes, as a table."""
    parser = options(__doc__)
    given = parser.parse_args()
    n, cells = (20_000, 300) if given.smoke else (10**7, 1024)
    drawn = np.unique(np.random.default_rng(1).integers(0, 2**32, n + n // 50))
    scattered = np.random.default_rng(2).permutation(drawn)[:n]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = {f"{cells:,} cells, ids below 2^32": (cells, scattered), "flat, consecutive ids": (1, None)}
        for number, (name, (count, ids)) in enumerate(cases.items()):
            results[name] = measured(Path(folder) / str(number), count, n, ids)
    print(f"{n:,} codes of 16 bytes; microseconds an id in calls of so many, plain arrays / as stored\n")
    print(f"| {'ids':32} | bytes a code | of ids | of their cells | " + " | ".join(f"{n:,}" for n in CALLS) + " |")
    print("|---|---|---|---|" + "---|" * len(CALLS))
    for name, found in results.items():
        times = [found[f"microseconds of {count}"] for count in CALLS]
        cells_of = " | ".join(f"{one['plain']:.2f} / {one['packed']:.2f}" for one in times)
        sizes = " | ".join(f"{found[part]:.2f}" for part in ("bytes", "bytes of ids", "bytes of cells"))
        print(f"| {name:32} | {sizes} | {cells_of} |")
    write_json(given.json, {"ids": results})


if __name__ == "__main__":
    main()
