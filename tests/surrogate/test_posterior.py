import numpy as np
import pytest

from shoestring.surrogate.kernels import Kernel, Warp
from shoestring.surrogate.posterior import Posterior
from tests.differences import gradients_of

WARP = Warp(np.array([0.6, 1.5, 1.0]), np.array([1.4, 0.7, 1.0]))
KERNELS = {
    "matern52": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7),
    "se": Kernel("se", np.array([2.0, 0.7, 3.0]), 0.4),
    "short": Kernel("matern52", np.full(3, 40.0), 3.0),
    "long": Kernel("se", np.full(3, 0.1), 100.0),
    "warped": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7, WARP),
}
each_kernel = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))


def data(n=20, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, 3))
    return Z, np.sin(4 * Z).sum(axis=1) - 1.5


def queries(m=12, seed=1):
    return np.random.default_rng(seed).uniform(0.05, 0.95, (m, 3))


def given(kernel, noise=1e-3, n=20, **options):
    return Posterior.given(kernel, noise, *data(n), **options)


@pytest.mark.parametrize("name", ["matern52", "short", "warped"])
def test_without_noise_it_interpolates_with_no_variance_at_the_data(name):
    Z, y = data()
    posterior = given(KERNELS[name], noise=1e-10)
    mean, variance = posterior.mean_and_variance(Z)
    np.testing.assert_allclose(mean, y, atol=1e-6)
    assert (variance < 1e-8).all()
    assert (variance > 0).all()
    assert (posterior.mean_and_variance(queries())[1] > 1e-6).all()


@each_kernel
def test_variance_at_the_data_is_below_the_noise_and_far_away_the_prior(kernel):
    posterior = given(kernel, noise=0.01)
    assert (posterior.mean_and_variance(data()[0])[1] <= 0.01 + 1e-9).all()
    if kernel.warp is None:
        mean, variance = posterior.mean_and_variance(np.full((1, 3), 1e4))
        assert variance[0] == pytest.approx(kernel.variance)
        assert mean[0] == pytest.approx(posterior.mean)


@each_kernel
def test_more_data_never_mean_more_variance(kernel):
    X = queries()
    more, fewer = (given(kernel, n=n).mean_and_variance(X)[1] for n in (20, 10))
    assert (more <= fewer + 1e-9 * kernel.variance).all()


@each_kernel
def test_the_gradients_of_mean_and_variance(kernel):
    posterior, X = given(kernel, noise=1e-2), queries()
    mean, variance, d_mean, d_variance = posterior.with_gradients(X)
    np.testing.assert_allclose(mean, posterior.mean_and_variance(X)[0], rtol=1e-9)
    np.testing.assert_allclose(variance, posterior.mean_and_variance(X)[1], rtol=1e-6, atol=1e-9 * kernel.variance)
    np.testing.assert_allclose(d_mean, gradients_of(posterior.mean_at, X, 1e-5), rtol=1e-5, atol=1e-6)
    numeric = gradients_of(lambda x: posterior.mean_and_variance(x)[1], X, 1e-5)
    np.testing.assert_allclose(d_variance, numeric, rtol=1e-4, atol=1e-8 * kernel.variance / 1e-5 * 1e-2 + 1e-7)


@each_kernel
def test_the_joint_covariance_is_symmetric_positive_and_has_the_marginals_on_its_diagonal(kernel):
    posterior, X = given(kernel), queries(30)
    joint = posterior.covariance(X)
    np.testing.assert_allclose(joint, joint.T, atol=1e-9 * kernel.variance)
    np.testing.assert_allclose(np.diag(joint), posterior.mean_and_variance(X)[1], atol=1e-8 * kernel.variance)
    assert np.linalg.eigvalsh(joint).min() > -1e-8 * kernel.variance


@each_kernel
def test_the_covariance_of_two_groups_of_points_is_a_block_of_the_joint_one(kernel):
    posterior, X, Y = given(kernel), queries(5, 2), queries(7, 3)
    joint = posterior.covariance(np.vstack([X, Y]))
    np.testing.assert_allclose(posterior.covariance(X, Y), joint[:5, 5:], atol=1e-9 * kernel.variance)


@each_kernel
def test_the_moments_of_samples_are_those_of_the_model(kernel):
    posterior, X = given(kernel, n=6), queries(4)
    draws = posterior.sample(X, 40_000, np.random.default_rng(0))
    mean, variance = posterior.mean_and_variance(X)
    joint = posterior.covariance(X)
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / np.sqrt(variance), 0, atol=5 / 200)
    spread = np.sqrt(np.outer(variance, variance))
    np.testing.assert_allclose((np.cov(draws.T) - joint) / spread, 0, atol=0.05)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("noise", [1e-12, 1e-7, 1e-2])
@each_kernel
def test_samples_at_the_data_exist_despite_rounding(kernel, noise):
    Z, _ = data()
    draws = given(kernel, noise=noise).sample(np.vstack([Z, Z]), 3, np.random.default_rng(0))
    assert draws.shape == (3, 40)
    assert np.isfinite(draws).all()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["matern52", "long"])
def test_an_observed_point_can_be_observed_again_without_noise(name):
    Z, y = data()
    posterior = given(KERNELS[name], noise=1e-9).condition(Z, y, noise=0.0)
    assert np.isfinite(posterior.mean_and_variance(queries())[0]).all()


@each_kernel
@pytest.mark.parametrize("m", [1, 5])
def test_conditioned_is_refitted(kernel, m):
    Z, y = data(20)
    before = Posterior.given(kernel, 1e-3, Z[:-m], y[:-m])
    after = before.condition(Z[-m:], y[-m:])
    again = Posterior.given(kernel, 1e-3, Z, y, mean=before.mean)
    X = queries()
    tight = {"rtol": 1e-6, "atol": 1e-6 * kernel.variance**0.5}
    np.testing.assert_allclose(after.R, again.R, atol=1e-7 * kernel.variance**0.5)
    np.testing.assert_allclose(after.mean_at(X), again.mean_at(X), **tight)
    variances = [posterior.mean_and_variance(X)[1] for posterior in (after, again)]
    np.testing.assert_allclose(*variances, rtol=1e-5, atol=1e-8 * kernel.variance)
    np.testing.assert_allclose(after.covariance(X), again.covariance(X), atol=1e-7 * kernel.variance)
    assert len(after) == 20


def test_conditioning_can_be_repeated():
    Z, y = data(20)
    posterior = Posterior.given(KERNELS["matern52"], 1e-3, Z[:15], y[:15])
    at_once = posterior.condition(Z[15:], y[15:])
    for z, value in zip(Z[15:], y[15:], strict=True):
        posterior = posterior.condition(z[None, :], np.array([value]))
    np.testing.assert_allclose(posterior.mean_at(queries()), at_once.mean_at(queries()), rtol=1e-8)


def test_the_mean_as_an_observation_changes_no_mean_and_lowers_the_variance():
    posterior, X = given(KERNELS["matern52"]), queries(3)
    after = posterior.condition(X, posterior.mean_at(X))
    np.testing.assert_allclose(after.mean_at(queries(9, 5)), posterior.mean_at(queries(9, 5)), rtol=1e-7)
    assert (after.mean_and_variance(X)[1] < posterior.mean_and_variance(X)[1]).all()


@each_kernel
def test_the_order_of_the_data_does_not_matter(kernel):
    Z, y = data()
    turn, X = np.random.default_rng(0).permutation(len(y)), queries()
    straight, turned = Posterior.given(kernel, 1e-2, Z, y), Posterior.given(kernel, 1e-2, Z[turn], y[turn])
    np.testing.assert_allclose(straight.mean_at(X), turned.mean_at(X), rtol=1e-6, atol=1e-7)
    variances = [posterior.mean_and_variance(X)[1] for posterior in (straight, turned)]
    np.testing.assert_allclose(*variances, rtol=1e-5, atol=1e-8 * kernel.variance)


def test_the_order_of_the_columns_does_not_matter():
    Z, y = data()
    turn, X = np.array([2, 0, 1]), queries()
    kernel = KERNELS["matern52"]
    turned = Posterior.given(Kernel("matern52", kernel.inverse_lengths[turn], kernel.variance), 1e-2, Z[:, turn], y)
    np.testing.assert_allclose(turned.mean_at(X[:, turn]), Posterior.given(kernel, 1e-2, Z, y).mean_at(X), rtol=1e-8)


@each_kernel
def test_a_point_observed_k_times_is_a_point_observed_once_with_a_kth_of_the_noise(kernel):
    Z, y = data(6)
    once = Posterior.given(kernel, 0.02 / 3, Z, y, mean=0.0)
    thrice = Posterior.given(kernel, 0.02, np.repeat(Z, 3, axis=0), np.repeat(y, 3), mean=0.0)
    X = queries()
    np.testing.assert_allclose(once.mean_at(X), thrice.mean_at(X), rtol=1e-5, atol=1e-6)
    variances = [posterior.mean_and_variance(X)[1] for posterior in (once, thrice)]
    np.testing.assert_allclose(*variances, rtol=1e-4, atol=1e-7 * kernel.variance)


@each_kernel
def test_exact_duplicates_without_noise_do_no_harm(kernel):
    Z, y = data(8)
    posterior = Posterior.given(kernel, 0.0, np.repeat(Z, 4, axis=0), np.repeat(y, 4))
    mean, variance = posterior.mean_and_variance(queries())
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


def test_one_observation():
    posterior = Posterior.given(KERNELS["se"], 1e-6, np.full((1, 3), 0.5), np.array([2.0]))
    mean, variance = posterior.mean_and_variance(np.array([[0.5, 0.5, 0.5], [0.1, 0.9, 0.1]]))
    assert mean[0] == pytest.approx(2.0, abs=1e-3)
    assert variance[0] < 1e-5 < variance[1] <= KERNELS["se"].variance


@each_kernel
def test_a_constant_target_is_predicted_everywhere_near_itself_or_the_mean(kernel):
    Z, _ = data()
    posterior = Posterior.given(kernel, 1e-6, Z, np.full(len(Z), 0.7))
    mean = posterior.mean_at(queries())
    assert 0 < posterior.mean <= 0.7
    assert (mean > posterior.mean - 0.1).all()
    assert (mean < 0.8).all()


def test_a_shift_and_a_factor_of_the_targets_pass_through():
    Z, y = data()
    kernel, X = KERNELS["matern52"], queries()
    plain = Posterior.given(kernel, 1e-3, Z, y, mean=0.0).mean_at(X)
    changed = Posterior.given(kernel, 1e-3, Z, 5 * y + 3, mean=3.0).mean_at(X)
    np.testing.assert_allclose(changed, 5 * plain + 3, rtol=1e-7)
