import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from shoestring.surrogate.marginal_likelihood import TAU2, Layout, MarginalLikelihood
from shoestring.surrogate.posterior import Posterior


def problem(seed, profile, warped, groups):
    rng = np.random.default_rng(seed)
    Z = rng.random((15, len(groups)))
    y = rng.normal(size=15) + 0.7
    layout = Layout(groups, warped)
    theta = np.concatenate([
        rng.uniform(-2, 1, layout.count),
        [rng.uniform(-1, 2), rng.uniform(-4, 0)],
        rng.uniform(-1, 1, layout.size - layout.count - 2),
    ])
    kernel = layout.kernel(theta, profile)
    K = kernel.covariance(kernel.scale(Z)) + layout.noise(theta) * np.eye(15)
    return Z, y, layout, theta, K


SETTINGS = [
    (seed, profile, warped, groups)
    for seed in range(2)
    for profile in ("matern52", "se")
    for warped in (False, True)
    for groups in (np.arange(3), np.array([0, 1, 1]))
]
each_setting = pytest.mark.parametrize(("seed", "profile", "warped", "groups"), SETTINGS)


@each_setting
def test_the_value_is_the_density_at_the_best_constant_mean(seed, profile, warped, groups):
    Z, y, layout, theta, K = problem(seed, profile, warped, groups)

    def density(mean):
        return multivariate_normal(np.full(15, mean), K).logpdf(y) - mean**2 / (2 * TAU2)

    value, _ = MarginalLikelihood(Z, y, layout, profile)(theta)
    mean = Posterior.given(layout.kernel(theta, profile), layout.noise(theta), Z, y).mean
    assert value - layout.log_prior(theta)[0] == pytest.approx(density(mean), rel=1e-9)
    assert density(mean) > max(density(mean - 1e-3), density(mean + 1e-3))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_mean_is_the_mean_of_its_posterior(seed):
    """The mean is normal given the data, so the place of its highest density is its average, here by quadrature."""
    Z, y, layout, theta, K = problem(seed, "matern52", False, np.arange(3))
    mean = Posterior.given(layout.kernel(theta, "matern52"), layout.noise(theta), Z, y).mean
    highest = multivariate_normal(np.full(15, mean), K).logpdf(y)

    def weight(m):
        return np.exp(multivariate_normal(np.full(15, m), K).logpdf(y) - highest - m**2 / (2 * TAU2))

    ends = (-8.0, 8.0)
    average = quad(lambda m: m * weight(m), *ends, limit=200)[0] / quad(weight, *ends, limit=200)[0]
    assert mean == pytest.approx(average, abs=1e-5)
