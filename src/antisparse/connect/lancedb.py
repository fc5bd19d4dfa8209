"""Codes in LanceDB: it compares the bits, and the shortlist is ranked here by the rebuilt vectors."""

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any, Literal, Self

import numpy as np

from antisparse._arrays import choice, first_line, integer, shown
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.connect.shortlist import HALF_A_CHARACTER, SignRows
from antisparse.connect.store import OWN, Candidates, CodeStore, new_columns
from antisparse.errors import (
    AntisparseError,
    FormatError,
    InputError,
    InputTypeError,
    MissingDependencyError,
    MissingFileError,
    StorageError,
    UnsupportedError,
)

_CODEC = b"antisparse.codec"  # in the schema of a table: the digest of its codec
_PRIMARY = {"lance-schema:unenforced-primary-key": "true"}  # two writers who merge the same key conflict
_LONGEST_WHERE = 1000  # characters: an expression of 1,000 operators overflows the stack of LanceDB's reader


class LanceCodes(CodeStore):
    """Keys, codes and columns in a table of LanceDB.

    The bits of the codes are a list of bytes of fixed size, which LanceDB compares by Hamming distance, by a scan or by
    an IVF index; the bytes beside them are binary. The codec is in a table of its own beside it. No vectors are stored
    as floats.

    `create` makes such a table, and `open` opens one that is there.

    Attributes
    ----------
    name : str
        Of the table.
    columns : tuple of str
        The columns beside keys and codes.
    table : lancedb.table.Table
        The table itself, for all that LanceDB can do with it: versions, compaction, indexes of columns.
    probes : int
        How many partitions of an IVF index a search looks at.

    Examples
    --------
    >>> from antisparse.connect.lancedb import LanceCodes
    >>> store = LanceCodes.create("data", "docs", encoder, columns={"lang": "string"})  # doctest: +SKIP
    >>> store.add(X, keys, columns={"lang": langs})  # doctest: +SKIP
    >>> distances, found = store.search(q, k=10, where="lang = %s", parameters=["en"])  # doctest: +SKIP
    """

    def __init__(self, table: Any, rows: SignRows, columns: tuple[str, ...], text_keys: bool, probes: int) -> None:
        super().__init__(table.name, rows, columns, text_keys)
        self.table, self.probes = table, probes
        self._digest = _digest(rows.codec.to_bytes())

    @classmethod
    def open(cls, uri: Any, name: str, *, probes: int = 20) -> Self:
        """The table of a name.

        Parameters
        ----------
        uri : str or path
            The folder of the database, or its address in an object store, as LanceDB takes it.
        name : str
        probes : int
            Partitions of an IVF index that a search looks at.
        """
        probes = integer(probes, "probes", 1)
        place = _place(uri)
        if "://" not in place and not os.path.isdir(place):
            raise MissingFileError(f"uri = {shown(place)}: there is no such folder; make a table by LanceCodes.create")
        database = _connected(place)
        table = _opened(database, name)
        if table is None:
            raise InputError(f"name = {name!r}: there is no such table of codes: make it by LanceCodes.create")
        with _typed(name):
            schema = table.schema
        digest = (schema.metadata or {}).get(_CODEC, b"").decode(errors="replace")
        rows = SignRows.of(Codec.from_bytes(_stored_codec(database, name, digest)))
        _check_schema(name, schema, rows, digest)
        return cls(table, rows, tuple(schema.names[3:]), schema.field("key").type == _pyarrow().string(), probes)

    @classmethod
    def create(
        cls,
        uri: Any,
        name: str,
        codec: Any,
        *,
        keys: Literal["text", "integer"] = "text",
        columns: Mapping[str, Any] | None = None,
        probes: int = 20,
    ) -> Self:
        """A new table without codes.

        Parameters
        ----------
        uri, name, probes
            As for `open`.
        codec : Codec or fitted encoder
            Of signs that compare: ``LearnedEncoder(n_bytes, symbols="signs", cells=1)``, for example.
        keys : {"text", "integer"}
        columns : mapping of str to str or pyarrow.DataType, optional
            More columns, for filters: their names and Arrow types, such as ``{"lang": "string", "year": "int64"}``.
        """
        rows = SignRows.of(codec)
        data = rows.codec.to_bytes()
        schema = _schema(rows, choice(keys, "keys", ("text", "integer")), new_columns(columns), _digest(data))
        database, pa = _connected(_place(uri)), _pyarrow()
        if not isinstance(name, str):
            raise InputTypeError(f"name must be text, not {shown(name)}")
        one = pa.table({"digest": [_digest(data)], "codec": pa.array([data], pa.large_binary())})
        with _typed(name, f"name = {name!r}"):
            # The codec first: what is left of a table that was never finished is a codec that no one asks for.
            codecs = database.create_table(f"{name}_codec", schema=one.schema, exist_ok=True)
            codecs.merge_insert("digest").when_not_matched_insert_all().execute(one)
            database.create_table(name, schema=schema)
        return cls.open(uri, name, probes=probes)

    def __len__(self) -> int:
        with _typed(self.name):
            return int(self.table.count_rows())

    def close(self) -> None:
        """Nothing is kept open that would have to be closed."""

    def _write(self, keys: list[Any], bits: Codes, rest: Codes, columns: dict[str, Any]) -> None:
        pa = _pyarrow()
        with _typed(self.name):
            schema = self.table.schema
        _check_schema(self.name, schema, self._rows, self._digest)
        arrays = [
            pa.array(keys, schema.field("key").type),
            pa.FixedSizeListArray.from_arrays(pa.array(bits.reshape(-1)), bits.shape[1]),
            pa.array([row.tobytes() for row in rest], pa.binary()),
        ]
        for name in schema.names[3:]:
            try:
                arrays.append(pa.array(columns.get(name, [None] * len(keys)), schema.field(name).type))
            except UnicodeEncodeError:
                raise InputError(f"columns: {name!r}: {HALF_A_CHARACTER}") from None
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                raise InputError(f"columns: {name!r}: {first_line(error)}") from None
        with _typed(self.name, "columns"):
            if there := self._there(keys):
                raise InputError(f"keys holds one that is there already: {shown(there[0])}")
            new = pa.table(arrays, schema=schema.remove_metadata())
            merged = self.table.merge_insert("key").when_not_matched_insert_all().execute(new)
        if merged.num_inserted_rows != len(keys):
            raise StorageError(
                f"{self.name!r}: another writer added {len(keys) - merged.num_inserted_rows} of these keys at the same "
                "time: theirs were kept, and the others were added"
            )

    def _there(self, keys: list[Any]) -> list[Any]:
        """Those of the keys that the table has."""
        pa = _pyarrow()
        wanted, found = pa.array(keys), []
        for batch in self.table.search().select(["key"]).limit(self.table.count_rows() or 1).to_batches():
            found += batch["key"].filter(pa.compute.is_in(batch["key"], wanted)).to_pylist()
        return found

    def _delete(self, keys: list[Any]) -> int:
        with _typed(self.name):
            return int(self.table.delete(f"key IN {_literal(keys)}").num_deleted_rows)

    def build_ivf(self, partitions: int | None = None) -> None:
        """Have LanceDB make an IVF index of the bits: shortlists are then approximate, and fast in large tables.

        Rows that are added later are scanned until ``table.optimize()`` puts them into it.

        Parameters
        ----------
        partitions : int, optional
            By default the square root of the number of rows.
        """
        count = None if partitions is None else integer(partitions, "partitions", 1)
        with _typed(self.name, "partitions"):
            index = _lancedb().index.IvfFlat(distance_type="hamming", num_partitions=count)
            self.table.create_index("bits", config=index)

    def _candidates(
        self, bits: Codes, wanted: int, where: str | None, parameters: Sequence[Any], exact: bool
    ) -> list[Candidates]:
        condition = None if where is None else f"({_filled(where, parameters)}\n)"
        with _typed(self.name, None if condition is None else "where"):
            found = [self._nearest(row, wanted, condition, exact) for row in bits]
            few = [place for place, rows in enumerate(found) if len(rows) < wanted]
            if few and not exact and self.table.list_indices():  # other partitions may have more
                for place in few:
                    found[place] = self._nearest(bits[place], wanted, condition, exact=True)
        return [
            (
                rows["key"].to_pylist(),
                rows["bits"].combine_chunks().flatten().to_numpy().reshape(len(rows), bits.shape[1]),
                rows["rest"].to_pylist(),
            )
            for rows in found
        ]

    def _nearest(self, row: Any, wanted: int, condition: str | None, exact: bool) -> Any:
        query = self.table.search(row, vector_column_name="bits").distance_type("hamming")
        # As many at least, and at most: where LanceDB may take more, it takes them all.
        query = query.bypass_vector_index() if exact else query.nprobes(self.probes)
        if condition is not None:
            query = query.where(condition, prefilter=True)
        return query.limit(wanted).select([*OWN, "_distance"]).to_arrow()


def _schema(rows: SignRows, keys: str, columns: Mapping[str, Any], digest: str) -> Any:
    """The columns of a table."""
    pa = _pyarrow()
    fields = [
        pa.field("key", pa.string() if keys == "text" else pa.int64(), nullable=False, metadata=_PRIMARY),
        pa.field("bits", pa.list_(pa.uint8(), rows.codec.layout.symbol_bytes), nullable=False),
        pa.field("rest", pa.binary(), nullable=False),
    ]
    for name, kind in columns.items():
        if not isinstance(name, str) or not re.fullmatch(r"[^\W\d][\w -]*", name):
            raise InputError(f"columns has {shown(name)}, which is no name: letters, digits, '_', '-' and blanks")
        try:
            fields.append(pa.field(name, pa.type_for_alias(kind) if isinstance(kind, str) else kind))
        except (ValueError, TypeError):
            raise InputError(f"columns: {name!r} has no type of Arrow, such as 'string', but {shown(kind)}") from None
    return pa.schema(fields, metadata={_CODEC: digest})


def _literal(value: Any) -> str:
    """A value as SQL; text ends where it ends, whatever is in it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        # The least would be read as a minus, and an integer that is too large.
        return str(value) if value > -(2**63) else f"CAST('{value}' AS BIGINT)"
    if isinstance(value, float) and math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, list | tuple) and value:
        return "(" + ", ".join(map(_literal, value)) + ")"
    raise InputTypeError(
        f"parameters holds {shown(value)}; pass texts, numbers, booleans, dates, None or lists of them"
    )


def _filled(where: str, parameters: Sequence[Any]) -> str:
    """A condition with its parameters in the place of its ``%s``."""
    if len(where) > _LONGEST_WHERE:
        raise InputError(f"where has {len(where)} characters, {_LONGEST_WHERE} at most; lists go into parameters")
    values = iter(parameters)

    def put(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if found[0] != "%s":
            raise InputError(f"where: {found[0]!r}; parameters are %s, and a per cent sign is %%")
        try:
            return _literal(next(values))
        except StopIteration:
            raise InputError(f"where: it has more %s than the {len(parameters)} parameters") from None

    filled = re.sub("%.?", put, where, flags=re.DOTALL)
    if next(values, values) is not values:
        raise InputError(f"where: it has fewer %s than the {len(parameters)} parameters")
    return filled


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _place(uri: Any) -> str:
    if not isinstance(uri, str | os.PathLike) or not isinstance(place := os.fspath(uri), str) or not place:
        raise InputTypeError(f"uri must be a folder, or the address of one in an object store, not {shown(uri)}")
    if "\0" in place:
        raise InputError("uri holds a zero character; leave it out")
    if place.startswith(("db://", "memory://")):
        raise UnsupportedError("uri: LanceDB Cloud and memory:// are not supported; name a folder or an object store")
    return place


def _connected(place: str) -> Any:
    """A database whose tables show at once what others write."""
    with _typed(place, "uri"):
        return _lancedb().connect(place, read_consistency_interval=timedelta(0))


def _opened(database: Any, name: Any) -> Any:
    """A table, or None if there is none."""
    if not isinstance(name, str):
        raise InputTypeError(f"name must be text, not {shown(name)}")
    try:
        with _typed(name, "name"):
            return database.open_table(name)
    except InputError as error:
        if "was not found" in str(error):
            return None
        raise


def _stored_codec(database: Any, name: str, digest: str) -> bytes:
    """The codec of a table, by its digest."""
    stored = _opened(database, f"{name}_codec")
    if digest and stored is not None:
        with _typed(name):
            found = stored.search().where(f"digest = {_literal(digest)}").limit(1).to_arrow()["codec"]
        if len(found) == 1 and _digest(codec := found[0].as_py()) == digest:
            return bytes(codec)
    raise FormatError(
        f"name = {name!r}: the table is none that LanceCodes.create made, or was changed: its codec is not in the "
        f"table {name}_codec"
    )


def _check_schema(name: str, schema: Any, rows: SignRows, digest: str) -> None:
    """FormatError if a table is not one of these codes, or no longer."""
    own = _schema(rows, "text", {}, digest)
    there = (schema.metadata or {}).get(_CODEC) == digest.encode() and tuple(schema.names[:3]) == OWN
    if not there or any(schema.field(one).type != own.field(one).type for one in OWN[1:]):
        raise FormatError(f"{name!r}: the table holds codes that are not of its codec; it was changed or made anew")


@contextmanager
def _typed(table: str, named: str | None = None) -> Iterator[None]:
    """Errors of LanceDB as ours: ValueError is for what it was given, or, where no argument is named, for its files."""
    try:
        yield
    except (AntisparseError, MemoryError):
        raise
    except UnicodeEncodeError:
        raise InputError(f"{named or 'a text'}: {HALF_A_CHARACTER}") from None
    except (ValueError, TypeError) as error:
        if named is None:
            raise FormatError(f"{table!r}: the table is damaged, or was changed: {_said(error)}") from None
        raise InputError(f"{named}: {_said(error)}") from None
    except (RuntimeError, OSError) as error:
        raise StorageError(f"{table!r}: LanceDB failed: {_said(error)}") from None


def _said(error: Exception) -> str:
    """Without the place in LanceDB's own source."""
    return re.sub(r",? \S*\.rs:\d.*|,? \S*/registry/src/.*", "", first_line(error))


def _lancedb() -> Any:
    try:
        import lancedb
        import lancedb.index
    except ImportError:
        raise MissingDependencyError("LanceDB is not installed: pip install 'antisparse[lancedb]'") from None
    return lancedb


def _pyarrow() -> Any:
    _lancedb()  # which brings it
    import pyarrow
    import pyarrow.compute

    return pyarrow
