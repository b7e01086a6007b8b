import numpy as np
import pytest

from shoestring.surrogate.kernels import PROFILES
from shoestring.surrogate.marginal_likelihood import Layout, MarginalLikelihood
from tests.differences import gradient_of

GROUPS = {"separate": np.arange(4), "shared": np.array([0, 1, 1, 1]), "single": np.array([0])}


def data(p, n, seed):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, p))
    y = np.sin(5 * Z).sum(axis=1) + 0.1 * rng.normal(size=n)
    return Z, (y - y.mean()) / y.std()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("grouping", list(GROUPS))
@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_gradient_against_central_differences(profile, grouping, warped, seed):
    """Hyperparameters from a wide range: length scales over four orders of magnitude, noise from 1e-3 to 1."""
    groups, rng = GROUPS[grouping], np.random.default_rng(seed)
    Z, y = data(len(groups), 25, seed)
    layout = Layout(groups, warped)
    theta = np.concatenate([
        rng.uniform(np.log(0.02), np.log(50), layout.count),
        [rng.uniform(-5, 5), rng.uniform(np.log(1e-3), 0)],
        rng.uniform(-1, 1, layout.size - layout.count - 2),
    ])
    likelihood = MarginalLikelihood(Z, y, layout, profile)
    value, slope = likelihood(theta)
    numeric = gradient_of(lambda t: likelihood(t)[0], theta, 1e-5)
    np.testing.assert_allclose(slope, numeric, rtol=2e-5, atol=1e-7 * (1 + abs(value)))


@pytest.mark.parametrize("seed", range(4))
def test_with_known_noise_the_gradient_is_that_of_central_differences(seed):
    rng = np.random.default_rng(seed)
    Z, y = data(3, 20, seed)
    layout = Layout(np.arange(3))
    theta = np.append(rng.uniform(np.log(0.1), np.log(5), 3), [rng.uniform(-2, 2), rng.uniform(-5, 0)])
    likelihood = MarginalLikelihood(Z, y, layout, "matern52", 10.0 ** rng.uniform(-3, 2, 20))
    value, slope = likelihood(theta)
    assert likelihood.value(theta) == value
    np.testing.assert_allclose(likelihood.values(theta[None, :]), [value], rtol=1e-9)
    numeric = gradient_of(lambda t: likelihood(t)[0], theta, 1e-5)
    np.testing.assert_allclose(slope, numeric, rtol=2e-5, atol=1e-6 * (1 + abs(value)))


def test_known_noise_that_is_the_same_for_all_is_as_good_as_more_noise():
    Z, y = data(3, 20, 0)
    layout, theta = Layout(np.arange(3)), np.array([0.0, 0.3, -0.2, 0.5, np.log(0.3)])
    known = MarginalLikelihood(Z, y, layout, "matern52", np.full(20, 0.2)).value(np.append(theta[:-1], np.log(0.1)))
    plain = MarginalLikelihood(Z, y, layout, "matern52").value(theta)
    prior = layout.log_prior(theta)[0] - layout.log_prior(np.append(theta[:-1], np.log(0.1)))[0]
    assert known + prior == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize("warped", [False, True])
def test_the_value_alone_is_the_same_to_the_last_bit(warped):
    Z, y = data(3, 20, 0)
    layout = Layout(np.arange(3), warped)
    likelihood = MarginalLikelihood(Z, y, layout, "matern52")
    for theta in layout.centre + np.random.default_rng(0).normal(size=(5, layout.size)):
        assert likelihood.value(theta) == likelihood(theta)[0]
    flat = MarginalLikelihood(np.full((6, 1), 0.5), np.ones(6), Layout(np.arange(1)), "se")
    assert flat.value(np.array([0.0, 0.0, -100.0])) == -np.inf


def test_duplicate_rows_and_one_observation_have_a_likelihood_and_a_gradient():
    for Z, y in ((np.full((5, 2), 0.3), np.array([1.0, -1.0, 0.5, 0.2, -0.7])), (np.full((1, 2), 0.3), np.array([0.4]))):
        layout = Layout(np.arange(2))
        likelihood = MarginalLikelihood(Z, y, layout, "matern52")
        value, slope = likelihood(layout.centre)
        assert np.isfinite(value)
        numeric = gradient_of(lambda t: likelihood(t)[0], layout.centre)  # noqa: B023
        np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-6 * (1 + abs(value)))


def test_the_order_of_the_observations_does_not_matter():
    Z, y = data(3, 30, 0)
    layout, turn = Layout(np.arange(3)), np.random.default_rng(0).permutation(30)
    value, slope = MarginalLikelihood(Z, y, layout, "matern52")(layout.centre)
    other, other_slope = MarginalLikelihood(Z[turn], y[turn], layout, "matern52")(layout.centre)
    assert value == pytest.approx(other, rel=1e-8)
    np.testing.assert_allclose(slope, other_slope, rtol=1e-6, atol=1e-6)


def test_a_covariance_that_cannot_be_factored_is_minus_infinity_not_an_error():
    layout = Layout(np.arange(1))
    theta = np.array([0.0, 0.0, -100.0])  # no noise to speak of, on duplicates
    value, slope = MarginalLikelihood(np.full((6, 1), 0.5), np.ones(6), layout, "se")(theta)
    assert value == -np.inf
    assert (slope == 0).all()


def test_the_data_are_not_changed():
    Z, y = data(3, 20, 1)
    Z0, y0 = Z.copy(), y.copy()
    layout = Layout(np.arange(3), True)
    MarginalLikelihood(Z, y, layout, "matern52")(layout.centre)
    np.testing.assert_array_equal(Z, Z0)
    np.testing.assert_array_equal(y, y0)
