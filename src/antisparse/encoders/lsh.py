"""LSH: the signs of projections, ``sign(A.T @ y)``: the first step of the anti-sparse path."""

import numpy as np

from antisparse._arrays import Float64Array, boolean
from antisparse.codec import Codec, FixedLength, ProjectedSigns
from antisparse.codec.reduction import fit_reduction
from antisparse.encoders.base import Encoder, drawn_frame, most_dimensions
from antisparse.frames import Frame
from antisparse.metrics import MetricName


class LSHEncoder(Encoder):
    """Codes ``sign(A.T @ y)``, rebuilt as ``sigma A b / ||A b||``.

    Parameters
    ----------
    n_bits : int
        With fewer bits than dimensions, vectors are first reduced to `n_bits` dimensions by PCA.
    frame : {"tight", "gaussian", "block"} or ndarray of shape (d, n_bits) or BlockFrame
    center : bool
        Take off the training mean first. PCA implies it.
    pca : int, optional
        Reduce to so many dimensions first.
    metric : {"l2", "cosine", "ip"}
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
        metric: MetricName = "l2",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.frame = frame
        self.center = center
        self.pca = pca
        self.metric = metric
        self.random_state = random_state
        self.n_threads = n_threads

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> Codec:
        most = most_dimensions(self.frame, self.n_bits)
        reduction = fit_reduction(X, boolean(self.center, "center"), self.pca, most)
        frame = drawn_frame(self.frame, reduction.reduced_dimension, self.n_bits, random)
        sigma = float(np.linalg.norm(reduction.reduce(X, 1), axis=1).mean())
        return Codec(self.metric, reduction, ProjectedSigns(frame), scale=FixedLength(sigma))
