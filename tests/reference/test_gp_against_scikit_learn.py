import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from shoestring.surrogate.marginal_likelihood import TAU2, Layout, MarginalLikelihood
from shoestring.surrogate.posterior import Posterior

SETTINGS = [(seed, profile) for seed in range(4) for profile in ("matern52", "se")]


def problem(seed, profile, n=30, p=3):
    """Data, hyperparameters, our posterior, and theirs with the same kernel on the same centred data."""
    rng = np.random.default_rng(seed)
    Z = rng.random((n, p))
    y = np.sin(5 * Z).sum(axis=1) + rng.normal(size=n) * 0.1
    layout = Layout(np.arange(p))
    theta = np.concatenate([rng.uniform(-2, 1, p), [rng.uniform(-2, 2), rng.uniform(-6, -1)]])
    ours = Posterior.given(layout.kernel(theta, profile), layout.noise(theta), Z, y)
    lengths = np.exp(theta[:p])
    shape = Matern(lengths, nu=2.5) if profile == "matern52" else RBF(lengths)
    theirs = GaussianProcessRegressor(ConstantKernel(np.exp(theta[p])) * shape, alpha=layout.noise(theta), optimizer=None)
    return Z, y, layout, theta, ours, theirs.fit(Z, y - ours.mean)


@pytest.mark.parametrize(("seed", "profile"), SETTINGS)
def test_predictions(seed, profile):
    *_, ours, theirs = problem(seed, profile)
    X = np.random.default_rng(seed + 50).uniform(-0.2, 1.2, (40, 3))
    mean, deviation = theirs.predict(X, return_std=True)
    np.testing.assert_allclose(ours.mean_at(X) - ours.mean, mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.sqrt(ours.mean_and_variance(X)[1]), deviation, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("seed", "profile"), SETTINGS)
def test_joint_covariances(seed, profile):
    *_, ours, theirs = problem(seed, profile)
    X = np.random.default_rng(seed + 50).random((15, 3))
    np.testing.assert_allclose(ours.covariance(X), theirs.predict(X, return_cov=True)[1], atol=1e-6)


@pytest.mark.parametrize(("seed", "profile"), SETTINGS)
def test_the_likelihood(seed, profile):
    Z, y, layout, theta, ours, theirs = problem(seed, profile)
    value, _ = MarginalLikelihood(Z, y, layout, profile)(theta)
    prior = layout.log_prior(theta)[0] - ours.mean**2 / (2 * TAU2)
    assert value - prior == pytest.approx(theirs.log_marginal_likelihood(theirs.kernel_.theta), rel=1e-8)


@pytest.mark.parametrize(("seed", "profile"), SETTINGS)
def test_the_gradient_of_the_likelihood(seed, profile):
    """By length scale and variance, the mean held where it is best."""
    Z, y, layout, theta, _, theirs = problem(seed, profile)
    _, slope = MarginalLikelihood(Z, y, layout, profile)(theta)
    slope = slope - layout.log_prior(theta)[1]
    _, expected = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)  # variance first, then lengths
    np.testing.assert_allclose([slope[3], *slope[:3]], expected, rtol=1e-6, atol=1e-6)
