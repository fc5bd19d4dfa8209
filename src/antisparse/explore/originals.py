"""The original vectors, which codes are short for: exact neighbours, and what was rebuilt against what there was."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, columns_of_answers, real_array
from antisparse.errors import InputError, InputTypeError
from antisparse.evaluation import exact_neighbors
from antisparse.index.reader import Reader
from antisparse.scan.columns import Ids
from antisparse.scan.search import best_of

_TRIED = 64  # items whose codes tell whether the vectors are those of the index
_CHUNK = 1 << 16  # vectors that are read at a time


@dataclass(frozen=True, eq=False)
class Originals:
    """Original vectors.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Row i is the vector of id i. It may be memory-mapped.
    """

    rows: npt.NDArray[Any]

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
        tried = ids[:: max(1, len(ids) // _TRIED)][:_TRIED]
        equal = (index.codec.encode(rows[tried]) == index.codes(tried)).all(axis=1) if len(tried) else np.ones(1)
        if equal.mean() < 0.5:
            raise InputError(
                f"vectors are not those of the index: the codes of {int((1 - equal).sum())} of {len(tried)} that were "
                "tried are others; row i must be the vector of id i"
            )
        return cls(rows)

    def of_ids(self, ids: Ids) -> Float64Array:
        """The vectors of some ids."""
        found: Float64Array = np.asarray(self.rows[ids], np.float64)
        return found

    def nearest(self, reader: Reader, Q: npt.NDArray[Any], k: int) -> tuple[Float64Array, Ids]:
        """Distances and ids of the k nearest of an index to each query, by the original vectors.

        Ids that were added since, and have no row, are not found. Queries may be as short as what the codec uses of
        vectors.
        """
        ids = reader.ids
        ids = ids[ids < len(self.rows)]
        width, metric = Q.shape[1], reader.metric
        if len(ids) == len(self.rows):
            return exact_neighbors(self.rows[:, :width], Q, k, metric=metric)
        values, found = np.zeros((len(Q), 0)), np.zeros((len(Q), 0), np.int64)
        for start in range(0, len(ids), _CHUNK):
            some = ids[start : start + _CHUNK]
            distances, rows = exact_neighbors(self.rows[some][:, :width], Q, k, metric=metric)
            named = np.where(rows >= 0, some[np.maximum(rows, 0)], -1)
            values, found = np.concatenate([values, distances], axis=1), np.concatenate([found, named], axis=1)
        return best_of(values, found, columns_of_answers(k, len(ids)))
