"""Do the places that name a version agree: the package, CHANGELOG.md, CITATION.cff and, for a release, the tag?

At any time: `python tools/release.py`. For a release: `python tools/release.py v0.2.0`, which wants dates as well.
"""

import re
import sys
from pathlib import Path

_SECTION = re.compile(r"^## (\S+) \((unreleased|\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


def disagreements(root: Path, tag: str | None = None) -> list[str]:
    """What does not fit together in the sources at `root`, a sentence each."""
    version = _one(r'^__version__ = "(.+)"$', root / "src" / "antisparse" / "_version.py")
    cited = _one(r'^version: "?([^"\s]+)"?$', root / "CITATION.cff")
    section = _SECTION.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    found = []
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, the package {version}")
    if section is None:
        return [*found, "CHANGELOG.md has no section such as '## 1.2.3 (2026-01-31)' or '## 1.2.3 (unreleased)'"]
    if section[1] != version:
        found.append(f"CHANGELOG.md begins with {section[1]}, the package has {version}")
    if tag is None:
        return found
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and that of the package would be v{version}")
    if section[2] == "unreleased":
        found.append(f"CHANGELOG.md says that {section[1]} is unreleased; put the date of the release there")
    released = _one(r'^date-released: "?([\d-]+)"?$', root / "CITATION.cff")
    if released != section[2]:
        found.append(f"CITATION.cff has date-released {released}, CHANGELOG.md {section[2]}")
    return found


def _one(pattern: str, path: Path) -> str | None:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else None


def main(arguments: list[str]) -> int:
    """Print what does not agree; 1 if anything does not."""
    found = disagreements(Path(__file__).parents[1], *arguments[:1])
    for sentence in found:
        print(sentence, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
