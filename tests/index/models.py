"""What an index should hold and find: a dictionary from ids to code rows, and distances by NumPy.

The distances are worked out from the bytes of a code row and the arrays of its codec, by the formulas of docs/codes.md
and docs/learn.md, and use nothing that lays codes out or scans them.
"""

import os
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import zoo
from sklearn.base import clone

from antisparse import CodeBase, Index, UnsupportedError
from antisparse.codec import BiasByte, BiasNibble, FixedLength, ScaleByte
from antisparse.index.incoming import Part

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")  # which Windows lacks
forked_threads = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # of BLAS, say

POOL = zoo.vectors(150, 1)
QUERIES = zoo.vectors(5, 2) + 0.1 * np.random.default_rng(2).standard_normal((5, 10))
DIMENSION = POOL.shape[1]

NAMES = tuple(zoo.NAMES)
METRICS = ("l2", "cosine", "ip")
METHODS = ({"method": "hamming"}, {"method": "asymmetric"}, {}, {"shortlist": 7}, {"shortlist": 300})
METHODS += ({"shortlist": 9, "shortlist_method": "asymmetric"},)


@cache
def fitted(name, metric=None):
    """A codec of the zoo, for its own metric or another."""
    if metric in (None, zoo.ENCODERS[name].metric):
        return zoo.codec(name)
    encoder = clone(zoo.ENCODERS[name]).set_params(metric=metric)
    if getattr(encoder, "split", None) is not None and encoder.split.bias == "none":  # which suits ip alone
        encoder.split = replace(encoder.split, bias="byte")
        encoder.n_bytes += 1
    return encoder.fit(zoo.TRAIN).codec_


def allows(name, options):
    """Whether codes of this name can be searched so."""
    methods = zoo.methods(name)
    if "shortlist" in options:
        return {"reconstruction", options.get("shortlist_method", "hamming")} <= set(methods)
    return options.get("method", "reconstruction") in methods


def searches(name):
    """The ways to search codes of this name."""
    return [options for options in METHODS if allows(name, options)]


def unit(X):
    return X / np.sqrt((X * X).sum(axis=1, keepdims=True))


class Fields:
    """The fields of code rows, read byte by byte."""

    def __init__(self, codec, rows):
        self.codec, rows = codec, np.asarray(rows)
        bits = codec.symbols.n_bits
        nibble = isinstance(codec.bias, BiasNibble)
        at = -(-(bits + 4 * nibble) // 8)
        unpacked = np.unpackbits(rows[:, :at], axis=1)
        self.bits = unpacked[:, :bits]
        cells = 0 if codec.cells is None else len(codec.cells.means)
        width = 0 if cells == 0 else 1 if cells <= 256 else 2
        self.cells = sum((rows[:, at + j].astype(int) << 8 * j for j in range(width)), np.zeros(len(rows), int))
        at += width
        self.scales = np.ones(len(rows))
        if isinstance(codec.scale, ScaleByte):
            self.scales = 1 / (codec.scale.low + codec.scale.step * rows[:, at].astype(float))
            at += 1
        self.bias = np.zeros(len(rows))
        if nibble:
            number = unpacked[:, -4:] @ [8, 4, 2, 1]
            self.bias = codec.bias.low[self.cells] + codec.bias.step[self.cells] * number
        elif isinstance(codec.bias, BiasByte):
            self.bias = codec.bias.low + codec.bias.step * rows[:, at].astype(float)
            at += 1
        assert rows.shape[1] == at

    @property
    def signs(self):
        return 2.0 * self.bits - 1

    @property
    def selection(self):
        """What multiplies the columns of the matrix."""
        if self.codec.symbols.columns_per_nibble != 16:
            return self.signs
        numbers = self.bits.reshape(len(self.bits), self.bits.shape[1] // 4, 4) @ [8, 4, 2, 1]
        return (numbers[:, :, None] == np.arange(16)).reshape(len(self.bits), 4 * self.bits.shape[1]).astype(float)

    @property
    def rebuilt(self):
        """The vectors that the rows stand for."""
        codec = self.codec
        scales, combined = self.scales, self.selection @ codec.symbols.matrix.T
        if isinstance(codec.scale, FixedLength):
            length = np.sqrt((combined**2).sum(axis=1))
            scales = np.divide(codec.scale.sigma, length, out=np.zeros(len(length)), where=length > 0)
        rebuilt = scales[:, None] * combined
        if codec.cells is not None:
            rebuilt = rebuilt + codec.cells.means[self.cells]
        axes = codec.reduction.axes
        return (rebuilt if axes is None else rebuilt @ axes) + codec.reduction.mean


def reduced(codec, Q, centre):
    Y = Q - codec.reduction.mean if centre else Q
    return Y if codec.reduction.axes is None else Y @ codec.reduction.axes.T


def true_distances(codec, Q, rows, method):
    """Distances (queries, rows) in float64, and how far the integers of a scan may take them from these."""
    metric = codec.metric_name
    fields = Fields(codec, rows)
    if method == "hamming":
        own = Fields(codec, codec.encode(Q, n_threads=1)).bits
        return (own[:, None] != fields.bits).sum(axis=2).astype(np.int32), np.zeros((len(Q), len(rows)))
    Q = unit(Q) if metric == "cosine" else Q
    if method == "asymmetric":
        w = reduced(codec, Q, True) @ codec.symbols.matrix
        apart = (w < 0)[:, None] != (fields.signs < 0)
        room = w.shape[1] * 2.0**-22 * np.abs(w).max(axis=1, initial=0)
        return (np.abs(w)[:, None] * apart).sum(axis=2), np.repeat(room[:, None], len(rows), axis=1)
    centred = metric != "ip"
    y = reduced(codec, Q, centred)
    w = y @ codec.symbols.matrix
    products = w @ fields.selection.T
    scales = fields.scales
    if isinstance(codec.scale, FixedLength):
        length = np.sqrt(((codec.symbols.matrix @ fields.selection.T) ** 2).sum(axis=0))
        scales = np.divide(codec.scale.sigma, length, out=np.zeros(len(rows)), where=length > 0)
    means = np.zeros((1, y.shape[1])) if codec.cells is None else codec.cells.means
    inner = y @ means[fields.cells].T + scales * products
    # A weight is rounded by half a unit, of 2^-22 of the largest; so is the step of a bias, 255 times.
    room = np.abs(w).max(axis=1, initial=0)[:, None] * scales * (w.shape[1] + 512) * 2.0**-21
    if not centred:
        return -(Q @ codec.reduction.mean)[:, None] - inner, room + 1e-9
    square = ((Q - codec.reduction.mean) ** 2).sum(axis=1)[:, None]
    if isinstance(codec.scale, FixedLength):
        own = codec.scale.sigma**2
    else:
        own = (means**2).sum(axis=1)[fields.cells] + scales * fields.bias
    full = np.maximum(square - 2 * inner + own, 0)
    room = room + 1e-6 * np.abs(square)
    return (full / 2, room / 2) if metric == "cosine" else (full, room)


def key_of(i):
    """The key of the item of an id, where keys are text."""
    return f"ключ {int(i) * 7919 % 1_000_003}"


# What indexes keep beside codes. A text tells the code, so that it is seen when items and codes do not agree.
COLUMNS = pa.schema([("code", pa.string()), ("half", pa.float64()), ("tags", pa.list_(pa.string()))])
KEPT = {
    None: {},
    "columns": {"items": COLUMNS},
    "text": {"items": pa.schema([*COLUMNS, ("key", pa.string())]), "key": "key"},
    "integer": {"items": pa.schema([*COLUMNS, ("key", pa.uint32())]), "key": "key"},
}


class Model:
    """A dictionary from ids to code rows, perhaps with items that ids and code rows tell."""

    def __init__(self, name, metric=None, rows=None, next_id=0, keeps=None):
        self.name, self.codec, self.keeps = name, fitted(name, metric), keeps
        self.metric = self.codec.metric_name
        self.rows, self.next_id = dict(rows or {}), next_id

    def copy(self):
        return Model(self.name, self.metric, self.rows, self.next_id, self.keeps)

    def create(self, path, **options):
        """An index without codes for such a model."""
        return Index.create(path, self.codec, **KEPT[self.keeps], **options)

    def fill(self, index):
        """Make an index in memory, without codes, hold what the model does."""
        ids = self.ids
        codes, items = self.codes(ids), None
        if self.keeps is not None:
            items = index.snapshot.schema.split(self.items(ids, codes), "items")[1]
        index._writer.add([Part(codes, ids, items)])

    def items(self, ids, codes):
        """The items of ids and their code rows."""
        keys = {"text": [key_of(i) for i in ids], "integer": np.array(ids, np.uint32)}
        columns = {} if self.keeps == "columns" else {"key": keys[self.keeps]}
        columns["code"] = [row.tobytes().hex() for row in codes]
        columns["half"] = pa.array([None if i % 3 == 0 else i / 2 for i in ids], pa.float64())
        columns["tags"] = pa.array([[] if i % 2 else [f"é{i}", None] for i in ids], pa.list_(pa.string()))
        return pa.table(columns)

    def own_ids(self, ids):
        """The ids that vectors get that are added with these: the next ones, where keys are text."""
        return self.next_id + np.arange(len(ids)) if self.keeps == "text" else ids

    def given(self, ids):
        """Ids, as an index is asked for them."""
        return [key_of(i) for i in ids] if self.keeps == "text" else ids

    def table(self, X, ids, codes):
        """Vectors and items as one table; the column of vectors shares the memory of X, if it can."""
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(X).reshape(-1)), X.shape[1])
        return self.items(ids, codes).append_column("vector", vectors)

    def add(self, index, X, ids=None):
        """Add vectors with these ids, or the next ones, and put them here; returns what the index did."""
        wanted = self.next_id + np.arange(len(X)) if ids is None else self.own_ids(np.asarray(ids))
        codes = self.encode(X)
        if self.keeps is None:
            returned = index.add(X, ids)
        elif self.keeps == "columns":
            returned = index.add(X, ids, items=self.items(wanted, codes))
        else:
            returned = index.add(self.table(X, wanted, codes))
        self.put(codes, wanted)
        return returned

    def update(self, index, X, ids):
        """Replace the vectors of ids, and put them here."""
        codes = self.encode(X)
        if self.keeps is None:
            index.update(X, ids)
        elif self.keeps == "columns":
            index.update(X, ids, items=self.items(ids, codes))
        else:
            index.update(self.table(X, ids, codes))
        self.put(codes, ids)

    def remove(self, index, ids):
        """Remove ids here and there."""
        index.remove(self.given(ids))
        self.drop(ids)

    def encode(self, X):
        return self.codec.encode(X, n_threads=1)

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
        return np.array([self.rows[int(i)] for i in ids], np.uint8).reshape(-1, self.codec.n_bytes)

    def kept(self, allowed):
        return self.ids if allowed is None else self.ids[np.isin(self.ids, allowed)]

    def search(self, Q, k, *, allowed=None, **options):
        """By a `CodeBase` of all codes in one piece, the numbers of its rows made ids: to the last bit."""
        ids = self.kept(allowed)
        base = CodeBase(self.codec, self.codes(ids), metric=self.metric, n_threads=1)
        distances, rows = base.search(Q, k, **options)
        return distances, np.where(rows >= 0, np.append(ids, -1)[rows], -1)

    def full(self, Q, method, allowed=None):
        """Ids, and true distances of every query to each of them, with the room for rounding."""
        ids = self.kept(allowed)
        return ids, *true_distances(self.codec, Q, self.codes(ids), method)


def nearest(full, ids, k):
    """The k least of every row of distances, ties by id, filled up as a search does."""
    missing = np.iinfo(np.int32).max if full.dtype == np.int32 else np.inf
    distances, names = np.full((len(full), k), missing, full.dtype), np.full((len(full), k), -1)
    for row, values in enumerate(full):
        order = np.lexsort((ids, values))[:k]
        distances[row, : len(order)], names[row, : len(order)] = values[order], ids[order]
    return distances, names


def assert_same(found, expected):
    """To the last bit."""
    assert found[0].dtype == expected[0].dtype
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


def assert_nearest(found, ids, full, room, k):
    """What was found are the k nearest by true distances, but for the rounding of the scan."""
    distances, names = found
    expected, _ = nearest(full, ids, k)
    count = min(k, len(ids))
    missing = np.iinfo(np.int32).max if full.dtype == np.int32 else np.inf
    assert distances.shape == names.shape == (len(full), k)
    assert (names[:, count:] == -1).all() and (distances[:, count:] == missing).all()
    for row in range(len(full)):
        held, values = names[row, :count], distances[row, :count]
        assert len(np.unique(held)) == count and np.isin(held, ids).all()
        order = np.lexsort((held, values))
        np.testing.assert_array_equal(order, np.arange(count))  # by distance, then by id
        at = np.searchsorted(ids, held)
        assert (np.abs(values - full[row, at]) <= room[row, at]).all()
        assert (np.abs(values - expected[row, :count]) <= room[row].max(initial=0)).all()


def check_search(index, model, k=7, allowed=None, given=None, Q=QUERIES):
    """Every method finds what the model says; `given` is the filter that leaves the ids `allowed`."""
    for options in METHODS:
        if not allows(model.name, options):
            with pytest.raises(UnsupportedError, match=r"hamming|method='reconstruction'"):
                index.search(Q, k, filter=given, **options)
            continue
        found = index.search(Q, k, filter=given, n_threads=2, **options)
        assert_same(found, model.search(Q, k, allowed=allowed, **options))
        ids, full, room = model.full(Q, options.get("method", "reconstruction"), allowed)
        if "shortlist" not in options:
            assert_nearest(found, ids, full, room, k)
        elif options.get("shortlist_method", "hamming") == "hamming":
            candidates = nearest(model.full(Q, "hamming", allowed)[1], ids, options["shortlist"])[1]
            for row, held in enumerate(candidates):
                inside = np.isin(ids, held)
                part = slice(row, row + 1)
                one = found[0][part], found[1][part]
                assert_nearest(one, ids[inside], full[part][:, inside], room[part][:, inside], k)


def check_probes(index, model, probes, k=5, Q=QUERIES):
    """Each query finds the nearest of what is in the cells nearest to it."""
    centred, means = model.metric != "ip", model.codec.cells.means
    y = reduced(model.codec, unit(Q) if model.metric == "cosine" else Q, centred)
    offsets = -2 * y @ means.T + centred * (means**2).sum(1)
    cells = Fields(model.codec, model.codes(model.ids)).cells
    together = index.search(Q, k, probes=probes, n_threads=2)
    for row, of_row in enumerate(offsets):
        one = Q[row : row + 1]
        found = index.search(one, k, probes=probes)
        assert_same(found, [part[row : row + 1] for part in together])
        choices = [model.ids[np.isin(cells, visited)] for visited in nearest_cells(of_row, probes)]
        answers = [model.search(one, k, allowed=allowed) for allowed in choices]
        same = [np.array_equal(found[1], ids) for _, ids in answers]
        assert any(same), f"query {row} visits other cells than the nearest"
        allowed, expected = choices[same.index(True)], answers[same.index(True)]
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-12)  # products of another order
        assert_nearest(found, *model.full(one, "reconstruction", allowed), k)


def nearest_cells(offsets, probes):
    """The nearest cells: several choices where rounding decides which of some is the last, as of equal means."""
    probes = min(probes, len(offsets))
    last, room = np.sort(offsets)[probes - 1], 1e-12 * np.abs(offsets).max()
    certain, tied = np.flatnonzero(offsets < last - room), np.flatnonzero(np.abs(offsets - last) <= room)
    return [np.append(certain, part) for part in combinations(tied, probes - len(certain))]


def check_holds(index, model):
    """The index holds the vectors of the model and no others."""
    np.testing.assert_array_equal(index.ids, model.ids)
    assert len(index) == len(model.rows)
    codes = model.codes(model.ids)
    np.testing.assert_array_equal(index.codes(model.ids), codes)
    assert same_items(index, model)
    if model.keeps == "text":
        np.testing.assert_array_equal(index.codes(model.given(model.ids)), codes)


def same_items(index, model):
    """Whether the index keeps the items of the model."""
    if model.keeps is None:
        return index.snapshot.schema is None
    wanted = model.items(model.ids, model.codes(model.ids))
    found = index.items().select(wanted.column_names)
    return found.equals(wanted.cast(found.schema))
