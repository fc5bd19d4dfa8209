"""Every reader of files, as a function of a path: it gives what it read, or raises an error of the library."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from antisparse import Codec, Index
from antisparse.cli._shared import read_ids
from antisparse.datasets import read_dataset, read_vectors
from antisparse.evaluation import Measure
from antisparse.index.item_schema import ItemSchema
from antisparse.index.items import Items
from antisparse.index.manifest import FileEntry, ItemsEntry

CORPUS = Path(__file__).parent / "corpus"
_COLUMNS = {"key": pa.string(), "text": pa.string(), "tags": pa.list_(pa.string()), "n": pa.int32(), "b": pa.bool_()}
SCHEMA = ItemSchema.of(pa.schema(_COLUMNS), "key", [name for name in _COLUMNS if name != "key"], None)


def _vectors(path: Path) -> None:
    X = read_vectors(path)
    X.astype(np.float64).sum()  # reads all of it


def _dataset(path: Path) -> None:
    found = read_dataset(path)
    found.base.astype(np.float64).sum()


def _codec(path: Path) -> None:
    codec = Codec.load(path)
    codec.decode(codec.encode(np.zeros((2, codec.dimension))))


def _manifest(path: Path) -> None:
    Index.open(path.parent, read_only=True).close()


def _items(path: Path) -> None:
    entry = FileEntry(path.name, path.stat().st_size, 0)
    items = Items.read(SCHEMA, path, entry, 5, memory=False, verify=False)
    items.take(np.arange(5)).to_pylist()
    items.keys(np.array([4, 0]))


def _schema(path: Path) -> None:
    """The schema of items as a manifest has it."""
    ItemSchema.read(ItemsEntry("key", "text", None, path.read_bytes().decode("latin-1")))


def _text(path: Path) -> None:
    Measure.parse(path.read_bytes().decode("latin-1"))


def _ids(path: Path) -> None:
    read_ids(str(path), "ids").sum()


# By the name of a reader: what reads, and the files of the corpus that it starts from. The names of files end alike.
READERS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "fvecs": (_vectors, ["x.fvecs"]),
    "bvecs": (_vectors, ["x.bvecs"]),
    "ivecs": (_vectors, ["x.ivecs"]),
    "fbin": (_vectors, ["x.fbin"]),
    "u8bin": (_vectors, ["x.u8bin"]),
    "i8bin": (_vectors, ["x.i8bin"]),
    "ibin": (_vectors, ["x.ibin"]),
    "npy": (_vectors, ["x.npy", "fortran.npy", "version2.npy"]),
    "hdf5": (_vectors, ["contiguous.h5", "chunked.h5", "compact.h5", "linked.h5"]),
    "dataset": (_dataset, ["dataset.h5"]),
    "parquet": (_vectors, ["x.parquet", "lists.parquet"]),
    "ids": (_ids, ["ids.npy", "mask.npy"]),
    "text": (_ids, ["ids.txt"]),
    "codec": (_codec, ["signs.codec", "codebooks.codec"]),
    "manifest": (_manifest, ["manifest.json"]),
    "items": (_items, ["items.arrow"]),
    "schema": (_schema, ["schema.base64"]),
    "measure": (_text, ["measure.txt"]),
}
