"""What is measured in which order, so that as little as possible is: for a number of bytes, or for a recall."""

from bisect import bisect_left

import numpy as np

from antisparse.tuning.setting import Setting
from antisparse.tuning.trials import Trials
from antisparse.tuning.ways import DEFAULT_EFFORT, Way, with_more_effort

_LADDER = [*range(2, 16), *(step * 2**power for power in range(1, 8) for step in range(8, 16)), 2048]
_FIRST = 16  # bytes that are tried first
_LEAST_LAST = 16  # bytes that may always be tried
_JUMP = 4  # the bytes grow by so much at most
_GUESSES = 2  # of the size where the recall is reached; then the middle is taken


def measure_budget(trials: Trials, ways: list[Way], n_bytes: int) -> None:
    """Measure every way to spend so many bytes, and the best of the learned ones with more effort."""
    for place, way in enumerate(ways):
        trials.measure(way, n_bytes, trials.count_new([*ways[place:], with_more_effort(way)], n_bytes) - 1)
    learned = {row.way: row for row in trials.rows if row.estimator == "LearnedEncoder"}
    if learned:
        best = max(learned.values(), key=trials.decides)
        trials.measure(with_more_effort(next(way for way in ways if way.name == best.way)), n_bytes)


def ladder(dimension: int) -> list[int]:
    """The bytes that may be tried for a recall: from 16 on eight sizes a doubling, up to half a byte a dimension."""
    most = max(_LEAST_LAST, dimension // 2)
    return [n_bytes for n_bytes in _LADDER if n_bytes <= most]


class RecallSearch:
    """The search for the fewest bytes that reach a recall.

    The default way goes first: its bytes grow until it reaches the recall, and a binary search finds the fewest. Every
    other way must do better: it is tried with the next fewer bytes, dropped if it fails there, and otherwise takes the
    lead, and a binary search finds its fewest. So a way that is far from the recall, as the Hamming distance often is,
    costs one trial. Where the default way fails with the most bytes there are, the others are tried with these.
    """

    def __init__(self, trials: Trials, sizes: list[int], wanted: float) -> None:
        self._trials, self._sizes, self._wanted = trials, sizes, wanted
        self._others: list[Way] = []  # that are still to be tried

    def run(self, ways: list[Way]) -> None:
        """Measure what the answer needs; the first way is the default one."""
        default, *others = [*ways, with_more_effort(ways[0])]
        self._others = others
        least = self._climb(default, min(bisect_left(self._sizes, _FIRST), len(self._sizes) - 1))
        for number, way in enumerate(others):
            self._others = others[number + 1 :]
            least = self._improve(way, least)

    def _improve(self, way: Way, least: int | None) -> int | None:
        """The place of the fewest bytes that reach the recall, given it for the ways before this one."""
        step = 1
        place = len(self._sizes) - 1 if least is None else least - step
        while place >= 0 and self._reaches(way, place, 0):
            least, place, step = place, place - step, 2 * step
        return None if least is None else self._between(way, max(place, -1), least)

    def _climb(self, way: Way, place: int) -> int | None:
        """The place of the fewest bytes with which a way reaches the recall, from a first place on; None: with none."""
        low, last = -1, len(self._sizes) - 1
        while not self._reaches(way, place, 3):
            if place == last:
                return None
            low = place
            guess = self._guess(way)
            most = min(bisect_left(self._sizes, _JUMP * self._sizes[place]), last)
            doubled = bisect_left(self._sizes, 2 * self._sizes[place])
            place = min(max(doubled if guess is None else guess, place + 1), most)
        return self._between(way, low, place)

    def _between(self, way: Way, low: int, high: int) -> int:
        """The first place between one that fails and one that reaches the recall, by binary search."""
        guesses = 0
        while high - low > 1:
            guess = self._guess(way) if guesses < _GUESSES else None
            guesses += 1
            middle = (low + high) // 2 if guess is None else min(max(guess, low + 1), high - 1)
            if self._reaches(way, middle, int(np.log2(high - low))):
                high = middle
            else:
                low = middle
        return high

    def _reaches(self, way: Way, place: int, steps: int) -> bool:
        """Whether a way reaches the recall with the bytes of a place; about so many steps follow for this way."""
        n_bytes = self._sizes[place]
        ahead = steps + self._trials.count_new([way, *self._others], n_bytes) - 1
        row = self._trials.measure(way, n_bytes, ahead)
        return row is not None and self._trials.decides(row) >= self._wanted

    def _guess(self, way: Way) -> int | None:
        """Where a way would reach the recall if the logit of its recall went straight with the logarithm of bytes."""
        n = len(self._trials.sample.queries)

        def gap(row: Setting) -> float:
            return _logit(self._trials.decides(row), n) - _logit(self._wanted, n)

        rows = [row for row in self._trials.rows if row.way == way.name]
        points = sorted(((gap(row), np.log(row.n_bytes)) for row in rows), key=lambda point: abs(point[0]))
        if len(points) < 2 or points[0][0] == points[1][0]:
            return None
        (near, size), (far, other) = points[:2]
        slope = (size - other) / (near - far)
        if slope <= 0:
            return None
        expected = float(np.exp(min(size - slope * near, 20.0)))
        return min(bisect_left(self._sizes, expected), len(self._sizes) - 1)


def _logit(recall: float, n: int) -> float:
    part = min(max(recall, 0.5 / n), 1 - 0.5 / n)
    return float(np.log(part / (1 - part)))


def best(trials: Trials) -> Setting:
    """The setting of the most recall; of equals the one of fewest bytes, and of these the first that was tried."""
    return max(trials.rows, key=lambda row: (trials.decides(row), -row.n_bytes))


def cheapest(trials: Trials, wanted: float) -> Setting | None:
    """The setting of fewest bytes that reaches the recall; of equals the default, then those of usual effort, the best.

    None where none reaches it.
    """
    reach = [row for row in trials.rows if trials.decides(row) >= wanted]
    return min(
        reach,
        key=lambda row: (
            row.n_bytes,
            row.way != "default",
            row.parameters.get("effort", DEFAULT_EFFORT) > DEFAULT_EFFORT,
            -trials.decides(row),
        ),
        default=None,
    )
