"""Codes and rotations for FAISS: bits as a binary index, and back; a reduction as what FAISS does before an index."""

from typing import Any

import numpy as np

from antisparse.codec.codec import Codec, codec_of
from antisparse.errors import InputError, InputTypeError, MissingDependencyError, UnsupportedError
from antisparse.index import Index
from antisparse.scan.columns import Ids

_MOST = 1e18  # whose square float32 holds


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


def reduced_faiss(codec: Any, inner: Any) -> Any:
    """A ``faiss.IndexPreTransform`` that brings vectors to what the codec codes, and gives these to a FAISS index.

    Before the index `inner` FAISS cuts vectors to the dimensions that the codec uses, brings them to unit length (by
    cosine), takes off the mean, and keeps the axes: what ``codec.reduction`` does, in float32. With the inner product
    no mean is taken off, since it would be taken off queries as well.

    Parameters
    ----------
    codec : Codec or fitted encoder
    inner : faiss.Index
        Of as many dimensions as reduced vectors have (``codec.reduction.reduced_dimension``), trained or not, empty,
        of METRIC_INNER_PRODUCT if that is the codec's metric, else of METRIC_L2.
    """
    faiss = _faiss()
    fitted = codec_of(codec)
    reduction, metric = fitted.reduction, fitted.metric
    if not isinstance(inner, faiss.Index):
        raise InputTypeError(f"inner is a {type(inner).__name__}; pass an index of FAISS for floats")
    if inner.d != reduction.reduced_dimension:
        raise InputError(
            f"inner takes vectors of {inner.d} dimensions, but reduced ones have {reduction.reduced_dimension}"
        )
    if inner.ntotal:
        raise InputError(f"inner holds {inner.ntotal} vectors, which were not reduced; pass an empty index")
    wanted = faiss.METRIC_L2 if metric.centres else faiss.METRIC_INNER_PRODUCT
    if inner.metric_type != wanted:
        name = "METRIC_L2" if metric.centres else "METRIC_INNER_PRODUCT"
        raise InputError(f"inner compares by another metric than the codec ({metric.name}); make it with faiss.{name}")
    chain = faiss.IndexPreTransform(inner)
    for transform in reversed(_transforms(faiss, fitted)):
        chain.prepend_transform(transform)
    return chain


def _transforms(faiss: Any, codec: Codec) -> list[Any]:
    """What is done to a vector before it is coded, in order."""
    reduction, d = codec.reduction, codec.dimension
    parts = [reduction.mean] if reduction.axes is None else [reduction.mean, reduction.axes]
    if max(float(np.abs(part).max(initial=0)) for part in parts) > _MOST:
        raise UnsupportedError("codec: its mean or axes are too large for float32, in which FAISS computes")
    steps = []
    if codec.given is not None:
        steps.append(faiss.RemapDimensionsTransform(codec.given, d, False))
    if codec.metric_name == "cosine":
        steps.append(faiss.NormalizationTransform(d, 2.0))
    if codec.metric.centres and reduction.mean.any():
        centring = faiss.CenteringTransform(d)
        faiss.copy_array_to_vector(reduction.mean.astype(np.float32), centring.mean)
        centring.is_trained = True
        steps.append(centring)
    if reduction.axes is not None:
        linear = faiss.LinearTransform(d, reduction.reduced_dimension, False)
        faiss.copy_array_to_vector(reduction.axes.astype(np.float32).ravel(), linear.A)
        linear.is_trained = True
        linear.set_is_orthonormal()
        steps.append(linear)
    return steps


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
