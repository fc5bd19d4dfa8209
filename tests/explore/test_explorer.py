"""What the explorer shows is what the library finds, and what NumPy says is true."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
import zoo
from explored_texts import HOSTILE, KEYS, SIZES, TEXTS, VECTORS, are_nearest, built
from letters import Letters

from antisparse import Index, InputError, InputTypeError
from antisparse.evaluation import intersection_recall, recall_at
from antisparse.explore import Explorer, Originals, other_sizes, write_page
from antisparse.explore.answers import measured
from antisparse.explore.code_parts import code_parts
from antisparse.explore.explorer import METHODS, Asked
from antisparse.explore.labels import labels, matching, text_column
from antisparse.explore.page import page
from antisparse.explore.written import data, drawn_items

X = zoo.vectors(60, 1)
IDS = np.arange(0, 60, 7)


def without(ids: np.ndarray, own: int | None, k: int) -> list[int]:
    return [int(i) for i in ids if i != own and i >= 0][:k]


@pytest.mark.parametrize("name", zoo.NAMES)
def test_columns_are_the_answers_of_the_library_without_the_item_that_asks(name: str) -> None:
    index = Index.create(None, zoo.codec(name))
    index.add(X)
    explorer = Explorer(index, Originals.of(index, X))
    asked = explorer.items(IDS)
    for method in METHODS:
        column = explorer.column(0, method, asked, 5)
        if method not in zoo.methods(name):
            assert column.ids is None and "does not exist" in column.why
            continue
        for row, own in enumerate(IDS):
            distances, ids = index.search(X[own], 6, method=method)
            wanted = without(ids, own, 5)
            assert column.ids[row].tolist() == wanted
            assert column.distances[row].tolist() == [distances[ids.tolist().index(i)] for i in wanted]
    for q in (X[3] + 0.01, X[4]):  # a vector is no item: nothing is left out
        column = explorer.column(0, zoo.methods(name)[0], Asked(q[None]), 5)
        assert column.ids[0].tolist() == index.search(q, 5, method=zoo.methods(name)[0])[1].tolist()


@pytest.mark.parametrize("name", zoo.NAMES)
def test_the_parts_of_a_code_are_all_of_its_bits_but_the_padding(name: str) -> None:
    codec = zoo.codec(name)
    covered = np.zeros(8 * codec.n_bytes, int)
    for part in code_parts(codec):
        covered[part.first : part.first + part.bits * part.count] += 1
    assert covered.max() == 1
    free = np.flatnonzero(covered == 0)
    padding = [8 * (codec.layout.symbol_bytes - 1) + bit for bit in range(8) if codec.layout.padding >> (7 - bit) & 1]
    assert free.tolist() == padding


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_what_is_exact_is_what_numpy_says(metric: str) -> None:
    index = built(metric=metric)
    explorer = Explorer(index, Originals.of(index, VECTORS))
    ids = np.arange(0, len(TEXTS), 9)
    column = explorer.exact(explorer.items(ids), 10)
    assert all(are_nearest(found, VECTORS[i], i, metric) for found, i in zip(column.ids.tolist(), ids, strict=True))
    q = Letters().encode(["mapping a river"])
    assert are_nearest(explorer.exact(Asked(q), 10).ids[0].tolist(), q[0], None, metric)


def test_what_was_removed_is_not_found_and_what_has_no_original_is_rebuilt() -> None:
    index = Index.create(None, zoo.codec("signs"))
    index.add(X)
    originals = Originals.of(index, X)
    index.remove([1, 30])
    index.add(X[:2] + 0.1, [70, 71])
    explorer = Explorer(index, originals)
    exact = explorer.exact(explorer.items(np.array([5])), 50).ids[0]
    assert not {1, 5, 30, 70, 71} & set(exact.tolist()) and (exact >= 0).sum() == 50
    order = np.argsort(((X - X[5]) ** 2).sum(axis=1), kind="stable")
    assert exact.tolist() == [i for i in order if i not in (1, 5, 30)][:50]
    asked = explorer.items(np.array([70]))
    assert not asked.original and np.array_equal(asked.vectors, index.reconstruct([70]))
    assert "not at hand" in explorer.exact(asked, 5).why


def test_recall_is_that_of_the_evaluation(explorer: Explorer) -> None:
    asked = explorer.items(explorer.index.ids)
    exact = explorer.exact(asked, 10)
    for size in range(3):
        column = explorer.column(size, "reconstruction", asked, 10)
        said = explorer.recall(column, exact)
        assert said == {
            "1@1": recall_at(column.ids, exact.ids, 1),
            "1@10": recall_at(column.ids, exact.ids, 10),
            "10@10": pytest.approx(intersection_recall(column.ids, exact.ids, 10)),
        }
    count, by_size = measured(explorer)
    assert count == len(TEXTS) and by_size[2]["reconstruction"] == said


def test_few_items_have_fewer_measures() -> None:
    index = Index.create(None, zoo.codec("signs"))
    index.add(X[:4])
    explorer = Explorer(index, Originals.of(index, X[:4]))
    asked = explorer.items(index.ids)
    assert set(explorer.recall(explorer.column(0, "hamming", asked, 10), explorer.exact(asked, 10))) == {"1@1"}
    index.remove([1, 2, 3])
    asked = explorer.items(index.ids)
    assert explorer.recall(explorer.column(0, "hamming", asked, 10), explorer.exact(asked, 10)) is None


def decoded(text: str, kind: str, columns: int = 10) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind).reshape(-1, columns)


def test_a_page_holds_what_the_library_finds(explorer: Explorer) -> None:
    ids = np.arange(1, len(TEXTS), 2)
    content = json.loads(json.dumps(data(explorer, ids, "name")))
    listed = [int(i) for i in content["items"]["id"]]
    assert listed[: len(ids)] == ids.tolist() and len(set(listed)) == len(listed)
    assert content["items"]["key"] == [KEYS[i] for i in listed]
    assert [size["bytes"] for size in content["sizes"]] == list(SIZES) and content["start"] == 1
    for reader, size in zip(explorer.sizes, content["sizes"], strict=True):
        codes = decoded(size["codes"], "u1", size["bytes"])
        assert np.array_equal(codes, reader.codes(listed))
        assert np.array_equal(decoded(size["asked_codes"], "u1", size["bytes"]), reader.codec.encode(VECTORS[ids]))
        for method, column in size["columns"].items():
            distances, found = reader.search(VECTORS[ids].astype(float), 11, method=method)
            places = decoded(column["places"], "<i4")
            for row, own in enumerate(ids):
                wanted = without(found[row], own, 10)
                assert [listed[place] for place in places[row]] == wanted
                nearer = [distances[row][found[row].tolist().index(i)] for i in wanted]
                assert decoded(column["distances"], "<f4")[row] == pytest.approx(nearer, rel=1e-6)
        rebuilt, steps = reader.reconstruct(ids), decoded(size["rebuilt"]["steps"], "i1", 24)
        scales = decoded(size["rebuilt"]["scales"], "<f4", 1)
        assert np.abs(steps * scales - rebuilt).max() <= np.abs(rebuilt).max() / 127
        units = VECTORS[ids] / np.linalg.norm(VECTORS[ids].astype(float), axis=1, keepdims=True)
        errors = ((units - rebuilt) ** 2).sum(axis=1)
        assert decoded(size["errors"], "<f4", 1)[:, 0] == pytest.approx(errors, rel=1e-5)
    truth = decoded(content["truth"]["places"], "<i4")
    for row, own in zip(truth, ids, strict=True):
        assert are_nearest([listed[place] for place in row], VECTORS[own], own, "cosine")


def test_items_never_leave_the_data_of_the_page(explorer: Explorer, tmp_path: Path) -> None:
    size = write_page(tmp_path / "page.html", explorer, explorer.index.ids, "a <b> & </script>")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert size == len(text.encode())
    held = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert len(held) == 1 and not set("<>&\u2028\u2029") & set(held[0])
    content = json.loads(held[0])
    shown = dict(zip(content["items"]["key"], content["items"]["text"], strict=True))
    for key, hostile in HOSTILE.items():
        assert shown[key] == (hostile if len(hostile) <= 600 else hostile[:600] + "…")
    assert text.count("<script") == 2 and "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text and "connect-src 'none'" in text and "connect-src 'self'" in page()
    assert '<script type="application/json"' not in page()


def test_half_a_character_and_numbers_that_are_none_do_no_harm() -> None:
    assert '"a":"?"' in page({"a": "\ud800"})
    with pytest.raises(ValueError, match="JSON"):
        page({"a": float("nan")})


def test_other_sizes_are_of_the_same_items_and_kind(explorer: Explorer, codebooks: Explorer) -> None:
    for one in explorer.sizes:
        assert one.codec.symbols.compares and one.metric == "cosine"
        assert one.ids.tolist() == explorer.index.ids.tolist()
    others = other_sizes(codebooks.index, codebooks.originals, [6, 2])
    assert [one.codec.n_bytes for one in others] == [2]  # the index itself has the other


def test_labels() -> None:
    index = built()
    found = labels(index, index.ids, text_column(index))
    assert [one.key for one in found] == KEYS and found[0].text == TEXTS[0]
    assert {one.key for one in matching(found, "HARBOUR painting", 99)} == {
        key for key, text in zip(KEYS, TEXTS, strict=True) if "harbour" in text and "painting" in text
    }
    assert matching(found, "k7", 5)[0].key == "k7"  # the whole key comes first
    assert text_column(index, "name") == "name"
    plain = Index.create(None, zoo.codec("signs"))
    plain.add(X[:3], [3, 5, 2**62])
    assert labels(plain, plain.ids, text_column(plain))[2].id == str(2**62)


def test_what_cannot_be_shown_is_said(explorer: Explorer, tmp_path: Path) -> None:
    index, originals = explorer.index, explorer.originals
    with_nan, half = VECTORS.copy(), VECTORS.copy()
    with_nan[197, 4], half[120:] = np.nan, VECTORS[120:][::-1]
    for vectors, said in (
        (with_nan, "vectors row 197, column 4 is nan"),
        (half, "not those of the index"),
        (VECTORS[:, :20], "have 20 dimensions, those of the index 24"),
        (VECTORS[:100], "100 rows, but the index has the id"),
        (VECTORS[::-1], "not those of the index"),
    ):
        with pytest.raises(InputError, match=said):
            Originals.of(index, vectors)
    with pytest.raises(InputError, match="no column that the index keeps"):
        Explorer(index, originals, text="nothing")
    with pytest.raises(InputError, match="another metric"):
        Explorer(index, originals, [built(metric="l2")])
    with pytest.raises(InputError, match="at most 10,000"):
        drawn_items(index, 10_001)
    with pytest.raises(InputError, match="1 to 10,000 items"):
        write_page(tmp_path / "page.html", explorer, [])
    with pytest.raises(InputError, match="id 9999 is not in the index"):
        write_page(tmp_path / "page.html", explorer, [9999])
    with pytest.raises(InputError, match="there is no folder"):
        write_page(tmp_path / "no" / "page.html", explorer, [1])
    with pytest.raises(InputError, match="only a regular file"):
        write_page(tmp_path, explorer, [1])
    with pytest.raises(InputTypeError, match="must be an index"):
        Explorer(VECTORS)
    assert not list(tmp_path.iterdir())
    assert drawn_items(index, 50).tolist() == sorted(set(drawn_items(index, 50).tolist()))
    assert len(drawn_items(index, 50)) == 50 and len(drawn_items(index, 9999)) == len(TEXTS)


def test_numbers_beyond_float32_are_refused(tmp_path: Path) -> None:
    for scale, fits in ((1e15, True), (1e25, False), (1e60, False)):
        index = Index.build(X * scale, 4, symbols="signs", effort=1, random_state=0)
        explorer = Explorer(index, Originals.of(index, X * scale))
        if fits:
            write_page(tmp_path / "page.html", explorer, [1])
            continue
        with pytest.raises(InputError, match="more than float32 holds"):
            write_page(tmp_path / "large.html", explorer, [1])
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
