"""Compact binary codes for vectors, by anti-sparse coding (Jégou, Furon, Fuchs, 2011)."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from antisparse.codes import CodeLayout, from_lsb_first, hamming, hamming_search, pack, to_lsb_first, unpack
from antisparse.errors import (
    AccuracyError,
    AntisparseError,
    DownloadError,
    FormatError,
    InputError,
    InputTypeError,
    LockedError,
    MissingDependencyError,
    RankError,
    StepLimitError,
    StorageError,
    UnsupportedError,
)
from antisparse.frames import BlockFrame, block_frame, gaussian_frame, tight_frame
from antisparse.refine import anneal, refine
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

if TYPE_CHECKING:
    from antisparse.encoders import (
        AntiSparseEncoder,
        ITQEncoder,
        LSHEncoder,
        SpectralHashEncoder,
        load_encoder,
        save_encoder,
    )
    from antisparse.index import Index
    from antisparse.learn import LearnedFrame, learn_frame
    from antisparse.search import CodeBase
    from antisparse.tuning import Setting, Tuning, tune
    from antisparse.words import learn_words

__version__ = version("antisparse")

__all__ = [
    "AccuracyError",
    "AntiSparseEncoder",
    "AntisparseError",
    "BlockFrame",
    "CodeBase",
    "CodeLayout",
    "DownloadError",
    "FormatError",
    "ITQEncoder",
    "Index",
    "InputError",
    "InputTypeError",
    "LSHEncoder",
    "LearnedFrame",
    "LockedError",
    "MissingDependencyError",
    "RankError",
    "Setting",
    "SpectralHashEncoder",
    "SpreadPath",
    "SpreadResult",
    "SpreadSolver",
    "StepLimitError",
    "StorageError",
    "Tuning",
    "UnsupportedError",
    "anneal",
    "block_frame",
    "certificate",
    "from_lsb_first",
    "gaussian_frame",
    "hamming",
    "hamming_search",
    "learn_frame",
    "learn_words",
    "load_encoder",
    "objective",
    "pack",
    "refine",
    "save_encoder",
    "spread",
    "spread_bits",
    "spread_path",
    "tight_frame",
    "to_lsb_first",
    "tune",
    "unpack",
]

# What needs scikit-learn is imported when it is first asked for: the solver alone starts in a fraction of the time.
_LAZY = {
    "AntiSparseEncoder": "antisparse.encoders",
    "CodeBase": "antisparse.search",
    "ITQEncoder": "antisparse.encoders",
    "Index": "antisparse.index",
    "LSHEncoder": "antisparse.encoders",
    "LearnedFrame": "antisparse.learn",
    "Setting": "antisparse.tuning",
    "SpectralHashEncoder": "antisparse.encoders",
    "Tuning": "antisparse.tuning",
    "learn_frame": "antisparse.learn",
    "learn_words": "antisparse.words",
    "load_encoder": "antisparse.encoders",
    "save_encoder": "antisparse.encoders",
    "tune": "antisparse.tuning",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'antisparse' has no attribute {name!r}")
