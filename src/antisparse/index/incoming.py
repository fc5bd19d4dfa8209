"""What comes into an index: vectors, codes or tables, encoded and checked before anything is written."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from antisparse._arrays import text_list
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.errors import InputError, UnsupportedError
from antisparse.index.build import BATCH, with_bar
from antisparse.index.item_schema import ItemSchema, pyarrow, table_of
from antisparse.index.items import Table
from antisparse.index.manifest import ModelEntry
from antisparse.index.sources import TableSource, is_source, source_of
from antisparse.index.state import id_array
from antisparse.index.tables import is_mixed, is_table, vector_column, vectors_of
from antisparse.index.texts import BATCH as TEXTS
from antisparse.index.texts import VECTOR, TextModel, column_texts, is_embedded, names_files, needed, text_table
from antisparse.scan.columns import Ids


@dataclass(frozen=True)
class Part:
    """Code rows to be added, their ids, unless these are the next ones, and their items, where the index keeps any."""

    rows: Codes
    ids: Ids | None = None
    items: Table | None = None


@dataclass(frozen=True)
class Incoming:
    """The way into an index that has this codec and keeps such items."""

    codec: Codec
    schema: ItemSchema | None
    n_threads: int | None
    kept: ModelEntry | None = None
    model: TextModel | None = None
    vector: str | None = None  # the column of vectors, if it is another than before

    def parts(self, X: Any, ids: Any, items: Any, progress: bool) -> Iterator[Part]:
        """Vectors, texts or a table, or an iterator of such, a part at a time."""
        given = None if ids is None else id_array(ids, "ids")
        X, items = self._as_table(X, items)
        if items is None and (is_source(X) or (self._text is not None and is_table(X))):
            table = source_of(X, "X")
            X = with_bar(self._batches(table), table.total, progress)
        if not isinstance(X, Iterator):
            return iter([self._part(X, given, items, 0)])  # what is wrong with it is said before anything is done
        if items is not None:
            raise InputError("items cannot be given beside an iterator; let it give tables")
        return self._several(X, given)

    def whole(self, X: Any, items: Any) -> Part:
        """All of it as one part."""
        parts = list(self.parts(X, None, items, False))
        if len(parts) == 1:
            return parts[0]
        rows = [np.zeros((0, self.codec.n_bytes), np.uint8), *(part.rows for part in parts)]
        ids = [part.ids for part in parts if part.ids is not None]
        tables = [part.items for part in parts if part.items is not None]
        return Part(
            np.concatenate(rows),
            np.concatenate(ids) if ids else None,
            pyarrow().concat_tables(tables) if tables else None,
        )

    @property
    def _text(self) -> str | None:
        """The column of texts that is embedded, unless a column of vectors is named."""
        return None if self.kept is None or self.vector is not None else self.kept.text

    def _as_table(self, X: Any, items: Any = None) -> tuple[Any, Any]:
        """Texts and what is kept beside as one table, where texts are embedded; anything else, a path say, as it is."""
        found = None if self._text is None or isinstance(X, str) else text_list(X, "X")
        if found is None or self._text is None:
            return X, items
        if names_files(found):
            raise InputError("X holds names of files, where texts are wanted; pass a path, a glob, or Path objects")
        table = text_table(found, self._text)
        if items is None:
            return table, None
        beside = table_of(items, "items")
        if len(beside) != len(table):
            raise InputError(f"items has {len(beside)} rows for {len(table)} texts")
        if self._text in beside.column_names and beside.column(self._text).to_pylist() != found:
            raise InputError(f"items, column {self._text!r}, holds other texts than X; leave it out")
        if self._text not in beside.column_names:
            beside = beside.append_column(self._text, table.column(0))
        return beside, None

    def _batches(self, table: TableSource) -> Iterator[Any]:
        """The batches of a table that is read a part at a time: of vectors alone, if nothing else is kept."""
        column, rows = self._column(table.schema), BATCH if self._text is None else TEXTS
        for whole in table.batches([column] if self.schema is None else self.schema.read_with(column)):
            for at in range(0, whole.num_rows, rows):
                batch = whole.slice(at, rows)
                yield self._vectors(batch) if self.schema is None else batch

    def _column(self, schema: Any) -> str:
        """The column that vectors are made of: that of the vectors, or that of the texts."""
        if is_embedded(schema):
            return VECTOR
        if self._text is not None and self._text in schema.names:
            return self._text
        known = self.vector
        if known is None and self.schema is not None and self.schema.vector in schema.names:
            known = self.schema.vector
        return vector_column(schema, known)

    def _vectors(self, table: Table) -> Any:
        """The vectors of a table in memory."""
        column = self._column(table.schema)
        if column != self._text:
            return vectors_of(table, column)
        if not len(table):
            return np.zeros((0, self.codec.input_dimension))
        return needed(self.model, "X").documents(column_texts(table, column))

    def _several(self, X: Iterator[Any], given: Ids | None) -> Iterator[Part]:
        at = 0
        for one in X:
            part = self._part(one, None, None, at)
            count = len(part.rows)
            if given is not None and len(given) < at + count:
                raise InputError(f"ids has {len(given)} entries, but X has more vectors")
            yield part if given is None else self._with_ids(part, given[at : at + count])
            at += count
        if given is not None and at != len(given):
            raise InputError(f"ids has {len(given)} entries, but X has {at} vectors")

    def _split(self, X: Any) -> tuple[Any, Table | None]:
        """The vectors of a table in memory, and the table, if anything of it is kept."""
        table = table_of(X, "X")
        return self._vectors(table), None if self.schema is None else table

    def _part(self, X: Any, ids: Ids | None, items: Any, first_row: int) -> Part:
        X, items = self._as_table(X, items)
        if is_mixed(X) or (is_table(X) and (self.schema is not None or self._text is not None)):
            X, own = self._split(X)
            items = own if items is None else items
        return self.with_items(self._encode(X, first_row), ids, items)

    def with_items(self, rows: Codes, ids: Ids | None, items: Any) -> Part:
        """Code rows and what is kept of them beside."""
        if self.schema is None:
            if items is not None:
                raise UnsupportedError("the index keeps no items; build it from a table, or pass items= to create")
            return Part(rows, ids)
        if items is None:
            raise InputError("items is missing: the index keeps items beside its vectors; add a table, or pass items=")
        keys, table = self.schema.split(items, "items")
        count = len(rows) if table is None and keys is None else len(table if keys is None else keys)
        if count != len(rows):
            raise InputError(f"items has {count} rows for {len(rows)} vectors")
        part = Part(rows, keys, table)
        return part if ids is None else self._with_ids(part, ids)

    def _with_ids(self, part: Part, ids: Ids) -> Part:
        if self.schema is not None and self.schema.key is not None:
            raise InputError(f"ids cannot be given where items have a key, here {self.schema.key!r}; leave them out")
        return replace(part, ids=ids)

    def replacement(self, X: Any, ids: Any, items: Any) -> tuple[Codes, Any, Table | None]:
        """Code rows, the ids or keys whose they are, and their items, if these are replaced, too."""
        X, items = self._as_table(X, items)
        alone = self.schema is not None and items is None and ids is None
        if (is_mixed(X) and self.schema is None) or (is_table(X) and (self._text is not None or alone)):
            X, own = self._split(X)
            items = own if items is None else items
        rows, table = self._encode(X), None
        if items is not None:
            part = self.with_items(rows, None, items)
            table = part.items
            if self.schema is not None and self.schema.key is not None:
                own = part.ids if table is None or self.schema.key_is_id else table.column(self.schema.key)
                if ids is not None:
                    raise InputError(
                        f"ids cannot be given beside items, whose key is {self.schema.key!r}; leave them out"
                    )
                ids = own
        if ids is None:
            raise InputError("ids is missing: say whose vectors these are")
        return rows, ids, table

    def _encode(self, X: Any, first_row: int = 0) -> Codes:
        return self.codec.encode(X, n_threads=self.n_threads, first_row=first_row)
