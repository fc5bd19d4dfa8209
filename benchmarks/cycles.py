"""Estimated cycles of the kernels' innermost loops, from their instructions: AVX2 beside NEON. Nothing is run.

    python benchmarks/cycles.py [--json FILE]

The kernels are compiled for both instruction sets as for the package. Of each family the loop that does most for its
instructions is taken, and llvm-mca simulates its cycles, as if all it reads were in the nearest cache. By its models a
Zen 3 has vectors of 32 bytes, a Cortex-A57 two pipelines of 16, as the Cortex-A76 and the Neoverse N1 have, too. Needs
Debian's packages g++, g++-aarch64-linux-gnu and llvm.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from timing import options, write_json

ROOT = Path(__file__).parent.parent


class Target(NamedTuple):
    """An instruction set, its compiler, and the CPU that is simulated."""

    isa: str
    flags: tuple[str, ...]
    cpu: tuple[str, ...]


TARGETS = (
    Target("avx2", ("g++", "-mavx2", "-mfma"), ("-mtriple=x86_64", "-mcpu=znver3")),
    Target("neon", ("aarch64-linux-gnu-g++",), ("-mtriple=aarch64", "-mcpu=cortex-a57")),
)
FUSED = {"avx2": (r"vfn?m(add|sub)\w*ps", 8), "neon": (r"fml[as]", 4)}
LOOKED_UP = {"avx2": ("vpshufb", 32), "neon": ("tbl", 16)}
# By name: what is counted, the functions where the loop may stand, and the instruction that does it with its lanes.
LOOPS = {
    "scan": ("look-ups", "", LOOKED_UP),
    "nearest cells": ("products", "", {"avx2": ("vpmaddwd", 16), "neon": ("smlal2?", 4)}),
    "projection": ("multiply-adds", "7projectI", FUSED),
    "solver": ("multiply-adds", "advanceI.*GramSegmentIf", FUSED),
    "annealing": ("multiply-adds", "Anneal|refine", FUSED),
    "codebook search": ("codewords", "", {"avx2": ("vpmaxsw", 16), "neon": (r"smax\s+v\d+\.8h", 8)}),
}


class Loop(NamedTuple):
    """A stretch from a label to a branch back to it, with no label between, and the function it is in."""

    function: str
    body: list[str]


def innermost_loops(target: Target) -> list[Loop]:
    """Those of all kernels."""
    flags = [
        "-std=c++17",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fPIC",
        f"-I{ROOT / 'native'}",
        "-S",
        "-o",
        "-",
    ]
    source = [f"-DANTISPARSE_BUILD_{target.isa.upper()}=1", str(ROOT / "native" / f"kernels_{target.isa}.cpp")]
    assembly = subprocess.run([*target.flags, *flags, *source], capture_output=True, text=True, check=True).stdout
    loops: list[Loop] = []
    function, label, body = "", "", list[str]()
    for line in (line.strip() for line in assembly.splitlines()):
        if found := re.fullmatch(r"([\w.]+):", line):
            label, body = found[1], []
            function = function if label.startswith(".L") else label
        elif line and not line.startswith((".", "#", "//")):
            body.append(line)
            if label and re.fullmatch(rf"[a-z.]+\s.*{re.escape(label)}", line):
                loops.append(Loop(function, body))
                label, body = "", []
    return loops


def estimate(name: str, target: Target, loops: list[Loop]) -> tuple[float, float]:
    """Instructions and cycles for a thousand of what the loop counts."""
    _, functions, instructions = LOOPS[name]
    pattern, lanes = instructions[target.isa]

    def count(loop: Loop) -> int:
        return lanes * sum(bool(re.match(rf"(?:{pattern})\b", line)) for line in loop.body)

    named = [loop for loop in loops if re.search(functions, loop.function)]
    chosen, times = max(named, key=lambda loop: count(loop) / len(loop.body)), 200
    simulated = subprocess.run(
        ["llvm-mca", *target.cpu, f"-iterations={times}"],
        input="\n".join(chosen.body),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    numbers = [int(n) for n in re.findall(r"^(?:Instructions|Total Cycles):\s+(\d+)", simulated, re.MULTILINE)]
    return 1000 * numbers[0] / times / count(chosen), 1000 * numbers[1] / times / count(chosen)


def main() -> None:
    """Print the table."""
    arguments = options(__doc__).parse_args()
    missing = [tool for tool in ("g++", "aarch64-linux-gnu-g++", "llvm-mca") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    found, compiled = {}, {target: innermost_loops(target) for target in TARGETS}
    print("estimates, by llvm-mca's models      AVX2, Zen 3            NEON, Cortex-A57")
    print(f"{'a thousand':31} {2 * 'instructions  cycles   '}")
    for name, (counted, *_) in LOOPS.items():
        rows = {target.isa: estimate(name, target, loops) for target, loops in compiled.items()}
        found[name] = {isa: dict(zip(("instructions", "cycles"), row, strict=True)) for isa, row in rows.items()}
        columns = "   ".join(f"{instructions:12.0f}{cycles:8.0f}" for instructions, cycles in rows.values())
        print(f"{name + ', ' + counted:31} {columns}")
    write_json(arguments.json, {"estimates": found})


if __name__ == "__main__":
    main()
