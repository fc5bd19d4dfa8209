"""The index behind the routes: one state an answer, a bounded number of searches at a time, and what is counted."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from antisparse._arrays import renamed
from antisparse.errors import InputError
from antisparse.index.index import Index
from antisparse.index.reader import Reader
from antisparse.index.state import State
from antisparse.index.texts import TextModel
from antisparse.scan.search import Search
from antisparse.serve.batching import Batcher, Gather
from antisparse.serve.bodies import Asked, RangeAsked, SearchAsked
from antisparse.serve.limits import Limits
from antisparse.serve.metrics import Metrics

T = TypeVar("T")


class BusyError(Exception):
    """There is no room for another request now."""


class Present(Reader):
    """An index as it is at one moment: every answer of it is of the same state."""

    def __init__(self, state: State, model: TextModel | None, n_threads: int) -> None:
        self._held = state
        self._model = model
        self.n_threads = n_threads

    @property
    def _state(self) -> State:
        return self._held

    @property
    def schema(self) -> Any:
        """What is kept of items, or None."""
        return self._held.schema

    @property
    def generation(self) -> int:
        """The number of the state; 0 for an index in memory."""
        manifest = getattr(self._held, "manifest", None)
        return 0 if manifest is None else int(manifest.generation)

    @property
    def version(self) -> object:
        """What is equal at two moments between which nothing has changed, in memory, too.

        A reader opens the same manifest again and again, so that its states are others each time.
        """
        manifest = getattr(self._held, "manifest", None)
        return self._held if manifest is None else manifest


@dataclass(frozen=True)
class _What:
    """A search that others may share: what is asked beside the queries."""

    k: int
    method: str
    probes: int | str
    shortlist: int | None
    shortlist_method: str


@dataclass(frozen=True)
class Found:
    """What was found for some queries: distances and ids as a search gives them, or, by distance, all with limits."""

    present: Present
    distances: npt.NDArray[Any]
    ids: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64] | None = None

    def rows(self) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]:
        """Distances and ids of each query, of what is there."""
        if self.limits is not None:
            ends = zip(self.limits[:-1], self.limits[1:], strict=True)
            return [(self.distances[low:high], self.ids[low:high]) for low, high in ends]
        return [(d[i >= 0], i[i >= 0]) for d, i in zip(self.distances, self.ids, strict=True)]


class Service:
    """What the routes call.

    Parameters
    ----------
    index : Index or ShardedIndex
    limits : Limits
    """

    def __init__(self, index: Any, limits: Limits) -> None:
        self.index, self.limits = index, limits
        self.metrics = Metrics()
        self._pool = ThreadPoolExecutor(self.limits.at_once + 1, "search")  # one more: changes
        self._aside = ThreadPoolExecutor(self.limits.at_once, "answer")
        self._turns = asyncio.Semaphore(self.limits.at_once)
        self._inside = 0
        self._batcher = Batcher(self.limits.batch_ms / 1000, lambda: self._inside > 0, self._search)
        self.metrics.generation.set(self.present.generation)

    @property
    def present(self) -> Present:
        """The index as it is now."""
        return Present(self.index._state, self.index._model, 1)

    async def in_turn(self, deed: Callable[[], T], begin: Callable[[], None] = lambda: None) -> T:
        """What a function gives, in a thread, when it is its turn. The turn is kept until it ends, whoever has gone.

        `begin` is called before, when the turn has come.
        """
        if self._inside >= self.limits.at_once + self.limits.waiting:
            raise BusyError
        self._inside += 1
        try:
            await self._turns.acquire()
        except BaseException:
            self._inside -= 1
            raise
        try:
            begin()
            future = asyncio.get_running_loop().run_in_executor(self._pool, deed)
        except BaseException:
            self._inside -= 1
            self._turns.release()
            raise
        future.add_done_callback(self._left)
        return await asyncio.shield(future)

    def _left(self, future: "asyncio.Future[Any]") -> None:
        self._inside -= 1
        self._turns.release()
        if not future.cancelled():
            future.exception()  # whoever asked may have gone: it is no one's any more

    async def aside(self, deed: Callable[[], T]) -> T:
        """What a function gives, in a thread that is no search's: others are answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, deed)

    def _checked(self, present: Present, Q: Any, k: int = 1) -> npt.NDArray[Any]:
        """Queries that any search takes: what is wrong with them is said before others share a scan with them."""
        queries: npt.NDArray[Any] = np.atleast_2d(Q)
        if len(queries) > self.limits.queries:
            raise InputError(f"vectors: {len(queries)} queries, where a request may have {self.limits.queries}")
        if len(queries) * k > self.limits.results:
            raise InputError(f"{len(queries)} queries of k = {k} results; a request gives {self.limits.results} in all")
        with renamed(Q="vectors"):
            present.codec.queries(queries)
        return queries

    async def search(self, Q: Any, asked: SearchAsked) -> Found:
        """The nearest to each query."""
        if asked.k > self.limits.k or (asked.shortlist or 0) > max(self.limits.k, 10_000):
            raise InputError(
                f"k = {asked.k} or shortlist = {asked.shortlist}; this service gives at most {self.limits.k}"
            )
        if isinstance(Q, list):
            Q = await self.in_turn(lambda: self.present.embed(Q))
        Q = self._checked(self.present, Q, min(asked.k, len(self.present)))
        what = _What(asked.k, asked.method, asked.probes, asked.shortlist, asked.shortlist_method)
        if asked.filter is None:
            found = Found(*await self._batcher.ask(Q, what))
        else:
            found = Found(*await self._search(lambda: Q, what, asked.filter))
        self._count(found.present, len(Q), asked)
        return found

    async def _search(self, gather: Gather, what: _What, allowed: Any = None) -> Any:
        queries: list[npt.NDArray[Any]] = []

        def deed() -> Any:
            present = self.present
            with renamed(Q="vectors"):
                return present, *present.search(queries[0], filter=allowed, **asdict(what))

        return await self.in_turn(deed, lambda: queries.append(gather()))

    async def range_search(self, Q: Any, asked: RangeAsked) -> Found:
        """All that is as near as a radius."""
        if isinstance(Q, list):
            Q = await self.in_turn(lambda: self.present.embed(Q))
        Q = self._checked(self.present, Q)

        def deed() -> Found:
            present = self.present
            what = Search(1, asked.method, probes=None if asked.probes == "all" else int(asked.probes))
            with renamed(Q="vectors"):
                limits, distances, ids = present._state.range_search(
                    Q, asked.radius, what, asked.filter, 1, self.limits.results
                )
            return Found(present, distances, ids, limits)

        found = await self.in_turn(deed)
        self._count(found.present, len(Q), asked)
        return found

    def _count(self, present: Present, queries: int, asked: Asked) -> None:
        self.metrics.queries.inc(queries)
        cells = present.cells
        share = 1.0 if asked.probes == "all" else min(int(asked.probes), cells) / cells
        self.metrics.codes.inc(queries * len(present) * share)

    async def change(self, deed: Callable[[Index], T], begin: Callable[[], None]) -> T:
        """A change of the index, by one who may write; `begin` is called when it can no longer be taken back."""
        try:
            return await self.in_turn(lambda: deed(self.index), begin)
        finally:
            self.metrics.generation.set(self.present.generation)

    async def follow(self, seconds: float) -> None:
        """See what others write to the index, for ever."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.get_running_loop().run_in_executor(self._pool, self.index.refresh)
                self.metrics.generation.set(self.present.generation)
                self.metrics.refreshed.set(time.time())
            except Exception as error:  # the state that there is goes on to answer
                self.metrics.errors.labels(type(error).__name__).inc()

    def close(self) -> None:
        """Let what runs end."""
        for pool in (self._pool, self._aside):
            pool.shutdown(wait=True, cancel_futures=True)
