"""The Gittins index with a budget: the highest EI within an allowance for the next trial."""

import dataclasses
import functools
import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.cost_aware import MIN_TRIALS_LEFT, PacedGittins
from shoestring.acquisition.gittins import Gittins
from shoestring.acquisition.improvement import LogEI
from shoestring.acquisition.optimize.optimizer import AcquisitionOptimizer
from shoestring.cost.base import expected_log_cost
from shoestring.surrogate.belief import Spending, fit_cost
from tests.problems import belief_of, mixed_space, mixed_value, plane

SPACES = pytest.mark.parametrize("space", [plane(2), mixed_space()], ids=["plane", "mixed"])


@functools.cache
def context(space, seed=0, count=30):
    """A belief about a problem whose cost rises steeply along its first number, and a function that makes an optimizer."""
    study = st.Study(space, seed=seed)
    for u in space.snap(np.random.default_rng(seed).random((count, len(space)))):
        config = space.decode(u)
        value = mixed_value(config) if "rate" in config else sum((v - 0.8) ** 2 for v in config.values())
        study.add(config, value, cost=math.exp(4 * u[0]))
    belief, encoding, seen = belief_of(study)
    cost = fit_cost(seen, encoding, st.AutoCost())
    high_price = {"log_price": 1.0}  # so that the index chooses something cheap
    best = seen.U[seen.order[:5]]
    belief = dataclasses.replace(belief, cost=cost, warm_start=high_price)
    return belief, lambda: AcquisitionOptimizer(encoding, np.random.default_rng(1), seen.visited, best)


def chosen(belief, optimizer, allowance):
    """The choice where the next trial may cost ``allowance``."""
    trials = max(100 - len(belief.fit.posterior), MIN_TRIALS_LEFT)
    spending = Spending(total=allowance * trials, spent=0.0, initial=0.0)
    return PacedGittins(100).select(dataclasses.replace(belief, spending=spending), optimizer()).u


@SPACES
def test_with_a_large_allowance_it_is_the_highest_ei(space):
    belief, optimizer = context(space)
    search = optimizer()
    np.testing.assert_array_equal(chosen(belief, optimizer, 1e6), search.maximize(LogEI().surface(belief, search.rng)).u)


@SPACES
def test_with_a_small_allowance_it_is_the_smallest_index(space):
    belief, optimizer = context(space)
    cost = float(np.exp(expected_log_cost(belief.cost, chosen(belief, optimizer, 1e-6)[None, :])[0]))
    index = float(np.exp(expected_log_cost(belief.cost, Gittins().select(belief, optimizer()).u[None, :])[0]))
    assert cost == pytest.approx(index, rel=0.05)


@SPACES
@pytest.mark.parametrize("seed", range(3))
def test_in_between_it_is_the_highest_ei_within_the_allowance(space, seed):
    belief, optimizer = context(space, seed)
    search = optimizer()
    surface = LogEI().surface(belief, search.rng)
    highest_ei = float(np.exp(expected_log_cost(belief.cost, search.maximize(surface).u[None, :])[0]))
    smallest_index = float(np.exp(expected_log_cost(belief.cost, Gittins().select(belief, optimizer()).u[None, :])[0]))
    assert smallest_index < 0.7 * highest_ei  # the costs of the two choices
    allowance = math.sqrt(smallest_index * highest_ei)
    u = chosen(belief, optimizer, allowance)
    assert expected_log_cost(belief.cost, u[None, :])[0] <= math.log(allowance) + 1e-6
    U = space.snap(np.random.default_rng(5).random((3000, len(space))))
    U = U[expected_log_cost(belief.cost, U) <= math.log(allowance)]
    assert surface(u[None, :], False)[0][0] >= surface(U, False)[0].max() - 0.02


def test_without_a_budget_it_is_the_index():
    belief, optimizer = context(plane(2))
    np.testing.assert_array_equal(PacedGittins().select(belief, optimizer()).u, Gittins().select(belief, optimizer()).u)
