"""The whole command on small sizes: what it writes, what it says, and how it fails."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from antisparse.cli import main
from antisparse.datasets import write_vectors
from antisparse.errors import DownloadError, InputError
from antisparse.paper import EXPERIMENTS, Settings

STUDIES = ["figure1-bits", "figure2-ranking", "figure3-sift", "h", "two-stage", "path"]
RNG = np.random.default_rng(0)
VERDICTS = {"holds", "does not hold", "undecided", "not measured"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Something like SIFT in small: clustered, of falling variance, not normalised."""
    folder = tmp_path_factory.mktemp("clusters")
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((30, 24)) * np.linspace(60, 5, 24)
    for name, n in (("base", 800), ("learn", 600), ("query", 50)):
        X = centres[rng.integers(0, 30, n)] + rng.standard_normal((n, 24)) * np.linspace(20, 3, 24)
        write_vectors(folder / f"{name}.fvecs", X.astype(np.float32))
    return folder


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    assert main(["paper", "--quick", "--data", str(data), "--out", str(out)]) == 0
    return out


def test_everything_is_written(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "claims.json",
        *(f"{name}.{suffix}" for name in STUDIES for suffix in ("png", "svg", "json")),
    }
    for name in STUDIES:
        assert (folder / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert b"<svg" in (folder / f"{name}.svg").read_bytes()
        content = json.loads((folder / f"{name}.json").read_text())
        assert content["command"].startswith("antisparse paper --quick")
        assert content["seeds"] == [0, 1] and "numpy" in content["versions"] and content["numbers"]


def test_every_claim_has_a_rule_and_a_verdict(folder: Path) -> None:
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    assert len(claims) >= 20
    for claim in claims:
        assert claim["statement"] and claim["rule"] and claim["measured"]
        assert claim["verdict"] in VERDICTS - {"not measured"}
    verdicts = {claim["statement"]: claim["verdict"] for claim in claims}
    # Laws, not samples: these hold at any size.
    assert verdicts["As h goes to 0, m - d + 1 components stick"] == "holds"
    assert verdicts["Anti-sparse coding equals LSH at m = d, by NN_b"] == "holds"


def test_recalls_are_recalls(folder: Path) -> None:
    numbers = json.loads((folder / "figure2-ranking.json").read_text())["numbers"]
    for curve, values in numbers["recall@R"].items():
        assert values["mean"] == sorted(values["mean"]), curve
        assert 0 <= values["mean"][0] <= values["mean"][-1] <= 1
        assert np.shape(values["by seed"]) == (len(numbers["R"]), 2)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "img":
            self.images.append(values)
        self.scripts += tag == "script"
        self.links += [value for key, value in attributes if key in ("src", "href") and value]


def test_the_page_needs_nothing_else_and_every_picture_has_words(folder: Path) -> None:
    page = _Page()
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    assert len(page.images) == len(STUDIES)
    for image in page.images:
        assert len(image["alt"] or "") > 60
    assert all(link.startswith("data:") for link in page.links)
    assert not page.scripts


def test_the_page_explains_its_searches_first_and_counts_in_whole_words(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    body = text[text.index("<body>") :]
    for name in ("NN_b", "NN_a", "NN_e"):
        assert body.index(name) == body.index(f"<b>{name}</b>") + 3
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    counts = {verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in VERDICTS}
    assert sum(counts.values()) == len(claims)
    said = re.search(r"Of (\d+) claims, (.*?)\.", body)
    assert said and int(said[1]) == len(claims)
    assert re.search(rf"\b{counts['holds']} holds?\b", said[2]) and ("holds" in said[2]) == (counts["holds"] == 1)


def test_one_best_h_is_told(folder: Path) -> None:
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    measured = next(claim["measured"] for claim in claims if claim["statement"].startswith("h trades"))
    best = json.loads((folder / "h.json").read_text())["numbers"]["best h"]["relative"]
    assert measured.startswith(f"best relative h: NN_b {best['NN_b']:g}, NN_e {best['NN_e']:g};")
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert f"the best relative h is {best['NN_e']:g} for the first and {best['NN_b']:g} for the second" in page


def test_pictures_are_narrow_enough_for_a_phone(folder: Path) -> None:
    for name in STUDIES:  # text of 10 points is 8 pixels high where 450 points are shown in 360
        found = re.search(r'<svg[^>]*viewBox="0 0 ([0-9.]+) ', (folder / f"{name}.svg").read_text(encoding="utf-8"))
        assert found and float(found[1]) <= 450


def test_the_page_loads_in_a_browser(folder: Path, tmp_path: Path) -> None:
    browser = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
    )
    if not browser:
        pytest.skip("no Chromium on this machine")
    # A copy with a script that writes what the browser made of the page into the page itself.
    text = (folder / "index.html").read_text(encoding="utf-8")
    probe = """<script>
      const errors = [];
      addEventListener("error", e => errors.push(e.message || String(e.target.src).slice(0, 40)), true);
      addEventListener("load", () => {
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        const sizes = [...document.images].map(i => i.naturalWidth);
        const remote = performance.getEntriesByType("resource").filter(r => !r.name.startsWith("data:")).length;
        document.body.setAttribute("data-probe", JSON.stringify({errors, sizes, remote, wide}));
      });
    </script>"""
    copy = tmp_path / "page.html"
    copy.write_text(text.replace("<style>", probe + "<style>", 1), encoding="utf-8")
    result = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--window-size=390,900",  # a phone
            f"--user-data-dir={tmp_path}",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            "--dump-dom",
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    probed = re.search(r'data-probe="([^"]*)"', result.stdout)
    assert probed, result.stderr
    seen = json.loads(probed[1].replace("&quot;", '"'))
    assert seen["errors"] == [] and seen["remote"] == 0
    assert seen["wide"] <= 0, "the page is wider than a phone"
    assert len(seen["sizes"]) == len(STUDIES) and min(seen["sizes"]) > 300
    assert "CONSOLE" not in result.stderr


def test_the_same_seeds_give_the_same_numbers(folder: Path, tmp_path: Path) -> None:
    assert main(["paper", "--quick", "--only", "figures", "--out", str(tmp_path)]) == 0
    for name in ("figure1-bits", "figure2-ranking"):
        one, other = (json.loads((f / f"{name}.json").read_text())["numbers"] for f in (folder, tmp_path))
        assert one == other
        assert (folder / f"{name}.svg").read_bytes() == (tmp_path / f"{name}.svg").read_bytes()


def test_without_data_the_claims_on_sift_are_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--quick", "--only", "sift", "--data", "none", "--out", str(tmp_path)]) == 0
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert {claim["verdict"] for claim in claims} == {"not measured"}
    assert str(tmp_path / "index.html") in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper", "--seeds", "0"], "--seeds 0"),
        (["paper", "--seeds", "two"], "--seeds"),
        (["paper", "--seeds", "99999999999999"], "1 to 1000"),
        (["paper", "--only", "figure9"], "figure9"),
        (["paper", "--only", "sift,figure9"], "only = 'figure9'"),  # before anything is fetched
        (["paper", "--quick", "--data", "nowhere"], "--data nowhere: there is no such folder"),
        (["paper", "--only", "path", "-o", f"{__file__}/out"], "cannot write to the folder"),
        (["paper", "--colour"], "--colour"),
        (["papers"], "papers"),
        ([], "COMMAND"),
    ],
)
def test_bad_arguments_get_one_line_and_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "antisparse", *arguments], capture_output=True, text=True, cwd=tmp_path, env=os.environ
    )
    assert result.returncode == 2
    assert message in result.stderr and result.stderr.count("\n") == 1 and not result.stdout
    assert not list(tmp_path.iterdir())  # nothing half done


@pytest.mark.parametrize("part", ["base", "learn", "query"])
def test_nan_in_the_data_is_named_before_anything_runs(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for name in ("base", "learn", "query"):
        X = RNG.standard_normal((30, 20))
        X[7, 3] = np.nan if name == part else 0
        write_vectors(tmp_path / f"{name}.npy", X)
    assert main(["paper", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert f"{part} row 7, column 3 is nan" in shown and "Figure 1" not in shown


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"base": 30, "query": 5}, "has no learning vectors"),
        ({"base": 10, "query": 5, "learn": 9}, "10 base vectors; Figure 3 needs 11"),
        ({"base": 30, "query": 1, "learn": 9}, "1 query vectors; Figure 3 needs 2"),
        ({"base": 30, "query": 5, "learn": 1}, "1 learn vectors; Figure 3 needs 2"),
    ],
)
def test_too_little_data_is_refused(
    sizes: dict[str, int], message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for name, n in sizes.items():
        write_vectors(tmp_path / f"{name}.npy", RNG.standard_normal((n, 20)))
    assert main(["paper", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_fewer_axes_than_asked_for_and_a_name_with_markup(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = tmp_path / "a$x$_[bold]$\\foo$"
    data.mkdir()
    for name, n in (("base", 40), ("learn", 30), ("query", 5)):
        write_vectors(data / f"{name}.npy", RNG.standard_normal((n, 7)))
    arguments = ["paper", "--quick", "--only", "sift", "--sift-seeds", "1"]
    assert main([*arguments, "--data", str(data), "--out", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out" / "figure3-sift.json").read_text())
    assert "PCA to 7" in content["title"] and content["numbers"]["axes"] == 7
    assert "a$x$_[bold]" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "name"), [([], "sift1m"), (["--quick"], "siftsmall")])
def test_what_cannot_be_fetched_is_left_out_unless_asked_for(
    arguments: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = []

    def load(name: str) -> None:
        asked.append(name)
        raise DownloadError("no network")

    monkeypatch.setattr("antisparse.datasets.load", load)
    common = ["paper", "--only", "sift", "--out", str(tmp_path), *arguments]
    assert main(common) == 0
    assert "Figure 3 is left out: no network" in capsys.readouterr().err
    assert main([*common, "--data", name]) == 1
    assert asked == [name, name]


def test_without_matplotlib_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["paper", "--data", "none", "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "pip install 'antisparse[plot]'" in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_page_without_claims_has_no_table(tmp_path: Path) -> None:
    assert main(["paper", "--only", "path", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<table" not in page and "run anew.</p>" in page


@pytest.mark.parametrize(
    "options", [{"seeds": []}, {"d": 8}, {"m": 16}, {"m": 256}, {"n": 50}, {"queries": 1}, {"depth": 50}]
)
def test_settings_that_cannot_be_run_are_refused(options: dict) -> None:
    with pytest.raises(InputError):
        Settings(**options)


def test_the_experiments_have_names() -> None:
    assert EXPERIMENTS == ("path", "figures", "h", "two-stage", "sift")
