"""Compact binary codes for vectors, by anti-sparse coding (Jégou, Furon, Fuchs, 2011)."""

from importlib.metadata import version

from antisparse.errors import AccuracyError, AntisparseError, InputError, InputTypeError, RankError, StepLimitError
from antisparse.frames import BlockFrame, block_frame, gaussian_frame, tight_frame
from antisparse.spread import (
    SpreadPath,
    SpreadResult,
    SpreadSolver,
    certificate,
    objective,
    spread,
    spread_bits,
    spread_path,
)

__version__ = version("antisparse")

__all__ = [
    "AccuracyError",
    "AntisparseError",
    "BlockFrame",
    "InputError",
    "InputTypeError",
    "RankError",
    "SpreadPath",
    "SpreadResult",
    "SpreadSolver",
    "StepLimitError",
    "block_frame",
    "certificate",
    "gaussian_frame",
    "objective",
    "spread",
    "spread_bits",
    "spread_path",
    "tight_frame",
]
