"""Building: learn codes from a sample of vectors, and make an index of all of them."""

import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import boolean, integer, real_array, thread_count
from antisparse._progress import Advance, bar
from antisparse.codec.codec import Codec
from antisparse.errors import InputError
from antisparse.index.files import sync_folder
from antisparse.metrics import MetricName

if TYPE_CHECKING:
    from antisparse.index.index import Index

AnyIndex = TypeVar("AnyIndex", bound="Index")
Array = npt.NDArray[Any]

_FLAT = 1_000_000  # below so many vectors one cell is enough
_MOST_CELLS, _PER_CELL = 4096, 40  # training vectors that a cell needs
_BATCH = 4096  # vectors encoded between two moves of the bar


def build(
    cls: type[AnyIndex],
    X: Any,
    n_bytes: int,
    path: str | Path | None,
    metric: MetricName,
    ids: Any,
    cells: Any,
    train: int,
    progress: bool,
    random_state: Any,
    n_threads: int | None,
) -> AnyIndex:
    """`Index.build`."""
    from antisparse.encoders.learned import LearnedEncoder

    integer(n_bytes, "n_bytes", 1)
    integer(train, "train", 1)
    boolean(progress, "progress")
    thread_count(n_threads)
    if path is not None:
        check_new_path(Path(path))
    given, total, batches = _source(X, train)
    auto = isinstance(cells, str) and cells == "auto"
    count = auto_cells(total or 0, len(given)) if auto else integer(cells, "cells", 1, 2**16 + 1)
    encoder = LearnedEncoder(
        n_bytes,
        metric=metric,
        cells=None if count == 1 else count,
        train=train,
        verbose=progress,
        random_state=random_state,
        n_threads=n_threads,
    ).fit(given)

    def fill(index: AnyIndex) -> None:
        with bar("adding", total, progress) as advance:
            index.add(_told(batches, advance), ids)

    return make_index(cls, path, encoder.codec_, fill, n_threads)


def make_index(
    cls: type[AnyIndex],
    path: str | Path | None,
    codec: Codec,
    fill: Callable[[AnyIndex], None],
    n_threads: int | None,
) -> AnyIndex:
    """A new index, filled by `fill`. A folder appears under its name when the index in it is whole."""
    if path is None:
        index = cls.create(None, codec, n_threads=n_threads)
        fill(index)
        return index
    target = Path(path)
    check_new_path(target)
    temporary = target.with_name(f".{target.name}.tmp-{secrets.token_hex(4)}")
    try:
        with cls.create(temporary, codec, n_threads=n_threads) as index:
            fill(index)
        os.rename(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(target.parent)
    return cls.open(target, n_threads=n_threads)


def check_new_path(path: Path, name: str = "path =") -> None:
    """Raise unless an index can be made under this name: said before the work, not after it."""
    if os.path.lexists(path):
        raise InputError(f"{name} {str(path)!r}: it exists already; remove it first, or choose another name")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{name} {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")


def auto_cells(n: int, trained: int) -> int:
    """The cells for n vectors: a power of two, as many as the training vectors allow."""
    if n < _FLAT:
        return 1
    wanted = min(1 << round(math.log2(n) / 2), _MOST_CELLS)
    return min(wanted, 1 << int(math.log2(max(trained / _PER_CELL, 1))))


def _source(X: Any, train: int) -> tuple[Array, int | None, Iterable[Array]]:
    """The vectors to learn from, how many there are in all, if that is known, and all of them a batch at a time."""
    if not isinstance(X, Iterator):
        array = real_array(X, "X", 2)
        if not len(array):
            raise InputError("X has no rows; an index is learned from vectors")
        return array, len(array), (array[at : at + _BATCH] for at in range(0, len(array), _BATCH))
    parts: list[Array] = []
    while sum(map(len, parts)) < train and (part := next(X, None)) is not None:
        parts.append(real_array(part, "X", 2))
    if not sum(map(len, parts)):
        raise InputError("X has no rows; an index is learned from vectors")
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError("X has arrays of different numbers of columns")

    def batches() -> Iterator[Array]:
        yield from parts
        yield from X

    return np.concatenate(parts)[:train], None, batches()


def _told(batches: Iterable[Array], advance: Advance) -> Iterator[Array]:
    """The batches; `advance` is told how many vectors were taken."""
    for batch in batches:
        yield batch
        advance(len(batch))
