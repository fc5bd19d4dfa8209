"""The commands of an index: what they do, what they say, and how they fail."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from antisparse import Codec, Index, LearnedEncoder
from antisparse.cli import main
from antisparse.datasets import Dataset, read_vectors, write_dataset, write_vectors
from antisparse.evaluation import exact_neighbors, intersection_recall, recall_at

FORMAT1 = Path(__file__).parent / "index" / "format1"
RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((12, 8)) * 3
QUICK = ["--bytes", "4", "--symbols", "signs", "--effort", "1"]


def draw(n: int) -> np.ndarray:
    return (CENTRES[RNG.integers(0, 12, n)] + RNG.standard_normal((n, 8))).astype(np.float32)


BASE, MORE, QUERIES = draw(600), draw(50), draw(13)
TRUTH = exact_neighbors(BASE, QUERIES, 100)[1].astype(np.int32)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for name, X in (("base", BASE), ("query", QUERIES), ("more", MORE)):
        write_vectors(folder / f"{name}.fvecs", X)
    write_vectors(folder / "truth.ivecs", TRUTH)
    write_vectors(folder / "wide.npy", np.ones((5, 9)))
    assert main(["build", str(folder / "base.fvecs"), "-o", str(folder / "index"), *QUICK]) == 0
    assert main(["build", str(folder / "base.fvecs"), "-o", str(folder / "cells"), *QUICK, "--cells", "6"]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of everything, and the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as error:  # of argparse
        return int(error.code or 0)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def printed(capsys: pytest.CaptureFixture[str]) -> dict:
    shown = capsys.readouterr()
    assert not shown.err
    return json.loads(shown.out)


def test_a_round_trip(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = LearnedEncoder(4, symbols="signs", effort=1, random_state=0).fit(BASE)
    with Index.open("index", read_only=True) as index:
        assert index.codec == expected.codec_
        np.testing.assert_array_equal(index.codes(np.arange(600)), expected.transform(BASE))
    capsys.readouterr()
    assert run("add", "index", "more.fvecs") == 0
    assert capsys.readouterr().out == "added 50 vectors, ids 600 to 649: now 650\n"
    np.save("ids.npy", np.arange(1000, 1050, dtype=np.uint64))
    assert run("add", "index", "more.fvecs", "--ids", "ids.npy", "--json", "--threads", 1) == 0
    shown = printed(capsys)
    assert (shown["added"], shown["first_id"], shown["last_id"], shown["vectors"]) == (50, 1000, 1049, 700)
    Path("some.txt").write_text("600\n601\n\n602 603\n")
    assert run("remove", "index", 3, "some.txt", "ids.npy") == 0
    assert capsys.readouterr().out == "removed 55 vectors: now 645\n"
    assert run("remove", "index", 4, "--json") == 0
    assert printed(capsys)["vectors"] == 644
    assert run("info", "index", "--json") == 0
    stats = printed(capsys)
    with Index.open("index", read_only=True) as index:
        assert stats == {"command": "antisparse info index --json", **index.stats()}
        before = index.search(QUERIES, 20)
    assert run("info", "index") == 0
    assert "644" in capsys.readouterr().out
    assert run("compact", "index", "--json") == 0
    shown = printed(capsys)
    assert shown["before"]["deleted"] > 0 and (shown["after"]["deleted"], shown["after"]["segments"]) == (0, 1)
    assert run("compact", "index") == 0
    assert run("verify", "index") == 0
    assert "sound: 644 vectors" in capsys.readouterr().out
    with Index.open("index", read_only=True) as index:
        for one, other in zip(before, index.search(QUERIES, 20), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--method", "hamming"], {"method": "hamming"}),
        (["--shortlist", "40", "--threads", "1"], {"shortlist": 40}),
        (["--rerank", "base.fvecs"], {"rerank": BASE}),
        (["--filter", "five.npy"], {"filter": np.arange(5)}),  # fewer than k: -1, and no distance
        (["--filter", "mask.npy"], {"filter": np.arange(600) % 2 == 0}),
    ],
)
def test_results_in_every_form_are_those_of_the_index(
    arguments: list[str], options: dict, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    np.save("five.npy", np.arange(5))
    np.save("mask.npy", np.arange(600) % 2 == 0)
    with Index.open("index", read_only=True) as index:
        distances, ids = index.search(QUERIES, 7, **options)
    for name in ("out.npy", "out.parquet", "out.json"):
        assert run("search", "index", "query.fvecs", "-k", 7, "-o", name, *arguments) == 0
        assert capsys.readouterr().out.startswith(f"ids and distances of 13 queries, 7 each: {name}")
    for name, expected in (("out.npy", ids), ("out.distances.npy", distances)):
        found = read_vectors(name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    table = parquet.read_table("out.parquet").to_pydict()
    assert table == {"ids": ids.tolist(), "distances": distances.tolist()}
    wanted = np.where(ids < 0, None, distances.astype(object)).tolist()
    stored = json.loads(Path("out.json").read_text())
    assert run("search", "index", "query.fvecs", "-k", 7, "--json", *arguments) == 0
    shown = printed(capsys)
    for results in (stored, shown):
        assert (results["queries"], results["k"]) == (13, 7)
        assert results["ids"] == ids.tolist() and results["distances"] == wanted
    assert run("search", "index", "query.fvecs", "-k", 7, "--json", "-o", "out.npy", *arguments) == 0
    assert printed(capsys)["files"] == ["out.npy", "out.distances.npy"]
    assert not [name for name in os.listdir() if name.startswith(".out")]


def test_results_are_shown_as_a_table(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with Index.open("cells", read_only=True) as index:
        ids = index.search(QUERIES, 10, probes=2)[1]
    assert run("search", "cells", "query.fvecs", "--probes", 2) == 0
    shown = capsys.readouterr().out
    for row in ids[:10, :5]:
        assert "  ".join(map(str, row)) in shown
    assert shown.endswith("10 of 13 queries, 5 of 10 results each; -o FILE or --json gives all\n")
    write_vectors("none.fbin", np.zeros((0, 8), np.float32))
    assert run("search", "cells", "none.fbin", "-k", 2) == 0
    assert capsys.readouterr().out.count("\n") < 6
    assert run("search", "cells", "none.fbin", "-k", 2, "--json") == 0
    assert printed(capsys)["ids"] == []


def recalls_of(ids: np.ndarray, truth: np.ndarray, k: int) -> dict[str, float]:
    """By NumPy: the first true neighbour among the first R; how many of the first ten are among the first ten."""
    recalls = {f"1@{R}": float((ids[:, :R] == truth[:, :1]).any(axis=1).mean()) for R in (1, 10, 100) if k >= R}
    if k >= 10:
        both = [len(np.intersect1d(found[:10], true[:10])) for found, true in zip(ids, truth, strict=True)]
        recalls["10@10"] = float(np.mean(both)) / 10
    return recalls


@pytest.mark.parametrize("k", [100, 10, 5, None])
@pytest.mark.parametrize("name", ["index", "cells"])
def test_eval(name: str, k: int | None, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Index.open(name, read_only=True) as index:
        ids = index.search(QUERIES, k or 100)[1]
    options = [] if k is None else ["-k", k]  # 100 by default
    assert run("eval", name, "query.fvecs", "truth.ivecs", *options, "--json") == 0
    shown = printed(capsys)
    expected = recalls_of(ids, TRUTH, k or 100)
    found = {key: value for key, value in shown.items() if "@" in key}
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found["1@1"] == recall_at(ids, TRUTH, 1) > 0
    assert "10@10" not in found or found["10@10"] == intersection_recall(ids, TRUTH, 10) > 0.3
    assert shown["queries_per_second"] > 0 and (shown["queries"], shown["k"]) == (13, k or 100)
    assert run("eval", name, "query.fvecs", "truth.ivecs", *options) == 0
    table = capsys.readouterr().out
    assert all(key in table and f"{value:.4f}" in table for key, value in found.items())


def test_eval_with_fewer_than_ten_true_neighbours(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vectors("few.ivecs", TRUTH[:, :9])
    assert run("eval", "index", "query.fvecs", "few.ivecs", "--json") == 0
    assert [key for key in printed(capsys) if "@" in key] == ["1@1", "1@10", "1@100"]


def test_data_sets_as_folders_and_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("h5py")
    write_dataset("all.h5", Dataset(BASE, MORE, QUERIES, TRUTH, "all"))
    os.mkdir("all")
    for name, X in (("base", BASE), ("learn", MORE), ("query", QUERIES), ("groundtruth", TRUTH)):
        write_vectors(f"all/x_{name}.npy", X)
    results = []
    for data, index in (("all.h5", "one"), ("all", "two")):
        options = [*QUICK, "--learn", data, "--train", 40, "--seed", 3, "--threads", 1, "--json"]
        assert run("build", data, "-o", index, *options) == 0
        shown = printed(capsys)
        assert (shown["index"], shown["vectors"], shown["trained"], shown["code_bytes"]) == (index, 600, 40, 4)
        assert shown["code"] == "28 signs, bias nibble"
        assert run("eval", index, data, data, "--json") == 0
        results.append({key: value for key, value in printed(capsys).items() if "@" in key})
    assert results[0] == results[1] and len(results[0]) == 4
    assert run("search", "one", "all.h5", "--column", "train", "-k", 1, "-o", "out.npy") == 0
    assert len(read_vectors("out.npy")) == 600


@pytest.mark.parametrize("metric", ["cosine", "ip"])
def test_metrics(metric: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "base.fvecs", "-o", "other", *QUICK, "--metric", metric) == 0
    assert capsys.readouterr().out.startswith("other: 600 vectors of 8 dimensions, 4 bytes each")
    assert run("info", "other", "--json") == 0
    assert printed(capsys)["metric"] == metric
    truth = exact_neighbors(BASE, QUERIES, 1, metric=metric)[1]
    np.save("truth.npy", truth)
    assert run("eval", "other", "query.fvecs", "truth.npy", "-k", 100, "--json") == 0
    assert printed(capsys)["1@100"] > 0.9


@pytest.mark.parametrize(
    ("options", "bytes_", "code", "cells"),
    [
        ([], 16, "120 signs, bias byte", 1),
        (["--bytes", "1"], 1, "1 codebook, bias nibble", 1),
        (["--bytes", "6", "--symbols", "codebooks", "--cells", "5"], 6, "9 codebooks, 5 cells, bias nibble", 5),
        (["--bytes", "9", "--symbols", "signs", "--cells", "1"], 9, "64 signs, bias byte", 1),
        (["--bytes", "1", "--metric", "ip", "--cells", "auto"], 1, "2 codebooks", 1),
        (
            ["--bytes", "5", "--metric", "cosine", "--symbols", "codebooks", "--cells", "300"],
            5,
            "5 codebooks, 300 cells",
            300,
        ),
    ],
)
def test_what_codes_are_made_of(
    options: list[str], bytes_: int, code: str, cells: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("build", "base.fvecs", "-o", "new", "--effort", 1, *options) == 0
    assert f"{bytes_} bytes each ({code}" in capsys.readouterr().out
    assert run("info", "new", "--json") == 0
    shown = printed(capsys)
    assert (shown["code_bytes"], shown["cells"], shown["vectors"]) == (bytes_, cells, 600)
    assert shown["code"].startswith(code)
    assert run("search", "new", "query.fvecs", "-k", 3, "--json") == 0
    with Index.open("new", read_only=True) as index:
        assert printed(capsys)["ids"] == index.search(QUERIES, 3)[1].tolist()


def test_large_sets_get_cells(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("antisparse.index.build._FLAT", 600)
    for options, cells in (([], 8), (["--train", 200], 4), (["--cells", 1], 1), (["--cells", 3], 3)):
        assert run("build", "base.fvecs", "-o", f"new{cells}", *QUICK, *options, "--json") == 0
        assert printed(capsys)["cells"] == cells


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["build", "base.fvecs", "-o", "index"], 2, "-o 'index': it exists already"),
        (["build", "base.fvecs", "-o", "no/index"], 2, "there is no folder 'no'"),
        (["build", "base.fvecs"], 2, "the following arguments are required: -o/--out"),
        (["build", "gone.npy", "-o", "new"], 2, "VECTORS gone.npy: there is no such file or folder"),
        (["build", "base.xyz", "-o", "new"], 2, "suffix '.xyz'"),
        (["build", "cut.fvecs", "-o", "new"], 1, "truncated"),
        (["build", "none.fbin", "-o", "new"], 2, "VECTORS has no rows; an index is learned from vectors"),
        (["build", "nan.npy", "-o", "new"], 2, "VECTORS row 450, column 3 is nan"),
        (["build", "nan.npy", "-o", "new", "--learn", "more.fvecs"], 2, "VECTORS row 450, column 3 is nan"),
        (["build", "zero.npy", "-o", "new", "--metric", "cosine", "--train", "50"], 2, "VECTORS row 77 is zero"),
        (
            ["build", "base.fvecs", "-o", "new", "--learn", "wide.npy"],
            2,
            "--learn has vectors of 9 dimensions; those to add have 8",
        ),
        (["build", "base.fvecs", "-o", "new", "--learn", "empty"], 1, "there is no file base.*"),
        (["build", "base.fvecs", "-o", "new", "--bytes", "0"], 2, "--bytes = 0"),
        (["build", "base.fvecs", "-o", "new", "--cells", "0"], 2, "--cells = 0"),
        (["build", "base.fvecs", "-o", "new", "--cells", "many"], 2, "--cells"),
        (["build", "base.fvecs", "-o", "new", "--bytes", "1", "--cells", "2"], 2, "leaves nothing for symbols"),
        (["build", "base.fvecs", "-o", "new", "--symbols", "words"], 2, "invalid choice"),
        (["build", "base.fvecs", "-o", "new", "--effort", "0"], 2, "invalid choice"),
        (["build", "base.fvecs", "-o", "new", "--cells", "601"], 2, "cells = 601, but X has 600 vectors"),
        (["build", "base.fvecs", "-o", "new", "--train", "0"], 2, "--train = 0"),
        (["build", "base.fvecs", "-o", "new", "--seed", "-1"], 2, "--seed = -1"),
        (["build", "base.fvecs", "-o", "new", "--threads", "0"], 2, "--threads = 0"),
        (["build", "base.fvecs", "-o", "new", "--metric", "l1"], 2, "invalid choice"),
        (["add", "gone", "more.fvecs"], 2, "INDEX gone: there is no such folder"),
        (["info", "base.fvecs"], 2, "INDEX base.fvecs: it is no folder, as an index is"),
        (["add", "empty", "more.fvecs"], 1, "empty is not an index"),
        (["add", "index", "wide.npy"], 2, "VECTORS has vectors of 9 dimensions; those of the index have 8"),
        (["add", "index", "nan.npy"], 2, "VECTORS row 450, column 3 is nan"),
        (["add", "index", "more.fvecs", "--ids", "few.txt"], 2, "--ids few.txt has 2 ids for 50 vectors"),
        (["add", "index", "more.fvecs", "--ids", "taken.npy"], 2, "id 500 is there already"),
        (["add", "index", "more.fvecs", "--ids", "gone.txt"], 2, "--ids gone.txt: there is no such file"),
        (["add", "index", "more.fvecs", "--ids", "more.fvecs"], 2, "it must hold one number a row"),
        (["add", "index", "more.fvecs", "--ids", "float.npy"], 2, "ids are integers"),
        (["add", "index", "more.fvecs", "--ids", "words.txt"], 1, "'three' is not a whole number"),
        (["add", "index", "more.fvecs", "--ids", "junk.dat"], 1, "neither text"),
        (["add", "index", "more.fvecs", "--ids", "junk.npy"], 1, "not a sound npy file"),
        (["remove", "index", "600"], 2, "id 600 is not in the index"),
        (["remove", "index", "1", "1"], 2, "twice"),
        (["remove", "index", "-1"], 2, "out of range"),
        (["remove", "index", str(2**64)], 2, "does not fit int64"),
        (["remove", "index", "large.npy"], 2, "ids are below 2^63 - 1"),
        (["remove", "index", "gone.txt"], 2, "neither a number nor a file"),
        (["remove", "index", "bool.npy"], 2, "ids are integers"),
        (["remove", "index"], 2, "required: IDS"),
        (["search", "index", "gone.npy"], 2, "QUERIES gone.npy"),
        (["search", "index", "wide.npy"], 2, "QUERIES has vectors of 9 dimensions"),
        (["search", "index", "nan.npy"], 2, "QUERIES row 450, column 3 is nan"),
        (["search", "index", "query.fvecs", "-k", "0"], 2, "-k = 0"),
        (["search", "index", "query.fvecs", "--probes", "0"], 2, "probes = 0"),
        (["search", "index", "query.fvecs", "--probes", "few"], 2, "--probes"),
        (
            ["search", "index", "query.fvecs", "-o", "out.txt"],
            2,
            "its suffix must be one of .npy, .parquet, .json, .jsonl, .csv",
        ),
        (["search", "index", "query.fvecs", "-o", "no/out.npy"], 2, "there is no folder no"),
        (["search", "index", "query.fvecs", "-o", "folder.npy"], 2, "it is a folder"),
        (["search", "index", "query.fvecs", "--filter", "float.npy"], 2, "ids are integers"),
        (["search", "index", "query.fvecs", "--rerank", "wide.npy"], 2, "--rerank has vectors of 9"),
        (["search", "index", "query.fvecs", "--rerank", "more.fvecs"], 2, "rerank has 50 rows"),
        (["search", "cells", "query.fvecs", "--method", "hamming"], 2, "signs relative to different means"),
        (["eval", "index", "query.fvecs", "more.fvecs"], 2, "TRUTH more.fvecs has dtype float32"),
        (["eval", "index", "more.fvecs", "truth.ivecs"], 2, "TRUTH has 13 rows for 50 queries"),
        (["info", "gone"], 2, "INDEX gone"),
        (["info", "old"], 1, "the index was written by antisparse 0.1"),
        (["add", "old", "more.fvecs"], 1, "the index was written by antisparse 0.1"),
        (["search", "old", "query.fvecs"], 1, "the index was written by antisparse 0.1"),
        (["verify", "empty"], 1, "empty is not an index"),
        (["compact", "more.fvecs"], 2, "INDEX more.fvecs"),
    ],
)
def test_what_fails_says_so_in_one_line_and_changes_nothing(
    arguments: list[str], code: int, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkdir("empty")
    os.mkdir("folder.npy")
    shutil.copytree(FORMAT1, "old")
    shutil.copy("base.fvecs", "base.xyz")
    Path("cut.fvecs").write_bytes(Path("base.fvecs").read_bytes()[:-3])
    write_vectors("none.fbin", np.zeros((0, 8), np.float32))
    bad = BASE.copy()
    bad[450, 3] = np.nan
    np.save("nan.npy", bad)
    zero = BASE[:78].copy()
    zero[77] = 0
    np.save("zero.npy", zero)
    Path("few.txt").write_text("7 8")
    Path("words.txt").write_text("1\n2\nthree\n")
    np.save("taken.npy", np.arange(50)[::-1] * 100)
    np.save("float.npy", np.arange(50.0))
    np.save("bool.npy", np.ones(3, bool))
    np.save("large.npy", np.array([3, 2**63], np.uint64))
    for name in ("junk.npy", "junk.dat"):
        Path(name).write_bytes(b"\xff\xfe\xfd")
    before = set(os.listdir()), content(here / "index"), content(here / "old")
    assert run(*arguments) == code
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and not shown.out
    assert shown.err.startswith(f"antisparse {arguments[0]}: ")
    assert (set(os.listdir()), content(here / "index"), content(here / "old")) == before


def test_damage_is_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = next(path for path in (here / "index").iterdir() if path.name.startswith("segment"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1  # of a code
    segment.write_bytes(data)
    assert run("verify", "index") == 1
    shown = capsys.readouterr()
    assert segment.name in shown.err and "damaged" in shown.err and shown.err.count("\n") == 1 and not shown.out
    assert run("verify", "index", "--json") == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["sound"] is False and shown.err.count("\n") == 1


def test_an_index_open_elsewhere_is_not_changed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Index.open("index"):
        assert run("add", "index", "more.fvecs") == 1
        assert "open for writing elsewhere" in capsys.readouterr().err
        assert run("search", "index", "query.fvecs") == 0


def test_without_pyarrow_nothing_is_searched(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("search", "gone", "query.fvecs", "-o", "out.parquet") == 1
    error = capsys.readouterr().err
    assert "pip install 'antisparse[parquet]'" in error and error.count("\n") == 1


def test_too_little_memory(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def search(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate\n208 GiB")

    monkeypatch.setattr(Index, "search", search)
    assert run("search", "index", "query.fvecs") == 1
    assert capsys.readouterr().err == "antisparse search: not enough memory: Unable to allocate 208 GiB\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("command", ["build", "add"])
def test_what_is_stopped_half_way_leaves_nothing(
    command: str,
    error: BaseException,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encode, calls = Codec.encode, []

    def stopping(self: Codec, X: np.ndarray, **options: object) -> np.ndarray:
        calls.append(len(X))
        if len(calls) == 3:
            raise error
        return encode(self, X, **options)

    monkeypatch.setattr("antisparse.index.build.BATCH", 10)
    monkeypatch.setattr("antisparse.index.writer._SEGMENT_ROWS", 10)  # so that some are on the disk by then
    monkeypatch.setattr(Codec, "encode", stopping)
    before = set(os.listdir()), content(here / "index")
    arguments = ["base.fvecs", "-o", "new", *QUICK] if command == "build" else ["index", "more.fvecs"]
    assert run(command, *arguments) == (130 if isinstance(error, KeyboardInterrupt) else 1)
    assert calls == [10, 10, 10]
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1 and not shown.out
    if command == "add" and isinstance(error, KeyboardInterrupt):
        assert shown.err == "antisparse add: stopped; the index is as it was\n"
    assert (set(os.listdir()), content(here / "index")) == before


def test_ctrl_c_that_comes_too_late_is_said_to(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("antisparse.index.store.FolderStore.clean", stop)  # the first thing after the commit
    assert run("remove", "index", 5) == 130
    assert capsys.readouterr().err == "antisparse remove: stopped, but the change was made already\n"
    with Index.open("index", read_only=True) as index:
        assert 5 not in index and len(index) == 599


_SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job ignores
from antisparse import Codec
from antisparse.cli import main
def slow(self, X, **options):
    print("encoding", flush=True)
    time.sleep(60)
Codec.encode = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise there")
def test_a_signal_leaves_the_index_as_it_was(here: Path) -> None:
    before = content(here / "index")
    arguments = [sys.executable, "-c", _SLOW, "add", "index", "more.fvecs"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "encoding\n"
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=20)[1]
    assert process.returncode == 130 and error == "antisparse add: stopped; the index is as it was\n"
    assert content(here / "index") == before
    assert main(["verify", "index"]) == 0


def test_codebooks_have_no_signs_to_compare(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "base.fvecs", "-o", "codebooks", "--bytes", 4, "--symbols", "codebooks", "--effort", 1) == 0
    with Index.open("codebooks", read_only=True) as index:
        assert index.codec.summary == "7 codebooks, bias nibble" and len(index) == 600
    capsys.readouterr()
    for method in ("hamming", "asymmetric"):
        assert run("search", "codebooks", "query.fvecs", "-k", "2", "--method", method) == 2
        assert "have no signs to compare" in capsys.readouterr().err


def test_from_a_shell(here: Path) -> None:
    command = [sys.executable, "-m", "antisparse"]
    built = subprocess.run([*command, "build", "base.fvecs", "-o", "new", *QUICK], capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")
    assert built.stdout == "new: 600 vectors of 8 dimensions, 4 bytes each (28 signs, bias nibble); learned from 600\n"
    with Index.open("index", read_only=True) as one, Index.open("new", read_only=True) as other:  # the same seed
        np.testing.assert_array_equal(one.codes(one.ids), other.codes(other.ids))
    # A reader that goes away is no error to talk of.
    arguments = [*command, "search", "new", "base.fvecs", "-k", "300", "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(9) == b'{"command'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
