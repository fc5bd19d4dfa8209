"""What is kept of every item: its columns, and which of them is the key."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line, optional_name, shown, texts
from antisparse._containers import package_of
from antisparse.errors import FormatError, InputError, InputTypeError, MissingDependencyError
from antisparse.index.manifest import ItemsEntry

Hashes = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int64]

ANSWERS = ("query", "rank", "distance")  # the columns of answers, beside those of items
_LONGEST_KEY = 1 << 16  # bytes


def pyarrow() -> Any:
    """pyarrow, which indexes without items do without."""
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("items need pyarrow: pip install 'antisparse[tables]'") from None
    return pyarrow


@dataclass(frozen=True)
class ItemSchema:
    """The columns of items. Types are those of Arrow with offsets of 64 bits and without dictionaries.

    Attributes
    ----------
    entry : ItemsEntry
        What the manifest says of it.
    """

    entry: ItemsEntry

    @classmethod
    def of(cls, schema: Any, key: str | None, columns: Sequence[str], vector: str | None) -> "ItemSchema":
        """Some columns of a table, and perhaps one that is the key: text, or integers, which are then the ids."""
        pa = pyarrow()
        key, columns = optional_name(key, "key"), texts(columns, "columns")
        fields, kind = [], None
        names = [*([] if key is None else [key]), *columns]
        for name in names:
            if names.count(name) > 1 or name == vector:
                raise InputError(f"columns name {name!r} twice, or a column that is the key or the vector")
            if name in ANSWERS or (name == "id" and key is None):
                raise InputError(f"columns name {name!r}, which is a column of every answer; rename it in the table")
            field = _field(schema, name, "key" if name == key else "columns")
            plain = _plain_type(field.type, name)
            if name == key:
                if pa.types.is_integer(plain):
                    kind = "integer"
                    continue
                if not pa.types.is_large_string(plain):
                    raise InputTypeError(
                        f"key = {key!r} is a column of {field.type}; keys are integers or text: cast it to one of them"
                    )
                kind = "text"
            fields.append(pa.field(name, plain, nullable=name != key))
        text = base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()
        return cls(ItemsEntry(key, kind, vector, text))

    @classmethod
    def declared(cls, schema: Any, key: Any) -> "ItemSchema | None":
        """As a caller says it: all columns of an Arrow schema; None for none."""
        if schema is None:
            if key is not None:
                raise InputError(f"key = {shown(key)}, but items is None; pass the schema of the items")
            return None
        pa = pyarrow()
        if not isinstance(schema, pa.Schema):
            raise InputTypeError(f"items must be a pyarrow.Schema, not {shown(schema)}")
        key = optional_name(key, "key")
        return cls.of(schema, key, [name for name in schema.names if name != key], None)

    @classmethod
    def read(cls, entry: ItemsEntry) -> "ItemSchema":
        """From the manifest, without trust."""
        pa = pyarrow()
        try:
            found = cls(entry)
            for field in found.stored:
                if _plain_type(field.type, field.name) != field.type:
                    raise ValueError("it has a type that no item has")
            names = found.stored.names
            if len(set(names)) != len(names) or (entry.key_kind == "text") != (entry.key in names):
                raise ValueError("its columns or its key are not sound")
            if entry.key_kind == "text" and not pa.types.is_large_string(found.stored.field(entry.key).type):
                raise ValueError("its key is no text")
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError) as error:
            raise FormatError(f"the schema of its items is not sound ({str(error)[:200]})") from None
        return found

    @property
    def key(self) -> str | None:
        """The name of the key, if items have one."""
        return self.entry.key

    @property
    def vector(self) -> str | None:
        """The name of the column that vectors came from."""
        return self.entry.vector

    @property
    def key_is_text(self) -> bool:
        """Whether the key is text; else it is the id, or there is none."""
        return self.entry.key_kind == "text"

    @property
    def key_is_id(self) -> bool:
        """Whether the ids are the keys."""
        return self.entry.key_kind == "integer"

    @cached_property
    def stored(self) -> Any:
        """The Arrow schema of what is stored: all columns, and the key if it is text."""
        pa = pyarrow()
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.entry.schema, validate=True)))

    @property
    def columns(self) -> list[str]:
        """The names of the columns without the key."""
        return [name for name in self.stored.names if name != self.key]

    def read_with(self, vector: str) -> list[str]:
        """The columns that are read of a table: that of its vectors, the key, and what is kept."""
        names = [vector, *([] if self.key is None else [self.key]), *self.columns]
        return list(dict.fromkeys(names))  # texts that are embedded may be kept as well

    @property
    def summary(self) -> dict[str, str]:
        """What it keeps, in words."""
        return {"key": self.key or "none", "columns": ", ".join(self.columns) or "none"}

    def split(self, data: Any, name: str) -> tuple[Ids | None, Any]:
        """Ids, where they are the keys, and the table of what is stored, of a table that has all columns."""
        pa = pyarrow()
        table = table_of(data, name)
        ids = None
        if self.key_is_id:
            ids = _integers(_column(table, self.key, name), f"{name}, column {self.key!r},")
        arrays = []
        for field in self.stored:
            column = _column(table, field.name, name)
            if field.name == self.key:
                _check_keys(column, f"{name}, column {field.name!r},")
            try:
                arrays.append(cast_column(column, field.type))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                raise InputTypeError(
                    f"{name}, column {field.name!r}, is of type {column.type}, and does not fit {field.type}, "
                    "the type that the index has; cast it first"
                ) from None
        return ids, pa.Table.from_arrays(arrays, schema=self.stored) if arrays else None

    def shown(self, ids: Ids, table: Any) -> Any:
        """A table of what is stored as callers see it: the key first."""
        if not self.key_is_id:
            return table
        pa = pyarrow()
        key = pa.array(ids)
        if table is None:
            return pa.table({self.key: key})
        return table.add_column(0, pa.field(self.key, pa.int64(), nullable=False), key)


def cast_column(column: Any, kind: Any) -> Any:
    """A column, or an array, of another type: what Arrow casts, and dictionaries of views, which it does not."""
    pa = pyarrow()
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:
        if not pa.types.is_dictionary(column.type):
            raise
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    plain = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    return pa.chunked_array(plain, kind) if hasattr(column, "chunks") else plain[0]


def table_of(data: Any, name: str) -> Any:
    """An Arrow table of one, of a batch, a frame of pandas or polars, or a dict of columns."""
    pa = pyarrow()
    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if package_of(data) == "pandas" and type(data).__name__ == "DataFrame":
            return pa.Table.from_pandas(data, preserve_index=False)
        if isinstance(data, dict) or hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, LookupError) as error:
        raise InputError(f"{name} is no table: {first_line(error)}") from None
    raise InputTypeError(f"{name} must be a table (Arrow, pandas, polars) or a dict of columns, not {shown(data)}")


def key_hashes(keys: Sequence[str]) -> Hashes:
    """64 bits of each key, by which it is found."""
    # A lone surrogate is no text that Arrow has: such a key is looked for, and not found.
    digests = (hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _column(table: Any, column: str | None, name: str) -> Any:
    count = table.column_names.count(column)
    if count != 1:
        raise InputError(f"{name} has {count} columns {column!r}; it must have one, since the index keeps it")
    return table.column(column)


def _field(schema: Any, name: str, argument: str) -> Any:
    if schema.names.count(name) != 1:
        raise InputError(
            f"{argument} names {name!r}; the table has the columns {', '.join(map(repr, schema.names))[:500]}"
        )
    return schema.field(name)


def _integers(column: Any, name: str) -> Ids:
    pa = pyarrow()
    if not pa.types.is_integer(column.type):
        raise InputTypeError(f"{name} is of type {column.type}; the keys of this index are integers")
    if column.null_count:
        raise InputError(f"{name} has nulls; every item needs a key")
    try:
        ids: Ids = np.array(column.cast(pa.int64()).to_numpy())  # not a view of what is the caller's
    except (pa.ArrowException, ValueError):
        raise InputError(f"{name} has entries out of range; integer keys are from 0 on and below 2^63 - 1") from None
    if len(ids) and (ids.min() < 0 or ids.max() >= 2**63 - 1):
        raise InputError(
            f"{name} has entries out of range; integer keys are from 0 on and below 2^63 - 1: make text of others"
        )
    return ids


def _check_keys(column: Any, name: str) -> None:
    pa = pyarrow()
    if column.null_count:
        raise InputError(f"{name} has nulls; every item needs a key")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        raise InputTypeError(f"{name} is of type {column.type}; the keys of this index are text")
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(column.cast(pa.large_string()))).as_py() or 0
    if longest > _LONGEST_KEY:
        raise InputError(f"{name} has a key of {longest} bytes; keys have at most {_LONGEST_KEY}")


def _plain_type(kind: Any, name: str) -> Any:
    """The type that is stored for one: offsets of 64 bits, no dictionaries, no extensions."""
    pa = pyarrow()
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type, name)
    if t.is_dictionary(kind) or getattr(t, "is_run_end_encoded", lambda _: False)(kind):
        return _plain_type(kind.value_type, name)
    if t.is_string(kind) or t.is_large_string(kind) or getattr(t, "is_string_view", lambda _: False)(kind):
        return pa.large_string()
    if t.is_binary(kind) or t.is_large_binary(kind) or getattr(t, "is_binary_view", lambda _: False)(kind):
        return pa.large_binary()
    views = (getattr(t, f"is_{which}list_view", lambda _: False)(kind) for which in ("", "large_"))
    if t.is_list(kind) or t.is_large_list(kind) or any(views):
        return pa.large_list(_plain_type(kind.value_type, name))
    if t.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type, name), kind.list_size)
    if t.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type, name)) for field in kind])
    if (
        t.is_primitive(kind)
        or t.is_decimal(kind)
        or t.is_fixed_size_binary(kind)
        or t.is_null(kind)
        or t.is_boolean(kind)
    ):
        return kind
    raise InputTypeError(f"column {name!r} is of type {kind}, which items cannot have; cast it, or leave it out")
