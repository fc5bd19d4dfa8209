"""The learned encoder: codes of a number of bytes, split by rules and fitted to training vectors (docs/learn.md)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, FloatArray, boolean, choice, integer, thread_count
from antisparse.codec import BiasByte, BiasNibble, Cells, Codec, Reduction, ScaleByte
from antisparse.codec.cells import MANY, MOST_CELLS, nearest_mean
from antisparse.codec.fields import AnySymbols
from antisparse.codec.symbols import combine
from antisparse.encoders.base import Encoder
from antisparse.errors import InputError, InputTypeError
from antisparse.learning.blocks import dealt_axes, learn_blocks, reduced
from antisparse.learning.choose import bias_shares
from antisparse.learning.split import Split, choose_split, sample_size
from antisparse.learning.symbols import SYMBOLS, Order
from antisparse.learning.training import kmeans, usual_vectors
from antisparse.metrics import METRICS, MetricName

MOST_BYTES = 2048  # of a code
LEAST = 1e-140  # of what vectors differ by: below, squares vanish
_RANKED = 22_000  # training vectors that the bias is fitted on, of which an eleventh asks
_PER_CELL, _RANGES = 256, 1 << 20  # vectors that the range of a bias nibble is found by, and those of all ranges
_FEW = 100_000  # of the training vectors of many cells, from which symbols are learned


ReducedRows = Callable[[npt.NDArray[np.int64]], Float64Array]


class LearnedEncoder(Encoder):
    """Codes of `n_bytes` with the most recall: the encoder to start with.

    The bytes are split by themselves among codebooks or signs, cells, a scale and a bias; ``codec_.summary`` and the
    representation of a fitted encoder say how.

    Parameters
    ----------
    n_bytes : int
        All that is stored of a vector, 2,048 at most.
    metric : {"l2", "cosine", "ip"}
        What is nearest. With "cosine" vectors are brought to unit length, in `fit`, `transform` and searches alike.
    symbols : {"auto", "codebooks", "signs", "levels"}
        "signs" keeps Hamming and asymmetric search possible; "levels" are cheap to find, whatever the effort, and good
        from some three bits a dimension on.
    cells : int, optional
        Means that vectors are coded relative to, and that an index may visit a few of, 2^20 at most; by default what
        recall wants.
    effort : {1, 2, 3}
        How long the best code of a vector is sought.
    dimensions : int, optional
        Use so many dimensions of each vector, the first ones, as models trained for that (Matryoshka) allow.
    train : int
        Learn from at most so many of the vectors, drawn at random; more than 4,096 cells from 40 for each.
    split : Split, optional
        How the bytes are split, in place of the rules; `symbols` and `cells` are then not looked at.
    verbose : bool
        Show progress, with the time left, on standard error.
    random_state : int, RandomState or None
        Draws the training sample and where learning starts.
    n_threads : int, optional
        All available CPUs by default.

    Attributes
    ----------
    split_ : Split
        How the bytes were split.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import LearnedEncoder
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> encoder = LearnedEncoder(8, random_state=0).fit(X)
    >>> encoder.transform(X).shape
    (1000, 8)
    """

    split_: Split
    _takes_float32 = True

    def __init__(
        self,
        n_bytes: int = 16,
        *,
        metric: MetricName = "l2",
        symbols: str = "auto",
        cells: int | None = None,
        effort: Literal[1, 2, 3] = 2,
        dimensions: int | None = None,
        train: int = 100_000,
        split: Split | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bytes = n_bytes
        self.metric = metric
        self.symbols = symbols
        self.cells = cells
        self.effort = effort
        self.dimensions = dimensions
        self.train = train
        self.split = split
        self.verbose = verbose
        self.random_state = random_state
        self.n_threads = n_threads

    def _sample(self, n: int, random: np.random.RandomState) -> npt.NDArray[np.int64] | None:
        cells = self.split.cells if isinstance(self.split, Split) else self._cells() or 1
        most = sample_size(integer(self.train, "train", 1), cells)
        return None if n <= most else np.sort(random.choice(n, most, replace=False))

    def _cells(self) -> int | None:
        return None if self.cells is None else integer(self.cells, "cells", 1, MOST_CELLS + 1)

    def _dimensions(self, given: int) -> int:
        return given if self.dimensions is None else integer(self.dimensions, "dimensions", 1, given + 1)

    def _fit(self, X: FloatArray, random: np.random.RandomState) -> Codec:
        boolean(self.verbose, "verbose")
        choice(self.effort, "effort", (1, 2, 3))
        split = self._chosen_split(*X.shape)
        nibbles = split.nibbles(integer(self.n_bytes, "n_bytes", 1, MOST_BYTES + 1))
        if split.cells > len(X):
            raise InputError(f"cells = {split.cells}, but X has {len(X)} vectors; lower it or fit on more vectors")
        usual = usual_vectors(X)
        X = usual if len(usual) >= split.cells else X
        threads = thread_count(self.n_threads)
        mean: Float64Array = X.mean(axis=0, dtype=np.float64)
        largest = float(np.maximum(X.max(axis=0) - mean, mean - X.min(axis=0)).max())
        if split.bias != "none" and 0 < largest < LEAST:
            raise InputError(
                f"X: its vectors differ by {largest:.1e} at most, whose square float64 cannot hold; scale them up"
            )
        order = Order(nibbles, split.cells, split.scale, self.effort, random, self.n_threads, self.verbose)
        whole = split.blocks == 1 and split.axes is None
        kept = min(split.axes or X.shape[1], X.shape[1])
        reduction = Reduction(mean) if whole else Reduction(mean, dealt_axes(X, mean, kept, split.blocks))
        if split.cells > MANY:
            symbols, means = _with_many_cells(reduced(reduction, X, largest, threads), split, order, self.train)
        elif whole:
            symbols, means = SYMBOLS[split.symbols](reduction.reduce(X, threads), order)
        else:
            symbols, means = learn_blocks(reduced(reduction, X, largest, threads), split.symbols, split.blocks, order)
        if split.cells > 1:
            draft, shift = Codec("ip", reduction, symbols, Cells(means)), None
        else:  # then it is part of the mean that is taken off
            draft, shift = Codec("ip", Reduction(reduction.restore(means, 1)[0], reduction.axes), symbols), means[0]

        def reduced_rows(rows: npt.NDArray[np.int64]) -> Float64Array:
            """Some training vectors, reduced when they are asked for: all of them take much memory."""
            Y = reduction.reduce(X[rows], threads)
            return Y if shift is None else Y - shift

        codec = _Fit(draft, split, threads).codec(reduced_rows, len(X), self.metric, random)
        self.split_ = split
        given = int(self.n_features_in_)
        return replace(codec, given=given) if given > codec.dimension else codec

    def _chosen_split(self, n_train: int, dimension: int) -> Split:
        if self.split is not None:
            if not isinstance(self.split, Split):
                raise InputTypeError(f"split is a {type(self.split).__name__}; pass a Split, such as Split('signs')")
            return self.split
        choice(self.symbols, "symbols", ("auto", *SYMBOLS))
        n_bytes = integer(self.n_bytes, "n_bytes", 1, MOST_BYTES + 1)
        return choose_split(n_bytes, n_train, dimension, metric=self.metric, symbols=self.symbols, cells=self._cells())


def _with_many_cells(Y: FloatArray, split: Split, order: Order, train: int) -> tuple[AnySymbols, Float64Array]:
    """Means of reduced training vectors, and symbols of what they leave of some of these."""
    threads, random = thread_count(order.n_threads), order.random_state
    means = kmeans(Y, split.cells, random, threads, order.progress)
    few = Y[np.sort(random.permutation(len(Y))[: max(train, _FEW)])]
    residual = np.asarray(few, np.float64) - means[nearest_mean(few, means, threads)]
    rest = replace(order, cells=1)
    if split.blocks == 1:
        symbols, shift = SYMBOLS[split.symbols](residual, rest)
    else:
        symbols, shift = learn_blocks(residual, split.symbols, split.blocks, rest)
    return symbols, means + shift


class _Fit:
    """The scale and the bias, fitted to what the symbols of training vectors leave."""

    def __init__(self, draft: Codec, split: Split, threads: int) -> None:
        self._draft, self._split, self._threads = draft, split, threads

    def codec(self, rows: ReducedRows, count: int, metric: MetricName, random: np.random.RandomState) -> Codec:
        """The whole codec, from reduced training vectors, which are asked for by the numbers of their rows."""
        draft, split = self._draft, self._split
        chosen = random.permutation(count)[:_RANKED]
        asked = len(chosen) // 11
        queries, base = rows(chosen[:asked]), rows(chosen[asked:])
        cells, residual = draft.residuals(base, self._threads)
        found = draft.symbols.find(residual, self._threads, split.scale)
        scale, scales = None, np.ones(1)
        if split.scale:
            scale = ScaleByte.fit(found.dots, found.squares)
            scales = scale.decode(scale.encode(found.dots, found.squares))
        parts = (metric, draft.reduction, draft.symbols, draft.cells, scale)
        if split.bias == "none":
            if METRICS[metric].centres:
                raise InputError(f"split has no bias, which metric={metric!r} needs; use bias='byte' or 'nibble'")
            return Codec(*parts)
        rebuilt = combine(draft.symbols, found.symbols, self._threads) * scales[:, None]
        shares = bias_shares(queries, base, residual, residual - rebuilt)
        if split.bias == "byte":
            values = draft.bias_values(residual, cells, found, scales, *shares)
            return Codec(*parts, BiasByte.fit(values, cells, draft.n_cells, *shares))
        more = rows(random.permutation(count)[: max(len(base), min(_PER_CELL * draft.n_cells, _RANGES))])
        cells, residual = draft.residuals(more, self._threads)
        found = draft.symbols.find(residual, self._threads, False)
        values = draft.bias_values(residual, cells, found, np.ones(1), *shares)
        return Codec(*parts, BiasNibble.fit(values, cells, draft.n_cells, *shares))
