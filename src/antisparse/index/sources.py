"""Where tables come from: memory, files, folders, globs, partitions, object stores. They are read a batch at a time."""

import fnmatch
import glob
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import first_line, path_of, shown
from antisparse._containers import package_of
from antisparse.errors import (
    AntisparseError,
    FormatError,
    InputError,
    InputTypeError,
    MissingDependencyError,
    MissingFileError,
)
from antisparse.index.item_schema import cast_column, pyarrow, table_of

# The formats by the suffixes of their files; a table of Lance is a folder, NAME.lance.
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".orc": "orc"}
BATCH = 4096  # rows

Rows = npt.NDArray[np.int64]


@dataclass(eq=False)
class TableSource:
    """A table that is read by batches of rows.

    Attributes
    ----------
    name : str
        What errors call it.
    schema : pyarrow.Schema
    total : int or None
        Its rows; None where that is not known, and it can be read only once.
    read : callable
        Batches of the columns that are named.
    """

    name: str
    schema: Any
    total: int | None
    read: Callable[[list[str]], Iterator[Any]]

    def batches(self, columns: list[str], rows: Rows | None = None) -> Iterator[Any]:
        """Tables of at most a few thousand rows, of the columns that are named; columns of one name are refused.

        Of some rows alone, ascending, if they are given.
        """
        for column in columns:
            if self.schema.names.count(column) != 1:
                listed = ", ".join(map(repr, self.schema.names))[:500]
                raise InputError(f"{self.name} has no one column {column!r}; it has {listed}")
        pa = pyarrow()
        at = 0
        try:
            for batch in self.read(columns):
                batch = _decoded(batch)
                if rows is not None:
                    first, last = np.searchsorted(rows, [at, at + batch.num_rows])
                    mine, at = rows[first:last] - at, at + batch.num_rows
                    batch = batch.take(pa.array(mine))
                yield from (batch.slice(at, BATCH) for at in range(0, batch.num_rows, BATCH))
        except AntisparseError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
            raise FormatError(f"{self.name} could not be read: {first_line(error)}") from None


def _decoded(batch: Any) -> Any:
    """A batch without views and dictionaries of text, which Arrow cannot take rows of."""
    pa = pyarrow()
    for number, field in enumerate(batch.schema):
        if "view" in str(field.type) or (pa.types.is_dictionary(field.type) and "string" in str(field.type)):
            column = batch.column(number)
            try:
                text = cast_column(column, pa.large_string())
            except pa.ArrowException:  # a view of lists, say, or what is no text
                continue
            batch = batch.set_column(number, field.name, text)
    return batch


def is_source(value: Any) -> bool:
    """Whether it is a table that is not in memory: a path, an address, several of them, a data set or a reader."""
    if isinstance(value, str | os.PathLike):
        return True
    if isinstance(value, list | tuple) and value and all(isinstance(one, str | os.PathLike) for one in value):
        return True
    if package_of(value) not in ("pyarrow", "lance"):
        return False
    return hasattr(value, "read_next_batch") or (hasattr(value, "to_batches") and hasattr(value, "count_rows"))


def source_of(value: Any, name: str) -> TableSource:
    """A table as something to be read by batches."""
    if isinstance(value, str | os.PathLike | list | tuple) and is_source(value):
        return _of_data_set(_data_set(value, name), _called(value))
    if not is_source(value):
        table = table_of(value, name)
        return TableSource(name, table.schema, table.num_rows, lambda columns: iter(table.select(columns).to_batches()))
    if hasattr(value, "read_next_batch"):
        return TableSource(name, value.schema, None, lambda columns: (batch.select(columns) for batch in value))
    return _of_data_set(value, name)


def _of_data_set(data_set: Any, name: str) -> TableSource:
    pa = pyarrow()
    try:
        total = int(data_set.count_rows())
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise FormatError(f"{name} could not be read: {first_line(error)}") from None

    def read(columns: list[str]) -> Iterator[Any]:
        if package_of(data_set) == "lance" or not hasattr(data_set, "get_fragments"):
            yield from data_set.to_batches(columns=columns, batch_size=BATCH)
            return
        # A file after the other: a scan of all of them reads ahead, and holds many at a time.
        options = {"columns": columns, "batch_size": BATCH, "batch_readahead": 1, "use_threads": False}
        try:
            fragments = list(data_set.get_fragments())
        except ValueError:  # it is filtered
            yield from data_set.to_batches(**options)
            return
        for fragment in fragments:
            yield from fragment.to_batches(schema=data_set.schema, **options)

    return TableSource(name, data_set.schema, total, read)


def _called(value: Any) -> str:
    several = isinstance(value, list | tuple)
    return shown(
        f"{value[0]} and {len(value) - 1} more" if several and len(value) > 1 else str(value[0] if several else value)
    )


def _data_set(value: Any, name: str) -> Any:
    """The files that are meant, as one data set."""
    pa = pyarrow()
    import pyarrow.dataset as ds

    paths = list(value) if isinstance(value, list | tuple) else [value]
    remote = [one for one in paths if isinstance(one, str) and "://" in one]
    try:
        if remote:
            if len(paths) > 1:
                raise InputError(
                    f"{name} names several addresses; pass one, of a file or a folder, or a pyarrow.dataset"
                )
            return _far_data_set(remote[0], name)
        if len(paths) == 1 and Path(paths[0]).suffix == ".lance":
            return _lance(paths[0], name)
        files = [file for one in paths for file in _files(one, name)]
        kind = _kind(files, name)
        partitions = {}
        if len(paths) == 1 and os.path.isdir(paths[0]):  # folders within it such as lang=en are a column
            partitions = {"partitioning": ds.partitioning(flavor="hive"), "partition_base_dir": os.fspath(paths[0])}
        return ds.dataset(
            [str(file) for file in files], format=_parquet(files) if kind == "parquet" else kind, **partitions
        )
    except AntisparseError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise FormatError(f"{name} = {_called(value)} could not be read: {first_line(error)}") from None


def _far_data_set(address: str, name: str) -> Any:
    """The files of an address: itself, those that a glob matches, or all of a folder, by Arrow's own file systems."""
    import pyarrow.dataset as ds
    import pyarrow.fs as fs

    system, place = fs.FileSystem.from_uri(address)
    found, partitions = [place], {}
    if glob.has_magic(place):
        parts = place.split("/")
        start = "/".join(takewhile(lambda one: not glob.has_magic(one), parts)) or "/"
        found = [f for f in _listed(system, start) if not _hidden(f, start) and _matches(f.split("/"), parts)]
    elif system.get_file_info(place).type == fs.FileType.Directory:
        found = [file for file in _listed(system, place) if not _hidden(file, place)]
        partitions = {"partitioning": ds.partitioning(flavor="hive"), "partition_base_dir": place}
    elif system.get_file_info(place).type == fs.FileType.NotFound:
        found = []
    if not found:
        raise MissingFileError(f"{name} = {shown(address)}: there are no such files ({', '.join(FORMATS)})")
    kind = _kind([Path(file) for file in found], name)
    return ds.dataset(found, filesystem=system, format=kind, **partitions)


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Whether a path is one that a glob means: ** is any number of folders, * no more than a name."""
    if not parts or not pattern:
        return parts == pattern
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _listed(system: Any, folder: str) -> list[str]:
    """All files of a folder far away that can be tables, in order."""
    from pyarrow.fs import FileSelector

    there = system.get_file_info(FileSelector(folder, recursive=True))
    return sorted(info.path for info in there if info.is_file and Path(info.path).suffix.lower() in FORMATS)


def _kind(files: list[Path], name: str) -> str:
    kinds = {FORMATS.get(file.suffix.lower(), "") for file in files}
    if "" in kinds or len(kinds) != 1:
        raise InputError(f"{name} must be files of one of the kinds {', '.join(FORMATS)}")
    return kinds.pop()


def _lance(value: Any, name: str) -> Any:
    """A table of Lance, which is a folder."""
    try:
        import lance
    except ImportError:
        raise MissingDependencyError(f"{name} is a table of Lance: pip install pylance") from None
    if not os.path.isdir(value):
        raise MissingFileError(f"{name} = {shown(str(value))}: there is no such folder")
    return lance.dataset(os.fspath(value))


def _parquet(files: list[Path]) -> Any:
    """Parquet read by pages, checked, whose footers allocate no more than the largest file has."""
    import pyarrow.dataset as ds

    largest = max(1, *(file.stat().st_size for file in files))
    options = ds.ParquetFragmentScanOptions(
        use_buffered_stream=True,
        pre_buffer=False,
        thrift_string_size_limit=largest,
        thrift_container_size_limit=largest,
        page_checksum_verification=True,
    )
    return ds.ParquetFileFormat(default_fragment_scan_options=options)


def _files(value: Any, name: str) -> list[Path]:
    """The files of a path: itself, those that a glob matches, or all of a folder; regular ones alone, in order."""
    place = path_of(value, name)
    if os.path.isdir(place):
        found = [
            file for file in sorted(place.rglob("*")) if file.suffix.lower() in FORMATS and not _hidden(file, place)
        ]
    elif not os.path.lexists(place) and glob.has_magic(str(place)):
        found = [Path(file) for file in sorted(glob.glob(str(place), recursive=True)) if not os.path.isdir(file)]
    else:
        found = [place]
    if not found:
        raise MissingFileError(f"{name} = {shown(str(place))}: there are no such files ({', '.join(FORMATS)})")
    for file in found:
        try:
            regular = stat.S_ISREG(os.stat(file).st_mode)
        except OSError:
            raise MissingFileError(f"{name} = {shown(str(file))}: there is no such file") from None
        if not regular:
            raise InputTypeError(f"{name} = {shown(str(file))} is not a regular file")
    return found


def _hidden(file: Path | str, folder: Path | str) -> bool:
    return any(part.startswith((".", "_")) for part in Path(file).relative_to(folder).parts)
