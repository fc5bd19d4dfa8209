"""What it takes to stage and to commit segments, and that a commit does not grow with the codes.

    python benchmarks/staging.py [--segments 1000] [--json FILE] | --smoke

Segments of 100, 1,000 and 10,000 codes of 16 bytes are staged one by one and committed at once, then one more; each
line is an index of its own. Times are of one process on one disk, synced.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from timing import options, write_json

from antisparse import Index, LearnedEncoder
from antisparse.index import commit, stage

ROWS, DIMENSION = (100, 1000, 10_000), 32


def measure(folder: Path, rows: int, segments: int, encoder: LearnedEncoder) -> dict[str, float | int]:
    """Stage, commit, commit one more, open."""
    path = folder / str(rows)
    Index.create(path, encoder).close()
    X = np.random.default_rng(rows).standard_normal((rows, DIMENSION)).astype(np.float32)
    start = time.perf_counter()
    entries = [stage(path, X, np.arange(number * rows, (number + 1) * rows)) for number in range(segments)]
    staged = time.perf_counter() - start
    start = time.perf_counter()
    assert commit(path, entries) == rows * segments
    committed = time.perf_counter() - start
    more = [stage(path, X, np.arange(segments * rows, (segments + 1) * rows))]
    start = time.perf_counter()
    commit(path, more)
    one_more = time.perf_counter() - start
    with Index.open(path, read_only=True) as index:
        assert len(index) == rows * (segments + 1)
    return {
        "rows": rows,
        "segments": segments,
        "stage_ms": round(1000 * staged / segments, 2),
        "commit_s": round(committed, 3),
        "one_more_s": round(one_more, 3),
    }


def main() -> None:
    """Print a line a size."""
    parser = options(__doc__)
    parser.add_argument("--segments", type=int, default=1000)
    arguments = parser.parse_args()
    segments = 20 if arguments.smoke else arguments.segments
    X = np.random.default_rng(0).standard_normal((4000, DIMENSION)).astype(np.float32)
    encoder = LearnedEncoder(16, symbols="signs", effort=1, random_state=0).fit(X)
    found = []
    print(f"{'codes a segment':>15} {'segments':>9} {'stage, ms each':>15} {'commit, s':>10} {'one more, s':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS[:2] if arguments.smoke else ROWS:
            found.append(line := measure(Path(folder), rows, segments, encoder))
            print(
                f"{line['rows']:15,} {line['segments']:9,} {line['stage_ms']:15.2f} {line['commit_s']:10.3f} "
                f"{line['one_more_s']:12.3f}",
                flush=True,
            )
    write_json(arguments.json, {"sizes": found})


if __name__ == "__main__":
    main()
