"""Estimated cycles of the kernels' innermost loops, from their instructions: AVX2 beside NEON. Nothing is run.

    python benchmarks/cycles.py [--json FILE]

Each loop of `loops.cpp` is compiled for both instruction sets as the package is, and llvm-mca counts its instructions
and simulates its cycles, as if all it reads were in the nearest cache. By its models a Zen 3 has vectors of 32 bytes,
a Cortex-A57 two pipelines of 16, as the Cortex-A76 and the Neoverse N1 have, too. Needs Debian's packages g++,
g++-aarch64-linux-gnu and llvm.
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
# What is counted, its name, and the instruction that does it with its lanes.
LOOPS = {
    "SCAN_FOUR": ("scan, four queries", "look-ups", LOOKED_UP),
    "SCAN_ONE": ("scan, one query", "look-ups", LOOKED_UP),
    "SCAN_WIDE": ("scan, wide sums", "look-ups", LOOKED_UP),
    "CELLS": ("nearest cells", "products", {"avx2": ("vpmaddwd", 16), "neon": ("smlal2?", 4)}),
    "PROJECTION": ("projection", "multiply-adds", FUSED),
    "SOLVER_PRODUCTS": ("solver: products", "multiply-adds", FUSED),
    "SOLVER_ROTATIONS": ("solver: rotations", "numbers", FUSED),
    "ANNEALING": ("annealing", "multiply-adds", FUSED),
    "CODEBOOKS": ("codebook search", "codewords", {"avx2": ("vpmaxsw", 16), "neon": ("smax", 8)}),
}


def innermost_loops(assembly: str) -> list[list[str]]:
    """The stretches from a label to a branch back to it, with no label between."""
    loops: list[list[str]] = []
    label, body = "", []
    for line in (line.strip() for line in assembly.splitlines()):
        if found := re.fullmatch(r"(\.L\w+):", line):
            label, body = found[1], []
        elif line and not line.startswith((".", "#", "//")):
            body.append(line)
            if label and re.fullmatch(rf"[a-z.]+\s.*{re.escape(label)}", line):
                loops.append(body)
    return loops


def estimate(loop: str, target: Target) -> tuple[float, float]:
    """Instructions and cycles for a thousand of what the loop counts."""
    compiler, *flags = target.flags
    command = [compiler, *flags, "-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-S", "-o", "-"]
    defines = [f"-DANTISPARSE_ISA={target.isa}", f"-DANTISPARSE_TARGET_{target.isa.upper()}=1", f"-DLOOP_{loop}"]
    source = [f"-I{ROOT / 'native'}", str(Path(__file__).with_name("loops.cpp"))]
    assembly = subprocess.run([*command, *defines, *source], capture_output=True, text=True, check=True).stdout
    pattern, lanes = LOOPS[loop][2][target.isa]

    def count(body: list[str]) -> int:
        return lanes * sum(bool(re.match(rf"{pattern}\s", line)) for line in body)

    body, times = max(innermost_loops(assembly), key=count), 200
    simulated = subprocess.run(
        ["llvm-mca", *target.cpu, f"-iterations={times}"],
        input="\n".join(body),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    numbers = [int(n) for n in re.findall(r"^(?:Instructions|Total Cycles):\s+(\d+)", simulated, re.MULTILINE)]
    return 1000 * numbers[0] / times / count(body), 1000 * numbers[1] / times / count(body)


def main() -> None:
    """Print the table."""
    arguments = options(__doc__).parse_args()
    missing = [tool for tool in ("g++", "aarch64-linux-gnu-g++", "llvm-mca") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    found = {}
    print("estimates, by llvm-mca's models      AVX2, Zen 3            NEON, Cortex-A57")
    print(f"{'a thousand':31} {2 * 'instructions  cycles   '}")
    for loop, (name, counted, _) in LOOPS.items():
        rows = {target.isa: estimate(loop, target) for target in TARGETS}
        found[name] = {isa: dict(zip(("instructions", "cycles"), row, strict=True)) for isa, row in rows.items()}
        columns = "   ".join(f"{instructions:12.0f}{cycles:8.0f}" for instructions, cycles in rows.values())
        print(f"{name + ', ' + counted:31} {columns}")
    write_json(arguments.json, {"estimates": found})


if __name__ == "__main__":
    main()
