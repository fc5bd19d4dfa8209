"""ITQ (Gong, Lazebnik 2011): PCA, then the rotation that brings the projections closest to the corners of the cube."""

from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, integer, nonnegative
from antisparse._core import project
from antisparse.codes import Codes, unpack
from antisparse.encoders.base import Encoder, require_shape
from antisparse.errors import UnsupportedError


class ITQEncoder(Encoder):
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

    fitted_attributes = (*Encoder.fitted_attributes, "rotation_", "scale_")

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

    def project(self, Y: Float64Array) -> Float64Array:
        """The rotated components (n, n_bits) of reduced vectors."""
        projected: Float64Array = project(Y, self.rotation_, self._threads)
        return projected

    def query_weights(self, Q: npt.NDArray[Any], query: str) -> Float64Array:
        """The query's rotated components."""
        if query != "projection":
            raise UnsupportedError("ITQEncoder has no spread representation; pass query='projection'")
        return self.project(self.reduce(Q))

    def terms(self, codes: Codes) -> tuple[Float64Array, Float64Array]:
        """Scale ``-2 scale`` and bias ``||scale rotation b||^2``."""
        rebuilt = self.scale_ * self.combine(codes)
        return np.full(len(rebuilt), -2 * self.scale_), (rebuilt * rebuilt).sum(axis=1)

    def combine(self, codes: Any) -> Float64Array:
        """``rotation b`` of code rows, (n, n_reduced)."""
        signs = unpack(codes, self.code_layout_.n_bits).astype(np.float64)
        combined: Float64Array = project(signs, np.ascontiguousarray(self.rotation_.T), self._threads)
        return combined

    def _encode(self, Y: Float64Array) -> Codes:
        return np.packbits(self.project(Y) >= 0, axis=1)

    def _reconstruct(self, codes: Any) -> Float64Array:
        return self.scale_ * self.combine(codes)
