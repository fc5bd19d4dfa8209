"""Recall tuning: the cheapest setting that reaches a recall, or the best within a byte budget (docs/tuning.md)."""

import sys
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from antisparse._arrays import boolean, finite, integer, nonnegative, real_array, thread_count
from antisparse.encoders import AntiSparseEncoder
from antisparse.errors import InputError, MissingDependencyError
from antisparse.evaluation import Ids, exact_neighbors, recall_at
from antisparse.scan import CodeBase

Array = npt.NDArray[Any]
Parameters = dict[str, Any]
Method = Literal["reconstruction", "hamming"]

_LADDER = [step * 2**power for power in range(6) for step in (4, 5, 6, 7)][:21]  # 4 to 128 bytes, four to a doubling
_TRAIN = 30_000  # vectors an encoder is fitted on, at most
_MEANS, _PER_MEAN = 256, 80  # with fewer training vectors a mean, means fit these and not the base
_FEW_BYTES = 8  # up to which half a byte of bias is tried
_WORD_BYTES = 16  # up to which words are tried, which take long to learn, and gain less the more there are
_TERMS = 4  # bytes CodeBase keeps beside the bits to re-rank codes of a drawn frame
_Z = 1.959963984540054  # 95 % of a normal distribution lies within so many deviations
_LOOKS = {
    "reconstruction": ("#d55e00", "o"),
    "reconstruction of words": ("#009e73", "D"),
    "shortlist, re-ranked": ("#0072b2", "s"),
    "Hamming": ("#7f7f7f", "^"),
}
_CAVEAT = "Recall falls as the base grows: expect less on a larger one, and tune on as many vectors as you can."


@dataclass(frozen=True)
class Setting:
    """One way to spend the bytes, and what it was measured to give."""

    parameters: Parameters  # AntiSparseEncoder(**parameters)
    method: Method  # of CodeBase.search
    shortlist: int | None
    n_bytes: int  # what the search reads of a vector: the sum of the next five
    bit_bytes: int
    mean_bytes: int
    scale_bytes: int
    bias_bytes: int
    term_bytes: int  # what CodeBase works out from the bits and keeps beside them
    recall: float
    low: float  # of its 95 % interval
    high: float
    encode_us: float  # a vector, one thread
    search_us: float  # a query, one thread

    @property
    def encoder_line(self) -> str:
        """The encoder as Python."""
        return f"AntiSparseEncoder({', '.join(f'{name}={value!r}' for name, value in self.parameters.items())})"

    @property
    def search_line(self) -> str:
        """The search as Python, for a `CodeBase` named base."""
        extra = "" if self.shortlist is None else f", shortlist={self.shortlist}"
        return f"base.search(Q, k, method={self.method!r}{extra})"


@dataclass(frozen=True)
class Tuning:
    """What `tune` measured and chose."""

    rows: list[Setting]  # all that was measured: by bytes, the best first
    chosen: Setting | None  # None where none reaches the recall wanted
    at: int  # recall is that of the true nearest neighbour among the first so many
    wanted: float | None  # the recall asked for
    budget: int | None  # the bytes asked for
    n_base: int  # vectors searched
    n_queries: int
    n_train: int  # vectors the encoders were fitted on

    def table(self) -> str:
        """All settings as plain text, the chosen one starred."""
        titles = ["", "bytes", "bits", "mean", "scale", "bias", "terms", "effort", "shortlist", f"recall@{self.at}"]
        lines = [[*titles, "95 % interval", "encode µs", "search µs", "method", "frame"]]
        for row in self.rows:
            parts = (row.n_bytes, row.bit_bytes, row.mean_bytes, row.scale_bytes, row.bias_bytes, row.term_bytes)
            numbers = (*parts, row.parameters["effort"], row.shortlist or "", f"{row.recall:.3f}")
            times = (f"{row.low:.3f} to {row.high:.3f}", f"{row.encode_us:.1f}", f"{row.search_us:.0f}")
            frame = [f"{name} {row.parameters[name]}" for name in ("h", "pca") if name in row.parameters]
            words = (row.method, ", ".join([row.parameters["frame"], *frame]))
            lines.append(["*" if row is self.chosen else "", *map(str, (*numbers, *times, *words))])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = ">" * (len(widths) - 2) + "<<"  # words to the left
        return "\n".join(
            "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
            for line in lines
        )

    def report(self) -> str:
        """The table, the chosen setting as Python, and what to make of it."""
        sizes = f"{self.n_base:,} vectors, {self.n_queries:,} queries, encoders fitted on {self.n_train:,} vectors"
        row = self.chosen or _best(self.rows)
        verdict = "Chosen" if self.chosen else f"No setting reaches {self.wanted:g}. The best"
        lines = [
            *(self.table(), "", f"Bytes a vector; times of one thread. {sizes}.", _CAVEAT, ""),
            f"{verdict}: {row.n_bytes} bytes, recall@{self.at} {row.recall:.3f} ({row.low:.3f} to {row.high:.3f})",
            f"  encoder = {row.encoder_line}",
            f"  {row.search_line}",
        ]
        if self.wanted is not None and row.low < self.wanted <= row.recall:
            lines.append(f"The interval goes below {self.wanted:g}: more queries, or more bytes, would make it sure.")
        return "\n".join(lines)

    def plot(self, path: str | Path) -> None:
        """Recall against bytes, with intervals, as a .png, .svg or .pdf file."""
        place = picture_path(path)
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 5.2), layout="constrained")
        ax = figure.subplots()
        ax.grid(True, color="#dddddd", lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=11)
        sizes = sorted({row.n_bytes for row in self.rows})
        for i, n_bytes in enumerate(sizes):
            rows = [row for row in self.rows if row.n_bytes == n_bytes]
            for x, row in zip(i + 0.08 * (np.arange(len(rows)) - (len(rows) - 1) / 2), rows, strict=True):
                colour, mark = _LOOKS[_look(row)]
                error = [[row.recall - row.low], [row.high - row.recall]]
                ax.errorbar([x], [row.recall], error, fmt=mark, color=colour, ms=6, lw=1, capsize=2)
                if row is self.chosen:
                    ax.plot([x], [row.recall], "o", ms=14, mfc="none", mec="black", mew=1.5, label="chosen")
        for look, (colour, mark) in _LOOKS.items():
            ax.plot([], [], mark, color=colour, label=look)
        if self.wanted is not None:
            ax.axhline(self.wanted, color="black", lw=0.8, ls=":", label="wanted")
        ax.set_xticks(range(len(sizes)), [str(n_bytes) for n_bytes in sizes])
        ax.set(xlim=(-0.6, len(sizes) - 0.4), ylim=(0, 1.02))
        ax.set_xlabel("bytes a vector; settings of equal bytes stand side by side", fontsize=12)
        ax.set_ylabel(f"recall@{self.at}, 95 % intervals", fontsize=12)
        ax.set_title(f"{self.n_base:,} vectors, {self.n_queries:,} queries", fontsize=13)
        figure.legend(loc="outside right upper", frameon=False, fontsize=11)
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, dpi=130)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows."""
        return asdict(self)


def tune(
    X: Any,
    *,
    queries: Any = None,
    n_bytes: int | None = None,
    recall: float | None = None,
    at: int = 10,
    random_state: int | None = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> Tuning:
    """The cheapest setting that reaches a recall, or the best within a byte budget, by measurement.

    Give one of `n_bytes` and `recall`. With ``rows = numpy.random.default_rng(random_state).permutation(len(X))``,
    a tenth of X, at most 1,000 vectors, ``X[rows[:q]]``, is held out as queries unless these are given. The rest is
    the base that is searched, and the first 30,000 of it in the order of `rows` are what encoders are fitted on.

    Parameters
    ----------
    X : array of shape (n, d)
        A sample of the vectors that will be indexed, at least 100; the larger, the nearer to the truth.
    queries : array of shape (n_queries, d), optional
        Queries like those to come, and not among X. Without them queries are taken to be like the base.
    n_bytes : int, optional
        The budget a vector.
    recall : float, optional
        The recall@`at` wanted, above 0, at most 1.
    at : int
        How many results the true nearest neighbour may be among.
    random_state : int, optional
        Draws the parts of X, and is the encoders' seed. Drawn itself by default.
    n_threads : int, optional
        For fitting and encoding; all available CPUs by default.
    progress : bool
        Write a line for every setting to standard error.
    """
    X = real_array(X, "X", 2)
    if (n_bytes is None) == (recall is None):
        raise InputError("give one of n_bytes and recall: the bytes to spend, or the recall to reach")
    n_bytes = None if n_bytes is None else integer(n_bytes, "n_bytes", 2, 1025)
    if recall is not None and not 0 < (recall := nonnegative(recall, "recall")) <= 1:
        raise InputError(f"recall = {recall:g}; it must be above 0 and at most 1")
    at = integer(at, "at", 1)
    thread_count(n_threads)
    boolean(progress, "progress")
    drawn = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    seed = drawn if random_state is None else integer(random_state, "random_state", 0)
    if len(X) < 100:
        raise InputError(f"X has {len(X)} rows; tuning needs at least 100")
    finite(X, "X")
    rows = np.random.default_rng(seed).permutation(len(X))
    if queries is None:
        held = min(1000, len(X) // 10)
        Q, rows = X[rows[:held]], rows[held:]
    else:
        Q = real_array(queries, "queries", 2)
        finite(Q, "queries")
        if not len(Q) or Q.shape[1] != X.shape[1]:
            raise InputError(f"queries has shape {Q.shape}; pass at least one row of X's {X.shape[1]} columns")
    if at >= len(rows):
        raise InputError(f"at = {at}, but only {len(rows)} vectors are searched; lower it or pass more vectors")
    # BLAS with one thread: the order of its sums does not change, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"):
        base = X[np.sort(rows)]
        trials = _Trials(base, X[rows[:_TRAIN]], Q, exact_neighbors(base, Q, 1)[1], at, seed, n_threads, progress)
        if n_bytes is not None:
            trials.measure_all(n_bytes)
        elif recall is not None:
            trials.climb(recall)
    found = sorted(trials.measured.values(), key=lambda row: (row.n_bytes, -row.recall, row.parameters["effort"]))
    chosen = _best(found) if recall is None else _cheapest(found, recall)
    return Tuning(found, chosen, at, recall, n_bytes, len(base), len(Q), len(trials.train))


@dataclass
class _Trials:
    """Settings measured on one base and its queries, each once."""

    base: Array
    train: Array
    queries: Array
    nearest: Ids
    at: int
    seed: int
    n_threads: int | None
    progress: bool
    measured: dict[str, Setting] = field(default_factory=dict)

    def climb(self, wanted: float) -> None:
        """Find the first rung where one split reaches the recall; measure all there, and below while any does."""
        ladder = [rung for rung in _LADDER if rung <= max(8, 2 * self.base.shape[1])]
        low, last = 0, len(ladder) - 1
        # One split leads: the best for few bytes, where all are measured in little time.
        best = _best([self.measure(split) for split in self._whole(ladder[4])]).parameters

        def reaches(rung: int) -> bool:
            splits = {(split["means"], split["scale"]): split for split in self._whole(rung)}
            return self.measure(splits[best["means"], best["scale"]]).recall >= wanted

        # From 8 bytes on by doubling: a setting of many bytes takes long, and is not tried before it is needed.
        for high in (*range(4, last, 4), last):
            if reaches(ladder[high]):
                break
            low = min(high + 1, last)
        place = bisect_left(ladder, True, low, high, key=reaches)
        if self._descend(ladder[: place + 1], wanted) > _WORD_BYTES:
            # Signs fail there; words, which are tried for fewer bytes only, may reach it yet.
            self._descend([rung for rung in ladder if rung <= _WORD_BYTES], wanted)

    def _descend(self, ladder: list[int], wanted: float) -> int:
        """Measure all from the last rung down while the recall is reached; returns the rung that fails, or 0."""
        return next((rung for rung in reversed(ladder) if self.measure_all(rung, wanted) < wanted), 0)

    def _whole(self, n_bytes: int) -> list[Parameters]:
        """The splits of whole bytes among signs, which there are for any number of them."""
        splits = _splits(n_bytes, len(self.train))
        return [split for split in splits if "bias" not in split and split["frame"] == "learned"]

    def measure_all(self, n_bytes: int, wanted: float | None = None) -> float:
        """The best recall for these bytes; effort 3 is tried on the best split unless `wanted` is reached before."""
        rows = [self.measure(split) for split in _splits(n_bytes, len(self.train))]
        rows += [self.measure(*options) for options in _drawn(n_bytes, self.base.shape[1], self.at)]
        if wanted is None or max(row.recall for row in rows) < wanted:
            split = _best([row for row in rows if row.parameters["effort"] == 2]).parameters
            rows.append(self.measure({**split, "effort": 3}))
        return max(row.recall for row in rows)

    def measure(
        self, parameters: Parameters, method: Method = "reconstruction", shortlist: int | None = None
    ) -> Setting:
        """Fit, encode, search and count."""
        parameters = {**parameters, "random_state": self.seed}
        key = f"{parameters} {method} {shortlist}"
        if key in self.measured:
            return self.measured[key]
        encoder = AntiSparseEncoder(**parameters, n_threads=self.n_threads).fit(self.train)
        codes = CodeBase(encoder, encoder.transform(self.base), n_threads=1)
        encoder.set_params(n_threads=1)  # for the times
        sample = self.base[:1000]
        start = time.perf_counter()
        encoder.transform(sample)
        encoded = time.perf_counter()
        _, ids = codes.search(self.queries, self.at, method=method, shortlist=shortlist)
        searched = time.perf_counter()
        recall, n = recall_at(ids, self.nearest, self.at), len(self.queries)
        layout = encoder.code_layout_
        n_bytes = layout.bit_bytes if method == "hamming" else codes.bytes_per_vector
        mean, scale, bias = (dict(layout.side).get(part, 0) for part in ("mean", "scale", "bias"))
        sizes = n_bytes, layout.bit_bytes, mean, scale, bias, n_bytes - layout.code_size
        times = 1e6 * (encoded - start) / len(sample), 1e6 * (searched - encoded) / n
        row = Setting(parameters, method, shortlist, *sizes, recall, *wilson(recall, n), *times)
        self.measured[key] = row
        if self.progress:
            print(f"{n_bytes} bytes, {row.encoder_line}, {method}: {recall:.3f}", file=sys.stderr, flush=True)
        return row


def wilson(part: float, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a part measured on n draws."""
    centre = part + _Z**2 / (2 * n)
    half = _Z * np.sqrt(part * (1 - part) / n + _Z**2 / (4 * n**2))
    low, high = (float((centre + sign * half) / (1 + _Z**2 / n)) for sign in (-1, 1))
    return max(min(low, part), 0.0), min(max(high, part), 1.0)  # but for rounding, it holds the part


def picture_path(path: str | Path) -> Path:
    """`path`, once it is sure that a picture can be drawn of that name."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"picture {str(path)!r}: its name must end in .png, .svg or .pdf")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'antisparse[plot]'") from None
    return Path(path)


def _splits(n_bytes: int, n_train: int) -> Iterator[Parameters]:
    """The ways to split bytes among bits, mean, scale and bias, with a learned frame, of signs or of words."""
    if 1 < n_bytes <= _WORD_BYTES:
        words: Parameters = {"n_bits": 8 * (n_bytes - 1), "frame": "words", "means": 1, "scale": False, "effort": 2}
        yield words
        if n_bytes <= _FEW_BYTES:
            yield words | {"n_bits": words["n_bits"] + 4, "bias": "half"}
    for means, scale in product((1, _MEANS) if n_train >= _MEANS * _PER_MEAN else (1,), (False, True)):
        n_bits = 8 * (n_bytes - 1 - (means > 1) - scale)
        if n_bits > 0:
            yield {"n_bits": n_bits, "frame": "learned", "means": means, "scale": scale, "effort": 2}
        if not scale and n_bits > 0 and n_bytes <= _FEW_BYTES:
            split = {"n_bits": n_bits + 4, "frame": "learned", "means": means, "scale": False, "effort": 2}
            yield split | {"bias": "half"}


def _drawn(n_bytes: int, d: int, at: int) -> Iterator[tuple[Parameters, Method, int | None]]:
    """Settings of bits alone: searched by Hamming distance, or with a shortlist by it and room for its terms."""
    tries: list[tuple[int, float, Method, int | None]] = [(8 * n_bytes, h, "hamming", None) for h in (0.2, 0.4)]
    if n_bytes > _TERMS:
        tries.append((8 * (n_bytes - _TERMS), 0.2, "reconstruction", max(10 * at, 100)))
    for n_bits, h, method, shortlist in tries:
        # Two bits a dimension at least: with one the code is that of plain projections, whatever h.
        reduced = {"pca": n_bits // 2} if n_bits // 2 < d else {}
        yield {"n_bits": n_bits, "frame": "block", "effort": 0, "h": h, **reduced}, method, shortlist


def _best(rows: list[Setting]) -> Setting:
    return min(rows, key=lambda row: (-row.recall, row.n_bytes, row.parameters["effort"]))


def _cheapest(rows: list[Setting], wanted: float) -> Setting | None:
    """Of those that reach the recall the one of fewest bytes; of equals the best, effort 3 only if it must be."""
    reach = [row for row in rows if row.recall >= wanted]
    return min(reach, key=lambda row: (row.n_bytes, row.parameters["effort"] == 3, -row.recall), default=None)


def _look(row: Setting) -> str:
    if row.method == "hamming":
        return "Hamming"
    if row.shortlist:
        return "shortlist, re-ranked"
    return "reconstruction of words" if row.parameters["frame"] == "words" else "reconstruction"
