"""The index: codes by id, in memory or in a folder, added, removed, searched (docs/index.md)."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, integer, real_array, thread_count
from antisparse.codes import Codes
from antisparse.encoders.base import Encoder
from antisparse.encoders.choose import Method
from antisparse.errors import AntisparseError, FormatError, InputError, InputTypeError, UnsupportedError
from antisparse.forms import Forms, Metric, Query, unit_rows
from antisparse.index.manifest import read_manifest
from antisparse.index.segment import Segment, make_segment
from antisparse.index.store import FolderStore, MemoryStore, State, new_folder
from antisparse.layout import Ids, Scanner
from antisparse.search import best_of, bytes_per_vector, check_metric, check_search, checked_queries

_CHUNK_QUERIES = 2048
_SEGMENT_ROWS = 1 << 20  # codes that an add holds back before it writes a segment
_TIER, _SMALLEST = 8, 1024  # so many segments of like size are made one
_MOST_ID = 2**63 - 1  # the id after the largest fits int64
_DENSE = 4  # a filter that leaves less than one code in so many is searched apart

Originals = npt.NDArray[Any] | Callable[[Ids], Any]


@dataclass
class _Change:
    """What a batch is about to do."""

    state: State
    rows: list[Codes] = field(default_factory=list)  # not yet in a segment
    ids: list[Ids] = field(default_factory=list)
    held: set[int] = field(default_factory=set)  # the ids of these
    touched: bool = False


class Index:
    """Codes by id: made by `Index.create`, found again by `Index.open`.

    Every change is on the disk when the call returns, whole or not at all. Searches see the state of their beginning;
    any number of threads may search while one adds.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import AntiSparseEncoder, Index
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> encoder = AntiSparseEncoder(48, random_state=0).fit(X)
    >>> index = Index.create(None, encoder)  # a path in place of None keeps it on disk
    >>> ids = index.add(X)
    >>> distances, found = index.search(X[:3], k=2)
    >>> found[:, 0]
    array([0, 1, 2])
    """

    def __init__(
        self, store: MemoryStore | FolderStore, encoder: Encoder, metric: Metric, state: State, n_threads: int | None
    ) -> None:
        self._store = store
        self.encoder = encoder
        self.metric = metric
        self.n_threads = n_threads
        self._state = state
        self._forms = Forms(encoder, metric)
        self._change: _Change | None = None
        self._mutex = threading.RLock()
        self._closed = False

    @classmethod
    def create(
        cls,
        path: str | Path | None,
        encoder: Encoder,
        *,
        metric: Metric = "l2",
        cells: int | None = None,
        n_threads: int | None = None,
    ) -> Self:
        """A new index without codes.

        Parameters
        ----------
        path : path or None
            A folder that does not exist, or is empty; None keeps the index in memory.
        encoder : fitted encoder
            Its means are the cells of the index: fit ``AntiSparseEncoder(n_bits, means=1024)`` for 1,024 cells, of
            which a search may visit some (`probes`).
        metric : {"l2", "cosine", "ip"}
            With "cosine" vectors are brought to unit length; fit the encoder on such.
        cells : int, optional
            Checked against the encoder.
        """
        if not hasattr(encoder, "code_layout_"):
            raise InputError("encoder is not fitted; call encoder.fit(X) first")
        check_metric(metric)
        thread_count(n_threads)
        means = 1 if encoder.cell_means is None else len(encoder.cell_means)
        if cells is not None and integer(cells, "cells", 1) != means:
            raise InputError(f"cells = {cells}, but the encoder has {means} means; fit it with means={cells}")
        if path is None:
            return cls(MemoryStore(), encoder, metric, State(), n_threads)
        folder = Path(path)
        new_folder(folder)
        store = FolderStore(folder, read_only=False)
        try:
            new_folder(folder)  # again, now that no one else can make one there
            return cls(store, encoder, metric, store.create(encoder, metric), n_threads)
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(
        cls, path: str | Path, *, read_only: bool = False, verify: bool = False, n_threads: int | None = None
    ) -> Self:
        """An index in a folder. One process may have it open for writing; readers keep the state they opened.

        `verify` reads everything and compares checksums; without it headers and the manifest are checked, and codes are
        read when searched.
        """
        thread_count(n_threads)
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"path = {str(path)!r}: there is no such folder; make an index with Index.create")
        boolean(verify, "verify")
        read_manifest(folder)  # before there is a lock in a folder that is no index
        store = FolderStore(folder, boolean(read_only, "read_only"))
        try:
            encoder, metric, state = store.open(verify)
            return cls(store, encoder, metric, state, n_threads)
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others write. The index can still be searched."""
        with self._mutex:
            self._closed = True
            self._store.close()

    def refresh(self) -> None:
        """See what was written since: for readers."""
        with self._mutex:
            if isinstance(self._store, FolderStore) and self._store.read_only:
                self.encoder, self.metric, self._state = self._store.open()

    # What is there.

    def __len__(self) -> int:
        return sum(segment.live for segment in self._state.segments)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            return False
        return bool((_find(self._state.segments, np.array([value], np.int64))[0] >= 0).all())

    @property
    def ids(self) -> Ids:
        """All ids, ascending."""
        parts = [segment.ids[segment.live_places()] for segment in self._state.segments]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    @property
    def cells(self) -> int:
        """The number of cells, one for a flat index."""
        return 1 if self.encoder.cell_means is None else len(self.encoder.cell_means)

    def stats(self) -> dict[str, Any]:
        """Vectors, bytes, segments, cells."""
        segments = self._state.segments
        n, deleted = len(self), sum(len(segment.deleted) for segment in segments)
        disk = self._store.bytes_on_disk()
        scanned = bytes_per_vector(self.encoder, segments[0].scanner) if segments else 0
        return {
            "vectors": n,
            "deleted": deleted,
            "dimensions": int(self.encoder.n_features_in_),
            "bits": self.encoder.code_layout_.n_bits,
            "metric": self.metric,
            "cells": self.cells,
            "segments": len(segments),
            "code_bytes": self.encoder.code_layout_.code_size,
            "scan_bytes": scanned,
            "disk_bytes": disk,
            "disk_bytes_per_vector": round(disk / n, 2) if n else 0.0,
        }

    def codes(self, ids: Any) -> Codes:
        """The code rows of some ids."""
        wanted = _ids(ids, "ids")
        segments = self._state.segments
        which, places = self._located(segments, wanted)
        rows = np.zeros((len(wanted), self.encoder.code_layout_.code_size), np.uint8)
        for number, segment in enumerate(segments):
            mine = which == number
            rows[mine] = segment.code_rows(places[mine])
        return rows

    def reconstruct(self, ids: Any) -> Float64Array:
        """The vectors that the codes of some ids stand for."""
        return self.encoder.inverse_transform(self.codes(ids))

    # Changes.

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Changes within are made at its end, all or, if an error leaves it, none. Searches within do not see them."""
        with self._mutex:
            self._writable()
            if self._change is not None:  # an outer batch makes them
                with _undone(self._change):
                    yield self
                return
            self._change = change = _Change(self._state)
            try:
                yield self
                self._flush(change)
                if change.touched:
                    state = State(self._merged(change.state.segments), change.state.next_id)
                    self._store.commit(state)
                    self._state = state
                    self._store.clean()
            except BaseException:
                self._store.forget()
                raise
            finally:
                self._change = None

    def add(self, X: Any, ids: Any = None) -> Ids:
        """Add vectors (n, d), or an iterator of such arrays; returns their ids.

        Ids are distinct, not negative, and not yet there; by default they go on from the largest ever used. With an
        iterator, memory holds about a million codes at a time, and all are added at once, at the end.
        """
        if isinstance(X, Iterator):
            given = None if ids is None else _ids(ids, "ids")
            done: list[Ids] = []
            with self.batch():
                at = 0
                for part in X:
                    array = self.encoder.validated(part, "X")
                    mine = None if given is None else given[at : at + len(array)]
                    done.append(self.add(array, mine))
                    at += len(array)
                if given is not None and at != len(given):
                    raise InputError(f"ids has {len(given)} entries, but X has {at} vectors")
            return np.concatenate([np.zeros(0, np.int64), *done])
        return self.add_codes(self._encode(X), ids)

    def add_codes(self, codes: Any, ids: Any = None) -> Ids:
        """Add code rows that the encoder made elsewhere."""
        rows = self.encoder.code_layout_.rows(codes, "codes")
        self.encoder.cells(rows)  # an error if it names a mean there is not
        with self.batch():
            change = self._pending
            if ids is None:
                first = change.state.next_id
                if first + len(rows) > _MOST_ID:
                    raise InputError("ids beyond the largest that was used do not fit int64; pass ids")
                wanted = np.arange(first, first + len(rows), dtype=np.int64)
            else:
                wanted = _ids(ids, "ids")
                if len(wanted) != len(rows):
                    raise InputError(f"ids has {len(wanted)} entries for {len(rows)} vectors")
                _distinct(wanted)
                there = _find(change.state.segments, wanted)[0] >= 0
                if change.held:
                    there |= np.array([int(i) in change.held for i in wanted], bool)
                if there.any():
                    raise InputError(f"id {wanted[there][0]} is there already; use update to replace it")
            if len(rows):
                self._append(change, rows, wanted)
        return wanted

    def remove(self, ids: Any) -> None:
        """Remove the vectors of some ids, all of which must be there."""
        wanted = _ids(ids, "ids")
        _distinct(wanted)
        with self.batch():
            change = self._pending
            self._flush(change)
            which, places = self._located(change.state.segments, wanted)
            segments = tuple(
                segment.without(places[which == number]) if (which == number).any() else segment
                for number, segment in enumerate(change.state.segments)
            )
            change.state = State(segments, change.state.next_id)
            change.touched |= len(wanted) > 0

    def update(self, X: Any, ids: Any) -> None:
        """Replace the vectors of some ids, all of which must be there."""
        rows, wanted = self._encode(X), _ids(ids, "ids")
        if len(wanted) != len(rows):
            raise InputError(f"ids has {len(wanted)} entries for {len(rows)} vectors")
        with self.batch():
            self.remove(wanted)
            self.add_codes(rows, wanted)

    def compact(self) -> None:
        """Make all segments one, without what was deleted."""
        with self.batch():
            change = self._pending
            self._flush(change)
            segments = change.state.segments
            if len(segments) > 1 or any(len(segment.deleted) for segment in segments):
                change.state = State(self._joined(segments), change.state.next_id)
                change.touched = True

    def verify(self) -> None:
        """Read everything that is on the disk and compare it with its checksums; FormatError if it is damaged."""
        self._store.verify()

    def _encode(self, X: Any) -> Codes:
        array = self.encoder.validated(X, "X")
        rows: Codes = self.encoder.transform(unit_rows(array, "X") if self.metric == "cosine" else array)
        return rows

    @property
    def _pending(self) -> _Change:
        assert self._change is not None
        return self._change

    def _writable(self) -> None:
        self._store.check_writable()
        if self._closed:
            raise UnsupportedError("the index is closed; open it again to change it")

    def _append(self, change: _Change, rows: Codes, ids: Ids) -> None:
        change.rows.append(rows)
        change.ids.append(ids)
        change.held.update(ids.tolist())
        change.state = State(change.state.segments, max(change.state.next_id, int(ids.max()) + 1))
        change.touched = True
        if len(change.held) >= _SEGMENT_ROWS:
            self._flush(change)

    def _flush(self, change: _Change) -> None:
        """Write the codes held back as a segment."""
        if not change.rows:
            return
        rows, ids = np.concatenate(change.rows), np.concatenate(change.ids)
        segment = self._store.save(make_segment(self.encoder, self.metric, rows, ids))
        change.state = State((*change.state.segments, segment), change.state.next_id)
        change.rows, change.ids, change.held = [], [], set()

    def _merged(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """Segments of like size made one where there are many: a code is rewritten a few times, however many come."""
        while True:
            tiers: dict[int, list[int]] = {}
            for number, segment in enumerate(segments):
                tier = max(0, int(np.log(max(segment.rows, 1) / _SMALLEST) / np.log(_TIER)) + 1)
                tiers.setdefault(0 if segment.rows < _SMALLEST else tier, []).append(number)
            crowded = next((numbers for _, numbers in sorted(tiers.items()) if len(numbers) >= _TIER), None)
            if crowded is None:
                return tuple(segment for segment in segments if segment.live)
            joined = self._joined(tuple(segments[number] for number in crowded))
            rest = tuple(segment for number, segment in enumerate(segments) if number not in crowded)
            segments = (*rest, *joined)

    def _joined(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """One segment of all that is live, or none."""
        places = [segment.live_places() for segment in segments]
        if not sum(map(len, places)):
            return ()
        rows = np.concatenate([segment.code_rows(at) for segment, at in zip(segments, places, strict=True)])
        ids = np.concatenate([segment.ids[at] for segment, at in zip(segments, places, strict=True)])
        return (self._store.save(make_segment(self.encoder, self.metric, rows, ids)),)

    def _located(self, segments: tuple[Segment, ...], ids: Ids) -> tuple[Ids, Ids]:
        which, places = _find(segments, ids)
        if (which < 0).any():
            raise InputError(f"id {ids[which < 0][0]} is not in the index")
        return which, places

    # Searches.

    def search(
        self,
        Q: Any,
        k: int,
        *,
        method: Method = "reconstruction",
        query: Query = "projection",
        probes: int | Literal["all"] = "all",
        shortlist: int | None = None,
        shortlist_method: Literal["hamming", "asymmetric"] = "hamming",
        filter: Any = None,
        rerank: Originals | None = None,
        n_threads: int | None = None,
    ) -> tuple[npt.NDArray[Any], Ids]:
        """The k nearest ids to each query, as `CodeBase.search` says, and further:

        Parameters
        ----------
        probes : int or "all"
            Visit only so many cells, the nearest to the query.
        filter : array of ids, or of bool, optional
            Search these alone: ids, or a mask whose entry i says whether id i may be found (ids beyond it may not).
        rerank : array or callable, optional
            The original vectors, as rows by id, or a function from an array of ids to their vectors. The `shortlist`
            (by default the larger of 10 k and 100) nearest by codes are ranked by their true distances.
        """
        k = integer(k, "k", 1)
        if rerank is not None:
            depth = max(10 * k, 100) if shortlist is None else integer(shortlist, "shortlist", k)
            options = {"method": method, "query": query, "probes": probes, "filter": filter, "n_threads": n_threads}
            _, found = self.search(Q, depth, **options)
            return self._reranked(Q, k, found, rerank)
        check_search(method, query, shortlist, shortlist_method)
        threads = thread_count(self.n_threads if n_threads is None else n_threads)
        if probes != "all":
            integer(probes, "probes", 1)
        Q = checked_queries(self.encoder, Q, self.metric)
        segments = self._state.segments
        parts = _parts(segments, filter)
        visited = None if probes == "all" else probes
        first = method if shortlist is None else shortlist_method
        depth = k if shortlist is None else shortlist
        distances = np.empty((len(Q), k), np.int32 if method == "hamming" else np.float64)
        ids = np.empty((len(Q), k), np.int64)
        for start in range(0, max(len(Q), 1), _CHUNK_QUERIES):
            rows = slice(start, start + _CHUNK_QUERIES)
            form = self._forms.make(Q[rows], first, query, visited, threads)
            with _sound_codes():
                lists = [scanner.search(form, depth, threads, positions) for scanner, positions in parts]
            if len(lists) == 1:
                values, names = lists[0]
            else:
                lists.append((np.zeros((len(Q[rows]), 0)), np.zeros((len(Q[rows]), 0), np.int64)))
                values, names = (np.concatenate(columns, axis=1) for columns in zip(*lists, strict=True))
                values, names = best_of(np.where(names < 0, np.inf, values), names, depth)
            if shortlist is not None:
                form = self._forms.make(Q[rows], method, query)
                values = np.full(names.shape, np.inf)
                for segment in segments:
                    places = segment.find(names.reshape(-1)).reshape(names.shape)
                    with _sound_codes():
                        values = np.minimum(values, segment.scanner.score(form, places))
                values, names = best_of(values, names, k)
            distances[rows], ids[rows] = form.distances(values), names
        return distances, ids

    def range_search(
        self, Q: Any, radius: float, *, method: Method = "reconstruction", **options: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], Ids]:
        """All ids within a distance of each query: limits, distances, ids; those of query i at limits[i]:limits[i + 1].

        Takes `query`, `probes`, `filter` and `n_threads` as `search` does.
        """
        if isinstance(radius, bool) or not isinstance(radius, int | float | np.number) or np.isnan(radius):
            raise InputTypeError(f"radius = {radius!r} is not a number")
        if unknown := set(options) - {"query", "probes", "filter", "n_threads"}:
            raise InputTypeError(f"range_search takes no {sorted(unknown)[0]!r}")
        Q = self.encoder.validated(Q, "Q")
        here = copy(self)  # one state, whatever is written meanwhile
        n, k = len(here), 64
        parts: list[tuple[npt.NDArray[Any], Ids]] = [(np.zeros(0), np.zeros(0, np.int64))] * len(Q)
        open_rows = np.arange(len(Q))
        while len(open_rows):
            distances, ids = here.search(Q[open_rows], min(k, max(n, 1)), method=method, **options)
            inside = (distances <= radius) & (ids >= 0)
            more = inside[:, -1] & (k < n)
            for row, d, i, within in zip(open_rows[~more], distances[~more], ids[~more], inside[~more], strict=True):
                parts[row] = d[within], i[within]
            open_rows, k = open_rows[more], 8 * k
        limits = np.cumsum([0, *(len(d) for d, _ in parts)], dtype=np.int64)
        none = np.zeros(0, np.int32 if method == "hamming" else np.float64)
        return (
            limits,
            np.concatenate([none, *(d for d, _ in parts if len(d))]),
            np.concatenate([np.zeros(0, np.int64), *(i for _, i in parts)]),
        )

    def _reranked(self, Q: Any, k: int, found: Ids, originals: Originals) -> tuple[Float64Array, Ids]:
        """The k best of each row of ids by the true distance."""
        Q = np.asarray(checked_queries(self.encoder, Q, self.metric), np.float64)
        values = np.full(found.shape, np.inf)
        for row, ids in enumerate(found):
            held = ids >= 0
            vectors = originals(ids[held]) if callable(originals) else _rows_of(originals, ids[held])
            exact = np.asarray(real_array(vectors, "rerank", 2), np.float64)
            if exact.shape != (int(held.sum()), Q.shape[1]):
                raise InputError(f"rerank gave vectors of shape {exact.shape}, not {(int(held.sum()), Q.shape[1])}")
            if self.metric == "l2":
                values[row, held] = ((exact - Q[row]) ** 2).sum(axis=1)
            else:
                exact = unit_rows(exact, "rerank") if self.metric == "cosine" else exact
                values[row, held] = float(self.metric == "cosine") - exact @ Q[row]
        return best_of(values, found, k)


@contextmanager
def _undone(change: _Change) -> Iterator[None]:
    """An operation of a batch that fails leaves the rest of the batch as it was."""
    state, rows, ids, count, touched = change.state, change.rows, change.ids, len(change.rows), change.touched
    try:
        yield
    except BaseException:
        del rows[count:], ids[count:]
        change.state, change.rows, change.ids, change.touched = state, rows, ids, touched
        change.held = {i for part in ids for i in part.tolist()}
        raise


@contextmanager
def _sound_codes() -> Iterator[None]:
    """What the scan refuses in codes read from a file is damage."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, AntisparseError):
            raise
        raise FormatError(f"codes of the index cannot be scanned ({error}): it is damaged") from None


def _find(segments: Iterable[Segment], ids: Ids) -> tuple[Ids, Ids]:
    """Segment and place of each id, -1 where it is nowhere."""
    which, places = np.full(len(ids), -1, np.int64), np.full(len(ids), -1, np.int64)
    for number, segment in enumerate(segments):
        at = segment.find(ids)
        which[at >= 0] = number
        places[at >= 0] = at[at >= 0]
    return which, places


def _parts(segments: tuple[Segment, ...], filter: Any) -> list[tuple[Scanner, Ids | None]]:
    """The scans to make: whole segments, with some ids left out, or a few codes apart."""
    if filter is None:
        return [(segment.scanner, segment.positions) for segment in segments]
    allowed = np.asarray(filter)
    if allowed.ndim != 1 or not (allowed.dtype == bool or np.issubdtype(allowed.dtype, np.integer) or not len(allowed)):
        raise InputTypeError("filter must be a 1-dimensional array of ids or of bool")
    parts: list[tuple[Scanner, Ids | None]] = []
    for segment in segments:
        if allowed.dtype == bool:
            live = segment.live_places()
            names = segment.ids[live]
            inside = names < len(allowed)
            live = live[inside]
            places = live[allowed[names[inside]]]
        else:
            found = segment.find(np.unique(allowed.astype(np.int64)))
            places = np.sort(found[found >= 0])
        if not len(places):
            continue
        if _DENSE * len(places) < segment.rows:
            parts.append((segment.only(places), None))
        else:
            positions = np.full(len(segment.ids), -1, np.int64)
            positions[places] = segment.ids[places]
            parts.append((segment.scanner, positions))
    return parts


def _rows_of(originals: npt.NDArray[Any], ids: Ids) -> npt.NDArray[Any]:
    if len(ids) and ids.max() >= len(originals):
        raise InputError(f"rerank has {len(originals)} rows, but id {ids.max()} was found; pass a function of ids")
    rows: npt.NDArray[Any] = originals[ids]
    return rows


def _ids(value: Any, name: str) -> Ids:
    array = np.asarray(value)
    if array.ndim == 0:
        array = array[None]
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}; it must be 1-dimensional")
    if len(array) == 0:
        return np.zeros(0, np.int64)
    if array.dtype == bool or not np.issubdtype(array.dtype, np.integer):
        raise InputTypeError(f"{name} has dtype {array.dtype}; ids are integers")
    if (array < 0).any() or (array >= _MOST_ID).any():
        raise InputError(f"{name} has entries out of range; ids are not negative and below 2^63 - 1")
    return array.astype(np.int64)


def _distinct(ids: Ids) -> None:
    unique, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"ids has {unique[counts > 1][0]} twice")
