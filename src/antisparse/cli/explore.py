"""`antisparse explore` and `sample`: a page on which one sees what the codes do, and something to try it on."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from antisparse._arrays import renamed, thread_count
from antisparse.cli._shared import (
    check_output,
    index_place,
    on_terminal,
    open_index,
    read_ids,
    read_lines,
    read_part,
)
from antisparse.errors import InputError

if TYPE_CHECKING:
    from antisparse.explore import Originals
    from antisparse.index import Index

_ITEMS = 2000


def add_explore(commands: Any) -> None:
    """The commands `explore` and `sample`."""
    parser = commands.add_parser(
        "explore",
        help="write a page that shows what the codes find, and what they miss",
        description="Write one HTML file, which needs neither a server nor a network: the neighbours of items by every "
        "search on the codes beside the true ones, the bits of the codes, and what they rebuild.",
    )
    parser.add_argument("index", metavar="INDEX", type=index_place, help="the folder of the index, or its address")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the page to write, NAME.html")
    originals_arguments(parser)
    parser.add_argument(
        "--items",
        default=str(_ITEMS),
        metavar="N|FILE",
        help=f"the items that can be asked: so many, drawn at random, or a file of ids or keys ({_ITEMS})",
    )
    parser.add_argument("--text-column", metavar="COLUMN", help="the column that is shown of items (that of texts)")
    parser.add_argument("--seed", type=int, default=0, help="of every random draw (0)")
    parser.add_argument("--threads", type=int, help="threads to use (all CPUs)")
    parser.set_defaults(run=_explore)
    parser = commands.add_parser(
        "sample",
        help="make an index of sentences that are on this machine, to try things on",
        description="Make an index of some thousand sentences on what functions of Python, NumPy, SciPy and "
        "scikit-learn do, which are on this machine, and a file of their vectors, which take no model.",
    )
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="the folder to make")
    parser.add_argument("--bytes", type=int, default=16, help="bytes of a code (16)")
    parser.set_defaults(run=_sample)


def originals_arguments(parser: argparse.ArgumentParser) -> None:
    """The original vectors, and other sizes that are made of them."""
    parser.add_argument(
        "--vectors", metavar="FILE", help="the original vectors, for what is exact; row i is the vector of id i"
    )
    parser.add_argument("--column", help="the array of an HDF5 file, or the column of a Parquet file, of --vectors")
    parser.add_argument(
        "--bytes", metavar="N,N,...", help="show codes of these sizes, too, which are learned from --vectors: 8,16,32"
    )


def originals(given: argparse.Namespace, index: Any) -> "tuple[Originals | None, list[Index]]":
    """The original vectors that are named, and indexes of the other sizes."""
    from antisparse.explore import Originals, other_sizes

    sizes = _sizes(given.bytes)
    if given.vectors is None:
        if sizes:
            raise InputError("--bytes: codes of other sizes are learned from the original vectors; give --vectors")
        return None, []
    with renamed(vectors="--vectors", n_bytes="--bytes"):
        found = Originals.of(index, read_part(given.vectors, "base", "--vectors", given.column))
        if not len(index):  # a service may begin with nothing, of which nothing is learned
            return found, []
        options = {"random_state": getattr(given, "seed", 0), "n_threads": getattr(given, "threads", None)}
        return found, other_sizes(index, found, sizes, progress=on_terminal(), **options)


def _sizes(text: str | None) -> list[int]:
    try:
        return [] if text is None else [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--bytes {text[:60] if text else text}: it must be numbers between commas: 8,16,32") from None


def _explore(given: argparse.Namespace, command: str) -> int:
    from antisparse.explore import Explorer, write_page
    from antisparse.explore.written import check_page_path

    thread_count(given.threads, "--threads")
    check_page_path(given.out, "-o")
    check_output(given.out, "-o", [given.vectors, None if given.items.isdecimal() else given.items])
    with open_index(given.index, threads=given.threads) as index:
        if not len(index):
            raise InputError(f"INDEX {given.index}: it is empty, and there is nothing to show")
        ids = _items(given, index)
        found, others = originals(given, index)
        with renamed(text="--text-column", ids="--items", path="-o", explorer="INDEX"):
            explorer = Explorer(index, found, others, given.text_column)
            size = write_page(given.out, explorer, ids, name=Path(str(given.index)).name)
    sizes = ", ".join(str(one.codec.n_bytes) for one in explorer.sizes)
    items, unit = _counted(len(index), "item"), "byte" if sizes == "1" else "bytes"
    print(f"{len(ids):,} of {items}, codes of {sizes} {unit}, {size / 1e6:.1f} MB: {given.out}")
    return 0


def _items(given: argparse.Namespace, index: "Index") -> Any:
    """The ids of the items that can be asked."""
    from antisparse.explore.written import drawn_items

    if given.items.isdecimal():
        try:
            count = int(given.items)
        except ValueError:  # Python reads no thousands of digits
            raise InputError(f"--items {given.items[:20]}...: it has {len(given.items)} digits; give fewer") from None
        with renamed(count="--items", random_state="--seed"):
            return drawn_items(index, count, given.seed)
    schema = index.snapshot.schema
    read = read_lines if schema is not None and schema.key_is_text else read_ids
    return np.unique(index.snapshot.ids_of(read(given.items, "--items"), "--items"))


def _counted(count: int, unit: str) -> str:
    """So many of something, in words: 1 byte, 2 bytes."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def _sample(given: argparse.Namespace, command: str) -> int:
    from antisparse.datasets import sentences, write_vectors
    from antisparse.index import Index
    from antisparse.index.item_schema import pyarrow

    pa = pyarrow()
    check_output(given.out, "-o", ())
    place, vectors = given.out / "sentences.index", given.out / "sentences.npy"
    if place.exists() or vectors.exists():
        raise InputError(f"-o {given.out}: there is such a sample already; choose another folder")
    above = next(one for one in (given.out, *given.out.parents) if one.exists())
    if not above.is_dir():
        raise InputError(f"-o {given.out}: {above} is a file, and no folder; choose another name")
    names, texts, X = sentences()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])
    table = pa.table({"function": names, "text": texts, "vector": lists})
    options: dict[str, Any] = {"metric": "cosine", "symbols": "signs", "key": "function", "columns": ["text"]}
    with (
        renamed(n_bytes="--bytes"),
        Index.build(table, given.bytes, progress=on_terminal(), random_state=0, **options) as index,
    ):
        given.out.mkdir(parents=True, exist_ok=True)  # now that there is something to put there
        index.save(place)
        write_vectors(vectors, X)
        size = _counted(index.codec.n_bytes, "byte")
        print(f"{place}: {len(index):,} sentences, {size} each ({index.codec.summary})")
    print(f"{vectors}: their vectors")
    return 0
