"""Items: the columns that stand beside the codes of a segment, in an Arrow file, a row a code (docs/format.md).

Row r of a segment's items belongs to the r-th of its ids, ascending. pyarrow is imported where there are items.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line
from antisparse.errors import AntisparseError, FormatError
from antisparse.index.files import checksum, mapped
from antisparse.index.item_schema import ItemSchema, pyarrow
from antisparse.index.manifest import FileEntry

Table = Any  # pyarrow.Table, which is not imported
Batch = Any  # pyarrow.RecordBatch
Rows = npt.NDArray[np.int64]

BATCH = 8192  # rows of every batch of a file but the last


@contextmanager
def _reading(name: object, what: str) -> Iterator[None]:
    """Whatever Arrow raises at bytes that are no items is a FormatError."""
    try:
        yield
    except AntisparseError:
        raise
    except (pyarrow().ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError) as error:
        raise FormatError(f"{name}: {what} ({first_line(error)})") from None


def checked_reader(file: Any, schema: ItemSchema, rows: int, name: str) -> Any:
    """An Arrow file of items, of which no batch is read yet; FormatError unless it can be that of so many rows."""
    with _reading(name, "not a sound Arrow file"):
        reader = pyarrow().ipc.open_file(file)
        if not reader.schema.equals(schema.stored):
            raise FormatError(f"{name}: its columns are not those of the index: the file is damaged")
        if reader.num_record_batches != -(-rows // BATCH):
            raise FormatError(f"{name}: it does not hold {rows} items: the file is damaged")
    return reader


class Items:
    """The items of a segment, in memory or in a mapped file. Any number of threads may read them.

    The batches of a file are checked when they are first read: what they hold is not trusted before.
    """

    def __init__(self, schema: ItemSchema, rows: int, source: Any, path: Path | None = None) -> None:
        self.schema = schema
        self.rows = rows
        self._source = source  # the bytes of a file, or batches
        self._path = path
        self._read: list[Batch] | None = None
        self._checked = bytearray(-(-rows // BATCH))

    @classmethod
    def read(cls, schema: ItemSchema, path: Path, entry: FileEntry, rows: int, memory: bool, verify: bool) -> "Items":
        """From the file that the manifest names; `verify` reads every byte of it first."""
        source = mapped(path, entry.size, memory)
        if verify and checksum(np.frombuffer(source, np.uint8)) != entry.crc32:
            raise FormatError(f"{path}: its checksum does not match the manifest: the file is damaged")
        if rows > BATCH * len(source):  # a batch takes some bytes
            raise FormatError(f"{path}: it does not hold {rows} items: the file is damaged")
        items = cls(schema, rows, source, path)
        items._reader()
        if verify:
            for number in range(len(items._checked)):
                items.batch(number)
        return items

    @classmethod
    def of(cls, schema: ItemSchema, batches: Iterable[Batch]) -> "Items":
        """In memory."""
        held = list(batches)
        return cls(schema, sum(batch.num_rows for batch in held), held)

    @property
    def nbytes(self) -> int:
        """The bytes of all columns."""
        return sum(batch.nbytes for batch in self._batches)

    def _reader(self) -> Any:
        pa = pyarrow()
        return checked_reader(pa.BufferReader(pa.py_buffer(self._source)), self.schema, self.rows, str(self._path))

    @property
    def _batches(self) -> list[Batch]:
        """All batches, not yet checked: only where they are is read. Without a lock, which a fork might find held."""
        if self._read is None:
            self._read = self._source if self._path is None else self._all()
        return self._read

    def _all(self) -> list[Batch]:
        reader = self._reader()
        with _reading(self._path, "not a sound Arrow file"):
            return [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def batch(self, number: int) -> Batch:
        """One batch of rows."""
        batch = self._batches[number]
        if not self._checked[number]:
            with _reading(self._path, "its items are damaged"):
                wanted = min(BATCH, self.rows - number * BATCH)
                if batch.num_rows != wanted:
                    raise ValueError(f"a batch of {batch.num_rows} rows, where {wanted} belong")
                if self._path is not None:
                    batch.validate(full=True)
                    if self.schema.key_is_text and batch.column(self.schema.key).null_count:
                        raise ValueError("a key is null")
            self._checked[number] = 1
        return batch

    def batches(self) -> Iterator[Batch]:
        """All of them, in order."""
        return (self.batch(number) for number in range(len(self._checked)))

    def take(self, rows: Rows, names: Sequence[str] | None = None) -> Table:
        """The columns of some rows, in their order; `names` are those of the columns wanted."""
        pa = pyarrow()
        numbers, within = np.divmod(rows, BATCH)
        schema = self.schema.stored
        if names is not None:
            schema = pa.schema([schema.field(name) for name in names])
        parts, places = [], []
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            batch = self.batch(number)
            parts.append((batch if names is None else batch.select(list(names))).take(pa.array(within[mine])))
            places.append(mine)
        table = pa.Table.from_batches(parts, schema)
        if len(parts) < 2:
            return table
        return table.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))

    def keys(self, rows: Rows) -> list[str]:
        """The keys of some rows, where keys are text."""
        assert self.schema.key is not None
        found: list[str] = self.take(rows, [self.schema.key]).column(0).to_pylist()
        return found


def gathered(schema: ItemSchema, sources: Sequence[tuple[Items, Rows]], order: Rows) -> Iterator[Batch]:
    """Batches of the rows of several items, put one after the other and then in an order: a few at a time."""
    ends = np.cumsum([len(rows) for _, rows in sources])
    pa = pyarrow()
    for start in range(0, len(order), BATCH):
        wanted = order[start : start + BATCH]
        which = np.searchsorted(ends, wanted, "right")
        parts, places = [], []
        for number in np.unique(which).tolist():
            items, rows = sources[number]
            mine = np.flatnonzero(which == number)
            parts.append(items.take(rows[wanted[mine] - (ends[number] - len(rows))]))
            places.append(mine)
        table = pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
        yield from in_batches(schema, table)


def in_batches(schema: ItemSchema, table: Table) -> Iterator[Batch]:
    """A table as batches of the size that all have but the last."""
    pa = pyarrow()
    for start in range(0, table.num_rows, BATCH):
        part = table.slice(start, BATCH)
        yield pa.RecordBatch.from_arrays([_whole(column) for column in part.columns], schema=schema.stored)


def _whole(column: Any) -> Any:
    """A column in one piece. `concat_arrays` copies, so that nothing of the caller's is held."""
    pa = pyarrow()
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class _Sink:
    """What an Arrow file is written to: parts, that are taken away as they come."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        self._at += len(self.parts[-1])
        return len(self.parts[-1])

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True


def packed(schema: ItemSchema, batches: Iterable[Batch]) -> Iterator[bytes]:
    """The bytes of an Arrow file, a part at a time."""
    pa, sink = pyarrow(), _Sink()
    writer = pa.ipc.new_file(sink, schema.stored)
    for batch in batches:
        writer.write_batch(batch)
        yield b"".join(sink.parts)
        sink.parts.clear()
    writer.close()
    yield b"".join(sink.parts)
