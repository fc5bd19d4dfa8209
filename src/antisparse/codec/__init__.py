"""What a fitted code is: the codec, and the fields that its bytes are spent on."""

from antisparse.codec.bias import BiasByte, BiasNibble
from antisparse.codec.blocks import Blocks
from antisparse.codec.cells import Cells
from antisparse.codec.codebooks import Codebooks
from antisparse.codec.codec import Codec, codec_of
from antisparse.codec.layout import RowLayout
from antisparse.codec.levels import Levels
from antisparse.codec.reduction import Reduction
from antisparse.codec.scale import FixedLength, ScaleByte
from antisparse.codec.signs import LearnedSigns, ProjectedSigns, SpectralSigns, SpreadSigns

__all__ = [
    "BiasByte",
    "BiasNibble",
    "Blocks",
    "Cells",
    "Codebooks",
    "Codec",
    "FixedLength",
    "LearnedSigns",
    "Levels",
    "ProjectedSigns",
    "Reduction",
    "RowLayout",
    "ScaleByte",
    "SpectralSigns",
    "SpreadSigns",
    "codec_of",
]
