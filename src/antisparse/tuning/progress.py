"""What is being tried, how much remains and how long it may take: a line a trial, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from antisparse._arrays import boolean


class Teller:
    """Tells a person how far the work is; silent unless `shown`."""

    def __init__(self, shown: bool) -> None:
        self._shown = boolean(shown, "progress")
        self._number = 0
        self._start = 0.0
        self.in_line = False

    def begin(self, what: str, remain: int, seconds: float | None) -> None:
        """`what` is tried now; about so many trials remain, this one included, which may take so long."""
        self._number, self._start = self._number + 1, time.perf_counter()
        more = "the last" if remain == 1 else f"about {remain - 1} more"
        left = "" if seconds is None else f", about {duration(seconds)} left"
        self._say(f"trial {self._number}, {more}{left}: {what} ...", "")

    def end(self, result: str) -> None:
        """What was tried gave this result."""
        self._say(f" {result}, took {duration(time.perf_counter() - self._start)}", "\n")

    def _say(self, text: str, end: str) -> None:
        if self._shown:
            print(text, end=end, file=sys.stderr, flush=True)
            self.in_line = not end


@contextmanager
def teller(shown: bool) -> Iterator[Teller]:
    """A teller; should a trial be stopped, what follows begins on a new line."""
    tell = Teller(shown)
    try:
        yield tell
    finally:
        if tell.in_line:
            print(file=sys.stderr)


def duration(seconds: float) -> str:
    """Such as "42 s" or "3 min 20 s"."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60} s"
