"""What OpenAPI says of answers, with examples."""

from typing import Any

_ERROR = {
    "description": "It cannot be done, and why.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {
                        "type": "object",
                        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                        "required": ["code", "message"],
                    }
                },
                "required": ["error"],
            },
            "example": {"error": {"code": "input", "message": "Q has 3 columns; the codec was fitted on ..."}},
        }
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((400, 401, 403, 404, 413, 415, 503), _ERROR)


def _answer(example: Any, **properties: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    content = {"application/json": {"schema": schema, "example": example}}
    return {200: {"description": "The answer.", "content": content}, **_ERRORS}


_NUMBER, _OBJECT = {"type": "integer"}, {"type": "object"}
_LIST: dict[str, Any] = {"type": "array"}
FOUND = _answer(
    {"generation": 3, "results": [{"ids": [17, 4], "distances": [0.12, 0.31]}]},
    generation=_NUMBER,
    results={**_LIST, "items": _OBJECT},
)
ITEM = _answer({"generation": 3, "item": {"key": "a", "text": "some text"}}, generation=_NUMBER, item=_OBJECT)
INFO = _answer({"generation": 3, "vectors": 1000, "dimensions": 384}, generation=_NUMBER, vectors=_NUMBER)
ITEMS = _answer({"items": [{"id": "17", "key": "a", "text": "some text"}]}, items={**_LIST, "items": _OBJECT})
EXPLORED = _answer(
    {
        "generation": 3,
        "query": {"id": "17", "code": "a0f3", "original": [0.1], "rebuilt": [0.2], "error": 0.2},
        "columns": {"hamming": {"ids": ["4"], "distances": [3]}, "exact": {"why": "the originals are not at hand"}},
        "items": {"4": {"key": "b", "text": "another text", "code": "a0f1"}},
    },
    generation=_NUMBER,
    query=_OBJECT,
    columns=_OBJECT,
    items=_OBJECT,
)
ADDED = _answer({"ids": [1000, 1001], "generation": 4}, ids=_LIST, generation=_NUMBER)
UPDATED = _answer({"updated": 2, "generation": 5}, updated=_NUMBER, generation=_NUMBER)
REMOVED = _answer({"removed": 2, "generation": 6}, removed=_NUMBER, generation=_NUMBER)
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Counters.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    **_ERRORS,
}
KEY = {"parameters": [{"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}]}
