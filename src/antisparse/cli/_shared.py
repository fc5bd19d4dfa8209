"""What the commands of an index share: an index to read or to change, vectors and ids from files, progress."""

import argparse
import glob
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from antisparse._arrays import finite, path_of, renamed, without_secrets
from antisparse._files import open_regular
from antisparse._progress import bar as progress_bar
from antisparse.errors import FormatError, InputError, InputTypeError, MissingDependencyError, UnsupportedError

if TYPE_CHECKING:
    from antisparse.index import Index

Array = npt.NDArray[Any]

_KEYS = {"base": "train", "learn": "learn", "query": "test", "neighbors": "neighbors"}  # of ann-benchmarks


def index_place(text: str) -> Path | str:
    """The place of an index as it is named: a folder, or an address."""
    return text if "://" in text else Path(text)


def open_index(
    path: Path | str, *, read_only: bool = True, verify: bool = False, threads: int | None = None, model: Any = None
) -> "Index":
    """An index that is there."""
    if isinstance(path, Path) and not path.is_dir():
        wrong = "it is no folder, as an index is" if os.path.exists(path) else "there is no such folder"
        raise InputError(f"INDEX {path}: {wrong}; antisparse build makes one")
    from antisparse.index import Index

    with renamed(model="--model", path="INDEX"):
        return Index.open(path, read_only=read_only, verify=verify, n_threads=threads, model=model)


def model_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """The arguments that name a model of texts."""
    parser.add_argument("--model", metavar="NAME", help=what)
    parser.add_argument(
        "--download", action="store_true", help="download the model, if it is not here; by default nothing is"
    )


def text_model(given: argparse.Namespace, index: Path | str | None = None) -> Any:
    """The model that is named, or, of an index that is there, kept; None if there is none."""
    from antisparse.index.staging import staging_of
    from antisparse.index.texts import TextModel

    if given.model is not None:
        return TextModel(given.model, given.download)
    there = index is not None and (isinstance(index, str) or index.is_dir())
    with renamed(path="INDEX"):
        kept = staging_of(index).manifest().model if there and index is not None else None
    return None if kept is None else TextModel(kept.name, given.download, trusted=False)


@contextmanager
def changing(path: Path | str, threads: int | None = None, model: Any = None) -> Iterator["Index"]:
    """An index open for writing. Ctrl-C leaves it as it was, unless it comes too late: the message says which."""
    if isinstance(path, str):
        raise UnsupportedError(
            f"INDEX {without_secrets(path)} is in an object store, where it is read only; change a copy in a folder "
            "(antisparse copy), and copy it to another address"
        )
    with open_index(path, read_only=False, threads=threads, model=model) as index:
        from antisparse.index.manifest import read_manifest  # as in open_index, not before it is needed

        before = read_manifest(path)
        try:
            yield index
        except KeyboardInterrupt:
            made = read_manifest(path) != before
            words = "stopped, but the change was made already" if made else "stopped; the index is as it was"
            raise KeyboardInterrupt(words) from None


def read_part(path: str, part: str, name: str, column: str | None = None) -> Array:
    """The vectors of a file, or one part of a data set: base, learn, query or neighbors."""
    from antisparse.datasets import read_dataset, read_vectors

    place = path_of(path, name)
    if not os.path.exists(place):
        raise InputError(f"{name} {path}: there is no such file or folder")
    if not place.is_dir():
        if column is None and place.suffix.lower() in (".hdf5", ".h5"):
            column = _KEYS[part]
        return read_vectors(place, column=column)
    array: Array | None = getattr(read_dataset(place), part)
    if array is None:
        raise InputError(f"{name} {path}: the folder has no {part} file")
    return array


def read_source(path: str, part: str, name: str, column: str | None = None) -> Any:
    """What an index takes: an array, or, where it is a table, what reads it a batch at a time, or the texts of a .txt.

    `-` is standard input: Arrow IPC, or .npy.
    """
    if path == "-":
        return standard_input(name)
    if path.lower().endswith(".txt"):
        return read_lines(path, name)
    return path if is_table_path(path) else read_part(path, part, name, column)


def is_table_path(path: str) -> bool:
    """Whether a path means tables: files of Parquet, Arrow or ORC, a folder or a glob of them, an address."""
    from antisparse.datasets.dataset import has_base
    from antisparse.index.table_files import FORMATS

    if "://" in path or path.endswith(".lance") or (glob.has_magic(path) and not os.path.lexists(path)):
        return True
    if not os.path.isdir(path):
        return Path(path).suffix.lower() in FORMATS
    return not has_base(Path(path)) and any(file.suffix.lower() in FORMATS for file in Path(path).rglob("*"))


def standard_input(name: str) -> Any:
    """A reader of record batches, or an iterator of arrays, from standard input."""
    source: Any = sys.stdin.buffer
    start = source.peek(8)[:8]
    if start.startswith(b"\x93NUMPY"):
        return npy_batches(source, name)
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingDependencyError("Arrow IPC needs pyarrow: pip install 'antisparse[tables]'") from None
    if start.startswith(b"ARROW1"):  # a file is a stream between its magic and its footer
        source.read(8)
    try:
        return pa.ipc.open_stream(source)
    except (pa.ArrowException, OSError, ValueError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise FormatError(f"{name} -: standard input is neither Arrow IPC nor .npy ({first})") from None


def npy_batches(source: BinaryIO, name: str) -> Iterator[Array]:
    """The rows of an .npy file that comes through a pipe, some at a time."""
    try:
        version = np.lib.format.read_magic(source)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(source, max_header_size=10_000)
    except (ValueError, EOFError, OSError) as error:
        raise FormatError(f"{name} -: not a sound .npy file ({error})") from None
    if dtype.kind not in "biuf" or len(shape) != 2 or fortran or not shape[1]:
        raise FormatError(f"{name} -: .npy through a pipe must hold rows of numbers in C order, not {shape} of {dtype}")
    width, left = shape[1] * dtype.itemsize, shape[0]
    while left:
        data = source.read(min(left, 4096) * width)
        if len(data) % width or not data:
            raise FormatError(f"{name} -: the .npy file ends before its {shape[0]} rows")
        left -= len(data) // width
        yield np.frombuffer(data, dtype).reshape(-1, shape[1])


def read_queries(path: str, column: str | None, key: str | None) -> tuple[Array, Any]:
    """Queries, and the column of their table that names them, if there is one."""
    source = read_source(path, "query", "QUERIES", column)
    if isinstance(source, np.ndarray):
        if key is not None:
            raise InputError(f"--query-key {key}: QUERIES {path} is no table, and has no columns")
        return source, None
    if isinstance(source, Iterator) and not hasattr(source, "read_next_batch"):
        if key is not None:
            raise InputError(f"--query-key {key}: QUERIES {path} is no table, and has no columns")
        parts = list(source)
        return np.concatenate(parts) if parts else np.zeros((0, 0)), None
    import pyarrow as pa

    from antisparse.index.sources import source_of
    from antisparse.index.tables import vector_column, vectors_of

    table = source_of(source, "QUERIES")
    with renamed(vector="--column"):
        vector = vector_column(table.schema, column)
    batches = list(table.batches([vector] if key is None else [vector, key]))
    if not batches:
        raise InputError(f"QUERIES {path} has no rows")
    keys = None if key is None else pa.chunked_array([batch.column(key) for batch in batches])
    return np.concatenate([vectors_of(batch, vector) for batch in batches]), keys


def read_lines(path: str, name: str) -> list[str]:
    """Keys or texts, one a line; empty lines and a byte order mark are passed over."""
    place = path_of(path, name)
    if not os.path.exists(place):
        raise InputError(f"{name} {path}: there is no such file")
    try:
        with open_regular(place) as (file, _):
            lines = file.read().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
            return [line for line in lines if line]
    except UnicodeDecodeError:
        raise FormatError(f"{name} {path} is not text in UTF-8, one a line") from None


def check_output(path: Path, name: str, inputs: Sequence[str | Path | None]) -> None:
    """Raise if writing to `path` would change an index, or what the command reads."""
    from antisparse.datasets.dataset import has_base, part_files

    path_of(path, name)
    for above in Path(os.path.abspath(path)).resolve().parents:
        if _is_index(above):
            raise InputError(f"{name} {path} lies in the index {above}, which it would damage; choose another place")
    if _is_index(path):
        raise InputError(f"{name} {path} is an index; choose another name")
    read: list[str | Path] = [given for given in inputs if given is not None]
    for given in tuple(read):
        if os.path.isdir(given):
            read += part_files(Path(given)).values() if has_base(Path(given)) else Path(given).rglob("*")
        elif not os.path.lexists(given):
            read += glob.glob(str(given), recursive=True)
    if os.path.exists(path) and any(os.path.exists(given) and os.path.samefile(path, given) for given in read):
        raise InputError(f"{name} {path} is what the command reads; choose another name")


def _is_index(folder: Path) -> bool:
    """Whether it holds files of an index, even of one without its manifest."""
    from antisparse.index.manifest import FILES

    try:
        return any(FILES.fullmatch(name) for name in os.listdir(folder))
    except OSError:  # no folder, or one that cannot be read
        return False


def check_columns(X: Array, name: str, dimensions: int) -> None:
    """Raise unless vectors are as long as those of the index."""
    if X.shape[1] != dimensions:
        raise InputError(f"{name} has vectors of {X.shape[1]} dimensions; those of the index have {dimensions}")


def read_ids(path: str, name: str) -> Array:
    """Whole numbers, or a mask: from an npy file, a file of vectors with one column, or text, one number a line."""
    from antisparse.datasets import read_vectors
    from antisparse.datasets._raw import read_npy
    from antisparse.datasets.files import SUFFIXES

    place = path_of(path, name)
    if not os.path.exists(place):
        raise InputError(f"{name} {path}: there is no such file")
    kind = SUFFIXES.get(place.suffix.lower())
    if kind is None:
        return _text_ids(place)
    array = read_npy(place, numbers=True) if kind == "npy" else read_vectors(place)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} {path} has shape {array.shape}; it must hold one number a row")
    if array.dtype.kind not in "biu":
        raise InputTypeError(f"{name} {path} has dtype {array.dtype}; ids are integers")
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise InputError(f"{name} {path} has {array.max()}; ids are below 2^63 - 1")
    return array if array.dtype == bool else array.astype(np.int64)


def whole_numbers(values: list[int], name: str) -> npt.NDArray[np.int64]:
    """Numbers as an array of ids."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise InputError(f"{name} has a number that does not fit int64; ids are below 2^63 - 1") from None


def _text_ids(path: Path) -> Array:
    try:
        with open_regular(path) as (file, _):
            words = file.read().decode("utf-8").split()
    except UnicodeDecodeError:
        raise FormatError(f"{path} is neither text nor of a suffix that is known") from None
    numbers = []
    for word in words:
        try:
            numbers.append(int(word))
        except ValueError:
            raise FormatError(f"{path}: {word[:20]!r} is not a whole number; a text file holds one id a line") from None
    return whole_numbers(numbers, str(path))


def check_vectors(X: Array, name: str, metric: str, rows: Sequence[int] | Array) -> None:
    """Raise unless all are finite and, for the cosine, none is zero; the error names the row of the file."""
    for i in np.flatnonzero(~np.isfinite(X).all(axis=1))[:1]:
        finite(X[i : i + 1], name, int(rows[i]))
    if metric == "cosine" and not (some := X.any(axis=1)).all():
        row = rows[int(np.argmin(some))]
        raise InputError(f"{name} row {row} is zero, and has no cosine with anything; remove it, or use another metric")


@contextmanager
def bar(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if that is a terminal; the function that comes with it moves it on."""
    with progress_bar(name, total, on_terminal()) as advance:
        yield advance


def on_terminal() -> bool:
    """Whether standard error is a terminal, on which progress can be shown."""
    return sys.stderr.isatty()
