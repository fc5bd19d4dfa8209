"""Encoders: scikit-learn transformers that fit codecs."""

from antisparse.encoders.antisparse import AntiSparseEncoder
from antisparse.encoders.base import Encoder
from antisparse.encoders.itq import ITQEncoder
from antisparse.encoders.learned import LearnedEncoder
from antisparse.encoders.lsh import LSHEncoder
from antisparse.encoders.spectral import SpectralHashEncoder

__all__ = ["AntiSparseEncoder", "Encoder", "ITQEncoder", "LSHEncoder", "LearnedEncoder", "SpectralHashEncoder"]
