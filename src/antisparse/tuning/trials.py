"""Trials: settings measured on one sample, each once."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse.evaluation import Ids, Measure
from antisparse.metrics import MetricName
from antisparse.scan import CodeBase
from antisparse.tuning.intervals import mean_interval
from antisparse.tuning.progress import Teller
from antisparse.tuning.setting import Recall, Setting, new_encoder
from antisparse.tuning.ways import Way

Array = npt.NDArray[Any]

_TIMED = 500  # vectors that the time to encode one is taken from
_GROWTH = 1.5  # learning and encoding take the number of bytes to about this power


@dataclass(frozen=True)
class Sample:
    """The vectors that are searched, those that encoders are fitted on, queries, and their true neighbours."""

    base: Array
    train: Array
    queries: Array
    neighbors: Ids  # rows of the base, nearest first


@dataclass
class Trials:
    """Settings measured on one sample, each once.

    Attributes
    ----------
    sample : Sample
    measures : list of Measure
        The one that decides first.
    metric, seed, n_threads
        Of the encoders.
    tell : Teller
    rows : list of Setting
        All that was measured.
    """

    sample: Sample
    measures: list[Measure]
    metric: MetricName
    seed: int
    n_threads: int | None
    tell: Teller
    rows: list[Setting] = field(default_factory=list)
    _known: dict[str, Setting] = field(default_factory=dict)
    _seconds: dict[int, float] = field(default_factory=dict)  # that the last trial of learning with so many bytes took

    def decides(self, row: Setting) -> float:
        """The recall that settings are chosen by."""
        return row.recalls[self.measures[0].name].value

    def measure(self, way: Way, n_bytes: int, ahead: int = 0) -> Setting | None:
        """Fit, encode, search and count; None where a way is not tried for so many bytes.

        About `ahead` trials of about as many bytes will follow.
        """
        given = way.parameters(n_bytes)
        if given is None:
            return None
        parameters = {**given, "metric": self.metric, "random_state": self.seed}
        key = f"{way.estimator} {given}"
        if key not in self._known:
            self.tell.begin(f"{n_bytes} bytes, {way.name}", ahead + 1, self._expected(n_bytes, ahead + 1))
            start = time.perf_counter()
            row = self._measured(way, n_bytes, parameters)
            if way.estimator == "LearnedEncoder":
                self._seconds[n_bytes] = time.perf_counter() - start
            self.tell.end(", ".join(f"{name} {recall.value:.3f}" for name, recall in row.recalls.items()))
            self._known[key] = row
            self.rows.append(row)
        return self._known[key]

    def count_new(self, ways: list[Way], n_bytes: int) -> int:
        """How many of these ways, of those that are alike one, were not yet measured with so many bytes."""
        given = ((way.estimator, way.parameters(n_bytes)) for way in ways)
        keys = {f"{estimator} {parameters}" for estimator, parameters in given if parameters is not None}
        return len(keys - self._known.keys())

    def _expected(self, n_bytes: int, count: int) -> float | None:
        """Seconds for so many trials of so many bytes, from the trial of the nearest number of bytes."""
        if not self._seconds:
            return None
        near = min(self._seconds, key=lambda known: abs(np.log(known / n_bytes)))
        return float(count * self._seconds[near] * (n_bytes / near) ** _GROWTH)

    def _measured(self, way: Way, n_bytes: int, parameters: dict[str, Any]) -> Setting:
        sample, clock = self.sample, time.perf_counter
        start = clock()
        codec = new_encoder(way.estimator, {**parameters, "n_threads": self.n_threads}).fit(sample.train).codec_
        fitted = clock()
        codes = CodeBase(codec, codec.encode(sample.base, n_threads=self.n_threads), n_threads=1)
        some = sample.base[:_TIMED]
        encoding = clock()
        codec.encode(some, n_threads=1)
        encoded = clock()
        depth = max(measure.results for measure in self.measures)
        ids = codes.search(sample.queries, depth, method=way.method)[1]
        searched = clock()
        recalls = {}
        for measure in self.measures:
            parts = measure.parts(ids, sample.neighbors)
            recalls[measure.name] = Recall(float(parts.mean()), *mean_interval(parts, measure.neighbors))
        return Setting(
            way.name,
            way.estimator,
            parameters,
            way.method,
            n_bytes,
            codec.summary,
            recalls,
            fitted - start,
            1e6 * (encoded - encoding) / len(some),
            1e6 * (searched - encoded) / len(sample.queries),
            codec.dimension,
        )
