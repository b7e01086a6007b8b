"""d-KG: the value of a value with its slopes, against Monte Carlo with full conditioning on every outcome."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

import shoestring as st
from shoestring.acquisition import kg_gradient as sloped_knowledge
from shoestring.acquisition.kg_gradient import SlopedLookAhead, Told, normals
from shoestring.acquisition.knowledge_gradient import LookAhead, minima
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.gradient_data import gradient_noise
from tests.differences import gradients_of
from tests.gradient_problems import study_with_gradients, wave_gradient, waves
from tests.problems import belief_of, plane

DRAWS = 100_000


def context(dimensions, count, seed=0, share=None):
    study = study_with_gradients(plane(dimensions), waves, wave_gradient, count, seed=seed)
    belief, encoding, seen = belief_of(study, st.GP(output="standard"))
    belief = belief if share is None else dataclasses.replace(belief, gradient_noise_share=share)
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


def with_running(belief, waiting):
    """The belief while trials run at features ``waiting``."""
    objective = belief.objective.condition(waiting, belief.objective.mean_at(waiting))
    return dataclasses.replace(belief, without_pending=belief.objective, pending=waiting, objective=objective)


def grid_of(dimensions):
    axis = np.linspace(0, 1, 201 if dimensions == 1 else 25)
    return np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)


def after(posterior, belief, Z, outcomes):
    """The posterior once trials at Z have told values and slopes."""
    values, slopes = Told(posterior, belief.gradient_columns, belief.gradient_noise_share).parts(Z)
    noise = gradient_noise(posterior.kernel, belief.gradient_noise_share, slopes)
    known = posterior.condition_on(values, outcomes[: len(values)], np.full(len(values), posterior.noise))
    return known.condition_on(slopes, outcomes[len(values) :], noise)


def values_batches(posterior, belief, Z):
    """Mean and factor of the covariance of what trials at Z tell."""
    values, slopes = parts = Told(posterior, belief.gradient_columns, belief.gradient_noise_share).parts(Z)
    S = np.block([[posterior.covariance_of(one, other) for other in parts] for one in parts])
    noise = gradient_noise(posterior.kernel, belief.gradient_noise_share, slopes)
    S += np.diag(np.concatenate([np.full(len(values), posterior.noise), noise]))
    return np.concatenate([posterior.expected(part) for part in parts]), np.linalg.cholesky(S)


def moved_means(posterior, belief, Z, grid):
    """The means over the grid after the expected outcome at Z, and what each standard normal of the outcome adds to them: the
    mean is linear in the outcome.
    """
    mean, factor = values_batches(posterior, belief, Z)
    still = after(posterior, belief, Z, mean).mean_at(grid)
    return still, np.array([after(posterior, belief, Z, mean + column).mean_at(grid) - still for column in factor.T])


def by_monte_carlo(belief, u, grid):
    """E[min before] - E[min after]: before what x tells, and after it; running trials tell first."""
    posterior, rng, before, total = belief.without_pending, np.random.default_rng(0), 0.0, 0.0
    waiting = belief.pending if len(belief.pending) else np.empty((0, len(u)))
    first = len(waiting) * (1 + len(belief.gradient_columns))
    if first:
        still, steps = moved_means(posterior, belief, waiting, grid)
        posterior = after(posterior, belief, waiting, values_batches(posterior, belief, waiting)[0])
    else:
        still, steps = posterior.mean_at(grid), np.empty((0, len(grid)))
    _, own = moved_means(posterior, belief, u[None, :], grid)
    for _ in range(DRAWS // 2000):
        w = rng.standard_normal((1000, first + len(own)))
        for each in (w, -w):
            now = still + each[:, :first] @ steps
            before += now.min(axis=1).sum()
            total += (now + each[:, first:] @ own).min(axis=1).sum()
    return (before - total) / DRAWS


@pytest.fixture
def many_outcomes(monkeypatch):
    """In place of the few that a search has time for."""

    def sobol(dimensions):
        half = ndtri(qmc.Sobol(dimensions, rng=np.random.default_rng(0)).random(2**13))
        return np.vstack([half, -half])

    monkeypatch.setattr(sloped_knowledge, "normals", sobol)


CASES = [(1, 3, 0, None), (1, 3, 2, 0.3), (2, 4, 2, None), (2, 5, 0, 0.1)]


def truths(dimensions, count, seed, share):
    """A belief, points and their d-KG where it is not too small to be measured."""
    belief, _ = context(dimensions, count, seed, share)
    grid, U = grid_of(dimensions), np.random.default_rng([seed, 1]).random((7, dimensions))
    found = np.array([by_monte_carlo(belief, u, np.vstack([grid, u])) for u in U])
    return belief, grid, U[found > 0.01], found[found > 0.01]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_with_many_outcomes_the_value_is_that_of_monte_carlo(case, many_outcomes):
    belief, grid, U, truth = truths(*case)
    assert len(U) >= 2
    ahead = SlopedLookAhead.over(belief, grid)
    found = np.exp(np.concatenate([ahead.sampled()(u[None, :]) for u in U]))
    np.testing.assert_allclose(found, truth, rtol=0.03)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_with_few_outcomes_it_is_near_it(case):
    belief, grid, U, truth = truths(*case)
    found = np.exp(SlopedLookAhead.over(belief, grid).sampled()(U))
    worth = truth > 0.2 * truth.max()
    np.testing.assert_allclose(found[worth], truth[worth], rtol=0.2)


@pytest.mark.parametrize("dimensions", [2, 3, 4, 11, 60])
def test_imagined_outcomes_have_the_moments_of_a_standard_normal(dimensions):
    w = normals(dimensions)
    np.testing.assert_allclose(w.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(w.T @ w / len(w), np.eye(dimensions), atol=1e-9)


RUNNING = {
    "line": ([[0.2], [0.5]], [[0.65], [0.8], [0.95]]),
    "plane": ([[0.63, 0.9], [0.78, 0.23]], [[0.87, 0.39], [0.81, 0.42]]),
}


@pytest.mark.parametrize(("waiting", "U"), list(RUNNING.values()), ids=list(RUNNING))
def test_while_trials_run_their_outcomes_come_first(waiting, U, many_outcomes):
    dimensions = len(waiting[0])
    belief = with_running(context(dimensions, 2 + dimensions)[0], np.array(waiting))
    grid, U = grid_of(dimensions), np.array(U)
    ahead = SlopedLookAhead.over(belief, grid)
    found = np.exp(np.concatenate([ahead.sampled()(u[None, :]) for u in U]))
    truth = np.array([by_monte_carlo(belief, u, np.vstack([grid, u])) for u in U])
    assert (truth > 0.01).all()
    np.testing.assert_allclose(found, truth, rtol=0.03)


@pytest.mark.parametrize("running", [0, 1])
def test_slopes_are_never_worth_less_than_nothing(running):
    belief, optimizer = context(2, 6)
    if running:
        belief = with_running(belief, np.array([[0.3, 0.8]]))
    points, U = minima(belief, optimizer), np.random.default_rng(3).random((40, 2))
    alone, sloped = (kind.over(belief, points).surface()(U, False)[0] for kind in (LookAhead, SlopedLookAhead))
    assert (sloped >= alone).all()
    matters = sloped > -15.0  # elsewhere there is next to nothing to be learnt, by value or slope
    assert matters.sum() >= 5
    assert (sloped > alone + 0.05)[matters].mean() > 0.3


def test_the_noisier_slopes_are_the_less_they_are_worth(many_outcomes):
    U, values = np.random.default_rng(4).random((4, 1)), []
    for share in (1e-4, 0.5, 1e6):
        belief, _ = context(1, 3, share=share)
        values.append(np.exp(SlopedLookAhead.over(belief, grid_of(1)).sampled()(U)))
    alone = np.exp(LookAhead.over(belief, grid_of(1)).surface()(U, False)[0])
    assert (values[0] > values[1]).all()
    assert (values[1] > values[2]).all()
    np.testing.assert_allclose(values[2], alone, rtol=0.02)


def test_the_gradient_is_that_of_differences():
    belief, optimizer = context(2, 6)
    surface = SlopedLookAhead.over(belief, minima(belief, optimizer)).surface()
    U = np.random.default_rng(5).uniform(0.1, 0.9, (8, 2))
    value, slope = surface(U, True)
    np.testing.assert_array_equal(value, surface(U, False)[0])
    expected = gradients_of(lambda X: surface(X, False)[0], U, step=1e-6)
    np.testing.assert_allclose(slope, expected, atol=0.01 * np.abs(expected).max())


KINDS = st.Space(kind=st.Choice("a", "b", "c"), extra=st.Float(0, 1, when={"kind": "b"}))


@pytest.mark.parametrize("running", [False, True])
def test_what_is_not_active_tells_no_slope(running):
    """With kinds "a" and "c" there is no ``extra``, so that it does not matter how exact the slopes by it are. Trials of kind "b"
    tell them, and there it matters.
    """
    study = st.Study(KINDS)
    for x in (0.1, 0.5, 0.8):
        study.add({"kind": "b", "extra": x}, waves({"x": x}), gradient={"extra": wave_gradient({"x": x})["x"]}, cost=1.0)
    study.add({"kind": "a"}, 0.9, cost=1.0)
    belief, encoding, _ = belief_of(study, st.GP(output="standard"))
    assert len(belief.gradient_columns) == 1
    if running:
        waiting = KINDS.encode({"kind": "a"})[None, :]
        belief = dataclasses.replace(with_running(belief, encoding.features(waiting)), pending_at_target=waiting)
    P = KINDS.snap(np.random.default_rng(0).random((50, 2)))
    U = np.array([KINDS.encode(config) for config in ({"kind": "c"}, {"kind": "b", "extra": 0.95})])
    exact, vague = (
        SlopedLookAhead.over(dataclasses.replace(belief, gradient_noise_share=share), P).sampled()(U) for share in (1e-4, 1e4)
    )
    assert exact[0] == pytest.approx(vague[0], rel=1e-6)
    assert exact[1] > vague[1] + 0.01
