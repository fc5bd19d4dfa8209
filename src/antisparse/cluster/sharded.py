"""An index served by shards: actors on many machines, each with some of its segments (docs/cluster.md)."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np

from antisparse._arrays import boolean, folder_of, integer, nonnegative
from antisparse.cluster.assignment import assigned
from antisparse.cluster.engine import Connection, first, ray_module
from antisparse.cluster.shard import Shard, UnknownStateError
from antisparse.cluster.sharded_state import ShardedState
from antisparse.errors import AntisparseError, ClusterError
from antisparse.index.manifest import Manifest
from antisparse.index.objects import is_address
from antisparse.index.reader import Reader
from antisparse.index.staging import staging_of
from antisparse.index.texts import TextModel
from antisparse.scan.search import Searcher

_CONCURRENT = 8  # questions that a shard answers at a time
_INLINE = 1 << 16  # bytes of a question that travel with the call, not apart
_PAUSE = 0.1  # seconds between two looks whether a shard is back


@dataclass(frozen=True)
class _Asked:
    """A state by its name, and the part of it that each shard has."""

    name: str
    manifest: Manifest
    parts: list[Manifest]


class ShardedIndex(Reader):
    """An index that shards on a Ray cluster search: asked as `Index` is, with the same answers to the last bit.

    Every answer is of one state of the index. A shard that dies is started again and asked once more; what cannot be
    answered in time is a ClusterError, never a part of an answer. Any number of threads may ask.

    Parameters
    ----------
    path : path or address
        An index, in a folder that all machines see or in an object store.
    shards : int
        Segments are dealt out to so many, about as many bytes to each.
    address : str, optional
        The cluster; by default the one that this process is connected to, or one that is started on this machine.
    cpus : float
        CPUs of a shard.
    memory : bool
        Shards read their segments into memory instead of mapping their files.
    timeout : float
        Seconds that an answer, a start or a refresh may take.
    model
        As for `Index.open`.
    n_threads : int, optional
        Threads of a search in a shard; by default as many as it has CPUs.

    Examples
    --------
    >>> from antisparse.cluster import ShardedIndex
    >>> with ShardedIndex("FOLDER", shards=4) as index:  # doctest: +SKIP
    ...     distances, ids = index.search(Q, k=10)
    """

    def __init__(
        self,
        path: str | Path,
        shards: int = 2,
        *,
        address: str | None = None,
        cpus: float = 1,
        memory: bool = False,
        timeout: float = 60.0,
        model: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.path = path if isinstance(path, str) and is_address(path) else str(folder_of(path))
        nonnegative(cpus, "cpus")
        self.n_threads = max(1, int(cpus)) if n_threads is None else integer(n_threads, "n_threads", 1)
        self.timeout = nonnegative(timeout, "timeout")
        self._place = staging_of(self.path)
        manifest = self._place.manifest()
        self._model = TextModel.of(model, manifest.model)
        self._mutex = threading.Lock()
        self._connection = Connection(address)
        self._shards: list[Any] = []
        count = integer(shards, "shards", 1)
        self._connection.open()
        self._open = True
        try:
            options = {"num_cpus": cpus, "max_restarts": -1, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
            made = ray_module().remote(max_concurrency=_CONCURRENT, **options)(Shard)
            self._shards = [made.remote(self.path, boolean(memory, "memory")) for _ in range(count)]
            self._present, self._parts = self._prepared(manifest, [])
        except BaseException:
            self.close()
            raise

    @property
    def _state(self) -> ShardedState:
        return self._present

    def __repr__(self) -> str:
        return f"ShardedIndex({len(self):,} vectors, {self.codec!r}, {self.path!r}, {len(self._shards)} shards)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the shards."""
        with self._mutex:
            shards, self._shards = self._shards, []
            for shard in shards:
                ray_module().kill(shard)
            if self._open:
                self._open = False
                self._connection.close()

    def refresh(self) -> None:
        """See what was written since: all shards have the new state before the first question is asked of it."""
        with self._mutex:
            manifest = self._place.manifest()
            if manifest != self._present.manifest:
                self._present, self._parts = self._prepared(manifest, self._parts)

    def _prepared(self, manifest: Manifest, before: Sequence[Manifest]) -> tuple[ShardedState, list[Manifest]]:
        """A state that all shards have."""
        parts = assigned(manifest, len(self._shards), before)
        asked = _Asked(blake2b(manifest.dumps(), digest_size=16).hexdigest(), manifest, parts)
        deadline = time.monotonic() + self.timeout
        calls = [shard.prepare.remote(asked.name, part) for shard, part in zip(self._shards, parts, strict=True)]
        for number, call in enumerate(calls):
            try:
                self._result(call, number, deadline)
            except _LostError:
                self._again(number, asked, deadline)
        searcher = Searcher(self._place.loader.codec(manifest.codec))
        schema = self._place.loader.schema(manifest)
        return ShardedState(searcher, manifest, schema, manifest.model, partial(self._ask, asked)), parts

    def _ask(self, asked: _Asked, question: str, *arguments: Any) -> list[Any]:
        """What all shards say to a question about a state; one that was lost is asked once more."""
        shards, deadline = self._shards, time.monotonic() + self.timeout
        if not shards:
            raise ClusterError("the index is closed; open it again")
        given: Any = arguments
        if sum(getattr(one, "nbytes", 0) for one in arguments if isinstance(one, np.ndarray)) > _INLINE:
            given = ray_module().put(arguments)  # once for all shards
        calls = [shard.ask.remote(asked.name, question, given) for shard in shards]
        answers = []
        for number, call in enumerate(calls):
            try:
                answers.append(self._result(call, number, deadline))
            except (_LostError, UnknownStateError):
                self._again(number, asked, deadline)
                try:
                    again = shards[number].ask.remote(asked.name, question, given)
                    answers.append(self._result(again, number, deadline))
                except (_LostError, UnknownStateError) as error:
                    raise ClusterError(f"shard {number} was lost twice while it answered: {error}") from None
        return answers

    def _again(self, number: int, asked: _Asked, deadline: float) -> None:
        """Wait until a shard is back, and has a state."""
        while True:
            try:
                self._result(self._shards[number].prepare.remote(asked.name, asked.parts[number]), number, deadline)
                return
            except _LostError:
                time.sleep(_PAUSE)
            except FileNotFoundError as error:
                raise ClusterError(
                    f"shard {number} was started anew, and a file of its state is gone since ({error.filename}); call "
                    "refresh()"
                ) from None

    def _result(self, call: Any, number: int, deadline: float) -> Any:
        """What a shard says, in time: its own errors as they are, _LostError if it was lost."""
        ray = ray_module()
        try:
            return ray.get(call, timeout=max(deadline - time.monotonic(), 0.001))
        except ray.exceptions.GetTimeoutError:
            raise ClusterError(
                f"shard {number} did not answer within {self.timeout:g} seconds; the cluster may be too small for "
                f"{len(self._shards)} shards, or busy: raise timeout="
            ) from None
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AntisparseError | OSError):
                raise error.cause from None
            raise ClusterError(f"shard {number} failed: {type(error.cause).__name__}: {error.cause}") from error
        except ray.exceptions.RayError as error:
            raise _LostError(first(error)) from None


class _LostError(Exception):
    """A shard, or the way to it, is lost."""
