"""ITQ (Gong, Lazebnik 2011): PCA, then the rotation that brings the projections closest to the corners of the cube."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from antisparse._arrays import Float64Array, integer, nonnegative
from antisparse.codes import Codes
from antisparse.encoders.base import LinearEncoder, require_shape


class ITQEncoder(LinearEncoder):
    """Iterative quantisation: the signs of rotated principal components.

    Parameters
    ----------
    n_bits : int
        Beyond the number of principal axes there is nothing to rotate: the first ``min(n_bits, axes)`` components are
        rotated into `n_bits` dimensions.
    n_iter : int
        Alternations between codes and rotation (50 in the article).
    random_state : int, RandomState or None
        Draws the first rotation.
    n_threads : int, optional
        All available CPUs by default.

    Attributes
    ----------
    rotation_ : ndarray of shape (n_reduced, n_bits)
        Orthonormal rows.
    scale_ : float
        The least-squares scale of the reconstruction ``scale rotation b``.
    """

    def __init__(
        self,
        n_bits: int = 128,
        *,
        n_iter: int = 50,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state
        self.n_threads = n_threads

    fitted_attributes = (*LinearEncoder.fitted_attributes, "rotation_", "scale_")

    def check_fitted_shapes(self) -> None:
        """Raise unless the fitted attributes, read from a file, fit each other."""
        super().check_fitted_shapes()
        nonnegative(self.scale_, "scale_")
        require_shape(self.rotation_, "rotation_", (self.n_reduced, self.n_bits))

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        integer(self.n_iter, "n_iter", 0)
        Y = self._fit_reduction(X, True, min(self.n_bits, *X.shape), self.n_bits)
        rotation = np.linalg.qr(random.standard_normal((self.n_bits, Y.shape[1])))[0].T
        for _ in range(self.n_iter):
            signs = np.where(Y @ rotation >= 0, 1.0, -1.0)
            # Procrustes: the rotation that maximises <Y rotation, signs>.
            left, _, right = np.linalg.svd(Y.T @ signs, full_matrices=False)
            rotation = left @ right
        self.rotation_: Float64Array = np.ascontiguousarray(rotation)
        signs = np.where(Y @ rotation >= 0, 1.0, -1.0)
        rebuilt = signs @ rotation.T
        size = float((rebuilt**2).sum())
        self.scale_ = float((Y * rebuilt).sum()) / size if size > 0 else 0.0

    @property
    def matrix_(self) -> Float64Array:
        """The rotation."""
        check_is_fitted(self)
        return self.rotation_

    def terms(self, codes: Codes) -> tuple[Float64Array, Float64Array]:
        """Scale ``-2 scale`` and bias ``||scale rotation b||^2``."""
        rebuilt = self.scale_ * self.combine(codes)
        return np.full(len(rebuilt), -2 * self.scale_), (rebuilt * rebuilt).sum(axis=1)

    def _encode(self, Y: Float64Array) -> Codes:
        return np.packbits(self.project(Y) >= 0, axis=1)

    def _reconstruct(self, codes: Any) -> Float64Array:
        return self.scale_ * self.combine(codes)
