import numpy as np
import pytest

from shoestring.surrogate.feasibility import fit_feasibility
from tests.differences import gradients_of

GROUPS = np.arange(2)


def fitted(fails, count=60, seed=0):
    Z = np.random.default_rng(seed).random((count, 2))
    failed = np.array([fails(z) for z in Z])
    return fit_feasibility(Z[~failed], Z[failed], GROUPS)


def test_the_probability_is_low_where_trials_failed_and_high_where_they_did_not():
    feasibility = fitted(lambda z: z[0] > 0.7)
    good, bad = np.exp(feasibility.log_probability(np.array([[0.2, 0.5], [0.95, 0.5]])))
    assert good > 0.9
    assert bad < 0.1


def test_random_failures_change_no_decision():
    rng = np.random.default_rng(1)
    feasibility = fitted(lambda z: rng.random() < 0.3, count=150)
    probabilities = np.exp(feasibility.log_probability(rng.random((50, 2))))
    assert np.ptp(probabilities) < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_the_log_probability(seed):
    feasibility = fitted(lambda z: z.sum() > 1.3, seed=seed)
    X = np.random.default_rng(seed + 10).uniform(0.05, 0.95, (30, 2))
    value, slope = feasibility.log_probability_with_gradient(X)
    np.testing.assert_allclose(value, feasibility.log_probability(X), rtol=1e-5, atol=1e-7)
    numeric = gradients_of(feasibility.log_probability, X, 1e-5)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-4 * (1 + np.abs(numeric).max()))


def test_it_is_finite_deep_inside_a_region_of_failures():
    Z = np.random.default_rng(2).random((200, 2))
    feasibility = fit_feasibility(Z[:2] * 0.05, 0.3 + 0.7 * Z, GROUPS)
    value, slope = feasibility.log_probability_with_gradient(Z)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()


def test_there_is_no_model_without_both_labels():
    Z = np.random.default_rng(3).random((5, 2))
    assert fit_feasibility(Z, Z[:0], GROUPS) is None
    assert fit_feasibility(Z[:0], Z, GROUPS) is None


def test_one_failure_among_identical_points():
    Z = np.full((4, 2), 0.5)
    probabilities = fit_feasibility(Z, Z[:1], GROUPS).log_probability(np.random.default_rng(4).random((10, 2)))
    assert np.isfinite(probabilities).all()
