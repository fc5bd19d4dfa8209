"""Answers as bytes: JSON, or an Arrow stream; every one is of one state of the index."""

import base64
import json
import math
from typing import Any

import numpy as np

from antisparse.errors import InputError, UnsupportedError
from antisparse.index.index import Index
from antisparse.index.item_schema import pyarrow
from antisparse.index.tables import answers
from antisparse.serve.service import Found, Present


def json_answer(found: Found, items: bool) -> bytes:
    """Ids and distances of each query, and keys and items where there are any."""
    present, rows = found.present, found.rows()
    results: list[dict[str, Any]] = [{"ids": ids.tolist(), "distances": d.tolist()} for d, ids in rows]
    schema = present.schema
    if items and schema is None:
        raise UnsupportedError("items is true, but the index keeps no items")
    if schema is not None and (items or schema.key_is_text):
        everything = np.concatenate([np.zeros(0, np.int64), *(ids for _, ids in rows)])
        unique, where = np.unique(everything, return_inverse=True)
        table = present._state.items(unique)
        kept = table.to_pylist() if items else [{schema.key: key} for key in table.column(schema.key).to_pylist()]
        at = 0
        for result, (_, ids) in zip(results, rows, strict=True):
            mine = [kept[place] for place in where.reshape(-1)[at : at + len(ids)]]
            at += len(ids)
            if schema.key_is_text:
                result["keys"] = [one[schema.key] for one in mine]
            if items:
                result["items"] = mine
    said = b",".join(map(dumps, results))  # one by one, so that others have their turn
    return b'{"generation":%d,"results":[%b]}' % (present.generation, said)


def arrow_answer(found: Found, items: bool) -> bytes:
    """A row a result: query, rank, distance, id or key, and the columns of items."""
    pa = pyarrow()
    rows = found.rows()
    width = max([1, *(len(ids) for _, ids in rows)])
    distances = np.full((len(rows), width), 0, found.distances.dtype)
    ids = np.full((len(rows), width), -1, np.int64)
    for number, (d, i) in enumerate(rows):
        distances[number, : len(d)], ids[number, : len(i)] = d, i
    if items and found.present.schema is None:
        raise UnsupportedError("items is true, but the index keeps no items")
    table = answers(found.present._state, distances, ids)
    if not items:
        names = [name for name in table.column_names if name in ("query", "rank", "distance", "id")]
        schema = found.present.schema
        table = table.select([*names, *([] if schema is None or schema.key is None else [schema.key])])
    table = table.replace_schema_metadata({"generation": str(found.present.generation)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def json_item(present: Present, key: str) -> bytes | None:
    """The item of a key, or of an id; None if it is not there."""
    schema = present.schema
    if schema is None:
        raise UnsupportedError("the index keeps no items")
    wanted: Any = key
    if not schema.key_is_text:
        if not key.isascii() or not key.isdecimal() or len(key) > 19:
            raise InputError("key must be a number, as the keys or ids of this index are")
        wanted = int(key)
    if wanted not in present:
        return None
    (item,) = present.items([wanted]).to_pylist()
    return dumps({"generation": present.generation, "item": item})


def table_of_items(index: Index, items: list[dict[str, Any]] | None) -> Any:
    """Items that came as JSON as a table, each column of the type that the index has."""
    if items is None:
        return None
    schema = index.snapshot.schema
    if schema is None:
        raise UnsupportedError("the index keeps no items; leave them out")
    pa = pyarrow()
    fields = {field.name: field.type for field in schema.stored}
    if schema.key_is_id:
        fields[schema.key] = pa.int64()
    unknown = {name for item in items for name in item} - set(fields)
    if unknown:
        raise InputError(f"items have {sorted(unknown)[0][:100]!r}, which the index does not keep")
    columns = {}
    for name, kind in fields.items():
        values = [item.get(name) for item in items]
        try:
            columns[name] = pa.array(values, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            try:  # a date, say, which JSON has as text
                columns[name] = pa.array(values).cast(kind)
            except (pa.ArrowException, ValueError, TypeError, OverflowError):
                raise InputError(f"items, {name!r}: {str(error)[:200]}") from None
    return pa.table(columns)


def dumps(value: Any) -> bytes:
    """JSON of what is given, whatever the items hold; "?" stands for what UTF-8 cannot say, as in names of files."""
    text = json.dumps(value if _plain(value) else _made_plain(value), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> bool:
    """Whether JSON can say it as it is."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    if isinstance(value, list):
        return not value or (isinstance(value[0], int) and isinstance(value[-1], int)) or all(map(_plain, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _made_plain(value: Any) -> Any:
    """Dates and the like as text, bytes in base64, numbers that JSON does not have as null."""
    if isinstance(value, dict):
        return {str(key): _made_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_made_plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
