"""The answer to one query as JSON has it, for the page of a service that runs."""

from dataclasses import asdict
from typing import Any

import numpy as np

from antisparse.explore.code_parts import code_parts
from antisparse.explore.explorer import METHODS, Asked, Column, Explorer, relative_errors
from antisparse.explore.labels import labels
from antisparse.scan.columns import Ids

SHOWN_DIMENSIONS = 256  # coordinates of a vector that are drawn
_SAMPLE = 300  # items that recall is measured by, at most
_PRODUCTS = 2e10  # and the work that this may be


def answer(explorer: Explorer, size: int, asked: Asked, k: int) -> dict[str, Any]:
    """What is shown for one query: the four columns, the code, the vector and what its code rebuilds."""
    columns: dict[str, Column] = {method: explorer.column(size, method, asked, k) for method in METHODS}
    columns["exact"] = explorer.exact(asked, k)
    code = explorer.codes(size, asked)
    rebuilt, vectors = explorer.rebuilt(size, code), explorer.prepared(asked)
    found = [column.ids[0] for column in columns.values() if column.ids is not None]
    own = np.zeros(0, np.int64) if asked.own is None else asked.own
    ids = np.unique(np.concatenate([own, *found]))
    ids = ids[ids >= 0]
    return {
        "query": {
            "id": None if asked.own is None else str(asked.own[0]),
            "code": code[0].tobytes().hex(),
            "original": vectors[0, :SHOWN_DIMENSIONS].tolist() if asked.original else None,
            "rebuilt": None if rebuilt is None else rebuilt[0, :SHOWN_DIMENSIONS].tolist(),
            "error": None if rebuilt is None or not asked.original else float(relative_errors(vectors, rebuilt)[0]),
        },
        "columns": {name: _listed(column) for name, column in columns.items()},
        "items": _items(explorer, size, ids),
    }


def _listed(column: Column) -> dict[str, Any]:
    if column.ids is None or column.distances is None:
        return {"why": column.why}
    there = column.ids[0] >= 0
    return {"ids": [str(i) for i in column.ids[0, there].tolist()], "distances": column.distances[0, there].tolist()}


def _items(explorer: Explorer, size: int, ids: Ids) -> dict[str, dict[str, str]]:
    codes = explorer.sizes[size].codes(ids)
    return {
        one.id: {"key": one.key, "text": one.text, "code": row.tobytes().hex()}
        for one, row in zip(labels(explorer.index, ids, explorer.text), codes, strict=True)
    }


def about(explorer: Explorer, name: str) -> dict[str, Any]:
    """What is said of an index before anything is asked; recall is that of `measured`."""
    codec = explorer.index.codec
    return {
        "name": name,
        "vectors": len(explorer.index),
        "dimensions": codec.input_dimension,
        "shown_dimensions": min(SHOWN_DIMENSIONS, codec.dimension),
        "used_dimensions": codec.dimension,
        "metric": codec.metric_name,
        "exact": explorer.originals is not None,
        "start": explorer.sizes.index(explorer.index),
        "sizes": [
            {"bytes": one.codec.n_bytes, "code": one.codec.summary, "parts": [asdict(p) for p in code_parts(one.codec)]}
            for one in explorer.sizes
        ],
    }


def measured(explorer: Explorer) -> tuple[int, list[dict[str, dict[str, float] | None]]]:
    """How many items were asked for their neighbours, and the recall of every size and search by them."""
    ids = explorer.known()
    if len(ids) < 2:
        return 0, [dict.fromkeys(METHODS) for _ in explorer.sizes]
    most = int(_PRODUCTS / (len(ids) * explorer.index.codec.input_dimension))
    count = min(_SAMPLE, max(most, 10), len(ids))
    drawn = np.sort(np.random.default_rng(0).choice(ids, count, replace=False))
    asked = explorer.items(drawn)
    exact = explorer.exact(asked, 10)
    return count, [
        {method: explorer.recall(explorer.column(size, method, asked, 10), exact) for method in METHODS}
        for size in range(len(explorer.sizes))
    ]
