"""Tables in, readable answers out: what a folder of Parquet files takes, in time and memory.

    python benchmarks/tables.py [--rows 500000] [--train 50000] [--json FILE] | --smoke

Rows have a vector of 128 dimensions, a uuid as the key, a text and a category, in 20 files, 19 of which are built and
one added. Each step is a process of its own, from the command line; its peak of memory is that of all it maps and
allocates. Searches are without a filter and with one by expression. The last step asks from Python for texts, and all
are compared with those that were written. Learning holds its sample in float32 once and in float64 twice: with the
default of 100,000 vectors that is most of the memory.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from timing import options, write_json

from antisparse import Index

FILES, DIMENSION, BYTES = 20, 128, 16
LANGUAGES = ("en", "de", "fr", "es")


def part(rows: int, first: int) -> pa.Table:
    """The rows from `first` on; row i tells its number in its key and its text."""
    random = np.random.default_rng(first)
    centres = np.random.default_rng(0).standard_normal((1000, DIMENSION)).astype(np.float32)
    X = centres[random.integers(len(centres), size=rows)]
    X = X + 0.4 * random.standard_normal((rows, DIMENSION), dtype=np.float32)
    numbers = range(first, first + rows)
    return pa.table(
        {
            "id": [key(i) for i in numbers],
            "text": [text(i) for i in numbers],
            "lang": [LANGUAGES[i % len(LANGUAGES)] for i in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), DIMENSION),
        }
    )


def key(i: int) -> str:
    """The key of row i."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(i)))


def text(i: int) -> str:
    """The text of row i."""
    return f"The text of row {i}, which goes on for about as long as a sentence of a book does, and says {i} again."


def step(name: str, *command: str) -> dict[str, Any]:
    """Run a command; its seconds, and the peak of its memory in MB."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
        "sys.exit(done.returncode)"
    )
    start = time.perf_counter()
    words = [sys.executable, "-c", code, sys.executable, "-m", "antisparse", *command]
    peak = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    seconds = time.perf_counter() - start
    print(f"{name:<8} {seconds:7.1f} s   peak {peak:5d} MB", flush=True)
    return {"seconds": round(seconds, 2), "peak_mb": peak}


def check(answers: pa.Table) -> list[int]:
    """The numbers of the rows that were found, whose keys and texts must be theirs."""
    assert len(answers) == 1000
    numbers = [int(words.split()[4].rstrip(",")) for words in answers["text"].to_pylist()]
    assert [key(i) for i in numbers] == answers["id"].to_pylist()
    assert [text(i) for i in numbers] == answers["text"].to_pylist()
    return numbers


def measure(rows: int, train: int, folder: Path) -> dict[str, Any]:
    """Write, build, add, search, ask."""
    each = rows // FILES
    (folder / "data").mkdir()
    for number in range(FILES - 1):
        pq.write_table(part(each, number * each), folder / "data" / f"{number:02d}.parquet")
    pq.write_table(part(each, (FILES - 1) * each), folder / "tomorrow.parquet")
    pq.write_table(part(each, 0).slice(0, 100), folder / "queries.parquet")
    index = str(folder / "index")
    found: dict[str, Any] = {"rows": each * FILES}
    named = ["--key", "id", "--columns", "text,lang", "--bytes", str(BYTES), "--train", str(train)]
    print(f"{each * FILES:,} rows of {DIMENSION} dimensions in {FILES} files, {BYTES} bytes a vector")
    found["build"] = step("build", "build", str(folder / "data" / "*.parquet"), "-o", index, *named)
    found["add"] = step("add", "add", index, str(folder / "tomorrow.parquet"))
    out = str(folder / "found.parquet")
    found["search"] = step("search", "search", index, str(folder / "queries.parquet"), "-k", "10", "-o", out)
    check(pq.read_table(out))
    only = ["--filter-expr", "lang = 'de' and text like '%7,%'"]
    found["filter"] = step("filter", "search", index, str(folder / "queries.parquet"), "-k", "10", "-o", out, *only)
    assert all(i % len(LANGUAGES) == 1 and i % 10 == 7 for i in check(pq.read_table(out)))
    with Index.open(index, read_only=True) as opened:
        assert len(opened) == each * FILES
        wanted = np.random.default_rng(1).integers(each * FILES, size=1000).tolist()
        start = time.perf_counter()
        assert opened.items([key(i) for i in wanted])["text"].to_pylist() == [text(i) for i in wanted]
        found["items_ms"] = round(1000 * (time.perf_counter() - start), 1)
        codes = each * FILES * (BYTES + 12) / 1e6
        stats = opened.stats()
    found["codes_mb"], found["disk_mb"] = round(codes, 1), round(stats["disk_bytes"] / 1e6, 1)
    print(
        f"codes and ids {codes:.0f} MB, all files {found['disk_mb']:.0f} MB; 1,000 items by key: {found['items_ms']} ms"
    )
    print(f"peak of the build above the codes: {found['build']['peak_mb'] - codes:.0f} MB")
    return found


def main() -> None:
    """Run it and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--train", type=int, default=50_000)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        write_json(arguments.json, measure(4000 if arguments.smoke else arguments.rows, arguments.train, folder))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
