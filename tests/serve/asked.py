"""What the tests of the service ask, and what the answers must be."""

import io
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from models import POOL, QUERIES, Model

from antisparse import Index

GOOD = {"vector": QUERIES[0].tolist()}


def filled(path: Path, keeps: str | None = "text", name: str = "signs") -> Model:
    """An index of two segments, some of whose codes are deleted."""
    model = Model(name, keeps=keeps)
    with model.create(path) as index:
        model.add(index, POOL[:100])
        model.add(index, POOL[100:])
        model.remove(index, [5, 120])
    return model


def npy(X: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


def arrow(X: np.ndarray, **options: object) -> bytes:
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])})
    return stream(table, **options)


def stream(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def same(answer: httpx.Response, distances: np.ndarray, ids: np.ndarray, index: Index) -> None:
    """An answer in JSON is this one of the library, to the last bit."""
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert said["generation"] == index.snapshot.manifest.generation
    for result, d, i in zip(said["results"], np.atleast_2d(distances), np.atleast_2d(ids), strict=True):
        assert result["ids"] == i[i >= 0].tolist() and result["distances"] == d[i >= 0].tolist()
        if index.snapshot.schema is not None and index.snapshot.schema.key_is_text:
            assert result["keys"] == index.items(i[i >= 0]).column("key").to_pylist()
