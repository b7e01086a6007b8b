"""StochasticKG and the references of the knowledge gradient: against each other, against differences, on every kind of space."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import shoestring as st
from shoestring.acquisition.kg_stochastic import BatchKG, BatchKGPerCost
from shoestring.cost.base import expected_log_cost
from shoestring.surrogate.belief import fit_cost
from tests.degenerate import VALUES, assert_a_new_point, assert_duplicates_do_not_matter
from tests.differences import gradient_of
from tests.information import line, wavy
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study
from tests.reference.kg_by_a_million_draws import drawn_from_the_model, kg_by_a_million_draws
from tests.reference.knowledge_by_sampling import knowledge_gradient_by_sampling, lowest_mean

QUICK = st.StochasticKG(samples=4, steps=6, starts=2)
FIDELITY = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), s=st.Fidelity(0.1, 1.0))


class Quantiles:
    """In the place of a random generator: outcomes at evenly spaced quantiles, so that averages have next to no error."""

    def __init__(self, count):
        self.left = iter(ndtri((np.arange(count) + 0.5) / count))

    def random(self, count):
        return np.full(count, 0.5)

    def standard_normal(self, count):
        return np.array([next(self.left) for _ in range(count)])


def by_fidelity(config):
    return (config["x"] - 0.3) ** 2 + config["y"] + 0.2 * (1 - config["s"]) * config["x"]


@functools.cache
def with_fidelities(costs=True):
    """A belief after trials at various fidelities, whose cost is proportional to the fidelity."""
    study = st.Study(FIDELITY, seed=0)
    for x, y, s in np.random.default_rng(0).random((14, 3)):
        config = {"x": x, "y": y, "s": 1.0 if s > 0.7 else 0.1 + 0.9 * s}
        study.add(config, by_fidelity(config), cost=10 * config["s"])
    belief, encoding, seen = belief_of(study)
    if not costs:
        return belief
    return replace(belief, cost=fit_cost(seen, encoding, st.LinearCost()), median_log_cost=float(np.median(seen.log_cost)))


@pytest.mark.parametrize("case", [(1, 4, 1e-3, 0.3), pytest.param((2, 8, 0.05, 0.4), marks=pytest.mark.slow)], ids=str)
def test_all_three_references_agree(case):
    belief, optimizer = drawn_from_the_model(*case, 0)
    u = st.KG().select(belief, optimizer).u
    truth, _, gap = kg_by_a_million_draws(belief, u)
    assert gap < 1e-3 * truth
    value, error = knowledge_gradient_by_sampling(belief, u, 100, np.random.default_rng(0))
    assert abs(value - truth) < 4 * error
    assert knowledge_gradient_by_sampling(belief, u, 100, Quantiles(100))[0] == pytest.approx(truth, rel=0.02)
    W = ndtri((np.arange(200) + 0.5) / 200)[:, None]
    drops, _ = BatchKG.of(belief, np.random.default_rng(0)).drops(u[None, :], W)
    assert (drops >= 0.0).all()
    assert drops.mean() == pytest.approx(truth, rel=0.02)


def test_the_value_of_a_batch_is_that_of_observing_it():
    """Two outcomes drawn, the posterior conditioned on both, its mean minimised: the definition (3.4)."""
    belief, _ = line(5, 0.02, 3)
    batch = np.array([[0.15], [0.7]])
    rng = np.random.default_rng(0)
    posterior, Z = belief.objective, belief.encoding.features(batch)
    factor = np.linalg.cholesky(posterior.covariance(Z) + posterior.noise * np.eye(2))
    W = rng.standard_normal((80, 2))
    starts = np.linspace(0, 1, 201)[:, None]
    now = lowest_mean(posterior, belief.encoding, starts)
    after = [lowest_mean(posterior.condition(Z, posterior.mean_at(Z) + factor @ w), belief.encoding, starts) for w in W]
    kg = BatchKG.of(belief, rng)
    drops, _ = kg.drops(batch, W)
    control = posterior.covariance(belief.encoding.features(kg.points[:1]), Z) @ np.linalg.solve(factor.T, W.T)
    np.testing.assert_allclose(drops, now + control[0] - np.array(after), atol=1e-5)


@pytest.mark.parametrize("q", [1, 2, 4])
def test_the_gradient_with_the_same_draws_is_that_of_differences(q):
    for belief in (wavy(3, noise=0.01)[0], with_fidelities(costs=False)):
        kg, rng = BatchKG.of(belief, np.random.default_rng(0)), np.random.default_rng(1)
        W, U = rng.standard_normal((6, q)), rng.uniform(0.1, 0.9, (q, 3))
        _, minimisers = kg.drops(U, W)
        slope = kg.gradient(U, W, minimisers)

        def value(flat, kg=kg, W=W, q=q):
            return float(kg.drops(flat.reshape(q, 3), W)[0].mean())

        expected = gradient_of(value, U.ravel(), step=1e-5).reshape(q, 3)
        np.testing.assert_allclose(slope, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("q", [1, 3])
def test_the_cost_of_a_batch_is_that_of_its_most_expensive_point(q):
    belief = with_fidelities()
    kg, rng = BatchKGPerCost.under(belief, [belief], np.random.default_rng(0)), np.random.default_rng(1)
    W, U = rng.standard_normal((8, q)), rng.uniform(0.2, 0.9, (q, 3))
    value, slope = kg.estimate_with_gradient(U, W)
    cost = np.exp(expected_log_cost(belief.cost, U)).max() / math.exp(belief.median_log_cost)
    assert value == pytest.approx(kg.parts[0].drops(U, W)[0].mean() / cost)
    assert value == pytest.approx(kg.estimate(U, W))
    expected = gradient_of(lambda flat: kg.estimate(flat.reshape(q, 3), W), U.ravel(), step=1e-5).reshape(q, 3)
    np.testing.assert_allclose(slope, expected, atol=2e-3 * np.abs(expected).max())


def test_minimisers_lie_at_the_target_fidelity():
    belief = with_fidelities()
    kg = BatchKG.of(belief, np.random.default_rng(0))
    _, minimisers = kg.drops(np.array([[0.4, 0.5, 0.2]]), np.linspace(-2, 2, 9)[:, None])
    np.testing.assert_array_equal(minimisers, FIDELITY.at_target(minimisers))


def test_the_surface_is_a_logarithm_with_its_gradient():
    belief, _ = wavy(2, noise=0.01)
    surface = st.StochasticKG(samples=8).surface(belief, np.random.default_rng(0))
    U = np.random.default_rng(1).uniform(0.1, 0.9, (3, 2))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    for u, mine in zip(U, slope, strict=True):
        expected = gradient_of(lambda x: surface(x[None, :], False)[0][0], u, step=1e-5)
        np.testing.assert_allclose(mine, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.slow
def test_ascent_finds_a_point_nearly_as_good_as_the_best():
    belief, optimizer = drawn_from_the_model(2, 8, 0.01, 0.4, 1)
    chosen = st.StochasticKG().select(belief, optimizer).u
    fast = st.KG().select(belief, optimizer).u
    assert kg_by_a_million_draws(belief, chosen)[0] >= 0.9 * kg_by_a_million_draws(belief, fast)[0]


def test_low_fidelities_are_chosen_where_they_are_cheap():
    """A low fidelity that says nearly all at a tenth of the cost is preferred; without costs the target is no worse."""
    study = st.Study(FIDELITY, method=st.StochasticKG(samples=8, steps=15, starts=3), initial=4, seed=0)
    for x, y, s in np.random.default_rng(0).random((12, 3)):
        config = {"x": x, "y": y, "s": 1.0 if s > 0.6 else 0.1 + s}
        study.add(config, by_fidelity(config), cost=10 * config["s"])
    assert study.ask().config["s"] < 0.6


def test_a_plan_of_several_points_is_asked_one_after_the_other():
    study = told_study(plane(2), bowl, 10, method=st.StochasticKG(q=3, samples=4, steps=4, starts=2))
    asked = [study.ask() for _ in range(3)]
    assert [len(trial.suggestion["model"].get("plan", [])) for trial in asked] == [2, 1, 0]
    assert len({tuple(trial.config.values()) for trial in asked}) == 3
    planned = asked[0].suggestion["model"]["plan"]
    np.testing.assert_allclose([list(trial.config.values()) for trial in asked[1:]], planned)
    study.tell(asked[0], 0.5)
    assert "plan" in study.ask().suggestion["model"]  # something is known that was not: a new plan


@pytest.mark.parametrize("space", [mixed_space(), st.Space(n=st.Int(1, 9), c=st.Choice("a", "b"))], ids=["mixed", "finite"])
def test_it_runs_on_mixed_conditional_and_finite_spaces(space):
    value = mixed_value if "rate" in space else lambda config: config["n"] + (config["c"] == "a")
    result = st.minimize(value, space, budget=9, method=QUICK, seed=0, initial=7)
    assert len({space.key(trial.config) for trial in result.history}) == 9


def test_a_finite_space_is_searched_to_its_end():
    result = st.minimize(lambda config: config["n"], st.Space(n=st.Int(1, 7)), budget=20, method=QUICK, seed=0)
    assert len(result.history) == 7


def test_failures_and_hyperparameter_samples():
    study = told_study(
        plane(2), bowl, 12, error_where=lambda config: config["x0"] > 0.7, method=QUICK, model=st.GP(inference="mcmc", sets=2)
    )
    assert study.ask().config["x0"] < 0.9


BOTH = pytest.mark.parametrize("method", [QUICK, st.KG()], ids=["StochasticKG", "KG"])


@BOTH
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_degenerate_data_give_a_point_that_is_new(method, values):
    assert_a_new_point(method, values, 1e-6)


@BOTH
def test_duplicates_without_noise(method):
    assert_duplicates_do_not_matter(method)


@BOTH
@pytest.mark.parametrize("noise", [1e-10, 0.05])
def test_a_saturated_posterior_is_finite_with_a_finite_slope(method, noise):
    belief, optimizer = line(60, noise, 0, length=0.5)
    U = np.vstack([np.linspace(0, 1, 12)[:, None], belief.evaluated[:2]])
    value, slope = method.surface(belief, np.random.default_rng(0))(U, True)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    u = method.select(belief, optimizer).u
    assert 0 <= u[0] <= 1
    assert np.abs(belief.evaluated - u).min() > 0


def test_bad_options_are_refused():
    for options in ({"q": 0}, {"samples": 2.5}, {"steps": True}, {"starts": 0}):
        with pytest.raises(st.MethodError, match="StochasticKG"):
            st.StochasticKG(**options)
