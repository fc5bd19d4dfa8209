"""Small searches that come at almost the same time share a scan, which the kernel rewards."""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST = 256  # queries of a batch

Gather = Callable[[], npt.NDArray[Any]]
Answer = tuple[Any, npt.NDArray[Any], npt.NDArray[np.int64]]  # what it is of, distances, ids


@dataclass
class _Batch:
    """Queries that are asked alike, and who waits for their answers."""

    queries: list[npt.NDArray[Any]] = field(default_factory=list)
    waiting: list[asyncio.Future[Answer]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.queries))


class Batcher:
    """Gathers searches that are asked alike while others are at work, and has them done at once.

    Whoever comes when nothing is at work does not wait. Else a batch waits for a moment, and then for its turn; until
    that has come, others join it.

    Parameters
    ----------
    seconds : float
        The moment; 0: every search is done by itself.
    busy : callable
        Whether a search is at work.
    search : callable
        A coroutine: a function that gives queries when it is their turn, and what is asked; to what the answer is of,
        distances and ids.
    """

    def __init__(self, seconds: float, busy: Callable[[], bool], search: Callable[[Gather, Any], Any]) -> None:
        self._seconds, self._busy, self._search = seconds, busy, search
        self._open: dict[Hashable, _Batch] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, Q: npt.NDArray[Any], what: Hashable) -> Answer:
        """The answer to some queries, which are sound; they may share a scan with those of others."""
        if not self._seconds or len(Q) > _MOST // 2:
            answer: Answer = await self._search(lambda: Q, what)
            return answer
        key = (what, Q.dtype.str, Q.shape[1])  # the last, since another index may just have taken the place
        batch = self._open.get(key)
        if batch is None or batch.count + len(Q) > _MOST:
            batch = self._open[key] = _Batch()
            task = asyncio.create_task(self._run(key, batch, what))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        batch.queries.append(Q)
        batch.waiting.append(future)
        return await future

    async def _run(self, key: Hashable, batch: _Batch, what: Hashable) -> None:
        def gathered() -> npt.NDArray[Any]:
            if self._open.get(key) is batch:  # no one joins it any more
                del self._open[key]
            return np.concatenate(batch.queries)

        await asyncio.sleep(self._seconds if self._busy() else 0)  # 0: those that came at the same time join, too
        try:
            of, distances, ids = await self._search(gathered, what)
        except BaseException as error:
            if self._open.get(key) is batch:
                del self._open[key]
            for future in batch.waiting:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for queries, future in zip(batch.queries, batch.waiting, strict=True):
            if not future.done():  # whoever asked may have gone
                future.set_result((of, distances[at : at + len(queries)], ids[at : at + len(queries)]))
            at += len(queries)
