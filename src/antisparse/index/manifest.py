"""The manifest: what files make up an index now. It is replaced in one step (docs/format.md)."""

import json
import re
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from antisparse._files import read_file, sync_folder, write_file
from antisparse._version import __version__
from antisparse.errors import FormatError

FORMAT, VERSION = "antisparse-index", 2
NAME = "manifest.json"
# Segments and items, named by their content; in an object store, where no one holds a lock, with a name of their own.
STAGED = re.compile(r"staged-([0-9a-f]{32})(-[0-9a-f]{16})?\.(safetensors|arrow)")
FILES = re.compile(  # the names there are
    r"(codec|(segment|deleted)-[0-9]{8,19})-[0-9a-f]{8}\.safetensors|items-[0-9]{8,19}-[0-9a-f]{8}\.arrow|"
    + STAGED.pattern
)
ITEMS, MODEL, COMMITS, CLEARED = "items", "model", "commits", "cleared"  # features that not every reader knows
PACKED = "packed ids"  # of segments: without it they are those of a version that was never released
_FEATURES = (ITEMS, MODEL, COMMITS, CLEARED, PACKED)
MOST = 1 << 26  # bytes of a manifest
COMMITS_KEPT = 1024  # of staged segments, whose names are kept


@dataclass(frozen=True)
class FileEntry:
    """A file: its name, its size, and the CRC-32 of its header, or of all of it where it has none."""

    file: str
    size: int
    crc32: int


@dataclass(frozen=True)
class ItemsEntry:
    """What is kept of every item: the name and kind of its key, where vectors came from, and its other columns."""

    key: str | None
    key_kind: str | None  # "text" or "integer"
    vector: str | None
    schema: str  # of Arrow, in base64


@dataclass(frozen=True)
class ModelEntry:
    """The model that the vectors are from: its name, and the column of texts that it embeds, if the index does that."""

    name: str
    text: str | None

    @property
    def summary(self) -> dict[str, str]:
        """What it is, in words."""
        return {"model": self.name, **({} if self.text is None else {"text": self.text})}


@dataclass(frozen=True)
class SegmentEntry:
    """A segment: its codes, how many, those of them that are deleted, and its items."""

    codes: FileEntry
    rows: int
    deleted: FileEntry | None = None
    deleted_rows: int = 0
    items: FileEntry | None = None


@dataclass(frozen=True)
class Manifest:
    """One state of an index."""

    codec: FileEntry
    generation: int = 1
    next_id: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    items: ItemsEntry | None = None
    model: ModelEntry | None = None
    commits: tuple[str, ...] = ()  # of staged segments: the last ones, by name
    cleared: int = 0  # what was staged before, in seconds since 1970, may be gone: in object stores alone
    writer: str = __version__  # the version that wrote it

    def entries(self) -> list[FileEntry]:
        """Every file that it names."""
        parts = ((s.codes, s.deleted, s.items) for s in self.segments)
        return [self.codec, *(entry for part in parts for entry in part if entry is not None)]

    def files(self) -> dict[str, int]:
        """The size of every file it names, by name."""
        return {entry.file: entry.size for entry in self.entries()}

    @property
    def bytes_on_disk(self) -> int:
        """All files that it names, and itself."""
        return sum(self.files().values()) + len(self.dumps())

    def dumps(self) -> bytes:
        """Its one spelling as JSON, with its own CRC-32."""
        content = {"format": FORMAT, "version": VERSION, "bit_order": "msb", **asdict(self)}
        features = [name for name in _FEATURES if content["segments" if name == PACKED else name]]
        if self.items is None:  # what has none is spelled as it was before there were any
            for part in (content, *content["segments"]):
                del part["items"]
        for name in (MODEL, COMMITS, CLEARED):
            if name not in features:
                del content[name]
        if features:
            content["features"] = features
        text = _spell(content)
        return _spell({"crc32": zlib.crc32(text), "manifest": content})

    def write(self, folder: Path, before: "Manifest | None") -> None:
        """Make this the state of the folder; if that fails half way, `before` stays it."""
        write_file(folder / NAME, [self.dumps()])
        try:
            sync_folder(folder)
        except BaseException:
            if before is not None:  # the new name may or may not be on the disk: put the old one back
                write_file(folder / NAME, [before.dumps()])
            else:
                (folder / NAME).unlink(missing_ok=True)
            sync_folder(folder)  # before the files that the new one names are removed
            raise

    def next(self, **changes: Any) -> "Manifest":
        """The manifest after this one."""
        return replace(self, generation=self.generation + 1, writer=__version__, **changes)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder; FormatError if there is none, or it is damaged or newer."""
    try:
        data = read_file(folder / NAME, MOST)
    except FileNotFoundError:
        raise FormatError(f"{folder} is not an index: it has no {NAME}") from None
    return parse_manifest(data, str(folder / NAME))


def parse_manifest(data: bytes, path: str) -> Manifest:
    """The manifest that these bytes are; FormatError if they are damaged or newer."""
    try:
        outer = json.loads(data.decode())
        content = outer["manifest"]
        if content["format"] != FORMAT:
            raise FormatError("it is not the manifest of an index")
        if content["version"] == 1:
            raise FormatError(
                "the index was written by antisparse 0.1 (format 1), which this version does not read; build it again "
                "from the vectors"
            )
        if content["version"] != VERSION:
            raise FormatError(
                f"the index has format {content['version']}, written by antisparse {content.get('writer')}, and this "
                f"antisparse {__version__} reads format {VERSION}; upgrade antisparse"
            )
        if unknown := set(content.get("features", [])) - set(_FEATURES):
            raise FormatError(
                f"the index uses {', '.join(map(str, sorted(unknown)))}, which this antisparse "
                f"{__version__} does not know; upgrade antisparse"
            )
        manifest = _parse(content)
        if manifest.dumps() != data:  # one spelling, and its own checksum: any other bytes are damage
            raise FormatError("its checksum does not match: it is damaged")
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path}: not a sound manifest ({error})") from None
    return manifest


def _parse(content: dict[str, Any]) -> Manifest:
    if content["bit_order"] != "msb" or not isinstance(content["writer"], str):
        raise FormatError("its bit order is unknown, or its writer is missing")
    segments = tuple(
        SegmentEntry(
            _file(entry["codes"]),
            _count(entry["rows"]),
            None if entry["deleted"] is None else _file(entry["deleted"]),
            _count(entry["deleted_rows"]),
            None if entry.get("items") is None else _file(entry["items"]),
        )
        for entry in content["segments"]
    )
    features = content.get("features", [])
    if segments and PACKED not in features:
        raise FormatError(
            "its segments are those of a version before 0.2, which this one does not read; build it again"
        )
    return Manifest(
        _file(content["codec"]),
        _count(content["generation"]),
        _count(content["next_id"]),
        segments,
        _items(content["items"]) if ITEMS in features else None,
        _model(content["model"]) if MODEL in features else None,
        tuple(_commit(name) for name in content["commits"]) if COMMITS in features else (),
        _count(content["cleared"]) if CLEARED in features else 0,
        content["writer"],
    )


def _items(entry: dict[str, Any]) -> ItemsEntry:
    texts = [entry["key"], entry["key_kind"], entry["vector"], entry["schema"]]
    if not all(text is None or isinstance(text, str) for text in texts) or texts[3] is None:
        raise FormatError("what it says of items is not sound")
    if (texts[0] is None) != (texts[1] is None) or texts[1] not in (None, "text", "integer"):
        raise FormatError("its items have a key of an unknown kind")
    return ItemsEntry(*texts)


def _commit(name: Any) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[0-9a-f]{32}", name):
        raise FormatError(f"it names the commit {name!r}, which is none")
    return name


def _model(entry: dict[str, Any]) -> ModelEntry:
    name, text = entry["name"], entry["text"]
    if not isinstance(name, str) or not name or not (text is None or isinstance(text, str)):
        raise FormatError("what it says of its model is not sound")
    return ModelEntry(name, text)


def _file(entry: dict[str, Any]) -> FileEntry:
    name = entry["file"]
    if not isinstance(name, str) or not FILES.fullmatch(name):
        raise FormatError(f"it names the file {name!r}, which is none of an index")
    return FileEntry(name, _count(entry["size"]), _count(entry["crc32"]))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise FormatError(f"{value!r} is not a number of anything")
    return value


def _spell(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
