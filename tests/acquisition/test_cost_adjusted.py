"""Cost-adjusted EI: EI where there is much to gain, weighed by cost where there is little."""

import dataclasses
import functools
import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.cost_adjusted import EARLY_TRIALS, FIRST_COSTS, adjusted
from shoestring.acquisition.improvement import LogEI
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.cost.base import expected_log_cost
from shoestring.surrogate.belief import fit_cost
from tests.differences import gradients_of
from tests.problems import belief_of, mixed_space, mixed_value, plane

SPACES = pytest.mark.parametrize("space", [plane(2), mixed_space()], ids=["plane", "mixed"])


@functools.cache
def context(space, count=30, seed=0):
    """A belief about a problem whose cost rises steeply along its first number, and a function that makes an optimizer."""
    study = st.Study(space, seed=seed)
    for u in space.snap(np.random.default_rng(seed).random((count, len(space)))):
        config = space.decode(u)
        value = mixed_value(config) if "rate" in config else sum((v - 0.8) ** 2 for v in config.values())
        study.add(config, value, cost=math.exp(4 * u[0]))
    belief, encoding, seen = belief_of(study)
    belief = dataclasses.replace(belief, cost=fit_cost(seen, encoding, st.AutoCost()))
    best = seen.U[seen.order[:5]]
    return belief, lambda: AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, best)


def parts(belief, U):
    """log EI and log expected cost at points."""
    return LogEI().surface(belief, np.random.default_rng(0))(U, False)[0], expected_log_cost(belief.cost, U)


def unit_points(space, count=3000):
    return space.snap(np.random.default_rng(5).random((count, len(space))))


@SPACES
def test_where_there_is_much_to_gain_it_is_the_highest_ei(space):
    belief, optimizer = context(space)
    search = optimizer()
    highest = search.maximize(LogEI().surface(belief, search.rng)).u
    chosen = st.CostAdjustedEI(gain=1e-12).select(belief, optimizer()).u
    np.testing.assert_allclose(parts(belief, chosen[None, :])[0], parts(belief, highest[None, :])[0], atol=1e-6)


@SPACES
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_where_there_is_little_to_gain_it_is_ei_divided_by_a_power_of_the_cost(space, power):
    belief, optimizer = context(space)
    chosen = st.CostAdjustedEI(gain=1e12, power=power).select(belief, optimizer()).u
    log_ei, log_cost = parts(belief, np.vstack([chosen[None, :], unit_points(space)]))
    score = log_ei - power * log_cost
    assert score[0] >= score[1:].max() - 0.02


@SPACES
def test_in_between_it_maximises_its_formula(space):
    belief, optimizer = context(space)
    search = optimizer()
    highest = search.maximize(LogEI().surface(belief, search.rng)).value
    first = math.log(np.exp(belief.data.log_cost[:FIRST_COSTS]).mean())
    chosen = st.CostAdjustedEI(gain=0.3).select(belief, optimizer()).u
    log_ei, log_cost = parts(belief, np.vstack([chosen[None, :], unit_points(space)]))
    score = log_ei - 2.0 * np.log1p(0.3 / math.exp(highest) * np.exp(log_cost - first))
    assert score[0] >= score[1:].max() - 0.02


@SPACES
def test_while_few_trials_are_known_it_is_ei_whatever_there_is_to_gain(space):
    belief, optimizer = context(space, EARLY_TRIALS - 5)
    search = optimizer()
    highest = search.maximize(LogEI().averaged_surface(belief, search.rng)).u
    np.testing.assert_array_equal(st.CostAdjustedEI(gain=1e12).select(belief, optimizer()).u, highest)


def test_its_gradient_is_that_of_finite_differences():
    belief, _ = context(plane(2))
    surface = adjusted(LogEI().surface(belief, np.random.default_rng(0)), belief, -1.0, 2.0)
    U = np.random.default_rng(3).uniform(0.1, 0.9, (6, 2))
    np.testing.assert_allclose(
        surface(U, True)[1], gradients_of(lambda points: surface(points, False)[0], U), rtol=1e-3, atol=1e-4
    )


def test_while_no_cost_is_known_it_is_ei():
    belief, optimizer = context(plane(2))
    search = optimizer()
    unknown = dataclasses.replace(belief, cost=None)
    highest = search.maximize(LogEI().surface(belief, search.rng)).u
    np.testing.assert_array_equal(st.CostAdjustedEI().select(unknown, optimizer()).u, highest)


@pytest.mark.parametrize("wrong", [{"gain": 0}, {"gain": -1}, {"power": -1}, {"gain": "much"}])
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(st.MethodError, match=next(iter(wrong))):
        st.CostAdjustedEI(**wrong)
