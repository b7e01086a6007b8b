import math

import numpy as np
import pytest
import threadpoolctl

from shoestring.acquisition.improvement import log_h
from shoestring.numerics import cholesky, one_thread, single_threaded


def test_log_h_and_its_slope_are_finite_at_any_argument():
    size = 10.0 ** np.arange(-100, 101)
    for z in (size, -size, np.zeros(1)):
        assert np.isfinite(log_h(z)).all()


def test_log_h_rises_everywhere():
    z = np.concatenate([-(10.0 ** np.linspace(100, -3, 4000)), 10.0 ** np.linspace(-3, 100, 4000)])
    assert (np.diff(log_h(z)[0]) > 0).all()


def test_the_slope_of_log_h_is_positive_and_falls_everywhere():
    z = np.concatenate([-(10.0 ** np.linspace(100, -2, 2000)), 10.0 ** np.linspace(-2, 100, 2000)])
    _, slope = log_h(z)
    assert (slope > 0).all()
    assert (np.diff(slope) <= 1e-9 * slope[:-1]).all()


def test_no_jump_where_one_formula_hands_over_to_the_next():
    for edge in -(10.0 ** np.linspace(0, 10, 41)):
        for left, right in log_h(np.array([edge * (1 + 1e-12), edge * (1 - 1e-12)])):
            assert left == pytest.approx(right, rel=1e-8)


def random_covariance(n, rank, seed):
    X = np.random.default_rng(seed).normal(size=(n, rank))
    return X @ X.T


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12, 1e200])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (20, 20), (20, 3), (40, 1)])
def test_the_factor_squared_is_the_matrix(n, rank, scale):
    K = scale * random_covariance(n, rank, n + rank)
    L, added = cholesky(K)
    np.testing.assert_allclose(L @ L.T, K + added * np.eye(n), rtol=0, atol=1e-9 * scale * n)
    assert (np.triu(L, 1) == 0).all()
    assert 0 <= added <= 1e-6 * np.mean(np.diag(K))


def test_a_matrix_that_needs_no_help_gets_none():
    assert cholesky(random_covariance(10, 30, 0))[1] == 0.0


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "K",
    [
        np.ones((6, 6)),
        np.zeros((4, 4)),
        np.repeat(np.repeat(random_covariance(4, 4, 1), 3, axis=0), 3, axis=1),
        -1e-17 * np.eye(3),
        np.diag([1.0, -1e-14]),
        np.array([[-1e-18, 1e-17], [1e-17, -1e-18]]),
        np.full((2, 2), 1e-318),
    ],
    ids=["singular", "zero", "duplicate rows", "rounded below zero", "one below zero", "indefinite", "subnormal"],
)
def test_a_factor_is_always_found(K):
    L, added = cholesky(K)
    assert np.isfinite(L).all()
    assert added > 0
    assert (np.diag(L) > 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_matrix_that_is_not_finite_is_refused(bad):
    with pytest.raises(FloatingPointError):
        cholesky(np.diag([1.0, bad]))


def test_the_argument_is_not_changed():
    K = random_covariance(6, 2, 0)
    before = K.copy()
    cholesky(K)
    np.testing.assert_array_equal(K, before)


def blas_threads():
    return {entry["num_threads"] for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_outside():
    with threadpoolctl.threadpool_limits(2, "blas"):
        assert blas_threads() == {2}
        with one_thread():
            assert blas_threads() == {1}
        assert single_threaded(blas_threads)() == {1}
        assert blas_threads() == {2}
