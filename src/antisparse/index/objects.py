"""Objects of a store such as S3, under one address, by obstore (docs/objects.md).

Credentials come from the environment, as obstore takes them: nothing here knows, keeps or prints them.
"""

import io
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from antisparse._arrays import first_line, shown, without_secrets
from antisparse.errors import InputError, MissingDependencyError, MissingFileError, StorageError

T = TypeVar("T")

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_RANGE = 1 << 24  # bytes that are asked for at a time
_TRIES = 4  # of a request whose answer is cut, beside those that obstore makes itself
_PAUSE = 0.2  # seconds after the first; doubled after each
_RETRIES, _RETRY_SECONDS = 5, 60.0  # of obstore
_LONGEST = 200  # characters of its messages


def is_address(value: Any) -> bool:
    """Whether it names a place in an object store, not a folder."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def checked_address(value: str, name: str = "path") -> str:
    """An address that can be used, without a slash at its end."""
    match = _ADDRESS.fullmatch(value)
    if match is None or match[1] not in SCHEMES:
        called = shown(without_secrets(value))
        raise InputError(f"{name} = {called}: the addresses of indexes begin with {', '.join(SCHEMES)} and ://")
    place = match[2]
    container, at, _ = place.partition("@")
    if at and (match[1] not in ("abfs", "abfss") or ":" in container or "/" in container):  # whose containers are there
        raise InputError(f"{name} holds credentials; leave them out of the address, and set them in the environment")
    called = shown(without_secrets(value))
    if any(letter in place for letter in "?#%") or not place.strip("/") or not place.isprintable():
        raise InputError(f"{name} = {called} must be an address such as s3://bucket/folder, without ?, # or %")
    if any(part in ("", ".", "..") for part in place.rstrip("/").split("/")):
        raise InputError(f"{name} = {called} has an empty part, or one of dots")
    return f"{match[1]}://{place.rstrip('/')}"


@dataclass(frozen=True)
class Found:
    """An object: its name, its size, what changes with its content, and when it was written, in seconds since 1970."""

    name: str
    size: int
    tag: str | None
    modified: float


class Objects:
    """The objects whose names begin with an address. Any number of threads may use it.

    Every call is repeated a few times if the store cannot be reached, or cuts the connection, and then raises
    StorageError. An object is written whole or not at all.
    """

    def __init__(self, address: str) -> None:
        self.address = checked_address(address)
        self._store: Any = None
        self._mutex = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:  # connections do not travel
        return Objects, (self.address,)

    @property
    def _opened(self) -> Any:
        with self._mutex:
            if self._store is None:
                obstore = _obstore()
                retry = {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
                try:
                    self._store = obstore.store.from_url(self.address, retry_config=retry)
                except Exception as error:  # of obstore, which has many
                    raise StorageError(f"{self.address} cannot be reached: {_said(error)}") from None
            return self._store

    def _call(self, name: str, deed: Callable[[Any], T], doing: str = "read") -> T:
        """What a call to the store gives, its errors as ours."""
        store = self._opened
        errors = _obstore().exceptions
        where, pause = f"{self.address}/{name}", _PAUSE
        for attempt in range(_TRIES):
            try:
                return deed(store)
            except FileNotFoundError:
                raise MissingFileError(2, "there is no such object", where) from None
            except (errors.AlreadyExistsError, errors.PreconditionError):
                raise
            except (errors.PermissionDeniedError, errors.UnauthenticatedError) as error:
                raise StorageError(
                    f"{where} could not be {doing}: the store refuses the credentials of the environment "
                    f"({_said(error)})"
                ) from None
            except (errors.BaseError, OSError, ValueError) as error:
                if attempt == _TRIES - 1 or "max_retries" in str(error):  # obstore has tried often enough itself
                    raise StorageError(f"{where} could not be {doing}: {_said(error)}") from None
                time.sleep(pause)
                pause *= 2
        raise AssertionError

    def read(self, name: str, most: int) -> tuple[bytes, Found]:
        """All bytes of an object of at most so many."""

        def get(store: Any) -> tuple[bytes, Found]:
            answer = store.get(name)
            found = _found(answer.meta, name)
            if found.size > most:
                raise _TooLargeError(f"{self.address}/{name} has {found.size} bytes, where at most {most} belong")
            return bytes(answer.bytes()), found

        try:
            return self._call(name, get)
        except _TooLargeError as error:
            raise StorageError(str(error)) from None

    def beginning(self, name: str, length: int) -> tuple[bytes, Found]:
        """The first bytes of an object, and what it is."""

        def get(store: Any) -> tuple[bytes, Found]:
            answer = store.get(name, options={"range": (0, length)})
            return bytes(answer.bytes()), _found(answer.meta, name)

        return self._call(name, get)

    def about(self, name: str) -> Found:
        """What an object is."""
        return self._call(name, lambda store: _found(store.head(name), name))

    def some(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of an object, all of which must be there."""

        def get(store: Any) -> bytes:
            part = bytes(store.get_range(name, start=start, length=length))
            if len(part) != length:
                raise OSError(f"{len(part)} bytes came where {length} were asked for")
            return part

        return self._call(name, get) if length else b""

    def parts(self, name: str, size: int) -> Iterator[bytes]:
        """The bytes of an object of this size, a part at a time; a part that does not come is asked for again."""
        return (self.some(name, start, min(_RANGE, size - start)) for start in range(0, size, _RANGE))

    def write(self, name: str, parts: Iterable[Any]) -> None:
        """Write an object that no one else writes."""
        held = [part if isinstance(part, bytes) else memoryview(part).cast("B") for part in parts if len(part)]
        self._call(name, lambda store: store.put(name, _joined(held)), "written")

    def create(self, name: str, data: bytes) -> bool:
        """Write an object that is not there; False if it is."""
        try:
            self._call(name, lambda store: store.put(name, data, mode="create"), "written")
        except _obstore().exceptions.AlreadyExistsError:
            return False
        return True

    def replace(self, name: str, data: bytes, found: Found) -> bool:
        """Replace an object by another, if it is still what was found; False if it is not."""
        errors = _obstore().exceptions
        try:
            self._call(name, lambda store: store.put(name, data, mode={"e_tag": found.tag}), "written")
        except (errors.PreconditionError, errors.AlreadyExistsError):
            return False
        return True

    def listed(self) -> list[Found]:
        """All objects directly under the address."""
        return self._call(
            "", lambda store: [_found(one, one["path"]) for one in store.list_with_delimiter()["objects"]]
        )

    def discard(self, names: Iterable[str]) -> None:
        """Remove objects that nothing needs."""
        for name in names:
            try:
                self._call(name, partial(_delete, name), "removed")
            except FileNotFoundError:
                continue


class ObjectFile(io.RawIOBase):
    """An object as a file of which some bytes are read."""

    def __init__(self, objects: Objects, found: Found) -> None:
        self._objects, self._found = objects, found
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """From any byte."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte, counted from the beginning, from here, or from the end."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._found.size}[whence])
        return self._at

    def tell(self) -> int:
        """The byte that is read next."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as there is room for, or as there are."""
        count = min(len(buffer), max(0, self._found.size - self._at))
        buffer[:count] = self._objects.some(self._found.name, self._at, count)
        self._at += count
        return count


def _delete(name: str, store: Any) -> None:
    store.delete(name)


class _TooLargeError(Exception):
    pass


def _joined(parts: list[Any]) -> Any:
    """Few parts as they are; obstore sends large objects by pieces."""
    return parts[0] if len(parts) == 1 else iter(parts)


def _found(meta: Any, name: str) -> Found:
    return Found(name, int(meta["size"]), meta["e_tag"], meta["last_modified"].timestamp())


def _said(error: Exception) -> str:
    """What an error of obstore says, in a line: it has the causes of causes below it."""
    text = first_line(error).split("<?xml")[0].rstrip(" :")[:_LONGEST]
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://") and not os.environ.get("AWS_ALLOW_HTTP")
    return f"{text}; for an endpoint without TLS set AWS_ALLOW_HTTP=true" if plain else text


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise MissingDependencyError("addresses need obstore: pip install 'antisparse[store]'") from None
    return obstore
