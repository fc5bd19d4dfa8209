"""How an array lies in memory (order, strides, alignment) changes nothing."""

import numpy as np
import pytest
import zoo

from antisparse import CodeBase, InputError, InputTypeError, _core, hamming, hamming_search, tight_frame, unpack
from antisparse.codes import pack
from antisparse.refine import refine

X = zoo.vectors(120, 1) + 1 / 3  # numbers that no sum is exact for


def misaligned(array: np.ndarray) -> np.ndarray:
    """The same numbers one byte off."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    odd = memory[1:].view(array.dtype).reshape(array.shape)
    odd[...] = array
    assert not odd.flags.aligned
    return odd


def layouts(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers, laid out in other ways."""
    every_other = np.repeat(np.repeat(array, 2, axis=0), 2, axis=1)[::2, ::2]
    packed = np.zeros(len(array), [("flag", "u1"), ("row", array.dtype, array.shape[1])])
    packed["row"] = array
    return {
        "Fortran": np.asfortranarray(array),
        "strided": every_other,
        "reversed": np.ascontiguousarray(array[::-1])[::-1],
        "packed records": packed["row"],
    }


@pytest.mark.parametrize("name", zoo.NAMES)
def test_queries_have_the_same_answers_in_any_layout_and_batch(name: str) -> None:
    codec = zoo.codec(name)
    base = CodeBase(codec, codec.encode(X))
    for method in zoo.methods(name):
        for given in (X, X.astype(np.float32)):
            expected = base.search(given, 5, method=method)
            for queries in (*layouts(given).values(), misaligned(given)):
                for found, wanted in zip(base.search(queries, 5, method=method), expected, strict=True):
                    np.testing.assert_array_equal(found, wanted)
                for start in range(0, len(X), 17):  # and each in any batch
                    rows = slice(start, start + 17)
                    found = base.search(queries[rows], 5, method=method)[0]
                    np.testing.assert_array_equal(found, expected[0][rows])
                np.testing.assert_array_equal(base.search(queries[7], 5, method=method)[0], expected[0][7])


@pytest.mark.parametrize("name", zoo.NAMES)
def test_vectors_and_code_rows_may_lie_in_any_way(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    for vectors in (*layouts(X).values(), misaligned(X)):
        np.testing.assert_array_equal(codec.encode(vectors), codes)
    method = zoo.methods(name)[0]
    expected = CodeBase(codec, codes).search(X[:9], 5, method=method)
    for rows in layouts(codes).values():
        for found, wanted in zip(CodeBase(codec, rows).search(X[:9], 5, method=method), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        if codec.rebuilds:
            np.testing.assert_array_equal(codec.decode(rows), codec.decode(codes))


@pytest.mark.parametrize("layout", layouts(X))
def test_functions_of_code_rows_take_any_layout(layout: str) -> None:
    A = tight_frame(10, 24, 0)
    codes = pack(X @ A)
    rows = layouts(codes)[layout]
    np.testing.assert_array_equal(unpack(rows, 24), unpack(codes, 24))
    np.testing.assert_array_equal(hamming(rows, codes), hamming(codes, codes))
    np.testing.assert_array_equal(refine(layouts(X)[layout], A, rows), refine(X, A, codes))
    for one, other in zip(hamming_search(rows, rows, 3), hamming_search(codes, codes, 3), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["lsh", "itq", "paper", "spread"])
def test_rows_that_are_no_codes_are_refused(name: str) -> None:
    codec = zoo.codec(name)
    codes = codec.encode(X)
    for rows, complaint in [
        (codes[:, :-1], "bytes"),
        (np.repeat(codes, 2, axis=1), "bytes"),
        (codes[0], "dimension"),
        (codes.astype(np.int64), "uint8"),
    ]:
        with pytest.raises((InputError, InputTypeError), match=complaint):
            codec.decode(rows)
    with pytest.raises(InputError, match="padding"):
        zoo.codec("lsh reduced").decode(np.full((2, 1), 255, np.uint8))


def test_native_code_refuses_numbers_at_odd_addresses() -> None:
    with pytest.raises(ValueError, match="aligned"):
        _core.project(misaligned(X), np.eye(10), 1)
    with pytest.raises(ValueError, match="aligned"):
        _core.round_rows(misaligned(X), 0.0)
