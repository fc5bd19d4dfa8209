"""What an index should hold and find, from a dictionary and NumPy."""

import os
from functools import cache

import numpy as np
import pytest

from antisparse import AntiSparseEncoder, CodeBase, ITQEncoder, LSHEncoder, hamming, unpack
from antisparse.forms import round_weights, unit_rows

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")  # which Windows lacks
forked_threads = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # of BLAS, say

RNG = np.random.default_rng(0)
POOL = RNG.standard_normal((150, 6)) * np.linspace(2, 0.5, 6) + 0.5
QUERIES = RNG.standard_normal((5, 6)) * np.linspace(2, 0.5, 6) + 0.5

_ENCODERS = {
    "tight": AntiSparseEncoder(12, frame="tight", effort=0, random_state=0),
    "lsh": LSHEncoder(11, random_state=0),
    "itq": ITQEncoder(5, random_state=0),
    "exact": AntiSparseEncoder(12, bias=False, effort=1, random_state=0),
    "byte": AntiSparseEncoder(12, effort=1, random_state=0),
    "scale": AntiSparseEncoder(12, scale=True, effort=1, random_state=0),
    "cells": AntiSparseEncoder(12, means=5, effort=1, random_state=0),
    "exact cells": AntiSparseEncoder(12, means=5, bias=False, effort=1, random_state=0),
    "scale cells": AntiSparseEncoder(12, means=5, scale=True, effort=1, random_state=0),
    "half": AntiSparseEncoder(10, bias="half", effort=1, random_state=0),
    "half cells": AntiSparseEncoder(12, means=5, bias="half", effort=1, random_state=0),
    "words": AntiSparseEncoder(12, frame="words", effort=1, random_state=0),
    "words cells": AntiSparseEncoder(12, frame="words", means=5, bias="half", effort=1, random_state=0),
    "exact words": AntiSparseEncoder(12, frame="words", bias=False, effort=1, random_state=0),
}
NAMES = tuple(_ENCODERS)
METRICS = ("l2", "cosine", "ip")
METHODS = ({"method": "hamming"}, {"method": "asymmetric"}, {}, {"shortlist": 7}, {"shortlist": 300})
METHODS += ({"shortlist": 9, "shortlist_method": "asymmetric"},)


@cache
def fitted(name, metric="l2"):
    return _ENCODERS[name].__class__(**_ENCODERS[name].get_params()).fit(as_metric(POOL, metric))


def by_reconstruction_alone(encoder):
    return encoder.words or encoder.cell_means is not None


def as_metric(X, metric):
    return unit_rows(X, "X") if metric == "cosine" else X


class Model:
    """A dictionary from ids to code rows."""

    def __init__(self, encoder, metric, rows=None, next_id=0):
        self.encoder, self.metric, self.rows, self.next_id = encoder, metric, dict(rows or {}), next_id

    def copy(self):
        return Model(self.encoder, self.metric, self.rows, self.next_id)

    def encode(self, X):
        return self.encoder.transform(as_metric(X, self.metric))

    def put(self, codes, ids):
        for row, i in zip(codes, ids, strict=True):
            self.rows[int(i)] = row
            self.next_id = max(self.next_id, int(i) + 1)

    def drop(self, ids):
        for i in ids:
            del self.rows[int(i)]

    @property
    def ids(self):
        return np.array(sorted(self.rows), np.int64)

    def codes(self, ids):
        return np.array([self.rows[int(i)] for i in ids], np.uint8).reshape(-1, self.encoder.code_layout_.code_size)

    def search(self, Q, k, *, allowed=None, shortlist=None, shortlist_method="hamming", method="reconstruction"):
        """By `CodeBase`, the numbers of its rows made ids."""
        ids = self.ids if allowed is None else self.ids[np.isin(self.ids, allowed)]
        base = CodeBase(self.encoder, self.codes(ids), metric=self.metric, n_threads=1)
        options = {"shortlist": shortlist, "shortlist_method": shortlist_method, "method": method}
        distances, rows = base.search(Q, k, **options)
        return distances, np.where(rows >= 0, np.append(ids, -1)[rows], -1)

    def full(self, Q, method):
        """Distances of every query to every id in order; None where a byte says more than the bits."""
        Q, codes, layout = as_metric(Q, self.metric), self.codes(self.ids), self.encoder.code_layout_
        if method == "hamming":
            return hamming(layout.bits(self.encoder.transform(Q)), layout.bits(codes))
        if method == "asymmetric":
            weights, units = round_weights(self.encoder.query_weights(self.encoder.reduce(Q), "projection"))
            signs = unpack(layout.bits(codes), layout.n_bits)
            apart = (weights < 0)[:, None] != (signs < 0)
            return (np.abs(weights)[:, None] * apart).sum(2) * units[:, None]
        if "bias" in [name for name, _ in layout.side]:
            return None
        rebuilt = self.encoder.inverse_transform(codes)
        if self.metric == "ip":
            return -Q @ rebuilt.T
        return ((Q[:, None] - rebuilt) ** 2).sum(2) / (2 if self.metric == "cosine" else 1)


def nearest(full, ids, k):
    """The k least of every row of distances, ties by id, filled up as a search does."""
    missing = np.iinfo(np.int32).max if full.dtype == np.int32 else np.inf
    distances, names = np.full((len(full), k), missing, full.dtype), np.full((len(full), k), -1)
    for row, values in enumerate(full):
        order = np.lexsort((ids, values))[:k]
        distances[row, : len(order)], names[row, : len(order)] = values[order], ids[order]
    return distances, names


def assert_same(found, expected):
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)
    assert found[0].dtype == expected[0].dtype


def check_search(index, model, k=7, allowed=None, given=None, Q=QUERIES):
    """Every method finds what the model says; `given` is the filter that leaves the ids `allowed`."""
    kept = model.ids if allowed is None else model.ids[np.isin(model.ids, allowed)]
    for options in METHODS:
        method = options.get("method", "reconstruction")
        if by_reconstruction_alone(model.encoder) and options:
            continue
        found = index.search(Q, k, filter=given, n_threads=2, **options)
        assert_same(found, model.search(Q, k, allowed=allowed, **options))
        full = None if "shortlist" in options else model.full(Q, method)
        if full is None:
            continue
        full = full[:, np.isin(model.ids, kept)]
        expected = nearest(full, kept, k)
        if method == "reconstruction":  # which scans float32
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


def check_holds(index, model):
    """The index holds the vectors of the model and no others."""
    np.testing.assert_array_equal(index.ids, model.ids)
    assert len(index) == len(model.rows)
    np.testing.assert_array_equal(index.codes(model.ids), model.codes(model.ids))
