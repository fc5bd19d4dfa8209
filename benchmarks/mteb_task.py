"""A retrieval task whose vectors are there already, as one of mteb: nothing is downloaded."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from datasets import Dataset
from mteb import TaskMetadata, evaluate
from mteb.abstasks import AbsTaskRetrieval
from mteb.models import ModelMeta, SearchEncoderWrapper
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction


class Retrieval(Protocol):
    """Documents, queries, the one document that answers each query, and the vectors of both."""

    documents: list[str]
    queries: list[str]
    answers: list[int]
    vectors: npt.NDArray[Any]
    asked: npt.NDArray[Any]


class LocalRetrieval(AbsTaskRetrieval):  # type: ignore[misc]
    """A task of mteb with documents, queries and answers that are given."""

    metadata = TaskMetadata(
        name="LocalRetrieval",
        description="Documents that are given, and queries of which one document each is the answer.",
        dataset={"path": "none", "revision": "none"},
        type="Retrieval",
        category="t2t",
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )

    k_values = (1, 3, 5, 10, 20, 100)  # mteb's own go to 1,000

    def __init__(self, task: Retrieval) -> None:
        super().__init__()
        answers = {f"q{query}": {f"d{answer}": 1} for query, answer in enumerate(task.answers)}
        self.dataset = {
            "default": {
                "test": {
                    "corpus": _named("d", task.documents),
                    "queries": _named("q", task.queries),
                    "relevant_docs": answers,
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True

    def load_data(self, *_: Any, **__: Any) -> None:
        """It is there."""


def _named(letter: str, texts: Sequence[str]) -> Any:
    return Dataset.from_dict({"id": [f"{letter}{row}" for row in range(len(texts))], "text": list(texts)})


class StoredVectors(AbsEncoder):  # type: ignore[misc]
    """A model of mteb that looks the vectors of texts up."""

    def __init__(self, task: Retrieval) -> None:
        names = {"documents": task.vectors, "queries": task.asked}
        self._rows = {
            kind: {text.strip(): row for text, row in zip(getattr(task, kind), rows, strict=True)}
            for kind, rows in names.items()
        }
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "local/stored", "revision": "none", "similarity_fn_name": ScoringFunction.COSINE}
        )

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> npt.NDArray[Any]:
        """The vectors of the texts of batches."""
        rows = self._rows["queries" if getattr(prompt_type, "value", None) == "query" else "documents"]
        return np.array([rows[text.strip()] for batch in inputs for text in batch["text"]])


def score(task: Retrieval, backend: Any) -> float:
    """nDCG@10 by mteb: of its own search, or through an index."""
    model = StoredVectors(task)
    searched = model if backend is None else SearchEncoderWrapper(model, index_backend=backend)
    results = evaluate(searched, LocalRetrieval(task), cache=None, co2_tracker=False, show_progress_bar=False)
    return float(results.task_results[0].get_score())
