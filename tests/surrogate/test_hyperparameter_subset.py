"""The hyperparameter training subset: beyond some trials, hyperparameters come from a part of them, the posterior from all."""

import numpy as np
import pytest

from shoestring import GP
from shoestring.surrogate.posterior import Posterior
from shoestring.surrogate.subset import HYPERPARAMETER_TRIALS, MAX_EXACT_TRIALS, AutoSubset


def data(n, seed=0):
    Z = np.random.default_rng(seed).random((n, 3))
    y = np.sin(5 * Z[:, 0]) + Z[:, 1] ** 2 - Z[:, 2]
    return Z, (y - y.mean()) / y.std()


@pytest.mark.parametrize("n", [20, MAX_EXACT_TRIALS])
def test_few_trials_are_all_used(n):
    Z, y = data(n)
    np.testing.assert_array_equal(AutoSubset().hyperparameter_rows(y), np.arange(n))
    whole, auto = GP().fit(Z, y), GP(subset=AutoSubset()).fit(Z, y)
    np.testing.assert_array_equal(whole.theta, auto.theta)


def test_of_many_the_best_and_some_of_the_others_are_used():
    y = np.random.default_rng(1).normal(size=2000)
    rows = AutoSubset().hyperparameter_rows(y)
    assert len(rows) == HYPERPARAMETER_TRIALS == len(np.unique(rows))
    best = np.argsort(y)[: HYPERPARAMETER_TRIALS // 2]
    assert set(best) <= set(rows)
    assert y.max() in y[rows]


def test_hyperparameters_are_learnt_from_the_subset_and_the_posterior_from_all():
    Z, y = data(MAX_EXACT_TRIALS + 60)
    rows = AutoSubset().hyperparameter_rows(y)
    part, auto = GP().fit(Z[rows], y[rows]), GP(subset=AutoSubset()).fit(Z, y)
    np.testing.assert_array_equal(part.theta, auto.theta)
    all_of_them = Posterior.given(auto.posterior.kernel, auto.posterior.noise, Z, y)
    X = np.random.default_rng(2).random((10, 3))
    for found, expected in zip(auto.posterior.mean_and_variance(X), all_of_them.mean_and_variance(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
