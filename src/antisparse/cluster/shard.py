"""A shard: some segments of an index, in a process of its own, that answers for these alone. It knows no engine."""

import threading
from collections.abc import Callable
from typing import Any

from antisparse.errors import ClusterError, UnsupportedError
from antisparse.index.manifest import Manifest
from antisparse.index.snapshot import Snapshot
from antisparse.index.staging import staging_of

_KEPT = 2  # states: the present one, and the one before it, of which answers are still on their way


class UnknownStateError(ClusterError):
    """A shard does not have the state that it is asked for: it was started anew, or has gone on."""


class Shard:
    """Some segments of one or two states of an index, by the names of the states.

    Parameters
    ----------
    path : str
        The folder or the address of the index.
    memory : bool
        Read segments into memory instead of mapping their files.
    """

    def __init__(self, path: str, memory: bool = False) -> None:
        self._place, self._memory = staging_of(path), memory
        self._states: dict[str, Snapshot] = {}
        self._mutex = threading.Lock()

    def prepare(self, name: str, part: Manifest) -> None:
        """Have a state: the segments of this part of its manifest. FileNotFoundError if they are gone."""
        with self._mutex:
            if name in self._states:
                return
            known = next(iter(self._states.values()), None)
            snapshot = self._place.snapshot(part, known, self._memory)
            kept = dict(list(self._states.items())[-(_KEPT - 1) :])
            self._states = {**kept, name: snapshot}  # one assignment: others answer meanwhile

    def ask(self, name: str, question: str, arguments: tuple[Any, ...]) -> Any:
        """What the segments of a state have to say to a question."""
        snapshot = self._states.get(name)
        if snapshot is None:
            raise UnknownStateError("the shard does not have this state")
        if question not in QUESTIONS:
            raise UnsupportedError(f"question = {question!r} is none of {', '.join(QUESTIONS)}")
        return QUESTIONS[question](snapshot, *arguments)


# What a shard is asked; `ShardedState` puts the answers of all together.
QUESTIONS: dict[str, Callable[..., Any]] = {
    "candidates": Snapshot.candidates,
    "ids": lambda snapshot: snapshot.ids,
    "contains": Snapshot.contains,
    "find_keys": Snapshot.find_keys,
    "code_parts": Snapshot.code_parts,
    "item_parts": Snapshot.item_parts,
}
