"""The same items in codes of other sizes, so that one can see what a byte buys."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from antisparse._arrays import integer, renamed
from antisparse.errors import InputError, InputTypeError
from antisparse.explore.originals import Originals
from antisparse.index.index import Index
from antisparse.index.reader import Reader

MOST_SIZES = 12


def other_sizes(
    index: Any,
    originals: Originals,
    n_bytes: Sequence[int],
    *,
    random_state: Any = 0,
    progress: bool = False,
    n_threads: int | None = None,
) -> list[Index]:
    """Indexes in memory of the same items, one for each number of bytes that is not the index's own.

    Where bits of the index compare, so do theirs: they are signs, in one cell.

    Parameters
    ----------
    index : Index or ShardedIndex
    originals : Originals
    n_bytes : sequence of int
    random_state : int, RandomState or None
    progress : bool
    n_threads : int, optional
    """
    if not isinstance(index, Reader):
        raise InputTypeError(f"index must be an index, not {type(index).__name__}")
    if not isinstance(originals, Originals):
        raise InputTypeError(f"originals must be Originals.of(index, vectors), not {type(originals).__name__}")
    if isinstance(n_bytes, str) or not isinstance(n_bytes, Sequence):
        raise InputTypeError(f"n_bytes must be a sequence of integers, not {type(n_bytes).__name__}")
    wanted = sorted({integer(one, "n_bytes", 1) for one in n_bytes} - {index.codec.n_bytes})
    if len(wanted) >= MOST_SIZES:
        raise InputError(f"n_bytes names {len(wanted)} sizes; {MOST_SIZES - 1} beside that of the index are enough")
    ids, codec = index.ids, index.codec
    if not len(ids):
        raise InputError("index is empty; add vectors before it is explored")
    rows = originals.rows
    X = rows if len(ids) == len(rows) else np.asarray(rows[ids])
    compares = codec.symbols.compares and codec.cells is None
    options: dict[str, Any] = {"symbols": "signs", "cells": 1} if compares else {}
    if codec.given is not None:
        options["dimensions"] = codec.dimension
    with renamed(X="vectors"):
        return [
            Index.build(
                X,
                size,
                metric=index.metric,
                ids=ids,
                random_state=random_state,
                progress=progress,
                n_threads=n_threads,
                **options,
            )
            for size in wanted
        ]
