"""The original vectors, which codes are short for: exact neighbours, and what was rebuilt against what there was."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, columns_of_answers, finite, real_array
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError
from antisparse.evaluation import Metric, exact_neighbors
from antisparse.index.reader import Reader
from antisparse.scan.columns import Ids
from antisparse.scan.search import best_of

_TRIED = 64  # items whose codes tell whether the vectors are those of the index
_EQUAL = 0.9  # of them whose codes must be equal: rounding turns a bit now and then
_CHUNK = 1 << 14  # vectors that are read at a time


@dataclass(frozen=True, eq=False)
class Originals:
    """Original vectors, and the codes that were theirs when they were read: an item whose code is another has changed.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Row i is the vector of id i. It may be memory-mapped.
    ids : ndarray of shape (n_items,)
        The ids that there were, ascending.
    codes : ndarray of shape (n_items, n_bytes)
        Their codes.
    """

    rows: npt.NDArray[Any]
    ids: Ids
    codes: Codes

    @classmethod
    def of(cls, index: Any, vectors: Any) -> "Originals":
        """Checked: as many as there are ids, as long as those of the index, and the ones that its codes are of.

        Parameters
        ----------
        index : Index or ShardedIndex
        vectors : array of shape (n, d)
            Row i is the vector of id i.
        """
        if not isinstance(index, Reader):
            raise InputTypeError(f"index must be an index, not {type(index).__name__}")
        rows, ids = real_array(vectors, "vectors", 2), index.ids
        wanted = index.codec.input_dimension
        if rows.shape[1] != wanted:
            raise InputError(
                f"vectors have {rows.shape[1]} dimensions, those of the index {wanted}; pass those it was made of"
            )
        if len(ids) and ids[-1] >= len(rows):
            raise InputError(
                f"vectors has {len(rows)} rows, but the index has the id {ids[-1]}; row i must be the vector of id i"
            )
        for some in _chunks(ids):
            bad = ~np.isfinite(rows[some]).all(axis=1)
            for row in some[bad][:1].tolist():
                finite(rows[row : row + 1], "vectors", row)
        tried = ids[np.unique(np.linspace(0, len(ids) - 1, _TRIED).astype(np.int64))] if len(ids) else ids
        equal = (index.codec.encode(rows[tried]) == index.codes(tried)).all(axis=1) if len(tried) else np.ones(1)
        if equal.mean() < _EQUAL:
            raise InputError(
                f"vectors are not those of the index: the codes of {int((1 - equal).sum())} of {len(tried)} that were "
                "tried are others; row i must be the vector of id i"
            )
        return cls(rows, ids, _codes(index, ids))

    def of_ids(self, ids: Ids) -> Float64Array:
        """The vectors of some ids."""
        found: Float64Array = np.asarray(self.rows[ids], np.float64)
        return found

    def ids_in(self, reader: Reader) -> Ids:
        """The ids of an index whose originals these are, ascending: neither gone, nor added or changed since."""
        ids = np.intersect1d(self.ids, reader.ids, assume_unique=True)
        before = np.searchsorted(self.ids, ids)
        same: Ids = ids[(_codes(reader, ids) == self.codes[before]).all(axis=1)]
        return same

    def nearest(self, ids: Ids, Q: npt.NDArray[Any], k: int, metric: Metric) -> tuple[Float64Array, Ids]:
        """Distances and ids of the k nearest of some ids, ascending, to each query, by the original vectors.

        Queries may be as short as what the codec uses of vectors.
        """
        width = Q.shape[1]
        if len(ids) == len(self.rows):
            return exact_neighbors(self.rows[:, :width], Q, k, metric=metric)
        wide = columns_of_answers(k, len(ids))
        values, found = np.full((len(Q), wide), np.inf), np.full((len(Q), wide), -1, np.int64)
        for some in _chunks(ids):
            distances, rows = exact_neighbors(self.rows[some][:, :width], Q, k, metric=metric)
            named = np.where(rows >= 0, some[np.maximum(rows, 0)], -1)
            both = np.concatenate([values, distances], axis=1), np.concatenate([found, named], axis=1)
            values, found = best_of(*both, wide)
        return values, found


def _chunks(ids: Ids) -> list[Ids]:
    return [ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK)]


def _codes(reader: Reader, ids: Ids) -> Codes:
    """The codes of ids, some at a time."""
    rows = np.zeros((len(ids), reader.codec.n_bytes), np.uint8)
    for number, some in enumerate(_chunks(ids)):
        rows[number * _CHUNK : number * _CHUNK + len(some)] = reader.codes(some)
    return rows
