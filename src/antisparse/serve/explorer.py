"""What the explorer's page asks of a service: what the index is, its items, and the four columns of a query."""

import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from antisparse._arrays import renamed
from antisparse.errors import InputError
from antisparse.explore.answers import about, answer, measured
from antisparse.explore.explorer import Asked, Explorer
from antisparse.explore.labels import Label, labels, matching
from antisparse.explore.originals import Originals
from antisparse.explore.page import page, policy
from antisparse.index.index import Index
from antisparse.serve.bodies import ExploreBody, ItemsAsked
from antisparse.serve.service import Present, Service

HEADERS = {
    "content-security-policy": policy(live=True) + "; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_SEARCHED = 100_000  # items whose texts are looked through


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
        self._began = service.present.generation
        self._about: tuple[int, dict[str, Any]] | None = None
        self._labels: tuple[int, list[Label]] | None = None

    @staticmethod
    def page() -> str:
        """The page itself, in which nothing of the index is."""
        return page()

    def _explorer(self, present: Present) -> Explorer:
        same = present.generation == self._began
        return Explorer(present, self._originals, self._others if same else ())

    def about(self) -> dict[str, Any]:
        """What is said of the index before anything is asked."""
        present = self._service.present
        kept = self._about
        if kept is None or kept[0] != present.generation:
            explorer = self._explorer(present)
            said = about(explorer, self._name) | {"model": present._model is not None}
            said["asked"], recalls = measured(explorer)
            for size, recall in zip(said["sizes"], recalls, strict=True):
                size["recall"] = recall
            kept = self._about = present.generation, said
        return {"generation": kept[0], **kept[1]}

    def items(self, asked: ItemsAsked) -> dict[str, Any]:
        """Items whose key or text has some words, of the first hundred thousand; or one of all, at random."""
        present = self._service.present
        if asked.any:
            ids = present.ids
            chosen = ids[random.randrange(len(ids))][None] if len(ids) else ids
            return {"items": [asdict(one) for one in labels(present, chosen, self._explorer(present).text)]}
        kept = self._labels
        if kept is None or kept[0] != present.generation:
            named = labels(present, present.ids[:_SEARCHED], self._explorer(present).text)
            kept = self._labels = present.generation, named
        found = matching(kept[1], asked.words, asked.most)
        return {"items": [asdict(one) for one in found]}

    def ask(self, asked: ExploreBody) -> dict[str, Any]:
        """The four columns of an item, a text or a vector."""
        present = self._service.present
        explorer = self._explorer(present)
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
        ids = np.array([int(asked.id)], np.int64)
        explorer.index._state.check_there(ids)
        return explorer.items(ids)
    if asked.text is not None:
        return Asked(explorer.index.embed([asked.text]))
    vectors = np.array([asked.vector], np.float64)
    explorer.index.codec.queries(vectors)  # says what is wrong with it
    return Asked(vectors)
