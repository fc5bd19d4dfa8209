"""Many means: as many as are wanted, like ones beside each other, the same for the same seed, as good as k-means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antisparse import InputError, LearnedEncoder, Split
from antisparse.codec.cells import MANY, nearest_mean, points_of
from antisparse.learning.centroids import ordered_means
from antisparse.learning.split import choose_split, sample_size
from antisparse.learning.training import kmeans

RNG = np.random.default_rng(0)


def clustered(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((200, d)) * np.linspace(3, 0.3, d)
    return centres[rng.integers(0, 200, n)] + 0.5 * rng.standard_normal((n, d))


def means_of(X: np.ndarray, count: int, seed: int = 0, threads: int = 1) -> np.ndarray:
    return ordered_means(X, count, np.random.RandomState(seed), threads)


def test_like_means_stand_beside_each_other_and_the_seed_decides() -> None:
    X = clustered(20_000, 8, 1)
    means = kmeans(X, 4200, np.random.RandomState(3))
    np.testing.assert_array_equal(means, kmeans(X, 4200, np.random.RandomState(3), 2))
    assert (means != kmeans(X, 4200, np.random.RandomState(4))).any()
    assert means.shape == (4200, 8) and points_of(means).ordered
    assert not points_of(means[RNG.permutation(4200)]).ordered
    # Single precision is enough.
    np.testing.assert_allclose(
        ((X - means[nearest_mean(X, means)]) ** 2).mean(),
        ((X - (few := kmeans(X.astype(np.float32), 4200, np.random.RandomState(3)))[nearest_mean(X, few)]) ** 2).mean(),
        rtol=0.02,
    )


def test_they_leave_as_little_as_k_means_of_scikit_learn() -> None:
    from sklearn.cluster import KMeans

    X, new = (
        np.random.default_rng(seed).standard_normal((n, 6)) * np.linspace(2, 0.5, 6)
        for seed, n in [(2, 6000), (3, 2000)]
    )
    found = means_of(X, 100)
    peer = KMeans(100, n_init=1, random_state=0).fit(X).cluster_centers_
    error, wanted = (((new - means[nearest_mean(new, means)]) ** 2).sum(1).mean() for means in (found, peer))
    assert error <= 1.03 * wanted


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 60), share=st.floats(0, 1), d=st.integers(1, 4), size=st.integers(-300, 300))
def test_there_are_as_many_as_are_wanted_of_any_vectors(n: int, share: float, d: int, size: int) -> None:
    count = max(1, round(share * n))
    X = np.ldexp(np.round(2 * np.random.default_rng(n).standard_normal((n, d))), size)  # some of them equal
    means = means_of(X, count)
    assert means.shape == (count, d) and np.isfinite(means).all()
    assert (means >= X.min(axis=0)).all() and (means <= X.max(axis=0)).all()
    if count == n:
        np.testing.assert_array_equal(np.sort(means[:, 0]), np.sort(X[:, 0]))


@pytest.mark.parametrize(
    ("n_bytes", "split"),
    [
        (8, Split("codebooks", 4200)),
        (9, Split("signs", 4200, scale=True)),
        (8, Split("codebooks", 4200, bias="nibble", blocks=2, axes=5)),
        (6, Split("levels", 4200)),
    ],
)
def test_an_encoder_with_many_cells(n_bytes: int, split: Split) -> None:
    X = clustered(9000, 6, 4)
    encoder, other = (
        LearnedEncoder(n_bytes, split=split, effort=1, random_state=0, n_threads=threads).fit(X) for threads in (1, 2)
    )
    codec = encoder.codec_
    assert codec == other.codec_ and codec.n_bytes == n_bytes and codec.n_cells == 4200 and codec.layout.cell_bytes == 2
    assert codec.cells is not None and codec.cells.points.ordered
    codes = codec.encode(X)
    np.testing.assert_array_equal(codes[4000:4003], codec.encode(X[4000:4003], n_threads=1))
    # Nearly every vector is in its nearest cell, as the order of the means tells it.
    reduced, means = codec.reduction.reduce(X, 1), codec.cells.means
    nearest = ((means * means).sum(1) - 2 * reduced[:2000] @ means.T).argmin(1)
    assert (codec.layout.cells(codes)[:2000] == nearest).mean() > 0.99
    if split.axes is None:  # what remains of a vector is coded
        assert ((X - codec.decode(codes)) ** 2).sum() < ((reduced - means[codec.layout.cells(codes)]) ** 2).sum()


def test_more_vectors_are_learned_from_where_there_are_many_cells() -> None:
    assert sample_size(1000, MANY) == 1000 and sample_size(1000, 5000) == 200_000 and sample_size(10**6, 5000) == 10**6
    X = clustered(12_000, 3, 5)
    encoder = LearnedEncoder(7, cells=5000, train=500, effort=1, random_state=0).fit(X)
    assert encoder.codec_.n_cells == 5000  # which 500 vectors could not be
    with pytest.raises(InputError, match="cells = 5000, but X has 4500 vectors"):
        LearnedEncoder(7, cells=5000, random_state=0).fit(X[:4500])
    with pytest.raises(InputError, match="cells = 1048577"):
        LearnedEncoder(7, cells=2**20 + 1).fit(X)


@pytest.mark.parametrize(("cells", "taken"), [(1, 0), (2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 3), (2**20, 3)])
def test_the_bytes_of_a_number(cells: int, taken: int) -> None:
    assert Split("signs", cells).nibbles(10) == 2 * (10 - taken) - 2
    assert choose_split(10, 10**6, 64, symbols="signs", cells=cells).cells == cells
