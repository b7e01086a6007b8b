import numpy as np
import pytest

from shoestring.surrogate.kernels import PROFILES, Kernel, Warp, squared_distances
from tests.differences import gradients_of


@pytest.mark.parametrize("name", list(PROFILES))
def test_a_profile_starts_at_one_falls_and_stays_positive(name):
    q = np.concatenate([[0.0], 10.0 ** np.linspace(-12, 4, 200)])
    rho, slope = PROFILES[name](q.copy())
    assert rho[0] == 1.0
    assert (np.diff(rho) <= 0).all()
    assert (rho >= 0).all()
    assert (slope <= 0).all()


@pytest.mark.parametrize("name", list(PROFILES))
def test_the_derivative_of_a_profile(name):
    q = 10.0 ** np.linspace(-3, 2, 40)
    _, slope = PROFILES[name](q.copy())
    step = 1e-4 * q
    numeric = (PROFILES[name](q + step)[0] - PROFILES[name](q - step)[0]) / (2 * step)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-10)


def test_squared_distances_against_the_definition():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    np.testing.assert_allclose(squared_distances(A, B), ((A[:, None] - B) ** 2).sum(-1))
    np.testing.assert_allclose(squared_distances(A), ((A[:, None] - A) ** 2).sum(-1), atol=1e-12)


def test_squared_distances_are_never_negative_and_zero_to_oneself():
    A = 1e3 + 1e-9 * np.random.default_rng(1).normal(size=(50, 4))
    q = squared_distances(A)
    assert (q >= 0).all()
    assert (np.diag(q) == 0).all()


@pytest.mark.parametrize("name", list(PROFILES))
def test_covariances_are_symmetric_and_positive(name):
    Z = np.random.default_rng(2).random((30, 3))
    kernel = Kernel(name, np.array([1.0, 3.0, 0.2]), 2.5)
    K = kernel.covariance(kernel.scale(Z))
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_allclose(np.diag(K), 2.5)
    assert np.linalg.eigvalsh(K).min() > -1e-10


SHAPES = [(1.0, 1.0), (0.5, 2.0), (3.0, 0.4), (0.3, 0.3), (4.0, 4.0)]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_warping_keeps_the_ends_and_the_order(a, b):
    z = np.linspace(0, 1, 201)[:, None]
    w = Warp(np.array([a]), np.array([b])).apply(z)[:, 0]
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(w[[0, -1]], [0, 1], atol=0.003)


def test_shapes_of_one_are_the_identity():
    z = np.linspace(0, 1, 21)[:, None]
    np.testing.assert_allclose(Warp(np.ones(1), np.ones(1)).apply(z), z, atol=1e-8)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_derivative_of_warping(a, b):
    warp = Warp(np.array([a]), np.array([b]))
    z = np.concatenate([np.linspace(0.02, 0.98, 30), [-0.3, 1.3]])[:, None]  # beyond the ends it is flat
    np.testing.assert_allclose(warp.derivative(z), gradients_of(lambda x: warp.apply(x)[:, 0], z, 1e-6), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_derivatives_of_warping_by_its_shapes(a, b):
    z, step = np.linspace(0.01, 0.99, 25)[:, None], 1e-5
    by_a, by_b = Warp(np.array([a]), np.array([b])).shape_derivatives(z)

    def at(log_a, log_b):
        return Warp(np.exp([log_a]), np.exp([log_b])).apply(z)

    la, lb = np.log(a), np.log(b)
    np.testing.assert_allclose(by_a, (at(la + step, lb) - at(la - step, lb)) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(by_b, (at(la, lb + step) - at(la, lb - step)) / (2 * step), atol=1e-8)
