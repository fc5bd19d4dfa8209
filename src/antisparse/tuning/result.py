"""What tuning found: as a table, a report, JSON and a picture."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from antisparse.evaluation import Measure
from antisparse.metrics import MetricName
from antisparse.tuning.progress import duration
from antisparse.tuning.setting import Setting

_WIDTH = 118  # of the prose of a report
_CAVEAT = (
    "Recall falls as more vectors are searched, and rises a little as more are learned from: where there will be many "
    "more vectors than here, leave room."
)


@dataclass(frozen=True)
class Tuning:
    """What `tune` measured and chose.

    Attributes
    ----------
    rows : list of Setting
        All that was measured, by bytes, the best first.
    chosen : Setting or None
        None where no setting reaches the recall wanted.
    best : Setting
        The one of the most recall, whatever its bytes.
    measure : str
        The measure that decides, such as "1@10".
    metric : {"l2", "cosine", "ip"}
    wanted : float or None
        The recall asked for.
    budget : int or None
        The bytes asked for.
    n_indexed : int
        Vectors that were given, and that the lines to paste are for.
    n_base, n_queries, n_train : int
        Vectors that were searched, queries, and vectors that encoders were fitted on.
    dimension : int
    seconds : float
        How long it took.
    """

    rows: list[Setting]
    chosen: Setting | None
    best: Setting
    measure: str
    metric: MetricName
    wanted: float | None
    budget: int | None
    n_indexed: int
    n_base: int
    n_queries: int
    n_train: int
    dimension: int
    seconds: float

    def __repr__(self) -> str:
        row = self.chosen or self.best
        verdict = "chosen" if self.chosen else f"none reaches {self.wanted:g}; best"
        recall = f"{self.measure} {row.recalls[self.measure].value:.3f}"
        return f"Tuning({len(self.rows)} settings measured; {verdict}: {row.n_bytes} bytes, {recall}, {row.code})"

    @property
    def measures(self) -> list[Measure]:
        """All that is reported: the one that decides first."""
        return [Measure.parse(name) for name in self.best.recalls]

    def table(self) -> str:
        """All settings as plain text, the chosen one starred."""
        titles = [f"{name} (95 % interval)" for name in self.best.recalls]
        lines = [["", "bytes", *titles, "encode µs", "search µs", "way", "code"]]
        for row in self.rows:
            times = (f"{row.encode_us:.0f}", f"{row.search_us:.0f}")
            star = "*" if row is self.chosen else ""
            lines.append([star, str(row.n_bytes), *map(str, row.recalls.values()), *times, row.way, row.code])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = ">" * (len(widths) - 2) + "<<"  # words to the left
        return "\n".join(
            "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
            for line in lines
        )

    def report(self, data: Sequence[str] = ("DATA",), n_indexed: int | None = None) -> str:
        """The table, what was chosen, the lines that make an index of it, and what to make of the numbers.

        Parameters
        ----------
        data : sequence of str
            The arguments of `antisparse build` that name the vectors.
        n_indexed : int, optional
            How many vectors these are, if X was a part of them.
        """
        row, n_indexed = self.chosen or self.best, self.n_indexed if n_indexed is None else n_indexed
        command = row.command(n_indexed, data)
        paste = [f"    {command}"] if command else ["    antisparse build has no options for this setting: use Python."]
        notes = [
            *(f"{measure.name} is {measure.meaning}." for measure in self.measures),
            "Bytes are all that is stored of a vector but its id. Times are of one thread, a vector or a query.",
            self._sizes(n_indexed),
            _CAVEAT,
            *("", *self._verdict(n_indexed), ""),
        ]
        lines = [
            *(self.table(), ""),
            *(fill(note, _WIDTH) for note in notes),
            *("In Python:", *(f"    {line}" for line in row.python(n_indexed).splitlines()), ""),
            *("On the command line:", *paste),
        ]
        return "\n".join(lines)

    def _sizes(self, n_indexed: int) -> str:
        return (
            f"Measured with {self.n_queries:,} queries on {self.n_base:,} of {n_indexed:,} vectors of {self.dimension} "
            f"dimensions, metric {self.metric}; encoders learned from {self.n_train:,}. "
            f"{len(self.rows)} trials in {duration(self.seconds)}."
        )

    def _verdict(self, n_indexed: int) -> list[str]:
        row, measure = self.chosen or self.best, self.measure
        recalls = ", ".join(f"{name} = {recall}" for name, recall in row.recalls.items())
        found = f"{row.n_bytes} bytes ({row.way}: {row.code}), {recalls}."
        if self.wanted is None:
            return [f"The best {measure} for {self.budget} bytes: {found}"]
        if self.chosen is None:
            most = max(row.n_bytes for row in self.rows)
            return [f"No setting of up to {most} bytes reaches {measure} = {self.wanted:g}. The best: {found}"]
        said = [f"The fewest bytes that reach {measure} = {self.wanted:g}: {found}"]
        if row.recalls[measure].low < self.wanted:
            said.append(f"The interval goes below {self.wanted:g}: more queries, or more bytes, would make it sure.")
        if row.way != "default" and (usual := self._cheapest_default(self.wanted)) is not None:
            line = usual.python(n_indexed).splitlines()[-1]
            recall = usual.recalls[measure].value
            said.append(f"The default reaches {recall:.3f} with {usual.n_bytes} bytes: {line}")
        return said

    def _cheapest_default(self, wanted: float) -> Setting | None:
        rows = (row for row in self.rows if row.way == "default" and row.recalls[self.measure].value >= wanted)
        return min(rows, key=lambda row: row.n_bytes, default=None)

    def plot(self, path: str | Path) -> None:
        """Recall against bytes, with intervals, as a .png, .svg or .pdf file; one panel a measure."""
        from antisparse.tuning.picture import draw

        draw(self, path)

    def to_dict(self, data: Sequence[str] = ("DATA",), n_indexed: int | None = None) -> dict[str, Any]:
        """Everything, in types that JSON knows, with the lines that make an index; parameters are those of `report`."""
        row, n_indexed = self.chosen or self.best, self.n_indexed if n_indexed is None else n_indexed
        lines = {"python_lines": row.python(n_indexed).splitlines(), "build_command": row.command(n_indexed, data)}
        return {**asdict(self), **lines}
