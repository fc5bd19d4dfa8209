"""The page: one HTML file of its parts, in which nothing runs but its own script."""

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

_SCRIPTS = ("source.js", "drawing.js", "search.js", "columns.js", "main.js")


@cache
def _part(name: str) -> str:
    return (resources.files("antisparse.explore") / "page" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return '"use strict";\n' + "".join(map(_part, _SCRIPTS))


def policy(live: bool) -> str:
    """The content security policy: the page's own script and style, and, of a service, requests to itself."""
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(_script())}; style-src {_hash(_part('style.css'))}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def page(data: dict[str, Any] | None = None) -> str:
    """The page with what it shows in it, or, without, the one that asks the service that it came from."""
    held = "" if data is None else f'<script type="application/json" id="data">{_json(data)}</script>'
    parts = {"POLICY": policy(data is None), "STYLE": _part("style.css"), "SCRIPT": _script(), "DATA": held}
    before, *rest = _part("page.html").split("{{")
    pieces = [before]
    for piece in rest:  # one pass: what is put in is never looked at again
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def _json(data: dict[str, Any]) -> str:
    """JSON that ends no element and begins none, whatever the texts of items are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Half a character, which JSON may have and UTF-8 may not, and all that means something to HTML.
    text = text.encode("utf-8", "replace").decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
