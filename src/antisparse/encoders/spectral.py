"""Spectral hashing (Weiss, Torralba, Fergus 2009): signs of the Laplacian's eigenfunctions on a box."""

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array
from antisparse.codes import Codes
from antisparse.encoders.base import Encoder, require_shape
from antisparse.errors import InputError, UnsupportedError


class SpectralHashEncoder(Encoder):
    """Spectral hashing: the training set is taken for uniform on the box of its principal components.

    The eigenfunctions of the Laplacian on a box of sides r_i are ``sin(pi/2 + k pi / r_i x_i)``, with eigenvalues that
    grow as ``(k / r_i)^2``. The `n_bits` of least eigenvalue are thresholded at zero.

    Parameters
    ----------
    n_bits : int
    n_threads : int, optional
        All available CPUs by default.

    Attributes
    ----------
    lower_, range_ : ndarray of shape (n_reduced,)
        The box.
    axis_, mode_ : ndarray of shape (n_bits,)
        Which component, and which multiple k, each bit looks at.
    """

    reconstructs = False

    def __init__(self, n_bits: int = 128, *, n_threads: int | None = None) -> None:
        self.n_bits = n_bits
        self.n_threads = n_threads

    fitted_attributes = (*Encoder.fitted_attributes, "lower_", "range_", "axis_", "mode_")

    def check_fitted_shapes(self) -> None:
        """Raise unless the fitted attributes, read from a file, fit each other."""
        super().check_fitted_shapes()
        for name in ("lower_", "range_"):
            require_shape(getattr(self, name), name, (self.n_reduced,))
        for name in ("axis_", "mode_"):
            require_shape(getattr(self, name), name, (self.n_bits,))
        if self.axis_.dtype.kind != "i" or not ((self.axis_ >= 0) & (self.axis_ < self.n_reduced)).all():
            raise InputError("axis_ names a component that does not exist")
        if self.mode_.dtype.kind != "i" or not (self.mode_ >= 1).all() or not (self.range_ >= 0).all():
            raise InputError("mode_ must be integers of at least 1, and range_ at least 0")

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        Y = self._fit_reduction(X, True, min(self.n_bits, *X.shape), self.n_bits)
        self.lower_: Float64Array = Y.min(axis=0)
        self.range_: Float64Array = Y.max(axis=0) - self.lower_
        # A component that never varies tells nothing: its eigenvalues are infinite.
        with np.errstate(divide="ignore"):
            frequency = np.arange(1, self.n_bits + 1)[:, None] / self.range_
        order = np.argsort(frequency, axis=None, kind="stable")[: self.n_bits]
        mode, axis = np.unravel_index(order, frequency.shape)
        self.axis_: npt.NDArray[np.int64] = axis.astype(np.int64)
        self.mode_: npt.NDArray[np.int64] = mode.astype(np.int64) + 1

    def _encode(self, Y: Float64Array) -> Codes:
        with np.errstate(divide="ignore", invalid="ignore"):
            position = np.where(self.range_ > 0, (Y - self.lower_) / self.range_, 0.0)
        value = np.sin(np.pi / 2 + np.pi * self.mode_ * position[:, self.axis_])
        return np.packbits(value >= 0, axis=1)

    def inverse_transform(self, codes: Any) -> NoReturn:
        """Not possible: spectral hashing keeps no vector that its bits stand for."""
        raise UnsupportedError(
            "spectral hashing cannot rebuild vectors from codes; use AntiSparseEncoder, LSHEncoder or ITQEncoder"
        )
