"""The command on texts: embedded by a model that is named once, and asked in words."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from letters import TITLES, Letters

from antisparse.cli import main

QUICK = ["--bytes", "6", "--symbols", "signs", "--effort", "1"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, and in the place of sentence-transformers what loads one model, unless it may be downloaded."""

    def load(name: str, local_files_only: bool) -> Letters:
        if local_files_only and name.rpartition("/")[2] != "letters":
            raise OSError("it is not here")
        return Letters(name)

    fake = type(sys)("sentence_transformers")
    fake.SentenceTransformer = load
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    monkeypatch.chdir(tmp_path)
    Path("titles.txt").write_text("\n".join(TITLES[:-9]))
    Path("more.txt").write_text("\n".join(TITLES[-9:]) + "\n\n")
    table = {"id": [f"k{i}" for i in range(len(TITLES))], "title": TITLES, "vector": list(Letters().encode(TITLES))}
    pq.write_table(pa.table(table), "titles.parquet")


def said(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(list(arguments)) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def test_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, 0, "build", "titles.txt", "-o", "index", "--model", "letters", *QUICK)
    assert "added 9 vectors" in said(capsys, 0, "add", "index", "more.txt")
    words = "painting the harbour 31", TITLES[-2]
    shown = said(capsys, 0, "search", "index", "--text", words[0], "--text", words[1], "-k", "1")
    assert all(shown.count(one) == 2 for one in words)  # the question, and the answer
    assert "letters" in said(capsys, 0, "info", "index")
    Path("questions.txt").write_text("\n".join(words))
    found = json.loads(said(capsys, 0, "search", "index", "questions.txt", "-k", "1", "--json"))
    assert [row["text"] for row in found["results"]] == list(words)


@pytest.mark.parametrize("how", [["--text-column", "title"], ["--column", "vector"]])
def test_a_column_of_texts_or_of_vectors_that_are_there(capsys: pytest.CaptureFixture[str], how: list[str]) -> None:
    named = ["--key", "id", "--columns", "title", "--model", "letters"]
    said(capsys, 0, "build", "titles.parquet", "-o", "index", *named, *how, *QUICK)
    assert "k17 " in said(capsys, 0, "search", "index", "--text", TITLES[17], "-k", "1", "--model", "any/letters")


def test_a_folder_that_an_index_names_is_not_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    Path("letters").mkdir()
    said(capsys, 0, "build", "titles.txt", "-o", "index", "--model", "letters", *QUICK)
    for command in (["search", "index", "--text", "x"], ["add", "index", "more.txt"]):
        assert "may be anyone's; if you trust it" in said(capsys, 2, *command)
        said(capsys, 0, *command, "--model", "letters")


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name the model" in said(capsys, 2, "build", "titles.txt", "-o", "index", *QUICK)
    assert "--download" in said(capsys, 2, "build", "titles.txt", "-o", "index", "--model", "far", *QUICK)
    assert "--text-column = 'x' is no column" in said(
        capsys, 2, "build", "titles.parquet", "-o", "index", "--model", "letters", "--text-column", "x"
    )
    said(capsys, 0, "build", "titles.txt", "-o", "index", "--model", "far", "--download", *QUICK)
    assert "--model = 'letters', but" in said(capsys, 2, "search", "index", "--text", "x", "--model", "letters")
    assert "--download" in said(capsys, 2, "search", "index", "--text", "x")
    said(capsys, 0, "search", "index", "--text", "x", "--download")
    assert "QUERIES or --text" in said(capsys, 2, "search", "index")
    assert "QUERIES or --text" in said(capsys, 2, "search", "index", "more.txt", "--text", "x")
    said(capsys, 0, "build", "titles.parquet", "-o", "vectors", *QUICK)
    assert "was not built from texts" in said(capsys, 2, "add", "vectors", "more.txt")
    assert "keeps the name of no model" in said(capsys, 2, "search", "vectors", "more.txt")
    assert "there is no such file" in said(capsys, 2, "build", "none.txt", "-o", "n", "--model", "letters")
