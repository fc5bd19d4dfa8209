"""Anti-sparse coding as in the paper: the signs of the spread representation in a drawn frame."""

from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from antisparse._arrays import Float64Array, boolean, choice, finite, nonnegative, thread_count
from antisparse.codec import Codec, FixedLength, SpreadSigns
from antisparse.codec.queries import Method
from antisparse.codec.reduction import fit_reduction
from antisparse.codec.signs import EFFORTS
from antisparse.encoders.base import Encoder, drawn_frame, most_dimensions
from antisparse.errors import InputError
from antisparse.frames import BlockFrame, Frame
from antisparse.learning.choose import best_h
from antisparse.metrics import MetricName


class AntiSparseEncoder(Encoder):
    """Codes b, the signs of ``argmin 1/2 ||A x - y||^2 + h ||x||_inf``, rebuilt as ``sigma A b / ||A b||``.

    This is the method of the paper, for its searches and experiments. For the most recall in a number of bytes use
    `LearnedEncoder`.

    Parameters
    ----------
    n_bits : int
        With fewer bits than dimensions, vectors are first reduced to `n_bits` dimensions by PCA.
    frame : {"tight", "gaussian", "block"} or ndarray of shape (d, n_bits) or BlockFrame
    h : float or {"hamming", "asymmetric", "reconstruction"}
        The penalty. Small values favour the reconstruction, large ones the Hamming distance. The name of a search
        method chooses a relative h for it on the training vectors; it is in ``h_``.
    relative_h : bool
        A number h is a fraction of each vector's ``||A.T @ y||_1`` (True), or absolute as in the paper (False).
    effort : {0, 1, 2, 3}
        How the code is found: 0 the signs of the spread representation; 1 greedy flips from these; 2 annealing and tabu
        flips; 3 more of both (docs/refine.md).
    center : bool
        Take off the training mean first. PCA implies it.
    pca : int, optional
        Reduce to so many dimensions first.
    metric : {"l2", "cosine", "ip"}
    verbose : bool
        Show the progress of choosing h, with the time left, on standard error.
    random_state : int, RandomState or None
        Draws the frame.
    n_threads : int, optional
        All available CPUs by default.

    Attributes
    ----------
    h_ : float
        The penalty in use.
    """

    h_: float

    def __init__(
        self,
        n_bits: int = 128,
        *,
        frame: str | Frame = "tight",
        h: float | Method = 0.1,
        relative_h: bool = True,
        effort: Literal[0, 1, 2, 3] = 0,
        center: bool = True,
        pca: int | None = None,
        metric: MetricName = "l2",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.frame = frame
        self.h = h
        self.relative_h = relative_h
        self.effort = effort
        self.center = center
        self.pca = pca
        self.metric = metric
        self.verbose = verbose
        self.random_state = random_state
        self.n_threads = n_threads

    @classmethod
    def paper(cls, n_bits: int, **parameters: Any) -> Self:
        """The method of 2011 exactly: a tight frame, absolute h = 1, nothing centred (but for PCA), nothing refined.

        Takes `pca`, `metric`, `random_state` and `n_threads` beside `n_bits`.
        """
        return cls(n_bits, frame="tight", effort=0, h=1.0, relative_h=False, center=False, **parameters)

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> Codec:
        if isinstance(self.h, str):
            choice(self.h, "h", get_args(Method))
        else:
            nonnegative(self.h, "h")
        choice(self.effort, "effort", EFFORTS)
        boolean(self.verbose, "verbose")
        most = most_dimensions(self.frame, self.n_bits)
        reduction = fit_reduction(X, boolean(self.center, "center"), self.pca, most)
        frame = drawn_frame(self.frame, reduction.reduced_dimension, self.n_bits, random)
        Y = reduction.reduce(X, 1)
        h, relative = self.h, boolean(self.relative_h, "relative_h")
        if isinstance(h, str):
            if len(Y) < 20:
                raise InputError(f"X has {len(Y)} vectors, too few to choose h by; pass a number, such as h=0.3")
            matrix = frame.matrix if isinstance(frame, BlockFrame) else frame
            h = best_h(Y, frame, matrix, h, random, thread_count(self.n_threads), self.verbose)
            relative = True
        sigma = float(np.linalg.norm(Y, axis=1).mean())
        symbols = SpreadSigns(frame, float(h), relative, self.effort)
        self.h_ = symbols.h
        return Codec(self.metric, reduction, symbols, scale=FixedLength(sigma))

    def transform_real(self, X: Any) -> Float64Array:
        """The representations before binarisation, ``x / ||x||_inf`` (n, n_bits), for asymmetric search."""
        check_is_fitted(self)
        codec, threads = self.codec_, thread_count(self.n_threads)
        array = self._validated(X, fit=False)
        finite(array, "X")
        array = codec.metric.prepare(array, "X")
        symbols = codec.symbols
        assert isinstance(symbols, SpreadSigns)
        return symbols.weights(codec.reduction.reduce(array, threads), "spread", threads)
