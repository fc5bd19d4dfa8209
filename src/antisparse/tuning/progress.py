"""What is being tried, how much remains and how long it may take, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from antisparse._arrays import boolean
from antisparse._progress import Advance, bar


class Teller(Protocol):
    """Tells a person how far the work is."""

    def begin(self, what: str, remain: int, seconds: float | None) -> None:
        """`what` is tried now; about so many trials remain, this one included, which may take so long."""

    def end(self, result: str) -> None:
        """What was tried gave this result."""


@contextmanager
def teller(shown: bool) -> Iterator[Teller]:
    """A progress bar on a terminal; elsewhere a line a trial; silent unless `shown`."""
    if not boolean(shown, "progress"):
        yield _Silent()
    elif sys.stderr.isatty():
        with bar("tuning", 1.0, True) as advance:
            yield _Bar(advance)
    else:
        yield _Lines()


class _Silent:
    def begin(self, what: str, remain: int, seconds: float | None) -> None:
        pass

    def end(self, result: str) -> None:
        pass


class _Lines:
    def __init__(self) -> None:
        self._number = 0
        self._start = 0.0

    def begin(self, what: str, remain: int, seconds: float | None) -> None:
        self._number, self._start = self._number + 1, time.perf_counter()
        left = "" if seconds is None else f", about {duration(seconds)} left"
        print(f"trial {self._number}, {_more(remain)}{left}: {what} ...", end="", file=sys.stderr, flush=True)

    def end(self, result: str) -> None:
        print(f" {result}, took {duration(time.perf_counter() - self._start)}", file=sys.stderr, flush=True)


class _Bar:
    """The bar stands at the part of the whole time, as it is expected now, that has passed."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._start = time.perf_counter()
        self._done = 0.0

    def begin(self, what: str, remain: int, seconds: float | None) -> None:
        passed = time.perf_counter() - self._start
        part = 0.0 if seconds is None else passed / (passed + seconds)
        steps = max(part - self._done, 0.0)
        self._done += steps
        self._advance(steps, f"{what}, {_more(remain)}")

    def end(self, result: str) -> None:
        pass


def _more(remain: int) -> str:
    return "the last" if remain == 1 else f"about {remain - 1} more"


def duration(seconds: float) -> str:
    """Such as "42 s" or "3 min 20 s"."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60} s"
