"""The index: codes by id, in memory or in a folder; the small face of snapshots and their writer (docs/index.md)."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, boolean, folder_of, optional_name, renamed, thread_count
from antisparse.codec.codec import Codec, codec_of
from antisparse.codec.queries import Method, Query
from antisparse.codes import Codes
from antisparse.errors import InputError, UnsupportedError
from antisparse.index.build import Source, appearing, cell_count, check_new_path
from antisparse.index.incoming import Incoming, Part
from antisparse.index.item_schema import ItemSchema
from antisparse.index.manifest import read_manifest
from antisparse.index.snapshot import Originals, Snapshot, id_array
from antisparse.index.store import FolderStore, MemoryStore
from antisparse.index.tables import answers
from antisparse.index.writer import Writer
from antisparse.metrics import MetricName
from antisparse.scan.columns import Ids
from antisparse.scan.search import Search, Searcher

Probes = int | Literal["all"]


class Index:
    """Codes by id: made by `Index.build` or `Index.create`, found again by `Index.open`.

    Every change is on the disk when the call returns, whole or not at all. Searches see the state of their beginning;
    any number of threads may search while one adds.

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import Index
    >>> X = np.random.default_rng(0).standard_normal((1000, 16))
    >>> index = Index.build(X, n_bytes=8, random_state=0)  # path="FOLDER" keeps it on disk
    >>> distances, ids = index.search(X[:3], k=2)
    >>> ids[:, 0]
    array([0, 1, 2])
    """

    def __init__(self, store: MemoryStore | FolderStore, snapshot: Snapshot, n_threads: int | None) -> None:
        self._writer = Writer(store, snapshot)
        self.n_threads = n_threads

    @classmethod
    def build(
        cls,
        X: Any,
        n_bytes: int = 16,
        *,
        path: str | Path | None = None,
        metric: MetricName = "l2",
        ids: Any = None,
        vector: str | None = None,
        key: str | None = None,
        columns: Any = None,
        cells: int | Literal["auto"] = "auto",
        symbols: str = "auto",
        effort: Literal[1, 2, 3] = 2,
        dimensions: int | None = None,
        train: int = 100_000,
        learn: Any = None,
        progress: bool = False,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> Self:
        """Learn codes of `n_bytes` from a sample of the vectors, and make an index of all of them.

        Parameters
        ----------
        X : array of shape (n, d), iterator of such arrays, or table
            May be memory-mapped. Of an iterator the first `train` vectors are learned from. A table is one of Arrow,
            pandas or polars, a `pyarrow.dataset`, a reader of record batches, or files of tables: a path, several, a
            folder, a glob, an address such as "s3://...". Files are read a batch at a time.
        n_bytes : int
            All that is stored of a vector but its id.
        path : path, optional
            A folder that does not exist: it appears when the index is whole. By default the index is in memory.
        metric : {"l2", "cosine", "ip"}
        ids : array of int, optional
            By default the numbers of the rows.
        vector : str, optional
            The column of the table that holds vectors; by default the only one that can.
        key : str, optional
            The column that is the key of every item: text, or integers, which are then the ids.
        columns : sequence of str, optional
            The columns to keep beside the codes.
        cells : int or "auto"
            Cells, of which a search may visit a few (`probes`); their number takes one or two of the bytes. "auto":
            what has the most recall below a million vectors, and about the square root of their number beyond.
        symbols, effort, dimensions
            As for `LearnedEncoder`.
        train : int
            Learn from at most so many vectors.
        learn : array of shape (n', d), optional
            Learn from these in place of some of X.
        progress : bool
            Show progress, with the time left, on standard error.
        random_state : int, RandomState or None
        n_threads : int, optional
            All available CPUs by default.
        """
        from antisparse.encoders.learned import LearnedEncoder

        thread_count(n_threads)
        boolean(progress, "progress")
        place = None if path is None else folder_of(path)
        if place is not None:
            check_new_path(place)
        source = Source.chosen(X, (vector, key, columns), train, learn, random_state)
        ids = source.check_ids(ids)
        encoder = LearnedEncoder(
            n_bytes,
            metric=metric,
            symbols=symbols,
            cells=cell_count(cells, source.total, min(len(source.train), train)),
            effort=effort,
            dimensions=dimensions,
            train=train,
            verbose=progress,
            random_state=random_state,
            n_threads=n_threads,
        )
        with renamed(X=source.name):
            encoder.fit(source.train)
        if place is None:
            index = cls._made(None, encoder, n_threads, source.schema)
            index.add(source.shown(progress), ids)
            return index
        with appearing(place) as folder, cls._made(folder, encoder, n_threads, source.schema) as index:
            index.add(source.shown(progress), ids)
        return cls.open(place, n_threads=n_threads)

    @classmethod
    def create(
        cls,
        path: str | Path | None,
        codec: Any,
        *,
        metric: MetricName | None = None,
        items: Any = None,
        key: str | None = None,
        n_threads: int | None = None,
    ) -> Self:
        """A new index without codes.

        Parameters
        ----------
        path : path or None
            A folder that does not exist, or is empty; None keeps the index in memory.
        codec : Codec or fitted encoder
            What is done to an encoder later does not reach the index. Its cells are those of the index.
        metric : {"l2", "cosine", "ip"}, optional
            Checked against the codec, which knows it.
        items : pyarrow.Schema, optional
            The columns to keep beside the codes: a text, a category, a date.
        key : str, optional
            The one of these that is the key of every item: text, or integers, which are then the ids.
        """
        fitted = codec_of(codec, metric)
        thread_count(n_threads)
        return cls._made(path, fitted, n_threads, ItemSchema.declared(items, key))

    @classmethod
    def _made(cls, path: Any, codec: Any, n_threads: int | None, schema: ItemSchema | None) -> Self:
        fitted = codec_of(codec, None)
        if path is None:
            return cls(MemoryStore(), Snapshot(Searcher(fitted), schema=schema), n_threads)
        return cls(*FolderStore.create(folder_of(path), fitted, schema=schema), n_threads)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        verify: bool = False,
        memory: bool = False,
        n_threads: int | None = None,
    ) -> Self:
        """An index in a folder. One process may have it open for writing; readers keep the state they opened.

        Parameters
        ----------
        path : path
        read_only : bool
            Any number of processes may read, while one writes.
        verify : bool
            Read everything and compare checksums. Without it headers and the manifest are checked, and codes are read
            when searched.
        memory : bool
            Read all codes into memory. By default files are mapped: if someone truncates a mapped file in place, or its
            disk fails, the system kills a process that reads it (SIGBUS).
        n_threads : int, optional
        """
        thread_count(n_threads)
        folder = folder_of(path)
        if not os.path.isdir(folder):
            raise InputError(f"path = {str(path)!r}: there is no such folder; make an index with Index.build")
        boolean(verify, "verify")
        read_manifest(folder)  # before there is a lock in a folder that is no index
        store = FolderStore(folder, boolean(read_only, "read_only"), boolean(memory, "memory"))
        try:
            store.lock()
            return cls(store, store.open(verify=verify), n_threads)
        except BaseException:
            store.close()
            raise

    def save(self, path: str | Path) -> None:
        """Write the index, such as one in memory, to a folder that does not exist or is empty."""
        now = self.snapshot
        store, _ = FolderStore.create(folder_of(path), now.codec, now.segments, now.next_id, now.schema)
        store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write. The index can still be searched."""
        self._writer.close()

    def refresh(self) -> None:
        """See what was written since: for readers."""
        self._writer.refresh()

    # What is there.

    @property
    def snapshot(self) -> Snapshot:
        """The present state; it never changes, and changes of the index do not reach it."""
        return self._writer.snapshot

    @property
    def codec(self) -> Codec:
        """What codes vectors."""
        return self.snapshot.codec

    @property
    def metric(self) -> MetricName:
        """What is nearest."""
        return self.codec.metric_name

    def __len__(self) -> int:
        return len(self.snapshot)

    def __contains__(self, value: object) -> bool:
        snapshot = self.snapshot
        if isinstance(value, str) and snapshot.schema is not None and snapshot.schema.key_is_text:
            return bool(snapshot.find_keys([value])[0] >= 0)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            return False
        return bool(snapshot.contains(np.array([value], np.int64)).all())

    def __repr__(self) -> str:
        store = self._writer.store
        place = repr(str(store.folder)) if isinstance(store, FolderStore) else "in memory"
        return f"Index({len(self):,} vectors, {self.codec!r}, {place})"

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._writer.store, FolderStore):
            raise UnsupportedError(
                "an index in a folder is not pickled; send its path, and open it there with Index.open(path, "
                "read_only=True)"
            )
        snapshot = self.snapshot
        ids, schema = snapshot.ids, snapshot.schema
        items = None if schema is None else snapshot.items(ids)
        return _from_codes, (self.codec, snapshot.codes(ids), ids, snapshot.next_id, self.n_threads, schema, items)

    @property
    def ids(self) -> Ids:
        """All ids, ascending."""
        return self.snapshot.ids

    @property
    def cells(self) -> int:
        """The number of cells, one for a flat index."""
        return self.codec.n_cells

    def stats(self) -> dict[str, Any]:
        """Vectors, bytes, segments, cells."""
        return self.snapshot.stats()

    def codes(self, ids: Any) -> Codes:
        """The code rows of some ids, or keys."""
        return self.snapshot.codes(ids)

    def items(self, keys: Any = None) -> Any:
        """The items of some keys, or ids, in their order as an Arrow table; by default all, in the order of ids."""
        snapshot = self.snapshot
        return snapshot.items(snapshot.ids if keys is None else snapshot.ids_of(keys, "keys"))

    def reconstruct(self, ids: Any) -> Float64Array:
        """The vectors that the codes of some ids, or keys, stand for."""
        snapshot = self.snapshot
        return snapshot.codec.decode(snapshot.codes(ids), n_threads=self.n_threads)

    # Changes.

    def batch(self) -> AbstractContextManager[Self]:
        """Changes within are made at its end, all or, if an error leaves it, none. Searches within do not see them."""
        return self._writer.batch(self)  # no generator around it, which an interrupt might leave before its end

    def add(
        self, X: Any, ids: Any = None, *, items: Any = None, vector: str | None = None, progress: bool = False
    ) -> Ids:
        """Add vectors (n, d), or an iterator of such arrays; returns their ids.

        Ids are distinct, not negative, and not yet there; by default they go on from the largest ever used. With an
        iterator, memory holds about a million codes at a time, and all are added at once, at the end.

        To an index that keeps items, add tables of any kind that `build` takes, which have the column of vectors (the
        same as before, or `vector`), the key and all columns that are kept, or an iterator of such; or vectors, and as
        `items` a table of the rest.
        """
        incoming = Incoming(self.codec, self.snapshot.schema, self.n_threads, optional_name(vector, "vector"))
        done = self._writer.add(incoming.parts(X, ids, items, boolean(progress, "progress")))
        return np.concatenate([np.zeros(0, np.int64), *done])

    def add_codes(self, codes: Any, ids: Any = None, *, items: Any = None) -> Ids:
        """Add code rows that the codec made elsewhere, and their items."""
        rows = self.codec.check_codes(codes, "codes")
        part = self._incoming.with_items(rows, None if ids is None else id_array(ids, "ids"), items)
        return self._writer.add([part])[0]

    def remove(self, ids: Any) -> None:
        """Remove the vectors of some ids, or keys, all of which must be there."""
        self._writer.remove(lambda snapshot: snapshot.ids_of(ids, "ids"))

    def update(self, X: Any, ids: Any = None, *, items: Any = None) -> None:
        """Replace the vectors of some ids, or keys, all of which must be there.

        Their items stay, unless `items` replaces them, too; a table replaces both, and its keys say whose.
        """
        rows, whose, table = self._incoming.replacement(X, ids, items)
        self._writer.update(rows, lambda snapshot: snapshot.ids_of(whose, "ids"), table)

    def compact(self) -> None:
        """Make all segments one, without what was deleted."""
        self._writer.compact()

    def verify(self) -> None:
        """Read everything that is on the disk and compare it with its checksums; FormatError if it is damaged."""
        self._writer.store.verify()

    @property
    def _incoming(self) -> Incoming:
        return Incoming(self.codec, self.snapshot.schema, self.n_threads)

    # Searches.

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
            Give an Arrow table, a row a result, in place of distances and ids: query, rank (from 1), distance, the key
            and the columns of the item.
        """
        snapshot, threads = self.snapshot, self._threads(n_threads)
        if boolean(items, "items") and snapshot.schema is None:
            raise UnsupportedError("items = True, but the index keeps no items; build it from a table")
        if rerank is not None:  # of candidates by any method: the shortlist is no second stage on codes
            what = Search(k, method, query, _probes(probes))
            found = snapshot.rescored(Q, what, shortlist, filter, rerank, threads)
        else:
            what = Search(k, method, query, _probes(probes), shortlist, shortlist_method)
            found = snapshot.search(Q, what, filter, threads)
        return answers(snapshot, *found) if items else found

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
        what = Search(1, method, query, _probes(probes))
        return self.snapshot.range_search(Q, radius, what, filter, self._threads(n_threads))

    def _threads(self, n_threads: int | None) -> int:
        return thread_count(self.n_threads if n_threads is None else n_threads)


def _probes(probes: Probes) -> int | None:
    return None if isinstance(probes, str) and probes == "all" else probes


def _from_codes(
    codec: Codec,
    codes: Codes,
    ids: Ids,
    next_id: int,
    n_threads: int | None,
    schema: ItemSchema | None = None,
    items: Any = None,
) -> Index:
    """An index in memory, from what was pickled."""
    index = Index.create(None, codec, n_threads=n_threads)
    writer = index._writer
    writer.snapshot = replace(writer.snapshot, schema=schema)
    if len(ids):
        writer.add([Part(codes, ids, None if schema is None else schema.split(items, "items")[1])])
    writer.snapshot = replace(writer.snapshot, next_id=next_id)
    return index
