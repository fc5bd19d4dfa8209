"""Every public function and method, with arguments that no one should give: typed errors come out, or an answer.

The functions are found by themselves: one without a call here fails the first test.
"""

import dataclasses
import inspect
import pickle
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zoo
from letters import Letters

import antisparse as a
from antisparse import codec as fields
from antisparse import datasets, evaluation, explore, paper, tuning
from antisparse.cluster import build
from antisparse.connect import mteb as for_mteb
from antisparse.connect import sentence_transformers as for_texts
from antisparse.connect.faiss import add_faiss, reduced_faiss, to_faiss
from antisparse.connect.sklearn import CodeNeighborsTransformer
from antisparse.errors import AntisparseError
from antisparse.index import commit, stage
from antisparse.serve import Limits, Tokens

MODULES = [
    "antisparse",
    "antisparse.cluster",
    "antisparse.codec",
    "antisparse.connect.faiss",
    "antisparse.connect.mteb",
    "antisparse.connect.sentence_transformers",
    "antisparse.connect.sklearn",
    "antisparse.datasets",
    "antisparse.encoders",
    "antisparse.evaluation",
    "antisparse.explore",
    "antisparse.index",
    "antisparse.learning",
    "antisparse.paper",
    "antisparse.serve",
    "antisparse.spread",
    "antisparse.tuning",
]

# Called by the library itself, with what it has checked or made: results, and the steps between vectors and codes.
RESULTS = ("Breakpoint", "Claim", "Learned", "Measure", "Piece", "Recall", "Setting", "Settings", "SpreadPath")
INNER = {
    *(f"Explorer.{name}" for name in ("codes", "column", "exact", "items", "prepared", "rebuilt", "recall")),
    *("Originals", "Originals.ids_in", "Originals.of_ids", "Originals.nearest"),
    *("Built", "RayEngine", "ShardedIndex", "create_app", "serve"),  # tests/cluster, tests/serve
    *(f"ShardedIndex.{name}" for name in ("codes", "embed", "items", "range_search", "reconstruct", "search")),
    *(*RESULTS, "SpreadResult", "Study", "Tuning", "Index", "RowLayout"),
    *(f"Codec.{name}" for name in ("encode_reduced", "residuals", "bias_values", "vectors", "queries", "check_codes")),
    *(f"Piece.{name}" for name in ("h_at", "t_at", "residual_at", "x_at")),
    *(f"Encoder.{name}" for name in ("fit", "transform", "inverse_transform")),  # here of what derives from it
    *("Claim.missing", "Setting.symbols", "reproduce"),
}
FIELDS = {name for name in import_module("antisparse.codec").__all__ if name[0].isupper() and name != "Codec"}
ERRORS = {name for name in dir(a.errors) if isinstance(getattr(a.errors, name), type)}

X = zoo.vectors(30, 1)
A = a.tight_frame(10, 24, 0)
ROWS = zoo.codec("lsh").encode(X)
NAMES = np.arange(30)


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    raw[:] = array
    return raw


def mapped(array: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        file.write(array.tobytes())
        file.flush()
        return np.memmap(file, array.dtype, "r", 0, array.shape)


def with_entry(value: float) -> np.ndarray:
    array = X.copy()
    array[3, 2] = value
    return array


class Words:
    """An object that knows nothing."""


STRUCTURED = np.zeros((30, 10), [("a", "f4"), ("b", "i8")])

# Made anew for every call, since some are used up.
VALUES: dict[str, Callable[[], Any]] = {
    **{
        repr(value): (lambda value=value: value)
        for value in (None, True, False, 0, -1, 1, 2, 7, 3.5, -0.5, 1e308, 1e-320)
    },
    **{
        repr(value): (lambda value=value: value)
        for value in (2**31, 2**63, 2**64, -(2**70), 1 + 2j, "", "x", "l2", "\0", "all")
    },
    "10**400": lambda: 10**400,
    "-10**5000": lambda: -(10**5000),
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "surrogate": lambda: "\ud800",
    "long text": lambda: "x" * 5000,
    "bytes": lambda: b"x",
    "path": lambda: Path("x.npy"),
    "object": object,
    "words": Words,
    "type": lambda: int,
    "function": lambda: lambda *_: None,
    "Ellipsis": lambda: Ellipsis,
    "numpy bool": lambda: np.True_,
    "numpy int": lambda: np.int64(3),
    "numpy float": lambda: np.float32(0.5),
    "numpy string": lambda: np.str_("l2"),
    "date": lambda: np.datetime64("2020-01-01"),
    "[]": list,
    "[[]]": lambda: [[]],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "nested": lambda: [[[[1]]]],
    "list of None": lambda: [None, None],
    "list of text": lambda: ["a", "b"],
    "list of huge": lambda: [10**400, 1],
    "list of masked": lambda: [np.ma.array([1.0, 2.0], mask=[0, 1])],
    "{}": dict,
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "iterator": lambda: iter([X]),
    "empty iterator": lambda: iter([]),
    "iterator of words": lambda: iter(["x", None]),
    "generator": lambda: np.random.default_rng(0),
    "random state": lambda: np.random.RandomState(0),
    "masked": lambda: np.ma.array(X, mask=X > 3),
    "masked ids": lambda: np.ma.array(NAMES, mask=NAMES > 3),
    "masked constant": lambda: np.ma.masked,
    "0-d": lambda: np.array(3.0),
    "0-d int": lambda: np.array(3),
    "0-d object": lambda: np.array(None),
    "no entries": lambda: np.zeros(0),
    "no rows": lambda: np.zeros((0, 10)),
    "no columns": lambda: np.zeros((30, 0)),
    "no rows of codes": lambda: np.zeros((0, 3), np.uint8),
    "three dimensions": lambda: np.zeros((3, 10, 10)),
    "many dimensions": lambda: np.zeros((1,) * 30),
    "one vector": lambda: X[0],
    "other dimensions": lambda: X[:, :7],
    "other rows": lambda: X[:4],
    "one row": lambda: X[:1],
    "with nan": lambda: with_entry(np.nan),
    "with inf": lambda: with_entry(-np.inf),
    "large": lambda: X * 1e200,
    "too large for squares": lambda: X * 1e154,
    "small": lambda: X * 1e-310,
    "zeros": lambda: np.zeros((30, 10)),
    "equal": lambda: np.ones((30, 10)),
    "complex": lambda: X.astype(complex),
    "bool": lambda: X > 2,
    "bool row": lambda: NAMES > 3,
    "float16": lambda: X.astype(np.float16),
    "float32": lambda: X.astype(np.float32),
    "longdouble": lambda: X.astype(np.longdouble),
    "big endian": lambda: X.astype(">f8"),
    "int8": lambda: X.astype(np.int8),
    "uint64": lambda: np.full((30, 10), 2**64 - 1, np.uint64),
    "dates": lambda: np.zeros((30, 10), "M8[s]"),
    "durations": lambda: np.arange(30).astype("m8[s]"),
    "structured": STRUCTURED.copy,
    "text array": lambda: np.full((30, 10), "x"),
    "object array": lambda: X.astype(object),
    "array of None": lambda: np.full((30, 10), None),
    "read-only": lambda: read_only(X),
    "mapped": lambda: mapped(X),
    "Fortran": lambda: np.asfortranarray(X),
    "misaligned": lambda: misaligned(X),
    "strided": lambda: np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda: X[::-1, ::-1],
    "broadcast": lambda: np.broadcast_to(X[0], (30, 10)),
    "matrix": lambda: np.asmatrix(X),
    "codes": ROWS.copy,
    "codes, Fortran": lambda: np.asfortranarray(ROWS),
    "codes, strided": lambda: np.repeat(ROWS, 2, 1)[:, ::2],
    "codes, all ones": lambda: np.full((30, 3), 255, np.uint8),
    "codes, too long": lambda: np.zeros((30, 4), np.uint8),
    "codes, masked": lambda: np.ma.array(ROWS, mask=ROWS > 3),
    "ids": NAMES.copy,
    "ids, twice": lambda: np.zeros(30, int),
    "ids, negative": lambda: -NAMES,
    "ids, too large": lambda: np.full(30, 2**63 - 1),
    "ids, unsigned": lambda: np.full(30, 2**64 - 1, np.uint64),
    "ids, floats": lambda: NAMES.astype(float),
    "frame": A.copy,
    "frame, masked": lambda: np.ma.array(A, mask=A > 0.3),
    "frame of no rank": lambda: np.zeros((10, 24)),
    "block frame": lambda: a.block_frame(10, 24, 5, 0),
    "codec": lambda: zoo.codec("lsh"),
    "unfitted": lambda: a.LSHEncoder(8),
    "dataset": lambda: datasets.synthetic(20, 4, 3, 3),
    "keys": lambda: ["key 3", "key 4"],
    "keys and others": lambda: ["key 3", 4, None],
    "table": lambda: items(0, 30),
    "dict of columns": lambda: {"key": ["a"], "text": [3.5], "year": [None]},
    "dict of what is no column": lambda: {"key": 3, "text": Words(), 3: 3},
    "schema": lambda: SCHEMA,
    "expression": lambda: "year >= 3 and text = 'x'",
}


_BASE = {"metric": "l2", "n_threads": 1}
_SEED = {"random_state": 0}
_FAST = {"n_bytes": 2, "effort": 1, "train": 25, "verbose": False, **_SEED, **_BASE}
_SEARCH = {
    "method": "reconstruction",
    "query": "projection",
    "shortlist": 5,
    "shortlist_method": "hamming",
    "n_threads": 1,
}
_SPREAD = {"relative": True, "dtype": np.float64, "n_threads": 1, "max_steps": 1000}
_LEARN = {"random_state": 0, "n_threads": 1, "progress": False}
_FOUND = np.arange(12).reshape(6, 2)
_CODEC, _SCALED, _NIBBLE = (zoo.codec(name) for name in ("lsh", "signs cells scale", "codebooks cells nibble"))


@cache
def tuned() -> tuning.Tuning:
    return a.tune(zoo.TRAIN[:100], n_bytes=1, random_state=0)


def index() -> a.Index:
    found = a.Index.create(None, zoo.codec("lsh"))
    found.add(X)
    return found


SCHEMA = pa.schema([("key", pa.string()), ("text", pa.string()), ("year", pa.int64())])


def items(start: int, end: int) -> pa.Table:
    rows = range(start, end)
    return pa.table({"key": [f"key {i}" for i in rows], "text": ["x"] * len(rows), "year": list(rows)}, SCHEMA)


def table() -> pa.Table:
    return items(30, 60).append_column("v", pa.array(list(X)))


@cache
def lake() -> str:
    """A file of a table."""
    place = Path(tempfile.mkdtemp()) / "x.parquet"
    pq.write_table(table(), place, row_group_size=7)
    return str(place)


def token_file() -> str:
    Path("tokens").write_text("read a-token-of-the-test")
    return "tokens"


def keyed() -> a.Index:
    found = a.Index.create(None, zoo.codec("lsh"), items=SCHEMA, key="key")
    found.add(X, items=items(0, 30))
    return found


WORDS = [f"text {i}" for i in range(60)]


@cache
def worded() -> a.Index:
    return a.Index.build(WORDS, 2, model=Letters(), symbols="signs", effort=1, random_state=0)


def fitted(encoder: Any) -> Callable[..., Any]:
    """The encoder's constructor, whose arguments `fit` checks."""
    return lambda **parameters: encoder(**parameters).fit(X)


def explored() -> a.Index:
    found = a.Index.create(None, zoo.codec("signs"))
    found.add(X)
    return found


def originals() -> explore.Originals:
    return explore.Originals.of(explored(), X)


def written() -> str:
    datasets.write_vectors("there.npy", X)
    return "there.npy"


def written_set() -> str:
    datasets.write_dataset("there.h5", datasets.synthetic(20, 4, 3, 3))
    return "there.h5"


def saved() -> str:
    _CODEC.save("codec.safetensors")
    return "codec.safetensors"


def stored() -> str:
    if not Path("index").exists():
        index().save("index")
    return "index"


def writable() -> str:
    """The folder of an index that no other call has."""
    place = str(Path(tempfile.mkdtemp(dir=".")) / "index")
    a.Index.create(place, zoo.codec("lsh")).close()
    return place


@cache
def learned() -> a.LearnedEncoder:
    return a.LearnedEncoder(2, effort=1, random_state=0).fit(X)


@cache
def neighbored() -> CodeNeighborsTransformer:
    return CodeNeighborsTransformer(n_bytes=2, effort=1, random_state=0).fit(X)


def _field(field: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The constructor of a field of a codec, and what this one was made from."""
    return type(field), {part.name: getattr(field, part.name) for part in dataclasses.fields(field)}


# What is called, with arguments that are sound; each of them is replaced in turn.
CALLS: dict[str, Callable[[], tuple[Callable[..., Any], dict[str, Any]]]] = {
    "AntiSparseEncoder": lambda: (
        fitted(a.AntiSparseEncoder),
        {"n_bits": 12, "frame": "tight", "h": 0.1, "relative_h": True, "effort": 1, "center": True, "pca": 8}
        | _SEED
        | _BASE,
    ),
    "AntiSparseEncoder.paper": lambda: (
        lambda **p: a.AntiSparseEncoder.paper(**p).fit(X),
        {"n_bits": 12, "pca": 8, **_SEED, **_BASE},
    ),
    "AntiSparseEncoder.transform_real": lambda: (
        a.AntiSparseEncoder(12, random_state=0).fit(X).transform_real,
        {"X": X},
    ),
    "LSHEncoder": lambda: (
        fitted(a.LSHEncoder),
        {"n_bits": 12, "frame": "tight", "center": True, "pca": 8, **_SEED, **_BASE},
    ),
    "LSHEncoder.fit": lambda: (a.LSHEncoder(12).fit, {"X": X, "y": None}),
    "ITQEncoder": lambda: (fitted(a.ITQEncoder), {"n_bits": 8, "n_iter": 2, **_SEED, **_BASE}),
    "SpectralHashEncoder": lambda: (fitted(a.SpectralHashEncoder), {"n_bits": 8, **_BASE}),
    "LearnedEncoder": lambda: (fitted(a.LearnedEncoder), {"symbols": "signs", "cells": 1, **_FAST}),
    "LearnedEncoder split": lambda: (fitted(a.LearnedEncoder), {"split": a.Split("signs"), **_FAST}),
    "LearnedEncoder.fit": lambda: (a.LearnedEncoder(2, effort=1).fit, {"X": X}),
    "LearnedEncoder.transform": lambda: (learned().transform, {"X": X}),
    "LearnedEncoder.inverse_transform": lambda: (learned().inverse_transform, {"codes": learned().transform(X)}),
    "CodeBase": lambda: (a.CodeBase, {"codec": _CODEC, "codes": ROWS, "metric": "l2", "n_threads": 1}),
    "CodeBase.search": lambda: (a.CodeBase(_CODEC, ROWS).search, {"Q": X, "k": 3, **_SEARCH}),
    "Codec": lambda: (
        a.Codec,
        {"metric_name": "l2", "reduction": _CODEC.reduction, "symbols": _CODEC.symbols, "scale": _CODEC.scale}
        | {"cells": None, "bias": None},
    ),
    "Codec.encode": lambda: (
        _CODEC.encode,
        {"X": X, "out": np.zeros_like(ROWS), "progress": False, "n_threads": 1, "first_row": 0},
    ),
    "Codec.decode": lambda: (_CODEC.decode, {"codes": ROWS, "n_threads": 1}),
    "Codec.from_bytes": lambda: (a.Codec.from_bytes, {"data": _CODEC.to_bytes()}),
    "Codec.save": lambda: (_CODEC.save, {"path": "codec"}),
    "Codec.load": lambda: (a.Codec.load, {"path": saved()}),
    "codec_of": lambda: (fields.codec_of, {"value": _CODEC, "metric": "l2"}),
    "BiasByte": lambda: _field(_SCALED.bias),
    "BiasNibble": lambda: _field(_NIBBLE.bias),
    "Cells": lambda: _field(_SCALED.cells),
    "Blocks": lambda: _field(zoo.codec("codebooks blocks").symbols),
    "Codebooks": lambda: _field(_NIBBLE.symbols),
    "FixedLength": lambda: _field(_CODEC.scale),
    "LearnedSigns": lambda: _field(_SCALED.symbols),
    "Levels": lambda: _field(zoo.codec("levels").symbols),
    "ProjectedSigns": lambda: _field(_CODEC.symbols),
    "Reduction": lambda: _field(zoo.codec("lsh reduced").reduction),
    "ScaleByte": lambda: _field(_SCALED.scale),
    "SpectralSigns": lambda: _field(zoo.codec("spectral").symbols),
    "SpreadSigns": lambda: _field(zoo.codec("spread").symbols),
    "Index.build": lambda: (
        a.Index.build,
        {"X": X, "n_bytes": 2, "path": None, "ids": NAMES, "cells": "auto", "symbols": "signs", "effort": 1}
        | {"train": 30, "learn": None, "progress": False, **_SEED, **_BASE},
    ),
    "Index.build table": lambda: (
        a.Index.build,
        {"X": table(), "n_bytes": 2, "vector": "v", "key": "key", "columns": ["text"], "ids": None, "learn": None}
        | {"symbols": "signs", "effort": 1, **_SEED, **_BASE},
    ),
    "Index.build texts": lambda: (
        a.Index.build,
        {"X": WORDS, "n_bytes": 2, "model": Letters(), "columns": None, "symbols": "signs", "effort": 1, **_SEED},
    ),
    "Index.build text": lambda: (
        a.Index.build,
        {"X": table(), "n_bytes": 2, "text": "key", "model": Letters(), "vector": None, "symbols": "signs", "effort": 1}
        | _SEED,
    ),
    "Index.create": lambda: (
        a.Index.create,
        {"path": None, "codec": _CODEC, "metric": "l2", "items": SCHEMA, "key": "key", "n_threads": 1}
        | {"text": "text", "model": Letters()},
    ),
    "Index.open": lambda: (
        a.Index.open,
        {"path": stored(), "read_only": True, "verify": False, "model": Letters(), "n_threads": 1}
        | {"cache": None, "cache_bytes": None},
    ),
    "build": lambda: (
        build,
        {"source": lake(), "path": str(Path(tempfile.mkdtemp(dir=".")) / "index"), "n_bytes": 2, "codec": None}
        | {
            "metric": "l2",
            "vector": "v",
            "key": "key",
            "columns": ["text"],
            "cells": 1,
            "symbols": "signs",
            "effort": 1,
        }
        | {"dimensions": None, "train": 20, "unit_rows": 10, "engine": map, "progress": False, **_SEED, "n_threads": 1},
    ),
    "build codec": lambda: (
        build,
        {"source": lake(), "path": str(Path(tempfile.mkdtemp(dir=".")) / "index"), "codec": _CODEC, "engine": map},
    ),
    "Limits": lambda: (Limits, dataclasses.asdict(Limits())),
    "Tokens": lambda: (Tokens, {"read": ("a token of the test",), "write": ()}),
    "Tokens.load": lambda: (Tokens.load, {"path": token_file()}),
    "Tokens.allow": lambda: (Tokens(("a-token-of-the-test",)).allow, {"header": "Bearer x", "right": "read"}),
    "stage": lambda: (stage, {"path": writable(), "X": X, "ids": NAMES, "items": None, "vector": None, "n_threads": 1}),
    "stage model": lambda: (stage, {"path": writable(), "X": X, "ids": NAMES, "model": None}),
    "commit": lambda: (commit, {"path": (place := writable()), "entries": [stage(place, X, NAMES)], "keep": 1e6}),
    "Index.embed": lambda: (worded().embed, {"texts": ["a", "b"]}),
    "Index.search texts": lambda: (worded().search, {"Q": ["a", "b"], "k": 3, "items": True}),
    "Index.range_search texts": lambda: (worded().range_search, {"Q": "a", "radius": 0.5}),
    "Index.add texts": lambda: (pickle.loads(pickle.dumps(worded())).add, {"X": ["a", "b"], "ids": [100, 101]}),
    "Index.update texts": lambda: (pickle.loads(pickle.dumps(worded())).update, {"X": ["a", "b"], "ids": [1, 2]}),
    "Index.save": lambda: (index().save, {"path": "saved"}),
    "Index.add": lambda: (index().add, {"X": X, "ids": NAMES + 100}),
    "Index.add_codes": lambda: (index().add_codes, {"codes": ROWS, "ids": NAMES + 100}),
    "Index.add items": lambda: (keyed().add, {"X": X, "items": items(30, 60)}),
    "Index.add table": lambda: (keyed().add, {"X": table(), "vector": "v", "progress": False}),
    "Index.add_codes items": lambda: (keyed().add_codes, {"codes": ROWS, "items": items(30, 60)}),
    "Index.update items": lambda: (keyed().update, {"X": X, "items": items(0, 30)}),
    "Index.update keys": lambda: (keyed().update, {"X": X[:2], "ids": ["key 1", "key 2"]}),
    "Index.remove keys": lambda: (keyed().remove, {"ids": ["key 1", "key 2"]}),
    "Index.items": lambda: (keyed().items, {"keys": ["key 1", "key 2"]}),
    "Index.search items": lambda: (keyed().search, {"Q": X, "k": 3, "filter": ["key 1"], "items": True}),
    "Index.remove": lambda: (index().remove, {"ids": NAMES[:3]}),
    "Index.update": lambda: (index().update, {"X": X, "ids": NAMES}),
    "Index.codes": lambda: (index().codes, {"ids": NAMES}),
    "Index.reconstruct": lambda: (index().reconstruct, {"ids": NAMES}),
    "Index.search": lambda: (
        index().search,
        {"Q": X, "k": 3, "probes": "all", "filter": None, "rerank": None, **_SEARCH},
    ),
    "Index.search rerank": lambda: (index().search, {"Q": X, "k": 3, "shortlist": 5, "filter": NAMES, "rerank": X}),
    "Index.range_search": lambda: (
        index().range_search,
        {"Q": X, "radius": 2.0, "method": "hamming", "query": "projection", "probes": "all", "filter": NAMES}
        | {"n_threads": 1},
    ),
    "add_faiss": lambda: (add_faiss, {"index": index(), "binary": None}),
    "to_faiss": lambda: (to_faiss, {"index": index()}),
    "reduced_faiss": lambda: (reduced_faiss, {"codec": _CODEC, "inner": None}),
    "CodeNeighborsTransformer": lambda: (
        fitted(CodeNeighborsTransformer),
        {"mode": "distance", "n_neighbors": 3, "n_bytes": 2, "metric": "cosine", "effort": 1, "n_threads": 1, **_SEED},
    ),
    "CodeNeighborsTransformer.fit": lambda: (
        CodeNeighborsTransformer(n_bytes=2, effort=1, random_state=0).fit,
        {"X": X, "y": None},
    ),
    "CodeNeighborsTransformer.transform": lambda: (neighbored().transform, {"X": X}),
    "CodeNeighborsTransformer.kneighbors": lambda: (
        neighbored().kneighbors,
        {"X": X, "n_neighbors": 3, "return_distance": True},
    ),
    "CodeNeighborsTransformer.kneighbors_graph": lambda: (
        neighbored().kneighbors_graph,
        {"X": X, "n_neighbors": 3, "mode": "distance"},
    ),
    "BlockFrame": lambda: (a.BlockFrame, {"blocks": [A], "rotation": None}),
    "block_frame": lambda: (a.block_frame, {"d": 10, "m": 24, "block_size": 5, "seed": 0}),
    "gaussian_frame": lambda: (a.gaussian_frame, {"d": 10, "m": 24, "seed": 0}),
    "tight_frame": lambda: (a.tight_frame, {"d": 10, "m": 24, "seed": 0}),
    "pack": lambda: (a.pack, {"signs": X}),
    "unpack": lambda: (a.unpack, {"codes": ROWS, "n_bits": 24}),
    "hamming": lambda: (a.hamming, {"codes": ROWS, "others": ROWS}),
    "hamming_search": lambda: (a.hamming_search, {"codes": ROWS, "queries": ROWS, "k": 2, "n_threads": 1}),
    "to_lsb_first": lambda: (a.to_lsb_first, {"codes": ROWS}),
    "from_lsb_first": lambda: (a.from_lsb_first, {"codes": ROWS}),
    "anneal": lambda: (a.anneal, {"Y": X, "A": A, "sweeps": 2, "flips": 2, "tenure": 2, "n_threads": 1}),
    "refine": lambda: (
        a.refine,
        {"Y": X, "A": A, "codes": ROWS, "flips": 2, "tenure": 2, "objective": "cosine", "n_threads": 1},
    ),
    "spread": lambda: (a.spread, {"Y": X, "A": A, "h": 0.1, **_SPREAD}),
    "spread_bits": lambda: (a.spread_bits, {"Y": X, "A": A, "h": 0.1, **_SPREAD}),
    "spread_path": lambda: (a.spread_path, {"y": X[0], "A": A, "h": 0.1, "max_steps": 1000}),
    "SpreadSolver": lambda: (a.SpreadSolver, {"A": A}),
    "SpreadSolver.spread": lambda: (a.SpreadSolver(A).spread, {"Y": X, "h": 0.1, **_SPREAD}),
    "SpreadSolver.bits": lambda: (a.SpreadSolver(A).bits, {"Y": X, "h": 0.1, **_SPREAD}),
    "SpreadPath.at": lambda: (a.spread_path(X[0], A, 0.1).at, {"h": 1.0}),
    "SpreadPath.plot": lambda: (a.spread_path(X[0], A, 0.1).plot, {"ax": None}),
    "certificate": lambda: (a.certificate, {"Y": X, "A": A, "h": 0.1, "x": np.zeros((30, 24))}),
    "objective": lambda: (a.objective, {"Y": X, "A": A, "h": 0.1, "x": np.zeros((30, 24))}),
    "Split": lambda: (a.Split, {"symbols": "signs", "cells": 1, "scale": False, "bias": "byte"}),
    "Split.nibbles": lambda: (a.Split("signs").nibbles, {"n_bytes": 4}),
    "choose_split": lambda: (
        a.choose_split,
        {"n_bytes": 4, "n_train": 100, "dimension": 10, "metric": "l2", "symbols": "auto", "cells": None},
    ),
    "learn_codebooks": lambda: (a.learn_codebooks, {"X": X, "count": 2, "means": 1, "rounds": 2, **_LEARN}),
    "learn_frame": lambda: (a.learn_frame, {"X": X, "n_bits": 8, "means": 1, "scale": False, "rounds": 2, **_LEARN}),
    "tune": lambda: (
        a.tune,
        {"X": zoo.TRAIN[:100], "queries": X[:2], "n_bytes": 1, "recall": None, "measure": "1@10", "progress": False}
        | _SEED
        | _BASE,
    ),
    "Setting.encoder": lambda: (lambda n_threads: tuned().best.encoder(n_threads).fit(X), {"n_threads": 1}),
    "Setting.python": lambda: (tuned().best.python, {"n_indexed": 100}),
    "Setting.command": lambda: (tuned().best.command, {"n_indexed": 100, "data": ["x"]}),
    "Tuning.report": lambda: (tuned().report, {"data": ["x"], "n_indexed": 100}),
    "Tuning.to_dict": lambda: (tuned().to_dict, {"data": ["x"], "n_indexed": 100}),
    "Tuning.plot": lambda: (tuned().plot, {"path": "x.svg"}),
    "picture_path": lambda: (tuning.picture_path, {"path": "x.png"}),
    "Dataset": lambda: (
        datasets.Dataset,
        {"base": X, "learn": X, "query": X, "neighbors": np.zeros((30, 2), int), "name": "x"},
    ),
    "read_vectors": lambda: (datasets.read_vectors, {"path": written(), "format": "npy", "column": None}),
    "write_vectors": lambda: (datasets.write_vectors, {"path": "new.npy", "X": X, "format": "npy", "column": None}),
    "read_dataset": lambda: (datasets.read_dataset, {"path": written_set()}),
    "write_dataset": lambda: (
        datasets.write_dataset,
        {"path": "new.h5", "dataset": datasets.synthetic(20, 4, 3, 3), "distances": None},
    ),
    "fetch": lambda: (
        datasets.fetch,  # it is there: nothing is asked for
        {"url": "http://localhost:1/x", "path": written(), "sha256": "0" * 64, "size": 3, "progress": False},
    ),
    "load": lambda: (datasets.load, {"name": "synthetic", "n": 20, "d": 4, "queries": 2, "learn": 2, **_SEED}),
    "synthetic": lambda: (datasets.synthetic, {"n": 20, "d": 4, "queries": 2, "learn": 2, **_SEED}),
    "sentences": lambda: (datasets.sentences, {"dimensions": 2}),
    "sift1m": lambda: (datasets.sift1m, {"progress": False}),
    "siftsmall": lambda: (datasets.siftsmall, {"progress": False}),
    "exact_neighbors": lambda: (
        evaluation.exact_neighbors,
        {"base": X, "Q": X, "k": 3, "metric": "l2", "progress": False},
    ),
    "nearest_rank": lambda: (evaluation.nearest_rank, {"ids": _FOUND, "nearest": _FOUND}),
    "recall_at": lambda: (evaluation.recall_at, {"ids": _FOUND, "nearest": _FOUND, "R": 1}),
    "intersection_recall": lambda: (evaluation.intersection_recall, {"ids": _FOUND, "neighbors": _FOUND, "k": 2}),
    "Measure.parse": lambda: (evaluation.Measure.parse, {"name": "1@10"}),
    "Measure.parts": lambda: (evaluation.Measure(1, 2).parts, {"ids": _FOUND, "neighbors": _FOUND}),
    "Explorer": lambda: (
        explore.Explorer,
        {"index": explored(), "originals": originals(), "others": [], "text": None},
    ),
    "Originals.of": lambda: (explore.Originals.of, {"index": explored(), "vectors": X}),
    "other_sizes": lambda: (
        explore.other_sizes,
        {
            "index": explored(),
            "originals": originals(),
            "n_bytes": [2],
            "progress": False,
            **_SEED,
        },
    ),
    "write_page": lambda: (
        explore.write_page,
        {"path": "page.html", "explorer": explore.Explorer(explored()), "ids": [1, 2], "name": "x"},
    ),
    "check_names": lambda: (paper.check_names, {"only": ("path",)}),
    "quantize_embeddings": lambda: (
        for_texts.quantize_embeddings,
        {"embeddings": X, "n_bytes": 2, "codec": None, "calibration_embeddings": None} | _BASE | _SEED,
    ),
    "semantic_search_antisparse": lambda: (
        for_texts.semantic_search_antisparse,
        {"query_embeddings": X, "corpus_embeddings": ROWS, "corpus_index": None, "top_k": 3, "codec": _CODEC}
        | {"output_index": True, "n_threads": 1},
    ),
    "SearchIndex": lambda: (
        for_texts.SearchIndex,
        {"model": Letters(), "texts": WORDS, "n_bytes": 2, "symbols": "signs", "effort": 1, **_SEED},
    ),
    "SearchIndex.open": lambda: (for_texts.SearchIndex.open, {"path": stored(), "model": Letters(), "read_only": True}),
    "SearchIndex.search": lambda: (found_texts().search, {"queries": ["a", "b"], "top_k": 3, "filter": None}),
    "AntisparseSearchIndex": lambda: (
        for_mteb.AntisparseSearchIndex,
        {"model": None, "n_bytes": 2, "metric": "l2", "codec": None, "random_state": 0, "n_threads": 1},
    ),
    "AntisparseSearchIndex.add_documents": lambda: (scored().add_documents, {"embeddings": X, "idxs": WORDS[30:]}),
    "AntisparseSearchIndex.search": lambda: (
        scored().search,
        {"embeddings": X, "top_k": 3, "similarity_fn": None, "top_ranked": None, "query_idx_to_id": None},
    ),
    "AntisparseSearchIndex.search ranked": lambda: (
        scored().search,
        {"embeddings": X[:1], "top_k": 3, "top_ranked": {"q": WORDS[:5]}, "query_idx_to_id": {0: "q"}},
    ),
}


@cache
def found_texts() -> for_texts.SearchIndex:
    return for_texts.SearchIndex(Letters(), WORDS, 2, symbols="signs", effort=1, random_state=0)


def scored() -> for_mteb.AntisparseSearchIndex:
    found = for_mteb.AntisparseSearchIndex(codec=zoo.codec("signs"))
    found.add_documents(X, WORDS[:30])
    return found


def takes_arguments(function: Any) -> bool:
    return any(name not in ("self", "cls") for name in inspect.signature(function).parameters)


def public() -> Iterator[str]:
    """The names of all public functions, classes and methods that take arguments."""
    for module in map(import_module, MODULES):
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", [name for name in own if name[0] != "_"]):
            value = getattr(module, name)
            if not callable(value) or name in ERRORS:
                continue
            if not isinstance(value, type):
                yield from [name] if takes_arguments(value) else []
                continue
            yield from [name] if takes_arguments(value) else []
            bases = [base for base in value.__mro__[::-1] if base.__module__.startswith("antisparse.index")]
            inherited = {method: inner for base in bases for method, inner in vars(base).items()}
            for method, inner in (inherited | dict(vars(value))).items():
                if method[0] == "_" or name in FIELDS or not inspect.isroutine(getattr(value, method, None)):
                    continue
                if isinstance(inner, classmethod | staticmethod) or inspect.isfunction(inner):
                    yield from [f"{name}.{method}"] if takes_arguments(inspect.unwrap(getattr(value, method))) else []


def test_every_public_function_is_called_here() -> None:
    found = set(public())
    covered = {name.split()[0] for name in CALLS}
    assert found - covered - INNER == set(), "give it a call in CALLS"
    assert covered - found <= {f"{name}.{method}" for name in found for method in INHERITED}, "it is gone"
    assert INNER - found == set(), "it is gone"


INHERITED = ("fit", "transform", "inverse_transform")  # of `Encoder`


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """A call that takes longer hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def no_network(*_: object, **__: object) -> None:
    raise a.DownloadError("there is no network here")


# The caller's function fails by itself: int(ids) raises a TypeError that is none of ours.
OWN = {("rerank", "type"), ("engine", "type")}


@pytest.mark.parametrize("name", CALLS)
def test_only_typed_errors_come_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTISPARSE_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("antisparse.datasets.download._TRIES", 1)
    monkeypatch.setattr("antisparse.datasets.named.fetch", no_network)
    wrong = []
    for argument, (kind, value) in product(CALLS[name]()[1], VALUES.items()):
        if (argument, kind) in OWN:
            continue
        function, sound = CALLS[name]()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), limited(30):
                warnings.simplefilter("ignore")
                function(**sound | {argument: value()})
        except AntisparseError:
            pass
        except Exception as error:
            wrong.append(f"{argument} = {kind}: {type(error).__name__}: {str(error)[:150]}")
    assert not wrong, f"{len(wrong)} untyped errors:\n" + "\n".join(wrong)
