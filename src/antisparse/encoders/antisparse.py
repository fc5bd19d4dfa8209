"""Anti-sparse coding: the signs of the spread representation, in a frame drawn (the paper) or learned."""

from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, integer, nonnegative
from antisparse.codes import CodeLayout, Codes
from antisparse.encoders.base import FrameEncoder, require_shape
from antisparse.encoders.choose import Method, best_alpha, best_h
from antisparse.errors import InputError, UnsupportedError
from antisparse.frames import Frame
from antisparse.learn import best_scales, first_scales, learn_frame, nearest_mean
from antisparse.refine import LEAST_SCALE, TENURE, Refiner
from antisparse.spread import SpreadSolver
from antisparse.words import BITS, WORDS, WordFinder, check_word_bits, learn_words, selection
from antisparse.words import TENURE as WORD_TENURE

# By effort: sweeps of annealing, flips (None: until none gains), their tenure, turns between codes and scales.
_SEARCH = {1: (6, None, 0, 1), 2: (30, 100, TENURE, 1), 3: (40, 300, TENURE, 2)}
_MOVES = {1: 0, 2: 6, 3: 24}  # for every word, by effort; 0: until none gains
_FRAMES = ("learned", "words", "tight", "gaussian", "block")
_PER_MEAN = 256  # vectors that the range of half a byte is found by
_PREPARED = ("_solver", "_refiner", "_finder", "_mean_products")


class AntiSparseEncoder(FrameEncoder):
    """Codes b whose frame combination A b rebuilds the vector.

    Parameters
    ----------
    n_bits : int
        With a drawn frame and fewer bits than dimensions, vectors are first reduced to `n_bits` dimensions by PCA.
    frame : {"learned", "words", "tight", "gaussian", "block"} or ndarray of shape (d, n_bits) or BlockFrame
        "learned" is fitted to the training vectors, scale and all: a vector is rebuilt as ``mean_k + A b``. "words" is,
        too, but every four bits choose one of 16 columns of A, in place of four signs (docs/words.md): more recall by
        reconstruction search in 16 bytes and fewer, and no other search. In the others a vector is rebuilt as
        ``sigma A b / ||A b||``, and `means` and `bias` do not apply.
    effort : {0, 1, 2, 3}
        How the code is found: 0 the signs of the spread representation; 1 greedy flips, from these in a drawn frame,
        from a short annealing in a learned one; 2 annealing and tabu flips; 3 more of both (docs/refine.md). Of words
        1 moves as long as that gains, 2 and 3 go on.
    h : float or "auto"
        The penalty of the spread representation. Small values favour the reconstruction, large ones the Hamming
        distance. "auto" chooses a relative h on the training vectors, for the search method `h_for`; it is in ``h_``.
    h_for : {"hamming", "asymmetric", "reconstruction"}
    relative_h : bool
        h is a fraction of each vector's ``||A.T @ y||_1`` (True), or absolute as in the paper (False).
    means : int
        Vectors are coded relative to the nearest of so many means; its number takes one byte of the code up to 256, two
        beyond. More than one leaves reconstruction search alone: signs of different means do not compare.
    scale : bool
        Give every vector a scale of its own, in one byte: worth it from some 16 bytes a vector on. Needs `bias`.
    bias : bool or "half"
        Keep in one byte what the search needs to know of a code beside its bits, with a share alpha of the code's own
        error (docs/learn.md). "half" keeps it in half a byte, which the bits must leave free: n_bits = 60 makes 8 bytes
        with it.
        Without bias it is computed from the bits, exactly, and takes 8 bytes in memory.
    alpha : float, optional
        Chosen on the training vectors by default.
    center : bool
        Take off the training mean first. PCA and learned frames imply it.
    pca : int, optional
        Reduce to so many dimensions first.
    block_size : int
        Dimensions a block of the "block" frame.
    random_state : int, RandomState or None
        Draws the frame.
    n_threads : int, optional
        All available CPUs by default.

    Attributes
    ----------
    h_ : float
        The penalty in use.
    means_ : ndarray of shape (means, n_reduced) or None
        Of a learned frame.
    size_ : float
        The residual norm, as root mean square, of the training vectors: where a scale is about 1.
    alpha_ : float
    bias_low_, bias_step_ : float, or ndarray of shape (means,) with half a byte
        Of a learned frame with bias: a byte v stands for ``bias_low_ + v bias_step_``.
    reach_low_, reach_step_ : float
        Of a learned frame with scales: a byte v stands for the scale ``1 / (reach_low_ + v reach_step_)``.
    """

    def __init__(
        self,
        n_bits: int = 128,
        *,
        frame: str | Frame = "learned",
        effort: Literal[0, 1, 2, 3] = 2,
        h: float | Literal["auto"] = 0.1,
        h_for: Method = "hamming",
        relative_h: bool = True,
        means: int = 1,
        scale: bool = False,
        bias: bool | Literal["half"] = True,
        alpha: float | None = None,
        center: bool = True,
        pca: int | None = None,
        block_size: int = 48,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.frame = frame
        self.effort = effort
        self.h = h
        self.h_for = h_for
        self.relative_h = relative_h
        self.means = means
        self.scale = scale
        self.bias = bias
        self.alpha = alpha
        self.center = center
        self.pca = pca
        self.block_size = block_size
        self.random_state = random_state
        self.n_threads = n_threads

    fitted_attributes = (
        *FrameEncoder.fitted_attributes,
        "h_",
        "means_",
        "size_",
        "alpha_",
        "bias_low_",
        "bias_step_",
        "reach_low_",
        "reach_step_",
    )

    @classmethod
    def paper(cls, n_bits: int, **parameters: Any) -> Self:
        """The method of 2011 exactly: a tight frame, absolute h = 1, nothing centred, nothing refined.

        Takes `pca`, `random_state` and `n_threads` beside `n_bits`.
        """
        return cls(n_bits, frame="tight", effort=0, h=1.0, relative_h=False, center=False, **parameters)

    @property
    def _learned(self) -> bool:
        return isinstance(self.frame, str) and self.frame in ("learned", "words")

    @property
    def _by_words(self) -> bool:
        return isinstance(self.frame, str) and self.frame == "words"

    @property
    def words(self) -> bool:
        """Whether every four bits are a word: of what was fitted, whatever the parameters are now."""
        return bool(self.frame_.shape[1] == WORDS // BITS * self.code_layout_.n_bits)

    @property
    def _columns(self) -> int:
        return int(self.n_bits) * (WORDS // BITS if self._by_words else 1)

    @property
    def _half(self) -> bool:
        return self._learned and isinstance(self.bias, str) and self.bias == "half"

    def _has(self, part: str) -> bool:
        """Whether code rows have this side part: of what was fitted, as `words`."""
        return part in [name for name, _ in self.code_layout_.side]

    @property
    def cell_means(self) -> Float64Array | None:
        """The means, where there are several."""
        return self.means_ if self.means_ is not None and len(self.means_) > 1 else None

    def transform_real(self, X: Any) -> Float64Array:
        """The representations before binarisation, ``x / ||x||_inf`` (n, n_bits), for asymmetric search."""
        return self.spread_real(self.reduce(self.validated(X, "X")))

    def query_weights(self, Y: Float64Array, query: str) -> Float64Array:
        """``A.T @ q``, or the spread representation ``x / ||x||_inf``."""
        if query == "spread":
            return self.spread_real(Y)
        return super().query_weights(Y, query)

    def spread_real(self, Y: Float64Array) -> Float64Array:
        """``x / ||x||_inf`` of reduced vectors; where x = 0, zeros."""
        if self.words:
            raise UnsupportedError("words have no spread representation; use frame='learned'")
        result = self._solver.spread(Y, self.h_, relative=self.relative_h, n_threads=self.n_threads)
        t = result.t[:, None]
        scaled: Float64Array = np.divide(result.x, t, out=np.zeros_like(result.x), where=t > 0)
        return scaled

    def _expand(self, bits: Codes) -> npt.NDArray[Any]:
        return selection(bits, self.code_layout_.n_bits) if self.words else super()._expand(bits)

    def terms(self, codes: Codes) -> tuple[Float64Array, Float64Array]:
        """Scale and bias of each code row; in a learned frame -2 and ``||A b||^2 + 2 mean . A b``."""
        if self.means_ is None:
            return super().terms(codes)
        rebuilt = self.combine(codes)
        return np.full(len(rebuilt), -2.0), _exact_bias(rebuilt, self.means_[self.cells(codes)])

    def cells(self, codes: Codes) -> npt.NDArray[np.int64]:
        """The number of each code row's mean."""
        if self.cell_means is None:
            return np.zeros(len(codes), np.int64)
        start, size = self.code_layout_.place("mean")
        numbers = codes[:, start : start + size].astype(np.int64) @ (256 ** np.arange(size))
        if len(numbers) and numbers.max() >= len(self.cell_means):
            raise InputError(f"codes name mean {numbers.max()}, but the encoder has {len(self.cell_means)}")
        return numbers

    def check_fitted_shapes(self) -> None:
        """Raise unless the fitted attributes, read from a file, fit each other."""
        self._check_parameters()
        super().check_fitted_shapes()
        if (self.means_ is None) != (not self._learned):
            raise InputError("means_ does not fit the frame")
        if self.means_ is not None:
            require_shape(self.means_, "means_", (integer(self.means, "means", 1), self.n_reduced))
        for name in ("h_", "size_", "alpha_", "bias_low_", "bias_step_", "reach_low_", "reach_step_"):
            value = getattr(self, name)
            if self._half and name.startswith("bias"):
                require_shape(value, name, (int(self.means),))
            elif not isinstance(value, float) or not np.isfinite(value):
                raise InputError(f"{name} is not a finite number")
            if np.min(value) < 0 and name != "bias_low_":
                raise InputError(f"{name} must not be negative")
        if self._learned and self.scale and not (self.reach_low_ > 0 and self.bias):
            raise InputError("reach_low_ must be positive")

    def _check_parameters(self) -> None:
        if self.h_for not in get_args(Method):
            raise InputError(f"h_for = {self.h_for!r}; choose one of {', '.join(map(repr, get_args(Method)))}")
        if isinstance(self.h, str):
            if self.h != "auto":
                raise InputError(f"h = {self.h!r}; pass a number, or 'auto'")
            if not boolean(self.relative_h, "relative_h"):
                raise InputError("h='auto' chooses a relative h; leave relative_h=True")
        else:
            nonnegative(self.h, "h")
        boolean(self.relative_h, "relative_h")
        if not (isinstance(self.bias, str) and self.bias == "half"):
            boolean(self.bias, "bias")
        elif self._half and not 1 <= integer(self.n_bits, "n_bits", 1) % 8 <= 4:
            raise InputError(
                f"bias='half' needs the last half byte of bits free: n_bits = {self.n_bits} must be 1 to 4 above a "
                "multiple of 8"
            )
        if boolean(self.scale, "scale") and (self.bias is not True or not self._learned):
            raise InputError("scale needs frame='learned' and bias=True")
        self._check_effort((0, 1, 2, 3))
        if isinstance(self.frame, str) and self.frame not in _FRAMES:
            raise InputError(f"frame = {self.frame!r}; choose one of {', '.join(map(repr, _FRAMES))}, or pass a matrix")
        if self._by_words:
            check_word_bits(self.n_bits)
            given = {"effort=0": self.effort == 0, "scale=True": self.scale, "h='auto'": self.h == "auto"}
            unfit = [name for name, is_given in given.items() if is_given]
            if unfit:
                raise InputError(
                    f"{unfit[0]} does not go with frame='words', whose codes have no signs; use frame='learned'"
                )
        if integer(self.means, "means", 1, 2**16 + 1) > 1 and self.h == "auto":
            raise InputError("h='auto' compares codes of different vectors, which several means forbid; pass means=1")
        if self.alpha is not None:
            nonnegative(self.alpha, "alpha")

    def _check_effort(self, choices: tuple[int, ...], say: str = "choose") -> None:
        if isinstance(self.effort, bool) or self.effort not in choices:
            raise InputError(f"effort = {self.effort!r}; {say} {', '.join(map(str, choices[:-1]))} or {choices[-1]}")

    def _fit(self, X: Float64Array, random: np.random.RandomState) -> None:
        self._check_parameters()
        means = self.means
        for name in _PREPARED:
            self.__dict__.pop(name, None)
        self.size_ = self.alpha_ = self.reach_low_ = self.reach_step_ = 0.0
        self.bias_low_: Any = 0.0
        self.bias_step_: Any = 0.0
        self.means_: Float64Array | None = None
        if not self._learned:
            if means > 1:
                raise InputError(
                    f"means = {means} needs frame='learned' or 'words'; the others code vectors as they are"
                )
            super()._fit(X, random)
            self._fit_h(self.reduce(X), random)
            return
        Y = self._fit_reduction(X, boolean(self.center, "center"), self.pca, X.shape[1])
        if means > len(Y):
            raise InputError(f"means = {means}, but X has {len(Y)} vectors; lower it or fit on more vectors")
        if self._by_words:
            learned = learn_words(Y, self.n_bits, means=means, random_state=random, n_threads=self.n_threads)
        else:
            learned = learn_frame(
                Y, self.n_bits, means=means, scale=self.scale, random_state=random, n_threads=self.n_threads
            )
        self.size_ = learned.size
        self.frame_: Frame = np.ascontiguousarray(learned.frame)
        self.means_ = learned.means
        if means == 1:  # then it is part of the mean that is taken off
            shift = learned.means[0]
            self.mean_ = self.mean_ + (shift if self.components_ is None else shift @ self.components_)
            self.means_ = np.zeros_like(learned.means)
            Y = Y - shift
        self.sigma_ = float(np.linalg.norm(Y, axis=1).mean())
        self._fit_h(Y, random)
        if self.bias:
            self._fit_bias(Y, random)

    def _fit_h(self, Y: Float64Array, random: np.random.RandomState) -> None:
        if self.h != "auto":
            self.h_ = float(self.h)
        elif len(Y) < 20:
            raise InputError(f"X has {len(Y)} vectors, too few to choose h by; pass a number, such as h=0.3")
        else:
            self.h_ = best_h(Y, self.frame_, self.matrix_, self.h_for, random, self._threads)

    def _layout(self) -> CodeLayout:
        side: list[tuple[str, int]] = []
        if self.cell_means is not None:
            side.append(("mean", 1 if len(self.cell_means) <= 256 else 2))
        if self._learned and self.scale:
            side.append(("scale", 1))
        if self._learned and self.bias:
            side.append(("bias", 0 if self._half else 1))
        return CodeLayout(int(self.n_bits), tuple(side))

    def _fit_bias(self, Y: Float64Array, random: np.random.RandomState) -> None:
        """Choose alpha, and the ranges of the side bytes, on some of the training vectors."""
        chosen = random.permutation(len(Y))[:22_000]
        queries, base = Y[chosen[: len(chosen) // 11]], Y[chosen[len(chosen) // 11 :]]
        self.code_layout_ = self._layout()
        means = self._means[nearest_mean(base, self._means, self._threads)]
        residual = base - means
        bits, along, size = self._search_codes(residual)
        rebuilt = self.combine(bits)
        if self._has("scale"):
            # A few vectors equal their mean, and have a scale of nearly 0: they shall not set the range.
            low, high = _range(1 / np.maximum(best_scales(along, size), LEAST_SCALE), 0.01, 0.5)
            self.reach_low_ = max(low, high / 64)
            self.reach_step_ = (high - self.reach_low_) / 255
            rebuilt *= self._decoded_scales(self._scale_bytes(along, size))[:, None]
        error = ((residual - rebuilt) ** 2).sum(axis=1)
        if self.alpha is not None:
            self.alpha_ = float(self.alpha)
        elif len(queries) >= 20:
            self.alpha_ = best_alpha(queries, base, means + rebuilt, error)
        if self.code_layout_.nibble:
            self._fit_half_bias(Y[random.permutation(len(Y))[: max(len(base), _PER_MEAN * len(self._means))]])
            return
        low, high = _range(_exact_bias(rebuilt, means) + self.alpha_ * error)
        self.bias_low_ = low
        self.bias_step_ = (high - low) / 255

    def _fit_half_bias(self, Y: Float64Array) -> None:
        """A range for every mean, since 16 values have to do for it, by mean and deviation of its vectors' biases.

        A vector above the range seems nearer to every query than it is, one below it farther: the former harms more.
        """
        labels, count = nearest_mean(Y, self._means, self._threads), len(self._means)
        values = self._bias(Y - self._means[labels], labels, *self._search_codes(Y - self._means[labels]))
        of_mean = np.bincount(labels, minlength=count)
        centre = np.bincount(labels, values, minlength=count) / np.maximum(of_mean, 1)
        centre[of_mean == 0] = values.mean()
        squares = (values - centre[labels]) ** 2
        # As if ten more vectors had the deviation that all have.
        deviation = np.sqrt((np.bincount(labels, squares, minlength=count) + 10 * squares.mean()) / (of_mean + 10))
        self.bias_low_ = centre - 2.25 * deviation
        self.bias_step_ = 5 * deviation / 15

    def _scale_bytes(self, along: Float64Array, size: Float64Array) -> npt.NDArray[np.uint8]:
        """The byte of each vector's scale, best for its A b."""
        reach = 1 / np.maximum(best_scales(along, size), LEAST_SCALE)
        return np.clip(np.round((reach - self.reach_low_) / (self.reach_step_ or 1.0)), 0, 255).astype(np.uint8)

    def _decoded_scales(self, byte: npt.NDArray[np.uint8]) -> Float64Array:
        scales: Float64Array = 1 / (self.reach_low_ + self.reach_step_ * byte.astype(np.float64))
        return scales

    @property
    def _means(self) -> Float64Array:
        assert self.means_ is not None
        return self.means_

    def _encode(self, Y: Float64Array) -> Codes:
        if self.means_ is None:
            return self._search_codes(Y)[0]
        labels = nearest_mean(Y, self.means_, self._threads)
        residual = Y - self.means_[labels]
        bits, along, size = self._search_codes(residual)
        columns = [bits]
        if self.cell_means is not None:
            width = self.code_layout_.place("mean")[1]
            columns.append((labels[:, None] >> (8 * np.arange(width)) & 255).astype(np.uint8))
        if self._has("bias"):
            scales = np.ones(len(Y))
            if self._has("scale"):
                byte = self._scale_bytes(along, size)
                columns.append(byte[:, None])
                scales = self._decoded_scales(byte)
            value = self._bias(residual, labels, bits, along, size, scales)
            if self.code_layout_.nibble:
                low, step = self.bias_low_[labels], self.bias_step_[labels]
                number = np.clip(np.round((value - low) / np.where(step > 0, step, 1.0)), 0, 15)
                bits[:, -1] |= number.astype(np.uint8)
            else:
                byte = np.clip(np.round((value - self.bias_low_) / (self.bias_step_ or 1.0)), 0, 255).astype(np.uint8)
                columns.append(byte[:, None])
        return np.concatenate(columns, axis=1)

    def _bias(
        self,
        residual: Float64Array,
        labels: npt.NDArray[np.int64],
        bits: Codes,
        along: Float64Array,
        size: Float64Array,
        scales: Float64Array | float = 1.0,
    ) -> Float64Array:
        """``||s A b||^2 + 2 mean . s A b + alpha e^2``, all of it from b, c = A'r and G (docs/learn.md)."""
        square = scales * scales * size
        with np.errstate(over="ignore"):  # of a vector beyond all bounds: the last of the bias bytes
            error = np.clip((residual * residual).sum(axis=1) - 2 * scales * along + square, 0, 1e300)
        value: Float64Array = square + self.alpha_ * error
        if self.cell_means is not None:
            value += 2 * scales * np.einsum("ij,ij->i", self._mean_products[labels], self._expand(bits))
        return value

    def _search_codes(self, Y: Float64Array) -> tuple[Codes, Float64Array, Float64Array]:
        """The bits of reduced vectors, or of their residuals, with ``y . A b`` and ``||A b||^2``."""
        n_bits = self.code_layout_.n_bits
        if self.words:
            self._check_effort((1, 2, 3), "words need")
            moves = _MOVES[self.effort] * n_bits // BITS
            return self._finder.find(Y, moves or 10 * n_bits, WORD_TENURE if moves else 0, self._threads)
        self._check_effort((0, 1, 2, 3))
        correlations, run = self._refiner.correlations(Y, self._threads), self._refiner.run
        learned = self.means_ is not None
        if learned and self.effort > 0:
            bits = np.zeros((len(Y), -(-n_bits // 8)), np.uint8)
            scales = first_scales(Y, self.size_) if self._has("scale") else None
            sweeps, flips, tenure, turns = self._search
            turns = turns if self._has("scale") else 0
            return bits, *run(correlations, bits, sweeps, flips, tenure, "euclidean", self._threads, scales, turns)
        bits = self._solver.bits(Y, self.h_, relative=self.relative_h, dtype=np.float32, n_threads=self.n_threads)
        if self.effort == 0:
            return bits, *run(correlations, bits, 0, 0, 0, "euclidean", self._threads)
        if self.effort == 1:
            return bits, *run(correlations, bits, 0, 10 * n_bits, 0, "cosine", self._threads)
        # A drawn frame has no scale of its own: that of the spread code.
        along, size = run(correlations, bits, 0, 0, 0, "cosine", self._threads)
        scales = np.clip(best_scales(along, size), LEAST_SCALE, 1e18).astype(np.float32)
        sweeps, flips, tenure, _ = self._search
        return bits, *run(correlations, bits, sweeps, flips, tenure, "cosine", self._threads, scales)

    @property
    def _search(self) -> tuple[int, int, int, int]:
        sweeps, flips, tenure, turns = _SEARCH[self.effort]
        return sweeps, 10 * self.code_layout_.n_bits if flips is None else flips, tenure, turns

    def _reconstruct(self, codes: Any) -> Float64Array:
        if self.means_ is None:
            return super()._reconstruct(codes)
        rows = self.code_layout_.rows(codes, "codes")
        rebuilt = self.combine(rows)
        if self._has("scale"):
            rebuilt *= self._decoded_scales(rows[:, self.code_layout_.place("scale")[0]])[:, None]
        rebuilt += self.means_[self.cells(rows)]
        return rebuilt

    # Prepared when first needed; not kept by pickle and clone.
    @cached_property
    def _solver(self) -> SpreadSolver:
        return SpreadSolver(self.frame_)

    @cached_property
    def _refiner(self) -> Refiner:
        return Refiner(self.frame_)

    @cached_property
    def _finder(self) -> WordFinder:
        return WordFinder(self.matrix_)

    @cached_property
    def _mean_products(self) -> Float64Array:
        """``mean . A`` of every mean, (means, columns of A)."""
        return self.project(self._means)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _PREPARED}


def _exact_bias(rebuilt: Float64Array, means: Float64Array) -> Float64Array:
    """``||r||^2 + 2 mean . r`` of rebuilt residuals r."""
    bias: Float64Array = (rebuilt * rebuilt).sum(axis=1) + 2 * (rebuilt * means).sum(axis=1)
    return bias


def _range(values: Float64Array, tail: float = 0.0005, more: float = 0.05) -> tuple[float, float]:
    """Where nearly all values lie, and a little more."""
    low, high = np.quantile(values, [tail, 1 - tail])
    room = more * (high - low)
    return float(low - room), float(high + room)
