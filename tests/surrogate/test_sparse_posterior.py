"""Posteriors by inducing points against brute force: moments, gradients, conditioning."""

import numpy as np
import pytest
from numpy.linalg import inv

from shoestring.surrogate.kernels import Kernel, Warp
from shoestring.surrogate.marginal_likelihood import Layout
from shoestring.surrogate.posterior import CrossCovariance, Posterior
from shoestring.surrogate.sparse_likelihood import SparseMarginalLikelihood, sparse_posterior
from tests.differences import gradients_of

WARP = Warp(np.array([0.6, 1.5, 1.0]), np.array([1.4, 0.7, 1.0]))
KERNELS = {
    "matern52": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7),
    "se": Kernel("se", np.array([2.0, 0.7, 3.0]), 0.4),
    "warped": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7, WARP),
}
each_kernel = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))
each_approximation = pytest.mark.parametrize("approximation", ["vfe", "fitc"])


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, 3))
    y = np.sin(4 * Z).sum(axis=1)
    return Z, (y - y.mean()) / y.std()


def queries(m=9, seed=1):
    return np.random.default_rng(seed).uniform(0.05, 0.95, (m, 3))


def sparse(kernel, approximation, n=40, noise=0.02, m=8, **options):
    Z, y = data(n)
    return sparse_posterior(kernel, noise, Z, y, queries(m, seed=7), approximation, **options)


def joint_of(kernel, approximation, noise, Z, y, U, X):
    """Mean and covariance of f(X), by q(u) = N(Kuu S Kuf D^-1 y, Kuu S Kuu), S = (Kuu + Kuf D^-1 Kfu)^-1, and p(f | u)."""
    K = {a + b: kernel.covariance(kernel.scale(P), kernel.scale(T)) for a, P in zip("ufx", (U, Z, X), strict=True)
         for b, T in zip("ufx", (U, Z, X), strict=True)}  # fmt: skip
    K["uu"] = K["uu"] + 1e-8 * kernel.variance * np.eye(len(U))
    D = np.full(len(y), noise)
    if approximation == "fitc":
        D = D + np.diag(K["ff"] - K["fu"] @ inv(K["uu"]) @ K["uf"])
    S = inv(K["uu"] + K["uf"] / D @ K["fu"])
    to_u = K["xu"] @ inv(K["uu"])
    mean_u, cov_u = K["uu"] @ S @ K["uf"] @ (y / D), K["uu"] @ S @ K["uu"]
    return to_u @ mean_u, K["xx"] - to_u @ K["ux"] + to_u @ cov_u @ to_u.T


@each_kernel
@each_approximation
def test_mean_and_covariance_are_those_of_the_inducing_values_and_what_they_do_not_explain(kernel, approximation):
    posterior, (Z, y), X = sparse(kernel, approximation, mean=0.0), data(), queries()
    mean, covariance = joint_of(kernel, approximation, 0.02, Z, y, queries(8, seed=7), X)
    np.testing.assert_allclose(posterior.mean_at(X), mean, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(X), covariance, atol=1e-6 * kernel.variance)
    np.testing.assert_allclose(posterior.mean_and_variance(X)[1], np.diag(covariance), atol=1e-6 * kernel.variance)
    assert len(posterior) == len(y)
    assert len(posterior.basis) == 8
    np.testing.assert_array_equal(posterior.Z, Z)


@each_kernel
@each_approximation
def test_with_the_data_as_inducing_points_it_is_the_exact_gp(kernel, approximation):
    (Z, y), X = data(), queries()
    exact, posterior = Posterior.given(kernel, 0.02, Z, y), sparse_posterior(kernel, 0.02, Z, y, Z, approximation)
    assert posterior.mean == pytest.approx(exact.mean, abs=1e-6)
    np.testing.assert_allclose(posterior.mean_at(X), exact.mean_at(X), atol=1e-5)
    np.testing.assert_allclose(posterior.covariance(X), exact.covariance(X), atol=1e-6 * kernel.variance)


@each_kernel
@each_approximation
def test_with_very_noisy_data_the_prior_variance_is_exact(kernel, approximation):
    """A basis of few points takes nothing from the prior's variance: not even at the data, whose noise is large here."""
    Z, y = data()
    variance = sparse_posterior(kernel, 1e9, Z, y, Z[:5], approximation).mean_and_variance(Z)[1]
    np.testing.assert_allclose(variance, kernel.variance, rtol=1e-6)


@each_kernel
def test_the_prior_variance_of_fitc_at_the_data_is_exact_and_that_of_vfe_is_not(kernel):
    """The approximate covariance of the data S = Q + diag(lam), by the inverse of what the likelihood's gradients are made of."""
    Z, y = data()
    layout, U = Layout(np.arange(3)), queries(4)
    theta = np.log([*1 / kernel.inverse_lengths, kernel.variance, 0.1])
    plain = Kernel(kernel.profile, kernel.inverse_lengths, kernel.variance)
    Kuf, Kuu = (plain.covariance(plain.scale(U), plain.scale(other)) for other in (Z, U))
    q = np.einsum("ij,ij->j", Kuf, np.linalg.solve(Kuu, Kuf))
    for approximation, exact in (("fitc", True), ("vfe", False)):
        rows = [slice(i, i + 1) for i in range(40)]
        likelihoods = [SparseMarginalLikelihood(Z[row], y[row], layout, kernel.profile, approximation) for row in rows]
        single = [likelihood.value(theta, U) for likelihood in likelihoods]
        total = kernel.variance + 0.1 if exact else q + 0.1  # the variance of one value alone
        mean = y / (1.0 + total)
        expected = -0.5 * ((y - mean) ** 2 / total + np.log(2 * np.pi * total) + mean**2) + layout.log_prior(theta)[0]
        expected = expected if exact else expected - (kernel.variance - q) / 0.2
        np.testing.assert_allclose(single, expected, rtol=1e-5)


@each_kernel
@each_approximation
def test_gradients_of_mean_variance_and_covariances(kernel, approximation):
    posterior, X, Y = sparse(kernel, approximation), queries(6), queries(6, seed=2)
    _, variance, d_mean, d_variance = posterior.with_gradients(X)
    np.testing.assert_allclose(variance, posterior.mean_and_variance(X)[1], rtol=1e-7)
    np.testing.assert_allclose(d_mean, gradients_of(posterior.mean_at, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_variance, gradients_of(lambda x: posterior.mean_and_variance(x)[1], X), rtol=1e-4, atol=1e-6)
    paired, d_X, d_Y = posterior.paired_with_gradients(X, Y)
    np.testing.assert_allclose(paired, np.diag(posterior.covariance(X, Y)), atol=1e-9)
    np.testing.assert_allclose(d_X, gradients_of(lambda x: posterior.paired(x, Y), X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(d_Y, gradients_of(lambda x: posterior.paired(X, x), Y), rtol=1e-4, atol=1e-6)
    cross, weights = CrossCovariance.between(posterior, Y), np.random.default_rng(0).normal(size=(6, 6))
    np.testing.assert_allclose(cross.covariance(X), posterior.covariance(X, Y), atol=1e-9)
    numeric = gradients_of(lambda x: (cross.covariance(x) * weights).sum(axis=1), X)
    np.testing.assert_allclose(cross.pull_back(X, weights), numeric, rtol=1e-4, atol=1e-6)


@each_kernel
@each_approximation
def test_conditioned_is_the_sparse_process_given_new_values_by_brute_force(kernel, approximation):
    (Z, y), X, new, values = data(), queries(5), queries(4, seed=3), np.array([0.5, -1.0, 0.3, 2.0])
    before = sparse(kernel, approximation, mean=0.0)
    after = before.condition(new, values, noise=0.05)
    mean, joint = joint_of(kernel, approximation, 0.02, Z, y, queries(8, seed=7), np.vstack([X, new]))
    gain = joint[:5, 5:] @ inv(joint[5:, 5:] + 0.05 * np.eye(4))
    np.testing.assert_allclose(after.mean_at(X), mean[:5] + gain @ (values - mean[5:]), atol=1e-5)
    np.testing.assert_allclose(after.covariance(X), joint[:5, :5] - gain @ joint[5:, :5], atol=1e-5 * kernel.variance)
    again = after.condition(queries(2, seed=4), np.zeros(2))
    assert (again.mean_and_variance(X)[1] <= after.mean_and_variance(X)[1] + 1e-9).all()
    _, _, d_mean, _ = again.with_gradients(X)
    np.testing.assert_allclose(d_mean, gradients_of(again.mean_at, X), rtol=1e-5, atol=1e-6)


@each_kernel
@each_approximation
def test_conditioned_at_inducing_points_is_refitted_with_the_new_values(kernel, approximation):
    """There the inducing values determine the new ones, so that both are the same update of q(u)."""
    (Z, y), U, X, values = data(), queries(8, seed=7), queries(), np.array([0.4, -0.8])
    conditioned = sparse(kernel, approximation, mean=0.1).condition(U[:2], values)
    again = sparse_posterior(kernel, 0.02, np.vstack([Z, U[:2]]), np.concatenate([y, values]), U, approximation, mean=0.1)
    np.testing.assert_allclose(conditioned.mean_at(X), again.mean_at(X), atol=1e-5)
    np.testing.assert_allclose(conditioned.covariance(X), again.covariance(X), atol=1e-6 * kernel.variance)


@each_kernel
@each_approximation
@pytest.mark.parametrize("noise", [1e-7, 1e-2, 2.0])
def test_the_covariance_is_positive_even_where_inducing_points_coincide(kernel, approximation, noise):
    Z, y = data()
    U = np.vstack([Z[:6], Z[:6], Z[:6] + 1e-9])
    joint = sparse_posterior(kernel, noise, Z, y, U, approximation).covariance(np.vstack([queries(30), Z]))
    assert np.linalg.eigvalsh(joint).min() > -1e-6 * kernel.variance
    assert (np.diag(joint) <= kernel.variance * (1 + 1e-9)).all()
