"""An index served by shards: actors on many machines, each with some of its segments (docs/cluster.md)."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np

from antisparse._arrays import boolean, folder_of, integer, nonnegative
from antisparse.cluster.assignment import assigned
from antisparse.cluster.engine import Connection, check_room, first, ray_module
from antisparse.cluster.shard import Shard, UnknownStateError
from antisparse.cluster.sharded_state import ShardedState
from antisparse.errors import AntisparseError, ClusterError, FormatError, StorageError, UnsupportedError
from antisparse.index.manifest import Manifest
from antisparse.index.objects import is_address
from antisparse.index.reader import Reader
from antisparse.index.staging import staging_of
from antisparse.index.texts import TextModel
from antisparse.scan.search import Searcher

_CONCURRENT = 8  # questions that a shard answers at a time
_INLINE = 1 << 16  # bytes of a question that travel with the call, not apart
_PAUSE = 0.1  # seconds between two looks whether a shard is back
_TRIES = 20


@dataclass(frozen=True)
class _Asked:
    """A state by its name, the shards that have it, and the part of it that each has."""

    name: str
    shards: list[Any]
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
        self._model = TextModel.of(model, self._place.manifest().model)
        self._mutex = threading.Lock()
        self._connection = Connection(address)
        self._shards: list[Any] = []
        count = integer(shards, "shards", 1)
        self._connection.open()
        self._open = True
        try:
            check_room(cpus, "a shard", count)
            options = {"num_cpus": cpus, "max_restarts": -1, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}
            made = ray_module().remote(max_concurrency=_CONCURRENT, **options)(Shard)
            self._shards = [made.remote(self.path, boolean(memory, "memory")) for _ in range(count)]
            self._present, self._parts = self._newest([])
        except BaseException:
            self.close()
            raise

    @property
    def _state(self) -> ShardedState:
        return self._present

    def __repr__(self) -> str:
        return f"ShardedIndex({len(self):,} vectors, {self.codec!r}, {self.path!r}, {len(self._shards)} shards)"

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError("shards are not pickled; send the path of their index")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the shards."""
        with self._mutex:
            shards, self._shards = self._shards, []
            for shard in shards:
                with suppress(Exception):  # the cluster may be gone
                    ray_module().kill(shard)
            if self._open:
                self._open = False
                self._connection.close()

    def refresh(self) -> None:
        """See what was written since: all shards have the new state before the first question is asked of it."""
        with self._mutex:
            if not self._shards:
                raise ClusterError("the index is closed; open it again")
            if self._place.manifest() != self._present.manifest:
                self._present, self._parts = self._newest(self._parts)

    def _newest(self, before: Sequence[Manifest]) -> tuple[ShardedState, list[Manifest]]:
        """The state that the manifest names, which all shards have."""
        for _ in range(_TRIES):
            manifest = self._place.manifest()
            try:
                return self._prepared(manifest, before)
            except FileNotFoundError as error:
                # A writer may have replaced the manifest, and removed the files of the old one, since it was read.
                if self._place.manifest() == manifest:
                    raise FormatError(f"{error.filename} is missing: the index is damaged") from None
        raise StorageError(f"{self.path} changes faster than it can be opened; try again")

    def _prepared(self, manifest: Manifest, before: Sequence[Manifest]) -> tuple[ShardedState, list[Manifest]]:
        """A state that all shards have; FileNotFoundError if its files are gone."""
        shards = self._shards
        parts = assigned(manifest, len(shards), before)
        asked = _Asked(blake2b(manifest.dumps(), digest_size=16).hexdigest(), shards, parts)
        deadline = time.monotonic() + self.timeout
        searcher = Searcher(self._place.loader.codec(manifest.codec))
        schema = self._place.loader.schema(manifest)
        calls = [_called(shard.prepare, asked.name, part) for shard, part in zip(shards, parts, strict=True)]
        for number, found in enumerate([self._outcome(call, number, deadline) for number, call in enumerate(calls)]):
            if isinstance(found, _LostError):
                self._again(number, asked, deadline)
            elif isinstance(found, Exception):
                raise found
        return ShardedState(searcher, manifest, schema, manifest.model, partial(self._ask, asked)), parts

    def _ask(self, asked: _Asked, question: str, *arguments: Any) -> list[Any]:
        """What all shards say to a question about a state; one that was lost is asked once more."""
        if not self._shards:
            raise ClusterError("the index is closed; open it again")
        deadline = time.monotonic() + self.timeout
        given: Any = arguments
        if sum(one.nbytes for one in arguments if isinstance(one, np.ndarray)) > _INLINE:
            given = ray_module().put(arguments)  # once for all shards
        calls = [_called(shard.ask, asked.name, question, given) for shard in asked.shards]
        answers = [
            self._outcome(call, number, deadline) for number, call in enumerate(calls)
        ]  # all, before any is raised
        for number, found in enumerate(answers):
            if isinstance(found, _LostError | UnknownStateError):
                try:
                    self._again(number, asked, deadline)
                except FileNotFoundError as error:
                    raise ClusterError(
                        f"shard {number} was started anew, and a file of its state is gone since ({error.filename}); "
                        "call refresh()"
                    ) from None
                again = _called(asked.shards[number].ask, asked.name, question, given)
                answers[number] = found = self._outcome(again, number, deadline)
                if isinstance(found, _LostError | UnknownStateError):
                    raise ClusterError(f"shard {number} was lost twice while it answered: {found}")
            if isinstance(found, Exception):
                raise found
        return answers

    def _again(self, number: int, asked: _Asked, deadline: float) -> None:
        """Wait until a shard is back, and has a state; FileNotFoundError if the files of it are gone."""
        while True:
            call = _called(asked.shards[number].prepare, asked.name, asked.parts[number])
            found = self._outcome(call, number, deadline)
            if not isinstance(found, Exception):
                return
            if not isinstance(found, _LostError):
                raise found
            if not self._shards:
                raise ClusterError("the index was closed meanwhile")
            if time.monotonic() > deadline:
                raise ClusterError(f"shard {number} did not come back within {self.timeout:g} seconds: {found}")
            time.sleep(_PAUSE)

    def _outcome(self, call: Any, number: int, deadline: float) -> Any:
        """What a shard says, in time, or the error that it, or the way to it, ended with."""
        if isinstance(call, Exception):
            return call
        ray = ray_module()
        try:
            return ray.get(call, timeout=max(deadline - time.monotonic(), 0.001))
        except ray.exceptions.GetTimeoutError:
            return ClusterError(
                f"shard {number} did not answer within {self.timeout:g} seconds; the cluster may be too small for "
                f"{len(self._shards)} shards, or busy: raise timeout="
            )
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, AntisparseError | OSError):
                return error.cause
            return ClusterError(f"shard {number} failed: {type(error.cause).__name__}: {error.cause}")
        except Exception as error:  # of Ray: the shard is dead, or the connection gone
            return _LostError(first(error))


def _called(method: Any, *arguments: Any) -> Any:
    """A call to a shard, or the error that it could not be made by."""
    try:
        return method.remote(*arguments)
    except Exception as error:  # of Ray, whose connection may be gone
        return _LostError(first(error))


class _LostError(Exception):
    """A shard, or the way to it, is lost."""
