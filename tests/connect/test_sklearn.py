"""The graph of neighbours on codes, as scikit-learn's own estimators take it."""

import pickle
import warnings

import numpy as np
import pytest
import zoo
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from antisparse import InputError, LearnedEncoder
from antisparse.connect.sklearn import CodeNeighborsTransformer
from antisparse.evaluation import intersection_recall

RNG = np.random.default_rng(0)
CENTRES = 4 * RNG.standard_normal((3, 12))
LABELS = np.repeat([0, 1, 2], 60)
X = CENTRES[LABELS] + RNG.standard_normal((180, 12))
NEW_LABELS = np.repeat([0, 1, 2], 10)
NEW = CENTRES[NEW_LABELS] + RNG.standard_normal((30, 12))
METRICS = ("euclidean", "cosine")


def transformer(**parameters):
    return CodeNeighborsTransformer(**{"n_bytes": 12, "effort": 1, "random_state": 0} | parameters)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        CodeNeighborsTransformer(n_bytes=4, effort=1),
        CodeNeighborsTransformer(n_bytes=6, effort=1, mode="connectivity", n_neighbors=3),  # a zero has no cosine
    ]
)
def test_scikit_learn_estimator(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("metric", METRICS)
def test_the_graph_is_that_of_scikit_learn_but_for_what_codes_lose(metric: str) -> None:
    ours, theirs = transformer(metric=metric, n_neighbors=10), KNeighborsTransformer(metric=metric, n_neighbors=10)
    graph, exact = ours.fit_transform(X), theirs.fit_transform(X)
    assert graph.shape == exact.shape and graph.format == exact.format == "csr" and graph.dtype == exact.dtype
    np.testing.assert_array_equal(graph.indptr, exact.indptr)
    found, true = (g.indices.reshape(180, 11) for g in (graph, exact))
    np.testing.assert_array_equal(found[:, 0], np.arange(180))
    assert intersection_recall(found, true, 11) > 0.8
    rows = graph.data.reshape(180, 11)
    assert (rows[:, 0] == 0).all() and (np.diff(rows, axis=1) >= 0).all()
    # In the same units: the distances between the pairs that are found, estimated.
    pairs = np.take_along_axis(pairwise_distances(X, metric=metric), found, axis=1)[:, 1:]
    assert np.abs(rows[:, 1:] / pairs - 1).mean() < 0.15
    new, exact = ours.transform(NEW), theirs.transform(NEW)
    assert (
        new.shape == (30, 180)
        and intersection_recall(new.indices.reshape(30, 11), exact.indices.reshape(30, 11), 11) > 0.8
    )
    assert (ours.get_feature_names_out() == [f"codeneighborstransformer{i}" for i in range(180)]).all()


@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_those_of_the_scan(metric: str) -> None:
    fitted = transformer(metric=metric).fit(X)
    codec = LearnedEncoder(12, metric=fitted.encoder_.metric, effort=1, random_state=0).fit(X).codec_
    assert fitted.encoder_.codec_ == codec and fitted.base_.bytes_per_vector == codec.n_bytes == 12
    distances, ids = fitted.kneighbors(NEW, 7)
    scanned, expected = fitted.base_.search(NEW, 7)
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(distances, np.sqrt(scanned) if metric == "euclidean" else scanned)
    np.testing.assert_array_equal(fitted.kneighbors(NEW, 7, return_distance=False), ids)
    for mode, entries in (("connectivity", np.ones((30, 7))), ("distance", distances)):
        graph = fitted.kneighbors_graph(NEW, 7, mode)
        np.testing.assert_array_equal(graph.data.reshape(30, 7), entries)
        np.testing.assert_array_equal(graph.indices.reshape(30, 7), ids)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X).toarray(), fitted.transform(X).toarray())


def test_without_vectors_neighbours_are_those_of_what_was_fitted_without_itself() -> None:
    fitted = transformer(n_neighbors=8).fit(X)
    distances, ids = fitted.kneighbors()
    assert ids.shape == (180, 8) and not (ids == np.arange(180)[:, None]).any() and (ids >= 0).all()
    exact = KNeighborsTransformer(n_neighbors=8).fit(X).kneighbors(return_distance=False)
    assert intersection_recall(ids, exact, 8) > 0.7
    assert fitted.kneighbors_graph().nnz == 180 * 8 and (np.diff(distances, axis=1) >= 0).all()


def test_a_vector_is_known_again_even_where_all_have_one_code() -> None:
    alike = 1 + 1e-9 * RNG.standard_normal((50, 12))
    fitted = transformer(n_bytes=1, n_neighbors=3).fit(alike)
    assert len(np.unique(fitted.base_.codes, axis=0)) < 50
    graph = fitted.transform(alike)
    assert (graph.indices.reshape(50, 4)[:, 0] == np.arange(50)).all() and (graph.data.reshape(50, 4)[:, 0] == 0).all()
    assert all(len(set(row)) == 4 for row in graph.indices.reshape(50, 4))
    _, ids = fitted.kneighbors()
    assert ids.shape == (50, 3) and not (ids == np.arange(50)[:, None]).any()
    rows = transformer(n_neighbors=4).fit(np.repeat(X, 3, axis=0)).transform(X[:9]).indices.reshape(9, 5)
    np.testing.assert_array_equal(np.sort(rows[:, :3]), np.arange(27).reshape(9, 3))  # all that are equal, first


def test_scikit_learn_takes_the_graph() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of unsorted rows, say
        classifier = make_pipeline(transformer(n_neighbors=8), KNeighborsClassifier(5, metric="precomputed"))
        assert classifier.fit(X, LABELS).score(NEW, NEW_LABELS) > 0.95
        dense = DBSCAN(eps=5, min_samples=3, metric="precomputed")
        clusters = make_pipeline(transformer(n_neighbors=20), dense).fit(X)[-1].labels_
        assert adjusted_rand_score(LABELS, clusters) > 0.9
        flat = make_pipeline(
            transformer(n_neighbors=70), Isomap(n_neighbors=69, metric="precomputed"), KNeighborsClassifier(5)
        )
        assert flat.fit(X, LABELS).score(NEW, NEW_LABELS) > 0.9
        picture = TSNE(perplexity=10, init="random", metric="precomputed", max_iter=300, random_state=0)
        places = make_pipeline(transformer(n_neighbors=31), picture).fit_transform(X)
    near = KNeighborsTransformer(n_neighbors=5, mode="connectivity").fit(places).kneighbors(return_distance=False)
    assert (LABELS[near] == LABELS[:, None]).mean() > 0.95
    spectral = SpectralClustering(3, affinity="precomputed_nearest_neighbors", n_neighbors=100, random_state=0)
    groups = spectral.fit_predict(transformer(n_neighbors=100).fit_transform(X))
    assert adjusted_rand_score(LABELS, groups) > 0.9


def test_results_do_not_depend_on_threads_or_batches() -> None:
    one, two = (transformer(n_threads=threads).fit(X) for threads in (1, 2))
    whole = one.transform(NEW).toarray()
    np.testing.assert_array_equal(two.transform(NEW).toarray(), whole)
    np.testing.assert_array_equal(np.concatenate([two.transform(row[None]).toarray() for row in NEW]), whole)


def test_more_neighbours_than_vectors_and_other_words_are_errors() -> None:
    with pytest.raises(InputError, match="n_neighbors = 181, but there are 180 vectors"):
        transformer(n_neighbors=180).fit(X).transform(NEW)
    with pytest.raises(InputError, match="n_neighbors = 180, but there are 179 vectors"):
        transformer().fit(X).kneighbors(n_neighbors=180)
    with pytest.raises(InputError, match="metric"):
        transformer(metric="manhattan").fit(X)
    with pytest.raises(InputError, match="mode"):
        transformer(mode="both").fit(X)
    with pytest.raises(InputError, match="X row 3 is zero"):
        transformer(metric="cosine").fit(np.where(np.arange(180)[:, None] == 3, 0, X))


def test_a_fit_that_fails_leaves_the_one_before() -> None:
    fitted = transformer().fit(X)
    before = fitted.transform(NEW).toarray()
    with pytest.raises(InputError):
        fitted.fit(np.full((20, 12), np.nan))
    np.testing.assert_array_equal(fitted.transform(NEW).toarray(), before)
    assert zoo.TRAIN.shape[1] == fitted.fit(zoo.TRAIN).n_features_in_ == 10
