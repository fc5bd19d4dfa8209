"""Peers: FAISS indexes by their factory names, and other libraries' with the same methods."""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Answer = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class TurboVec:
    """turbovec's TurboQuant, calibrated on learning vectors; a norm of four bytes beside the codes."""

    def __init__(self, d: int, bits: int) -> None:
        from turbovec import TurboQuantIndex

        self._index, self.code_size = TurboQuantIndex(d, bits), bits * d // 8 + 4

    def train(self, X: Vectors) -> None:
        """Fit what it fits."""
        self._index.calibrate(X)

    def add(self, X: Vectors) -> None:
        """Encode and keep."""
        self._index.add(X)

    def search(self, Q: Vectors, k: int) -> Answer:
        """The nearest by inner product, which for unit vectors are those by distance."""
        distances, ids = self._index.search(Q, k)
        return np.asarray(distances), np.asarray(ids)


class RaBitQLibrary:
    """The authors' own RaBitQ, in one cell, its scores the accurate ones; bytes are what a saved file has a vector."""

    def __init__(self, d: int, bits: int) -> None:
        self._d, self._bits, self._vectors = d, bits, np.empty((0, d), np.float32)
        self._index: Any = None
        self.code_size = 0

    def train(self, X: Vectors) -> None:
        """The mean is its only cell."""
        self._mean = X.mean(axis=0, keepdims=True)

    def add(self, X: Vectors) -> None:
        """Encode all that was added, anew: it is built at once."""
        from rabitqlib import IvfIndex

        self._vectors = np.concatenate([self._vectors, X])
        self._index = IvfIndex(self._d, len(self._vectors), 1, self._bits, "l2")
        self._index.build(self._vectors, self._mean, np.zeros(len(self._vectors), np.uint32), 1, False)
        with tempfile.TemporaryDirectory() as folder:
            self._index.save(str(Path(folder) / "index"))
            size = (Path(folder) / "index").stat().st_size
        self.code_size = size // len(self._vectors) - 4  # less the id

    def search(self, Q: Vectors, k: int) -> Answer:
        """The nearest."""
        distances, ids = sorted(self._index.search(Q, k, 1, True, 1), key=lambda part: part.dtype.kind)
        return (distances, ids) if distances.dtype.kind == "f" else (ids, distances)

    def reset(self) -> None:
        """Forget the vectors."""
        self._vectors = self._vectors[:0]


class ScaNN:
    """Google's ScaNN: all codes by asymmetric hashing, codebooks of 16 codewords, learned from the base itself."""

    def __init__(self, d: int, codebooks: int) -> None:
        self._per_block, self.code_size = d // codebooks, codebooks // 2
        self._index: Any = None

    def train(self, X: Vectors) -> None:
        """It learns as it adds."""

    def add(self, X: Vectors) -> None:
        """Learn, encode and keep."""
        from scann import scann_ops_pybind

        builder = scann_ops_pybind.builder(X, 100, "dot_product")
        self._index = builder.score_ah(self._per_block, anisotropic_quantization_threshold=float("nan")).build()

    def search(self, Q: Vectors, k: int) -> Answer:
        """The nearest by inner product, which for unit vectors are those by distance."""
        ids, products = self._index.search_batched(Q, final_num_neighbors=k)
        return -products, ids.astype(np.int64)


def make_peer(name: str, d: int) -> tuple[Any, int]:
    """A peer, and the bytes of its codes; those of RaBitQLibrary are known once it has codes."""
    if name.startswith("turbovec"):
        turbo = TurboVec(d, int(name[8:]))
        return turbo, turbo.code_size
    if name.startswith("rabitqlib"):
        return RaBitQLibrary(d, int(name[9:])), 0
    if name.startswith("ScaNN"):
        scann = ScaNN(d, int(name[5:].split("x")[0]))
        return scann, scann.code_size
    if name.startswith("RaBitQ"):
        inner: Any = faiss.IndexRaBitQ(d, faiss.METRIC_L2, int(name[6:]))
        inner.qb = 8
        return faiss.IndexPreTransform(faiss.RandomRotationMatrix(d, d), inner), inner.code_size
    index = faiss.index_factory(d, name)
    return index, index.sa_code_size()


def peers_of(base: npt.NDArray[Any], n_bytes: int, slow: bool) -> list[str]:
    """Who stores so many bytes of a vector, of those that are installed."""
    names, d = [], base.shape[1]
    if d % (2 * n_bytes) == 0:
        names += [f"PQ{2 * n_bytes}x4fs"] + [f"OPQ{2 * n_bytes},PQ{2 * n_bytes}x4fs"] * (n_bytes <= 16)
    if d % n_bytes == 0:
        names += [f"PQ{n_bytes}x8"] + [f"OPQ{n_bytes},PQ{n_bytes}x8"] * (slow or n_bytes <= 32)
    if 8 * n_bytes <= d:
        names.append(f"ITQ{8 * n_bytes},LSH")
    if 2 * n_bytes == d:
        names.append("SQ4")
    if n_bytes == d:
        names.append("SQ8")
    units = abs(float(np.linalg.norm(base[:100].astype(np.float64), axis=1).mean()) - 1) < 1e-3
    if units and find_spec("turbovec") and 8 * n_bytes in (2 * d, 4 * d):
        names.append(f"turbovec{8 * n_bytes // d}")
    if units and find_spec("scann") and d % (2 * n_bytes) == 0:
        names.append(f"ScaNN{2 * n_bytes}x4")
    if slow and n_bytes <= 16:
        names += [f"RQ{n_bytes}x8", f"LSQ{n_bytes}x8"]
    return names


def peers_by_bits() -> list[str]:
    """Those whose bytes follow from bits a dimension and what they keep beside these."""
    kinds = ["RaBitQ"] + ["rabitqlib"] * (find_spec("rabitqlib") is not None)
    return [f"{kind}{bits}" for bits in (1, 2, 4) for kind in kinds]
