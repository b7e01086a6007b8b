import dataclasses
import functools
import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.knowledge_gradient import KG, DiscretizedKG, fantasy_minimisers, initial_discretization
from shoestring.acquisition.optimize.candidates import is_visited, unique_points
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.surrogate.posterior import CrossCovariance
from tests.differences import gradients_of
from tests.information import waves
from tests.problems import belief_of, mixed_space, mixed_value, plane, told_study
from tests.reference.accurate_kg import accurate_log_kg


@functools.cache
def fitted(dimensions, count):
    return belief_of(told_study(plane(dimensions), waves, count))


def context(dimensions, count=None, noise=None):
    """A belief about waves, and an optimizer."""
    belief, encoding, seen = fitted(dimensions, count or 6 + 6 * dimensions)
    if noise is not None:
        belief = dataclasses.replace(belief, objective=dataclasses.replace(belief.objective, noise=noise))
    return belief, AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])


def by_brute_force(belief, u, grid):
    """KG by quadrature over the outcome, each future mean minimised over a grid: nothing shared with the code."""
    posterior, encoding = belief.objective, belief.encoding
    G, x = encoding.features(grid), encoding.features(u[None, :])
    mean = posterior.mean_at(G)
    step = posterior.covariance(G, x)[:, 0] / math.sqrt(posterior.mean_and_variance(x)[1][0] + posterior.noise)
    w = np.linspace(-7, 7, 1401)
    lowest = np.array([(mean + step * z).min() for z in w])
    density = np.exp(-0.5 * w * w) / math.sqrt(2 * math.pi)
    return mean.min() - np.trapezoid(lowest * density, w)


@pytest.mark.parametrize(("dimensions", "noise"), [
    (1, None), (2, 0.1), pytest.param(1, 0.1, marks=pytest.mark.slow), pytest.param(2, None, marks=pytest.mark.slow),
])  # fmt: skip
def test_the_value_at_the_chosen_point_is_that_of_brute_force(dimensions, noise):
    belief, optimizer = context(dimensions, noise=noise)
    u = KG().select(belief, optimizer).u
    axis = np.linspace(0, 1, 4001 if dimensions == 1 else 161)
    grid = np.stack(np.meshgrid(*[axis] * dimensions), axis=-1).reshape(-1, dimensions)
    truth = by_brute_force(belief, u, grid)
    found = math.exp(accurate_log_kg(belief, optimizer, u[None, :])[0])
    assert found == pytest.approx(truth, rel=0.01)
    others = np.random.default_rng(0).random((20, dimensions))
    assert truth >= 0.97 * max(by_brute_force(belief, other, grid[::7]) for other in others)


@pytest.mark.parametrize("dimensions", [1, 3, 6])
def test_gradients_are_those_of_differences(dimensions):
    belief, optimizer = context(dimensions, count=4 + 4 * dimensions, noise=1e-3)
    surface = DiscretizedKG.over(belief, initial_discretization(belief, optimizer)).surface()
    U = np.random.default_rng(0).uniform(0.05, 0.95, (6, dimensions))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    expected = gradients_of(lambda points: surface(points, False)[0], U, step=1e-5)
    np.testing.assert_allclose(slope, expected, atol=2e-3 * np.abs(expected).max())


def test_cross_covariances_and_their_gradients():
    belief, _ = context(3)
    rng = np.random.default_rng(0)
    P, X, weights = rng.random((4, 3)), rng.random((5, 3)), rng.normal(size=(5, 4))
    cross = CrossCovariance.between(belief.objective, P)
    np.testing.assert_allclose(cross.covariance(X), belief.objective.covariance(X, P), atol=1e-10)
    expected = gradients_of(lambda points: np.einsum("ij,ij->i", weights, cross.covariance(points)), X)
    np.testing.assert_allclose(cross.pull_back(X, weights), expected, atol=1e-6)


def test_minimisers_of_fantasies_are_not_above_what_they_started_from():
    """A finer discretization can only raise KG."""
    belief, optimizer = context(2)
    rough = DiscretizedKG.over(belief, initial_discretization(belief, optimizer))
    x = np.array([[0.9, 0.1]])
    fine = rough.extended(fantasy_minimisers(rough, x))
    assert fine.surface()(x, False)[0][0] >= rough.surface()(x, False)[0][0] - 1e-9


@pytest.mark.parametrize("space", [mixed_space(), st.Space(n=st.Int(1, 9), c=st.Choice("a", "b"))], ids=["mixed", "finite"])
def test_it_runs_on_mixed_conditional_and_finite_spaces(space):
    value = mixed_value if "rate" in space else lambda config: config["n"] + (config["c"] == "a")
    result = st.minimize(value, space, budget=10, method=st.KG(), seed=0, initial=6)
    assert len({space.key(trial.config) for trial in result.history}) == 10


def test_failed_and_pending_trials():
    study = told_study(plane(2), waves, 12, error_where=lambda config: config["x0"] > 0.8, method=st.KG())
    asked = [study.ask() for _ in range(3)]
    assert len({tuple(trial.config.values()) for trial in asked}) == 3


@pytest.mark.parametrize(
    "values",
    [[1.0], [1.0, 1.0, 1.0, 1.0], [1e300, 1.0, 2.0], [0.0] * 12, list(range(12))],
    ids=["one", "constant", "huge", "zeros", "line"],
)
def test_degenerate_cases_give_a_point(values):
    """The last trials were suggested by KG itself."""
    study = st.Study(plane(2), method=st.KG(), initial=max(1, len(values) - 3), seed=0)
    for value in values:
        study.tell(study.ask(), float(value))
    config = study.ask().config
    assert all(0 <= x <= 1 for x in config.values())


def test_duplicates_without_noise():
    study = st.Study(plane(1), method=st.KG(), initial=1, seed=0)
    for _ in range(4):
        study.add({"x0": 0.5}, 1.0, cost=1.0)
    study.add({"x0": 0.2}, 0.5, cost=1.0)
    assert study.ask().config["x0"] not in (0.5, 0.2)


def test_unique_points_keep_their_order():
    points = np.array([[0.5], [0.1], [0.5], [0.9], [0.1 + 1e-12]])
    np.testing.assert_array_equal(unique_points(points)[:, 0], [0.5, 0.1, 0.9])


@pytest.mark.slow
def test_with_noise_its_recommendation_is_no_worse_than_eis():
    """Waves with noise: the true value of what is recommended. Over 60 seeds the means are 0.10 with KG and 0.13 with EI."""
    space, regrets = plane(2), []
    for seed in range(20):
        row = []
        for method in (st.KG(), st.EI()):
            rng = np.random.default_rng([seed, 7])
            study = st.Study(space, method=method, seed=seed)
            result = study.minimize(lambda config, rng=rng: waves(config) + 0.5 * rng.normal(), budget=30)
            row.append(waves(result.recommended.config) + 2.0)
        regrets.append(row)
    kg, ei = np.array(regrets).T
    assert kg.mean() < 1.1 * ei.mean()
    assert np.median(kg) < 1.1 * np.median(ei)


def assert_the_choice_is_the_best_of_all_points(levels, trials):
    """On a grid, against the accurate value at every unvisited point."""
    space = st.Space(a=st.Int(0, levels - 1), b=st.Int(0, levels - 1))
    best = (0.75 * (levels - 1), 0.65 * (levels - 1))
    study = told_study(space, lambda config: (config["a"] - best[0]) ** 2 + (config["b"] - best[1]) ** 2 / 2, trials)
    belief, encoding, seen = belief_of(study)
    optimizer = AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])
    left = space.grid()[~is_visited(space.grid(), seen.visited)]
    values = np.exp(accurate_log_kg(belief, optimizer, left))
    chosen = np.exp(accurate_log_kg(belief, optimizer, KG().select(belief, optimizer).u[None, :]))[0]
    assert chosen >= 0.95 * values.max()


@pytest.mark.slow
def test_on_a_small_grid_the_choice_is_the_best_of_all_points():
    assert_the_choice_is_the_best_of_all_points(levels=4, trials=6)


@pytest.mark.slow
def test_on_a_larger_grid_the_choice_is_the_best_of_all_points():
    assert_the_choice_is_the_best_of_all_points(levels=10, trials=12)
