"""LSH: the signs of projections, ``sign(A.T @ y)``: the first step of the anti-sparse path."""

import numpy as np

from antisparse._arrays import Float64Array
from antisparse.codes import Codes
from antisparse.encoders.base import FrameEncoder
from antisparse.frames import Frame


class LSHEncoder(FrameEncoder):
    """Codes ``sign(A.T @ y)``.

    Parameters
    ----------
    n_bits : int
        With fewer bits than dimensions, vectors are first reduced to `n_bits` dimensions by PCA.
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
        frame: str | Frame = "tight",
        center: bool = True,
        pca: int | None = None,
        block_size: int = 48,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.frame = frame
        self.center = center
        self.pca = pca
        self.block_size = block_size
        self.random_state = random_state
        self.n_threads = n_threads

    def _encode(self, Y: Float64Array) -> Codes:
        return np.packbits(self.project(Y) >= 0, axis=1)
