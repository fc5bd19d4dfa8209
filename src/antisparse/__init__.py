"""Compact binary codes for vectors, by anti-sparse coding (Jégou, Furon, Fuchs, 2011)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from antisparse._version import __version__ as __version__
from antisparse.codes import from_lsb_first, hamming, hamming_search, pack, to_lsb_first, unpack
from antisparse.errors import (
    AccuracyError,
    AntisparseError,
    ClusterError,
    DownloadError,
    FormatError,
    InputError,
    InputTypeError,
    LockedError,
    MissingDependencyError,
    MissingFileError,
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
    from antisparse.codec import Codec
    from antisparse.encoders import (
        AntiSparseEncoder,
        ITQEncoder,
        LearnedEncoder,
        LSHEncoder,
        SpectralHashEncoder,
    )
    from antisparse.index import Index
    from antisparse.learning import Learned, Split, choose_split, learn_codebooks, learn_frame
    from antisparse.scan import CodeBase
    from antisparse.tuning import Setting, Tuning, tune

__all__ = [
    "AccuracyError",
    "AntiSparseEncoder",
    "AntisparseError",
    "BlockFrame",
    "ClusterError",
    "CodeBase",
    "Codec",
    "DownloadError",
    "FormatError",
    "ITQEncoder",
    "Index",
    "InputError",
    "InputTypeError",
    "LSHEncoder",
    "Learned",
    "LearnedEncoder",
    "LockedError",
    "MissingDependencyError",
    "MissingFileError",
    "RankError",
    "Setting",
    "SpectralHashEncoder",
    "Split",
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
    "choose_split",
    "from_lsb_first",
    "gaussian_frame",
    "hamming",
    "hamming_search",
    "learn_codebooks",
    "learn_frame",
    "objective",
    "pack",
    "refine",
    "spread",
    "spread_bits",
    "spread_path",
    "tight_frame",
    "to_lsb_first",
    "tune",
    "unpack",
]

# Imported when first asked for: what needs scikit-learn, and what takes a while. `spread` and `refine` are not, since a
# module of the same name would take the function's place.
_LAZY = {
    "AntiSparseEncoder": "antisparse.encoders",
    "CodeBase": "antisparse.scan",
    "Codec": "antisparse.codec",
    "ITQEncoder": "antisparse.encoders",
    "Index": "antisparse.index",
    "LSHEncoder": "antisparse.encoders",
    "Learned": "antisparse.learning",
    "LearnedEncoder": "antisparse.encoders",
    "Setting": "antisparse.tuning",
    "SpectralHashEncoder": "antisparse.encoders",
    "Split": "antisparse.learning",
    "Tuning": "antisparse.tuning",
    "choose_split": "antisparse.learning",
    "learn_codebooks": "antisparse.learning",
    "learn_frame": "antisparse.learning",
    "tune": "antisparse.tuning",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'antisparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    imports = {"Any", "TYPE_CHECKING", "import_module"}
    return sorted({*globals(), *__all__} - imports)
