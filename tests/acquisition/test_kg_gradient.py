"""d-KG: KG of a value with its gradient, against Monte Carlo with full conditioning on every outcome."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

import shoestring as st
from shoestring.acquisition import kg_gradient
from shoestring.acquisition.kg_gradient import DiscretizedDerivativeKG, GradientObservation, antithetic_normals
from shoestring.acquisition.knowledge_gradient import DiscretizedKG, initial_discretization
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.gradient_data import gradient_noise
from tests.differences import gradients_of
from tests.gradient_problems import study_with_gradients, wave_gradient, waves
from tests.problems import belief_of, plane

DRAWS = 40_000


def context(dimensions, count, seed=0, noise_share=None):
    belief, encoding, seen = fitted(dimensions, count, seed)
    belief = belief if noise_share is None else dataclasses.replace(belief, gradient_noise_share=noise_share)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


@functools.cache
def fitted(dimensions, count, seed):
    return belief_of(study_with_gradients(plane(dimensions), waves, wave_gradient, count, seed=seed), st.GP(output="standard"))


def with_pending(belief, pending):
    """The belief while trials are pending at features ``pending``."""
    objective = belief.objective.condition(pending, belief.objective.mean_at(pending))
    return dataclasses.replace(belief, without_pending=belief.objective, pending=pending, objective=objective)


def grid_of(dimensions):
    axis = np.linspace(0, 1, 201 if dimensions == 1 else 21)
    return np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)


def after(posterior, belief, Z, outcomes):
    """The posterior once trials at Z have reported values and derivatives."""
    values, derivatives = GradientObservation(posterior, belief.gradient_columns, belief.gradient_noise_share).blocks(Z)
    noise = gradient_noise(posterior.kernel, belief.gradient_noise_share, derivatives)
    known = posterior.condition_on(values, outcomes[: len(values)], np.full(len(values), posterior.noise))
    return known.condition_on(derivatives, outcomes[len(values) :], noise)


def joint_outcomes(posterior, belief, Z):
    """Mean and factor of the covariance of what trials at Z report."""
    observation = GradientObservation(posterior, belief.gradient_columns, belief.gradient_noise_share)
    values, derivatives = blocks = observation.blocks(Z)
    S = np.block([[posterior.covariance_of(one, other) for other in blocks] for one in blocks])
    noise = gradient_noise(posterior.kernel, belief.gradient_noise_share, derivatives)
    S += np.diag(np.concatenate([np.full(len(values), posterior.noise), noise]))
    return np.concatenate([posterior.expected(block) for block in blocks]), np.linalg.cholesky(S)


def shifted_means(posterior, belief, Z, grid):
    """The means over the grid after the expected outcome at Z, and what each standard normal of the outcome adds to them: the
    mean is linear in the outcome.
    """
    mean, factor = joint_outcomes(posterior, belief, Z)
    expected = after(posterior, belief, Z, mean).mean_at(grid)
    return expected, np.array([after(posterior, belief, Z, mean + column).mean_at(grid) - expected for column in factor.T])


def by_monte_carlo(belief, u, grid):
    """E[min before] - E[min after]: before the trial at x has reported, and after it; pending trials report first."""
    posterior, rng, before, total = belief.without_pending, np.random.default_rng(0), 0.0, 0.0
    pending = belief.pending if len(belief.pending) else np.empty((0, len(u)))
    first = len(pending) * (1 + len(belief.gradient_columns))
    if first:
        expected, steps = shifted_means(posterior, belief, pending, grid)
        posterior = after(posterior, belief, pending, joint_outcomes(posterior, belief, pending)[0])
    else:
        expected, steps = posterior.mean_at(grid), np.empty((0, len(grid)))
    _, own = shifted_means(posterior, belief, u[None, :], grid)
    for _ in range(DRAWS // 2000):
        w = rng.standard_normal((1000, first + len(own)))
        for each in (w, -w):
            now = expected + each[:, :first] @ steps
            before += now.min(axis=1).sum()
            total += (now + each[:, first:] @ own).min(axis=1).sum()
    return (before - total) / DRAWS


@pytest.fixture
def many_outcomes(monkeypatch):
    """In place of the few that a search has time for."""

    def sobol(dimensions):
        half = ndtri(qmc.Sobol(dimensions, rng=np.random.default_rng(0)).random(2**12))
        return np.vstack([half, -half])

    monkeypatch.setattr(kg_gradient, "antithetic_normals", sobol)


CASES = [(1, 3, 0, None), (1, 3, 2, 0.3), (2, 4, 2, None), (2, 5, 0, 0.1)]


@functools.cache
def truths(dimensions, count, seed, noise_share):
    """A belief, points and their d-KG where it is not too small to be measured."""
    belief, _ = context(dimensions, count, seed, noise_share)
    grid, U = grid_of(dimensions), np.random.default_rng([seed, 1]).random((7, dimensions))
    found = np.array([by_monte_carlo(belief, u, np.vstack([grid, u])) for u in U])
    return belief, grid, U[found > 0.01], found[found > 0.01]


@pytest.mark.parametrize("case", [*CASES[:2], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[2:])], ids=str)
def test_with_many_outcomes_the_value_is_that_of_monte_carlo(case, many_outcomes):
    belief, grid, U, truth = truths(*case)
    assert len(U) >= 2
    sampled = DiscretizedDerivativeKG.over(belief, grid).sampled()
    found = np.exp(np.concatenate([sampled(u[None, :]) for u in U]))
    np.testing.assert_allclose(found, truth, rtol=0.03)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_with_few_outcomes_it_is_near_it(case):
    belief, grid, U, truth = truths(*case)
    found = np.exp(DiscretizedDerivativeKG.over(belief, grid).sampled()(U))
    large = truth > 0.2 * truth.max()
    np.testing.assert_allclose(found[large], truth[large], rtol=0.2)


@pytest.mark.parametrize("dimensions", [2, 3, 4, 11, 60])
def test_imagined_outcomes_have_the_moments_of_a_standard_normal(dimensions):
    w = antithetic_normals(dimensions)
    np.testing.assert_allclose(w.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(w.T @ w / len(w), np.eye(dimensions), atol=1e-9)


PENDING = {
    "line": ([[0.2], [0.5]], [[0.65], [0.8], [0.95]]),
    "plane": ([[0.63, 0.9], [0.78, 0.23]], [[0.87, 0.39], [0.81, 0.42]]),
}


@pytest.mark.parametrize(("pending", "U"), list(PENDING.values()), ids=list(PENDING))
def test_pending_trials_report_first(pending, U, many_outcomes):
    dimensions = len(pending[0])
    belief = with_pending(context(dimensions, 2 + dimensions)[0], np.array(pending))
    grid, U = grid_of(dimensions), np.array(U)
    sampled = DiscretizedDerivativeKG.over(belief, grid).sampled()
    found = np.exp(np.concatenate([sampled(u[None, :]) for u in U]))
    truth = np.array([by_monte_carlo(belief, u, np.vstack([grid, u])) for u in U])
    assert (truth > 0.01).all()
    np.testing.assert_allclose(found, truth, rtol=0.03)


@pytest.mark.parametrize("pending", [False, True])
def test_gradients_never_lower_the_value(pending):
    belief, optimizer = context(2, 6)
    if pending:
        belief = with_pending(belief, np.array([[0.3, 0.8]]))
    points, U = initial_discretization(belief, optimizer), np.random.default_rng(3).random((40, 2))
    estimators = (DiscretizedKG, DiscretizedDerivativeKG)
    value_only, with_gradient = (estimator.over(belief, points).surface()(U, False)[0] for estimator in estimators)
    assert (with_gradient >= value_only).all()
    matters = with_gradient > -15.0  # elsewhere there is next to nothing to be learnt, by value or gradient
    assert matters.sum() >= 5
    assert (with_gradient > value_only + 0.05)[matters].mean() > 0.3


def test_the_noisier_gradients_are_the_lower_the_value(many_outcomes):
    U, values = np.random.default_rng(4).random((4, 1)), []
    for share in (1e-4, 0.5, 1e6):
        belief, _ = context(1, 3, noise_share=share)
        values.append(np.exp(DiscretizedDerivativeKG.over(belief, grid_of(1)).sampled()(U)))
    value_only = np.exp(DiscretizedKG.over(belief, grid_of(1)).surface()(U, False)[0])
    assert (values[0] > values[1]).all()
    assert (values[1] > values[2]).all()
    np.testing.assert_allclose(values[2], value_only, rtol=0.02)


def test_the_gradient_is_that_of_differences():
    belief, optimizer = context(2, 6)
    surface = DiscretizedDerivativeKG.over(belief, initial_discretization(belief, optimizer)).surface()
    U = np.random.default_rng(5).uniform(0.1, 0.9, (8, 2))
    value, slope = surface(U, True)
    np.testing.assert_array_equal(value, surface(U, False)[0])
    expected = gradients_of(lambda X: surface(X, False)[0], U, step=1e-6)
    np.testing.assert_allclose(slope, expected, atol=0.01 * np.abs(expected).max())


KINDS = st.Space(kind=st.Choice("a", "b", "c"), extra=st.Float(0, 1, when={"kind": "b"}))


@pytest.mark.parametrize("pending", [False, True])
def test_an_inactive_parameter_reports_no_derivative(pending):
    """With kinds "a" and "c" there is no ``extra``, so that it does not matter how exact the derivatives by it are. Trials of
    kind "b" report them, and there it matters.
    """
    study = st.Study(KINDS)
    for x in (0.1, 0.5, 0.8):
        study.add({"kind": "b", "extra": x}, waves({"x": x}), gradient={"extra": wave_gradient({"x": x})["x"]}, cost=1.0)
    study.add({"kind": "a"}, 0.9, cost=1.0)
    belief, encoding, _ = belief_of(study, st.GP(output="standard"))
    assert len(belief.gradient_columns) == 1
    if pending:
        point = KINDS.encode({"kind": "a"})[None, :]
        belief = dataclasses.replace(with_pending(belief, encoding.features(point)), pending_at_target=point)
    P = KINDS.snap(np.random.default_rng(0).random((50, 2)))
    U = np.array([KINDS.encode(config) for config in ({"kind": "c"}, {"kind": "b", "extra": 0.95})])
    exact, vague = (
        DiscretizedDerivativeKG.over(dataclasses.replace(belief, gradient_noise_share=share), P).sampled()(U)
        for share in (1e-4, 1e4)
    )
    assert exact[0] == pytest.approx(vague[0], rel=1e-6)
    assert exact[1] > vague[1] + 0.01


def test_small_gains_are_worth_what_they_are():
    """Against 200,000 draws: the 64 samples of the estimate show 6 % and 14 % of these gains."""
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
    study, rng = st.Study(space, st.CFDKG(), seed=1, stop=None), np.random.default_rng(1)
    for u in rng.random((12, 3)):
        x, y, off = u[0], u[1], 0.3 * (1 - u[2])
        value = float(np.sin(5 * x + off) + np.cos(4 * y - off) + 0.1 * rng.standard_normal())
        slopes = {"x": 5 * np.cos(5 * x + off), "y": -4 * np.sin(4 * y - off)}
        noisy = {name: float(slope + 0.3 * rng.standard_normal()) for name, slope in slopes.items()}
        study.add(space.decode(u), value, cost=1.0, gradient=noisy)
    context = study.context
    belief = context.belief(costs=False)
    kg = DiscretizedDerivativeKG.over(belief, initial_discretization(belief, context.optimizer()))
    U = np.random.default_rng(7).random((10, 3))[[0, 5]]
    encoding = belief.encoding
    Z, P, G = (encoding.features(points) for points in (U, kg.points, space.at_target(U)))
    seen = GradientObservation(belief.objective, belief.gradient_columns, belief.gradient_noise_share)
    sigma, own = seen.sigma_tilde(Z, P, G)
    draws = np.random.default_rng(0).standard_normal((100_000, sigma.shape[2]))
    draws = np.vstack([draws, -draws])
    for n, found in enumerate(np.exp(kg.surface()(U, False)[0])):
        mean = np.append(belief.objective.mean_at(P), belief.objective.mean_at(G[n : n + 1]))
        after = np.full(len(draws), np.inf)
        for a, b in zip(mean, np.vstack([sigma[n], own[n]]), strict=True):
            np.minimum(after, a + draws @ b, out=after)
        base = int(np.argmin(mean))
        stays = mean[base] + draws @ np.vstack([sigma[n], own[n]])[base]
        assert found == pytest.approx((stays - after).mean(), rel=0.15)
