"""Ratios of the benchmarks by commit: one entry a run, a page that draws them, and two runs side by side.

    python benchmarks/history.py run [--smoke] [--data FOLDER ...] [--json out/bench-all.json]
    python benchmarks/history.py keep FILE
    python benchmarks/history.py compare BEFORE AFTER

`run` runs solver.py, search.py and encoding.py, on small sizes or with data sets index.py and recall.py too, and writes
one file with the ratios, the machine, the commit and the date. `keep` puts such a file among those of
benchmarks/history/, and draws docs/history.md anew. `compare` prints a table in Markdown.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "history"
PAGE = ROOT / "docs" / "history.md"
START, END = "<!-- entries -->\n", "<!-- end of entries -->\n"

Numbers = dict[str, Any]
Entry = dict[str, Any]


def solver_ratios(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """The spread solver against HiGHS, NumPy and its own dense path."""
    for row in numbers["against_peers"]["solver"]:
        if row["h"] == 0:
            yield f"solver, {row['dtype']}: HiGHS", row["times_highs"]
            yield f"solver, {row['dtype']}: NumPy", row["times_reference"]
    dense = numbers["high_dimension"]["dense"]
    yield "solver, blocks: dense frame", geometric_mean(row["dense_ms"] / row["blocks_ms"] for row in dense)


def scan_ratios(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """The scan against FAISS, over all lengths, numbers of codes and k of the run."""
    for key, queries in (("ratios", "many queries"), ("alone_ratios", "one query")):
        found: dict[tuple[str, str], list[float]] = {}
        for row in numbers["scan"]:
            for peer, ratio in row[key].items():
                kind = "PQ x4fs" if peer.startswith("PQ") else peer
                found.setdefault((row["method"], kind), []).append(ratio)
        for (method, peer), ratios in found.items():
            yield f"scan, {method}, {queries}: FAISS {peer}", geometric_mean(ratios)


def encoding_ratios(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """Vectors encoded a second against what FAISS adds a second."""
    rates = {name: row["vectors_per_s"] for name, row in numbers["throughput"].items()}
    for ours, peer in (("LSHEncoder", "LSH"), ("ITQEncoder", "LSH"), ("AntiSparseEncoder h = 0.1", "PQ16x8")):
        yield f"encoding, {ours}: FAISS {peer}", rates[ours] / rates[f"faiss {peer} add"]


def index_ratios(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """Queries a second with cells, where our recall is that of the peer at least."""
    found: dict[str, list[float]] = {}
    for row in numbers["cells"]:
        if "ratio" in row:
            found.setdefault(row["method"].partition(",")[2], []).append(row["ratio"])
    for peer, ratios in found.items():
        yield f"index with cells, at equal recall: FAISS IVF {peer}", geometric_mean(ratios)


def recall_ratios(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """10@10 over that of FAISS PQ of as many bytes."""
    found: dict[str, list[float]] = {}
    ours = {(row["set"], row["bytes"]): row["recall"][3] for row in numbers["rows"] if row["name"].startswith("antis")}
    for row in numbers["rows"]:
        bits = row["name"].rpartition("x")[2]
        if row["name"].startswith("PQ") and (row["set"], row["bytes"]) in ours:
            found.setdefault(bits, []).append(ours[row["set"], row["bytes"]] / row["recall"][3])
    for bits, ratios in found.items():
        yield f"recall, 10@10: FAISS PQ x{bits}", geometric_mean(ratios)


BENCHMARKS: dict[str, Callable[[Numbers], Iterator[tuple[str, float]]]] = {
    "solver": solver_ratios,
    "search": scan_ratios,
    "encoding": encoding_ratios,
    "index": index_ratios,
    "recall": recall_ratios,
}


def run(smoke: bool, data: list[str]) -> Entry:
    """Run the benchmarks, one after the other; their ratios with all that a reader must know of them."""
    ratios: dict[str, float] = {}
    numbers: Numbers = {}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for name, ratios_of in BENCHMARKS.items():
            options = ["--smoke"] if smoke else data if name == "recall" else data[:1] if name == "index" else []
            if name in ("index", "recall") and not options:
                continue
            written = Path(folder, f"{name}.json")
            command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *options, "--json", str(written)]
            subprocess.run(command, check=True, env=environment)
            numbers = json.loads(written.read_text())
            ratios |= ratios_of(numbers)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "size": "small" if smoke else "full",
        "load": load,
        "machine": machine() | {"instructions": numbers["isa"]},
        "versions": numbers["versions"] | {"faiss": numbers["faiss"], "python": numbers["python"]},
        "ratios": ratios,
    }


def commit() -> str:
    """The commit of these sources, with a + where files differ from it; empty outside a repository."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True)
    return found.stdout.strip() + ("+" if changed.stdout else "")


def machine() -> dict[str, Any]:
    """The kind of machine: nothing that tells one from another of its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {"system": platform.system(), "cpu": model or platform.machine(), "cpus": os.cpu_count()}


def entries() -> list[Entry]:
    """The entries that are kept, by date."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in KEPT.glob("*.json")]
    return sorted(found, key=lambda entry: str(entry["date"]))


def listed(kept: list[Entry]) -> str:
    """The tables of the page: one a size, a row for every ratio, a column for every one of the last entries."""
    text = ""
    for size in ("full", "small"):
        last = [entry for entry in kept if entry["size"] == size][-4:]
        if not last:
            continue
        heads = [f"{entry['date'][:10]}<br>`{entry['commit']}`<br>load {entry['load'] or 0:.0f}" for entry in last]
        text += f"\n## {'Full sizes' if size == 'full' else 'Small sizes'}\n\n"
        text += f"| ratio to | {' | '.join(heads)} |\n|---|{'---:|' * len(last)}\n"
        for name in dict.fromkeys(name for entry in last for name in entry["ratios"]):
            cells = [f"{entry['ratios'][name]:.2f}" if name in entry["ratios"] else "" for entry in last]
            text += f"| {name} | {' | '.join(cells)} |\n"
        text += "\nMachines: " + "; ".join(dict.fromkeys(described(entry) for entry in last)) + ".\n"
    return text + "\n"


def described(entry: Entry) -> str:
    """The machine of an entry and what ran on it, in words."""
    machine, versions = entry["machine"], entry["versions"]
    kind = f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}, {machine['instructions']}"
    return f"{kind}; FAISS {versions['faiss']}, NumPy {versions['numpy']}, Python {versions['python']}"


def plot(kept: list[Entry], path: Path) -> None:
    """A panel for every benchmark, a line for every ratio, entries from left to right; small sizes are dashed."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(name.split(",")[0] for entry in kept for name in entry["ratios"]))
    figure = Figure(figsize=(10, 3.2 * len(groups)), layout="constrained")
    axes = figure.subplots(len(groups), squeeze=False)[:, 0]
    labels = [f"{entry['commit'][:7]}\n{entry['date'][:10]}" for entry in kept]
    for ax, group in zip(axes, groups, strict=True):
        for size, style in (("full", "o-"), ("small", "s--")):
            names = (name for entry in kept if entry["size"] == size for name in entry["ratios"])
            for name in dict.fromkeys(name for name in names if name.split(",")[0] == group):
                values = [entry["ratios"].get(name) if entry["size"] == size else None for entry in kept]
                points = [(i, value) for i, value in enumerate(values) if value is not None]
                ax.plot(*zip(*points, strict=True), style, label=f"{name} ({size})")
        ax.axhline(1, color="#888888", lw=1)
        ax.set(title=group, yscale="log", ylabel="times the peer", xlim=(-0.5, len(kept) - 0.5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.set_xticks(range(len(kept)), labels)
        ax.grid(True, color="#dddddd")
        ax.legend(frameon=False, fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=110)


def keep(written: Path) -> None:
    """Put a run among the kept ones, and draw the page anew."""
    entry = json.loads(written.read_text(encoding="utf-8"))
    if entry["commit"].endswith("+") or not entry["commit"]:
        sys.exit(f"{written}: it was not measured at a commit; commit what is changed, and run again")
    KEPT.mkdir(exist_ok=True)
    shutil.copy(written, KEPT / f"{entry['date'][:10]}-{entry['commit']}-{entry['size']}.json")
    kept = entries()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + listed(kept) + END + rest.partition(END)[2], encoding="utf-8")
    plot(kept, PAGE.with_suffix(".png"))


def compared(before: Entry, after: Entry) -> str:
    """Two entries of one machine, side by side."""
    if before["size"] != after["size"]:
        raise SystemExit("one run was on small sizes and the other was not: their ratios do not compare")
    text = f"Ratios to peers ({after['size']} sizes; {described(after)}). Small differences are noise.\n\n"
    text += f"| ratio to | `{before['commit']}` | `{after['commit']}` | change |\n|---|---:|---:|---:|\n"
    for name, value in after["ratios"].items():
        old = before["ratios"].get(name)
        shown = ("", "") if old is None else (f"{old:.2f}", f"{value / old - 1:+.0%}")
        text += f"| {name} | {shown[0]} | {value:.2f} | {shown[1]} |\n"
    gone = [name for name in before["ratios"] if name not in after["ratios"]]
    return text + "".join(f"| {name} | {before['ratios'][name]:.2f} | | |\n" for name in gone)


def main() -> None:
    """Run, keep or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("run")
    one.add_argument("--smoke", action="store_true", help="small sizes")
    one.add_argument("--data", nargs="*", default=[], help="data sets, for index.py (the first) and recall.py")
    one.add_argument("--json", type=Path, default=ROOT / "out" / "bench-all.json")
    actions.add_parser("keep").add_argument("file", type=Path)
    two = actions.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.action == "run":
        entry = run(given.smoke, given.data)
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(entry, indent=2) + "\n", encoding="utf-8")
        print(f"\nnumbers: {given.json}; to keep them: python benchmarks/history.py keep {given.json}")
    elif given.action == "keep":
        keep(given.file)
    else:
        print(compared(*(json.loads(path.read_text(encoding="utf-8")) for path in (given.before, given.after))))


if __name__ == "__main__":
    main()
