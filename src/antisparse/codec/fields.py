"""All fields that a codec may hold. A new kind of field is one more file, named here."""

from antisparse.codec.bias import Bias, BiasByte, BiasNibble
from antisparse.codec.blocks import Blocks
from antisparse.codec.cells import Cells
from antisparse.codec.codebooks import Codebooks
from antisparse.codec.levels import Levels
from antisparse.codec.reduction import Reduction
from antisparse.codec.scale import FixedLength, Scale, ScaleByte
from antisparse.codec.signs import LearnedSigns, ProjectedSigns, SpectralSigns, SpreadSigns
from antisparse.frames import BlockFrame

AnySymbols = ProjectedSigns | SpreadSigns | LearnedSigns | SpectralSigns | Codebooks | Levels | Blocks

# Every class whose values the file of a codec may hold, by the name it has there.
CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(Reduction, BlockFrame, Cells),
        *(ProjectedSigns, SpreadSigns, LearnedSigns, SpectralSigns, Codebooks, Levels, Blocks),
        *(ScaleByte, FixedLength, BiasByte, BiasNibble),
    )
}

__all__ = ["CLASSES", "AnySymbols", "Bias", "BiasNibble", "Cells", "FixedLength", "Reduction", "Scale", "ScaleByte"]
