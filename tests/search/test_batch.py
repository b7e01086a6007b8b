import dataclasses
import math
import pickle
import time

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.kg_fidelity import batch_member_surface
from shoestring.acquisition.knowledge_gradient import DiscretizedKG, PendingFantasies, initial_discretization, pending_surface
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.errors import MethodError
from shoestring.search.batch import as_batch_member
from tests.differences import gradients_of
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study


def waves(config):
    return sum(math.sin(5 * value + i) for i, value in enumerate(config.values()))


def waiting(count=2, seed=0):
    """A belief with pending trials, and a discretization."""
    study = told_study(plane(2), waves, 14, seed=seed, method=st.EI())
    for _ in range(count):
        study.ask()
    belief, encoding, seen = belief_of(study)
    optimizer = AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, seen.U[seen.order[:5]])
    return belief, initial_discretization(belief, optimizer)


@pytest.mark.parametrize("method", [st.EI(), st.Gittins(), st.Random(), "auto"], ids=repr)
def test_asking_for_many_is_asking_again_and_again(method):
    one, many = (told_study(mixed_space(), mixed_value, 12, method=method) for _ in range(2))
    assert [trial.config for trial in many.ask_many(3)] == [one.ask().config for _ in range(3)]


def test_enqueued_configs_come_first():
    study = told_study(plane(1), bowl, 9, method=st.EI())
    study.enqueue({"x0": 0.25})
    trials = study.ask_many(3)
    assert trials[0].config == {"x0": 0.25}
    assert len({trial.config["x0"] for trial in trials}) == 3
    assert [trial.number for trial in trials] == [9, 10, 11]


def test_a_batch_by_the_knowledge_gradient_is_worth_more_than_its_first_point_repeated_nearby():
    study = told_study(plane(2), waves, 14, method=st.KG())
    trials = study.ask_many(3)
    points = np.array([list(trial.config.values()) for trial in trials])
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)[np.triu_indices(3, 1)]
    assert (apart > 1e-3).all()


def test_the_start_of_a_study_can_be_asked_for_at_once():
    study = st.Study(plane(2), method=st.KG(), seed=0)
    assert len({tuple(trial.config.values()) for trial in study.ask_many(8)}) == 8


def test_scenario_means_are_those_of_conditioning():
    belief, _ = waiting()
    fantasies = PendingFantasies.of(belief)
    X = np.random.default_rng(0).random((6, 2))
    settled = belief.without_pending
    covariance = settled.covariance(belief.pending) + settled.noise * np.eye(len(belief.pending))
    for s, weights in enumerate(fantasies.weights):
        outcome = settled.mean_at(belief.pending) + covariance @ weights
        np.testing.assert_allclose(fantasies.means(X)[:, s], settled.condition(belief.pending, outcome).mean_at(X), atol=1e-8)
    np.testing.assert_allclose(fantasies.weights.mean(axis=0), 0.0, atol=1e-9)


def test_the_value_is_the_average_over_scenarios_by_brute_force():
    belief, points = waiting()
    surface = pending_surface(belief, points)
    fantasies = PendingFantasies.of(belief)
    U = np.random.default_rng(2).random((4, 2))
    covariance = belief.without_pending.covariance(belief.pending) + belief.without_pending.noise * np.eye(len(belief.pending))
    values = []
    for weights in fantasies.weights:
        outcome = belief.without_pending.mean_at(belief.pending) + covariance @ weights
        objective = belief.without_pending.condition(belief.pending, outcome)
        there = dataclasses.replace(belief, objective=objective, pending=belief.pending[:0])
        values.append(np.exp(DiscretizedKG.over(there, points).surface()(U, False)[0]))
    np.testing.assert_allclose(np.exp(surface(U, False)[0]), np.mean(values, axis=0), rtol=1e-3)


def test_gradients_are_those_of_differences():
    belief, points = waiting()
    surface = pending_surface(belief, points)
    U = np.random.default_rng(3).uniform(0.1, 0.9, (5, 2))
    value, slope = surface(U, True)
    np.testing.assert_allclose(value, surface(U, False)[0])
    expected = gradients_of(lambda X: surface(X, False)[0], U, step=1e-6)
    np.testing.assert_allclose(slope, expected, atol=3e-3 * np.abs(expected).max())


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_bad_counts(count):
    with pytest.raises(MethodError, match="count"):
        st.Study(plane(1)).ask_many(count)


def test_a_member_of_a_batch_is_valued_by_the_maximum_of_the_costs():
    """Equation 3.4: what costs less than the most expensive other member is free, what costs more sets the price of all."""
    gain, cost = 0.3, 2.0
    cheap_and_dear = np.array([0.5, 8.0])
    found, _ = batch_member_surface(
        lambda U, gradient: (np.log(np.array([0.1, 0.7])), None), lambda U, gradient: (-np.log(cheap_and_dear), None), gain, cost
    )(np.zeros((2, 1)), False)
    np.testing.assert_allclose(np.exp(found), [(0.3 + 0.1) / 2.0, (0.3 + 0.7) / 8.0])


@pytest.mark.parametrize("costs", ["unknown", "known"])
def test_a_batch_by_max_is_one_by_max_while_no_costs_are_known_too(costs):
    """The second member may use what the first one costs: its fidelity need not be lower. By the sum it would be."""
    space = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
    model = {} if costs == "unknown" else {"cost_model": st.KnownCost(lambda config: 0.01 + config["s"])}
    study = st.Study(space, st.CFKG(), seed=0, stop=None, initial=5, **model)
    for x, s in np.random.default_rng(0).random((6, 2)):
        cost = {} if costs == "unknown" else {"cost": 0.01 + s}
        study.add({"x": float(x), "s": float(s)}, (x - 0.3 - 0.3 * (1 - s)) ** 2, **cost)
    context = study.context
    first = study.suggester.method.suggest(context)
    assert (first.cost is None) == (costs == "unknown")
    member = as_batch_member(study.suggester.method, [first], context)
    gain, cost = member.acquisition.others
    assert gain == pytest.approx(math.exp(first.model["log_gain"]))
    assert cost == pytest.approx(0.01 + first.config["s"], rel=1e-6)
    belief = context.belief(costs=costs == "known")
    U = space.snap(np.random.default_rng(0).random((5, 2)))
    log_kg = DiscretizedKG.over(belief, space.at_target(U)).surface()
    by_hand = np.logaddexp(math.log(gain), log_kg(U, False)[0]) - np.log(np.maximum(cost, 0.01 + U[:, 1]))
    np.testing.assert_allclose(member.acquisition.cost_weighted(log_kg, belief)(U, False)[0], by_hand, rtol=1e-6)


def test_trials_of_a_batch_that_are_evaluated_one_after_the_other_are_charged_for_their_own_time():
    study = st.Study(st.Space(x=st.Float(0, 1)), seed=0, stop=None)
    for trial in study.ask_many(3):
        time.sleep(0.02)
        study.tell(trial, trial.config["x"])
    assert all(0.02 <= trial.cost < 0.04 for trial in study.history)
    batch = study.ask_many(2)
    numbers = [trial.number for trial in batch]  # whoever evaluates them at the same time takes them all first
    time.sleep(0.02)
    for number in numbers:
        study.tell(number, 1.0)
    assert all(trial.cost >= 0.02 for trial in study.history[3:])
    assert type(pickle.loads(pickle.dumps(batch))) is list
