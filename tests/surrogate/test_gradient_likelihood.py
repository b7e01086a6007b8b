"""The likelihood of values and gradient observations: against the normal density, against differences, and in fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws
from scipy.stats import multivariate_normal

from shoestring.surrogate.gp import GP, posterior_under
from shoestring.surrogate.gradient_data import GradientData, gradient_noise
from shoestring.surrogate.kernels import PROFILES, Basis, Kernel, ValueBlock, covariance
from shoestring.surrogate.marginal_likelihood import TAU2, GradientMarginalLikelihood, Layout, MarginalLikelihood
from tests.differences import gradient_of

GROUPS = {1: [np.array([0])], 2: [np.arange(2), np.array([0, 0])], 4: [np.arange(4), np.array([0, 1, 1, 1])]}


@draws.composite
def problems(draw):
    """Features, values, some of their derivatives (perhaps two at one point), and hyperparameters from a wide range."""
    p, n = draw(draws.sampled_from(list(GROUPS))), draw(draws.integers(1, 9))
    layout, profile = Layout(draw(draws.sampled_from(GROUPS[p])), with_gradients=True), draw(draws.sampled_from(list(PROFILES)))
    rng = np.random.default_rng(draw(draws.integers(0, 2**32 - 1)))
    Z = rng.random((n, p))
    if n > 2 and draw(draws.booleans()):
        Z[-1] = Z[0]
    known = rng.random((n, p)) < draw(draws.sampled_from([0.2, 0.6, 1.0]))
    known[rng.integers(n), rng.integers(p)] = True
    rows, columns = np.nonzero(known)
    theta = np.concatenate([
        rng.uniform(np.log(0.05), np.log(5), layout.count), [rng.uniform(-2, 2)], rng.uniform(np.log(1e-3), 0, 2)
    ])
    return Z, rng.normal(size=n) + 0.7, GradientData(rows, columns, 3 * rng.normal(size=len(rows))), layout, profile, theta


@given(problems())
def test_the_gradient_against_central_differences(problem):
    *data, theta = problem
    likelihood = GradientMarginalLikelihood(*data)
    value, gradient = likelihood(theta)
    numeric = gradient_of(lambda t: likelihood(t)[0], theta, 1e-5)
    np.testing.assert_allclose(gradient, numeric, rtol=5e-5, atol=2e-7 * (1 + abs(value)))
    assert likelihood.value(theta) == value


@given(problems())
@settings(max_examples=30)
def test_the_value_is_the_density_of_values_and_derivatives_at_the_best_constant_mean(problem):
    Z, y, gradients, layout, profile, theta = problem
    kernel = layout.kernel(theta, profile)
    block = gradients.block(kernel, Z)
    own = layout.gradient_noise_share(theta) * np.diag(covariance(kernel, block, block))
    K = Basis(kernel, (ValueBlock(kernel.scale(Z)), block)).covariance()
    K += np.diag(np.concatenate([np.full(len(y), layout.noise(theta)), own]))
    targets, ones = np.concatenate([y, gradients.values]), np.arange(len(K)) < len(y)

    def density(mean):
        return multivariate_normal(mean * ones, K).logpdf(targets) - mean**2 / (2 * TAU2)

    value, _ = GradientMarginalLikelihood(Z, y, gradients, layout, profile)(theta)
    mean = posterior_under(theta, layout, profile, Z, y, gradients).mean
    assert value - layout.log_prior(theta)[0] == pytest.approx(density(mean), rel=1e-7, abs=1e-7)
    assert density(mean) >= max(density(mean - 1e-2), density(mean + 1e-2))


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_noise_of_a_derivative_is_a_share_of_its_prior_variance(profile):
    kernel, Z = Kernel(profile, np.array([2.0, 0.3]), 1.7), np.random.default_rng(0).random((3, 2))
    block = GradientData(np.array([0, 1, 2, 2]), np.array([0, 1, 0, 1]), np.zeros(4)).block(kernel, Z)
    np.testing.assert_allclose(gradient_noise(kernel, 0.25, block), 0.25 * np.diag(covariance(kernel, block, block)))


def test_derivatives_without_information_leave_the_likelihood_of_the_values():
    """The more noise they have, the nearer their density is to one that does not depend on the values."""
    rng = np.random.default_rng(0)
    Z, y, layout = rng.random((6, 2)), rng.normal(size=6), Layout(np.arange(2), with_gradients=True)
    gradients = GradientData(np.array([0, 3]), np.array([1, 0]), np.zeros(2))
    theta = np.append(layout.centre[:-1], np.log(1e8))
    kernel = layout.kernel(theta, "matern52")
    alone = multivariate_normal(np.zeros(2), np.diag(gradient_noise(kernel, 1e8, gradients.block(kernel, Z)))).logpdf(np.zeros(2))
    values = MarginalLikelihood(Z, y, Layout(np.arange(2)), "matern52")(theta[:-1])[0]
    joint = GradientMarginalLikelihood(Z, y, gradients, layout, "matern52")(theta)[0] - layout.log_prior(theta)[0]
    assert joint == pytest.approx(values - Layout(np.arange(2)).log_prior(theta[:-1])[0] + alone, abs=1e-5)


def test_a_covariance_that_cannot_be_factored_is_minus_infinity_not_an_error():
    layout = Layout(np.arange(1), with_gradients=True)
    gradients = GradientData(np.arange(6), np.zeros(6, dtype=np.intp), np.ones(6))
    likelihood = GradientMarginalLikelihood(np.full((6, 1), 0.5), np.ones(6), gradients, layout, "se")
    value, gradient = likelihood(np.array([0.0, 0.0, -100.0, -100.0]))
    assert value == -np.inf
    assert (gradient == 0).all()


def drawn(share, seed, n=30, noise=1e-4):
    """Standardised values and derivatives of a function drawn from the model; their noise is ``share`` of the prior variance."""
    rng, kernel = np.random.default_rng(seed), Kernel("matern52", np.array([2.0, 1.2]), 1.0)
    Z, rows, columns = rng.random((n, 2)), np.repeat(np.arange(n), 2), np.tile(np.arange(2), n)
    block = GradientData(rows, columns, np.zeros(2 * n)).block(kernel, Z)
    K = Basis(kernel, (ValueBlock(kernel.scale(Z)), block)).covariance()
    K += np.diag(np.concatenate([np.full(n, noise), gradient_noise(kernel, share, block)]))
    both = np.linalg.cholesky(K + 1e-9 * np.eye(3 * n)) @ rng.standard_normal(3 * n)
    y, scale = both[:n] - both[:n].mean(), both[:n].std()
    return Z, y / scale, GradientData(rows, columns, both[n:] / scale)


@pytest.mark.parametrize("share", [pytest.param(1e-3, marks=pytest.mark.slow), 0.05, pytest.param(0.5, marks=pytest.mark.slow)])
def test_a_fit_finds_how_noisy_derivatives_are(share):
    found = [Layout(np.arange(2), with_gradients=True).gradient_noise_share(GP().fit(Z, y, gradients=derivatives).theta)
             for Z, y, derivatives in (drawn(share, seed) for seed in range(6))]
    assert share / 10 < min(found) <= max(found) < share * 10


def test_noisy_derivatives_are_trusted_less_than_exact_ones():
    rng = np.random.default_rng(1)
    Z, y, exact = drawn(1e-6, 0)
    spoilt = GradientData(exact.rows, exact.columns, exact.values + exact.values.std() * rng.normal(size=len(exact)))
    good, bad = (GP().fit(Z, y, gradients=derivatives) for derivatives in (exact, spoilt))
    assert np.exp(bad.theta[-1]) > 30 * np.exp(good.theta[-1])
    off = []
    for fit, observed in ((good, exact.values), (bad, spoilt.values)):
        expected = fit.posterior.expected(fit.posterior.basis.blocks[1])
        off.append(np.sqrt(np.mean((expected - observed) ** 2)) / observed.std())
    assert off[0] < 0.02
    assert off[1] > 0.1


def test_derivatives_make_a_better_fit_of_the_same_points():
    errors = []
    for seed in range(6):
        Z, y, derivatives = drawn(1e-6, seed, n=60)
        few = np.arange(8)
        posteriors = [GP().fit(Z[few], y[few], gradients=each).posterior for each in (None, derivatives.select(few))]
        errors.append([np.sqrt(np.mean((posterior.mean_at(Z[8:]) - y[8:]) ** 2)) for posterior in posteriors])
    without, with_derivatives = np.mean(errors, axis=0)
    assert with_derivatives < 0.7 * without


def test_select_keeps_the_derivatives_of_rows_in_their_new_order():
    derivatives = GradientData(np.array([0, 0, 2, 5]), np.array([0, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0]))
    few = derivatives.select(np.array([2, 5, 7]))
    np.testing.assert_array_equal(np.column_stack([few.rows, few.columns, few.values]), [[0, 1, 3.0], [1, 0, 4.0]])
    assert derivatives.select(np.array([1, 3])) is None


@pytest.mark.parametrize("n", [1, 140])
def test_one_observation_and_many_are_fitted_too(n):
    Z, y, derivatives = drawn(1e-4, 0, n=max(n, 2))
    few = np.arange(n)
    fit = GP().fit(Z[few], y[few], gradients=derivatives.select(few))
    assert fit.note == ""
    assert len(fit.posterior.basis) == 3 * n
    assert np.isfinite(fit.posterior.mean_at(Z)).all()
