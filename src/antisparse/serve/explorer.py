"""What the explorer's page asks of a service: what the index is, its items, and the four columns of a query."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Generic, TypeVar

import numpy as np

from antisparse._arrays import renamed
from antisparse.errors import InputError
from antisparse.explore.answers import about, answer, measured
from antisparse.explore.explorer import Asked, Explorer
from antisparse.explore.labels import Label, labels, matching
from antisparse.explore.originals import Originals
from antisparse.explore.page import page, policy
from antisparse.index.index import Index
from antisparse.index.state import id_array
from antisparse.serve.bodies import ExploreBody, ItemsAsked
from antisparse.serve.service import Present, Service

HEADERS = {
    "content-security-policy": policy(live=True) + "; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_SEARCHED = 100_000  # items whose texts are looked through


T = TypeVar("T")


class _Kept(Generic[T]):
    """What is made of one state of an index, once: who asks for it meanwhile waits."""

    def __init__(self, make: Callable[[Present], T]) -> None:
        self._make, self._turn = make, threading.Lock()
        self._made: tuple[object, T] | None = None

    def of(self, present: Present) -> T:
        """What was made of this state, or, if that was another, is now."""
        with self._turn:
            if self._made is None or self._made[0] != present.version:
                self._made = None  # two are never held
                self._made = present.version, self._make(present)
            return self._made[1]


class Explored:
    """A served index, explored. Every answer is of one state; what takes long is kept until the index changes.

    Parameters
    ----------
    service : Service
    originals : Originals or None
    others : sequence of Index
        The same items in other numbers of bytes, as they were when the service began.
    name : str
        What the page calls the index.
    """

    def __init__(self, service: Service, originals: Originals | None, others: Sequence[Index], name: str) -> None:
        self._service, self._originals, self._others, self._name = service, originals, others, name
        self._began = service.present.version
        self._explorer = _Kept(self._made_explorer)
        self._about = _Kept(self._made_about)
        self._labels = _Kept(self._made_labels)

    @staticmethod
    def page() -> str:
        """The page itself, in which nothing of the index is."""
        return page()

    def _made_explorer(self, present: Present) -> Explorer:
        same = present.version == self._began
        explorer = Explorer(present, self._originals, self._others if same else ())
        explorer.known()  # looks at every code, which is done here once
        return explorer

    def _made_about(self, present: Present) -> dict[str, Any]:
        explorer = self._explorer.of(present)
        said = about(explorer, self._name) | {"generation": present.generation, "model": present._model is not None}
        said["asked"], recalls = measured(explorer)
        for size, recall in zip(said["sizes"], recalls, strict=True):
            size["recall"] = recall
        return said

    def _made_labels(self, present: Present) -> list[Label]:
        return labels(present, present.ids[:_SEARCHED], self._explorer.of(present).text)

    def about(self) -> dict[str, Any]:
        """What is said of the index before anything is asked."""
        return self._about.of(self._service.present)

    def items(self, asked: ItemsAsked) -> dict[str, Any]:
        """Items whose key or text has some words, of the first hundred thousand; or one of all, at random."""
        present = self._service.present
        if asked.any:
            ids = present.ids
            chosen = ids[random.randrange(len(ids))][None] if len(ids) else ids
            return {"items": [asdict(one) for one in labels(present, chosen, self._explorer.of(present).text)]}
        found = matching(self._labels.of(present), asked.words, asked.most)
        return {"items": [asdict(one) for one in found]}

    def ask(self, asked: ExploreBody) -> dict[str, Any]:
        """The four columns of an item, a text or a vector."""
        present = self._service.present
        explorer = self._explorer.of(present)
        sizes = [one.codec.n_bytes for one in explorer.sizes]
        wanted = present.codec.n_bytes if asked.size is None else asked.size
        if wanted not in sizes:
            raise InputError(f"size = {wanted}, but there are codes of {sizes} bytes; load the page anew")
        with renamed(Q="vector", texts="text"):
            return {
                "generation": present.generation,
                **answer(explorer, sizes.index(wanted), _query(explorer, asked), asked.k),
            }


def _query(explorer: Explorer, asked: ExploreBody) -> Asked:
    if asked.id is not None:
        ids = id_array([int(asked.id)], "id")
        explorer.index._state.check_there(ids)
        return explorer.items(ids)
    if asked.text is not None:
        return Asked(explorer.index.embed([asked.text]))
    vectors = np.array([asked.vector], np.float64)
    explorer.index.codec.queries(vectors)  # says what is wrong with it
    return Asked(vectors)
