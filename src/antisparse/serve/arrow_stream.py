"""Tables that come as streams of Arrow, from whoever sends them: none takes more memory than its bytes."""

import struct
from typing import Any

from antisparse.errors import InputError
from antisparse.index.item_schema import pyarrow

# Of FlatBuffers: numbers of fields in Arrow's Message.fbs and the kinds of messages there.
_KIND, _HEADER, _DATA, _COMPRESSION = 1, 2, 1, 3
_DICTIONARY, _BATCH = 2, 3


def table_in(body: bytes, name: str) -> Any:
    """The table of a stream whose buffers are not compressed: a few bytes could stand for all memory there is."""
    pa = pyarrow()
    try:
        data = pa.py_buffer(body)
        if any(_compressed(bytes(message.metadata)) for message in pa.ipc.MessageReader.open_stream(data)):
            raise ValueError("its buffers are compressed; write it without compression")
        table = pa.ipc.open_stream(data).read_all()
        if table.num_rows > len(body):  # lists of nothing, and columns of nulls, take none
            raise ValueError("it has more rows than bytes")
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError, struct.error) as error:
        raise InputError(f"{name} is not a stream of Arrow that can be read: {str(error)[:200]}") from None
    return table


def _compressed(message: bytes) -> bool:
    """Whether a message, by its description, has compressed buffers."""
    root = _number(message, 0, "<I")
    kind, header = _field(message, root, _KIND), _field(message, root, _HEADER)
    if not kind or not header or message[kind] not in (_DICTIONARY, _BATCH):
        return False
    batch = header + _number(message, header, "<I")
    if message[kind] == _DICTIONARY:
        data = _field(message, batch, _DATA)
        batch = data + _number(message, data, "<I")
    return _field(message, batch, _COMPRESSION) != 0


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it is not there."""
    known = table - _number(message, table, "<i")
    slot = 4 + 2 * number
    place = _number(message, known + slot, "<H") if slot < _number(message, known, "<H") else 0
    return table + place if place else 0


def _number(message: bytes, place: int, kind: str) -> int:
    if place < 0:
        raise ValueError("a message describes itself wrongly")
    return int(struct.unpack_from(kind, message, place)[0])
