"""The bits of an index as a FAISS binary index, and back. FAISS is imported when asked for."""

from typing import Any

import numpy as np

from antisparse.errors import InputError, InputTypeError, MissingDependencyError, UnsupportedError
from antisparse.index.index import Index
from antisparse.scan.columns import Ids


def to_faiss(index: Index) -> Any:
    """A ``faiss.IndexBinaryIDMap2`` over an ``IndexBinaryFlat`` with the bits and ids of all vectors.

    Its Hamming distances are those of ``index.search(method="hamming")``.
    """
    faiss = _faiss()
    n_bits = _whole_bytes(index)
    ids = index.ids
    binary = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(n_bits))
    if len(ids):
        bits = index.codec.layout.symbols(index.codes(ids))
        binary.add_with_ids(np.ascontiguousarray(bits), ids)
    return binary


def add_faiss(index: Index, binary: Any) -> Ids:
    """Add the codes of an ``IndexBinaryFlat``, with their ids if an ``IndexBinaryIDMap`` holds it; returns the ids.

    The bits must be the codec's, in its order, and codes must hold nothing beside them.
    """
    faiss = _faiss()
    n_bits = _whole_bytes(index)
    if 8 * index.codec.n_bytes != n_bits:
        raise UnsupportedError("the codes hold more than signs, which a binary index lacks; use a codec of signs alone")
    # What FAISS hands out does not own what it shows: `binary` stays alive beside it.
    ids, flat = None, faiss.downcast_IndexBinary(binary) if isinstance(binary, faiss.IndexBinary) else binary
    if isinstance(flat, faiss.IndexBinaryIDMap):
        ids, flat = faiss.vector_to_array(flat.id_map), faiss.downcast_IndexBinary(flat.index)
    if not isinstance(flat, faiss.IndexBinaryFlat):
        kind = type(binary).__name__
        raise InputTypeError(f"binary is a {kind}; pass an IndexBinaryFlat, or an IndexBinaryIDMap of one")
    if flat.d != n_bits:
        raise InputError(f"binary has codes of {flat.d} bits, the index of {n_bits}")
    return index.add_codes(faiss.vector_to_array(flat.xb).reshape(flat.ntotal, n_bits // 8), ids)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingDependencyError("this needs FAISS: pip install faiss-cpu") from None
    return faiss


def _whole_bytes(index: Index) -> int:
    if not isinstance(index, Index):
        raise InputTypeError(f"index is a {type(index).__name__}; pass an Index")
    symbols = index.codec.symbols
    if not symbols.compares:
        raise UnsupportedError(
            f"codes of {symbols.describe()} have no signs to compare, and FAISS's binary indexes compare nothing else"
        )
    if index.codec.cells is not None:
        raise UnsupportedError("signs relative to different means do not compare; use a codec of one cell")
    if symbols.n_bits % 8:
        raise UnsupportedError(f"the codes have {symbols.n_bits} bits, and FAISS takes whole bytes")
    return symbols.n_bits
