"""The page as one file: everything that it shows was found by the library, and lies in it."""

import base64
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import integer, path_of, random_numbers
from antisparse._files import replacing
from antisparse.errors import InputError, InputTypeError
from antisparse.explore.answers import SHOWN_DIMENSIONS, about
from antisparse.explore.explorer import METHODS, Asked, Column, Explorer, relative_errors
from antisparse.explore.labels import labels
from antisparse.explore.page import page
from antisparse.index.state import id_array
from antisparse.scan.columns import Ids

K = 10  # neighbours that are shown
MOST_ITEMS = 10_000


def drawn_items(index: Any, count: int, random_state: Any = 0) -> Ids:
    """Ids of so many items, drawn at random, ascending; of all, if there are no more."""
    if integer(count, "count", 1) > MOST_ITEMS:
        raise InputError(f"count = {count}; a page holds at most {MOST_ITEMS:,} items")
    ids: Ids = index.ids
    if len(ids) <= count:
        return ids
    return np.sort(random_numbers(random_state).choice(ids, count, replace=False))


def write_page(path: Any, explorer: Explorer, ids: Any, name: str = "index") -> int:
    """Write one HTML file that needs nothing else; returns its bytes.

    Parameters
    ----------
    path : path
    explorer : Explorer
    ids : array of int
        The items that can be asked for their neighbours, which are sought in the whole index.
    name : str
        What the page calls the index.
    """
    place = path_of(path)
    if not isinstance(explorer, Explorer):
        raise InputTypeError(f"explorer must be an Explorer, not {type(explorer).__name__}")
    if not isinstance(name, str):
        raise InputTypeError(f"name must be text, not {type(name).__name__}")
    chosen = np.unique(id_array(ids, "ids"))
    if not 1 <= len(chosen) <= MOST_ITEMS:
        raise InputError(f"ids are {len(chosen)}; a page holds 1 to {MOST_ITEMS:,} items")
    explorer.index._state.check_there(chosen)
    text = page(data(explorer, chosen, name)).encode()
    with replacing(place) as temporary:
        temporary.write_bytes(text)
    return len(text)


def data(explorer: Explorer, ids: Ids, name: str) -> dict[str, Any]:
    """All that the page shows. Items are called by their places in a list, which begins with those that ask."""
    asked = explorer.items(ids)
    exact = explorer.exact(asked, K)
    columns = [
        {method: explorer.column(size, method, asked, K) for method in METHODS} for size in range(len(explorer.sizes))
    ]
    found = [column.ids.reshape(-1) for by_size in columns for column in by_size.values() if column.ids is not None]
    found += [] if exact.ids is None else [exact.ids.reshape(-1)]
    others = np.setdiff1d(np.concatenate(found), ids) if found else np.zeros(0, np.int64)
    listed = np.concatenate([ids, others[others >= 0]])
    named = labels(explorer.index, listed, explorer.text)
    content = about(explorer, name) | {
        "asked": len(ids),
        "original": _vectors(explorer.prepared(asked)) if asked.original else None,
        "items": {part: [getattr(one, part) for one in named] for part in ("id", "key", "text")},
        "truth": _column(exact, listed),
    }
    for size, by_size in enumerate(columns):
        content["sizes"][size] |= _size(explorer, size, asked, listed, by_size, exact)
    return content


def _size(
    explorer: Explorer, size: int, asked: Asked, listed: Ids, columns: dict[Any, Column], exact: Column
) -> dict[str, Any]:
    """What differs with the number of bytes."""
    codes = explorer.codes(size, asked)
    rebuilt = explorer.rebuilt(size, codes)
    errors = None if rebuilt is None or not asked.original else relative_errors(explorer.prepared(asked), rebuilt)
    return {
        "recall": {method: explorer.recall(column, exact) for method, column in columns.items()},
        "columns": {method: _column(column, listed) for method, column in columns.items()},
        "codes": _base64(explorer.sizes[size].codes(listed)),
        "asked_codes": _base64(codes),
        "rebuilt": None if rebuilt is None else _vectors(rebuilt),
        "errors": None if errors is None else _floats(errors),
    }


def _column(column: Column, listed: Ids) -> dict[str, str]:
    """The places of what was found in the list of items, -1 for nothing, and distances."""
    if column.ids is None or column.distances is None:
        return {"why": column.why}
    order = np.argsort(listed, kind="stable")
    places = order[np.minimum(np.searchsorted(listed, column.ids, sorter=order), len(listed) - 1)]
    places = np.where(column.ids >= 0, places, -1)
    distances = np.where(column.ids >= 0, column.distances, 0)
    return {"places": _base64(places.astype("<i4")), "distances": _floats(distances)}


def _vectors(X: npt.NDArray[Any]) -> dict[str, str]:
    """Vectors as they are drawn: coordinates in steps of a hundredth and less of the largest."""
    shown = X[:, :SHOWN_DIMENSIONS]
    scale = np.abs(shown).max(axis=1, initial=0) / 127
    scale[scale == 0] = 1
    steps = np.round(shown / scale[:, None]).astype(np.int8)
    return {"steps": _base64(steps), "scales": _floats(scale)}


def _floats(values: npt.NDArray[Any]) -> str:
    if np.abs(values).max(initial=0) > np.finfo(np.float32).max:
        raise InputError(
            "explorer has vectors whose numbers or distances are more than float32 holds, by which a page is drawn; "
            "scale the vectors down"
        )
    return _base64(values.astype("<f4"))


def _base64(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def check_page_path(path: Path, name: str) -> None:
    """Raise if a page cannot be written there, before the work and not after it."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{name} {path}: its suffix must be .html")
    if not os.path.isdir(path.parent):
        raise InputError(f"{name} {path}: there is no folder {path.parent}; make it first")
    if os.path.isdir(path):
        raise InputError(f"{name} {path}: it is a folder")
