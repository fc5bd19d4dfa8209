"""The bytes of a code row: symbols, then the number of the cell, the scale and the bias (docs/codes.md)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from antisparse.codes import Codes, byte_rows
from antisparse.errors import InputError


@dataclass(frozen=True)
class RowLayout:
    """Where the fields of a code stand in its row.

    Attributes
    ----------
    symbol_bits : int
        Bits that signs, codebooks or levels take, from the first bit on.
    bias_nibble : bool
        The low half of the last symbol byte holds the bias.
    cell_bytes, scale_bytes, bias_bytes : int
        Whole bytes that follow, in this order.
    """

    symbol_bits: int
    bias_nibble: bool = False
    cell_bytes: int = 0
    scale_bytes: int = 0
    bias_bytes: int = 0

    @property
    def symbol_bytes(self) -> int:
        """Bytes of symbols, the bias nibble included."""
        return -(-(self.symbol_bits + 4 * self.bias_nibble) // 8)

    @property
    def n_bytes(self) -> int:
        """Bytes of a whole row."""
        return self.symbol_bytes + self.cell_bytes + self.scale_bytes + self.bias_bytes

    @property
    def scanned_bytes(self) -> int:
        """Bytes whose nibbles the scan looks up: symbols and bias."""
        return self.symbol_bytes + self.bias_bytes

    @property
    def padding(self) -> int:
        """The bits of the last symbol byte that mean nothing and must be zero, as a mask."""
        free = 8 * self.symbol_bytes - self.symbol_bits
        return (1 << free) - (16 if self.bias_nibble else 1)

    def symbols(self, rows: Codes) -> Codes:
        """The bytes of symbols alone, of whole rows; bits that are no symbol's are zero."""
        symbols = rows[:, : self.symbol_bytes]
        if self.bias_nibble:
            symbols = symbols.copy()
            symbols[:, -1] &= 0xF0
        return symbols

    def scanned(self, rows: Codes) -> Codes:
        """The bytes that the scan looks up, of whole rows."""
        if not self.bias_bytes:
            return rows[:, : self.symbol_bytes]
        return np.concatenate([rows[:, : self.symbol_bytes], rows[:, -self.bias_bytes :]], axis=1)

    def cells(self, rows: Codes) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of each row's cell."""
        part = rows[:, self.symbol_bytes : self.symbol_bytes + self.cell_bytes].astype(np.int64)
        numbers: np.ndarray[Any, np.dtype[np.int64]] = (part << (8 * np.arange(self.cell_bytes))).sum(axis=1)
        return numbers

    def scales(self, rows: Codes) -> Codes:
        """The scale byte of each row."""
        at = self.symbol_bytes + self.cell_bytes
        return rows[:, at]

    def join(
        self, scanned: Codes, cells: np.ndarray[Any, np.dtype[np.int64]] | None = None, scales: Codes | None = None
    ) -> Codes:
        """Whole rows from what `scanned`, `cells` and `scales` give."""
        columns = [scanned[:, : self.symbol_bytes]]
        if self.cell_bytes and cells is not None:
            columns.append((cells[:, None] >> (8 * np.arange(self.cell_bytes)) & 255).astype(np.uint8))
        if self.scale_bytes and scales is not None:
            columns.append(scales[:, None])
        columns.append(scanned[:, self.symbol_bytes :])
        return np.concatenate(columns, axis=1)

    def check(self, codes: Any, name: str) -> Codes:
        """Whole code rows, or an error that says why they are none of this layout."""
        rows = byte_rows(codes, name)
        if rows.shape[1] != self.n_bytes:
            raise InputError(f"{name} has {rows.shape[1]} bytes a row; codes of this codec have {self.n_bytes}")
        if self.padding and (rows[:, self.symbol_bytes - 1] & self.padding).any():
            raise InputError(
                f"{name} has padding bits set after the {self.symbol_bits} bits; they must be zero (are the bytes LSB "
                "first? then convert them with from_lsb_first)"
            )
        return rows
