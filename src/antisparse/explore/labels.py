"""What stands for an item to a person: its key and its text."""

from dataclasses import dataclass

from antisparse.errors import InputError
from antisparse.index.item_schema import ItemSchema, pyarrow
from antisparse.index.reader import Reader
from antisparse.index.state import State
from antisparse.scan.columns import Ids

_LONGEST = 600  # characters of a text that are shown
_AT_ONCE = 1000  # items that are read at a time: texts are cut before the next are read


@dataclass(frozen=True)
class Label:
    """An item as it is shown: the id as text, since JavaScript has no integers of 64 bits."""

    id: str
    key: str
    text: str


def text_column(reader: Reader, asked: str | None = None) -> str | None:
    """The column that is shown as the text of an item: the one asked for, the embedded one, or the first of texts."""
    schema = reader._state.schema
    if schema is None:
        if asked is not None:
            raise InputError(f"text = {asked!r}, but the index keeps no items; leave it out")
        return None
    if asked is not None:
        if asked not in (schema.key, *schema.columns):
            listed = ", ".join(map(repr, schema.columns)) or "none"
            raise InputError(f"text = {asked!r} is no column that the index keeps; these are: {listed}")
        return asked
    kept = reader._state.model
    if kept is not None and kept.text in schema.columns:
        return kept.text
    types = pyarrow().types
    texts = [name for name in schema.columns if types.is_large_string(schema.stored.field(name).type)]
    return texts[0] if texts else schema.columns[0] if schema.columns else None


def labels(reader: Reader, ids: Ids, column: str | None) -> list[Label]:
    """The labels of some ids, all of which must be there."""
    schema = reader._state.schema
    if schema is None or not len(ids):
        return [Label(str(i), str(i), f"item {i}") for i in ids.tolist()]
    parts = (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
    return [label for part in parts for label in _labels(reader._state, schema, part, column)]


def _labels(state: State, schema: ItemSchema, ids: Ids, column: str | None) -> list[Label]:
    table = state.items(ids, [name for name in (schema.key, column) if name is not None])
    keys = ids.tolist() if schema.key is None else table.column(schema.key).to_pylist()
    texts = keys if column is None else table.column(column).to_pylist()
    return [
        Label(str(i), _cut(str(key)), _cut("" if text is None else str(text)))
        for i, key, text in zip(ids.tolist(), keys, texts, strict=True)
    ]


def matching(found: list[Label], words: str, most: int) -> list[Label]:
    """Those whose key or text has all of the words, whatever their case; those that begin with them first."""
    wanted = words.casefold().split()
    chosen = [one for one in found if _has(one, wanted)]
    start = words.strip().casefold()
    chosen.sort(key=lambda one: not (one.text.casefold().startswith(start) or one.key.casefold() == start))
    return chosen[:most]


def _has(label: Label, words: list[str]) -> bool:
    within = f"{label.key} {label.text}".casefold()
    return all(word in within for word in words)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
