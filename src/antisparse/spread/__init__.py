"""Spread (anti-sparse) representations: the problem, the reference solver and the native batch solver."""

from antisparse.spread.batch import SpreadSolver, spread, spread_bits
from antisparse.spread.path import Breakpoint, Piece, SpreadPath, spread_path
from antisparse.spread.problem import SpreadResult, certificate, objective

__all__ = [
    "Breakpoint",
    "Piece",
    "SpreadPath",
    "SpreadResult",
    "SpreadSolver",
    "certificate",
    "objective",
    "spread",
    "spread_bits",
    "spread_path",
]
