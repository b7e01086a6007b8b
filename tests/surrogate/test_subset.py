"""Subset selection, remark by remark."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from shoestring.surrogate.subset import (
    RANDOM_STREAM,
    KMeansSubset,
    Pool,
    RandomSubset,
    SeedSubset,
    _k_means,
    k_means,
    last_refresh,
    latin_hypercube,
    refreshed,
)
from tests.problems import mixed_space, plane

KINDS = [RandomSubset, KMeansSubset, SeedSubset]
each_kind = pytest.mark.parametrize("Kind", KINDS)


def trials(n, space=None, seed=0):
    """Features, values, which are at the target, the encoding."""
    space = space or plane(2)
    rng, encoding = np.random.default_rng(seed), Encoding(space)
    U = space.snap(space.at_target(rng.random((n, len(space)))))
    return encoding.features(U), rng.normal(size=n), np.ones(n, dtype=bool), encoding


def chosen(subset, n, space=None, seed=0, data=0):
    return subset.rows(*trials(n, space, data), seed)


def first_part(rows, refresh):
    return rows[rows < refresh]


# -- when: remarks 2 and 8 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 10])
def test_the_first_subset_is_at_30_d_trials_and_a_new_one_after_each_5_d_more(d):
    assert last_refresh(30 * d - 1, d) is None
    refreshes = [last_refresh(n, d) for n in range(30 * d, 60 * d)]
    assert refreshes == [30 * d + 5 * d * (extra // (5 * d)) for extra in range(30 * d)]
    changes = [n for n in range(30 * d, 60 * d) if refreshed(n, n - 1, d)]
    assert changes == sorted(set(refreshes)) == [30 * d, 35 * d, 40 * d, 45 * d, 50 * d, 55 * d]


@each_kind
def test_all_trials_are_used_before_the_first_subset(Kind):
    """Remark 6: without a subset it is the same as ever."""
    np.testing.assert_array_equal(chosen(Kind(), 59), np.arange(59))
    assert len(chosen(Kind(), 60)) < 60


# -- how many: remarks 1 and 3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "n", "k"), [(20, 60, 3), (20, 75, 3), (20, 80, 4), (20, 1000, 50), (5, 60, 12), (7.5, 60, 8)])
def test_k_is_the_number_of_trials_at_the_refresh_over_alpha(alpha, n, k):
    refresh = last_refresh(n, 2)
    assert RandomSubset(alpha).count(refresh) == k
    assert len(first_part(chosen(RandomSubset(alpha, keep_best=False), n), refresh)) == k
    assert len(first_part(chosen(KMeansSubset(alpha, keep_best=False), n), refresh)) == k
    assert 1 <= len(first_part(chosen(SeedSubset(alpha, keep_best=False), n), refresh)) <= k  # a part may be empty


def test_k_grows_with_the_trials_is_two_at_least_and_all_at_most():
    assert [RandomSubset().count(n) for n in (300, 400, 1000, 2000)] == [15, 20, 50, 100]
    assert RandomSubset(1000).count(300) == 2
    assert RandomSubset(0.5).count(300) == 300
    np.testing.assert_array_equal(chosen(RandomSubset(0.5), 63), np.arange(63))


# -- what: B.1, B.2, remarks 4, 5 and 7 --------------------------------------------------------------------------------------


@each_kind
def test_new_trials_are_added_and_the_rest_stays_until_the_next_refresh(Kind):
    """Remark 7: both the subset and the data grow with each new trial."""
    Z, y, at_target, encoding = trials(70)
    before = Kind().rows(Z[:60], y[:60], at_target[:60], encoding, 0)
    for n in range(60, 70):
        rows = Kind().rows(Z[:n], y[:n], at_target[:n], encoding, 0)
        np.testing.assert_array_equal(rows, np.concatenate([before, np.arange(60, n)]))
    after = Kind().rows(Z, y, at_target, encoding, 0)
    assert len(after) < len(before) + 10
    assert after.max() < 70


def test_random_rows_are_equally_likely():
    picked = np.concatenate([chosen(RandomSubset(keep_best=False), 60, seed=seed) for seed in range(2000)])
    share = np.bincount(picked, minlength=60) / 2000
    assert len(picked) == 3 * 2000
    np.testing.assert_allclose(share, 3 / 60, atol=5 * np.sqrt(0.05 * 0.95 / 2000))


def test_of_each_cluster_of_k_means_the_best_trial():
    """Remark 4: four clouds, four clusters, the best of each."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.9]])
    cloud = np.tile(np.arange(4), 20)
    Z, y = corners[cloud] + 0.02 * rng.normal(size=(80, 2)), rng.normal(size=80)
    rows = KMeansSubset(keep_best=False).rows(Z, y, np.ones(80, dtype=bool), Encoding(plane()), 0)
    assert rows.tolist() == sorted(int(np.flatnonzero(cloud == c)[np.argmin(y[cloud == c])]) for c in range(4))


@pytest.mark.parametrize("seed", range(3))
def test_the_clusters_are_those_of_k_means_and_each_sends_its_lowest_value(seed):
    Z, y, at_target, encoding = trials(300, plane(3), seed)
    labels = k_means(Z, 15, (seed, 300, RANDOM_STREAM))
    lowest = [min(np.flatnonzero(labels == c), key=lambda row: y[row]) for c in range(15)]
    assert KMeansSubset().rows(Z, y, at_target, encoding, seed).tolist() == sorted(lowest)


@pytest.mark.parametrize("space", [plane(3), mixed_space()], ids=["numbers", "mixed"])
def test_of_each_part_around_a_pivot_the_best_trial(space):
    """Remark 5: a trial belongs to the nearest pivot, in features; pivots by Latin-hypercube sampling."""
    n, d = 45 * len(space), len(space)
    Z, y, at_target, encoding = trials(n, space)
    k = n // 20
    pivots = encoding.features(latin_hypercube(k, d, np.random.default_rng((7, n, RANDOM_STREAM))))
    nearest = [int(np.argmin(((z - pivots) ** 2).sum(axis=1))) for z in Z]
    lowest = [min((row for row in range(n) if nearest[row] == c), key=lambda row: y[row]) for c in sorted(set(nearest))]
    assert SeedSubset().rows(Z, y, at_target, encoding, 7).tolist() == sorted(lowest)
    assert len(lowest) <= k


def test_a_latin_hypercube_has_one_point_in_each_slice():
    points = latin_hypercube(17, 4, np.random.default_rng(0))
    assert points.shape == (17, 4)
    np.testing.assert_array_equal(np.sort(np.floor(points * 17), axis=0), np.tile(np.arange(17)[:, None], (1, 4)))
    assert len({tuple(np.argsort(column)) for column in points.T}) == 4


# -- the best trial ----------------------------------------------------------------------------------------------------------


@each_kind
def test_the_best_trial_is_always_kept(Kind):
    for seed in range(30):
        Z, y, at_target, encoding = trials(67, seed=seed)
        assert int(np.argmin(y)) in Kind().rows(Z, y, at_target, encoding, seed)


def test_as_in_the_paper_a_random_subset_may_lose_the_best_and_the_clusters_never_do():
    lost = dict.fromkeys(KINDS, 0)
    for seed in range(30):
        Z, y, at_target, encoding = trials(60, seed=seed)
        for Kind in KINDS:
            faithful = Kind(keep_best=False).rows(Z, y, at_target, encoding, seed)
            kept = Kind().rows(Z, y, at_target, encoding, seed)
            lost[Kind] += int(np.argmin(y)) not in faithful
            assert set(kept) - set(faithful) <= {int(np.argmin(y))}
    assert lost[RandomSubset] > 20
    assert lost[KMeansSubset] == lost[SeedSubset] == 0


@each_kind
def test_a_lower_value_at_a_low_fidelity_is_not_the_best(Kind):
    space = st.Space(x=st.Float(0, 1), steps=st.Fidelity(1, 100))
    rng, encoding = np.random.default_rng(0), Encoding(space)
    U = space.snap(rng.random((60, 2)))
    U[::3] = space.at_target(U[::3])
    at_target, y = np.arange(60) % 3 == 0, rng.normal(size=60)
    y[~at_target] -= 10.0
    rows = Kind().rows(encoding.features(U), y, at_target, encoding, 0)
    assert int(np.flatnonzero(at_target)[np.argmin(y[at_target])]) in rows
    none = Kind().rows(encoding.features(U), y, np.zeros(60, dtype=bool), encoding, 0)  # nothing at the target yet
    assert int(np.argmin(y)) in none


def test_pivots_are_at_the_target_while_all_trials_are():
    """Or the pivots nearest to the target fidelity would get them all."""
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), steps=st.Fidelity(1, 100))
    Z, y, at_target, encoding = trials(405, space)
    pivots = latin_hypercube(20, 3, np.random.default_rng((0, 405, RANDOM_STREAM)))
    nearest = ((Z[:, None, :2] - pivots[:, :2]) ** 2).sum(axis=2).argmin(axis=1)  # the fidelity says nothing
    lowest = [min(np.flatnonzero(nearest == c), key=lambda row: y[row]) for c in np.unique(nearest)]
    assert SeedSubset().rows(Z, y, at_target, encoding, 0).tolist() == sorted(lowest)
    assert len(lowest) > 15


# -- the same again ----------------------------------------------------------------------------------------------------------


@each_kind
def test_the_same_each_time_and_another_with_another_seed_or_refresh(Kind):
    rows = chosen(Kind(), 240, plane(3), seed=3)
    _k_means.cache_clear()
    np.testing.assert_array_equal(rows, chosen(Kind(), 240, plane(3), seed=3))
    assert any(not np.array_equal(rows, chosen(Kind(), 240, plane(3), seed=seed)) for seed in (4, 5, 6))
    Z, y, at_target, encoding = trials(240, plane(3))
    again = Kind().rows(np.vstack([Z, Z[:15]]), np.append(y, y[:15]), np.append(at_target, at_target[:15]), encoding, 3)
    assert again.tolist() != rows.tolist()


@each_kind
@given(
    draws.integers(0, 10**6), draws.integers(60, 130), draws.floats(1, 40), draws.sampled_from(["random", "few", "one", "ties"])
)
def test_whatever_the_data_the_rows_are_different_in_order_and_hold_the_best(Kind, seed, n, alpha, kind):
    Z, y, at_target, encoding = trials(n, seed=seed)
    if kind == "few":
        Z = Z[np.random.default_rng(seed).integers(3, size=n)]
    if kind == "one":
        Z = np.tile(Z[:1], (n, 1))
    if kind == "ties":
        y = np.round(y)
    rows = Kind(alpha).rows(Z, y, at_target, encoding, seed)
    assert (np.diff(rows) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < n
    assert y[rows].min() == y.min()
    refresh = last_refresh(n, 2)
    assert len(first_part(rows, refresh)) <= Kind(alpha).count(refresh) + 1
    assert set(range(refresh, n)) <= set(rows.tolist())


@each_kind
@pytest.mark.parametrize(
    "wrong", [{"alpha": 0}, {"alpha": -3}, {"alpha": True}, {"alpha": np.inf}, {"alpha": "20"}, {"keep_best": 1}]
)
def test_what_cannot_be_is_refused_and_named(Kind, wrong):
    (field, value), = wrong.items()
    with pytest.raises(MethodError, match=f"{Kind.__name__}: {field}") as refused:
        Kind(**wrong)
    assert repr(value) in str(refused.value)


@each_kind
def test_how_long_it_takes_at_ten_thousand_trials(Kind):
    Z, y, at_target, encoding = trials(10_000, plane(10))
    times = []
    for _ in range(2):
        began = time.process_time()
        rows = Kind().rows(Z, y, at_target, encoding, 0)
        times.append(time.process_time() - began)
    print(f"\n{Kind.__name__}: {1e3 * times[0]:.0f} ms at a refresh, {1e3 * times[1]:.1f} ms after, {len(rows)} of 10,000 rows")
    assert len(rows) <= 501


@given(draws.lists(draws.tuples(draws.integers(0, 3), draws.integers(-1, 1), draws.booleans()), min_size=1, max_size=30))
def test_the_best_of_each_cluster_is_its_first_when_all_are_put_in_order(rows):
    """Those at the target first, then by value, then by number."""
    labels, y, at_target = (np.array(column) for column in zip(*rows, strict=True))
    pool = Pool(np.zeros((len(rows), 1)), y.astype(float), at_target, Encoding(plane(1)), (0,))
    expected = [
        min(np.flatnonzero(labels == label), key=lambda row: (not at_target[row], y[row], row)) for label in np.unique(labels)
    ]
    assert pool.best_of_each(labels).tolist() == expected
