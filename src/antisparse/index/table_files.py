"""Files of tables: which there are under a path, a folder, a glob or an address, and units of rows to read apart."""

import fnmatch
import glob
import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from antisparse._arrays import first_line, path_of, shown, without_secrets
from antisparse.errors import AntisparseError, FormatError, InputError, InputTypeError, MissingFileError
from antisparse.index.item_schema import pyarrow

# The formats by the suffixes of their files; a table of Lance is a folder, NAME.lance.
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".orc": "orc"}
_AT_ONCE = 16  # files whose footers are read


@dataclass(frozen=True)
class Unit:
    """Rows of a file that are read apart from others.

    Attributes
    ----------
    file : str
    row_groups : tuple of int
        The first of its row groups, and the one after the last; empty for a whole file that has none.
    first : int
        The number of its first row among those of all files.
    rows : int
    size, modified : int
        The file's bytes, and when it was changed, in nanoseconds: it may be another by the time it is read.
    """

    file: str
    row_groups: tuple[int, ...]
    first: int
    rows: int
    size: int
    modified: int

    def to_dict(self) -> dict[str, Any]:
        """Of strings and numbers alone."""
        return asdict(self)


@dataclass(frozen=True)
class TableFiles:
    """Files of one kind that make up a table, in order.

    Attributes
    ----------
    files : tuple of str
    kind : {"parquet", "ipc", "orc"}
    address : str or None
        What names the file system, if it is not this machine's.
    base : str or None
        The folder whose folders such as lang=en are a column.
    """

    files: tuple[str, ...]
    kind: str
    address: str | None = None
    base: str | None = None

    @classmethod
    def of(cls, value: Any, name: str) -> "TableFiles":
        """The files that are meant: by a path or an address, or several paths."""
        pa = pyarrow()
        paths = list(value) if isinstance(value, list | tuple) else [value]
        remote = [one for one in paths if isinstance(one, str) and "://" in one]
        if remote and len(paths) > 1:
            raise InputError(f"{name} names several addresses; pass one, of a file or a folder, or a pyarrow.dataset")
        try:
            if remote:
                return cls._far(remote[0], name)
            files = tuple(str(file.absolute()) for one in paths for file in _files(one, name))
            base = os.path.abspath(paths[0]) if len(paths) == 1 and os.path.isdir(paths[0]) else None
            return cls(files, _kind(files, name), base=base)
        except AntisparseError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise FormatError(f"{name} = {called(value)} could not be read: {first_line(error)}") from None

    @classmethod
    def _far(cls, address: str, name: str) -> "TableFiles":
        """The files of an address: itself, those that a glob matches, or all of a folder, by Arrow's file systems."""
        import pyarrow.fs as fs

        system, place = fs.FileSystem.from_uri(address)
        found, base = [place], None
        if glob.has_magic(place):
            parts = place.split("/")
            start = "/".join(takewhile(lambda one: not glob.has_magic(one), parts)) or "/"
            found = [f for f in _listed(system, start) if not _hidden(f, start) and _matches(f.split("/"), parts)]
        elif system.get_file_info(place).type == fs.FileType.Directory:
            found, base = [file for file in _listed(system, place) if not _hidden(file, place)], place
        elif system.get_file_info(place).type == fs.FileType.NotFound:
            found = []
        if not found:
            raise MissingFileError(f"{name} = {called(address)}: there are no such files ({', '.join(FORMATS)})")
        return cls(tuple(found), _kind(found, name), address, base)

    def system(self) -> Any:
        """The file system that the files are in."""
        import pyarrow.fs as fs

        return fs.LocalFileSystem() if self.address is None else fs.FileSystem.from_uri(self.address)[0]

    def data_set(self, schema: Any = None, files: Sequence[str] | None = None) -> Any:
        """All of them, or some, as one data set."""
        import pyarrow.dataset as ds

        options: dict[str, Any] = {} if schema is None else {"schema": schema}
        if self.base is not None:
            options |= {"partitioning": ds.partitioning(flavor="hive"), "partition_base_dir": self.base}
        listed = list(self.files if files is None else files)
        kind = _parquet(listed) if self.kind == "parquet" and self.address is None else self.kind
        return ds.dataset(listed, filesystem=self.system(), format=kind, **options)

    def units(self, rows: int) -> list[Unit]:
        """Row groups one after the other, of one file each, that have at least so many rows, or are the file's last."""
        units, first, system = [], 0, self.system()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            infos = system.get_file_info(list(self.files))
            counts = list(pool.map(self._row_groups, self.files))
        for info, groups in zip(infos, counts, strict=True):
            begin, held = 0, 0
            for number, count in enumerate(groups):
                held += count
                if held and (held >= rows or number == len(groups) - 1):
                    span = (begin, number + 1) if self.kind == "parquet" else ()
                    units.append(Unit(info.path, span, first, held, info.size, info.mtime_ns or 0))
                    begin, first, held = number + 1, first + held, 0
        return units

    def _row_groups(self, file: str) -> list[int]:
        """The rows of each row group of a file; of a file that has none, all."""
        pa = pyarrow()
        try:
            fragment = next(iter(self.data_set(files=[file]).get_fragments()))
            if self.kind == "parquet":
                return [group.num_rows for group in fragment.row_groups]
            return [int(fragment.count_rows())]
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise FormatError(f"{file} could not be read: {first_line(error)}") from None

    def part(self, unit: Unit, schema: Any) -> Any:
        """The rows of a unit as a data set; InputError if its file is not the one that was planned."""
        import pyarrow.dataset as ds
        import pyarrow.fs as fs

        info = self.system().get_file_info(unit.file)
        if info.type != fs.FileType.File:
            raise MissingFileError(f"{unit.file} is gone since it was planned; plan again")
        if (info.size, info.mtime_ns or 0) != (unit.size, unit.modified):
            raise InputError(f"{unit.file} was changed since it was planned; plan again, and build anew")
        data_set = self.data_set(schema, [unit.file])
        fragment = next(iter(data_set.get_fragments()))
        if unit.row_groups:
            fragment = fragment.subset(row_group_ids=list(range(*unit.row_groups)))
        return ds.FileSystemDataset([fragment], data_set.schema, data_set.format, data_set.filesystem)


def called(value: Any) -> str:
    """What errors call files."""
    several = isinstance(value, list | tuple)
    first = without_secrets(str(value[0] if several else value))
    return shown(f"{first} and {len(value) - 1} more" if several and len(value) > 1 else first)


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


def _kind(files: Sequence[str], name: str) -> str:
    kinds = {FORMATS.get(Path(file).suffix.lower(), "") for file in files}
    if "" in kinds or len(kinds) != 1:
        raise InputError(f"{name} must be files of one of the kinds {', '.join(FORMATS)}")
    return kinds.pop()


def _parquet(files: Sequence[str]) -> Any:
    """Parquet read by pages, checked, whose footers allocate no more than the largest file has."""
    import pyarrow.dataset as ds

    largest = max(1, *(os.stat(file).st_size for file in files))
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
            text = "" if file.suffix.lower() in FORMATS else "; texts need model=, which makes vectors of them"
            raise MissingFileError(f"{name} = {shown(str(file))}: there is no such file{text}") from None
        if not regular:
            raise InputTypeError(f"{name} = {shown(str(file))} is not a regular file")
    return found


def _hidden(file: Path | str, folder: Path | str) -> bool:
    return any(part.startswith((".", "_")) for part in Path(file).relative_to(folder).parts)
