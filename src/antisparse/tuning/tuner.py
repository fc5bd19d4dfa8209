"""The function `tune`: arguments, the sample, and the answer."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from antisparse._arrays import boolean, finite, integer, nonnegative, real_array, thread_count
from antisparse.encoders.learned import MOST_BYTES
from antisparse.errors import InputError
from antisparse.evaluation import Measure, exact_neighbors
from antisparse.metrics import MetricName, metric_named
from antisparse.tuning.progress import teller
from antisparse.tuning.result import Tuning
from antisparse.tuning.strategy import RecallSearch, best, cheapest, ladder, measure_budget
from antisparse.tuning.trials import Sample, Trials
from antisparse.tuning.ways import all_ways

Array = npt.NDArray[Any]

_LEAST_VECTORS = 100
_QUERIES = 1000
_ALWAYS = (Measure(1, 10), Measure(10, 10))  # reported whatever is asked for
# Vectors searched and learned from: at most, at least, and numbers in all of them. Learning and encoding take long in
# high dimension, where codes are long too.
_BASE, _LEAST_BASE, _BASE_NUMBERS = 100_000, 10_000, 20_000_000
_TRAIN, _LEAST_TRAIN, _TRAIN_NUMBERS = 30_000, 5_000, 4_000_000


def tune(
    X: Any,
    *,
    queries: Any = None,
    n_bytes: int | None = None,
    recall: float | None = None,
    measure: str = "1@10",
    metric: MetricName = "l2",
    random_state: int | None = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> Tuning:
    """The cheapest setting that reaches a recall, or the best within a byte budget, by measurement on a sample.

    Give one of `n_bytes` and `recall`. With ``rows = numpy.random.default_rng(random_state).permutation(len(X))``, a
    tenth of X, at most 1,000 vectors, ``X[rows[:q]]``, is held out as queries unless these are given. The vectors that
    are searched are the next of `rows`, at most 100,000 (52,083 of 384 dimensions); encoders are fitted on the first of
    them, at most 30,000 (10,416 of 384 dimensions). The result says how many there were.

    Parameters
    ----------
    X : array of shape (n, d)
        The vectors that will be indexed, or a sample of them, at least 100. May be memory-mapped.
    queries : array of shape (n_queries, d), optional
        Queries like those to come, and not among X. Without them queries are taken to be like the base.
    n_bytes : int, optional
        The budget a vector.
    recall : float, optional
        The recall wanted, above 0, at most 1.
    measure : str
        What the recall is: "1@R", the part of the queries whose true nearest neighbour is among the first R results, or
        "k@k", the part of the true k nearest neighbours that are among the first k results. 1@10 and 10@10 are always
        reported, whichever decides.
    metric : {"l2", "cosine", "ip"}
    random_state : int, optional
        Draws the parts of X, and is the encoders' seed. Drawn itself by default.
    n_threads : int, optional
        For fitting and encoding; all available CPUs by default.
    progress : bool
        Show on standard error what is tried, how many trials remain, and about how long they will take.
    """
    began = time.perf_counter()
    X = real_array(X, "X", 2)
    if (n_bytes is None) == (recall is None):
        raise InputError("give one of n_bytes and recall: the bytes to spend, or the recall to reach")
    n_bytes = None if n_bytes is None else integer(n_bytes, "n_bytes", 1, MOST_BYTES + 1)
    if recall is not None and not 0 < (recall := nonnegative(recall, "recall")) <= 1:
        raise InputError(f"recall = {recall:g}; it must be above 0 and at most 1")
    asked = Measure.parse(measure)
    metric_named(metric)
    thread_count(n_threads)
    boolean(progress, "progress")
    drawn = int(np.random.SeedSequence().generate_state(1)[0])
    seed = drawn if random_state is None else integer(random_state, "random_state", 0, 2**32)
    if len(X) < _LEAST_VECTORS or not X.shape[1]:
        raise InputError(f"X has shape {X.shape}; tuning needs at least {_LEAST_VECTORS} vectors")
    measures = [asked, *(other for other in _ALWAYS if other != asked)]
    # BLAS with one thread: the order of its sums does not change, and its threads do not get in the way of ours.
    with threadpool_limits(1, "blas"), teller(progress) as tell:
        sample = _sample(X, queries, seed, measures, metric)
        trials = Trials(sample, measures, metric, seed, n_threads, tell)
        ways = all_ways(X.shape[1], len(X), len(sample.train), metric)
        if n_bytes is not None:
            measure_budget(trials, ways, n_bytes)
        elif recall is not None:
            RecallSearch(trials, ladder(X.shape[1]), recall).run(ways)
    top = best(trials)
    return Tuning(
        sorted(trials.rows, key=lambda row: (row.n_bytes, -trials.decides(row))),
        top if recall is None else cheapest(trials, recall),
        top,
        asked.name,
        metric,
        recall,
        n_bytes,
        len(X),
        len(sample.base),
        len(sample.queries),
        len(sample.train),
        X.shape[1],
        time.perf_counter() - began,
    )


def _sample(X: Array, queries: Any, seed: int, measures: list[Measure], metric: MetricName) -> Sample:
    rows, d = np.random.default_rng(seed).permutation(len(X)), X.shape[1]
    if queries is None:
        held = min(_QUERIES, len(X) // 10)
        Q, rows = _checked(X, rows[:held], "X", metric), rows[held:]
    else:
        given = real_array(queries, "queries", 2)
        if not len(given) or given.shape[1] != d:
            raise InputError(f"queries has shape {given.shape}; pass at least one row of X's {d} columns")
        Q = _checked(given, np.arange(len(given)), "queries", metric)
    rows = rows[: min(_BASE, max(_LEAST_BASE, _BASE_NUMBERS // d))]
    most = max(max(measure.results, measure.neighbors) for measure in measures)
    if most >= len(rows):
        raise InputError(f"measure asks for {most} results, but only {len(rows)} vectors are searched; pass more in X")
    base = _checked(X, np.sort(rows), "X", metric)
    train = X[rows[: min(_TRAIN, max(_LEAST_TRAIN, _TRAIN_NUMBERS // d))]]
    neighbors = exact_neighbors(base, Q, max(measure.neighbors for measure in measures), metric=metric)[1]
    return Sample(base, train, Q, neighbors)


def _checked(X: Array, rows: npt.NDArray[np.int64], name: str, metric: MetricName) -> Array:
    """Some rows of X, sound ones; the error names the row of X."""
    part: Array = X[rows]
    for i in np.flatnonzero(~np.isfinite(part).all(axis=1))[:1]:
        finite(part[i : i + 1], name, int(rows[i]))
    if metric == "cosine":
        for i in np.flatnonzero(~part.any(axis=1))[:1]:
            metric_named(metric).prepare(part[i : i + 1], name, int(rows[i]))
    return part
