"""VFE's bound and FITC's marginal likelihood against their definitions, written out with n x n matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as draws
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from shoestring.surrogate.marginal_likelihood import Layout, MarginalLikelihood
from shoestring.surrogate.sparse_likelihood import SparseMarginalLikelihood
from tests.differences import gradient_of

each_approximation = pytest.mark.parametrize("approximation", ["vfe", "fitc"])
each_profile = pytest.mark.parametrize("profile", ["matern52", "se"])


def data(n, p, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, p))
    y = np.sin(5 * Z).sum(axis=1) + 0.1 * rng.normal(size=n)
    return Z, (y - y.mean()) / y.std()


def prior_covariance(profile, lengths, variance, X, Y):
    """Pair by pair, from the textbook."""
    K = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, z in enumerate(Y):
            r = np.sqrt((((x - z) / lengths) ** 2).sum())
            K[i, j] = np.exp(-(r**2) / 2) if profile == "se" else (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r)
    return variance * K


def by_definition(profile, approximation, theta, Z, y, U):
    """max over m of log N(y | m, S) - m^2 / 2 [- tr(Kff - Qff) / (2 noise)], without the prior of theta."""
    p = Z.shape[1]
    lengths, variance, noise = np.exp(theta[:p]), np.exp(theta[p]), np.exp(theta[p + 1])
    Kff, Kuf, Kuu = (prior_covariance(profile, lengths, variance, *pair) for pair in ((Z, Z), (U, Z), (U, U)))
    Q = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    S = Q + noise * np.eye(len(y)) + (np.diag(np.diag(Kff - Q)) if approximation == "fitc" else 0.0)
    ones = np.ones(len(y))
    best = minimize_scalar(lambda m: -multivariate_normal.logpdf(y, m * ones, S) + m**2 / 2, (-1, 1), tol=1e-12)
    return -best.fun - (np.trace(Kff - Q) / (2 * noise) if approximation == "vfe" else 0.0)


@each_approximation
@each_profile
@pytest.mark.parametrize("seed", range(3))
def test_the_value_is_the_one_of_the_definition(profile, approximation, seed):
    rng = np.random.default_rng(seed)
    Z, y = data(25, 2, seed)
    y += 0.3  # so that the mean has something to do
    U, layout = rng.random((6, 2)), Layout(np.arange(2))
    theta = np.concatenate([rng.uniform(np.log(0.1), 0.5, 2), [rng.uniform(-1, 1), rng.uniform(np.log(1e-3), 0)]])
    value = SparseMarginalLikelihood(Z, y, layout, profile, approximation).value(theta, U) - layout.log_prior(theta)[0]
    assert value == pytest.approx(by_definition(profile, approximation, theta, Z, y, U), rel=1e-5, abs=1e-4)


@each_approximation
@each_profile
@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("groups", [np.arange(4), np.array([0, 1, 1, 1]), np.array([0])], ids=["separate", "shared", "single"])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradients_against_central_differences(profile, approximation, warped, groups, seed):
    """Of theta, and of every coordinate of the inducing points; length scales over two orders of magnitude."""
    rng = np.random.default_rng(seed)
    Z, y = data(30, len(groups), seed)
    slices = rng.permuted(np.tile(np.arange(5)[:, None], (1, len(groups))), axis=0)
    U, layout = (slices + rng.uniform(0.25, 0.75, slices.shape)) / 5, Layout(groups, warped)  # apart, for the differences' sake
    theta = np.concatenate([
        rng.uniform(np.log(0.1), np.log(10), layout.count),
        [rng.uniform(-2, 2), rng.uniform(np.log(1e-3), 0)],
        rng.uniform(-1, 1, layout.size - layout.count - 2),
    ])
    likelihood = SparseMarginalLikelihood(Z, y, layout, profile, approximation)
    value, d_theta, d_U = likelihood(theta, U)
    assert value == likelihood.value(theta, U)
    tight = {"rtol": 1e-4, "atol": 1e-6 * (1 + abs(value))}
    np.testing.assert_allclose(d_theta, gradient_of(lambda t: likelihood.value(t, U), theta), **tight)
    numeric = gradient_of(lambda u: likelihood.value(theta, u.reshape(U.shape)), U.ravel())
    np.testing.assert_allclose(d_U.ravel(), numeric, **tight)


@each_approximation
@each_profile
@pytest.mark.parametrize("warped", [False, True])
def test_with_the_data_as_inducing_points_it_is_the_exact_likelihood(profile, approximation, warped):
    Z, y = data(30, 3)
    layout = Layout(np.arange(3), warped)
    for theta in layout.centre + 0.5 * np.random.default_rng(0).normal(size=(4, layout.size)):
        theta[layout.count + 1] = np.log(0.02)
        exact, slope = MarginalLikelihood(Z, y, layout, profile)(theta)
        value, d_theta, _ = SparseMarginalLikelihood(Z, y, layout, profile, approximation)(theta, Z)
        assert value == pytest.approx(exact, abs=1e-3)
        np.testing.assert_allclose(d_theta, slope, rtol=1e-3, atol=5e-3)


@given(draws.integers(0, 10**6), draws.integers(1, 15), draws.sampled_from(["matern52", "se"]), draws.floats(-9.0, 0.5))
def test_vfe_is_never_above_the_exact_likelihood_and_more_points_never_lower_it(seed, m, profile, log_noise):
    """Coinciding inducing points and hyperparameters from a wide range included."""
    rng = np.random.default_rng(seed)
    Z, y = data(20, 2, seed)
    layout = Layout(np.arange(2))
    theta = np.concatenate([rng.uniform(np.log(0.05), np.log(5), 2), [rng.uniform(-3, 3), log_noise]])
    U = np.vstack([rng.random((m, 2)), Z[: m // 2], Z[: m // 3]])
    exact = MarginalLikelihood(Z, y, layout, profile).value(theta)
    sparse = SparseMarginalLikelihood(Z, y, layout, profile, "vfe")
    rounding = 1e-6 * (1 + abs(exact)) + 1e-8 * np.exp(theta[2] - log_noise) * len(y)
    assert sparse.value(theta, U) <= exact + rounding
    assert sparse.value(theta, U[:m]) <= sparse.value(theta, U) + rounding + 1e-6 * abs(sparse.value(theta, U[:m]))


@each_approximation
def test_the_order_of_data_and_of_inducing_points_does_not_matter(approximation):
    Z, y = data(40, 3)
    U, layout, rng = Z[:7] + 0.01, Layout(np.arange(3)), np.random.default_rng(0)
    turn, swap = rng.permutation(40), rng.permutation(7)
    value, d_theta, d_U = SparseMarginalLikelihood(Z, y, layout, "matern52", approximation)(layout.centre, U)
    turned = SparseMarginalLikelihood(Z[turn], y[turn], layout, "matern52", approximation)
    other, other_theta, other_U = turned(layout.centre, U[swap])
    assert value == pytest.approx(other, rel=1e-8)
    np.testing.assert_allclose(d_theta, other_theta, rtol=1e-5)
    np.testing.assert_allclose(d_U[swap], other_U, rtol=1e-4, atol=1e-6 * np.abs(d_U).max())


@each_approximation
def test_coinciding_inducing_points_and_duplicate_data_have_a_value_and_a_gradient(approximation):
    Z, y = np.repeat(data(10, 2)[0], 3, axis=0), np.random.default_rng(0).normal(size=30)
    layout = Layout(np.arange(2))
    likelihood, U = SparseMarginalLikelihood(Z, y, layout, "se", approximation), Z[:12:3]
    once, twice = (likelihood(layout.centre, points) for points in (U, np.repeat(U, 2, axis=0)))
    assert twice[0] == pytest.approx(once[0], rel=1e-4)
    assert all(np.isfinite(part).all() for part in twice)


@each_approximation
def test_what_cannot_be_computed_is_minus_infinity_and_the_data_are_not_changed(approximation):
    Z, y = data(20, 2)
    U, layout = Z[:4].copy(), Layout(np.arange(2))
    before = [part.copy() for part in (Z, y, U)]
    likelihood = SparseMarginalLikelihood(Z, y, layout, "matern52", approximation)
    likelihood(layout.centre, U)
    for now, then in zip((Z, y, U), before, strict=True):
        np.testing.assert_array_equal(now, then)
    value, d_theta, d_U = likelihood(np.full(4, np.nan), U)
    assert value == -np.inf
    assert not d_theta.any()
    assert not d_U.any()
    assert likelihood.evaluations == 2


def test_what_the_inducing_points_do_not_explain():
    Z, y = data(20, 2)
    layout = Layout(np.arange(2))
    likelihood, theta = SparseMarginalLikelihood(Z, y, layout, "se", "vfe"), np.array([-1.0, -0.5, 0.7, -3.0])
    Kuf, Kuu = (prior_covariance("se", np.exp(theta[:2]), np.exp(0.7), Z[:3], other) for other in (Z, Z[:3]))
    left = np.exp(0.7) - np.diag(Kuf.T @ np.linalg.solve(Kuu, Kuf)).mean()
    assert likelihood.unexplained(theta, Z[:3]) == pytest.approx(left, rel=1e-5)
    assert likelihood.unexplained(theta, Z) < 1e-6
