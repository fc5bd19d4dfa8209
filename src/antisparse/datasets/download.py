"""Files from the network: resumed where they broke off, checked before they are put in place."""

import ftplib
import hashlib
import http.client
import io
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from antisparse._arrays import boolean, integer, path_of, shown
from antisparse._files import open_regular, sync_file, sync_folder, user_cache
from antisparse.errors import AntisparseError, DownloadError, InputError, InputTypeError, StorageError

if sys.platform != "win32":
    import fcntl

_TRIES = 4  # in a row that bring nothing new
_PAUSE = 0.5  # seconds after the first; doubled after each
_TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 18
_SHA256 = re.compile("[0-9a-fA-F]{64}")


def cache_folder() -> Path:
    """Where named data sets are kept: $ANTISPARSE_DATA, or `antisparse` in the user's cache folder."""
    if folder := os.environ.get("ANTISPARSE_DATA"):
        return Path(folder)
    return user_cache()


def fetch(
    url: str,
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    size: int | None = None,
    progress: bool = True,
) -> Path:
    """Fetch a file by HTTP or FTP, unless it is there already.

    Bytes go to ``path + ".part"`` until all are there and checked. A download that broke off is resumed, by this call
    or a later one, if `sha256` is given: without it, two versions of a file could be joined unseen. Processes that
    fetch the same file wait for one another.

    Parameters
    ----------
    url : str
        Of scheme http, https or ftp.
    path : path
        Where to put the file. Folders are made. A file that is there is checked and kept.
    sha256 : str, optional
        The checksum that the file must have, in hexadecimal.
    size : int, optional
        The number of bytes that it must have.
    progress : bool
        Show a bar, if the standard error is a terminal.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    DownloadError
        If the file cannot be had, or is not as it must be.
    """
    url, place = _checked_url(url), path_of(path)
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise InputError(f"sha256 = {shown(sha256)}; pass 64 hexadecimal digits")
    if size is not None:
        integer(size, "size", 0, 2**63)
    boolean(progress, "progress")
    if os.path.exists(place):
        if wrong := _wrong(place, sha256, size):
            raise DownloadError(f"{place} is not the file of {url}: {wrong}; remove it to fetch it again")
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return _fetched(url, place, sha256, size, progress)
    except OSError as error:
        if isinstance(error, AntisparseError):
            raise
        raise StorageError(f"path = {str(place)!r}: it cannot be written there: {error}") from error


def _fetched(url: str, place: Path, sha256: str | None, size: int | None, progress: bool) -> Path:
    """A file that was not there."""
    with _own_part(place) as part:
        if place.exists():  # another process was first
            return fetch(url, place, sha256=sha256, size=size, progress=progress)
        if sha256 is None:
            part.unlink(missing_ok=True)
        if not part.exists() or _wrong(part, sha256, size):
            with _bar(place.name, progress) as report:
                _retry(url, place, part, sha256 is not None, size, report)
        if wrong := _wrong(part, sha256, size):
            part.unlink()
            raise DownloadError(f"what {url} sends is not as expected: {wrong}; {_by_hand(url, place)}")
        sync_file(part)
        os.replace(part, place)
        sync_folder(place.parent)
    return place


def _checked_url(url: Any) -> str:
    """An address that can be asked for, or an error."""
    if not isinstance(url, str):
        raise InputTypeError(f"url must be a string, not {type(url).__name__} ({shown(url)})")
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.scheme in ("http", "https", "ftp") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # of the port, say
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(f"url = {shown(url)}; it must begin with http://, https:// or ftp:// and the name of a host")
    return url


def _retry(
    url: str, place: Path, part: Path, resume: bool, size: int | None, report: Callable[[int, int | None], None]
) -> None:
    """Bring all of `url` to `part`. Tries that bring nothing new are counted, others are not."""
    failures, longest = 0, -1
    while True:
        try:
            start = part.stat().st_size if resume and part.exists() else 0
            _transfer(url, part, start, size, report)
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and start > 0:  # nothing follows: the part is of another file
                part.unlink()
            elif error.code < 500:
                raise DownloadError(f"{url}: HTTP {error.code} {error.reason}; {_by_hand(url, place)}") from None
            reason: Exception = error
        except ftplib.error_perm as error:
            raise DownloadError(f"{url}: FTP {error}; {_by_hand(url, place)}") from None
        except (OSError, EOFError, ftplib.Error, http.client.HTTPException) as error:
            if isinstance(error, DownloadError):
                raise
            reason = error
        length = part.stat().st_size if part.exists() else 0
        failures = 1 if length > longest >= 0 else failures + 1
        longest = max(length, longest)
        if failures >= _TRIES:
            raise DownloadError(
                f"{url} cannot be fetched ({str(reason) or type(reason).__name__}); {_by_hand(url, place)}"
            ) from None
        time.sleep(_PAUSE * 2 ** (failures - 1))


def _transfer(url: str, part: Path, start: int, size: int | None, report: Callable[[int, int | None], None]) -> None:
    """One try: append to `part` from byte `start` on, or begin anew if the server does."""
    with _open(url, start) as (read, start, total):
        if size is not None and total is not None and total != size:
            raise DownloadError(f"{url} has {total} bytes where {size} were expected; has it changed?")
        with open(part, "ab" if start else "wb") as file:
            file.truncate(start)
            done = start
            while block := read(_BLOCK):
                file.write(block)
                done += len(block)
                report(done, total)
                if size is not None and done > size:
                    raise DownloadError(f"{url} sends more than the {size} bytes expected; has it changed?")
    if total is not None and done != total:
        raise EOFError(f"the connection was cut after {done} of {total} bytes")


Opened = tuple[Callable[[int], bytes], int, int | None]


@contextmanager
def _open(url: str, start: int) -> Iterator[Opened]:
    """A function that reads blocks, the byte it begins at, and the length of the whole, if known."""
    if url.startswith("ftp:") and "ftp" not in urllib.request.getproxies():
        with _open_ftp(url, start) as opened:
            yield opened
        return
    headers = {"User-Agent": "antisparse", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as reply:
        length = reply.headers.get("Content-Length")
        left = int(length) if length and length.isdecimal() else None
        if getattr(reply, "status", 200) != 206:
            start = 0
        elif not reply.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise http.client.HTTPException(f"asked for bytes from {start} on, the server sends others")
        yield reply.read, start, None if left is None else start + left


@contextmanager
def _open_ftp(url: str, start: int) -> Iterator[Opened]:
    # urllib cannot resume by FTP; ftplib can.
    parts = urllib.parse.urlsplit(url)
    name = urllib.parse.unquote(parts.path)
    with ftplib.FTP(timeout=_TIMEOUT) as ftp:
        ftp.connect(parts.hostname or "", parts.port or ftplib.FTP_PORT)
        ftp.login()
        ftp.voidcmd("TYPE I")
        total = ftp.size(name)
        if total is not None and start >= total:  # nothing follows: the part is of another file
            start = 0
        with ftp.transfercmd(f"RETR {name}", rest=start or None) as connection:
            yield connection.recv, start, total


@contextmanager
def _own_part(place: Path) -> Iterator[Path]:
    """The name of the part file, for this process alone."""
    part = place.with_name(place.name + ".part")
    if sys.platform == "win32":  # no flock: a name of its own, which no other process resumes
        part = place.with_name(f"{place.name}.{os.getpid()}.part")
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
    else:
        # The lock is never stale: it ends with the process. Its file stays, since removing it could free it twice.
        with open(place.with_name(f".{place.name}.lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield part


def _wrong(path: Path, sha256: str | None, size: int | None) -> str:
    """What is wrong with the file, or nothing."""
    with open_regular(path) as (file, found):
        if size is not None and found != size:
            return f"it has {found} bytes, not {size}"
        if sha256 is not None:
            digest = hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()
            if digest != sha256.lower():
                return f"its SHA-256 is {digest}, not {sha256.lower()}"
    return ""


def _by_hand(url: str, place: Path) -> str:
    return f"to place it by hand, get {url} and put it at {place}"


@contextmanager
def _bar(name: str, progress: bool) -> Iterator[Callable[[int, int | None], None]]:
    """A function that shows how many bytes are there, of how many."""
    from rich import progress as rich_progress
    from rich.console import Console

    console = Console(stderr=True)
    if not (progress and console.is_terminal):  # one that is switched off still ends its line
        yield lambda done, total: None
        return
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
