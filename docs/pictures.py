"""The picture of the first page: recall against bytes, from the rows of results.md (`python docs/pictures.py`)."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot

DOCS = Path(__file__).parent
LIBRARY = "antisparse"
STYLES = {  # a colour, a marker and a line of its own each, so that none is told by its colour alone
    LIBRARY: ("#0b5394", "o", "-"),
    "FAISS PQ, 8 bits": ("#b45309", "s", "--"),
    "FAISS PQ, 4 bits (fast-scan)": ("#4d7c0f", "^", ":"),
    "FAISS RaBitQ, 1 bit": ("#86198f", "D", ""),
}


def rows() -> dict[str, list[tuple[str, int, float]]]:
    """For each set of vectors (method, bytes, 10@10), as the table of recall at equal bytes has them."""
    text = (DOCS / "results.md").read_text().partition("## Recall at equal bytes")[2].partition("\n## ")[0]
    lines = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    found: dict[str, list[tuple[str, int, float]]] = {}
    for column in (0, 2):
        name = lines[0][column]
        n_bytes = 0
        for line in lines[2:]:
            method, recalls = line[column], line[column + 1]
            if not method:
                continue
            if ours := re.match(r"(\d+) bytes: antisparse", method):
                n_bytes = int(ours[1])
            label = LIBRARY if ours else peer(method)
            if label:  # rotated peers (OPQ) are in the table
                found.setdefault(name, []).append((label, n_bytes, float(recalls.split("/")[2])))
    return found


def peer(method: str) -> str | None:
    """The line of the picture that a row of the table belongs to."""
    if method.startswith("RaBitQ"):
        return "FAISS RaBitQ, 1 bit"
    kinds = {r"PQ\d+x8": "FAISS PQ, 8 bits", r"PQ\d+x4fs": "FAISS PQ, 4 bits (fast-scan)"}
    return next((label for pattern, label in kinds.items() if re.fullmatch(pattern, method)), None)


def draw(path: Path) -> None:
    """One panel a set, 10@10 against the bytes of a vector."""
    sets = rows()
    figure, panels = pyplot.subplots(1, len(sets), figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, (name, points) in zip(panels, sets.items(), strict=True):
        for label, (colour, marker, line) in STYLES.items():
            line_points = sorted((n_bytes, recall) for method, n_bytes, recall in points if method == label)
            panel.plot(*zip(*line_points, strict=True), line, color=colour, marker=marker, label=label)
        panel.set_title(name)
        panel.set_xlabel("bytes of a vector, all but its id")
        panel.set_xticks(sorted({n_bytes for _, n_bytes, _ in points}))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("10@10: share of the ten true\nnearest neighbours that are found")
    panels[0].set_ylim(0.2, 0.9)
    panels[1].legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    draw(DOCS / "recall.png")
