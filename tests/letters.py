"""A small model of texts: vectors of their triples of letters, hashed."""

import zlib

import numpy as np


class Letters:
    """Counts what it is asked for; `name` is what an index keeps of it."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.embedded: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.embedded += texts
        vectors = np.zeros((len(texts), 24), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            padded = f" {text} "
            for at in range(len(padded) - 2):
                row[zlib.crc32(padded[at : at + 3].encode()) % 24] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


TITLES = [
    f"{deed} the {place} {number}"
    for deed in ("crossing", "painting", "leaving", "mapping")
    for place in ("river", "harbour", "mountain", "library", "desert")
    for number in range(60)
]
