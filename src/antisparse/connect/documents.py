"""Documents of LangChain, which are texts, ids and metadata, as the table of an index."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antisparse._arrays import first_line, shown, texts
from antisparse.errors import InputError, InputTypeError
from antisparse.index.item_schema import pyarrow

__all__: list[str] = []  # nothing public: it serves langchain.py

KEY, TEXT, METADATA = "id", "text", "metadata"  # the columns of a store that is made here
_ANSWER = ("query", "rank", "distance")  # what stands before the items in an answer


def document_schema(columns: Mapping[str, Any] | None) -> Any:
    """The columns of a store: ids, texts, those that are named, and the rest of the metadata as JSON."""
    pa = pyarrow()
    if columns is not None and not isinstance(columns, Mapping):
        raise InputTypeError(f"columns must be a mapping of names to types of pyarrow, not {shown(columns)}")
    named = dict(columns or {})
    for name, kind in named.items():
        if not isinstance(name, str) or name in (KEY, TEXT, METADATA, *_ANSWER):
            raise InputError(f"columns names {shown(name)}, which is no name, or one of the store's own; leave it out")
        if not isinstance(kind, pa.DataType):
            raise InputTypeError(
                f"columns: {name!r} must have a type of pyarrow, such as pa.string(), not {shown(kind)}"
            )
    return pa.schema([(KEY, pa.string()), (TEXT, pa.string()), *named.items(), (METADATA, pa.string())])


def document_table(
    schema: Any, keys: list[str], listed: list[str], metadatas: list[dict[str, Any]], key: str = KEY, text: str = TEXT
) -> Any:
    """Documents as a table: metadata in their columns, and what has none, or is None, as JSON."""
    pa = pyarrow()
    own = [name for name in schema.names if name not in (key, text, METADATA)]
    columns: dict[str, list[Any]] = {key: keys, text: listed}
    columns |= {name: [one.get(name) for one in metadatas] for name in own}
    if METADATA in schema.names:
        rest = [{k: v for k, v in one.items() if k not in own or v is None} for one in metadatas]
        columns[METADATA] = [_json(one, keys[row]) for row, one in enumerate(rest)]
    elif unknown := [name for one in metadatas for name in one if name not in own]:
        raise InputError(
            f"metadatas hold {shown(unknown[0])}, which is no column of the index, nor has it one for JSON"
        )
    arrays = []
    for name in schema.names:
        try:
            arrays.append(pa.array(columns[name], schema.field(name).type))
        except UnicodeEncodeError:
            raise InputError(
                f"{name} holds half a character (a surrogate), which UTF-8 has not; decode it anew"
            ) from None
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise InputTypeError(
                f"metadatas: {name!r} does not fit its column of {schema.field(name).type}: {first_line(error)}"
            ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _json(metadata: dict[str, Any], key: str) -> str:
    """Metadata as JSON that gives them back as they are."""
    try:
        written = json.dumps(metadata, allow_nan=False)
        same = json.loads(written) == metadata
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise InputTypeError(
            f"metadatas of the document {shown(key)} hold what JSON would not give back (text, finite numbers, lists, "
            "dicts with keys of text); convert it, or give it a column of its own"
        )
    return written


def listed_texts(value: Any) -> list[str]:
    """Several texts as a list."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputTypeError(f"texts must be several texts, not {shown(value)}")
    try:
        return list(texts(list(value), "texts"))
    except TypeError as error:  # of an array without entries to go through
        raise InputTypeError(f"texts must be several texts: {first_line(error)}") from None


def document_keys(ids: Any, count: int) -> list[str]:
    """As many ids as there are texts, drawn where there are none."""
    if ids is None:
        ids = [None] * count
    if (
        isinstance(ids, str)
        or not isinstance(ids, Sequence)
        or not all(one is None or isinstance(one, str) for one in ids)
    ):
        raise InputTypeError(f"ids must be a sequence of texts, not {shown(ids)}")
    keys = [str(uuid.uuid4()) if one is None else one for one in ids]
    if len(keys) != count:
        raise InputError(f"ids has {len(keys)} entries for {count} texts")
    if len(set(keys)) < count:
        raise InputError("ids holds one twice; every document has an id of its own")
    return keys


def listed_metadatas(given: Any, count: int) -> list[dict[str, Any]]:
    """As many dicts as there are texts, empty where none are given."""
    if given is None:
        return [{}] * count
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, dict) for one in given):
        raise InputTypeError(f"metadatas must be a list of dicts, not {shown(given)}")
    if len(given) != count:
        raise InputError(f"metadatas has {len(given)} entries for {count} texts")
    return list(given)
