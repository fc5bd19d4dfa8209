"""What a search found: shown as a table, written to files, printed as JSON."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from antisparse.cli._shared import Array
from antisparse.errors import MissingDependencyError

SUFFIXES = (".npy", ".parquet", ".json", ".jsonl", ".csv")
_SHOWN_QUERIES, _SHOWN_RESULTS = 10, 5
_LONGEST = 200  # characters of a text that is shown


@dataclass(frozen=True)
class Results:
    """Distances and ids of all queries.

    Attributes
    ----------
    distances, ids : ndarray of shape (queries, k)
    content : dict
        What JSON says beside the results.
    items : pyarrow.Table or None
        A row a result, with the columns of its item, if the index keeps items or queries have names.
    """

    distances: Array
    ids: Array
    content: dict[str, Any]
    items: Any = None

    def write(self, path: Path) -> list[Path]:
        """Write the results whole or not at all; returns the files."""
        from antisparse._files import replacing
        from antisparse.datasets import write_vectors

        suffix = path.suffix.lower()
        if suffix == ".npy":
            files = outputs(path)
            write_vectors(files[1], self.distances)
            write_vectors(path, self.ids)
            return files
        with replacing(path) as temporary:
            if suffix == ".json":
                temporary.write_text(self.dumps() + "\n", encoding="utf-8")
            elif suffix == ".jsonl":
                with temporary.open("w", encoding="utf-8") as file:
                    file.writelines(json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in self._rows())
            elif suffix == ".csv":
                self._write_csv(temporary)
            elif self.items is not None:
                parquet()[1].write_table(self.items, temporary, write_page_checksum=True)
            else:
                _write_lists(temporary, {"ids": self.ids, "distances": self.distances})
        return [path]

    def _rows(self) -> Iterator[dict[str, Any]]:
        """A dict a result."""
        if self.items is not None:
            for batch in self.items.to_batches(max_chunksize=4096):
                yield from batch.to_pylist()
            return
        for query, (distances, ids) in enumerate(zip(self.distances.tolist(), self.ids.tolist(), strict=True)):
            for rank, (distance, i) in enumerate(zip(distances, ids, strict=True), 1):
                if i >= 0:
                    yield {"query": query, "rank": rank, "distance": distance, "id": i}

    def _write_csv(self, path: Path) -> None:
        """Lists and structs as JSON."""
        names = ["query", "rank", "distance", "id"] if self.items is None else self.items.column_names
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for row in self._rows():
                values = (row[name] for name in names)
                writer.writerow(
                    json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list | dict) else value
                    for value in values
                )

    def dumps(self) -> str:
        """JSON with all results. It knows no infinity: where nothing was found, the distance is null."""
        if self.items is not None:
            return json.dumps(self.content | {"results": list(self._rows())}, default=str)
        there = self.ids >= 0
        rows = [
            [value if found else None for value, found in zip(*row, strict=True)]
            for row in zip(self.distances.tolist(), there.tolist(), strict=True)
        ]
        return json.dumps(self.content | {"ids": self.ids.tolist(), "distances": rows})

    def show(self) -> None:
        """Print the first results of the first queries."""
        if self.items is None:
            table = _table(["query", "ids", "distances"])
            for row in range(min(len(self.ids), _SHOWN_QUERIES)):
                there = [at for at in range(min(self.ids.shape[1], _SHOWN_RESULTS)) if self.ids[row, at] >= 0]
                found = "  ".join(str(self.ids[row, at]) for at in there)
                table.add_row(str(row), found, "  ".join(f"{self.distances[row, at]:.4g}" for at in there))
        else:
            table = _table(self.items.column_names)
            numbers = (self.ids[:_SHOWN_QUERIES] >= 0).sum()
            for result in self.items.slice(0, int(numbers)).to_pylist():
                if result["rank"] <= _SHOWN_RESULTS:
                    table.add_row(*(_shown(value) for value in result.values()))
        Console().print(table)
        if len(self.ids) > _SHOWN_QUERIES or self.ids.shape[1] > _SHOWN_RESULTS:
            rows, columns = min(len(self.ids), _SHOWN_QUERIES), min(self.ids.shape[1], _SHOWN_RESULTS)
            print(
                f"{rows} of {len(self.ids):,} queries, {columns} of {self.ids.shape[1]:,} results each; "
                "-o FILE or --json gives all"
            )


def _table(names: list[str]) -> Table:
    """A table whose cells go on in the next line where a terminal is narrow: half a key is no use."""
    return Table(*(Column(escape(name), overflow="fold") for name in names))


def _shown(value: Any) -> str:
    """A value of an item in one line of a terminal: control characters in it do nothing."""
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: _LONGEST + 1])
    return escape(plain if len(plain) <= _LONGEST else plain[:_LONGEST] + "...")


def outputs(path: Path) -> list[Path]:
    """The files that the results go to."""
    return [path, path.with_suffix(".distances.npy")] if path.suffix.lower() == ".npy" else [path]


def _write_lists(path: Path, columns: dict[str, Array]) -> None:
    """A row a query; each column holds lists of k."""
    pa, pq = parquet()
    lists = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        for name, values in columns.items()
    }
    pq.write_table(pa.table(lists), path, write_page_checksum=True)


def parquet() -> tuple[Any, Any]:
    """Pyarrow and its module for Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install 'antisparse[parquet]'") from None
    return pyarrow, pyarrow.parquet
