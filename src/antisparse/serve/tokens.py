"""Who may ask, and who may change: bearer tokens, compared in constant time."""

import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from antisparse._arrays import path_of
from antisparse._files import read_file
from antisparse.errors import FormatError, InputError, InputTypeError

Right = Literal["read", "write"]
_MOST = 1 << 20
_SHORTEST = 16


@dataclass(frozen=True)
class Tokens:
    """The tokens that may read, and those that may write, which read as well. Without any, everyone may do both."""

    read: tuple[str, ...] = field(default=(), repr=False)
    write: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("read", "write"):  # a single text would be a token a letter
            if not isinstance(getattr(self, name), tuple):
                raise InputTypeError(f"{name} must be a tuple of tokens, not {type(getattr(self, name)).__name__}")
        for token in (*self.read, *self.write):
            if not _is_token(token):
                raise InputError(
                    f"read or write holds what is no token; each has at least {_SHORTEST} characters of ASCII"
                )

    @classmethod
    def load(cls, path: str | Path) -> "Tokens":
        """From a file of lines ``read TOKEN`` and ``write TOKEN``; empty ones and comments (#) do not count."""
        found: dict[str, list[str]] = {"read": [], "write": []}
        try:
            lines = read_file(path_of(path), _MOST).decode().splitlines()
        except UnicodeDecodeError:
            raise FormatError(f"{path} is not a text file of tokens") from None
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in found:
                raise FormatError(f"{path}, line {number}: it must be 'read TOKEN' or 'write TOKEN'")
            if not _is_token(words[1]):
                raise FormatError(f"{path}, line {number}: a token has at least {_SHORTEST} characters, all of ASCII")
            found[words[0]].append(words[1])
        if not any(found.values()):
            raise FormatError(f"{path} holds no token")
        return cls(tuple(found["read"]), tuple(found["write"]))

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def allow(self, header: str | None, right: Right) -> bool | None:
        """Whether a header of authorization has a right; None if it names no token that is known."""
        if not self:
            return True
        kind, _, token = header.partition(" ") if isinstance(header, str) else ("", "", "")
        if kind.lower() != "bearer":
            return None
        given = token.strip().encode("utf-8", "replace")
        writes = [hmac.compare_digest(given, one.encode()) for one in self.write]  # all of them, whatever is found
        reads = [hmac.compare_digest(given, one.encode()) for one in self.read]
        if any(writes):
            return True
        return right == "read" if any(reads) else None


def _is_token(value: object) -> bool:
    return isinstance(value, str) and len(value) >= _SHORTEST and value.isascii() and value.isprintable()
