"""Digests of all that the zoo computes, one line of JSON: for processes whose answers must be equal bit for bit.

Run as ``python digests.py [FOLDER]``. With a folder of codecs (NAME.safetensors) these stand in for fitted ones.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import zoo

from antisparse import CodeBase, Codec, _core, spread

X = np.random.default_rng(3).standard_normal((300, 10)) * np.linspace(3, 0.1, 10) + 1  # no round numbers
QUERIES = X[:60] + 0.01


def digest(*arrays: np.ndarray) -> str:
    """Of the bits of arrays, their types and shapes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def digests_of(codec: Codec, name: str) -> dict[str, str]:
    """Of a codec of the zoo: itself, codes, rebuilt vectors, distances and ids by every way to search."""
    codes = codec.encode(X)
    base = CodeBase(codec, codes)
    found = {"codec": codec.digest, "codes": digest(codes)}
    if codec.rebuilds:
        found["rebuilt"] = digest(codec.decode(codes))
    for method in zoo.methods(name):
        distances, ids = base.search(QUERIES, 20, method=method)
        found[f"{method} distances"], found[f"{method} ids"] = digest(distances), digest(ids)
        if method == "asymmetric" and name in zoo.SPREAD:
            found["spread"] = digest(*base.search(QUERIES, 20, method=method, query="spread"))
        if method != "reconstruction" and codec.rebuilds:
            found[f"shortlist by {method}"] = digest(*base.search(QUERIES, 5, shortlist=40, shortlist_method=method))
    return found


def solver_digests() -> dict[str, str]:
    """Of spread representations in both types, and of a frame whose columns come close to dependent."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 40))
    A[:, 5] = A[:, 3] + 1e-9 * A[:, 4]
    found = {}
    for dtype in (np.float32, np.float64):
        for h in (0.0, 0.01, 0.3):
            result = spread(rng.standard_normal((50, 12)), A, h, dtype=dtype)
            found[f"{np.dtype(dtype)} h={h}"] = digest(result.x, result.t)
    return found


def all_digests(folder: str | None = None) -> dict[str, dict[str, str]]:
    """By the instruction set in use."""
    found = {"isa": {"name": _core.isa()}, "solver": solver_digests()}
    for name in zoo.NAMES:
        codec = zoo.codec(name) if folder is None else Codec.load(Path(folder) / f"{name}.safetensors")
        found[name] = digests_of(codec, name)
    return found


if __name__ == "__main__":
    print(json.dumps(all_digests(*sys.argv[1:])))
