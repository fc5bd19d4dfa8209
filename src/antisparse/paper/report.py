"""What is left on disk: pictures, numbers, and one page that holds everything and needs no server."""

import base64
import html
import io
import json
import platform
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import antisparse
from antisparse.errors import InputError
from antisparse.paper.claims import UNCERTAINTY, Claim
from antisparse.paper.settings import Settings
from antisparse.paper.study import Study

# Of each verdict: how several claims have it, and how one has.
_VERDICTS = {
    "holds": ("hold", "holds"),
    "does not hold": ("do not hold", "does not hold"),
    "undecided": ("are undecided", "is undecided"),
    "not measured": ("were not measured", "was not measured"),
}

_SEARCHES = """<p>A vector is coded by the signs of its representation, and three searches use the codes alone.
<b>NN_b</b> compares the bits of two codes (Hamming distance). <b>NN_a</b> keeps the query as real numbers and compares
these with the bits of each code (asymmetric). <b>NN_e</b> compares the query with the vector that each code rebuilds
(reconstruction). recall@R is the part of the queries whose true nearest neighbour is among the first R results.</p>
"""

_STYLE = """
:root { --paper: #fff; --ink: #222; --soft: #555; --line: #ddd; --holds: #1b7837; --fails: #b2182b; --open: #8a6d00; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e8e6e1; --soft: #a2a8b3; --line: #333a45; }
  :root { --holds: #7fcf94; --fails: #ff8f8f; --open: #e0bf5a; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
body { color: var(--ink); background: var(--paper); }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 0.6rem; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--soft); }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 46rem; height: auto; background: #fff; border-radius: 0.4rem; }
figcaption, p { max-width: 60rem; } figcaption { color: var(--soft); }
.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: var(--holds); } .does-not-hold { color: var(--fails); }
.undecided { color: var(--open); } .not-measured { color: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.85rem; overflow-wrap: anywhere; }
@media (max-width: 40rem) {  /* a phone: the cells of a claim below each other */
  body { margin-top: 1rem; } h1 { font-size: 1.4rem; }
  thead { display: none; } table, tbody, tr, td { display: block; }
  td { border: 0; padding: 0.15rem 0; overflow-wrap: anywhere; } td:first-child { font-weight: 600; }
  tr { padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
}
"""


def check(folder: Path) -> None:
    """Make the folder; raise if files cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {str(folder)!r}: {error.strerror or error}") from None


def write(folder: Path, studies: list[Study], claims: list[Claim], settings: Settings, command: str) -> Path:
    """Write every picture (PNG and SVG), every number (JSON) and the page; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {
        "command": command,
        "seeds": settings.seeds,
        "sift seeds": settings.sift_seeds,
        "versions": {
            "antisparse": antisparse.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    pictures = {study.name: _svg(study) for study in studies}
    for study in studies:
        study.figure.savefig(folder / f"{study.name}.png", dpi=150)
        (folder / f"{study.name}.svg").write_bytes(pictures[study.name])
        _write_json(folder / f"{study.name}.json", about | {"title": study.title, "numbers": study.numbers})
    _write_json(folder / "claims.json", about | {"claims": [vars(claim) for claim in claims]})
    page = folder / "index.html"
    page.write_text(_page(studies, pictures, claims, about), encoding="utf-8")
    return page


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _svg(study: Study) -> bytes:
    import matplotlib as mpl

    file = io.BytesIO()
    # The same numbers give the same file.
    with mpl.rc_context({"svg.hashsalt": study.name}):
        study.figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _counted(claims: list[Claim]) -> str:
    """How many claims have which verdict, as a sentence."""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in _VERDICTS}
    said = [f"{n} {_VERDICTS[verdict][n == 1]}" for verdict, n in counts.items() if n]
    listed = " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
    return f"Of {len(claims)} claims, {listed}." if len(claims) > 1 else f"Of one claim, {listed}."


def _together(measured: str) -> str:
    """What was measured, its signs of error never at the end of a line."""
    return measured.replace(" ± ", "&nbsp;±&nbsp;")


def _page(studies: list[Study], pictures: dict[str, bytes], claims: list[Claim], about: dict[str, Any]) -> str:
    text = html.escape
    rows = "".join(
        f"<tr><td>{text(c.statement)}</td><td>{text(c.rule)}</td><td>{_together(text(c.measured))}</td>"
        f'<td class="verdict {c.verdict.replace(" ", "-")}">{c.verdict}</td></tr>\n'
        for c in claims
    )
    figures = "".join(
        f'<h2>{text(s.title)}</h2>\n<figure><img alt="{text(s.alt, quote=True)}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(pictures[s.name]).decode()}">'
        f"<figcaption>{text(s.caption)}</figcaption></figure>\n"
        for s in studies
    )
    third = any(s.title.startswith("Figure 3") for s in studies)
    seeds = f"seeds {about['seeds']}" + (f", of Figure 3 {about['sift seeds']}" if third else "")
    summary = f" {text(_counted(claims))}" if claims else ""
    table = f"""<h2>The claims</h2>
<p>{text(UNCERTAINTY)}</p>
<table>
<thead><tr><th>claim</th><th>rule</th><th>measured</th><th>verdict</th></tr></thead>
<tbody>
{rows}</tbody>
</table>
"""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Anti-sparse coding, reproduced</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Anti-sparse coding for approximate nearest neighbor search, reproduced</h1>
<p>The experiments of Jégou, Furon and Fuchs (2011), run anew.{summary}</p>
{_SEARCHES}{table if claims else ""}{figures}
<footer>Made by <code>{text(about["command"])}</code>; {text(seeds)}; {text(versions)}.</footer>
</body>
</html>
"""
