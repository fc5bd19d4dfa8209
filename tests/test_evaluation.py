import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import InputError, InputTypeError
from antisparse.evaluation import Measure, exact_neighbors, intersection_recall, nearest_rank, recall_at

RNG = np.random.default_rng(0)


def oracle(base: np.ndarray, Q: np.ndarray, k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair, one at a time."""
    base, Q = base.astype(float), Q.astype(float)
    if metric == "cosine":
        base, Q = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (base, Q))
    distances, ids = np.full((len(Q), k), np.inf), np.full((len(Q), k), -1)
    for i, q in enumerate(Q):
        d = ((q - base) ** 2).sum(1) if metric == "l2" else (metric == "cosine") - (q * base).sum(1)
        order = np.lexsort((np.arange(len(base)), d))[:k]
        distances[i, : len(order)], ids[i, : len(order)] = d[order], order
    return distances, ids


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 8), st.integers(1, 6), st.integers(1, 45))
def test_exact_neighbours_equal_every_pair(metric: str, seed: int, n: int, q: int, d: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (n, d)) + 0.5  # few values: duplicates and ties
    Q = rng.integers(-2, 3, (q, d)) + 0.5
    distances, ids = exact_neighbors(base, Q, k, metric=metric)
    expected, expected_ids = oracle(base, Q, k, metric)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(distances, expected)


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_many_blocks_and_close_neighbours_far_from_the_origin(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # ||x||^2 - 2 x.q + ||q||^2 cancels here: only the differences tell these vectors apart.
    base = 1e4 + RNG.standard_normal((900, 7)) * 1e-3
    base[::3] = base[0]
    Q = 1e4 + RNG.standard_normal((20, 7)) * 1e-3
    monkeypatch.setattr("antisparse.evaluation._CHUNK_BASE", 64)
    monkeypatch.setattr("antisparse.evaluation._CHUNK_QUERIES", 3)
    distances, ids = exact_neighbors(base, Q, 11, metric=metric)
    expected, expected_ids = oracle(base, Q, 11, metric)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(distances, expected)


def test_bytes_are_read_as_numbers() -> None:
    base, Q = RNG.integers(0, 256, (200, 16), dtype=np.uint8), RNG.integers(0, 256, (5, 16), dtype=np.uint8)
    np.testing.assert_array_equal(exact_neighbors(base, Q, 3)[1], oracle(base, Q, 3, "l2")[1])


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
@pytest.mark.parametrize("scale", [1e-300, 1e-130, 1e140, 1e200])
def test_scales_are_exact_or_refused(metric: str, scale: float) -> None:
    base, Q = RNG.standard_normal((50, 5)), RNG.standard_normal((4, 5))
    if 1e-140 < scale < 1e150:
        ids = exact_neighbors(base * scale, Q * scale, 3, metric=metric)[1]
        np.testing.assert_array_equal(ids, exact_neighbors(base, Q, 3, metric=metric)[1])
    else:
        with pytest.raises(InputError, match=r"Q rows 0 to 3: the largest magnitude is .*scale base and Q"):
            exact_neighbors(base * scale, Q * scale, 3, metric=metric)
        with pytest.raises(InputError, match="base rows 0 to 49"):
            exact_neighbors(base * scale, Q, 3, metric=metric)


def test_equal_vectors_take_little_memory() -> None:
    base, Q = np.ones((4000, 64)), np.zeros((200, 64))
    tracemalloc.start()
    distances, ids = exact_neighbors(base, Q, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (distances == 64).all() and (ids == [0, 1, 2]).all()
    assert peak < 200e6  # all 800,000 differences at once are 410 MB


def test_intersection_recall_of_long_lists_takes_little_memory() -> None:
    ids = np.tile(np.arange(1000), (200, 1))
    tracemalloc.start()
    assert intersection_recall(ids, ids[:, ::-1], 1000) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # every pair at once is 200 MB


def test_progress_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    base = RNG.standard_normal((50, 4))
    np.testing.assert_array_equal(exact_neighbors(base, base, 2, progress=True)[1], exact_neighbors(base, base, 2)[1])
    assert "exact neighbours" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((3, 2)), np.ones((2, 3)), 1), {}, "Q has 3 columns but base has 2"),
        ((np.ones((3, 2)), np.ones((2, 2)), 0), {}, "k = 0"),
        ((np.ones((3, 2)), np.ones((2, 2)), 1), {"metric": "l1"}, "metric = 'l1'"),
        ((np.full((3, 2), np.nan), np.ones((2, 2)), 1), {}, "base row 0"),
        ((np.ones((3, 2)), np.full((2, 2), np.inf), 1), {}, "Q row 0"),
        ((np.array([[1.0, 0], [0, 0]]), np.ones((2, 2)), 1), {"metric": "cosine"}, "base row 1 is zero"),
    ],
)
def test_bad_input_is_named(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        exact_neighbors(*arguments, **options)


def test_recall_asks_for_the_first_neighbour_among_R() -> None:
    ids = [[4, 7, 1], [3, 2, -1], [-1, -1, -1], [5, 6, 0]]
    neighbors = [[4, 1], [2, 3], [9, 8], [1, 0]]
    np.testing.assert_array_equal(nearest_rank(ids, neighbors), [0, 1, 3, 3])
    assert [recall_at(ids, neighbors, R) for R in (1, 2, 3)] == [0.25, 0.5, 0.5]
    assert recall_at(ids, [4, 2, 9, 1], 2) == 0.5


def test_intersection_recall_counts_every_neighbour_once() -> None:
    assert intersection_recall([[1, 2], [3, 3]], [[2, 9], [3, 4]], 2) == 0.5
    assert intersection_recall([[-1, -1]], [[-1, -1]], 2) == 0  # nothing was found of nothing


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 12))
def test_recall_of_the_truth_is_one_and_never_falls(seed: int, queries: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.array([rng.permutation(30)[:k] for _ in range(queries)])
    assert recall_at(truth, truth, 1) == intersection_recall(truth, truth, k) == 1
    ids = np.array([rng.permutation(30)[:k] for _ in range(queries)])
    recalls = [recall_at(ids, truth, R) for R in range(1, k + 1)]
    assert recalls == sorted(recalls)
    shared = [len(set(a) & set(b)) for a, b in zip(ids, truth, strict=True)]
    assert intersection_recall(ids, truth, k) == pytest.approx(np.mean(shared) / k)


def test_bad_ids_are_named() -> None:
    with pytest.raises(InputTypeError, match="ids has dtype float64"):
        recall_at([[0.5]], [1], 1)
    with pytest.raises(InputError, match="ids has 2 rows but nearest has 1"):
        recall_at([[1], [2]], [1], 1)
    with pytest.raises(InputError, match="recall@3 needs at least 3"):
        recall_at([[1, 2]], [1], 3)
    with pytest.raises(InputError, match="neighbors has 1 columns"):
        intersection_recall([[1, 2]], [[1]], 2)
    with pytest.raises(InputError, match="at least one query"):
        recall_at(np.empty((0, 3), int), np.empty((0,), int), 1)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 12))
def test_measures_are_the_means_of_what_each_query_found(seed: int, queries: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    ids, truth = (np.array([rng.permutation(20)[:k] for _ in range(queries)]) for _ in range(2))
    first, all_k = Measure.parse(f"1@{k}"), Measure.parse(f"{k}@{k}")
    assert (first.name, all_k.name) == (f"1@{k}", f"{k}@{k}") and (first == all_k) == (k == 1)
    assert first.parts(ids, truth).mean() == pytest.approx(recall_at(ids, truth, k))
    assert all_k.parts(ids, truth).mean() == pytest.approx(intersection_recall(ids, truth, k))
    assert set(first.parts(ids, truth)) <= {0.0, 1.0}


def test_measures_say_what_they_mean() -> None:
    assert Measure.parse("1@1").meaning == "the part of the queries whose true nearest neighbour is the first result"
    assert "whose true nearest neighbour is among the first 100 results" in Measure.parse("1@100").meaning
    assert "the true 10 nearest neighbours that are among the first 10 results" in Measure.parse("10@10").meaning
    np.testing.assert_array_equal(Measure(2, 2).parts([[1, 2], [3, 3]], [[2, 9], [3, 4]]), [0.5, 0.5])


@pytest.mark.parametrize(
    "name", ["10", "recall@10", "@10", "0@0", "1@0", "2@10", "10@1", "1@-3", "1 @ 10", "01@10", ""]
)
def test_measures_of_no_meaning_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"--measure = .*; write '1@R'"):
        Measure.parse(name, "--measure")


def test_bad_measures_and_ids_are_named() -> None:
    with pytest.raises(InputTypeError, match="measure must be a name"):
        Measure.parse(10)
    with pytest.raises(InputError, match="measure = 99999999999; it must be below"):
        Measure.parse("1@99999999999")
    with pytest.raises(InputError, match="ids has 2 columns; 1@3 needs at least 3"):
        Measure(1, 3).parts([[1, 2]], [[1]])
    with pytest.raises(InputError, match="neighbors has 1 columns; 2@2 needs at least 2"):
        Measure(2, 2).parts([[1, 2]], [[1]])
