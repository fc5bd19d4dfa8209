"""The index: codes by id, in memory or in a folder; the small face of snapshots and their writer (docs/index.md)."""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from antisparse._arrays import boolean, folder_of, optional_name, thread_count
from antisparse.codec.codec import Codec, codec_of
from antisparse.codes import Codes
from antisparse.errors import InputError, UnsupportedError
from antisparse.index.build import Learning, Source, TableToBuild, appearing, check_new_path
from antisparse.index.incoming import Incoming, Part
from antisparse.index.item_schema import ItemSchema
from antisparse.index.manifest import read_manifest
from antisparse.index.objects import is_address
from antisparse.index.reader import Reader
from antisparse.index.remote import RemoteStore, cache_place, save_remote
from antisparse.index.snapshot import Snapshot
from antisparse.index.state import id_array
from antisparse.index.store import FolderStore, MemoryStore
from antisparse.index.texts import TextModel
from antisparse.index.writer import Writer
from antisparse.metrics import MetricName
from antisparse.scan.columns import Ids
from antisparse.scan.search import Searcher


class Index(Reader):
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

    def __init__(
        self, store: MemoryStore | FolderStore, snapshot: Snapshot, n_threads: int | None, model: TextModel | None
    ) -> None:
        self._writer = Writer(store, snapshot)
        self.n_threads = n_threads
        self._model = model

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
        text: str | None = None,
        model: Any = None,
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
        X : array of shape (n, d), iterator of such arrays, table, or sequence of texts
            May be memory-mapped. Of an iterator the first `train` vectors are learned from. A table is one of Arrow,
            pandas or polars, an iterator of such (then name a column: `vector`, say), a `pyarrow.dataset`, a reader of
            record batches, or files of tables: a path, several, a folder, a glob, an address such as "s3://...". Files
            are read a batch at a time. Texts need a `model`, and are kept as the column "text".
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
        text : str, optional
            The column of texts that `model` makes the vectors of, where the table has none.
        model : object with a method encode, or str, optional
            What makes vectors of texts, or the name of a model of sentence-transformers that is on this machine. Its
            name is kept, and searches take texts. With vectors that are made already it is what made them.
        cells : int or "auto"
            Cells, of which a search may visit a few (`probes`); their number takes one to three of the bytes. "auto":
            what has the most recall below a million vectors, about the square root of their number beyond, and four
            times it from ten millions on, 65,536 at most.
        symbols, effort, dimensions
            As for `LearnedEncoder`.
        train : int
            Learn from at most so many vectors; but more than 4,096 cells from 40 for each.
        learn : array of shape (n', d), optional
            Learn from these in place of some of X.
        progress : bool
            Show progress, with the time left, on standard error.
        random_state : int, RandomState or None
        n_threads : int, optional
            All available CPUs by default.
        """
        thread_count(n_threads)
        boolean(progress, "progress")
        place = None if path is None else folder_of(path)
        if place is not None:
            check_new_path(place)
        embedder = TextModel.of(model)
        table = TableToBuild.of(X, vector, key, columns, text, embedder)
        learning = Learning(n_bytes, metric, cells, symbols, effort, dimensions, train, random_state)
        source = Source.chosen(X, table, learning, learn, progress)
        ids = source.check_ids(ids)
        codec = learning.codec(source.train, source.name, source.total, progress, n_threads)
        source = source.learned()
        kept = None if embedder is None else embedder.entry(None if table is None else table.text)
        empty = Snapshot(Searcher(codec), schema=source.schema, model=kept)
        if place is None:
            index = cls._made(None, empty, n_threads, embedder)
            index.add(source.shown(progress), ids)
            return index
        with appearing(place) as folder, cls._made(folder, empty, n_threads, embedder) as index:
            index.add(source.shown(progress), ids)
        return cls.open(place, model=embedder, n_threads=n_threads)

    @classmethod
    def create(
        cls,
        path: str | Path | None,
        codec: Any,
        *,
        metric: MetricName | None = None,
        items: Any = None,
        key: str | None = None,
        text: str | None = None,
        model: Any = None,
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
        text, model
            As for `build`: the column of texts that are embedded, and what embeds them.
        """
        fitted = codec_of(codec, metric)
        thread_count(n_threads)
        embedder, column = TextModel.of(model), optional_name(text, "text")
        if column is not None and embedder is None:
            raise InputError(f"text = {column!r} is embedded by a model: pass model=")
        kept = None if embedder is None else embedder.entry(column)
        empty = Snapshot(Searcher(fitted), schema=ItemSchema.declared(items, key), model=kept)
        return cls._made(path, empty, n_threads, embedder)

    @classmethod
    def _made(cls, path: Any, empty: Snapshot, n_threads: int | None, model: TextModel | None) -> Self:
        if path is None:
            return cls(MemoryStore(), empty, n_threads, model)
        return cls(*FolderStore.create(folder_of(path), empty), n_threads, model)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        verify: bool = False,
        memory: bool = False,
        model: Any = None,
        cache: str | Path | None = None,
        cache_bytes: int | None = None,
        n_threads: int | None = None,
    ) -> Self:
        """An index in a folder. One process may have it open for writing; readers keep the state they opened.

        Parameters
        ----------
        path : path, or address
            An index at an address in an object store, such as "s3://bucket/folder", is always read only.
        read_only : bool
            Any number of processes may read, while one writes.
        verify : bool
            Read everything and compare checksums. Without it headers and the manifest are checked, and codes are read
            when searched.
        memory : bool
            Read all codes into memory. By default files are mapped: if someone truncates a mapped file in place, or its
            disk fails, the system kills a process that reads it (SIGBUS).
        model : object with a method encode, or str, optional
            What makes vectors of texts, as for `build`. An index that keeps the name of a model takes no other.
        cache : path, optional
            Where the files of an address are kept on this machine; by default $ANTISPARSE_CACHE, or a folder of the
            user's cache.
        cache_bytes : int, optional
            How many bytes of them, of all addresses; by default $ANTISPARSE_CACHE_BYTES, or 64 GiB.
        n_threads : int, optional
        """
        thread_count(n_threads)
        if is_address(path):
            boolean(read_only, "read_only")
            far = RemoteStore(str(path), *cache_place(cache, cache_bytes), boolean(memory, "memory"))
            snapshot = far.open(verify=boolean(verify, "verify"))
            return cls(far, snapshot, n_threads, TextModel.of(model, snapshot.model))
        folder = folder_of(path)
        if not os.path.isdir(folder):
            raise InputError(f"path = {str(path)!r}: there is no such folder; make an index with Index.build")
        boolean(verify, "verify")
        embedder = TextModel.of(model, read_manifest(folder).model)  # before there is a lock in a folder that is none
        store = FolderStore(folder, boolean(read_only, "read_only"), boolean(memory, "memory"))
        try:
            store.lock()
            return cls(store, store.open(verify=verify), n_threads, embedder)
        except BaseException:
            store.close()
            raise

    def save(self, path: str | Path) -> None:
        """Write the index, such as one in memory, to a folder that does not exist or is empty, or to an address."""
        if is_address(path):
            save_remote(str(path), self.snapshot)
        else:
            FolderStore.create(folder_of(path), self.snapshot)[0].close()

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

    @property
    def snapshot(self) -> Snapshot:
        """The present state; it never changes, and changes of the index do not reach it."""
        return self._writer.snapshot

    @property
    def _state(self) -> Snapshot:
        return self._writer.snapshot

    def __repr__(self) -> str:
        place = "in memory" if self._writer.store.place is None else repr(self._writer.store.place)
        return f"Index({len(self):,} vectors, {self.codec!r}, {place})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._writer.store.place is not None:
            raise UnsupportedError(
                "an index that is stored is not pickled; send its path, and open it there with Index.open(path, "
                "read_only=True)"
            )
        snapshot = self.snapshot
        ids, schema = snapshot.ids, snapshot.schema
        items = None if schema is None else snapshot.items(ids)
        kept = {"next_id": snapshot.next_id, "schema": schema, "model": snapshot.model}
        return _from_codes, (self.codec, kept, snapshot.codes(ids), ids, items, self.n_threads, self._model)

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
        `items` a table of the rest. Where texts are embedded, their column stands for that of vectors, and an index of
        texts alone takes more of them.
        """
        incoming = replace(self._incoming, vector=optional_name(vector, "vector"))
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
        snapshot = self.snapshot
        return Incoming(snapshot.codec, snapshot.schema, self.n_threads, snapshot.model, self._model)


def _from_codes(
    codec: Codec, kept: dict[str, Any], codes: Codes, ids: Ids, items: Any, n_threads: int | None, model: Any
) -> Index:
    """An index in memory, from what was pickled."""
    empty = Snapshot(Searcher(codec), **kept)
    index = Index(MemoryStore(), empty, n_threads, model)
    if len(ids):
        table = None if empty.schema is None else empty.schema.split(items, "items")[1]
        index._writer.add([Part(codes, ids, table)])
    return index
