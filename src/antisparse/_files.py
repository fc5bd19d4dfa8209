"""Files read without trust: a path names a regular file, or it is not opened."""

import os
import stat
from io import BufferedReader
from pathlib import Path

from antisparse.errors import InputError, MissingFileError, StorageError


def open_regular(path: Path) -> BufferedReader:
    """A regular file, open for reading: a pipe would wait for ever, and a device may have no end."""
    try:
        # Not blocking: opening a pipe would wait for someone to write to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} could not be read: {error}") from error
    try:
        check_regular(path, os.fstat(descriptor))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(path: Path, found: os.stat_result) -> None:
    """Raise unless what was found at `path` is a regular file."""
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, a device or a socket"
        raise InputError(f"{path} is {kind}; name a regular file")
