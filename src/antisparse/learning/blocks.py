"""Symbols in blocks: principal axes dealt out like cards, and symbols learned for each hand (docs/embeddings.md)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, FloatArray, thread_count
from antisparse._progress import bar
from antisparse.codec.blocks import Blocks
from antisparse.codec.cells import nearest_mean
from antisparse.codec.codebooks import Codebooks
from antisparse.codec.fields import AnySymbols
from antisparse.codec.reduction import Reduction, principal_axes
from antisparse.codec.signs import LearnedSigns
from antisparse.errors import InputError
from antisparse.learning.symbols import SYMBOLS, Order
from antisparse.learning.training import check_training, kmeans

_CHUNK_ROWS = 4096
_MOST_DOUBLES = 1 << 26  # half a gigabyte
_PER_AXIS, _LEAST_SAMPLE = 8, 16_384  # training vectors that the axes are found from


def dealt_axes(X: FloatArray, mean: Float64Array, count: int, blocks: int) -> Float64Array:
    """The first `count` principal axes: block k has the axes k, k + blocks, k + 2 blocks, ...

    So all blocks have about the same share of the variance, and the same number of bits suits them.
    """
    sample = X[: max(_LEAST_SAMPLE, _PER_AXIS * X.shape[1])]
    axes = principal_axes(np.asarray(sample - mean, np.float64), count)
    dealt: Float64Array = axes[np.concatenate([np.arange(k, count, blocks) for k in range(blocks)])]
    return dealt


def reduced(reduction: Reduction, X: FloatArray, largest: float, threads: int) -> FloatArray:
    """Training vectors reduced, a few thousand at a time; many of them in float32, if no entry is far from 1."""
    shape = len(X), reduction.reduced_dimension
    fits = 1e-30 < largest < 1e30
    Y: FloatArray = np.empty(shape)
    if fits and Y.size > _MOST_DOUBLES:
        Y = np.empty(shape, np.float32)
    for first in range(0, len(X), _CHUNK_ROWS):
        Y[first : first + _CHUNK_ROWS] = reduction.reduce(X[first : first + _CHUNK_ROWS], threads)
    return Y


def learn_blocks(Y: FloatArray, kind: str, blocks: int, wanted: Order) -> tuple[AnySymbols, Float64Array]:
    """Symbols of a kind for each of `blocks` ranges of the dimensions of Y, and the means that they are relative to.

    Each block draws from a seed of its own, and the blocks are learned side by side, so that what is learned does not
    depend on the number of threads.
    """
    check_training(Y, wanted.cells)
    n_bytes = -(-wanted.nibbles // 2)
    most = min(Y.shape[1], n_bytes)
    if not 1 <= blocks <= most:
        raise InputError(
            f"blocks = {blocks}, but {Y.shape[1]} dimensions in {n_bytes} bytes make at most {most}; lower it"
        )
    threads = thread_count(wanted.n_threads)
    means = kmeans(Y, wanted.cells, wanted.random_state, threads) if wanted.cells > 1 else np.zeros((1, Y.shape[1]))
    labels = np.concatenate(
        [
            nearest_mean(np.asarray(Y[first : first + _CHUNK_ROWS], np.float64), means, threads)
            for first in range(0, len(Y), _CHUNK_ROWS)
        ]
    )
    rows, columns = _ends(n_bytes, blocks), _ends(Y.shape[1], blocks)
    odd = wanted.nibbles % 2
    seeds = wanted.random_state.randint(np.iinfo(np.int32).max, size=blocks)

    def learn(k: int) -> tuple[AnySymbols, Float64Array]:
        own = slice(columns[k], columns[k + 1])
        residual = Y[:, own].astype(np.float64)
        if wanted.cells > 1:
            residual -= means[labels, own]
        nibbles = 2 * int(rows[k + 1] - rows[k]) - (odd if k == blocks - 1 else 0)
        part, shift = SYMBOLS[kind](
            residual,
            replace(
                wanted,
                nibbles=nibbles,
                cells=1,
                random_state=np.random.RandomState(seeds[k]),
                n_threads=1,
                progress=False,
                in_blocks=blocks > 1,
            ),
        )
        advance(1)
        return part, shift

    with bar("learning the blocks", blocks, wanted.progress) as advance, ThreadPoolExecutor(threads) as pool:
        learned = list(pool.map(learn, range(blocks)))
    shift = np.concatenate([part[1][0] for part in learned])
    if blocks == 1:
        return learned[0][0], means + shift
    parts = [part for part, _ in learned if isinstance(part, Codebooks | LearnedSigns)]
    return Blocks(tuple(parts)), means + shift


def _ends(total: int, count: int) -> npt.NDArray[np.int64]:
    """Where `count` consecutive parts of `total` begin and end, the larger first."""
    sizes = [total // count + (k < total % count) for k in range(count)]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
