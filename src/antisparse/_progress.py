"""Progress of long work, on standard error, and what is left of it."""

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from antisparse._arrays import boolean

T = TypeVar("T")


class Advance(Protocol):
    """Moves a progress bar on."""

    def __call__(self, steps: float, note: str = "") -> None:
        """`steps` more are done; the note stands beside the bar."""


@contextmanager
def bar(description: str, total: float | None, shown: bool) -> Iterator[Advance]:
    """A progress bar with an estimate of the time left; silent unless `shown`."""
    if not boolean(shown, "progress"):
        yield lambda steps, note="": None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    columns += [TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(description, total=total, note="")

        def advance(steps: float, note: str = "") -> None:
            display.update(task, advance=steps, note=note)

        yield advance


def track(items: Iterable[T], description: str, shown: bool) -> Iterator[T]:
    """The items, with a progress bar that moves as they are taken."""
    with bar(description, len(items) if isinstance(items, Sized) else None, shown) as advance:
        for item in items:
            yield item
            advance(1)
