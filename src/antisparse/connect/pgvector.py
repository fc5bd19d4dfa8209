"""Codes in PostgreSQL: pgvector compares the bits, and the shortlist is ranked here by the rebuilt vectors."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self, TypeVar

import numpy as np

from antisparse._arrays import choice, first_line, integer, nonnegative, shown
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.connect.shortlist import HALF_A_CHARACTER, SignRows
from antisparse.connect.store import OWN, Candidates, CodeStore, new_columns
from antisparse.errors import FormatError, InputError, InputTypeError, MissingDependencyError, StorageError

T = TypeVar("T")

TYPES = ("text", "integer", "bigint", "double precision", "boolean", "date", "timestamp with time zone", "jsonb")
_KEYS = {"text": "text", "integer": "bigint"}
_LONGEST = 48  # bytes of a name, which gets an ending; PostgreSQL cuts those of more than 63
_MOST_EF = 1000  # candidates that pgvector's HNSW takes


class PgCodes(CodeStore):
    """Keys, codes and columns in a table of PostgreSQL.

    The bits of the codes are ``bit(n)``, which pgvector compares by Hamming distance, by a scan or by an HNSW index;
    the bytes beside them are ``bytea``. The codec is in a table of its own beside it. No vectors are stored as floats.

    `create` makes such a table, and `open` opens one that is there.

    Attributes
    ----------
    name : str
        Of the table.
    columns : tuple of str
        The columns beside keys and codes.

    Examples
    --------
    >>> from antisparse.connect.pgvector import PgCodes
    >>> store = PgCodes.create("postgresql:///db", "docs", encoder, columns={"lang": "text"})  # doctest: +SKIP
    >>> store.add(X, keys, columns={"lang": langs})  # doctest: +SKIP
    >>> distances, found = store.search(q, k=10, where="lang = %s", parameters=["en"])  # doctest: +SKIP
    """

    def __init__(
        self, database: "_Database", name: str, rows: SignRows, columns: tuple[str, ...], text_keys: bool
    ) -> None:
        super().__init__(name, rows, columns, text_keys)
        self._database = database

    @classmethod
    def open(cls, conninfo: str, name: str, *, timeout: float = 30.0) -> Self:
        """The table of a name.

        Parameters
        ----------
        conninfo : str
            Where the database is, as psycopg takes it. A connection that was cut is made anew.
        name : str
        timeout : float
            Seconds that a statement may take; 0: any time.
        """
        database = _Database(conninfo, _name(name, "name"), timeout)
        try:
            return cls._opened(database)
        except BaseException:
            database.close()
            raise

    @classmethod
    def create(
        cls,
        conninfo: str,
        name: str,
        codec: Any,
        *,
        keys: Literal["text", "integer"] = "text",
        columns: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Self:
        """A new table without codes.

        Parameters
        ----------
        conninfo, name, timeout
            As for `open`.
        codec : Codec or fitted encoder
            Of signs that compare: ``LearnedEncoder(n_bytes, symbols="signs", cells=1)``, for example.
        keys : {"text", "integer"}
        columns : mapping of str to str, optional
            More columns, for filters: their names and types, such as ``{"lang": "text", "year": "integer"}``.
        """
        rows, own = SignRows.of(codec), _KEYS[choice(keys, "keys", tuple(_KEYS))]
        kinds = {_name(one, "columns"): choice(kind, "columns", TYPES) for one, kind in new_columns(columns).items()}
        sql = _psycopg().sql
        listed = [
            sql.SQL("key {} PRIMARY KEY").format(sql.SQL(own)),
            sql.SQL("bits bit({}) NOT NULL").format(sql.Literal(rows.n_bits)),
            sql.SQL("rest bytea NOT NULL"),
            *(sql.SQL("{} {}").format(sql.Identifier(one), sql.SQL(kind)) for one, kind in kinds.items()),
        ]
        database = _Database(conninfo, _name(name, "name"), timeout)

        def make(cursor: Any) -> None:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(database.table, sql.SQL(", ").join(listed)))
            cursor.execute(sql.SQL("CREATE TABLE {} (codec bytea NOT NULL)").format(database.codec_table))
            inserted = sql.SQL("INSERT INTO {} VALUES (%s)").format(database.codec_table)
            cursor.execute(inserted, (rows.codec.to_bytes(),))

        try:
            database.do(make)
            return cls._opened(database)
        except BaseException:
            database.close()
            raise

    @classmethod
    def _opened(cls, database: "_Database") -> Self:
        """With the codec that is there, and the columns that there are."""
        sql = _psycopg().sql

        def load(cursor: Any) -> tuple[list[Any], list[Any]]:
            cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 2").format(database.codec_table))
            stored = cursor.fetchall()
            cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(database.table))
            return stored, list(cursor.description)

        stored, described = database.do(load, again=True)
        names = tuple(one.name for one in described)
        foreign = f"name = {database.name!r}: the table is none that PgCodes.create made, or was changed"
        if len(stored) != 1 or len(stored[0]) != 1 or not isinstance(stored[0][0], bytes) or names[:3] != OWN:
            raise FormatError(foreign)
        try:
            rows = SignRows.of(Codec.from_bytes(stored[0][0]))
        except FormatError as error:
            raise FormatError(f"{foreign}: its codec: {error}") from None
        if described[1].type_display != f"bit({rows.n_bits})":
            raise FormatError(f"{foreign}: it holds codes that are not of its codec")
        return cls(database, database.name, rows, names[3:], described[0].type_display == _KEYS["text"])

    def __len__(self) -> int:
        sql = _psycopg().sql
        counted = sql.SQL("SELECT count(*) FROM {}").format(self._database.table)
        return int(self._database.do(lambda cursor: cursor.execute(counted).fetchone()[0], again=True))

    def close(self) -> None:
        """Close the connection; what is asked later makes another."""
        self._database.close()

    def _write(self, keys: list[Any], bits: Codes, rest: Codes, columns: dict[str, Any]) -> None:
        sql = _psycopg().sql
        names = sql.SQL(", ").join(map(sql.Identifier, (*OWN, *columns)))
        copied = sql.SQL("COPY {} ({}) FROM STDIN").format(self._database.table, names)
        texts = self._bit_texts(bits)

        def write(cursor: Any) -> None:
            with cursor.copy(copied) as copy:
                for number, key in enumerate(keys):
                    values = (_stored(values[number]) for values in columns.values())
                    copy.write_row((key, texts[number], rest[number].tobytes(), *values))

        self._database.do(write, named="columns")

    def _bit_texts(self, bits: Codes) -> list[str]:
        signs = np.unpackbits(bits, axis=1, count=self._rows.n_bits)
        return [row.tobytes().decode("ascii") for row in signs + np.uint8(ord("0"))]

    def _delete(self, keys: list[Any]) -> int:
        sql = _psycopg().sql
        removed = sql.SQL("DELETE FROM {} WHERE key = ANY(%s)").format(self._database.table)
        return int(self._database.do(lambda cursor: cursor.execute(removed, (keys,)).rowcount))

    def build_hnsw(self, m: int = 16, ef_construction: int = 64) -> None:
        """Have pgvector make an HNSW index of the bits: shortlists are then approximate, and fast."""
        sql = _psycopg().sql
        made = sql.SQL("CREATE INDEX {} ON {} USING hnsw (bits bit_hamming_ops) WITH (m = {}, ef_construction = {})")
        name = sql.Identifier(f"{self.name}_hnsw")
        numbers = integer(m, "m", 2, 101), integer(ef_construction, "ef_construction", 4, 1001)
        self._database.do(
            lambda cursor: cursor.execute(made.format(name, self._database.table, *map(sql.Literal, numbers)))
        )

    def _candidates(
        self, bits: Codes, wanted: int, where: str | None, parameters: Sequence[Any], exact: bool
    ) -> list[Candidates]:
        sql = _psycopg().sql
        condition = sql.SQL("" if where is None else f" WHERE ({where}\n)")
        # No index serves a sum: all bits are looked at then, and equal distances go by the key.
        order = sql.SQL(" + 0, key" + ' COLLATE "C"' * self._text_keys if exact else "")
        found = sql.SQL("SELECT key, bits::text, rest FROM {}{} ORDER BY (bits <~> %s::bit({})){} LIMIT %s").format(
            self._database.table, condition, sql.Literal(self._rows.n_bits), order
        )

        def ask(cursor: Any) -> list[list[Any]]:
            cursor.execute(
                f"SET TRANSACTION READ ONLY; SET LOCAL hnsw.ef_search = {min(wanted, _MOST_EF)}; "
                "SET LOCAL hnsw.iterative_scan = strict_order"
            )
            return [cursor.execute(found, (*parameters, one, wanted)).fetchall() for one in self._bit_texts(bits)]

        lists = self._database.do(ask, again=True, named="where" if where is not None else None)
        return [([key for key, _, _ in rows], self._packed(rows), [rest for _, _, rest in rows]) for rows in lists]

    def _packed(self, found: list[Any]) -> Codes:
        """The bits of rows, from texts of zeros and ones."""
        signs = np.frombuffer("".join(bits for _, bits, _ in found).encode(), np.uint8) - np.uint8(ord("0"))
        return np.packbits(signs.reshape(len(found), self._rows.n_bits), axis=1)


class _Database:
    """A connection, made when it is needed, and again when it was cut. Threads take turns."""

    def __init__(self, conninfo: str, name: str, timeout: float) -> None:
        if not isinstance(conninfo, str):
            raise InputTypeError(f"conninfo must be text, such as 'postgresql:///db', not {type(conninfo).__name__}")
        try:
            _psycopg().conninfo.conninfo_to_dict(conninfo)
        except (_psycopg().ProgrammingError, UnicodeEncodeError):  # which would show it, and it may hold a password
            raise InputError("conninfo is none that psycopg reads; it is such as 'postgresql://user@host/db'") from None
        self.name = name
        self._conninfo = conninfo
        self._milliseconds = int(1000 * nonnegative(timeout, "timeout"))
        self._connection: Any = None
        self._mutex = threading.RLock()

    @property
    def table(self) -> Any:
        """The name of the table, as part of a statement."""
        return _psycopg().sql.Identifier(self.name)

    @property
    def codec_table(self) -> Any:
        """The name of the table of the codec."""
        return _psycopg().sql.Identifier(f"{self.name}_codec")

    def do(self, deed: Callable[[Any], T], again: bool = False, named: str | None = None) -> T:
        """What a function does in a transaction, its errors as ours; what only reads is done again if it was cut."""
        psycopg = _psycopg()
        with self._mutex, _typed(self.name, named):
            for last in (not again, True):
                try:
                    if self._connection is None or self._connection.closed:
                        self._connection = psycopg.connect(self._conninfo)
                        self._connection.execute(f"SET statement_timeout = {self._milliseconds}")
                        self._connection.commit()
                    with self._connection.transaction(), self._connection.cursor() as cursor:
                        return deed(cursor)
                except psycopg.OperationalError:
                    if last or self._connection is None or not self._connection.closed:
                        raise
            raise AssertionError

    def close(self) -> None:
        """Close the connection."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


@contextmanager
def _typed(table: str, named: str | None) -> Iterator[None]:
    """Errors of the database as ours."""
    psycopg = _psycopg()
    try:
        yield
    except UnicodeEncodeError:
        raise InputError(f"{named or 'a text'}: {HALF_A_CHARACTER}") from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise StorageError(f"{table!r}: the database does not allow it: {first_line(error)}") from None
    except psycopg.errors.UniqueViolation as error:
        raise InputError(f"keys holds one that is there already: {first_line(error)}") from None
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        if named != "where":
            raise InputError(f"name = {table!r}: there is no such table of codes: make it by PgCodes.create") from None
        raise InputError(f"{named}: {first_line(error)}") from None
    except (psycopg.errors.StringDataLengthMismatch, psycopg.errors.DataException) as error:
        if named == "where":
            raise InputError(f"where: {first_line(error)}") from None
        raise FormatError(f"{table!r}: the table holds codes that are not of its codec: {first_line(error)}") from None
    except psycopg.errors.DuplicateTable as error:
        raise InputError(f"name = {table!r}: {first_line(error)}; open it, or remove it first") from None
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise InputError(f"{named or 'a value'}: {first_line(error)}") from None
    except psycopg.errors.QueryCanceled as error:
        raise StorageError(f"{table!r}: {first_line(error)}; raise timeout=") from None
    except psycopg.Error as error:
        raise StorageError(f"{table!r}: the database failed: {first_line(error)}") from None


def _stored(value: Any) -> Any:
    """A value as psycopg takes it: numbers of numpy as those of Python, and what JSON holds as JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict | list):
        from psycopg.types.json import Jsonb

        try:
            return Jsonb(json.dumps(value), dumps=str)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputTypeError(f"columns holds what JSON cannot say: {first_line(error)}") from None
    return value


def _name(value: Any, argument: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{argument} has {shown(value)}, which is no name")
    if len(value.encode("utf-8", "surrogatepass")) > _LONGEST:
        raise InputError(f"{argument} has a name of more than {_LONGEST} bytes; choose a shorter one")
    return value


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
        import psycopg.sql
    except ImportError:
        raise MissingDependencyError("PostgreSQL needs psycopg: pip install 'antisparse[pgvector]'") from None
    return psycopg
