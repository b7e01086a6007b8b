"""Derivatives of f as observations: covariances against differences of the kernel and of drawn functions, and posteriors."""

import numpy as np
import pytest

from shoestring.surrogate.kernels import (
    PROFILES,
    Basis,
    DerivativeBlock,
    Kernel,
    ValueBlock,
    Warp,
    covariance,
    profile_derivatives,
)
from shoestring.surrogate.posterior import CrossCovariance, Posterior
from tests.differences import gradients_of

WARP = Warp(np.array([0.6, 1.5, 1.0]), np.array([1.4, 0.7, 1.0]))
KERNELS = {
    "matern52": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7),
    "se": Kernel("se", np.array([2.0, 0.7, 3.0]), 0.4),
    "short": Kernel("matern52", np.full(3, 20.0), 3.0),
    "warped": Kernel("matern52", np.array([2.0, 0.7, 5.0]), 1.7, WARP),
}
each_kernel = pytest.mark.parametrize("kernel", list(KERNELS.values()), ids=list(KERNELS))
each_profile = pytest.mark.parametrize("profile", list(PROFILES))


def points(m, seed, p=3):
    return np.random.default_rng(seed).uniform(0.05, 0.95, (m, p))


def some_derivatives(kernel, m, seed):
    """Derivatives with respect to columns in no order, several at one point among them, and their features."""
    X, columns = points(m, seed), np.random.default_rng(seed).integers(0, 3, m)
    X[1] = X[0]
    return DerivativeBlock.at(kernel, X, columns), X, columns


def moved(X, columns, step):
    """Each row a step further along its own column."""
    X = X.copy()
    X[np.arange(len(X)), columns] += step
    return X


# -- covariances --------------------------------------------------------------------------------------------------------


@each_profile
def test_profile_derivatives_are_derivatives_of_the_profile_and_of_each_other(profile):
    q = 10.0 ** np.linspace(-3, 2, 60)
    first, second, third = profile_derivatives(profile, q)
    step = 1e-4 * q
    np.testing.assert_allclose(first, PROFILES[profile](q.copy())[1], rtol=1e-12)
    for order, expected in ((0, second), (1, third)):
        above, below = (profile_derivatives(profile, at)[order] for at in (q + step, q - step))
        np.testing.assert_allclose(expected, (above - below) / (2 * step), rtol=1e-5, atol=1e-12)


@each_profile
def test_profile_derivatives_at_distance_zero_are_the_limits_and_finite(profile):
    at_zero, near = profile_derivatives(profile, np.zeros(1)), profile_derivatives(profile, np.full(1, 1e-14))
    assert np.isfinite(at_zero).all()
    np.testing.assert_allclose(at_zero[:2], near[:2], rtol=1e-5)
    assert at_zero[2][0] == (-0.125 if profile == "se" else 0.0)  # of Matern-5/2 it is infinite, times nothing


@each_kernel
def test_covariances_of_derivatives_and_values_are_differences_of_the_kernel(kernel):
    derivatives, X, columns = some_derivatives(kernel, 9, 0)
    Y = np.vstack([points(6, 1), X[:2]])  # at the points of the derivatives too
    found = covariance(kernel, derivatives, ValueBlock(kernel.scale(Y)))

    def k(A):
        return kernel.covariance(kernel.scale(A), kernel.scale(Y))

    step = 1e-6
    np.testing.assert_allclose(found, (k(moved(X, columns, step)) - k(moved(X, columns, -step))) / (2 * step), atol=1e-6)
    np.testing.assert_array_equal(covariance(kernel, ValueBlock(kernel.scale(Y)), derivatives), found.T)


@each_kernel
def test_covariances_of_derivatives_are_differences_of_those_with_values(kernel):
    derivatives, _, _ = some_derivatives(kernel, 9, 0)
    others, Y, columns = some_derivatives(kernel, 7, 2)
    step = 1e-6

    def to_values(points):
        return covariance(kernel, derivatives, ValueBlock(kernel.scale(points)))

    expected = (to_values(moved(Y, columns, step)) - to_values(moved(Y, columns, -step))) / (2 * step)
    np.testing.assert_allclose(covariance(kernel, derivatives, others), expected, atol=1e-6 * kernel.variance * 20**2)


@each_kernel
def test_the_covariance_of_everything_is_symmetric_and_positive(kernel):
    derivatives, X, _ = some_derivatives(kernel, 12, 3)
    within = Basis(kernel, (ValueBlock(kernel.scale(X[1:])), derivatives)).covariance()
    np.testing.assert_allclose(within, within.T, atol=1e-12 * within.max())
    assert np.linalg.eigvalsh(within).min() > -1e-10 * within.max()


@each_profile
def test_differences_of_drawn_functions_are_their_drawn_derivatives(profile):
    """Values and derivatives on a fine grid, drawn together from the prior."""
    kernel, grid = Kernel(profile, np.array([3.0]), 2.0), np.linspace(0, 1, 201)[:, None]
    basis = Basis(kernel, (ValueBlock(kernel.scale(grid)), DerivativeBlock.at(kernel, grid, np.zeros(201, dtype=np.intp))))
    values, vectors = np.linalg.eigh(basis.covariance())
    drawn = vectors * np.sqrt(np.maximum(values, 0.0)) @ np.random.default_rng(0).standard_normal((402, 50))
    f, derivatives = drawn[:201], drawn[201:]
    differences = (f[2:] - f[:-2]) / (2 * (grid[1, 0] - grid[0, 0]))
    assert np.sqrt(np.mean((differences - derivatives[1:-1]) ** 2)) < 0.005 * derivatives.std()
    assert derivatives.var() == pytest.approx(covariance(kernel, basis.blocks[1], basis.blocks[1])[0, 0], rel=0.25)


@each_kernel
def test_pulled_back_covariances_are_differences_of_them(kernel):
    derivatives, X, _ = some_derivatives(kernel, 8, 4)
    blocks = (ValueBlock(kernel.scale(points(5, 5))), derivatives, ValueBlock(kernel.scale(X[:3])))
    X = points(6, 6)
    B = kernel.scale(X)
    for basis in (Basis(kernel, blocks), Basis(kernel, blocks[:1]), Basis(kernel, blocks[1:2])):
        weights = np.random.default_rng(0).normal(size=(6, len(basis)))
        near = basis.covariance_with_gradient_at(X)
        np.testing.assert_allclose(near.k, basis.covariance_at(X).T, atol=1e-12)
        expected = gradients_of(lambda A: np.einsum("ij,ij->i", weights, basis.covariance_with(ValueBlock(A)).T), B, 1e-6)  # noqa: B023
        np.testing.assert_allclose(near.pull_back(weights), expected, atol=1e-5 * kernel.inverse_lengths.max())


# -- posteriors -----------------------------------------------------------------------------------------------------------


def wave(X):
    """A function and its gradient."""
    return np.sin(3 * X).sum(axis=1) + X[:, 0] * X[:, 1], 3 * np.cos(3 * X) + np.column_stack([X[:, 1], X[:, 0], 0 * X[:, 0]])


def observed(kernel, n=6, noise=1e-3, derivative_noise=1e-2, mean=None, seed=7):
    """A posterior after values of the wave and two thirds of its derivatives there, and these derivatives."""
    Z = points(n, seed)
    y, gradient = wave(Z)
    rows, columns = np.nonzero(np.random.default_rng(seed).random((n, 3)) < 2 / 3)
    block = DerivativeBlock.at(kernel, Z[rows], columns)
    noises = np.concatenate([np.full(n, noise), np.full(len(rows), derivative_noise)])
    targets = np.concatenate([y, gradient[rows, columns]])
    basis = Basis(kernel, (ValueBlock(kernel.scale(Z)), block))
    return Posterior.given_basis(basis, targets, noises, Z=Z, y=y, noise=noise, mean=mean), block, targets


@each_kernel
def test_without_noise_mean_and_derivative_of_the_mean_are_what_was_observed(kernel):
    posterior, block, targets = observed(kernel, noise=1e-10, derivative_noise=1e-9)
    np.testing.assert_allclose(posterior.mean_at(posterior.Z), targets[:6], atol=1e-5)
    np.testing.assert_allclose(posterior.expected(block), targets[6:], atol=1e-5)
    assert (posterior.mean_and_variance(posterior.Z)[1] < 1e-6).all()
    assert (np.diag(posterior.covariance_of(block, block)) < 1e-5 * kernel.variance * kernel.inverse_lengths.max() ** 2).all()


@each_kernel
def test_the_expected_derivatives_are_the_derivatives_of_the_mean(kernel):
    posterior, _, _ = observed(kernel)
    asked, X, columns = some_derivatives(kernel, 9, 8)
    by_gradient = posterior.with_gradients(X)[2][np.arange(9), columns]
    np.testing.assert_allclose(posterior.expected(asked), by_gradient, rtol=1e-9, atol=1e-9)
    differences = (posterior.mean_at(moved(X, columns, 1e-6)) - posterior.mean_at(moved(X, columns, -1e-6))) / 2e-6
    np.testing.assert_allclose(by_gradient, differences, atol=1e-5)


def difference_rows(X, columns, h):
    """Points whose values give central differences, and the matrix that takes them."""
    m = len(X)
    take = np.zeros((m, 2 * m))
    take[np.arange(m), np.arange(m)], take[np.arange(m), m + np.arange(m)] = 1 / (2 * h), -1 / (2 * h)
    return np.vstack([moved(X, columns, h), moved(X, columns, -h)]), take


@each_profile
@pytest.mark.parametrize("p", [1, 2])
def test_derivatives_as_data_are_differences_of_values_as_data(profile, p):
    """Against the textbook's conditioning of one large normal vector, in which a derivative is the difference of two values."""
    kernel, noise, derivative_noise, h = Kernel(profile, np.array([3.0, 2.0])[:p], 1.5), 1e-3, 1e-2, 1e-3
    rng = np.random.default_rng(0)
    Z, X = rng.random((5, p)), rng.random((9, p))
    y, derivatives = np.sin(5 * Z).sum(axis=1), 5 * np.cos(5 * Z)
    rows, columns = np.nonzero(rng.random((5, p)) < 0.7)
    stencil, take = difference_rows(Z[rows], columns, h)
    everything = np.vstack([Z, stencil, X])
    K = kernel.covariance(kernel.scale(everything))
    T = np.zeros((5 + len(rows), len(everything)))
    T[:5, :5], T[5:, 5 : 5 + len(stencil)] = np.eye(5), take
    noises = np.concatenate([np.full(5, noise), np.full(len(rows), derivative_noise)])
    inside = T @ K @ T.T + np.diag(noises)
    targets = np.concatenate([y, derivatives[rows, columns]])
    across, mean = np.linalg.solve(inside, T @ K[:, -9:]), 0.3
    basis = Basis(kernel, (ValueBlock(kernel.scale(Z)), DerivativeBlock.at(kernel, Z[rows], columns)))
    posterior = Posterior.given_basis(basis, targets, noises, Z=Z, y=y, noise=noise, mean=mean)
    residual = targets - mean * (np.arange(len(targets)) < 5)
    np.testing.assert_allclose(posterior.mean_at(X), mean + residual @ across, atol=1e-4)
    np.testing.assert_allclose(posterior.covariance(X), K[-9:, -9:] - across.T @ (T @ K[:, -9:]), atol=1e-4)


@each_kernel
@pytest.mark.parametrize("derivatives_first", [False, True])
def test_observed_one_after_the_other_is_observed_at_once(kernel, derivatives_first):
    whole, block, targets = observed(kernel, mean=0.2)
    start = Posterior.given(kernel, 1e-3, whole.Z[:2], targets[:2], mean=0.2)
    steps = [
        (ValueBlock(kernel.scale(whole.Z[2:])), targets[2:6], np.full(4, 1e-3)), (block, targets[6:], np.full(len(block), 1e-2)),
    ]
    for step in steps[::-1] if derivatives_first else steps:
        start = start.condition_on(*step)
    X = points(10, 9)
    np.testing.assert_allclose(start.mean_at(X), whole.mean_at(X), atol=1e-8)
    np.testing.assert_allclose(start.covariance(X), whole.covariance(X), atol=1e-8 * kernel.variance)
    np.testing.assert_allclose(start.expected(block), whole.expected(block), atol=1e-7)
    assert len(start.basis) == len(whole.basis)


def with_and_without_derivatives(kernel):
    posterior, _, _ = observed(kernel)
    return posterior, Posterior.given(kernel, 1e-3, posterior.Z, posterior.y)


@each_kernel
def test_covariances_row_by_row_and_their_gradients(kernel):
    X, Y = points(7, 10), points(7, 11)
    X[0] = Y[0]
    for posterior in with_and_without_derivatives(kernel):
        joint = np.diag(posterior.covariance(X, Y))
        np.testing.assert_allclose(posterior.paired(X, Y), joint, atol=1e-9 * kernel.variance)
        value, by_x, by_y = posterior.paired_with_gradients(X, Y)
        np.testing.assert_allclose(value, joint, atol=1e-9 * kernel.variance)
        close = {"rtol": 1e-5, "atol": 2e-6 * kernel.variance}
        np.testing.assert_allclose(by_x, gradients_of(lambda A: posterior.paired(A, Y), X, 1e-5), **close)  # noqa: B023
        np.testing.assert_allclose(by_y, gradients_of(lambda A: posterior.paired(X, A), Y, 1e-5), **close)  # noqa: B023


@each_kernel
def test_moments_and_cross_covariances_after_derivatives_have_the_gradients_of_differences(kernel):
    posterior, _, _ = observed(kernel)
    X, P, weights = points(6, 12), points(4, 13), np.random.default_rng(0).normal(size=(6, 4))
    mean, variance, d_mean, d_variance = posterior.with_gradients(X)
    np.testing.assert_allclose(np.column_stack([mean, variance]), np.column_stack(posterior.mean_and_variance(X)), rtol=1e-6)
    close = {"rtol": 1e-5, "atol": 2e-6 * kernel.variance * kernel.inverse_lengths.max()}
    np.testing.assert_allclose(d_mean, gradients_of(posterior.mean_at, X, 1e-5), **close)
    np.testing.assert_allclose(d_variance, gradients_of(lambda A: posterior.mean_and_variance(A)[1], X, 1e-5), **close)
    cross = CrossCovariance.between(posterior, P)
    np.testing.assert_allclose(cross.covariance(X), posterior.covariance(X, P), atol=1e-10 * kernel.variance)
    pulled = gradients_of(lambda A: np.einsum("ij,ij->i", weights, cross.covariance(A)), X, 1e-5)
    np.testing.assert_allclose(cross.pull_back(X, weights), pulled, **close)
