"""Recall tuning: what is reported is measured anew from the parameters alone."""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from antisparse import AntiSparseEncoder, CodeBase, InputError, InputTypeError, Setting, Tuning, tune
from antisparse.cli import main
from antisparse.datasets import write_vectors
from antisparse.tuning import _drawn, _splits, wilson

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((20, 12)) * np.linspace(3, 0.3, 12)
X, Q = (CENTRES[RNG.integers(0, 20, n)] + 0.4 * RNG.standard_normal((n, 12)) for n in (600, 40))


@pytest.fixture(scope="module")
def budget() -> Tuning:
    return tune(X, n_bytes=6, at=5, random_state=3)


@pytest.fixture(scope="module")
def wanted() -> Tuning:
    return tune(X, queries=Q, recall=0.98, random_state=0)


def measured_anew(row: Setting, base: np.ndarray, train: np.ndarray, queries: np.ndarray, at: int) -> float:
    # The order of BLAS's sums is that of one thread, as in tune.
    with threadpool_limits(1, "blas"):
        encoder = AntiSparseEncoder(**row.parameters).fit(train)
    codes = CodeBase(encoder, encoder.transform(base))
    _, ids = codes.search(queries, at, method=row.method, shortlist=row.shortlist)
    nearest = ((queries[:, None] - base[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert row.n_bytes == (encoder.code_layout_.bit_bytes if row.method == "hamming" else codes.bytes_per_vector)
    assert row.n_bytes == row.term_bytes + encoder.code_layout_.code_size
    return float((ids == nearest[:, None]).any(axis=1).mean())


def test_every_row_for_a_budget_is_true_to_its_parameters(budget: Tuning) -> None:
    rows = np.random.default_rng(3).permutation(len(X))
    queries, base, train = X[rows[:60]], X[np.sort(rows[60:])], X[rows[60:]]
    assert (budget.n_queries, budget.n_base, budget.n_train) == (60, 540, 540)
    assert len(budget.rows) == 9  # three splits of signs, two of words, effort 3, two by Hamming distance, a shortlist
    for row in budget.rows:
        assert row.recall == measured_anew(row, base, train, queries, 5)
        assert (row.low, row.high) == wilson(row.recall, 60)
        assert (
            row.n_bytes == 6 == sum(getattr(row, f"{part}_bytes") for part in ("bit", "mean", "scale", "bias", "term"))
        )
        assert row.encode_us > 0 and row.search_us > 0
    assert budget.chosen in budget.rows
    assert budget.chosen.recall == max(row.recall for row in budget.rows)


def test_the_cheapest_reaches_the_recall_and_nothing_cheaper_does(wanted: Tuning) -> None:
    chosen = wanted.chosen
    assert chosen is not None and chosen.recall >= 0.98
    assert chosen.recall == measured_anew(chosen, X, X[np.random.default_rng(0).permutation(len(X))], Q, 10)
    cheaper = [row for row in wanted.rows if row.n_bytes < chosen.n_bytes]
    assert cheaper and max(row.recall for row in cheaper) < 0.98
    below = max(row.n_bytes for row in cheaper)
    assert {row.method for row in cheaper if row.n_bytes == below} == {"hamming", "reconstruction"}
    assert (wanted.n_base, wanted.n_queries, wanted.wanted, wanted.budget) == (600, 40, 0.98, None)


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(budget: Tuning) -> None:
    again = tune(X, n_bytes=6, at=5, random_state=3, n_threads=1)
    assert [(row.parameters, row.recall) for row in again.rows] == [(row.parameters, row.recall) for row in budget.rows]


def test_without_a_seed_the_seed_drawn_is_told() -> None:
    tuning = tune(X[:200], n_bytes=3)
    seeds = {row.parameters["random_state"] for row in tuning.rows}
    assert len(seeds) == 1
    again = tune(X[:200], n_bytes=3, random_state=seeds.pop())
    assert [row.recall for row in again.rows] == [row.recall for row in tuning.rows]


def test_words_are_found_below_where_signs_reach_the_recall() -> None:
    rng = np.random.default_rng(0)
    data = 3 * rng.standard_normal((60, 24))[rng.integers(0, 60, 2000)]
    data += rng.standard_normal(data.shape) * np.linspace(1.2, 0.3, 24)
    best = tune(data[200:], queries=data[:200], n_bytes=16, at=1, random_state=0).chosen
    assert best is not None and best.parameters["frame"] == "words"
    tuning = tune(data[200:], queries=data[:200], recall=best.recall, at=1, random_state=0)
    assert tuning.chosen is not None and tuning.chosen.n_bytes <= 16


def test_a_recall_out_of_reach_is_said_so() -> None:
    noise = np.random.default_rng(1).standard_normal((600, 4))
    tuning = tune(noise, recall=1.0, at=1, random_state=0)
    assert tuning.chosen is None
    assert max(row.n_bytes for row in tuning.rows) == 8  # two bytes a dimension end the ladder
    assert {row.parameters["effort"] for row in tuning.rows if row.n_bytes == 8} == {0, 2, 3}
    assert "No setting reaches 1. The best: " in tuning.report()


def test_equal_vectors_are_no_trouble() -> None:
    tuning = tune(np.ones((150, 3)), n_bytes=3, random_state=0)
    assert tuning.chosen is not None and tuning.chosen.recall == 1


@pytest.mark.parametrize(
    ("n_bytes", "n_train", "bits"),
    [
        (2, 30_000, {(1, False): 8, (1, "half"): 12}),
        (3, 30_000, {(1, False): 16, (1, "half"): 20, (1, True): 8, (256, False): 8, (256, "half"): 12}),
        (16, 20_479, {(1, False): 120, (1, True): 112}),
        (16, 20_480, {(1, False): 120, (1, True): 112, (256, False): 112, (256, True): 104}),
        (20, 20_479, {(1, False): 152, (1, True): 144}),
    ],
)
def test_splits_spend_all_the_bytes(n_bytes: int, n_train: int, bits: dict) -> None:
    splits = {"learned": [], "words": []}
    for split in _splits(n_bytes, n_train):
        splits[split["frame"]].append(((split["means"], split.get("bias", split["scale"])), split["n_bits"]))
    assert dict(splits["learned"]) == bits and len(splits["learned"]) == len(bits)
    plain = {key: bits[key] for key in ((1, False), (1, "half")) if key in bits}  # words have no scale, and no mean
    assert dict(splits["words"]) == (plain if n_bytes <= 16 else {}) and len(splits["words"]) <= len(plain)


@pytest.mark.parametrize(("n_bytes", "d"), [(2, 3), (4, 100), (5, 100), (16, 100), (64, 100)])
def test_drawn_frames_have_two_bits_a_dimension(n_bytes: int, d: int) -> None:
    tries = list(_drawn(n_bytes, d, 20))
    assert len(tries) == 2 + (n_bytes > 4)
    for parameters, method, shortlist in tries:
        assert 2 * min(d, parameters.get("pca", d)) <= parameters["n_bits"]
        assert (method, shortlist) in (("hamming", None), ("reconstruction", 200))
        assert parameters["n_bits"] == 8 * (n_bytes - 4 * (shortlist is not None))


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (5, 10), (10, 10), (1, 1), (950, 1000), (9_999, 10_000)])
def test_wilson_is_that_of_scipy(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.95, "wilson")
    np.testing.assert_allclose(wilson(hits / n, n), (expected.low, expected.high), atol=1e-12)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_part_and_solves_its_equation(draw: tuple[int, int]) -> None:
    hits, n = draw
    part = hits / n
    low, high = wilson(part, n)
    assert 0 <= low <= part <= high <= 1
    for end in (low, high):  # where the part is 1.96 deviations of the end away
        if 0 < end < 1:
            np.testing.assert_allclose((part - end) ** 2, 1.959964**2 * end * (1 - end) / n, rtol=1e-4, atol=1e-9)
    narrow = wilson(part, 4 * n)
    assert narrow[1] - narrow[0] < high - low


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of n_bytes and recall"),
        ({"n_bytes": 8, "recall": 0.9}, "give one of n_bytes and recall"),
        ({"recall": 0.0}, "recall = 0; it must be above 0"),
        ({"recall": 1.01}, "recall = 1.01"),
        ({"recall": -0.1}, "recall = -0.1"),
        ({"recall": float("nan")}, "recall = nan"),
        ({"n_bytes": 1}, "n_bytes = 1; it must be at least 2"),
        ({"n_bytes": 5000}, "n_bytes = 5000"),
        ({"n_bytes": 4, "at": 0}, "at = 0"),
        ({"n_bytes": 4, "at": 540}, "only 540 vectors are searched"),
        ({"n_bytes": 4, "random_state": -1}, "random_state = -1"),
        ({"n_bytes": 4, "n_threads": 0}, "n_threads = 0"),
        ({"n_bytes": 4, "queries": Q[:, :11]}, "of X's 12 columns"),
        ({"n_bytes": 4, "queries": Q[:0]}, "pass at least one row"),
        ({"n_bytes": 4, "queries": np.where(np.isin(Q, Q[3, 2]), np.inf, Q)}, "queries row 3, column 2 is inf"),
        ({"n_bytes": 4, "X": X[:99]}, "X has 99 rows; tuning needs at least 100"),
        ({"n_bytes": 4, "X": np.where(np.isin(X, X[7, 5]), np.nan, X)}, "X row 7, column 5 is nan"),
        ({"n_bytes": 4, "X": X[0]}, "expected 2 dimensions"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune(options.pop("X", X), **options)


@pytest.mark.parametrize(
    "options", [{"recall": "high"}, {"n_bytes": 4.0}, {"n_bytes": 4, "at": True}, {"n_bytes": 4, "progress": 1}]
)
def test_bad_types(options: dict) -> None:
    with pytest.raises(InputTypeError):
        tune(X, **options)


def test_the_table_shows_every_row_and_the_report_what_to_paste(wanted: Tuning) -> None:
    head, *lines = wanted.table().splitlines()
    assert len(lines) == len(wanted.rows) and "recall@10" in head
    starred = [row for row, line in zip(wanted.rows, lines, strict=True) if line.startswith("*")]
    assert starred == [wanted.chosen]
    for row, line in zip(wanted.rows, lines, strict=True):
        assert f"{row.recall:.3f}" in line and f"{row.low:.3f} to {row.high:.3f}" in line
    report = wanted.report()
    assert "Recall falls as the base grows" in report
    pasted = eval(wanted.chosen.encoder_line, {"AntiSparseEncoder": AntiSparseEncoder})
    assert wanted.chosen.encoder_line in report and wanted.chosen.search_line in report
    assert pasted.get_params() == AntiSparseEncoder(**wanted.chosen.parameters).get_params()
    assert ("The interval goes below 0.98" in report) == (wanted.chosen.low < 0.98)


def test_the_dictionary_is_json(wanted: Tuning) -> None:
    content = json.loads(json.dumps(wanted.to_dict()))
    assert [Setting(**row) for row in content["rows"]] == wanted.rows
    assert set(content) == {field.name for field in fields(Tuning)}


def test_pictures(budget: Tuning, wanted: Tuning, tmp_path: Path) -> None:
    wanted.plot(tmp_path / "new" / "wanted.png")
    assert (tmp_path / "new" / "wanted.png").read_bytes().startswith(b"\x89PNG")
    budget.plot(tmp_path / "budget.svg")
    assert "<svg" in (tmp_path / "budget.svg").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="must end in"):
        budget.plot(tmp_path / "picture.txt")


def test_the_command(budget: Tuning, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vectors(tmp_path / "base.npy", X)
    write_vectors(tmp_path / "query.npy", np.full((3, 12), np.nan))  # never read unless asked for
    picture = tmp_path / "tune.png"
    common = ["--bytes", "6", "--at", "5", "--seed", "3"]
    assert main(["tune", str(tmp_path), *common, "--plot", str(picture)]) == 0
    shown = capsys.readouterr()
    assert budget.chosen.encoder_line in shown.out and f"picture: {picture}" in shown.out and picture.exists()
    assert shown.err.count("\n") == len(budget.rows)  # a line for each, as it is measured
    assert main(["tune", str(tmp_path / "base.npy"), *common, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["recall"] for row in content["rows"]] == [row.recall for row in budget.rows]
    assert content["command"].startswith("antisparse tune")


def test_the_command_with_queries_a_limit_and_a_recall_out_of_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, queries = tmp_path / "base.fvecs", tmp_path / "q.npy"
    noise = np.random.default_rng(1).standard_normal((500, 3)).astype(np.float32)
    write_vectors(base, noise)
    write_vectors(queries, noise[:40] + 0.1)
    options = ["--queries", str(queries), "--limit", "300", "--recall", "1", "--at", "1", "--json"]
    assert main(["tune", str(base), *options]) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["n_base"], content["n_queries"], content["chosen"]) == (300, 40, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.npy", "--recall", "0.9"], "DATA nowhere.npy: there is no such file"),
        (["x.npy"], "--recall"),
        (["x.npy", "--recall", "0.9", "--bytes", "8"], "not allowed with"),
        (["x.npy", "--recall", "95"], "recall = 95; it must be above 0 and at most 1"),
        (["x.npy", "--bytes", "1"], "n_bytes = 1"),
        (["x.npy", "--bytes", "8", "--limit", "0"], "--limit = 0"),
        (["x.npy", "--bytes", "8", "--limit", "50"], "X has 50 rows"),
        (["x.npy", "--bytes", "8", "--seed", "-1"], "--seed = -1"),
        (["x.npy", "--bytes", "8", "--queries", "none.npy"], "none.npy"),
        (["x.npy", "--bytes", "8", "--plot", "picture.txt"], "must end in .png"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vectors("x.npy", X)
    try:
        code = main(["tune", *arguments])
    except SystemExit as error:  # of argparse
        code = error.code
    shown = capsys.readouterr()
    assert code == 2 and message in shown.err and shown.err.count("\n") == 1 and not shown.out


def test_without_matplotlib_a_picture_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    write_vectors(tmp_path / "x.npy", X)
    assert main(["tune", str(tmp_path / "x.npy"), "--bytes", "8", "--plot", str(tmp_path / "p.png")]) == 1
    error = capsys.readouterr().err
    assert "pip install 'antisparse[plot]'" in error and error.count("\n") == 1


def test_importing_the_package_stays_light() -> None:
    heavy = "antisparse.tuning", "sklearn", "matplotlib"
    check = f"import sys, antisparse; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
