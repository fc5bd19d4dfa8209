"""Recall tuning: what is reported is measured anew from the parameters alone, and the lines to paste are run."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from antisparse import CodeBase, Index, InputError, InputTypeError, Setting, Split, Tuning, choose_split, tune
from antisparse.cli import main
from antisparse.datasets import write_vectors
from antisparse.encoders.learned import LearnedEncoder
from antisparse.index.build import cell_count
from antisparse.tuning.intervals import mean_interval, wilson
from antisparse.tuning.progress import duration, teller
from antisparse.tuning.setting import MANY, Recall
from antisparse.tuning.strategy import RecallSearch, best, cheapest, ladder
from antisparse.tuning.ways import Way, all_ways, with_more_effort

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((20, 12)) * np.linspace(3, 0.3, 12) + 1
X, Q = (CENTRES[RNG.integers(0, 20, n)] + 0.4 * RNG.standard_normal((n, 12)) for n in (600, 40))


@pytest.fixture(scope="module")
def budget() -> Tuning:
    return tune(X, n_bytes=6, measure="5@5", random_state=3)


@pytest.fixture(scope="module")
def wanted() -> Tuning:
    return tune(X, queries=Q, recall=0.95, metric="cosine", random_state=0)


def measured_anew(
    row: Setting, base: np.ndarray, train: np.ndarray, queries: np.ndarray, measure: str, metric: str = "l2"
) -> np.ndarray:
    """The part found of each query: one query at a time, one pair at a time."""
    with threadpool_limits(1, "blas"):  # the order of sums is that of one thread, as in tune
        codec = row.encoder().fit(train).codec_
    assert codec.n_bytes == row.n_bytes and codec.summary == row.code and codec.metric_name == metric
    k, among = map(int, measure.split("@"))
    ids = CodeBase(codec, codec.encode(base)).search(queries, among, method=row.method)[1]
    if metric == "cosine":
        base, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (base, queries))
    true = [np.argsort(((q - base) ** 2).sum(axis=1), kind="stable")[:k] for q in queries]
    return np.array([len(set(a) & set(b)) / k for a, b in zip(true, ids, strict=True)])


def test_every_row_for_a_budget_is_true_to_its_parameters(budget: Tuning) -> None:
    rows = np.random.default_rng(3).permutation(len(X))
    queries, base, train = X[rows[:60]], X[np.sort(rows[60:])], X[rows[60:]]
    assert (budget.n_queries, budget.n_base, budget.n_train, budget.n_indexed) == (60, 540, 540, 600)
    assert {row.way for row in budget.rows} >= {"default", "codebooks", "signs, scale", "Hamming"}
    assert len({str(row.parameters) for row in budget.rows}) == len(budget.rows)
    for row in budget.rows:
        assert list(row.recalls) == ["5@5", "1@10", "10@10"]  # the two usual ones are always there
        for measure, recall in row.recalls.items():
            parts = measured_anew(row, base, train, queries, measure)
            assert recall.value == pytest.approx(parts.mean(), abs=1e-12)
            neighbors = int(measure.split("@")[0])
            assert (recall.low, recall.high) == pytest.approx(mean_interval(parts, neighbors), abs=1e-12)
            assert recall.low < recall.value < recall.high or recall.value in (0, 1)
        assert row.n_bytes == 6 and row.encode_us > 0 and row.search_us > 0 and row.fit_seconds > 0
    assert budget.chosen in budget.rows and budget.chosen is budget.best
    assert budget.chosen.recalls["5@5"].value == max(row.recalls["5@5"].value for row in budget.rows)
    assert any(row.way.endswith("effort 3") for row in budget.rows)


def test_the_cheapest_reaches_the_recall_and_the_next_fewer_bytes_do_not(wanted: Tuning) -> None:
    chosen = wanted.chosen
    assert chosen is not None and chosen.recalls["1@10"].value >= 0.95
    train = X[np.random.default_rng(0).permutation(len(X))]
    assert chosen.recalls["1@10"].value == measured_anew(chosen, X, train, Q, "1@10", "cosine").mean()
    cheaper = [row for row in wanted.rows if row.n_bytes < chosen.n_bytes]
    assert cheaper and max(row.recalls["1@10"].value for row in cheaper) < 0.95
    # Every size up to 16 may be tried: each kind failed with one byte less, or even with more.
    failed = [row for row in wanted.rows if row.n_bytes >= chosen.n_bytes - 1 and row.recalls["1@10"].value < 0.95]
    assert {row.parameters["split"].symbols for row in failed if "split" in row.parameters} == {"codebooks", "signs"}
    assert (wanted.n_base, wanted.n_queries, wanted.wanted, wanted.budget) == (600, 40, 0.95, None)


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(budget: Tuning) -> None:
    again = tune(X, n_bytes=6, measure="5@5", random_state=3, n_threads=1)
    assert [(row.parameters, row.recalls) for row in again.rows] == [(r.parameters, r.recalls) for r in budget.rows]


def test_without_a_seed_the_seed_drawn_is_told() -> None:
    tuning = tune(X[:200], n_bytes=3)
    seeds = {row.parameters["random_state"] for row in tuning.rows}
    assert len(seeds) == 1
    again = tune(X[:200], n_bytes=3, random_state=seeds.pop())
    assert [row.recalls for row in again.rows] == [row.recalls for row in tuning.rows]


def test_a_recall_out_of_reach_is_said_so_with_the_best_there_is() -> None:
    noise = np.random.default_rng(1).standard_normal((400, 24))
    tuning = tune(noise, recall=1.0, measure="10@10", random_state=0)
    assert tuning.chosen is None and tuning.best.recalls["10@10"].value == max(
        row.recalls["10@10"].value for row in tuning.rows
    )
    assert max(row.n_bytes for row in tuning.rows) == 16
    assert "No setting of up to 16 bytes reaches 10@10 = 1. The best: 16 bytes" in " ".join(tuning.report().split())
    assert "none reaches 1; best: 16 bytes" in repr(tuning)
    json.dumps(tuning.to_dict())


def test_inner_products_and_equal_vectors_are_no_trouble() -> None:
    tuning = tune(X[:200], n_bytes=3, metric="ip", random_state=0)
    assert {row.method for row in tuning.rows} == {"reconstruction"}
    tuning = tune(np.ones((150, 3)), n_bytes=1, random_state=0)
    assert tuning.chosen is not None and tuning.chosen.recalls["1@10"].value == 1


# The strategy, on recalls that are known.


class KnownTrials:
    """Trials of ways whose recall is a function of the bytes."""

    def __init__(self, curves: dict[str, Any]) -> None:
        self.curves, self.rows, self.asked = curves, [], []
        self.sample = type("Sample", (), {"queries": range(1000)})()

    def decides(self, row: Setting) -> float:
        return row.recalls["1@10"].value

    def count_new(self, ways: list[Way], n_bytes: int) -> int:
        return len(ways)

    def measure(self, way: Way, n_bytes: int, ahead: int = 0) -> Setting:
        recall = self.curves[way.name](n_bytes)
        known = [row for row in self.rows if (row.way, row.n_bytes) == (way.name, n_bytes)]
        if not known:
            assert ahead >= 0
            known = [Setting(way.name, "", {}, "", n_bytes, "", {"1@10": Recall(recall, 0, 1)}, 0, 0, 0, 8)]
            self.rows += known
        return known[0]


def logistic(middle: float, steepness: float = 2.0) -> Any:
    return lambda n_bytes: 1 / (1 + (middle / n_bytes) ** steepness)


def searched(wanted: float, **middles: float) -> tuple[list[int], KnownTrials]:
    curves = {name: logistic(middle) for name, middle in middles.items()}
    curves["default, effort 3"] = curves["default"]
    trials, sizes = KnownTrials(curves), ladder(1024)
    RecallSearch(trials, sizes, wanted).run([Way(name, "", "", lambda n_bytes: {}) for name in middles])
    return sizes, trials


@given(st.floats(0.3, 0.999), st.floats(0.5, 200), st.floats(0.5, 200))
def test_the_search_finds_the_fewest_bytes_of_all_ways_in_few_trials(
    wanted: float, default: float, other: float
) -> None:
    sizes, trials = searched(wanted, default=default, other=other)
    reach = [n_bytes for n_bytes in sizes if max(logistic(m)(n_bytes) for m in (default, other)) >= wanted]
    found = [row.n_bytes for row in trials.rows if trials.decides(row) >= wanted]
    assert min(found, default=None) == min(reach, default=None)
    assert len(trials.rows) <= 24


def test_a_way_that_is_far_from_the_recall_costs_one_trial() -> None:
    _, trials = searched(0.95, default=6, hopeless=60)
    assert [row.n_bytes for row in trials.rows if row.way == "hopeless"] == [26]
    assert min(row.n_bytes for row in trials.rows if trials.decides(row) >= 0.95) == 28
    assert len(trials.rows) <= 8


def test_the_choice_is_the_fewest_bytes_then_the_default_then_the_usual_effort() -> None:
    def row(way: str, n_bytes: int, recall: float, effort: int = 2) -> Setting:
        return Setting(way, "", {"effort": effort}, "", n_bytes, "", {"1@10": Recall(recall, 0, 1)}, 0, 0, 0, 8)

    trials = KnownTrials({})
    few, hard, other, default = row("a", 8, 0.8), row("b", 9, 0.99, 3), row("c", 9, 0.95), row("default", 9, 0.91)
    trials.rows = [few, hard, other, default, row("default", 10, 0.995)]
    assert cheapest(trials, 0.9) is default and cheapest(trials, 0.94) is other and cheapest(trials, 0.98) is hard
    assert cheapest(trials, 0.7) is few and cheapest(trials, 0.999) is None and best(trials) is trials.rows[-1]


@pytest.mark.parametrize(("dimension", "last"), [(3, 16), (32, 16), (100, 48), (384, 192), (1536, 768), (9999, 2048)])
def test_sizes_end_at_half_a_byte_a_dimension(dimension: int, last: int) -> None:
    sizes = ladder(dimension)
    assert sizes[:15] == list(range(2, 17)) and sizes[-1] == last and sizes == sorted(set(sizes))


# The ways.


def given_by(ways: list[Way], n_bytes: int) -> dict[str, Split]:
    found = {way.name: way.parameters(n_bytes) for way in ways}
    return {name: given["split"] for name, given in found.items() if given is not None and "split" in given}


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("n_bytes", [1, 2, 3, 8, 16, 20, 33, 200])
def test_codebooks_and_signs_are_tried_at_every_size_the_default_first(n_bytes: int, metric: str) -> None:
    ways = all_ways(64, 50_000, 30_000, metric)
    splits = given_by(ways, n_bytes)
    assert next(iter(splits)) == "default" and splits["default"] == choose_split(n_bytes, 50_000, 64, metric=metric)
    assert {split.symbols for split in splits.values()} == {"codebooks", "signs"}
    assert all(split.nibbles(n_bytes) >= 1 for split in splits.values())
    assert ("codebooks, 256 cells" in splits) == (n_bytes <= 32 and n_bytes >= (2 if metric == "ip" else 3))
    assert not any(way.name.endswith("cells") for way in all_ways(64, 50_000, 20_000, metric))
    assert ("Hamming" in {way.name for way in ways}) == (metric != "ip")


@pytest.mark.parametrize(("n_bytes", "d", "n_train"), [(2, 3, 500), (4, 100, 500), (16, 100, 90), (64, 100, 90)])
def test_drawn_frames_have_two_bits_a_dimension_and_axes_that_there_are(n_bytes: int, d: int, n_train: int) -> None:
    given = {way.name: way.parameters(n_bytes) for way in all_ways(d, n_train, n_train, "l2")}["Hamming"]
    kept = given.get("pca", d)
    assert given["n_bits"] == 8 * n_bytes and 2 * kept <= given["n_bits"] and kept <= min(d, max(n_train, d))


def test_more_effort_is_not_tried_where_encoding_is_slow() -> None:
    way = with_more_effort(all_ways(64, 500, 500, "l2")[0])
    assert way.parameters(64)["effort"] == 3 and way.parameters(65) is None


# Intervals.


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (5, 10), (10, 10), (1, 1), (950, 1000), (9_999, 10_000)])
def test_wilson_is_that_of_scipy(hits: int, n: int) -> None:
    expected = binomtest(hits, n).proportion_ci(0.95, "wilson")
    np.testing.assert_allclose(wilson(hits / n, n), (expected.low, expected.high), atol=1e-12)
    np.testing.assert_allclose(mean_interval(np.repeat([1.0, 0.0], [hits, n - hits])), wilson(hits / n, n), atol=1e-12)


@pytest.mark.parametrize(("mean", "alike"), [(0.6, 0.3), (0.6, 30), (0.95, 0.5), (0.95, 2), (0.99, 2), (0.998, 2)])
def test_the_interval_of_fractions_holds_the_truth_19_times_in_20(mean: float, alike: float) -> None:
    # The neighbours of a query share its luck, more so the smaller `alike` is.
    rng, n, k = np.random.default_rng(0), 200, 10
    held, widths = [], []
    for _ in range(2000):
        luck = rng.beta(alike * mean, alike * (1 - mean), n)
        low, high = mean_interval(rng.binomial(k, luck) / k, k)
        held.append(low <= mean <= high)
        widths.append(high - low)
    assert 0.935 <= np.mean(held) <= (0.97 if mean < 0.9 else 0.99)  # near 1 it is a little too careful
    as_yes_or_no = np.diff(wilson(mean, n))[0]
    assert np.mean(widths) < as_yes_or_no  # which would be too careful


def test_the_interval_of_fractions_that_do_not_vary_has_a_width() -> None:
    np.testing.assert_allclose(mean_interval(np.ones(50), 10), wilson(1.0, 50), atol=1e-12)
    low, high = mean_interval(np.full(50, 0.5), 10)
    assert low < 0.5 < high


# Arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of n_bytes and recall"),
        ({"n_bytes": 8, "recall": 0.9}, "give one of n_bytes and recall"),
        ({"recall": 0.0}, "recall = 0; it must be above 0"),
        ({"recall": 1.01}, "recall = 1.01"),
        ({"recall": -0.1}, "recall = -0.1"),
        ({"recall": float("nan")}, "recall = nan"),
        ({"n_bytes": 0}, "n_bytes = 0; it must be at least 1"),
        ({"n_bytes": 5000}, "n_bytes = 5000"),
        ({"n_bytes": 4, "measure": "recall@10"}, "measure = 'recall@10'; write '1@R'"),
        ({"n_bytes": 4, "measure": "5@10"}, "measure = '5@10'; write '1@R'"),
        ({"n_bytes": 4, "measure": "1@540"}, "only 540 vectors are searched"),
        ({"n_bytes": 4, "metric": "l1"}, "metric = 'l1'"),
        ({"n_bytes": 4, "random_state": -1}, "random_state = -1"),
        ({"n_bytes": 4, "n_threads": 0}, "n_threads = 0"),
        ({"n_bytes": 4, "queries": Q[:, :11]}, "of X's 12 columns"),
        ({"n_bytes": 4, "queries": Q[:0]}, "pass at least one row"),
        ({"n_bytes": 4, "queries": np.where(np.isin(Q, Q[3, 2]), np.inf, Q)}, "queries row 3, column 2 is inf"),
        ({"n_bytes": 4, "X": X[:99]}, "X has shape .* at least 100 vectors"),
        ({"n_bytes": 4, "X": np.where(np.isin(X, X[7, 5]), np.nan, X)}, "X row 7, column 5 is nan"),
        ({"n_bytes": 4, "X": np.vstack([X, 0 * X[:1]]), "metric": "cosine"}, "X row 600 is zero"),
        ({"n_bytes": 4, "X": X[0]}, "expected 2 dimensions"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune(options.pop("X", X), **options)


@pytest.mark.parametrize(
    "options", [{"recall": "high"}, {"n_bytes": 4.0}, {"n_bytes": 4, "measure": 10}, {"n_bytes": 4, "progress": 1}]
)
def test_bad_types(options: dict) -> None:
    with pytest.raises(InputTypeError):
        tune(X, **options)


# What is shown.


def test_the_table_shows_every_row_and_the_report_both_measures(wanted: Tuning) -> None:
    head, *lines = wanted.table().splitlines()
    assert len(lines) == len(wanted.rows) and "1@10 (95 % interval)" in head and "10@10 (95 % interval)" in head
    starred = [row for row, line in zip(wanted.rows, lines, strict=True) if line.startswith("*")]
    assert starred == [wanted.chosen]
    for row, line in zip(wanted.rows, lines, strict=True):
        assert all(str(recall) in line for recall in row.recalls.values()) and row.code in line
    report = " ".join(wanted.report().split())
    assert "1@10 is the part of the queries whose true nearest neighbour is among the first 10 results." in report
    assert "10@10 is the part of the true 10 nearest neighbours that are among the first 10 results" in report
    assert "40 queries on 600 of 600 vectors of 12 dimensions, metric cosine; encoders learned from 600." in report
    assert ("The interval goes below 0.95" in report) == (wanted.chosen.recalls["1@10"].low < 0.95)
    assert f"The fewest bytes that reach 1@10 = 0.95: {wanted.chosen.n_bytes} bytes" in report


def test_the_default_is_named_beside_a_choice_that_is_not(wanted: Tuning) -> None:
    default = min((row for row in wanted.rows if row.way == "default"), key=lambda row: -row.n_bytes)
    other = next(row for row in wanted.rows if row.way in ("signs", "codebooks"))
    report = " ".join(replace(wanted, chosen=other, wanted=0.5).report().split())
    assert "The default reaches" in report and "Index.build(X, n_bytes=" in report
    assert "The default reaches" not in replace(wanted, chosen=default, wanted=0.5).report()


def run_python(lines: str) -> Index:
    namespace: dict[str, Any] = {"X": X}
    exec(lines, namespace)
    assert len(namespace["index"]) == len(X)
    return namespace["index"]


def test_the_lines_of_every_setting_give_its_split_and_bytes(
    budget: Tuning, wanted: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vectors("vectors of mine.npy", X)
    kinds, commands = set(), 0
    for number, row in enumerate([*budget.rows, *wanted.rows[:3]]):
        lines, command = row.python(len(X)), row.command(len(X), ["vectors of mine.npy"])
        index = run_python(lines)
        assert (index.codec.n_bytes, index.codec.summary) == (row.n_bytes, row.code)
        assert index.codec == row.encoder().fit(X).codec_  # all of it, effort and metric too
        kinds.add("Index.build" if "Index.build" in lines else "create")
        if command is not None:
            commands += 1
            words = shlex.split(command.replace("INDEX", f"index{number}"))
            assert words[0] == "antisparse" and main(words[1:]) == 0
            built = Index.open(f"index{number}", read_only=True).codec
            assert (built.n_bytes, built.summary, built.metric_name) == (row.n_bytes, row.code, index.metric)
            assert getattr(built.symbols, "effort", None) == getattr(index.codec.symbols, "effort", None)
    capsys.readouterr()
    assert kinds == {"Index.build", "create"} and 0 < commands < len(budget.rows)


def test_the_report_holds_the_lines_of_the_choice(budget: Tuning) -> None:
    for row in budget.rows:
        report = replace(budget, chosen=row).report(["my data.npy"])
        assert all(f"    {line}" in report.splitlines() for line in row.python(600).splitlines())
        command = row.command(600, ["my data.npy"])
        assert (command or "antisparse build has no options for this setting: use Python.") in report
    content = budget.to_dict()
    assert content["python_lines"] == budget.chosen.python(600).splitlines()


def test_the_lines_ask_for_one_cell_where_building_would_make_more(wanted: Tuning) -> None:
    assert cell_count("auto", MANY, 100_000) > 1 and cell_count("auto", MANY - 1, 100_000) is None
    row = next(row for row in wanted.rows if row.way == "default")
    assert "cells=1" in row.python(MANY) and "--cells 1" in row.command(MANY)
    assert "cells" not in row.python(MANY - 1) + row.command(MANY - 1)


def test_a_split_that_depends_on_the_vectors_is_that_of_the_index(
    wanted: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(n_bytes: int, n_train: int, dimension: int, *, metric: str, symbols: str = "auto") -> Split:
        return Split("signs" if symbols == "signs" or (symbols == "auto" and n_train < 5000) else "codebooks")

    monkeypatch.setattr("antisparse.tuning.ways.choose_split", rule)
    row = replace(wanted.rows[0], estimator="LearnedEncoder", n_bytes=20)
    row = replace(row, parameters={"n_bytes": 20, "split": Split("signs"), "effort": 2, "metric": "l2"})
    row.parameters["random_state"] = 1
    assert row.symbols(4999) == "auto" and row.symbols(5000) == "signs"
    assert row.command(5000) == "antisparse build DATA -o INDEX --bytes 20 --symbols signs --seed 1"
    assert row.python(4999).endswith("index = Index.build(X, n_bytes=20, random_state=1)")
    assert "LearnedEncoder(n_bytes=20, random_state=1, symbols='signs').fit(X)" in row.python(5000)


def test_the_dictionary_is_json(wanted: Tuning) -> None:
    content = json.loads(json.dumps(wanted.to_dict()))
    assert [row["recalls"]["10@10"]["value"] for row in content["rows"]] == [
        row.recalls["10@10"].value for row in wanted.rows
    ]
    first = next(row for row in wanted.rows if row.way == "default")
    parameters = next(row for row in content["rows"] if row["way"] == "default")["parameters"]
    parameters["split"] = Split(**parameters["split"])
    assert LearnedEncoder(**parameters).get_params() == first.encoder().get_params()


def test_pictures(budget: Tuning, wanted: Tuning, tmp_path: Path) -> None:
    wanted.plot(tmp_path / "new" / "wanted.png")
    assert (tmp_path / "new" / "wanted.png").read_bytes().startswith(b"\x89PNG")
    budget.plot(tmp_path / "budget.svg")
    assert "<svg" in (tmp_path / "budget.svg").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="must end in"):
        budget.plot(tmp_path / "picture.txt")


def test_progress_is_a_line_a_trial(capsys: pytest.CaptureFixture) -> None:
    with teller(True) as tell:
        tell.begin("16 bytes, default", 5, None)
        tell.end("1@10 0.900")
        tell.begin("32 bytes, default", 1, 130.0)
        assert capsys.readouterr().err.endswith(
            "the last, about 2 min 10 s left: 32 bytes, default ..."
        )  # before it ran
        tell.end("1@10 0.990")
    assert re.fullmatch(r" 1@10 0.990, took \d+ s\n", capsys.readouterr().err)
    with teller(True) as tell:  # a trial that does not come to its end
        tell.begin("16 bytes, default", 5, None)
    assert capsys.readouterr().err == "trial 1, about 4 more: 16 bytes, default ...\n"
    with teller(False) as tell:
        tell.begin("16 bytes, default", 5, None)
        tell.end("1@10 0.900")
    assert capsys.readouterr().err == ""
    assert [duration(s) for s in (0.2, 99, 100.2)] == ["1 s", "99 s", "1 min 40 s"]


def test_the_command(budget: Tuning, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vectors(tmp_path / "base.npy", X)
    write_vectors(tmp_path / "query.npy", np.full((3, 12), np.nan))  # never read unless asked for
    picture = tmp_path / "tune.png"
    common = ["--bytes", "6", "--measure", "5@5", "--seed", "3"]
    assert main(["tune", str(tmp_path), *common, "--plot", str(picture)]) == 0
    shown = capsys.readouterr()
    assert budget.chosen.python(600).splitlines()[-1] in shown.out
    assert (budget.chosen.command(600, [str(tmp_path)]) or "has no options for this setting") in shown.out
    assert f"picture: {picture}" in shown.out and picture.exists()
    assert shown.err.count("\n") == len(budget.rows) == shown.err.count("trial")
    assert "the last" in shown.err.splitlines()[-1]
    assert main(["tune", str(tmp_path / "base.npy"), *common, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["recalls"]["5@5"]["value"] for row in content["rows"]] == [r.recalls["5@5"].value for r in budget.rows]
    assert content["command"].startswith("antisparse tune")


def test_the_command_with_queries_a_limit_and_a_recall_out_of_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, queries = tmp_path / "base.fvecs", tmp_path / "q.npy"
    noise = np.random.default_rng(1).standard_normal((500, 24)).astype(np.float32)
    write_vectors(base, noise)
    write_vectors(queries, noise[:40] + 0.1)
    options = ["--queries", str(queries), "--limit", "300", "--recall", "1", "--measure", "10@10"]
    assert main(["tune", str(base), *options, "--metric", "cosine", "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["n_base"], content["n_queries"], content["chosen"]) == (300, 40, None)
    assert (content["metric"], content["best"]["parameters"]["metric"]) == ("cosine", "cosine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.npy", "--recall", "0.9"], "DATA nowhere.npy: there is no such file"),
        (["x.npy"], "--recall"),
        (["x.npy", "--recall", "0.9", "--bytes", "8"], "not allowed with"),
        (["x.npy", "--recall", "95"], "recall = 95; it must be above 0 and at most 1"),
        (["x.npy", "--recall", "0.9", "--measure", "10"], "--measure = '10'; write '1@R'"),
        (["x.npy", "--bytes", "0"], "--bytes = 0"),
        (["x.npy", "--bytes", "8", "--limit", "0"], "--limit = 0"),
        (["x.npy", "--bytes", "8", "--limit", "50"], "X has shape (50, 12); tuning needs at least 100"),
        (["x.npy", "--bytes", "8", "--seed", "-1"], "--seed = -1"),
        (["x.npy", "--bytes", "8", "--threads", "0"], "--threads = 0"),
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
