"""Files: written whole or not at all, read without trust. All that this library writes goes through here."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from antisparse.errors import AntisparseError, FormatError, InputError, MissingFileError, StorageError

TEMPORARY = ".tmp-"  # what the name of a file begins with until it is whole
_PART = 1 << 24  # bytes a write takes at a time
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO that no one writes to does not wait


def user_cache() -> Path:
    """The folder of what can be fetched again: `antisparse` in the user's cache folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "antisparse"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "antisparse"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "antisparse"


def write_file(path: Path, parts: Iterable[Any]) -> None:
    """Replace a file by these bytes. That the new name is on the disk is only sure after `sync_folder`."""
    temporary = _temporary(path)
    try:
        with open(temporary, "xb", opener=_create) as file:
            for part in parts:
                view = memoryview(part).cast("B") if len(part) else memoryview(b"")
                while len(view):
                    view = view[os.write(file.fileno(), view[:_PART]) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        _give_up(temporary, path, error)
        raise


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write to by its name. When the block ends it replaces `path`, on the disk."""
    if not os.path.isdir(path.parent):
        raise InputError(f"path = {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"path = {str(path)!r} is a folder, a pipe or a device; only a regular file is replaced")
    temporary, within = _temporary(path), False
    try:
        open(temporary, "xb", opener=_create).close()
        within = True
        yield temporary
        within = False
        sync_file(temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if within:  # its errors are the caller's
            discard(temporary)
        else:
            _give_up(temporary, path, error)
        raise


def _temporary(path: Path) -> Path:
    """A name beside `path` that no one else has, nor can guess."""
    return path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, 0o666)


def _give_up(temporary: Path, path: Path, error: BaseException) -> None:
    """Remove what was not renamed, and raise StorageError where the system is the cause."""
    if not isinstance(error, FileExistsError):  # which is not ours
        discard(temporary)
    if isinstance(error, OSError) and not isinstance(error, StorageError):
        raise StorageError(f"{path} could not be written: {error}") from error


def link_file(source: Path, target: Path) -> None:
    """Give a file another name, or, where files have but one, copy it. FileNotFoundError if there is none."""
    temporary = _temporary(target)
    try:
        os.link(source, temporary, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        with open_regular(source) as (file, _):
            write_file(target, iter(lambda: file.read(_PART), b""))
        return
    try:
        os.replace(temporary, target)  # one that is there is the same, or was left by one who did not come to its end
        discard(temporary)  # which stays if both are one file already
    except BaseException as error:
        _give_up(temporary, target, error)
        raise


def sync_file(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the folder's names are on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{folder} could not be written: {error}") from error


def discard(path: Path) -> None:
    """Remove a file that nothing needs; if that fails, the next clean-up does it."""
    with contextlib.suppress(OSError):
        path.unlink()


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file and its size. MissingFileError if there is none; FormatError if it is a pipe, a device or a folder."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise FormatError(f"{path} is not a regular file")
            yield file, found.st_size
    except AntisparseError:
        raise
    except FileNotFoundError:
        raise MissingFileError(errno.ENOENT, "there is no such file", str(path)) from None
    except IsADirectoryError:
        raise FormatError(f"{path} is not a regular file") from None
    except OSError as error:
        raise StorageError(f"{path} could not be read: {error}") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _AT_ONCE)


def read_file(path: Path, most: int) -> bytes:
    """All bytes of a regular file of at most so many."""
    with open_regular(path) as (file, size):
        if size > most:
            raise FormatError(f"{path} has {size} bytes, more than the {most} that such a file may have: it is damaged")
        data = file.read(size + 1)  # no more, whatever is written to it meanwhile
        if len(data) != size:
            raise FormatError(f"{path} changed while it was read; try again")
        return data
