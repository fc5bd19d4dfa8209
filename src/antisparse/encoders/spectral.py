"""Spectral hashing (Weiss, Torralba, Fergus 2009): signs of the Laplacian's eigenfunctions on a box."""

import numpy as np

from antisparse._arrays import Float64Array, integer
from antisparse.codec import Codec, SpectralSigns
from antisparse.codec.reduction import fit_reduction
from antisparse.encoders.base import Encoder
from antisparse.metrics import MetricName


class SpectralHashEncoder(Encoder):
    """Spectral hashing: the training set is taken for uniform on the box of its principal components.

    The eigenfunctions of the Laplacian on a box of sides r_i are ``sin(pi/2 + k pi / r_i x_i)``, with eigenvalues that
    grow as ``(k / r_i)^2``. The `n_bits` of least eigenvalue are thresholded at zero. Codes compare by Hamming distance
    and rebuild nothing.

    Parameters
    ----------
    n_bits : int
    metric : {"l2", "cosine", "ip"}
    n_threads : int, optional
        All available CPUs by default.
    """

    def __init__(self, n_bits: int = 128, *, metric: MetricName = "l2", n_threads: int | None = None) -> None:
        self.n_bits = n_bits
        self.metric = metric
        self.n_threads = n_threads

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> Codec:
        n_bits = integer(self.n_bits, "n_bits", 1)
        reduction = fit_reduction(X, True, min(n_bits, *X.shape), n_bits)
        Y = reduction.reduce(X, 1)
        lower = Y.min(axis=0)
        extent = Y.max(axis=0) - lower
        # A component that never varies tells nothing: its eigenvalues are infinite.
        with np.errstate(divide="ignore"):
            frequency = np.arange(1, n_bits + 1)[:, None] / extent
        order = np.argsort(frequency, axis=None, kind="stable")[:n_bits]
        mode, axis = np.unravel_index(order, frequency.shape)
        return Codec(
            self.metric, reduction, SpectralSigns(lower, extent, axis.astype(np.float64), (mode + 1).astype(np.float64))
        )
