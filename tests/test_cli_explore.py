"""The commands `explore` and `sample`."""

import re
from pathlib import Path

import numpy as np
import pytest
import zoo

from antisparse import Index, explore
from antisparse.cli import main
from antisparse.datasets import read_vectors, sentences, write_vectors

X = zoo.vectors(80, 1)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Index.create("index", zoo.codec("signs")) as index:
        index.add(X)
    with Index.create("empty", zoo.codec("signs")):
        pass
    write_vectors("X.npy", X)
    write_vectors("short.npy", X[:, :7])
    write_vectors("few.npy", X[:50])
    write_vectors("other.npy", X[::-1])
    with_nan = X.copy()
    with_nan[70, 3] = np.nan
    write_vectors("nan.npy", with_nan)
    Path("ids.txt").write_text("3\n5\n8\n5\n")  # one of them twice


def test_a_page_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "index", "-o", "page.html"]) == 0
    assert re.match(r"80 of 80 items, codes of 5 bytes, [0-9.]+ MB: page.html\n", capsys.readouterr().out)
    assert (
        main(["explore", "index", "-o", "page.html", "--vectors", "X.npy", "--bytes", "3,5", "--items", "ids.txt"]) == 0
    )
    assert "3 of 80 items, codes of 3, 5 bytes" in capsys.readouterr().out
    first = Path("page.html").read_bytes()
    assert (
        main(["explore", "index", "-o", "page.html", "--vectors", "X.npy", "--bytes", "3,5", "--items", "ids.txt"]) == 0
    )
    assert Path("page.html").read_bytes() == first
    assert main(["explore", "index", "-o", "page.html", "--items", "7"]) == 0
    assert "7 of 80 items" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "-o", "page.html"], "INDEX nowhere: there is no such folder"),
        (["empty", "-o", "page.html"], "INDEX empty: it is empty"),
        (["index", "-o", "page.txt"], "-o page.txt: its suffix must be .html"),
        (["index", "-o", "no/page.html"], "there is no folder no"),
        (["index", "-o", "index/page.html"], "lies in the index"),
        (["index", "-o", "page.html", "--items", "0"], "--items = 0"),
        (["index", "-o", "page.html", "--items", "10001"], "at most 10,000"),
        (["index", "-o", "page.html", "--items", "9" * 5000], "--items 99999999999999999999...: it has 5000 digits"),
        (["index", "-o", "page.html", "--vectors", "nan.npy"], "--vectors row 70, column 3 is nan"),
        (["index", "-o", "page.html", "--items", "none.txt"], "--items none.txt: there is no such file"),
        (["index", "-o", "page.html", "--vectors", "none.npy"], "--vectors none.npy: there is no such file"),
        (["index", "-o", "page.html", "--vectors", "short.npy"], "--vectors have 7 dimensions, those of the index 10"),
        (["index", "-o", "page.html", "--vectors", "few.npy"], "--vectors has 50 rows"),
        (["index", "-o", "page.html", "--vectors", "other.npy"], "--vectors are not those of the index"),
        (["index", "-o", "page.html", "--bytes", "8"], "give --vectors"),
        (["index", "-o", "page.html", "--vectors", "X.npy", "--bytes", "8,x"], "numbers between commas"),
        (["index", "-o", "page.html", "--vectors", "X.npy", "--bytes", "0"], "--bytes = 0"),
        (["index", "-o", "page.html", "--text-column", "title"], "the index keeps no items"),
        (["index", "-o", "page.html", "--threads", "0"], "--threads = 0"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().rglob("*"))
    assert main(["explore", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out
    assert sorted(Path().rglob("*")) == before


def test_the_sample_is_an_index_of_sentences_whose_neighbours_mean_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sample", "-o", "sample", "--bytes", "16"]) == 0
    assert "16 bytes each" in capsys.readouterr().out
    vectors = read_vectors("sample/sentences.npy")
    with Index.open("sample/sentences.index", read_only=True) as index:
        assert len(index) == len(vectors) >= 1500 and index.metric == "cosine"
        items = index.items()
        assert len(set(items.column("text").to_pylist())) == len(index)
        key = "math.sin" if "math.sin" in index else "numpy.sin"
        row = items.column("function").to_pylist().index(key)
        near = index.search(vectors[row], 10, items=True).column("text").to_pylist()
        assert sum("sine" in text for text in near) >= 5
    assert main(["sample", "-o", "sample"]) == 2
    assert "there is such a sample already" in capsys.readouterr().err


def test_threads_reach_what_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    learn = explore.other_sizes
    monkeypatch.setattr(explore, "other_sizes", lambda *given, **named: asked.append(named) or learn(*given, **named))
    command = ["explore", "index", "-o", "page.html", "--vectors", "X.npy", "--bytes", "3", "--threads", "1"]
    assert main(command) == 0
    assert [named["n_threads"] for named in asked] == [1]


def test_one_is_no_plural(capsys: pytest.CaptureFixture[str]) -> None:
    with Index.create("one", zoo.codec("codebooks byte")) as index:
        index.add(X[:1])
    assert main(["explore", "one", "-o", "page.html"]) == 0
    assert "1 of 1 item, codes of 1 byte, " in capsys.readouterr().out
    assert main(["sample", "-o", "sample", "--bytes", "1"]) == 0
    assert "sentences, 1 byte each" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "made", "--bytes", "0"], "--bytes = 0"),
        (["-o", "made", "--bytes", "-1"], "--bytes = -1"),
        (["-o", "made", "--bytes", "100000"], "--bytes = 100000"),
        (["-o", "X.npy"], "-o X.npy: X.npy is a file, and no folder"),
        (["-o", "X.npy/made"], "-o X.npy/made: X.npy is a file, and no folder"),
    ],
)
def test_a_sample_that_cannot_be_made_leaves_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().rglob("*"))
    assert main(["sample", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out
    assert sorted(Path().rglob("*")) == before


def test_an_empty_index_is_served_with_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    import antisparse.serve

    begun = []
    monkeypatch.setattr(antisparse.serve, "serve", lambda index, *given, **named: begun.append(named))
    assert main(["serve", "empty", "--vectors", "X.npy", "--bytes", "3"]) == 0
    assert begun[0]["others"] == [] and len(begun[0]["originals"].rows) == len(X)


def test_sentences_are_the_same_every_time() -> None:
    names, texts, vectors = sentences(16)
    again = sentences(16)
    assert names == again[0] and texts == again[1] and np.array_equal(vectors, again[2])
    assert len(set(names)) == len(names) and len(set(texts)) == len(texts) and vectors.shape == (len(names), 16)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5
    assert all(text.isprintable() and text.endswith(".") and len(text) <= 201 for text in texts)
