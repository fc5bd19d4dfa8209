"""Indexes that were written once, and must be read for ever.

golden/NAME is an index, golden/NAME.json what it holds and finds. Between them they have every class that a codec file
may hold, and every column of a segment. They are made by `write_golden`, by hand and once a version of the format:

    cd tests/index && python -c "import test_golden; test_golden.write_golden()"

format1 is an index of antisparse 0.1, which is not read, and says so.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from antisparse import (
    AntiSparseEncoder,
    Codec,
    FormatError,
    Index,
    InputError,
    ITQEncoder,
    LearnedEncoder,
    SpectralHashEncoder,
    Split,
    _core,
    block_frame,
)
from antisparse.codec import files as codec_files
from antisparse.codec.fields import CLASSES
from antisparse.index.manifest import read_manifest

HERE = Path(__file__).parent
GOLDEN, FORMAT1 = HERE / "golden", HERE / "format1"
GOLDEN_ITEMS = HERE / "golden_items"


def golden_encoders():
    """What each was made with. Made anew it need not be the same to the last bit: learning may change."""
    return {
        "codebooks": LearnedEncoder(3, split=Split("codebooks"), random_state=0),
        "codebooks_cells_nibble": LearnedEncoder(3, split=Split("codebooks", 3, bias="nibble"), random_state=0),
        "codebooks_cosine": LearnedEncoder(3, metric="cosine", split=Split("codebooks"), random_state=0),
        "codebooks_ip": LearnedEncoder(2, metric="ip", split=Split("codebooks", bias="none"), random_state=0),
        "codebooks_blocks": LearnedEncoder(4, split=Split("codebooks", blocks=2), random_state=0),
        "signs_nibble": LearnedEncoder(2, split=Split("signs", bias="nibble"), random_state=0),
        "signs_cells_scale": LearnedEncoder(4, split=Split("signs", 3, True), random_state=0),
        "signs_ip_cells_scale": LearnedEncoder(3, metric="ip", split=Split("signs", 3, True, "none"), random_state=0),
        "levels": LearnedEncoder(2, split=Split("levels", bias="nibble"), random_state=0),
        "spread": AntiSparseEncoder(8, random_state=0),
        "spread_block_cosine": AntiSparseEncoder(9, frame=block_frame(4, 9, 2, 0), effort=1, metric="cosine"),
        "itq": ITQEncoder(3, random_state=0),  # on three of the four axes
        "spectral": SpectralHashEncoder(7),
    }


NAMES = tuple(golden_encoders())


def golden_searches(codec):
    """Every way to search codes of a codec."""
    if codec.cells is not None:
        return [{}, {"probes": 1}, {"filter": [0, 5, 104]}]
    if not hasattr(codec.symbols, "frame"):
        return [{}, {"filter": [0, 5, 104]}] if codec.rebuilds else [{"method": "hamming"}]
    return [{}, {"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 8}]


def write_golden():
    """Make all of them."""
    X = np.random.default_rng(5).standard_normal((60, 4)).round(2)
    Q = np.random.default_rng(6).standard_normal((4, 4)).round(2)
    for name, encoder in golden_encoders().items():
        path = GOLDEN / name
        path.mkdir(parents=True)
        with Index.create(path, encoder.fit(X)) as index:
            index.add(X[:40])
            index.remove([2, 3, 17])
            index.add(X[40:], [*range(100, 118), 119, 2**40])  # whose offsets take 64 bits
            expected = {
                "isa": _core.isa(),
                "metric": index.metric,
                "digest": index.codec.digest,
                "ids": index.ids.tolist(),
                "codes": index.codes(index.ids).tobytes().hex(),
                "queries": Q.tolist(),
                "rebuilt": index.reconstruct([0, 119]).tolist() if index.codec.rebuilds else None,
                "searches": [],
            }
            for options in golden_searches(index.codec):
                distances, ids = index.search(Q, 4, **options)
                found = {"options": options, "distances": distances.tolist(), "ids": ids.tolist()}
                expected["searches"].append(found)
        (path / ".lock").unlink(missing_ok=True)
        text = json.dumps(expected).replace('], "', '],\n"').replace(', "', ',\n"')
        (GOLDEN / f"{name}.json").write_text(text + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_index_is_read_to_the_last_bit(name: str, isa: str) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    index = Index.open(GOLDEN / name, read_only=True, verify=True)
    assert index.metric == expected["metric"] and index.codec.digest == expected["digest"]
    assert index.ids.tolist() == expected["ids"]
    assert index.codes(index.ids).tobytes().hex() == expected["codes"]

    def same(found, wanted):
        """Exactly on the instruction set that wrote it: products of another round otherwise, in the last bit."""
        if isa == expected["isa"]:
            assert found.tolist() == wanted
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)

    if expected["rebuilt"] is not None:
        same(index.reconstruct([0, 119]), expected["rebuilt"])
    queries = np.array(expected["queries"])
    assert [found["options"] for found in expected["searches"]] == golden_searches(index.codec)
    for wanted in expected["searches"]:
        distances, ids = index.search(queries, 4, **wanted["options"])
        assert ids.tolist() == wanted["ids"]
        same(distances, wanted["distances"])


def test_the_golden_indexes_have_every_class_and_every_column() -> None:
    classes, columns = set(), set()

    def walk(value):
        if isinstance(value, dict):
            classes.update({value["class"]} if "class" in value else ())
            for part in value.values():
                walk(part)

    for name in NAMES:
        index = Index.open(GOLDEN / name, read_only=True)
        walk(json.loads(codec_files._content(index.codec)[0]))
        for segment in index.snapshot.segments:
            held = vars(segment.columns) | segment.ids.arrays
            columns |= {(key, str(array.dtype)) for key, array in held.items() if isinstance(array, np.ndarray)}
    assert classes == {*CLASSES, "Codec"}
    wanted = {("blocks", "uint8"), ("cell_ends", "int64"), ("scales", "float32"), ("scales", "uint8")}
    wanted |= {("id_firsts", "uint32"), ("id_firsts", "uint64")}
    wanted |= {(name, "uint32") for name in ("id_starts", "id_words", "cell_seeds", "cell_slots")}
    assert columns == wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_index_can_be_written_to(tmp_path, name: str) -> None:
    path = tmp_path / name
    shutil.copytree(GOLDEN / name, path)
    queries = np.array(json.loads((GOLDEN / f"{name}.json").read_text())["queries"])
    with Index.open(path) as index:
        assert index.add(queries)[0] == 2**40 + 1
        index.compact()
    with Index.open(path, verify=True) as index:
        assert len(index) == 61 and set(os.listdir(path)) - {".lock"} == {
            "manifest.json",
            *read_manifest(path).files(),
        }


def test_golden_indexes_are_small() -> None:
    files = [file for file in GOLDEN.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 12_000 * len(NAMES)
    assert {file.suffix for file in files} == {".json", ".safetensors"}


# Antisparse 0.1.


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_index_of_the_first_format_names_what_wrote_it(tmp_path) -> None:
    path = tmp_path / "index"
    shutil.copytree(FORMAT1, path)
    before = content(path)
    for options in ({}, {"read_only": True}, {"verify": True}):
        with pytest.raises(FormatError, match=r"manifest\.json.*antisparse 0\.1 .*build it again from the vectors"):
            Index.open(path, **options)
    with pytest.raises(InputError, match="is an index already"):
        Index.create(path, ITQEncoder(3).fit(np.eye(4)))
    assert content(path) == before  # no lock either


def test_an_encoder_of_the_first_format_names_what_wrote_it() -> None:
    (file,) = FORMAT1.glob("encoder-*")
    with pytest.raises(FormatError, match=r"encoder-.*antisparse 0\.1.*fit the encoder again"):
        Codec.load(file)


# What golden_items holds beside its codes: keys that are text, and a column of each kind of layout that Arrow has.
ITEMS = {
    "key": ["a", "b", "c", "d", "é"],
    "text": ["x", None, "", "日本", "long text"],
    "tags": [["p"], [], None, ["q", None], ["r"]],
    "pair": [[1, 2], [3, 4], None, [5, 6], [7, 8]],
    "day": [1, None, 3, 4, 5],
    "score": [0.5, None, 1.5, -2.0, 3.0],
    "flag": [True, None, False, True, False],
    "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 4, "b": None}, {"a": 5, "b": "z"}],
}


def write_golden_items():
    """Made by hand and once, as the others."""
    types = {"key": pa.string(), "text": pa.string(), "tags": pa.list_(pa.string()), "pair": pa.list_(pa.int16(), 2)}
    types |= {"day": pa.date32(), "score": pa.float64(), "flag": pa.bool_()}
    types |= {"struct": pa.struct([("a", pa.int64()), ("b", pa.string())])}
    schema = pa.schema(list(types.items()))
    X = np.random.default_rng(5).standard_normal((5, 4)).round(2)
    with Index.create(GOLDEN_ITEMS, ITQEncoder(3, random_state=0).fit(X), items=schema, key="key") as index:
        index.add(X[:4], items=pa.table({name: values[:4] for name, values in ITEMS.items()}, schema))
        index.remove(["b"])
        index.add(X[4:], items=pa.table({name: values[4:] for name, values in ITEMS.items()}, schema))
    (GOLDEN_ITEMS / ".lock").unlink(missing_ok=True)


def test_items_that_were_written_once_are_read(tmp_path) -> None:
    path = shutil.copytree(GOLDEN_ITEMS, tmp_path / "index")
    left = [0, 2, 3, 4]
    with Index.open(path, verify=True) as index:
        assert index.ids.tolist() == left and "b" not in index and "é" in index
        found = index.items(["a", "c", "d", "é"])
        for name, values in ITEMS.items():
            column = found.column(name).cast(pa.int32()) if name == "day" else found.column(name)
            assert column.to_pylist() == [values[i] for i in left], name
        index.compact()
        index.verify()
        assert index.items(["é", "a"])["text"].to_pylist() == ["long text", "x"]
