"""`antisparse serve`: an index over HTTP."""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from antisparse._arrays import renamed
from antisparse.cli._shared import index_place, model_arguments, open_index, text_model
from antisparse.cli.explore import originals, originals_arguments
from antisparse.errors import InputError, MissingDependencyError

_LIMITS = {
    "body_bytes": "bytes of a request",
    "queries": "queries, or vectors to add, of a request",
    "k": "results a query",
    "results": "results of a request, of all its queries",
    "searches": "searches at a time (as many as there are CPUs)",
    "waiting": "requests that wait for their turn; beyond it the answer is 503",
    "seconds": "time of a request",
    "batch_ms": "milliseconds within which small searches share a scan; 0: none do",
}


def add_serve(commands: Any) -> None:
    """The command `serve`."""
    parser = commands.add_parser(
        "serve",
        help="serve an index over HTTP",
        description="Serve an index over HTTP until the process is told to end. / is a page that explores it, and "
        "/openapi.json says what can be asked.",
    )
    parser.add_argument("index", metavar="INDEX", type=index_place, help="the folder of the index, or its address")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1); elsewhere needs tokens")
    parser.add_argument("--port", type=int, default=8000, help="the port; 0 takes any that is free (8000)")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="who may ask: lines 'read TOKEN' and 'write TOKEN'"
    )
    parser.add_argument("--write", action="store_true", help="take changes, too: add, remove, update")
    parser.add_argument("--shards", type=int, metavar="N", help="search by so many shards on Ray")
    parser.add_argument("--address", help="the Ray cluster of the shards (by default one is started here)")
    model_arguments(parser, "the model that makes vectors of texts (the one that the index keeps)")
    originals_arguments(parser)
    parser.add_argument("--follow", type=float, default=1.0, help="seconds between looks for changes by others (1)")
    parser.add_argument("--end", type=float, default=10.0, help="seconds that requests have to end on SIGTERM (10)")
    parser.add_argument("--quiet", action="store_true", help="no line for every request")
    for name, what in _LIMITS.items():
        kind = float if name in ("seconds", "batch_ms") else int
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"limit: {what}")
    parser.set_defaults(run=_serve)


def _serve(given: argparse.Namespace, command: str) -> int:
    try:
        from antisparse.serve import Limits, Tokens, serve
        from antisparse.serve.server import check_host
    except ImportError:
        raise MissingDependencyError("a service needs FastAPI: pip install 'antisparse[serve]'") from None

    named = {"host": "--host", "port": "--port", "end": "--end", "follow": "--follow", "shards": "--shards"}
    with renamed(**named, **{name: f"--{name.replace('_', '-')}" for name in _LIMITS}):
        tokens = None if given.token_file is None else Tokens.load(given.token_file)
        check_host(given.host, tokens)
        chosen = {field.name: getattr(given, field.name) for field in dataclasses.fields(Limits)}
        limits = Limits(**{name: value for name, value in chosen.items() if value is not None})
        with _opened(given) as index:
            found, others = originals(given, index)
            shown: dict[str, Any] = {"originals": found, "others": others, "name": Path(str(given.index)).name}
            print(f"serving {index!r}", file=sys.stderr, flush=True)
            options = {"write": given.write, "tokens": tokens, "limits": limits, "follow": given.follow}
            serve(index, given.host, given.port, end=given.end, log=not given.quiet, **options, **shown)
    return 0


def _opened(given: argparse.Namespace) -> Any:
    if given.write and isinstance(given.index, str):
        raise InputError("--write: an index in an object store is read only; leave it out")
    if given.write and given.shards is not None:
        raise InputError("--shards and --write: shards are read only; leave one of them out")
    model = text_model(given, given.index)
    if given.shards is None:
        return open_index(given.index, read_only=not given.write, model=model)
    from antisparse.cluster import ShardedIndex

    return ShardedIndex(given.index, given.shards, address=given.address, model=model)
