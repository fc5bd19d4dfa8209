"""benchmarks/history.py: ratios of what the benchmarks write, the page of the kept entries, two runs side by side."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def load():
    spec = importlib.util.spec_from_file_location("history", ROOT / "benchmarks" / "history.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


history = load()


def entry(commit="0123456789ab", date="2026-01-31T00:00:00+00:00", size="small", **ratios):
    machine = {"system": "Linux", "cpu": "a CPU", "cpus": 2, "instructions": "avx2"}
    versions = {"antisparse": "1.0", "numpy": "2.0", "scipy": "1.0", "faiss": "1.10", "python": "3.11"}
    about = {"date": date, "commit": commit, "size": size, "load": 1.0, "machine": machine, "versions": versions}
    return about | {"ratios": ratios}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty history, and an empty page."""
    monkeypatch.setattr(history, "KEPT", tmp_path / "history")
    monkeypatch.setattr(history, "PAGE", tmp_path / "history.md")
    (tmp_path / "history.md").write_text(f"# Title\n\n{history.START}old\n{history.END}more\n")
    return tmp_path


def test_the_page_is_that_of_the_kept_entries():
    """What is committed to docs/history.md is what the committed entries give."""
    text = history.PAGE.read_text(encoding="utf-8")
    shown = text.partition(history.START)[2].partition(history.END)[0]
    assert shown == history.listed(history.entries())
    assert history.PAGE.with_suffix(".png").exists()


def test_kept_entries_were_measured_at_a_commit():
    kept = history.entries()
    assert kept
    for one in kept:
        assert re.fullmatch("[0-9a-f]{12}", one["commit"])
        assert one["size"] in ("small", "full")
        assert min(one["ratios"].values()) > 0


def test_an_entry_is_kept_and_shown(folder):
    for number, value in enumerate((2.0, 3.0)):
        one = entry(commit=f"{number:012x}", date=f"2026-01-0{number + 1}T00:00:00+00:00", **{"scan, x: Y": value})
        (folder / "run.json").write_text(json.dumps(one))
        history.keep(folder / "run.json")
    assert len(list((folder / "history").glob("*.json"))) == 2
    text = (folder / "history.md").read_text()
    assert text.startswith("# Title\n") and text.endswith(f"{history.END}more\n") and "old" not in text
    assert "| scan, x: Y | 2.00 | 3.00 |" in text
    assert (folder / "history.png").stat().st_size > 1000


@pytest.mark.parametrize("commit", ["", "0123456789ab+"])
def test_what_was_not_measured_at_a_commit_is_not_kept(folder, commit):
    (folder / "run.json").write_text(json.dumps(entry(commit=commit, x=1.0)))
    with pytest.raises(SystemExit, match="not measured at a commit"):
        history.keep(folder / "run.json")
    assert not (folder / "history").exists()


def test_two_runs_side_by_side():
    text = history.compared(entry("a" * 12, both=2.0, gone=1.0), entry("b" * 12, both=3.0, new=4.0))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| both | 2.00 | 3.00 | +50% |", "| new |  | 4.00 |  |", "| gone | 1.00 | | |"]
    with pytest.raises(SystemExit, match="do not compare"):
        history.compared(entry(x=1.0), entry(size="full", x=1.0))


def test_ratios_of_each_benchmark():
    """Those above 1 are ours to the good."""
    solver = {
        "against_peers": {"solver": [{"h": 0.0, "dtype": "float64", "times_highs": 9.0, "times_reference": 4.0}]},
        "high_dimension": {"dense": [{"dense_ms": 8.0, "blocks_ms": 1.0}, {"dense_ms": 2.0, "blocks_ms": 1.0}]},
    }
    assert [value for _, value in history.solver_ratios(solver)] == pytest.approx([9, 4, 4])
    rows = [{"method": "hamming", "ratios": {"F": r}, "alone_ratios": {"F": 1.0}} for r in (2.0, 8.0)]
    assert dict(history.scan_ratios({"scan": rows})) == pytest.approx(
        {"scan, hamming, many queries: FAISS F": 4, "scan, hamming, one query: FAISS F": 1}
    )
    names = ("LSHEncoder", "ITQEncoder", "AntiSparseEncoder h = 0.1", "faiss LSH add", "faiss PQ16x8 add")
    rates = {name: {"vectors_per_s": rate} for name, rate in zip(names, (6.0, 3.0, 2.0, 3.0, 4.0), strict=True)}
    assert [value for _, value in history.encoding_ratios({"throughput": rates})] == [2, 1, 0.5]
    cells = [{"method": "IVF16,PQ8x4fs", "ratio": 2.0}, {"method": "IVF16,PQ8x4fs"}, {"method": "antisparse, x"}]
    assert dict(history.index_ratios({"cells": cells})) == {"index with cells, at equal recall: FAISS IVF PQ8x4fs": 2}
    recalls = [("antisparse, 8 bytes", 8, 0.6), ("PQ8x8", 8, 0.5), ("PQ16x4fs", 8, 0.3), ("PQ16x8", 16, 0.7)]
    found = [{"set": "s", "name": name, "bytes": n, "recall": [0, 0, 0, value]} for name, n, value in recalls]
    assert dict(history.recall_ratios({"rows": found})) == pytest.approx(
        {"recall, 10@10: FAISS PQ x8": 1.2, "recall, 10@10: FAISS PQ x4fs": 2}
    )
