"""What every encoder is: a scikit-learn transformer from float vectors to code rows, and back."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from antisparse._arrays import Float64Array, boolean, finite, integer, nonnegative, real_array, thread_count
from antisparse._core import project
from antisparse.codes import CodeLayout, Codes, unpack
from antisparse.errors import InputError, InputTypeError, UnsupportedError
from antisparse.frames import BlockFrame, Frame, block_frame, frame_matrix, gaussian_frame, tight_frame

_CHUNK_ROWS = 4096  # small enough for what is computed of them to stay in cache
_LARGEST = 1e140


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The contract of an encoder.

    A subclass gives `_fit` (after which ``n_bits_`` is known) and `_encode`, and, if its codes can be decoded,
    `_reconstruct`. Vectors pass `reduce` first: centring and PCA, as fitted by `_fit_reduction`. Every linear map runs
    in a fixed order of operations, so a vector's code does not depend on the batch it comes in.

    Attributes
    ----------
    code_layout_ : CodeLayout
        What the bytes of a code row are.
    mean_ : ndarray of shape (n_features,)
        What is taken off first; zeros where nothing is centred.
    components_ : ndarray of shape (n_reduced, n_features) or None
        The principal axes kept, or None.
    """

    n_bits: int
    n_threads: int | None
    mean_: Float64Array
    components_: Float64Array | None
    code_layout_: CodeLayout
    reconstructs = True  # whether codes can be decoded
    fitted_attributes: tuple[str, ...] = ("n_features_in_", "code_layout_", "mean_", "components_")  # all there are

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the encoder needs from training vectors (n, d)."""
        integer(self.n_bits, "n_bits", 1)
        thread_count(self.n_threads)
        X = self.validated(X, "X", fit=True)
        self._fit(X, check_random_state(getattr(self, "random_state", None)))
        self.code_layout_ = self._layout()
        return self

    def transform(self, X: Any) -> Codes:
        """Code rows (n, code_size), uint8, of the vectors (n, d)."""
        return self.encode(X)

    def encode(self, X: Any, *, out: Codes | None = None, progress: bool = False) -> Codes:
        """`transform` for long work: into a given array, with a progress bar.

        Vectors are read and encoded a few thousand at a time, so that X may be memory-mapped and larger than memory.

        Parameters
        ----------
        X : array of shape (n, d)
        out : ndarray of shape (n, code_size), uint8, optional
            Where to write the codes, such as a `numpy.memmap`.
        progress : bool
            Show a progress bar on standard error.
        """
        X = self.validated(X, "X")
        shape = (len(X), self.code_layout_.code_size)
        if out is None:
            out = np.empty(shape, np.uint8)
        elif out.shape != shape or out.dtype != np.uint8:
            raise InputError(f"out has shape {out.shape} and dtype {out.dtype}; it must be {shape} and uint8")
        starts: Iterable[int] = range(0, len(X), _CHUNK_ROWS)
        if progress:
            from rich.console import Console
            from rich.progress import track

            starts = track(starts, description="encoding", console=Console(stderr=True))
        for start in starts:
            rows = slice(start, start + _CHUNK_ROWS)
            try:
                out[rows] = self._encode(self.reduce(X[rows]))
            except InputError as error:  # of the reduced vectors: say which of the caller's they are
                last = min(start + _CHUNK_ROWS, len(X)) - 1
                raise InputError(f"X rows {start} to {last} cannot be encoded: {error}") from None
        return out

    def inverse_transform(self, codes: Any) -> Float64Array:
        """The vectors (n, d) that code rows stand for."""
        check_is_fitted(self)
        rebuilt = self._reconstruct(codes)
        if self.components_ is not None:
            rebuilt = project(rebuilt, np.ascontiguousarray(self.components_), self._threads)
        centred: Float64Array = rebuilt + self.mean_
        return centred

    def reduce(self, X: npt.NDArray[Any]) -> Float64Array:
        """The vectors as the codes see them: centred, and in the principal axes kept."""
        centred = np.asarray(X, dtype=np.float64) - self.mean_
        if self.components_ is None:
            return np.ascontiguousarray(centred)
        axes = np.ascontiguousarray(self.components_.T)
        reduced: Float64Array = project(np.ascontiguousarray(centred), axes, self._threads)
        return reduced

    @property
    def _threads(self) -> int:
        return thread_count(self.n_threads)

    def _plain(self, X: Any) -> bool:
        """Whether nothing but finiteness is left to check: scikit-learn's checks cost more than a query's search."""
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def validated(self, X: Any, name: str, fit: bool = False) -> npt.NDArray[Any]:
        """Vectors (n, d) as an array, checked; `fit` notes their dimension, else they must have it."""
        if not fit:
            check_is_fitted(self)
            if self._plain(X):
                finite(X, name)
                return np.asarray(X)
        try:
            array: npt.NDArray[Any] = validate_data(
                self,
                X,
                dtype=np.float64 if fit else "numeric",
                ensure_all_finite=False,
                ensure_min_samples=int(fit),
                reset=fit,
            )
        except TypeError as error:
            raise InputTypeError(f"{name}: {error}") from None
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None
        finite(array, name)
        if fit and np.abs(array).max() > _LARGEST:
            raise InputError(f"{name} has entries beyond {_LARGEST:g}, whose squares overflow; scale the vectors down")
        return array

    def query_weights(self, Y: Float64Array, query: str) -> Float64Array:
        """The weights (n, n_bits) of reduced queries: of asymmetric search, and, as "projection", of reconstruction."""
        raise UnsupportedError(f"{type(self).__name__} has no real-valued query; search by method='hamming'")

    def terms(self, codes: Codes) -> tuple[Float64Array, Float64Array]:
        """Scale and bias of each code row, m its mean: ``||q - y_hat||^2 = ||q - m||^2 + bias + scale sum w_j b_j``."""
        raise UnsupportedError(f"{type(self).__name__} cannot rebuild vectors")

    def check_fitted_shapes(self) -> None:
        """Raise unless the fitted attributes, read from a file, fit each other."""
        d = integer(self.n_features_in_, "n_features_in_", 1)
        integer(self.n_bits, "n_bits", 1)
        thread_count(self.n_threads)
        if self.code_layout_ != self._layout():
            raise InputError("code_layout_ does not fit n_bits and the rest")
        require_shape(self.mean_, "mean_", (d,))
        if self.components_ is not None:
            require_shape(self.components_, "components_", (len(self.components_), d))

    @property
    def n_reduced(self) -> int:
        """The dimension of reduced vectors."""
        return int(self.n_features_in_) if self.components_ is None else len(self.components_)

    @property
    def words(self) -> bool:
        """Whether every four bits are one of 16 words, in place of four signs: then codes themselves do not compare."""
        return False

    @property
    def cell_means(self) -> Float64Array | None:
        """The means (K, n_reduced) that vectors are coded relative to, where there are several."""
        return None

    def cells(self, codes: Codes) -> npt.NDArray[np.int64]:
        """The number of each code row's mean."""
        return np.zeros(len(codes), np.int64)

    def _layout(self) -> CodeLayout:
        """What the bytes of a code row are, once fitted."""
        return CodeLayout(int(self.n_bits))

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        raise NotImplementedError

    def _encode(self, Y: Float64Array) -> Codes:
        raise NotImplementedError

    def _reconstruct(self, codes: Any) -> Float64Array:
        raise NotImplementedError

    def _fit_reduction(self, X: Float64Array, center: bool, pca: int | None, most: int) -> Float64Array:
        """Fit centring and PCA; `most` is the largest dimension the rest can take. Returns the reduced vectors."""
        d = X.shape[1]
        if pca is not None and integer(pca, "pca", 1) > min(X.shape):
            raise InputError(
                f"pca = {pca}, but {len(X)} vectors of {d} dimensions have at most {min(X.shape)} axes; lower it or "
                "fit on more vectors"
            )
        keep = min(pca if pca is not None else d, most)
        if pca is not None or keep < d:
            self.mean_ = X.mean(axis=0)
            self.components_ = principal_axes(X - self.mean_, keep)
        else:
            self.mean_ = X.mean(axis=0) if center else np.zeros(d)
            self.components_ = None
        return self.reduce(X)


class LinearEncoder(Encoder):
    """An encoder whose bits stand for the columns of a matrix: ``matrix b`` is the vector, but for its length."""

    @property
    def matrix_(self) -> Float64Array:
        """The matrix (n_reduced, n_bits)."""
        raise NotImplementedError

    def project(self, Y: Float64Array) -> Float64Array:
        """``matrix.T @ y`` of reduced vectors, (n, n_bits)."""
        projected: Float64Array = project(Y, np.ascontiguousarray(self.matrix_), self._threads)
        return projected

    def combine(self, codes: Any) -> Float64Array:
        """``matrix @ b`` of code rows, (n, n_reduced)."""
        x = self._expand(self.code_layout_.bits(codes)).astype(np.float64)
        combined: Float64Array = project(x, np.ascontiguousarray(self.matrix_.T), self._threads)
        return combined

    def _expand(self, bits: Codes) -> npt.NDArray[Any]:
        """What rows of bits say of the columns of the matrix: their signs."""
        return unpack(bits, self.code_layout_.n_bits)

    def query_weights(self, Y: Float64Array, query: str) -> Float64Array:
        """``matrix.T @ q``."""
        if query != "projection":
            raise UnsupportedError(f"{type(self).__name__} has no spread representation; pass query='projection'")
        return self.project(Y)


class FrameEncoder(LinearEncoder):
    """An encoder whose bits stand for the columns of a frame: ``y_hat = sigma A b / ||A b||``.

    Attributes
    ----------
    frame_ : ndarray of shape (n_reduced, n_bits) or BlockFrame
        Of words (n_reduced, 4 n_bits).
    sigma_ : float
        The mean norm of the training vectors, reduced: the length given to every reconstruction.
    """

    fitted_attributes = (*Encoder.fitted_attributes, "frame_", "sigma_")

    frame: str | Frame
    block_size: int
    center: bool
    pca: int | None

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        given: Frame | None = None
        if not isinstance(self.frame, str):
            given = self.frame if isinstance(self.frame, BlockFrame) else frame_matrix(self.frame, "frame")
        most = self.n_bits if given is None else given.shape[0]
        if given is not None and given.shape[1] != self.n_bits:
            raise InputError(f"frame has {given.shape[1]} columns but n_bits = {self.n_bits}")
        Y = self._fit_reduction(X, boolean(self.center, "center"), self.pca, most)
        d = Y.shape[1]
        if given is not None:
            if given.shape[0] != d:
                raise InputError(f"frame has {given.shape[0]} rows, but the vectors have {d} dimensions (after PCA)")
            self.frame_: Frame = given
        else:
            seed = int(random.randint(np.iinfo(np.int32).max))
            if self.frame == "tight":
                self.frame_ = tight_frame(d, self.n_bits, seed)
            elif self.frame == "gaussian":
                self.frame_ = gaussian_frame(d, self.n_bits, seed)
            elif self.frame == "block":
                self.frame_ = block_frame(d, self.n_bits, self.block_size, seed)
            else:
                raise InputError(f"frame = {self.frame!r}; choose 'tight', 'gaussian', 'block', or pass a matrix")
        self.sigma_ = float(np.linalg.norm(Y, axis=1).mean())

    def check_fitted_shapes(self) -> None:
        """Raise unless the fitted attributes, read from a file, fit each other."""
        super().check_fitted_shapes()
        nonnegative(self.sigma_, "sigma_")
        if not isinstance(self.frame_, BlockFrame):
            require_shape(self.frame_, "frame_", (self.n_reduced, self._columns))
        elif self.frame_.shape != (self.n_reduced, self._columns):
            raise InputError(f"frame_ has shape {self.frame_.shape}, not {(self.n_reduced, self._columns)}")

    @property
    def _columns(self) -> int:
        """Of the frame."""
        return int(self.n_bits)

    @property
    def matrix_(self) -> Float64Array:
        """The frame as one matrix: a column for every bit, of words 16 for every four."""
        check_is_fitted(self)
        return self.frame_.matrix if isinstance(self.frame_, BlockFrame) else self.frame_

    def terms(self, codes: Codes) -> tuple[Float64Array, Float64Array]:
        """Scale ``-2 sigma / ||A b||`` and bias ``sigma^2``; zero where A b = 0."""
        factor = self._lengths(self.combine(codes))
        return -2 * factor, np.where(factor > 0, self.sigma_**2, 0.0)

    def _lengths(self, combined: Float64Array) -> Float64Array:
        """What brings each A b to the length sigma; zero where A b = 0."""
        norms = np.sqrt((combined * combined).sum(axis=1))
        factor: Float64Array = np.divide(self.sigma_, norms, out=np.zeros_like(norms), where=norms > 0)
        return factor

    def _reconstruct(self, codes: Any) -> Float64Array:
        combined = self.combine(codes)
        return combined * self._lengths(combined)[:, None]


def require_shape(value: Any, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless `value` is a finite array of this shape, float64 or int64."""
    if getattr(value, "dtype", None) not in (np.float64, np.int64):
        raise InputError(f"{name} is not an array of float64 or int64")
    if real_array(value, name, len(shape)).shape != shape:
        raise InputError(f"{name} has shape {value.shape}, not {shape}")
    finite(value, name)


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
