"""The answers of one machine on another: codes, distances and ids are equal bit for bit, whatever the CPU.

``python answers.py write FOLDER`` writes fitted codecs and the digests of all that they compute; ``python answers.py
compare FOLDER`` computes them anew with these codecs, on every instruction set, and fails where any differs.
"""

import json
import sys
from pathlib import Path

import digests
import zoo

from antisparse import _core


def write(folder: Path) -> None:
    """Of the best instruction set."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in zoo.NAMES:
        zoo.codec(name).save(folder / f"{name}.safetensors")
    (folder / "digests.json").write_text(json.dumps(digests.all_digests(str(folder))))


def compare(folder: Path) -> None:
    there = json.loads((folder / "digests.json").read_text())
    for isa in _core.isas():
        _core.use_isa(isa)
        here = digests.all_digests(str(folder))
        # The equations of a frame that is not tight are made so by LAPACK, where h = 0.
        pairs = [(name, what) for name in there for what in there[name] if name != "isa" and not what.endswith("h=0.0")]
        differing = [(name, what) for name, what in pairs if here[name][what] != there[name][what]]
        print(f"{isa} here, {there['isa']['name']} there: {len(pairs)} digests, {len(differing)} differ", *differing)
        if differing or set(here) != set(there) or len(pairs) < 4 * len(zoo.NAMES):
            sys.exit(1)


if __name__ == "__main__":
    {"write": write, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))
