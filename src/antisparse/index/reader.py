"""What can be asked of an index: searches, items, codes, what is there."""

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, shown, text_list, thread_count
from antisparse.codec.codec import Codec
from antisparse.codec.queries import Method, Query
from antisparse.codes import Codes
from antisparse.errors import InputTypeError, UnsupportedError
from antisparse.index.state import Originals, State
from antisparse.index.tables import answers
from antisparse.index.texts import TextModel, embedded_queries, needed
from antisparse.metrics import MetricName
from antisparse.scan.columns import Ids
from antisparse.scan.search import Search

Probes = int | Literal["all"]
Found = tuple[npt.NDArray[Any], Ids]


class Reader:
    """An index as those see it who ask. Every answer is of one state, whatever is written meanwhile.

    Attributes
    ----------
    n_threads : int or None
        All available CPUs by default.
    """

    n_threads: int | None
    _model: TextModel | None

    @property
    def _state(self) -> State:
        """The present state; it never changes, and changes of the index do not reach it."""
        raise NotImplementedError

    @property
    def codec(self) -> Codec:
        """What codes vectors."""
        return self._state.codec

    @property
    def metric(self) -> MetricName:
        """What is nearest."""
        return self.codec.metric_name

    @property
    def model(self) -> str | None:
        """The name of the model that the vectors are from, if the index keeps it."""
        kept = self._state.model
        return None if kept is None else kept.name

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, value: object) -> bool:
        state = self._state
        if isinstance(value, str) and state.schema is not None and state.schema.key_is_text:
            return bool(state.find_keys([value])[0] >= 0)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            return False
        return bool(state.contains(np.array([value], np.int64)).all())

    @property
    def ids(self) -> Ids:
        """All ids, ascending."""
        return self._state.ids

    @property
    def cells(self) -> int:
        """The number of cells, one for a flat index."""
        return self.codec.n_cells

    def stats(self) -> dict[str, Any]:
        """Vectors, bytes, segments, cells."""
        return self._state.stats()

    def codes(self, ids: Any) -> Codes:
        """The code rows of some ids, or keys."""
        return self._state.codes(ids)

    def items(self, keys: Any = None) -> Any:
        """The items of some keys, or ids, in their order as an Arrow table; by default all, in the order of ids."""
        state = self._state
        return state.items(state.ids if keys is None else state.ids_of(keys, "keys"))

    def reconstruct(self, ids: Any) -> Float64Array:
        """The vectors that the codes of some ids, or keys, stand for."""
        state = self._state
        return state.codec.decode(state.codes(ids), n_threads=self.n_threads)

    def embed(self, texts: Any) -> npt.NDArray[Any]:
        """The vectors that the model of the index makes of texts as questions: one or several, as rows."""
        found = text_list(texts, "texts")
        if found is None:
            raise InputTypeError(f"texts must be text, or a sequence of such, not {shown(texts)}")
        return needed(self._model, "texts").queries(found)

    @overload
    def search(
        self,
        Q: Any,
        k: int = 10,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        probes: Probes = "all",
        shortlist: int | None = None,
        shortlist_method: Literal["hamming", "asymmetric"] = "hamming",
        filter: Any = None,
        rerank: Originals | None = None,
        items: Literal[False] = False,
        n_threads: int | None = None,
    ) -> Found: ...

    @overload
    def search(
        self,
        Q: Any,
        k: int = 10,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        probes: Probes = "all",
        shortlist: int | None = None,
        shortlist_method: Literal["hamming", "asymmetric"] = "hamming",
        filter: Any = None,
        rerank: Originals | None = None,
        items: bool,
        n_threads: int | None = None,
    ) -> Any: ...

    def search(
        self,
        Q: Any,
        k: int = 10,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        probes: Probes = "all",
        shortlist: int | None = None,
        shortlist_method: Literal["hamming", "asymmetric"] = "hamming",
        filter: Any = None,
        rerank: Originals | None = None,
        items: bool = False,
        n_threads: int | None = None,
    ) -> Any:
        """The k nearest ids to each query, as `CodeBase.search` says, and further:

        Parameters
        ----------
        Q : array of shape (q, d) or (d,), str or sequence of str
            Texts are embedded by the model that the index was built or opened with.
        probes : int or "all"
            Visit only so many cells, the nearest to the query.
        filter : array or set of ids or keys, array of bool, or str, optional
            Search these alone: ids, keys, or a mask whose entry i says whether id i may be found (ids beyond it may
            not). Those that are not there are passed over. Text is an expression on the columns of items:
            ``lang = 'en' and year >= 2020``.
        rerank : array or callable, optional
            The original vectors, as rows by id, or a function from an array of ids to their vectors. The `shortlist`
            (by default the larger of 10 k and 100) nearest by codes are ranked by their true distances.
        items : bool
            Give an Arrow table, a row a result, in place of distances and ids: query (its number, or its text), rank
            (from 1), distance, the key and the columns of the item.
        """
        state, threads = self._state, thread_count(self.n_threads if n_threads is None else n_threads)
        if boolean(items, "items") and state.schema is None:
            raise UnsupportedError("items = True, but the index keeps no items; build it from a table")
        Q, texts = embedded_queries(Q, self._model)
        if rerank is not None:  # of candidates by any method: the shortlist is no second stage on codes
            what = Search(k, method, query, _probes(probes))
            found = state.rescored(Q, what, shortlist, filter, rerank, threads)
        else:
            what = Search(k, method, query, _probes(probes), shortlist, shortlist_method)
            found = state.search(Q, what, filter, threads)
        return answers(state, *found, texts) if items else found

    def range_search(
        self,
        Q: Any,
        radius: float,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        probes: Probes = "all",
        filter: Any = None,
        n_threads: int | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], Ids]:
        """All ids within a distance of each query: limits, distances, ids; those of query i at limits[i]:limits[i + 1].

        The other parameters are those of `search`.
        """
        state, threads = self._state, thread_count(self.n_threads if n_threads is None else n_threads)
        Q, _ = embedded_queries(Q, self._model)
        return state.range_search(Q, radius, Search(1, method, query, _probes(probes)), filter, threads)


def _probes(probes: Probes) -> int | None:
    if isinstance(probes, str) and probes != "all":
        raise InputTypeError(f"probes must be 'all' or a number of cells, not {shown(probes)}")
    return None if isinstance(probes, str) else probes
