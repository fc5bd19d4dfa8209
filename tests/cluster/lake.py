"""Tables in many files, and what is compared of indexes that were made of them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from antisparse import Codec, Index, LearnedEncoder
from antisparse.index.staging import staging_of

DIMENSION = 16


def vectors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIMENSION)).astype(np.float32)


def write_lake(folder: Path, rows: int, files: int, row_group: int) -> np.ndarray:
    """Files of rows with a text key, an integer key, and a column more; returns the vectors."""
    folder.mkdir()
    X = vectors(rows)
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        columns = {
            "key": [f"key {i}" for i in part],
            "number": part * 3 + 1,
            "year": part % 50,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(X[part].reshape(-1)), DIMENSION),
        }
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet", row_group_size=row_group)
    return X


def codec(n_bytes: int = 8) -> Codec:
    encoder = LearnedEncoder(n_bytes, symbols="signs", effort=1, random_state=0)
    return encoder.fit(vectors(3000, 1)).codec_


def files_of(path: Path | str) -> dict[str, bytes]:
    """The files of codes and items, by the names that their content gave them."""
    place = staging_of(path)
    manifest = place.manifest()
    found = {}
    for entry in manifest.segments:
        for file in (entry.codes, entry.items):
            if file is not None:
                found[file.file.split("-")[1].split(".")[0]] = place.loader.path(file).read_bytes()
    return found


def assert_equal_indexes(path: Path | str, other: Path | str, Q: np.ndarray) -> None:
    """Equal file by file, and in every answer."""
    assert files_of(path) == files_of(other)
    with Index.open(path, read_only=True, verify=True) as one, Index.open(other, read_only=True) as two:
        assert one.codec == two.codec
        assert_equal_answers(one, two, Q)
        if one.snapshot.schema is not None:
            assert one.items().equals(two.items())
    left = {name for name in os.listdir(path) if name.startswith("staged-")} if isinstance(path, Path) else set()
    assert len(left) == (len(files_of(path)) if isinstance(path, Path) else 0)
    assert not staging_of(path).notes()


def assert_equal_answers(one: Any, two: Any, Q: np.ndarray) -> None:
    ways: list[dict[str, Any]] = [{}, {"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 50}]
    ways.append({"filter": np.arange(0, 10**6, 7)})
    for way in ways:
        for found, wanted in zip(one.search(Q, 10, **way), two.search(Q, 10, **way), strict=True):
            np.testing.assert_array_equal(found, wanted)
