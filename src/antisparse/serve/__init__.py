"""An index over HTTP (docs/serve.md)."""

from antisparse.serve.app import create_app
from antisparse.serve.limits import Limits
from antisparse.serve.server import serve
from antisparse.serve.tokens import Tokens

__all__ = ["Limits", "Tokens", "create_app", "serve"]
