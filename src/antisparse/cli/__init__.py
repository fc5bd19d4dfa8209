"""The command `antisparse`: arguments, progress and how results are shown; the work is done elsewhere (docs/cli.md)."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

from antisparse import __version__
from antisparse.cli.build import add_build
from antisparse.cli.cluster import add_cluster
from antisparse.cli.explore import add_explore
from antisparse.cli.index import add_index
from antisparse.cli.paper import add_paper
from antisparse.cli.search import add_search
from antisparse.cli.serve import add_serve
from antisparse.cli.tune import add_tune
from antisparse.errors import AntisparseError, InputError, InputTypeError, UnsupportedError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0, 1 for a failure, 2 for what cannot be used, 130 for Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _Parser(prog="antisparse", description="Compact binary codes for vectors.")
    parser.add_argument("--version", action="version", version=f"antisparse {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (add_build, add_index, add_search, add_tune, add_explore, add_serve, add_cluster, add_paper):
        add(commands)
    given = parser.parse_args(arguments)
    try:
        code = int(given.run(given, "antisparse " + shlex.join(arguments)))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has gone: what is left of it goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (InputError, InputTypeError, UnsupportedError, FileNotFoundError) as error:
        return _failed(given.command, error, 2)
    except (AntisparseError, OSError) as error:
        return _failed(given.command, error, 1)
    except MemoryError as error:
        return _failed(given.command, f"not enough memory: {error}", 1)
    except KeyboardInterrupt as stop:
        return _failed(given.command, str(stop) or "stopped", 130)


def _failed(command: str, what: object, code: int) -> int:
    """One line on standard error."""
    print(f"antisparse {command}: {' '.join(str(what).splitlines())}", file=sys.stderr)
    return code
