"""What databases share: bits that they compare, the bytes beside them, and a shortlist that is ranked again here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import plain_array, shown, texts
from antisparse.codec.codec import Codec, codec_of
from antisparse.codes import Codes
from antisparse.errors import FormatError, InputError, InputTypeError, UnsupportedError
from antisparse.scan.code_base import CodeBase

SHORTLIST = 10  # candidates for every result that is asked for, by default
LEAST_SHORTLIST = 100
HALF_A_CHARACTER = "it holds half a character (a surrogate), which UTF-8 has not"
Found = tuple[npt.NDArray[np.float64], list[Any]]  # distances and keys of one query, the nearest first


@dataclass(frozen=True)
class SignRows:
    """Code rows of signs, in two parts: the bits that a database compares, and the bytes that it keeps beside them.

    Attributes
    ----------
    codec : Codec
        Of signs that compare, relative to one mean, and that rebuild vectors.
    """

    codec: Codec

    @classmethod
    def of(cls, codec: Any) -> "SignRows":
        """From a codec or a fitted encoder; UnsupportedError says which one to take where its bits do not compare."""
        fitted = codec_of(codec)
        remedy = "take LearnedEncoder(n_bytes, symbols='signs', cells=1)"
        if not fitted.symbols.compares:
            raise UnsupportedError(
                f"codec: codes of {fitted.symbols.describe()} have no signs that a database could compare; {remedy}"
            )
        if fitted.cells is not None:
            raise UnsupportedError(f"codec: signs relative to different means do not compare; {remedy}")
        if not fitted.rebuilds:
            raise UnsupportedError(f"codec: its codes rebuild no vectors, so a shortlist cannot be ranked; {remedy}")
        return cls(fitted)

    @property
    def n_bits(self) -> int:
        """Bits of a code that are compared."""
        return self.codec.symbols.n_bits

    def bits(self, rows: Codes) -> Codes:
        """The bits, packed; those of the last byte that are no sign's are zero."""
        return np.ascontiguousarray(self.codec.layout.symbols(rows))

    def rest(self, rows: Codes) -> Codes:
        """The bytes beside the bits: a nibble that shares their last byte, then all that follow."""
        layout = self.codec.layout
        after = rows[:, layout.symbol_bytes :]
        if not layout.bias_nibble:
            return np.ascontiguousarray(after)
        return np.concatenate([rows[:, layout.symbol_bytes - 1 : layout.symbol_bytes] & 0x0F, after], axis=1)

    def joined(self, bits: Codes, rest: Codes) -> Codes:
        """Whole code rows again; FormatError or InputError if they are not such."""
        rows = np.concatenate([bits, rest[:, int(self.codec.layout.bias_nibble) :]], axis=1)
        if self.codec.layout.bias_nibble:
            if (rest[:, 0] > 0x0F).any():
                raise FormatError("codes hold more beside their signs than their codec writes: they were changed")
            rows[:, self.codec.layout.symbol_bytes - 1] |= rest[:, 0]
        return self.codec.check_codes(rows, "codes")

    @property
    def rest_bytes(self) -> int:
        """How many bytes are kept beside the bits."""
        return self.codec.n_bytes - self.codec.layout.symbol_bytes + int(self.codec.layout.bias_nibble)

    def rest_of(self, stored: Sequence[bytes]) -> Codes:
        """The bytes beside the bits, as a database gave them; FormatError if they are not so many."""
        if any(len(one) != self.rest_bytes for one in stored):
            raise FormatError("the table holds codes that are not of its codec; it was changed")
        return np.frombuffer(b"".join(stored), np.uint8).reshape(len(stored), self.rest_bytes)

    def ranked(self, query: npt.NDArray[Any], keys: Sequence[Any], bits: Codes, rest: Codes, k: int) -> Found:
        """The k nearest of a shortlist by the rebuilt vectors (NN_e); of equal ones the least keys first."""
        order = sorted(range(len(keys)), key=keys.__getitem__)
        if not order:
            return np.zeros(0), []
        base = CodeBase(self.codec, self.joined(bits, rest)[order])
        distances, places = base.search(query, min(k, len(order)))
        return distances, [keys[order[place]] for place in places]


def query_rows(codec: Codec, Q: Any) -> tuple[npt.NDArray[Any], bool]:
    """Queries (n, d) that the codec can take, and whether it was a single one."""
    array = plain_array(Q, "Q")
    single = array.ndim == 1
    rows = array[None] if single else array
    codec.queries(rows)
    return rows, single


def shortlist_size(k: int, shortlist: int | None) -> int:
    """How many candidates a database gives: by default ten for every result, and a hundred at least."""
    wanted = max(LEAST_SHORTLIST, SHORTLIST * k) if shortlist is None else max(shortlist, k)
    return min(wanted, 2**31 - 1)  # databases take no more, and have fewer


def checked_keys(keys: Any, count: int | None = None) -> list[Any]:
    """Keys that are all text, or all integers of 64 bits, each once, and as many as there are vectors."""
    listed = keys.tolist() if isinstance(keys, np.ndarray) else keys
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise InputTypeError(f"keys must be a sequence of texts or integers, not {shown(keys)}")
    if listed and isinstance(listed[0], str):
        found: list[Any] = list(texts(listed, "keys"))
        if any("\0" in key for key in found):
            raise InputError("keys holds a text with a zero character, which databases cannot store; leave it out")
        if any("\ud800" <= character <= "\udfff" for key in found for character in key):
            raise InputError(f"keys: {HALF_A_CHARACTER}")
    else:
        found = []
        for key in listed:
            if isinstance(key, bool) or not isinstance(key, int | np.integer):
                raise InputTypeError(f"keys holds {shown(key)}; all must be texts, or all integers")
            if not -(2**63) <= key < 2**63:
                raise InputError(f"keys holds {shown(key)}, which 64 bits cannot hold")
            found.append(int(key))
    if len(set(found)) < len(found):
        raise InputError("keys holds one twice; every vector has a key of its own")
    if count is not None and len(found) != count:
        raise InputError(f"keys has {len(found)} entries, but X has {count} vectors")
    return found
