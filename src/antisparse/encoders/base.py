"""What every encoder is: a scikit-learn transformer that fits a codec."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from antisparse._arrays import (
    Float64Array,
    FloatArray,
    finite,
    integer,
    moderate,
    plain_array,
    random_numbers,
    real_array,
    shown,
    thread_count,
)
from antisparse._containers import has_named_columns
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError
from antisparse.frames import BlockFrame, Frame, block_frame, frame_matrix, gaussian_frame, tight_frame
from antisparse.metrics import Metric, MetricName, metric_named

_CHUNK_ROWS = 4096
_BLOCK = 48  # dimensions a block of the "block" frame


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The contract of an encoder: a subclass gives `_fit`, which makes a codec of training vectors.

    Attributes
    ----------
    codec_ : Codec
        What was fitted. It never changes: a code base or an index that holds it does not notice what is done to the
        encoder later.
    """

    metric: MetricName
    n_threads: int | None
    codec_: Codec
    _takes_float32 = False  # whether `_fit` does

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the codec from training vectors (n, d), brought to unit length first if the metric is the cosine."""
        metric, _ = metric_named(self.metric), thread_count(self.n_threads)
        random = random_numbers(getattr(self, "random_state", None))
        before = dict(self.__dict__)
        try:
            training = self._training(X, metric, random)
            # BLAS with one thread: sums have one order, so that the codec depends on nothing but vectors and seed.
            with threadpool_limits(1, "blas"):
                self.codec_ = self._fit(training if self._takes_float32 else np.asarray(training, np.float64), random)
        except BaseException:  # a fit that fails leaves the one before
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _training(self, X: Any, metric: Metric, random: np.random.RandomState) -> FloatArray:
        """The vectors to learn from, prepared for the metric: float32 where they have no more precision than that."""
        # Rows of an array are drawn first: it may be memory-mapped, and most of it is then never read.
        rows = None
        if isinstance(X, np.ndarray):
            plain_array(X, "X")  # nothing in it is masked, drawn or not
        elif not has_named_columns(X):
            X = plain_array(X, "X")
        if isinstance(X, np.ndarray) and X.ndim == 2:
            rows = self._sample(len(X), random)
        drawn = X if rows is None else X[rows]
        if isinstance(drawn, np.ndarray) and drawn.dtype == np.float16:
            drawn = drawn.astype(np.float32)
        try:
            array = self._validated(drawn, fit=True)
            if rows is None and (more := self._sample(len(array), random)) is not None:
                array = array[more]
            return _prepared(array[:, : self._dimensions(array.shape[1])], metric)
        except InputError:
            if rows is not None and X.dtype.kind in "biuf":  # say which of the caller's rows it is
                for row in rows:
                    finite(X[row : row + 1], "X", int(row))
                    metric.prepare(X[row : row + 1, : self._dimensions(X.shape[1])], "X", int(row))
            raise

    def _fit(self, X: Any, random: np.random.RandomState) -> Codec:
        raise NotImplementedError

    def _sample(self, n: int, random: np.random.RandomState) -> npt.NDArray[np.int64] | None:
        """The rows of n training vectors to use; None: all of them."""
        return None

    def _dimensions(self, given: int) -> int:
        """How many of the dimensions given are used: the first ones."""
        return given

    def transform(self, X: Any) -> Codes:
        """Code rows (n, n_bytes), uint8, of the vectors (n, d)."""
        check_is_fitted(self)
        return self.codec_.encode(self._validated(X, fit=False), n_threads=self.n_threads)

    def inverse_transform(self, codes: Any) -> Float64Array:
        """The vectors (n, d) that code rows stand for."""
        check_is_fitted(self)
        return self.codec_.decode(codes, n_threads=self.n_threads)

    def _validated(self, X: Any, fit: bool) -> npt.NDArray[Any]:
        """Vectors (n, d) as an array; `fit` notes their dimension, else they must have it."""
        plain = type(X) is np.ndarray and X.dtype.kind == "f" and X.ndim == 2
        if not fit and plain and X.shape[1] == self.codec_.input_dimension and not hasattr(self, "feature_names_in_"):
            return np.asarray(X)  # scikit-learn's checks would read all of it
        given = plain_array(X, "X")
        if not has_named_columns(X):
            X = given
        if given.dtype.kind in "mMSU" or (given.dtype.kind == "f" and given.dtype.itemsize > 8):
            real_array(given, "X", 2)  # what scikit-learn would take for numbers
        if given.ndim != 2:  # scikit-learn would print all of it
            raise InputError(
                f"X has shape {given.shape}; expected 2 dimensions. Reshape your data: a single vector is "
                "X.reshape(1, -1)"
            )
        try:
            array: npt.NDArray[Any] = validate_data(
                self,
                X,
                dtype=[np.float64, np.float32] if fit else "numeric",
                ensure_all_finite=False,
                ensure_min_samples=int(fit),
                reset=fit,
            )
        except TypeError as error:
            raise InputTypeError(f"X: {error}") from None
        except (ValueError, OverflowError) as error:
            raise InputError(f"X: {error}") from None
        if fit:
            finite(array, "X")
            moderate(array, "X")
        return array

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters: str = super().__repr__(N_CHAR_MAX)
        return f"{parameters}, fitted: {self.codec_.summary}" if hasattr(self, "codec_") else parameters


def _prepared(array: FloatArray, metric: Metric) -> FloatArray:
    """Vectors prepared for the metric, a few thousand at a time; the array itself where nothing is to be done."""
    prepared = None
    for first in range(0, len(array), _CHUNK_ROWS):
        part = array[first : first + _CHUNK_ROWS]
        ready = metric.prepare(part, "X", first)
        if ready is part:
            return array
        if prepared is None:
            prepared = np.empty(array.shape)
        prepared[first : first + _CHUNK_ROWS] = ready
    return array if prepared is None else prepared


def drawn_frame(frame: str | Frame, d: int, n_bits: int, random: np.random.RandomState) -> Frame:
    """The frame of a name, drawn for d dimensions, or the one that was given."""
    if not isinstance(frame, str):
        given = frame if isinstance(frame, BlockFrame) else frame_matrix(frame, "frame")
        if given.shape != (d, n_bits):
            raise InputError(
                f"frame has shape {given.shape}; for vectors of {d} dimensions (after PCA) and n_bits = {n_bits} it "
                f"must be {(d, n_bits)}"
            )
        return given
    seed = int(random.randint(np.iinfo(np.int32).max))
    if frame == "tight":
        return tight_frame(d, n_bits, seed)
    if frame == "gaussian":
        return gaussian_frame(d, n_bits, seed)
    if frame == "block":
        return block_frame(d, n_bits, _BLOCK, seed)
    raise InputError(f"frame = {shown(frame)}; choose 'tight', 'gaussian', 'block', or pass a matrix")


def most_dimensions(frame: str | Frame, n_bits: int) -> int:
    """The largest dimension that a frame can take: drawn ones have no fewer columns than rows."""
    integer(n_bits, "n_bits", 1)
    if isinstance(frame, str):
        return n_bits
    return int((frame if isinstance(frame, BlockFrame) else frame_matrix(frame, "frame")).shape[0])
