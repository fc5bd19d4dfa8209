"""Filters by expression: ``lang = 'en' and year >= 2020`` on the columns of items.

The text is parsed by sqlglot. Only what is listed here is then computed, by Arrow, column by column: comparisons,
`and`, `or`, `not`, `in`, `between`, `like`, `is null`. Nothing in it reads a file, calls a function or runs a query.
Nulls are SQL's: a comparison with null is neither true nor false, and an item is found where the whole is true.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line, shown
from antisparse.errors import InputError, InputTypeError, MissingDependencyError, UnsupportedError
from antisparse.index.item_schema import ItemSchema, pyarrow

Columns = Callable[[str], Any]  # the Arrow array of a column by its name
Computed = Callable[[Columns], Any]

_LONGEST = 10_000  # characters
_COMPARED = {
    "EQ": "equal",
    "NEQ": "not_equal",
    "GT": "greater",
    "GTE": "greater_equal",
    "LT": "less",
    "LTE": "less_equal",
}
_TURNED = {"EQ": "EQ", "NEQ": "NEQ", "GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}


class Expression:
    """A filter, checked against the columns of an index.

    Attributes
    ----------
    names : list of str
        The columns that it reads.
    """

    def __init__(self, text: str, schema: ItemSchema) -> None:
        pa = pyarrow()
        self._types = {field.name: field.type for field in schema.stored}
        if schema.key_is_id:
            self._types[str(schema.key)] = pa.int64()
        self._text = text
        self.names: list[str] = []
        try:
            self._computed = self._node(_parsed(text))
            found = self._computed(
                lambda name: pa.array([], self._types[name])
            )  # types that do not agree are found here
        except RecursionError:
            raise InputError("filter is nested too deeply; write it with fewer parentheses") from None
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            if isinstance(error, InputError | InputTypeError):
                raise
            raise InputTypeError(f"filter compares what does not compare: {first_line(error)}") from None
        if not pa.types.is_boolean(found.type):
            raise InputTypeError(f"filter gives {found.type}, where it must be true or false")

    def rows(self, columns: Columns, count: int) -> npt.NDArray[np.bool_]:
        """Where it is true, of so many rows."""
        pa = pyarrow()
        try:
            found = self._computed(columns)
        except pa.ArrowException as error:  # an integer that floats do not hold, say
            raise InputError(f"filter could not be computed: {first_line(error)}") from None
        if isinstance(found, pa.Scalar):
            return np.full(count, bool(found.as_py()))
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), bool)

    def _refuse(self, node: Any, why: str = "is not part of a filter") -> InputError:
        where: dict[str, Any] = next((part.meta for part in node.walk() if "col" in part.meta), {})
        place = f"line {where['line']}, column {where['col']}: " if where else ""
        return InputError(f"filter: {place}{shown(node.sql('duckdb'))} {why}")

    def _node(self, node: Any) -> Computed:
        """What a part of the expression computes: true, false or null for each row."""
        import pyarrow.compute as pc
        from sqlglot import exp

        pa = pyarrow()
        kind = type(node).__name__
        if isinstance(node, exp.Paren):
            return self._node(_only(self, node, "this").this)
        if isinstance(node, exp.And | exp.Or):
            function = pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene
            parts = [self._node(part) for part in _only(self, node, "this", "expression").flatten()]
            return lambda columns: _joined(function, [part(columns) for part in parts])
        if isinstance(node, exp.Not):
            inner = self._node(_only(self, node, "this").this)
            return lambda columns: pc.invert(inner(columns))
        if isinstance(node, exp.Boolean):
            value = pa.scalar(bool(node.this))
            return lambda columns: value
        if isinstance(node, exp.Column):
            name = self._column(node)
            if not pa.types.is_boolean(self._types[name]):
                raise self._refuse(node, f"is a column of {self._types[name]}; compare it with something")
            return lambda columns: columns(name)
        if kind in _COMPARED:
            return self._compared(kind, _only(self, node, "this", "expression"))
        if isinstance(node, exp.Between):
            _only(self, node, "this", "low", "high")
            low = self._compared("GTE", exp.GTE(this=node.this, expression=node.args["low"]))
            high = self._compared("LTE", exp.LTE(this=node.this, expression=node.args["high"]))
            return lambda columns: pc.and_kleene(low(columns), high(columns))
        if isinstance(node, exp.Like | exp.ILike):
            return self._like(_only(self, node, "this", "expression", "negate"))
        if isinstance(node, exp.Is):
            return self._is(_only(self, node, "this", "expression"))
        if isinstance(node, exp.In):
            return self._in(_only(self, node, "this", "expressions", "field"))
        if isinstance(node, exp.ArrayContains):
            _only(self, node, "this", "expression", "ensure_variant", "check_null")
            return self._contains(node.this, node.expression)
        raise self._refuse(node)

    def _column(self, node: Any) -> str:
        from sqlglot import exp

        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise self._refuse(node, "is no column")
        _only(self, node, "this")
        name = str(node.this.this)
        if name not in self._types:
            raise self._refuse(node, f"is no column; there are {', '.join(map(repr, self._types))[:300]}")
        if name not in self.names:
            self.names.append(name)
        return name

    def _value(self, node: Any, kind: Any) -> Any:
        """A literal as an Arrow scalar to be compared with a column of some type."""
        from sqlglot import exp

        pa = pyarrow()
        t = pa.types
        sign = 1
        while isinstance(node, exp.Paren | exp.Neg):
            sign, node = (-sign if isinstance(node, exp.Neg) else sign), node.this
        if isinstance(node, exp.Null):
            raise self._refuse(node, "is equal to nothing; write `is null` or `is not null`")
        if isinstance(node, exp.Boolean) and t.is_boolean(kind):
            return pa.scalar(bool(node.this))
        dated = isinstance(node, exp.Cast) and str(node.to.this.value) in (
            "DATE",
            "TIMESTAMP",
            "TIMESTAMPNTZ",
            "TIMESTAMPTZ",
        )
        if dated:
            node = node.this
        if not isinstance(node, exp.Literal):
            raise self._refuse(node, "is no value: a number, 'text', true, false or date '2020-01-31'")
        text = str(node.this)
        if node.is_string:
            if sign < 0:
                raise self._refuse(node, "has no sign")
            if t.is_temporal(kind):
                try:
                    return pa.scalar(text).cast(kind)
                except (pa.ArrowException, ValueError):
                    raise self._refuse(node, f"is no value of {kind}") from None
            if not (t.is_large_string(kind) or t.is_string(kind)) or dated:
                raise self._refuse(node, f"is text, and is compared with a column of {kind}")
            return pa.scalar(text, pa.large_string())
        if not (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)):
            raise self._refuse(node, f"is a number, and is compared with a column of {kind}")
        try:
            whole = sign * int(text)
        except ValueError:
            return pa.scalar(sign * float(text))
        if -(2**63) <= whole < 2**63:
            return pa.scalar(whole, pa.int64())
        return pa.scalar(float(whole))

    def _compared(self, kind: str, node: Any) -> Computed:
        import pyarrow.compute as pc
        from sqlglot import exp

        pa = pyarrow()
        left, right = node.this, node.expression
        if not isinstance(left, exp.Column):
            kind, left, right = _TURNED[kind], right, left
        if isinstance(left, exp.Any) and kind == "EQ":  # 'x' = any(tags)
            return self._contains(left.this.unnest(), right)
        function, name = getattr(pc, _COMPARED[kind]), self._column(left)
        if isinstance(right, exp.Column):
            other = self._column(right)
            return lambda columns: function(columns(name), columns(other))
        value = self._value(right, self._types[name])
        if pa.types.is_floating(value.type) and pa.types.is_integer(self._types[name]):
            # A limit between two integers, or beyond all: floats do not hold large ones exactly.
            return self._around(kind, name, float(value.as_py()))
        return lambda columns: function(columns(name), value)

    def _around(self, kind: str, name: str, limit: float) -> Computed:
        """Integers compared with a float, exactly."""
        import pyarrow.compute as pc

        pa = pyarrow()
        if not np.isfinite(limit):
            limit = np.copysign(1e30, limit)
        floor = int(np.floor(limit))
        whole = floor == limit
        if kind in ("EQ", "NEQ") and not (whole and -(2**63) <= floor < 2**63):
            return lambda columns: pc.if_else(pc.is_valid(columns(name)), kind == "NEQ", pa.scalar(None, pa.bool_()))
        if not -(2**63) <= floor < 2**63:
            always = (limit > 0) == (kind in ("LT", "LTE"))
            return lambda columns: pc.if_else(pc.is_valid(columns(name)), always, pa.scalar(None, pa.bool_()))
        if not whole:  # x < 2.5 is x <= 2, and x > 2.5 is x > 2
            kind = {"LT": "LTE", "GTE": "GT"}.get(kind, kind)
        function, value = getattr(pc, _COMPARED[kind]), pa.scalar(floor, pa.int64())
        return lambda columns: function(columns(name), value)

    def _like(self, node: Any) -> Computed:
        import pyarrow.compute as pc
        from sqlglot import exp

        name, pattern = self._column(node.this), node.expression
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise self._refuse(pattern, "is no pattern: write 'a%'")
        ignore, text = isinstance(node, exp.ILike), str(pattern.this)
        if node.args.get("negate"):
            return lambda columns: pc.invert(pc.match_like(columns(name), text, ignore_case=ignore))
        return lambda columns: pc.match_like(columns(name), text, ignore_case=ignore)

    def _is(self, node: Any) -> Computed:
        import pyarrow.compute as pc
        from sqlglot import exp

        name, other = self._column(node.this), node.expression
        if isinstance(other, exp.Null):
            return lambda columns: pc.is_null(columns(name))
        if isinstance(other, exp.Boolean) and pyarrow().types.is_boolean(self._types[name]):
            wanted = bool(other.this)
            return lambda columns: pc.equal(columns(name), wanted).fill_null(False)
        raise self._refuse(node, "is not part of a filter; `is` takes null, true or false")

    def _in(self, node: Any) -> Computed:
        import pyarrow.compute as pc
        from sqlglot import exp

        if node.args.get("field") is not None:  # 'x' in tags
            return self._contains(node.args["field"], node.this)
        if not node.expressions:
            raise self._refuse(node)
        parts = [self._compared("EQ", exp.EQ(this=node.this, expression=value)) for value in node.expressions]
        pa, name = pyarrow(), self._column(node.this)
        if pa.types.is_large_string(self._types[name]):  # many keys, say, at once
            values = pa.array(
                [self._value(value, self._types[name]).as_py() for value in node.expressions], pa.large_string()
            )
            none = pa.scalar(None, pa.bool_())
            return lambda columns: pc.if_else(pc.is_valid(columns(name)), pc.is_in(columns(name), values), none)
        return lambda columns: _joined(pc.or_kleene, [part(columns) for part in parts])

    def _contains(self, column: Any, value: Any) -> Computed:
        """Whether a list holds a value."""
        import pyarrow.compute as pc

        pa, name = pyarrow(), self._column(column)
        kind = self._types[name]
        if not (pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise self._refuse(column, f"is a column of {kind}, and no list")
        wanted = self._value(value, kind.value_type)

        def computed(columns: Columns) -> Any:
            lists = columns(name)
            hits = pc.equal(lists.flatten(), wanted).fill_null(False).to_numpy(zero_copy_only=False)
            found = np.zeros(len(lists), bool)
            found[pc.list_parent_indices(lists).to_numpy()[hits]] = True
            return pa.array(found, mask=lists.is_null().to_numpy(zero_copy_only=False))

        return computed


def _joined(function: Any, parts: list[Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = function(found, part)
    return found


def _only(expression: Expression, node: Any, *names: str) -> Any:
    """The node, if it says nothing but what is known by these names."""
    if any(value not in (None, False, []) for name, value in node.args.items() if name not in names):
        raise expression._refuse(node)
    return node


def _parsed(text: str) -> Any:
    """The tree of an expression; InputError that points at the place where it cannot be read."""
    try:
        import sqlglot
        from sqlglot.errors import ParseError, SqlglotError
    except ImportError:
        raise MissingDependencyError("filters by expression need sqlglot: pip install 'antisparse[tables]'") from None
    if len(text) > _LONGEST:
        raise InputError(f"filter has {len(text)} characters; an expression has at most {_LONGEST}")
    try:
        return sqlglot.parse_one(text, read="duckdb", into=sqlglot.exp.Condition)
    except ParseError as error:
        first: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
        near = f" near {shown(first['highlight'])}" if first.get("highlight") else ""
        place = f"line {first.get('line')}, column {first.get('col')}" if first.get("line") else shown(text)
        raise InputError(
            f"filter cannot be read at {place}{near}; write it like: lang = 'en' and year >= 2020"
        ) from None
    except SqlglotError as error:
        raise InputError(f"filter cannot be read: {first_line(error)}") from None
    except (RecursionError, InputError):
        raise
    except Exception as error:  # of the parser's own
        raise InputError(f"filter cannot be read ({type(error).__name__}): {shown(text)}") from None


def expression_of(text: str, schema: ItemSchema | None) -> Expression:
    """A filter that is text."""
    if schema is None:
        raise UnsupportedError("filter is an expression, but the index keeps no items; pass ids")
    return Expression(text, schema)
