"""The search for codewords: one of the 16 of each codebook, so that their sum rebuilds a vector (docs/codebooks.md)."""

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, integer
from antisparse._core import Codebooks as NativeCodebooks
from antisparse.codes import Codes
from antisparse.errors import InputError
from antisparse.frames import gram_matrix

CODEWORDS = 16  # of a codebook: what a nibble can tell apart
TENURE = 5  # moves for which a codebook that moved stays
_MOST_CODEBOOKS = 2**12  # 65,536 codewords, whose numbers have 16 bits


class CodewordFinder:
    """Codebooks prepared for finding codewords.

    Parameters
    ----------
    matrix : ndarray of shape (d, 16 codebooks)
        The 16 codewords of the first codebook, those of the next, and so on.
    """

    def __init__(self, matrix: Float64Array, threads: int = 1) -> None:
        gram = gram_matrix(matrix, threads)
        # The scale is taken out, so that float32 has room: y and A are divided by the length of the longest codeword.
        self._unit = float(np.diagonal(gram).max()) or 1.0
        self._factor = 1 / float(np.sqrt(self._unit))
        codebooks = (matrix * self._factor).reshape(len(matrix), -1, CODEWORDS).transpose(1, 0, 2)
        self.count = len(codebooks)
        self._native = NativeCodebooks(
            np.ascontiguousarray(codebooks, np.float32), np.ascontiguousarray(gram / self._unit, np.float32)
        )

    def find(self, Y: Float64Array, moves: int, tenure: int, threads: int) -> tuple[Codes, Float64Array, Float64Array]:
        """Rows of nibbles (n, ceil(codebooks / 2)) with A x near y, ``y . A x`` and ``||A x||^2``.

        With a tenure of 0 moves end when none gains; otherwise they go on, and the best codewords met are kept.
        """
        rows = np.zeros((len(Y), -(-self.count // 2)), np.uint8)
        dots, squares = self._native.find(np.ascontiguousarray(Y), self._factor, moves, tenure, rows, threads)
        return rows, dots.astype(np.float64) * self._unit, np.maximum(squares.astype(np.float64) * self._unit, 0)


def check_codebooks(count: int) -> int:
    """`count`, if there can be so many codebooks."""
    if integer(count, "codebooks", 1) > _MOST_CODEBOOKS:
        raise InputError(f"codebooks = {count}; there can be {_MOST_CODEBOOKS} at most: use fewer bytes, or signs")
    return count


def one_hot(rows: Codes, count: int) -> npt.NDArray[np.float32]:
    """Rows of nibbles as x (n, 16 count): 1 at the codewords chosen, 0 elsewhere."""
    chosen = np.stack([rows >> 4, rows & 15], axis=2).reshape(len(rows), 2 * rows.shape[1])[:, :count]
    x = np.zeros((len(rows), count * CODEWORDS), np.float32)
    x[np.arange(len(rows))[:, None], chosen + CODEWORDS * np.arange(count)] = 1
    return x
