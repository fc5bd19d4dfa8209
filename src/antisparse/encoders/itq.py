"""ITQ (Gong, Lazebnik 2011): PCA, then the rotation that brings the projections closest to the corners of the cube."""

import numpy as np

from antisparse._arrays import Float64Array, boolean, integer
from antisparse._progress import track
from antisparse.codec import Codec, FixedLength, ProjectedSigns
from antisparse.codec.reduction import fit_reduction
from antisparse.encoders.base import Encoder
from antisparse.metrics import MetricName


class ITQEncoder(Encoder):
    """Iterative quantisation: the signs of rotated principal components, rebuilt as ``sigma R b / ||R b||``.

    Parameters
    ----------
    n_bits : int
        Beyond the number of principal axes there is nothing to rotate: the first ``min(n_bits, axes)`` components are
        rotated into `n_bits` dimensions.
    n_iter : int
        Alternations between codes and rotation (50 in the article).
    metric : {"l2", "cosine", "ip"}
    verbose : bool
        Show progress, with the time left, on standard error.
    random_state : int, RandomState or None
        Draws the first rotation.
    n_threads : int, optional
        All available CPUs by default.
    """

    def __init__(
        self,
        n_bits: int = 128,
        *,
        n_iter: int = 50,
        metric: MetricName = "l2",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.metric = metric
        self.verbose = verbose
        self.random_state = random_state
        self.n_threads = n_threads

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> Codec:
        integer(self.n_iter, "n_iter", 0)
        boolean(self.verbose, "verbose")
        n_bits = integer(self.n_bits, "n_bits", 1)
        reduction = fit_reduction(X, True, min(n_bits, *X.shape), n_bits)
        Y = reduction.reduce(X, 1)
        rotation = np.linalg.qr(random.standard_normal((n_bits, Y.shape[1])))[0].T
        for _ in track(range(self.n_iter), "ITQ", self.verbose):
            signs = np.where(Y @ rotation >= 0, 1.0, -1.0)
            # Procrustes: the rotation that maximises <Y rotation, signs>.
            left, _, right = np.linalg.svd(Y.T @ signs, full_matrices=False)
            rotation = left @ right
        # The length that suits the training vectors best, for the directions that their codes rebuild.
        rebuilt = np.where(Y @ rotation >= 0, 1.0, -1.0) @ rotation.T
        norms = np.linalg.norm(rebuilt, axis=1)
        along = np.divide((Y * rebuilt).sum(axis=1), norms, out=np.zeros_like(norms), where=norms > 0)
        sigma = max(float(along.mean()), 0.0)
        return Codec(self.metric, reduction, ProjectedSigns(rotation), scale=FixedLength(sigma))
