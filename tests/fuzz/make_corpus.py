"""Writes the small files that mutations start from: python tests/fuzz/make_corpus.py (they are in the repository)."""

import shutil
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from readers import CORPUS, SCHEMA

from antisparse import Index, LearnedEncoder, LSHEncoder
from antisparse.datasets import Dataset, write_dataset, write_vectors
from antisparse.index.items import in_batches, packed

X = np.random.default_rng(0).integers(0, 100, (5, 3)).astype(np.float32)


def main() -> None:
    """Replace the corpus."""
    CORPUS.mkdir(exist_ok=True)
    for kind in ("fvecs", "bvecs", "ivecs", "fbin", "u8bin", "i8bin", "ibin", "npy", "parquet"):
        write_vectors(CORPUS / f"x.{kind}", X)
    np.save(CORPUS / "fortran.npy", np.asfortranarray(X))
    with open(CORPUS / "version2.npy", "wb") as file:
        np.lib.format.write_array(file, X.astype(">i2"), version=(2, 0))
    np.save(CORPUS / "ids.npy", np.arange(4))
    np.save(CORPUS / "mask.npy", np.arange(4) > 1)
    (CORPUS / "ids.txt").write_text("0\n17\n9223372036854775806\n")
    (CORPUS / "measure.txt").write_text("1@10")
    pq.write_table(pa.table({"id": range(5), "vector": [list(map(float, row)) for row in X]}), CORPUS / "lists.parquet")
    with h5py.File(CORPUS / "contiguous.h5", "w") as file:
        file["train"] = X
    with h5py.File(CORPUS / "chunked.h5", "w", libver=("v110", "v110")) as file:  # which all of our h5py read
        file.create_dataset("train", data=X, chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True)
    with h5py.File(CORPUS / "compact.h5", "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        kind, space = h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(X.shape)
        h5py.h5d.create(file.id, b"train", kind, space, properties).write(h5py.h5s.ALL, h5py.h5s.ALL, X)
    with h5py.File(CORPUS / "linked.h5", "w") as file:
        file["group/array"] = X
        file["train"] = h5py.SoftLink("/group/array")
        file["other"] = h5py.ExternalLink("contiguous.h5", "/train")
    write_dataset(CORPUS / "dataset.h5", Dataset(X, X, X[:2], np.zeros((2, 2), np.int32), "x"))
    LSHEncoder(8, random_state=0).fit(X).codec_.save(CORPUS / "signs.codec")
    LearnedEncoder(2, random_state=0).fit(np.repeat(X, 20, axis=0)).codec_.save(CORPUS / "codebooks.codec")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        with Index.create(place, LSHEncoder(8, random_state=0).fit(X)) as index:
            index.add(X)
            index.remove([1])
        shutil.copy(place / "manifest.json", CORPUS / "manifest.json")
    write_items()


def write_items() -> None:
    """The items of a segment, and their schema."""
    columns = {"key": list("abcde"), "text": ["x", None, "é", "", "long text"], "n": [1, None, 3, 4, 5]}
    columns |= {"tags": [["a"], [], None, ["b", None], ["c"]], "b": [True, None, False, True, True]}
    _, table = SCHEMA.split(pa.table(columns), "items")
    (CORPUS / "items.arrow").write_bytes(b"".join(packed(SCHEMA, in_batches(SCHEMA, table))))
    (CORPUS / "schema.base64").write_text(SCHEMA.entry.schema)


if __name__ == "__main__":
    main()
