"""Encoders: float vectors to binary codes, as scikit-learn transformers."""

from antisparse.encoders.antisparse import AntiSparseEncoder
from antisparse.encoders.base import Encoder, FrameEncoder
from antisparse.encoders.itq import ITQEncoder
from antisparse.encoders.lsh import LSHEncoder
from antisparse.encoders.spectral import SpectralHashEncoder
from antisparse.encoders.storage import load_encoder, save_encoder

__all__ = [
    "AntiSparseEncoder",
    "Encoder",
    "FrameEncoder",
    "ITQEncoder",
    "LSHEncoder",
    "SpectralHashEncoder",
    "load_encoder",
    "save_encoder",
]
