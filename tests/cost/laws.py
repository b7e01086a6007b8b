"""Spaces and planted laws of cost that the tests of this folder share."""

import numpy as np

import shoestring as st
from shoestring.cost.base import CostObservations


def boosting_space():
    """Appendix A of the cost-aware paper."""
    return st.Space(
        rounds=st.Int(1, 256, log=True),
        rate=st.Float(0.01, 1.0, log=True),
        least=st.Float(0.0, 0.1),
        l1=st.Float(1e-3, 1e3, log=True),
        l2=st.Float(1e-3, 1e3, log=True),
        share=st.Float(0.01, 1.0),
        depth=st.Int(1, 16),
    )


def every_kind():
    """Log, linear, stepped, whole, choices of two and three, conditions and two fidelities."""
    return st.Space(
        rounds=st.Int(1, 256, log=True),
        depth=st.Int(1, 9),
        share=st.Float(0.2, 1.0),
        rate=st.Float(1e-4, 1e-1, log=True),
        shift=st.Float(-1.0, 2.0),
        width=st.Float(0.5, 3.0, step=0.5),
        kind=st.Choice("a", "b", "c"),
        fast=st.Choice(True, False),
        drop=st.Float(0.1, 0.9, when={"kind": ["b", "c"]}),
        layers=st.Int(1, 5, when={"fast": True}),
        epochs=st.Fidelity(1, 81, log=True),
        sample=st.Fidelity(0.1, 1.0),
    )


def points(space, count, seed=0):
    """Random valid points."""
    return space.snap(np.random.default_rng(seed).random((count, len(space))))


def inner_points(space, count, seed=0):
    """Random points with relaxed whole numbers, away from the edges between values at which a parent may switch."""
    rng = np.random.default_rng(seed)
    U = space.snap(rng.random((count, len(space))))
    for j, parameter in enumerate(space.values()):
        if parameter.levels is None:
            U[:, j] = 0.01 + 0.98 * rng.random(count)
        elif not isinstance(parameter, st.Choice):
            U[:, j] += rng.choice([-0.3, 0.3], size=count) * 0.2 / parameter.levels
    return np.clip(U, 0.005, 0.995)


def observed(U, gamma, censored=None):
    return CostObservations(U, np.asarray(gamma, dtype=float), np.zeros(len(U), bool) if censored is None else censored)


def values(space, U, name):
    return space[name].values(U[:, space.names.index(name)])


def product_law(space, U):
    """log of 0.01 rounds depth^0.8 share^0.5."""
    rounds, depth, share = (values(space, U, name) for name in ("rounds", "depth", "share"))
    return np.log(0.01) + np.log(rounds) + 0.8 * np.log(depth) + 0.5 * np.log(share)


def draw(space, count, seed=0, noise=0.1, law=product_law):
    U = points(space, count, seed)
    return observed(U, law(space, U) + noise * np.random.default_rng(seed + 1000).standard_normal(count))


def rmse(posterior, U, gamma):
    return float(np.sqrt(np.mean((posterior.log_cost(U)[0] - gamma) ** 2)))


def check_gradients(posterior, U, tolerance=2e-5):
    """Both gradients against central differences, where a parameter is numeric; zero elsewhere."""
    from tests.differences import gradients_of

    mean, variance, d_mean, d_variance = posterior.log_cost_with_gradient(U)
    np.testing.assert_allclose(mean, posterior.log_cost(U)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, posterior.log_cost(U)[1], rtol=1e-9, atol=1e-9)
    space = every_kind() if U.shape[1] == 12 else boosting_space()
    smooth = np.array([not isinstance(parameter, st.Choice) for parameter in space.values()])
    by_difference = gradients_of(lambda X: posterior.log_cost(X)[0], U, 1e-6)
    np.testing.assert_allclose(d_mean[:, smooth], by_difference[:, smooth], atol=tolerance, rtol=1e-3)
    by_difference = gradients_of(lambda X: posterior.log_cost(X)[1], U, 1e-6)
    np.testing.assert_allclose(d_variance[:, smooth], by_difference[:, smooth], atol=tolerance, rtol=1e-3)
    assert (d_mean[:, ~smooth] == 0).all()
    assert (d_variance[:, ~smooth] == 0).all()
    return d_mean
