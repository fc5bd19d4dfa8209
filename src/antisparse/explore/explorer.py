"""What is shown for a query: what the three searches on codes find, what the original vectors say, and the codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import integer, optional_name
from antisparse.codec.codec import Codec
from antisparse.codec.queries import Method
from antisparse.codes import Codes
from antisparse.errors import InputError, InputTypeError, UnsupportedError
from antisparse.evaluation import Measure
from antisparse.explore.labels import text_column
from antisparse.explore.originals import Originals
from antisparse.index.reader import Reader
from antisparse.index.state import State
from antisparse.scan.columns import Ids

METHODS: tuple[Method, ...] = ("hamming", "asymmetric", "reconstruction")
MEASURES = ("1@1", "1@10", "10@10")
EXACT_WHY = "The original vectors are not at hand. Name their file by --vectors, and this column shows the truth."


@dataclass(frozen=True)
class Column:
    """What one search finds for some queries, or why it finds nothing.

    Attributes
    ----------
    distances, ids : ndarray of shape (n_queries, k), or None
    why : str
        What keeps this search from being done; empty where it is.
    """

    distances: npt.NDArray[Any] | None = None
    ids: Ids | None = None
    why: str = ""


@dataclass(frozen=True)
class Asked:
    """Queries.

    Attributes
    ----------
    vectors : ndarray of shape (n_queries, d)
        What is asked: original vectors, or, of items whose originals are not at hand, rebuilt ones.
    own : ndarray of shape (n_queries,), or None
        The ids of the items that ask, which are no neighbours of their own.
    original : bool
        Whether the vectors are originals.
    """

    vectors: npt.NDArray[Any]
    own: Ids | None = None
    original: bool = True


class Explorer:
    """An index, as one looks into it.

    Parameters
    ----------
    index : Index or ShardedIndex
    originals : Originals, optional
        The vectors that its codes are of.
    others : sequence of Index
        Codes of the same items in other numbers of bytes.
    text : str, optional
        The column that is shown of items; by default the one of texts.
    """

    def __init__(
        self, index: Any, originals: Originals | None = None, others: Sequence[Any] = (), text: str | None = None
    ) -> None:
        if not isinstance(others, Sequence):
            raise InputTypeError(f"others must be a sequence of indexes, not {type(others).__name__}")
        for one in (index, *others):
            if not isinstance(one, Reader):
                raise InputTypeError(f"index must be an index, and others a sequence of such, not {type(one).__name__}")
        if originals is not None and not isinstance(originals, Originals):
            raise InputTypeError(f"originals must be Originals.of(index, vectors), not {type(originals).__name__}")
        if any(one.metric != index.metric for one in others):
            raise InputError("others were made for another metric than the index; they cannot be compared")
        self.index: Reader = index
        self.originals = originals
        self.text = text_column(index, optional_name(text, "text"))
        self.sizes: list[Reader] = sorted((index, *others), key=lambda one: one.codec.n_bytes)
        self._known: tuple[State, Ids] | None = None

    def known(self) -> Ids:
        """The ids whose originals are at hand, ascending; worked out once a state."""
        if self.originals is None:
            return np.zeros(0, np.int64)
        state, kept = self.index._state, self._known
        if kept is None or kept[0] is not state:
            kept = self._known = state, self.originals.ids_in(self.index)
        return kept[1]

    def items(self, ids: Ids) -> Asked:
        """Items that ask for their neighbours."""
        if self.originals is not None and _all_among(ids, self.known()):
            return Asked(self.originals.of_ids(ids), ids)
        if not self.index.codec.rebuilds:
            raise UnsupportedError(
                "these codes rebuild no vectors, so that an item can only ask where the originals are at hand; name "
                "their file by --vectors"
            )
        return Asked(self.index.reconstruct(ids), ids, False)

    def column(self, size: int, method: Method, asked: Asked, k: int) -> Column:
        """What a search on codes finds; of the items that ask, without themselves."""
        k = integer(k, "k", 1)
        try:
            found = self.sizes[size].search(asked.vectors, k + (asked.own is not None), method=method)
        except UnsupportedError as error:
            return Column(why=why_not(self.sizes[size].codec, method, str(error)))
        return Column(*_without(*found, asked.own, k))

    def exact(self, asked: Asked, k: int) -> Column:
        """What the original vectors say, which the codes are measured by."""
        if self.originals is None:
            return Column(why=EXACT_WHY)
        if not asked.original:
            return Column(
                why="The original vector of this item is not at hand: it was added after the service began, or changed."
            )
        wanted = integer(k, "k", 1) + (asked.own is not None)
        found = self.originals.nearest(self.known(), asked.vectors, wanted, self.index.metric)
        return Column(*_without(*found, asked.own, k))

    def recall(self, column: Column, exact: Column) -> dict[str, float] | None:
        """1@1, 1@10 and 10@10, as far as there are so many neighbours; None where there is nothing to compare."""
        if column.ids is None or exact.ids is None or not len(exact.ids):
            return None
        there = min(int((exact.ids >= 0).sum(axis=1).min()), column.ids.shape[1])
        measures = [one for one in map(Measure.parse, MEASURES) if one.results <= there]
        if not measures:
            return None
        return {one.name: float(one.parts(column.ids, exact.ids).mean()) for one in measures}

    def codes(self, size: int, asked: Asked) -> Codes:
        """The codes of the queries, as Hamming search makes them."""
        return self.sizes[size].codec.encode(asked.vectors)

    def rebuilt(self, size: int, codes: Codes) -> npt.NDArray[Any] | None:
        """The vectors that codes stand for; None where these rebuild nothing."""
        codec = self.sizes[size].codec
        return codec.decode(codes) if codec.rebuilds else None

    def prepared(self, asked: Asked) -> npt.NDArray[Any]:
        """The queries as codes are made of them: cut to what the codec uses, and of unit length for the cosine."""
        return np.asarray(self.index.codec.queries(asked.vectors), np.float64)


def relative_errors(vectors: npt.NDArray[Any], rebuilt: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The squared error of each rebuilt vector over the squared norm of what it stands for."""
    squares = (vectors * vectors).sum(axis=1)
    errors: npt.NDArray[Any] = ((vectors - rebuilt) ** 2).sum(axis=1) / np.where(squares > 0, squares, 1.0)
    return errors


def why_not(codec: Codec, method: Method, message: str) -> str:
    """Why codes cannot be searched so, for one who reads a page."""
    named = {"hamming": "NN_b", "asymmetric": "NN_a"}.get(method, "NN_e")
    if codec.symbols.columns_per_nibble == 16:
        return (
            f"{named} does not exist for these codes. Each four bits name one of 16 learned vectors (codewords) or "
            "levels, so that single bits mean nothing by themselves and cannot be compared. Codes of signs have it: "
            "antisparse build --symbols signs."
        )
    if codec.cells is not None:
        return (
            f"{named} does not exist for these codes. Each is relative to the mean of its cell, and signs relative to "
            "different means do not compare. Codes of one cell have it: antisparse build --symbols signs --cells 1."
        )
    return f"{named} does not exist for these codes: {message}."


def _all_among(ids: Ids, known: Ids) -> bool:
    """Whether all ids are among others, which ascend."""
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return len(known) > 0 and bool((known[places] == ids).all())


def _without(distances: npt.NDArray[Any], ids: Ids, own: Ids | None, k: int) -> tuple[npt.NDArray[Any], Ids]:
    """The first k of each row, without what asks."""
    if own is None:
        return distances[:, :k], ids[:, :k]
    order = np.argsort(ids == own[:, None], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)
