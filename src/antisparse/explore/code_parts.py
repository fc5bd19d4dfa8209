"""What the bits of a code row are, for one who draws them."""

from dataclasses import dataclass

from antisparse.codec.codec import Codec
from antisparse.codec.levels import Levels


@dataclass(frozen=True)
class CodePart:
    """A run of units in a code row.

    Attributes
    ----------
    name : str
        What the units are called: "signs", "codewords", "levels", "bias", "cell", "scale".
    bits : int
        Bits of a unit.
    first : int
        The first bit, from the left.
    count : int
        How many units there are.
    """

    name: str
    bits: int
    first: int
    count: int


def code_parts(codec: Codec) -> list[CodePart]:
    """The parts of a code row, in their order."""
    layout, symbols = codec.layout, codec.symbols
    nibbles = symbols.columns_per_nibble == 16
    name = "levels" if isinstance(symbols, Levels) else "codewords" if nibbles else "signs"
    bits = 4 if nibbles else 1
    parts = [CodePart(name, bits, 0, layout.symbol_bits // bits)]
    at = 8 * layout.symbol_bytes
    if layout.bias_nibble:
        parts.append(CodePart("bias", 4, at - 4, 1))
    for called, n_bytes in (("cell", layout.cell_bytes), ("scale", layout.scale_bytes), ("bias", layout.bias_bytes)):
        if n_bytes:
            parts.append(CodePart(called, 8 * n_bytes, at, 1))
        at += 8 * n_bytes
    return parts
