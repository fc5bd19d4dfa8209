"""Anti-sparse coding: the signs of the spread representation (section 3 of the paper)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, nonnegative
from antisparse.codes import Codes
from antisparse.encoders.base import FrameEncoder
from antisparse.frames import Frame
from antisparse.spread import SpreadSolver


class AntiSparseEncoder(FrameEncoder):
    """Codes ``sign(x)``, x the spread representation of the vector in the frame.

    Parameters
    ----------
    n_bits : int
        With fewer bits than dimensions, vectors are first reduced to `n_bits` dimensions by PCA.
    h : float
        Small values favour the reconstruction, large ones the Hamming distance.
    relative_h : bool
        h is a fraction of each vector's ``||A.T @ y||_1`` (True), or absolute as in the paper (False).
    frame : {"tight", "gaussian", "block"} or ndarray of shape (d, n_bits) or BlockFrame
    center : bool
        Take off the training mean first. PCA implies it.
    pca : int, optional
        Reduce to so many dimensions first.
    block_size : int
        Dimensions a block of the "block" frame.
    random_state : int, RandomState or None
        Draws the frame.
    n_threads : int, optional
        All available CPUs by default.
    """

    def __init__(
        self,
        n_bits: int = 128,
        *,
        h: float = 0.1,
        relative_h: bool = True,
        frame: str | Frame = "tight",
        center: bool = True,
        pca: int | None = None,
        block_size: int = 48,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.h = h
        self.relative_h = relative_h
        self.frame = frame
        self.center = center
        self.pca = pca
        self.block_size = block_size
        self.random_state = random_state
        self.n_threads = n_threads

    @classmethod
    def paper(cls, n_bits: int, **parameters: Any) -> Self:
        """The method of 2011 exactly: a tight frame, absolute h = 1, nothing centred.

        Takes `pca`, `random_state` and `n_threads` beside `n_bits`.
        """
        return cls(n_bits, h=1.0, relative_h=False, frame="tight", center=False, **parameters)

    def transform_real(self, X: Any) -> Float64Array:
        """The representations before binarisation, ``x / ||x||_inf`` (n, n_bits), for asymmetric search."""
        return self.spread_real(self.reduce(self.validated(X, "X")))

    def query_weights(self, Q: npt.NDArray[Any], query: str) -> Float64Array:
        """``A.T @ q``, or the spread representation ``x / ||x||_inf``."""
        if query == "spread":
            return self.spread_real(self.reduce(Q))
        return super().query_weights(Q, query)

    def spread_real(self, Y: Float64Array) -> Float64Array:
        """``x / ||x||_inf`` of reduced vectors; where x = 0, zeros."""
        result = self._solver.spread(Y, self.h, relative=self.relative_h, n_threads=self.n_threads)
        t = result.t[:, None]
        scaled: Float64Array = np.divide(result.x, t, out=np.zeros_like(result.x), where=t > 0)
        return scaled

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        nonnegative(self.h, "h")
        boolean(self.relative_h, "relative_h")
        self._prepared: SpreadSolver | None = None
        super()._fit(X, random)
        self._prepared = SpreadSolver(self.frame_)

    @property
    def _solver(self) -> SpreadSolver:
        # Not kept by pickle and clone: prepared anew where it is missing.
        prepared: SpreadSolver | None = getattr(self, "_prepared", None)
        if prepared is None:
            prepared = self._prepared = SpreadSolver(self.frame_)
        return prepared

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_prepared"}

    def _encode(self, Y: Float64Array) -> Codes:
        return self._solver.bits(Y, self.h, relative=self.relative_h, dtype=np.float32, n_threads=self.n_threads)
