"""Retrieval quality of codes: nDCG@10 against float, int8, binary, and binary with rescoring, at their bytes.

    python benchmarks/retrieval.py FOLDER --model MODEL [--bytes 16 32 48] [--mteb] [--json FILE] | --smoke

The folder holds glosses of WordNet as base_texts.json (and query_texts.json), such as ``moving very fast; "fleet of
foot"``. What is asked is an example of a gloss, and what is to be found is its definition, among the definitions of
all glosses that have one. The model is one of sentence-transformers (a name, or a folder); its vectors are kept in
out/retrieval. The other methods are sentence-transformers' own: `quantize_embeddings`, and for bits
`semantic_search_faiss`, which needs faiss-cpu; bytes are made floats again and searched exactly.
Codes and the ranges of int8 are learned from the definitions. `--mteb` has mteb score the same task, as one of its own.
`--smoke` takes random vectors, and passes over what is not installed.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import options, write_json

from antisparse.connect.sentence_transformers import semantic_search_antisparse

Array = npt.NDArray[Any]
Results = list[list[dict[str, Any]]]
K, MULTIPLIER = 10, 4  # results, and candidates for each that are rescored


@dataclass(eq=False)
class Task:
    """Documents, queries, the one document that answers each query, and the vectors of both."""

    documents: list[str]
    queries: list[str]
    answers: list[int]
    vectors: Array
    asked: Array


def glosses(folder: Path, count: int) -> tuple[list[str], list[str], list[int]]:
    """The definitions of glosses that have an example, the examples of some, and which of them they are of."""
    texts = [text for file in sorted(folder.glob("*_texts.json")) for text in json.loads(file.read_text())]
    examples: dict[str, str] = {}
    for text in texts:
        definition, quote, rest = text.partition('; "')
        found = re.match(r'([^"]+)"', rest) if quote else None
        if found and len(found[1].split()) > 2:
            examples.setdefault(definition, found[1])
    definitions = sorted(examples)
    drawn = np.random.default_rng(0).permutation(len(definitions))[:count].tolist()
    return definitions, [examples[definitions[number]] for number in drawn], drawn


def embedded(texts: list[str], model: str, folder: Path) -> Array:
    """The vectors of texts, from a file if they were made before."""
    digest = hashlib.sha256("\0".join([model, *texts]).encode()).hexdigest()[:16]
    file = folder / f"{digest}.npy"
    if not file.exists():
        from sentence_transformers import SentenceTransformer

        vectors = SentenceTransformer(model, local_files_only=True).encode(texts, show_progress_bar=True)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(file, vectors)
    return np.asarray(np.load(file))


def wordnet(folder: Path, model: str, count: int) -> Task:
    """Definitions to be found by examples."""
    documents, queries, answers = glosses(folder, count)
    cache = Path("out/retrieval")
    return Task(documents, queries, answers, embedded(documents, model, cache), embedded(queries, model, cache))


def drawn(documents: int, queries: int, dimension: int) -> Task:
    """Random vectors; a query is its answer, and noise."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((documents, dimension)) * np.linspace(2, 0.2, dimension)
    answers = random.permutation(documents)[:queries].tolist()
    asked = vectors[answers] + random.standard_normal((queries, dimension))
    names = [f"document {number}" for number in range(documents)], [f"query {number}" for number in range(queries)]
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (vectors, asked)]
    return Task(*names, answers, *(one.astype(np.float32) for one in unit))


def ndcg(results: Results, answers: list[int]) -> Array:
    """nDCG@10 of each query, of which one document is the answer: 1 / log2(rank + 1), or 0."""
    scores = np.zeros(len(answers))
    for query, (found, answer) in enumerate(zip(results, answers, strict=True)):
        places = [one["corpus_id"] for one in found[:K]]
        if answer in places:
            scores[query] = 1 / np.log2(places.index(answer) + 2)
    return scores


def exact(task: Task, among: Array | None = None) -> Results:
    """By the vectors themselves, of all documents or of some for each query."""
    results: Results = []
    for number, query in enumerate(task.asked):
        places = np.arange(len(task.documents)) if among is None else among[number]
        scores = task.vectors[places] @ query
        best = np.argsort(-scores, kind="stable")[:K]
        results.append([{"corpus_id": int(places[i]), "score": float(scores[i])} for i in best])
    return results


def peers(task: Task) -> dict[str, tuple[int, Callable[[], Results]]]:
    """What sentence-transformers offers: bytes a vector, and a search."""
    from sentence_transformers.util.quantization import quantize_embeddings, semantic_search_faiss

    dimension = task.vectors.shape[1]
    ranges = np.vstack([task.vectors.min(axis=0), task.vectors.max(axis=0)])

    def search(rescore: bool, k: int = K) -> Results:
        codes = quantize_embeddings(task.vectors, "ubinary")
        found: Results = semantic_search_faiss(
            task.asked, codes, corpus_precision="ubinary", top_k=k, rescore=rescore, rescore_multiplier=MULTIPLIER
        )[0]
        return found

    def rescored() -> Results:
        shortlists = search(False, K * MULTIPLIER)
        return exact(task, np.array([[one["corpus_id"] for one in found] for found in shortlists]))

    def scalar() -> Results:
        # Not by semantic_search_faiss: its shortlist multiplies bytes whose zeros are elsewhere in each dimension.
        codes = quantize_embeddings(task.vectors, "int8", ranges=ranges)
        return exact(replace(task, vectors=(codes + 128.5) * (ranges[1] - ranges[0]) / 255 + ranges[0]))

    bits = -(-dimension // 8)
    return {
        "int8": (dimension, scalar),
        "binary": (bits, lambda: search(False)),
        "binary, rescored by the bits": (bits, lambda: search(True)),
        "binary, rescored by floats": (bits + 4 * dimension, rescored),
    }


def by_codes(task: Task, n_bytes: int) -> Results:
    """By codes alone."""
    found: Results = semantic_search_antisparse(task.asked, task.vectors, n_bytes=n_bytes, top_k=K, random_state=0)[0]
    return found


def measure(task: Task, sizes: list[int], with_mteb: bool) -> dict[str, Any]:
    """Every method, in a table."""
    methods: dict[str, tuple[int, Callable[[], Results]]] = {
        "float": (4 * task.vectors.shape[1], lambda: exact(task)),
    }
    if find_spec("sentence_transformers") and find_spec("faiss"):
        methods |= peers(task)
    else:
        print("int8 and binary are passed over: sentence-transformers and faiss-cpu are not installed")
    methods |= {f"antisparse, {size}": (size, partial(by_codes, task, size)) for size in sizes}
    mteb_scores = through_mteb(task, sizes) if with_mteb else {}
    print(f"{len(task.documents):,} documents, {len(task.queries):,} queries, {task.vectors.shape[1]} dimensions\n")
    print(f"| method | bytes | nDCG@10 | of float | standard error |{' by mteb |' if with_mteb else ''}")
    print(f"|---|---|---|---|---|{'---|' if with_mteb else ''}")
    table: dict[str, Any] = {}
    reference = np.zeros(0)
    for name, (size, search) in methods.items():
        scores = ndcg(search(), task.answers)
        reference = scores if name == "float" else reference
        part = scores.mean() / reference.mean()
        error = (scores - part * reference).std() / np.sqrt(len(scores)) / reference.mean()  # of the ratio
        table[name] = {"bytes": size, "ndcg@10": float(scores.mean()), "of float": part, "error": error}
        line = f"| {name} | {size:,} | {scores.mean():.4f} | {part:.3f} | {error:.3f} |"
        if with_mteb:
            table[name]["mteb"] = mteb_scores.get(name)
            line += f" {mteb_scores[name]:.4f} |" if name in mteb_scores else " |"
        print(line, flush=True)
    return {"documents": len(task.documents), "queries": len(task.queries), "methods": table}


def through_mteb(task: Task, sizes: list[int]) -> dict[str, float]:
    """The same task as one of mteb, by its own full search and through codes."""
    from mteb_task import score

    from antisparse.connect.mteb import AntisparseSearchIndex

    found = {"float": score(task, None)}
    for size in sizes:
        found[f"antisparse, {size}"] = score(task, AntisparseSearchIndex(n_bytes=size, random_state=0))
    return found


def main() -> None:
    """Run it and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--model", help="a model of sentence-transformers: its name, or a folder")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--bytes", type=int, nargs="+", default=[8, 16, 32, 48, 96, 192])
    parser.add_argument("--mteb", action="store_true", help="score the task through mteb, too")
    arguments = parser.parse_args()
    if arguments.smoke:
        numbers = measure(drawn(1000, 50, 32), [4, 8], arguments.mteb)
    elif arguments.folder is None or arguments.model is None:
        parser.error("name a folder of texts and a model, or --smoke")
    else:
        task = wordnet(arguments.folder, arguments.model, arguments.queries)
        numbers = measure(task, arguments.bytes, arguments.mteb)
    write_json(arguments.json, numbers)


if __name__ == "__main__":
    main()
