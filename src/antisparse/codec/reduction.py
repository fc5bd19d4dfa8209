"""The reduction: what happens to a vector before it is coded. A mean is taken off, and some axes are kept."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, frozen_array
from antisparse._core import Projection, project
from antisparse.codec.frozen import Frozen
from antisparse.errors import InputError

_LARGE = 1 << 16  # entries of the axes, from which on the time of a projection counts
_MOST_ENTRY = 1e3  # of large axes, which float32 then has room for


@dataclass(frozen=True, eq=False)
class Reduction(Frozen):
    """Centring and, where axes are given, projection on them.

    Attributes
    ----------
    mean : ndarray of shape (d,)
        Zeros where nothing is centred.
    axes : ndarray of shape (r, d) or None
        Orthonormal rows; None keeps all dimensions as they are.
    """

    mean: Float64Array
    axes: Float64Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", frozen_array(self.mean, "mean", 1))
        if self.axes is None:
            return
        object.__setattr__(self, "axes", frozen_array(self.axes, "axes", 2))
        if self.axes.size >= _LARGE and np.abs(self.axes).max() > _MOST_ENTRY:
            raise InputError(f"axes has an entry of {np.abs(self.axes).max():.3g}; rows of length 1 have none above 1")
        if self.axes.shape[1] != len(self.mean):
            raise InputError(f"axes has {self.axes.shape[1]} columns, but the mean has {len(self.mean)} entries")

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        return len(self.mean)

    @property
    def reduced_dimension(self) -> int:
        """Of reduced vectors."""
        return self.dimension if self.axes is None else len(self.axes)

    def reduce(self, X: npt.NDArray[Any], threads: int, centre: bool = True) -> Float64Array:
        """Vectors as the codes see them; the same in any batch."""
        exact = np.subtract(X, self.mean, dtype=np.float64) if centre else np.asarray(X, np.float64)
        centred = np.ascontiguousarray(exact)
        if self.axes is None:
            return centred
        reduced: Float64Array
        if self.axes.size < _LARGE:
            reduced = project(centred, np.ascontiguousarray(self.axes.T), threads)
        else:
            reduced = self._projection.project(centred, threads)
        return reduced

    @cached_property
    def _projection(self) -> Projection:
        """Large axes, prepared once, in float32, which takes half the time: codes are far coarser than its rounding."""
        assert self.axes is not None
        return Projection(np.ascontiguousarray(self.axes.T))

    def restore(self, Y: Float64Array, threads: int) -> Float64Array:
        """Vectors (n, d) from reduced ones."""
        if self.axes is not None:
            Y = project(np.ascontiguousarray(Y), self.axes, threads)
        restored: Float64Array = Y + self.mean
        return restored


def fit_reduction(X: Float64Array, center: bool, pca: int | None, most: int) -> Reduction:
    """Centring and PCA fitted to training vectors; `most` is the largest dimension that what follows can take."""
    from antisparse._arrays import integer

    d = X.shape[1]
    if pca is not None and integer(pca, "pca", 1) > min(X.shape):
        raise InputError(
            f"pca = {pca}, but {len(X)} vectors of {d} dimensions have at most {min(X.shape)} axes; lower it or fit on "
            "more vectors"
        )
    keep = min(pca if pca is not None else d, most)
    if pca is not None or keep < d:
        mean = X.mean(axis=0)
        return Reduction(mean, principal_axes(X - mean, keep))
    return Reduction(X.mean(axis=0) if center else np.zeros(d))


def principal_axes(centred: Float64Array, count: int) -> Float64Array:
    """The first `count` principal axes (count, d) of centred vectors, the largest entry of each positive."""
    if len(centred) >= centred.shape[1]:
        _, axes = np.linalg.eigh(centred.T @ centred)
        components = np.ascontiguousarray(axes[:, ::-1].T[:count])
    else:
        components = np.linalg.svd(centred, full_matrices=False)[2][:count]
        if len(components) < count:  # fewer vectors than axes asked for: complete the basis
            rest = np.linalg.svd(components, full_matrices=True)[2][len(components) : count]
            components = np.vstack([components, rest])
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    oriented: Float64Array = np.ascontiguousarray(components * signs[:, None])
    return oriented
