"""Filters by expression: equal to pandas on nulls, unicode, dates and lists; harmless whatever the text says."""

import datetime
import os
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import POOL, fitted

from antisparse import Index, InputError, InputTypeError, UnsupportedError
from antisparse.errors import AntisparseError

HOSTILE = int(os.environ.get("ANTISPARSE_EXPRESSIONS", "10000"))
N = 90
RNG = np.random.default_rng(5)
LANGUAGES = ["en", "de", "é ü", "日本", "o'clock", "", "EN", "a%b", None]
TAGS = ["a", "b", "ä", ""]


def drawn(values):
    return [values[i] for i in RNG.integers(len(values), size=N)]


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in range(0, 90, 9)]
COLUMNS = {
    "lang": drawn(LANGUAGES),
    "year": drawn([*range(2015, 2025), None, -3, 2**62 + 1, 2**62]),
    "score": drawn([0.0, -1.5, 2.5, 1e300, float("inf"), None, 0.1]),
    "day": drawn([*DAYS, None]),
    "at": drawn([datetime.datetime(2020, 1, 1, hour) for hour in range(0, 24, 5)] + [None]),
    "tags": [None if n == 5 else [TAGS[int(i)] for i in RNG.integers(4, size=n)] for n in RNG.integers(0, 6, size=N)],
    "active": drawn([True, False, None]),
    "na me": drawn([1, 2, 3]),
}
TYPES = {"lang": pa.string(), "year": pa.int64(), "score": pa.float64(), "day": pa.date32(), "at": pa.timestamp("us")}
TYPES |= {"tags": pa.list_(pa.string()), "active": pa.bool_(), "na me": pa.int8()}
FRAME = pd.DataFrame(
    {
        "lang": pd.array(COLUMNS["lang"], "string"),
        "year": pd.array(COLUMNS["year"], "Int64"),
        "score": pd.array(COLUMNS["score"], "Float64"),
        "active": pd.array(COLUMNS["active"], "boolean"),
        "na me": pd.array(COLUMNS["na me"], "Int64"),
    }
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Three segments, some of it deleted."""
    path = tmp_path_factory.mktemp("expressions") / "index"
    schema = pa.schema([("key", pa.string()), *TYPES.items()])
    table = pa.table({"key": [f"k{i}" for i in range(N)], **COLUMNS}, schema)
    made = Index.create(path, fitted("signs"), items=schema, key="key")
    for start in range(0, N, 30):
        made.add(POOL[start : start + 30], items=table.slice(start, 30))
    made.remove([f"k{i}" for i in GONE])
    return made


GONE = [7, 31, 89]


def found(index, text):
    """The rows that a search finds with a filter, all of them."""
    ids = index.search(POOL[0], N, filter=text)[1]
    return sorted(ids[ids >= 0].tolist())


# Expressions, and what pandas makes of them: a nullable boolean for each row.


def masked(values, missing):
    return pd.Series(pd.array(values, "boolean")).mask(pd.Series(missing), pd.NA)


def compared(name, operation, value):
    operations = {
        "=": "__eq__",
        "!=": "__ne__",
        "<>": "__ne__",
        "<": "__lt__",
        "<=": "__le__",
        ">": "__gt__",
        ">=": "__ge__",
    }
    if name in ("day", "at"):
        rows = [None if row is None else getattr(row, operations[operation])(value) for row in COLUMNS[name]]
        return pd.Series(pd.array(rows, "boolean"))
    return getattr(FRAME[name], operations[operation])(value).astype("boolean")


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


operators = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="])
texts = st.sampled_from([text for text in LANGUAGES if text is not None]) | st.text("aé日'%\"\\;-", max_size=3)
years = st.sampled_from([2015, 2019, 2024, -3, 2**62, 2**62 + 1, 0])
days = st.sampled_from(DAYS)


@st.composite
def leaves(draw):
    kind = draw(st.integers(0, 9))
    operation = draw(operators)
    if kind == 0:
        text = draw(texts)
        return f"lang {operation} {quoted(text)}", compared("lang", operation, text)
    if kind == 1:
        year = draw(years)
        return f"year {operation} {year}", compared("year", operation, year)
    if kind == 2:
        score = draw(st.sampled_from([0.0, -1.5, 2.5, 0.1, 7.0]))
        return f"score {operation} {score!r}", compared("score", operation, score)
    if kind == 3:
        day = draw(days)
        written = draw(st.sampled_from([f"date '{day}'", f"'{day}'"]))
        return f"day {operation} {written}", compared("day", operation, day)
    if kind == 4:
        at = datetime.datetime(2020, 1, 1, draw(st.integers(0, 23)))
        return f"at {operation} '{at}'", compared("at", operation, at)
    if kind == 5:
        name = draw(st.sampled_from(list(TYPES)))
        negated = draw(st.booleans())
        missing = np.array([value is None for value in COLUMNS[name]])
        return f'"{name}" is {"not " * negated}null', pd.Series(pd.array(missing != negated, "boolean"))
    if kind == 6:
        chosen, negated = draw(st.lists(texts, min_size=1, max_size=4)), draw(st.booleans())
        inside = masked([value in chosen for value in COLUMNS["lang"]], FRAME["lang"].isna())
        return f"lang {'not ' * negated}in ({', '.join(map(quoted, chosen))})", ~inside if negated else inside
    if kind == 7:
        low, high = draw(years), draw(years)
        return f"year between {low} and {high}", compared("year", ">=", low) & compared("year", "<=", high)
    if kind == 8:
        tag = draw(st.sampled_from([*TAGS, "zz"]))
        written = draw(st.sampled_from(["{} in tags", "list_contains(tags, {})", "{} = any(tags)"])).format(quoted(tag))
        return written, masked(
            [bool(row) and tag in row for row in COLUMNS["tags"]], [r is None for r in COLUMNS["tags"]]
        )
    return draw(st.sampled_from([("active", FRAME["active"]), ("active is true", FRAME["active"].fillna(False))]))


def joined(children):
    pairs = st.tuples(children, st.sampled_from(["and", "or"]), children)
    both = pairs.map(
        lambda p: (f"({p[0][0]}) {p[1]} ({p[2][0]})", p[0][1] & p[2][1] if p[1] == "and" else p[0][1] | p[2][1])
    )
    return both | children.map(lambda c: (f"not ({c[0]})", ~c[1]))


expressions = st.recursive(leaves(), joined, max_leaves=6)


@settings(max_examples=600, deadline=None)
@given(expression=expressions)
def test_filters_are_those_of_pandas(index, expression) -> None:
    text, truth = expression
    wanted = [i for i in range(N) if truth.fillna(False)[i] and i not in GONE]
    assert found(index, text) == wanted, text


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("lang like 'e%'", lambda i: COLUMNS["lang"][i] == "en"),
        ("lang ilike 'e_'", lambda i: COLUMNS["lang"][i] in ("en", "EN")),
        ("lang not like 'e%'", lambda i: COLUMNS["lang"][i] not in ("en", None)),
        ("lang like 'a\\%b'", lambda i: COLUMNS["lang"][i] == "a%b"),
        ("key = 'k5' or key in ('k6', 'k8')", lambda i: i in (5, 6, 8)),
        ("2020 < year and year < 2023", lambda i: COLUMNS["year"][i] in (2021, 2022)),
        ("year > 2020.5 and year <= 2022.9", lambda i: COLUMNS["year"][i] in (2021, 2022)),
        ("year = 2020.5 or year = 2021.0", lambda i: COLUMNS["year"][i] == 2021),
        ("year > 4611686018427387904", lambda i: COLUMNS["year"][i] == 2**62 + 1),
        ("year < 1e30", lambda i: COLUMNS["year"][i] is not None),
        ("year >= 99999999999999999999", lambda i: False),
        ("not year = 1e400", lambda i: COLUMNS["year"][i] is not None),
        ('"na me" = score', lambda i: False),
        ('score > "na me"', lambda i: COLUMNS["score"][i] is not None and COLUMNS["score"][i] > COLUMNS["na me"][i]),
        ("true", lambda i: True),
        ("active and true", lambda i: COLUMNS["active"][i] is True),
        ('"na me" = 2 -- a comment', lambda i: COLUMNS["na me"][i] == 2),
        (" or ".join(f"year = {y}" for y in range(1600, 2200)), lambda i: COLUMNS["year"][i] in range(1600, 2200)),
    ],
)
def test_what_may_be_written(index, text: str, rows) -> None:
    assert found(index, text) == [i for i in range(N) if i not in GONE and rows(i)]


def test_every_search_takes_expressions(index) -> None:
    wanted = found(index, "year = 2020")
    assert wanted
    _, _, ids = index.range_search(POOL[:2], 1e9, filter="year = 2020")
    assert sorted(ids.tolist()) == sorted(wanted * 2)
    reranked = index.search(POOL[:2], 4, filter="year = 2020", rerank=lambda ids: POOL[ids])[1]
    assert set(reranked.reshape(-1).tolist()) <= {*wanted, -1}
    table = index.search(POOL[:2], 4, filter="year = 2020 and lang is not null", items=True)
    assert set(table["year"].to_pylist()) <= {2020} and None not in table["lang"].to_pylist()


def test_integer_keys_are_columns_too() -> None:
    made = Index.create(None, fitted("signs"), items=pa.schema([("id", pa.int64())]), key="id")
    made.add(POOL[:9], items={"id": np.arange(9) * 10})
    assert sorted(made.search(POOL[0], 9, filter="id >= 50 and id != 70")[1].tolist())[-3:] == [50, 60, 80]
    more = Index.create(None, fitted("signs"), items=pa.schema([("id", pa.int64()), ("x", pa.string())]), key="id")
    more.add(POOL[:9], items={"id": np.arange(9) * 10, "x": list("abcabcabc")})
    assert sorted(more.search(POOL[0], 9, filter="id >= 50 and x = 'c'")[1].tolist())[-2:] == [50, 80]


WRONG = {
    "": "cannot be read",
    "lang =": "column 6 near '='",
    "lang = 'en' and\n year >> 3": "line 2",
    "lang = 'en": "cannot be read",
    "nothing = 3": "'nothing' is no column; there are 'key', 'lang'",
    "LANG = 'en'": "is no column",
    "t.lang = 'en'": "is not part of a filter",
    "lang": "compare it with something",
    "year = 'x'": "is text, and is compared with a column of int64",
    "lang = 3": "is a number, and is compared with a column of large_string",
    "lang = null": "write `is null`",
    "year in (1, null)": "write `is null`",
    "day = 'yesterday'": "is no value of date32",
    "lang = year": "compares what does not compare",
    "year = score": "could not be computed",
    "tags = 'a'": "is text, and is compared",
    "'a' in lang": "no list",
    "1 = 1": "is no column",
    "year + 1 = 3": "is no column",
    "lang || 'x' = 'y'": "is no column",
    "upper(lang) = 'EN'": "is no column",
    "(select 1) = 1": "is no column",
    "year in (select 1)": "is not part of a filter",
    "exists (select 1)": "is not part of a filter",
    "lang = 'a'; drop table x": "cannot be read",
    "read_csv('/etc/passwd')": "is not part of a filter",
    "lang in (select * from read_text('/etc/passwd'))": "is not part of a filter",
    "case when active then true end": "is not part of a filter",
    "lang ~ '(a+)+$'": "is not part of a filter",
    "lang like 'a!%' escape '!'": "is not part of a filter",
    "year between symmetric 3 and 1": "is not part of a filter|cannot be read",
    "lang = $1": "is no value",
    "active = 1": "is a number",
    "year::text = '3'": "is no column",
    "lang is 'en'": "takes null, true or false",
    "not " * 2000 + "active": "nested too deeply",
    "(" * 3000 + "active" + ")" * 3000: "nested too deeply",
    "active or " * 2000 + "active": "at most 10000",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:30])
def test_errors_point_at_the_place(index, text: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=WRONG[text]) as raised:
        index.search(POOL[0], 3, filter=text)
    assert str(raised.value).startswith("filter") and len(str(raised.value)) < 700


def test_an_index_without_items_takes_none() -> None:
    made = Index.create(None, fitted("signs"))
    made.add(POOL[:5])
    with pytest.raises(UnsupportedError, match="keeps no items"):
        made.search(POOL[0], 3, filter="year = 3")


PARTS = [
    *(
        "lang",
        "year",
        "tags",
        "day",
        "active",
        "nothing",
        '"na me"',
        "key",
        "t",
        "*",
        "null",
        "true",
        "1",
        "-1",
        "1e999",
        "''",
        "'en'",
    ),
    *(
        "'/etc/passwd'",
        "'it''s'",
        "x'00'",
        "$1",
        "?",
        ":a",
        "@x",
        "and",
        "or",
        "not",
        "in",
        "is",
        "like",
        "between",
        "=",
        "<>",
        "<",
        ">=",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ".",
        "--",
        "/*",
        "*/",
        "::",
        "||",
        "+",
        "/",
        "%",
        "~",
        "->",
        "=>",
        ":=",
        "\\",
        "'",
        '"',
        "`",
    ),
    *(
        "select",
        "from",
        "where",
        "union",
        "with",
        "recursive",
        "exists",
        "any",
        "all",
        "case",
        "when",
        "then",
        "end",
        "cast",
        "as",
        "int",
    ),
    *(
        "read_csv",
        "read_text",
        "read_parquet",
        "copy",
        "attach",
        "install",
        "load",
        "pragma",
        "drop",
        "table",
        "getenv",
        "glob",
        "sleep",
    ),
    *(
        "list_contains",
        "unnest",
        "range",
        "lambda",
        "interval",
        "date",
        "timestamp",
        "over",
        "filter",
        "escape",
        "collate",
        "\0",
        "é",
        "\n",
    ),
]
SEEDS = [
    "lang = 'en' and year >= 2020",
    "'a' in tags or not (day < date '2020-02-01')",
    "lang in ('en', 'de') and active",
]


def hostile(random):
    """A text that no one should write: words of SQL in any order, or a sound filter with something changed."""
    if random.random() < 0.5:
        return " ".join(PARTS[i] for i in random.integers(len(PARTS), size=random.integers(1, 14)))
    text = SEEDS[random.integers(len(SEEDS))]
    for _ in range(random.integers(1, 4)):
        at, to = sorted(random.integers(len(text) + 1, size=2))
        piece = PARTS[random.integers(len(PARTS))] * int(random.choice([1, 1, 1, 40]))
        text = text[:at] + random.choice([piece, f" {piece} ", ""]) + text[random.choice([at, to]) :]
    return text


def test_hostile_expressions_do_nothing_but_filter(index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed errors or an answer; no file is opened, nothing is slow."""
    random, answered, slowest = np.random.default_rng(HOSTILE), 0, 0.0
    found(index, "lang = 'en'")  # what is imported is imported
    opened = []
    import builtins

    for module, name in ((builtins, "open"), (os, "open"), (os, "system"), (os, "listdir")):
        monkeypatch.setattr(module, name, lambda *a, **k: opened.append(a))
    for _ in range(HOSTILE):
        text = hostile(random)
        start = time.process_time()
        try:
            index.search(POOL[0], 3, filter=text)
            answered += 1
        except AntisparseError:
            pass
        slowest = max(slowest, time.process_time() - start)
    monkeypatch.undo()
    assert not opened
    assert slowest < 2
    assert HOSTILE // 200 < answered < HOSTILE // 2
