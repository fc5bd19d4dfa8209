"""Mutation testing: small faults are put into a source file one at a time, to see which of them no test notices.

    python tools/mutants.py                                 # all mutants of the files in TESTS: hours
    python tools/mutants.py --sample 50 --seed 1            # 50 of each file, drawn
    python tools/mutants.py src/antisparse/index/store.py --tests tests/index/test_store.py

Every mutant runs in a temporary copy of `src`; the working tree is not touched. A mutant is killed if a test fails, or
if the tests take too long. Those that survive are printed: file, line, what was there, what stood in its place.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_STORED = ["index/test_store", "index/test_build", "index/test_faults", "index/test_crash", "index/test_staging"]
_LOADED = ["index/test_store", "index/test_golden", "index/test_damage", "index/test_faults", "index/test_staging"]
_WRITTEN = ["index/test_faults", "index/test_items", "index/test_staging", "index/test_crash", "index/test_index"]
# The tests that tell most of a file, the quickest first.
TESTS = {
    "_files.py": [
        "index/test_single_files",
        "codec/test_codec_files",
        "datasets/test_download",
        "datasets/test_files",
        *_STORED,
    ],
    "index/store.py": [*_STORED, "index/test_concurrency"],
    "index/manifest.py": [*_LOADED, "index/test_texts"],
    "index/loading.py": [*_LOADED, "index/test_objects"],
    "index/files.py": _LOADED,
    "index/writer.py": _WRITTEN,
    "index/change.py": _WRITTEN,
    "index/staging.py": ["index/test_staging"],
}
# Not those that take long and tell nothing that the others do not: random kills, endless searches, calls that fail.
_CHOSEN = "not killed and not (test_concurrency and (thread or readers)) and not (system_may_fail and text)"
_SETTINGS = {"ANTISPARSE_MUTATIONS": "300", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
_ELSEWHERE = ("TYPE_CHECKING", "sys.platform", "os.name")  # conditions of other systems
_PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}
_DROPPED = ast.Raise | ast.Continue | ast.Break | ast.AugAssign | ast.Delete


class Mutant(NamedTuple):
    """A file with one change."""

    file: Path
    line: int
    was: str
    now: str
    source: bytes

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}"


def mutants(file: Path) -> Iterator[Mutant]:
    """All of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, now in _changes(ast.parse(source)):
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        was = " ".join(source[begin:end].decode().split())
        yield Mutant(file, node.lineno, was, now, source[:begin] + now.encode() + source[end:])


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Every node that is changed, and what is put into its place."""
    match node:
        case ast.JoinedStr() | ast.Assert():  # messages, and what is there for the checker of types
            return
        case ast.If() | ast.IfExp():
            if not any(name in ast.unparse(node.test) for name in _ELSEWHERE):
                yield from ((node.test, value) for value in ("True", "False"))
        case ast.While():
            yield node.test, "False"
        case ast.comprehension():
            yield from ((test, "True") for test in node.ifs)
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                operators = [*node.ops[:at], _OTHER[type(operator)](), *node.ops[at + 1 :]]
                yield node, f"({ast.unparse(ast.Compare(node.left, operators, node.comparators))})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
        case ast.UnaryOp(ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value) | float(value)):
            yield from ((node, f"({value + step})") for step in (-1, 1))
        case ast.Return(ast.expr() as given) if ast.unparse(given) != "None":
            yield given, "None"
        case ast.Expr(ast.Call()) | ast.Assign([ast.Attribute()]):
            yield node, "pass"
        case ast.stmt() if isinstance(node, _DROPPED):
            yield node, "pass"
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _changes(child)


def passes(tests: list[str], source: Path, most: float | None = None) -> bool:
    """Whether tests pass on the package in a folder, within so many seconds."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", _CHOSEN, *tests]
    path = os.pathsep.join(map(str, (source, ROOT / "tests")))
    environment = os.environ | _SETTINGS | {"PYTHONPATH": path, "TMPDIR": str(source.parent)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        try:
            child.communicate(timeout=most)
        except subprocess.TimeoutExpired:
            return False
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)  # and the processes that it started
    return child.returncode == 0


def run(drawn: dict[Path, list[Mutant]], tests: list[str] | None, folder: Path) -> int:
    """Put every mutant into a copy of the package in a folder, run its tests, and name those that survive."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    native = find_spec("antisparse._core")
    assert native is not None and native.origin is not None
    shutil.copy(native.origin, folder / "src" / "antisparse")  # the compiled module, from where it is imported
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(folder / "src")]
    subprocess.run(compiled, check=True)
    done, survived, begun, total = 0, 0, time.monotonic(), sum(map(len, drawn.values()))
    for file, some in drawn.items():
        chosen = tests or [f"tests/{name}.py" for name in TESTS[file.relative_to("src/antisparse").as_posix()]]
        alone = time.monotonic()
        if not passes(chosen, folder / "src"):
            raise SystemExit(f"without any change, tests of {file} fail: {' '.join(chosen)}")
        most = 20 + 2 * (time.monotonic() - alone)
        for one in some:
            (folder / file).write_bytes(one.source)
            done += 1
            if passes(chosen, folder / "src", most):
                survived += 1
                print(one, flush=True)
            left = (time.monotonic() - begun) / done * (total - done) / 60
            print(f"{done} of {total}, {survived} survived, {left:.0f} minutes left", file=sys.stderr, flush=True)
        shutil.copy(ROOT / file, folder / file)
    print(f"{total} mutants, {total - survived} killed, {survived} survived")
    return int(survived > 0)


def main() -> int:
    """Make mutants and run them; 1 if any survives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help="all of TESTS in this script, if none is named")
    parser.add_argument("--tests", nargs="+", help="the quickest first, instead of those in this script")
    parser.add_argument("--sample", type=int, help="so many mutants of each file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [Path(file).resolve().relative_to(ROOT) for file in options.files]
    drawn = {file: list(mutants(file)) for file in files or [Path("src/antisparse", name) for name in TESTS]}
    if options.sample is not None:
        draw = random.Random(options.seed)
        drawn = {file: draw.sample(every, min(options.sample, len(every))) for file, every in drawn.items()}
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where no test waits for a disk
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        return run(drawn, options.tests, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
