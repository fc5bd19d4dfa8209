"""Files that appear whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antisparse._files import check_regular
from antisparse.errors import AntisparseError, InputError, StorageError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; on success it replaces `path` in one step, else it is removed."""
    if not os.path.isdir(path.parent):
        raise InputError(f"path = {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        if os.path.exists(path):
            check_regular(path, path.stat())
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        if isinstance(error, AntisparseError):
            raise
        raise StorageError(f"{path} could not be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
