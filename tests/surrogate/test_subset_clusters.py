"""Clusters: seeding, assignment, Lloyd's iteration."""

import numpy as np
import pytest

from shoestring.surrogate.subset import DISTANCE_BLOCK_ROWS, _k_means, k_means, nearest_centre, spread


def cost(A, labels):
    """The sum of squared distances to the means of the clusters."""
    return sum(((A[labels == c] - A[labels == c].mean(axis=0)) ** 2).sum() for c in np.unique(labels))


def test_spread_rows_differ_and_those_given_come_first():
    A = np.random.default_rng(0).random((50, 3))
    rows = spread(A, 10, np.random.default_rng(1), np.array([7, 3]))
    assert rows[:2].tolist() == [7, 3]
    assert len(set(rows.tolist())) == 10
    assert len(spread(A, 200, np.random.default_rng(1))) == 50


def test_no_point_is_taken_twice_however_often_it_stands_in_the_data():
    A = np.tile(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), (20, 1))
    rows = spread(A, 10, np.random.default_rng(0), np.array([0, 3, 6, 1]))  # 3 and 6 are copies of 0
    assert len(rows) == 3
    assert len(np.unique(A[rows], axis=0)) == 3
    assert len(spread(np.zeros((5, 2)), 3, np.random.default_rng(0))) == 1
    assert len(spread(np.full((5, 2), 0.3), 3, np.random.default_rng(0))) == 1


def test_the_chance_of_the_next_is_its_squared_distance():
    A = np.array([[0.0], [1.0], [2.0], [3.0]])
    second = np.array([spread(A, 2, np.random.default_rng(seed), np.array([0]))[1] for seed in range(4000)])
    share = np.bincount(second, minlength=4) / 4000
    np.testing.assert_allclose(share, np.array([0, 1, 4, 9]) / 14, atol=5 * 0.5 / np.sqrt(4000))


@pytest.mark.parametrize("n", [1, 7, DISTANCE_BLOCK_ROWS, DISTANCE_BLOCK_ROWS + 1, 3 * DISTANCE_BLOCK_ROWS - 2])
def test_each_row_goes_to_its_nearest_centre(n):
    rng = np.random.default_rng(n)
    A, centres = rng.random((n, 4)), rng.random((9, 4))
    expected = ((A[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_centre(A, centres), expected)


def test_k_means_ends_where_every_row_is_nearest_to_the_mean_of_its_cluster():
    A = np.random.default_rng(0).random((300, 2))
    labels = k_means(A, 8, (0,))
    means = np.array([A[labels == c].mean(axis=0) for c in range(8)])
    np.testing.assert_array_equal(labels, nearest_centre(A, means))


def test_k_means_is_as_good_as_that_of_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    A = np.random.default_rng(1).random((600, 4))
    ours = [cost(A, k_means(A, 20, (seed,))) for seed in range(8)]
    theirs = [cluster.KMeans(20, n_init=1, random_state=seed).fit(A).inertia_ for seed in range(8)]
    assert np.mean(ours) < 1.03 * np.mean(theirs)


def test_fewer_different_points_than_clusters():
    A = np.tile(np.array([[0.1, 0.2], [0.8, 0.3]]), (10, 1))
    assert np.unique(k_means(A, 5, (0,))).tolist() == [0, 1]
    assert np.unique(k_means(np.zeros((10, 2)), 5, (0,))).tolist() == [0]


def test_what_is_kept_is_what_would_be_computed_and_cannot_be_changed():
    A = np.random.default_rng(2).random((100, 3))
    first = k_means(A, 6, (1, 2))
    assert k_means(A.copy(), 6, (1, 2)) is first
    assert k_means(A, 6, (1, 3)) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 3
    _k_means.cache_clear()
    np.testing.assert_array_equal(k_means(np.asfortranarray(A), 6, (1, 2)), first)
