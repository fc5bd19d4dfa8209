"""What every store of codes does, in any database: arguments checked, vectors encoded, shortlists ranked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from antisparse._arrays import integer, shown
from antisparse.codec.codec import Codec
from antisparse.codes import Codes
from antisparse.connect.shortlist import SignRows, checked_keys, query_rows, shortlist_size
from antisparse.errors import InputError, InputTypeError

OWN = ("key", "bits", "rest")  # columns of every table
Candidates = tuple[list[Any], Codes, list[bytes]]  # keys, bits and the bytes beside them


class CodeStore(ABC):
    """Keys, codes and columns in a table of a database.

    Attributes
    ----------
    name : str
        Of the table.
    columns : tuple of str
        The columns beside keys and codes.
    """

    def __init__(self, name: str, rows: SignRows, columns: tuple[str, ...], text_keys: bool) -> None:
        self._rows, self._text_keys = rows, text_keys
        self.name = name
        self.columns = columns

    @abstractmethod
    def _write(self, keys: list[Any], bits: Codes, rest: Codes, columns: dict[str, Any]) -> None:
        """Add rows, all or none; InputError if a key is there already."""

    @abstractmethod
    def _delete(self, keys: list[Any]) -> int:
        """Remove rows; how many there were."""

    @abstractmethod
    def _candidates(
        self, bits: Codes, wanted: int, where: str | None, parameters: Sequence[Any], exact: bool
    ) -> list[Candidates]:
        """For each query's bits the `wanted` rows whose bits are nearest."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Give back what the database lends; what is asked later takes it again."""

    @property
    def codec(self) -> Codec:
        """What the codes are of."""
        return self._rows.codec

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.codec!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, X: Any, keys: Any, *, columns: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Add vectors, all of them or, if one cannot be, none.

        Parameters
        ----------
        X : array of shape (n, d)
        keys : sequence of str or int
            Of which none may be there yet.
        columns : mapping of str to sequence, optional
            Values of the other columns; null where they are left out.
        """
        codes = self.codec.encode(X)
        listed = self._checked(keys, len(codes))
        given = mapping(columns)
        for name, values in given.items():
            if name not in self.columns:
                raise InputError(f"columns names {shown(name)}; there are: {', '.join(self.columns) or 'none'}")
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
                raise InputTypeError(f"columns: {name!r} must be a sequence, not {type(values).__name__}")
            if len(values) != len(codes):
                raise InputError(f"columns: {name!r} must have a value for each of the {len(codes)} vectors")
        if listed:
            self._write(listed, self._rows.bits(codes), self._rows.rest(codes), given)

    def remove(self, keys: Any) -> int:
        """Remove vectors by their keys; returns how many were there."""
        listed = self._checked(keys)
        return self._delete(listed) if listed else 0

    def _checked(self, keys: Any, count: int | None = None) -> list[Any]:
        """Keys of the kind that the table has."""
        listed = checked_keys(keys, count)
        if listed and isinstance(listed[0], str) != self._text_keys:
            raise InputTypeError(
                f"keys must be {'texts' if self._text_keys else 'integers'}, as those of the table are"
            )
        return listed

    def search(
        self,
        Q: Any,
        k: int = 10,
        *,
        shortlist: int | None = None,
        where: str | None = None,
        parameters: Sequence[Any] = (),
        exact: bool = False,
    ) -> Any:
        """The k nearest: so many by the bits, in the database, and of these the k nearest by the rebuilt vectors.

        Parameters
        ----------
        Q : array of shape (n, d), or (d,) for one query
        k : int
        shortlist : int, optional
            Candidates; by default ten for every result, and a hundred at least. An HNSW index of pgvector gives at most
            1,000.
        where : str, optional
            A condition on the columns, in the database's SQL: only what meets it is found. It is part of the statement,
            so it must not come from strangers; their values go into `parameters`, for which it has ``%s`` (and ``%%``
            for a per cent sign).
        parameters : sequence
        exact : bool
            Look at all bits, even if there is an index of them.

        Returns
        -------
        distances, keys
            An array and a list for one query, of at most k; for several a list of such pairs.
        """
        k = integer(k, "k", 1)
        wanted = shortlist_size(k, None if shortlist is None else integer(shortlist, "shortlist", 1))
        if where is not None and not isinstance(where, str):
            raise InputTypeError(f"where must be a condition in SQL, not {shown(where)}")
        if isinstance(parameters, str) or not isinstance(parameters, Sequence):
            raise InputTypeError(f"parameters must be a sequence, not {shown(parameters)}")
        if where is None and len(parameters):
            raise InputError("parameters are given, but no where that would take them")
        queries, single = query_rows(self.codec, Q)
        lists = (
            self._candidates(self._rows.bits(self.codec.encode(queries)), wanted, where, parameters, exact)
            if len(queries)
            else []
        )
        answers = [
            self._rows.ranked(query, keys, bits, self._rows.rest_of(rest), k)
            for query, (keys, bits, rest) in zip(queries, lists, strict=True)
        ]
        return answers[0] if single else answers


def mapping(columns: Any) -> dict[str, Any]:
    """Columns by their names."""
    if columns is not None and not isinstance(columns, Mapping):
        raise InputTypeError(f"columns must be a mapping from names, not {type(columns).__name__}")
    return dict(columns or {})


def new_columns(columns: Any) -> dict[str, Any]:
    """Columns that a new table shall have beside its own."""
    given = mapping(columns)
    if reserved := [one for one in given if one in OWN]:
        raise InputError(f"columns names {reserved[0]!r}, which is a column of its own; choose another name")
    return given
