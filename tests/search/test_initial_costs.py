"""Under a budget in cost nothing of unknown cost takes the budget: the first trial, the initial design, the first model."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.search.bayes import SURE

SPACE = st.Space(rounds=st.Int(1, 1000, log=True), rate=st.Float(0.01, 1, log=True), depth=st.Int(1, 12))


def train(config):
    """Its best configs are expensive, and cost spans four orders of magnitude."""
    value = (math.log(config["rounds"]) - 5) ** 2 + (math.log(config["rate"]) + 2) ** 2 / 4
    return st.Outcome(value, cost=0.01 * config["rounds"] * config["depth"])


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_the_first_trial_is_in_the_half_that_names_say_is_cheaper(seed):
    first = st.Study(SPACE, budget=st.Budget(cost=100), seed=seed).ask().config
    half = np.median([
        0.8 * math.log(each["rounds"]) + 0.45 * math.log(each["depth"])
        for each in (SPACE.decode(u) for u in np.random.default_rng(0).random((4000, 3)))
    ])  # fmt: skip
    assert 0.8 * math.log(first["rounds"]) + 0.45 * math.log(first["depth"]) <= half + 0.3


def test_without_a_budget_in_cost_the_first_trial_is_that_of_the_sobol_sequence():
    plain = st.Study(SPACE, method=st.Sobol(), seed=4).ask().config
    assert st.Study(SPACE, budget=st.Budget(trials=20), seed=4).ask().config == plain


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_no_early_trial_takes_a_large_part_of_the_budget(seed):
    study = st.Study(SPACE, budget=st.Budget(cost=300), stop=None, seed=seed)
    costs = []
    for _ in range(12):
        trial = study.ask()
        outcome = train(trial.config)
        study.tell(trial, outcome.value, cost=outcome.cost)
        costs.append(outcome.cost)
    assert max(costs) <= 300 / 4
    assert sum(costs) <= 300


@pytest.mark.slow
def test_the_default_starts_no_trial_that_may_well_cost_more_than_is_left():
    study = st.Study(SPACE, budget=st.Budget(cost=30), stop=None, seed=1)
    unsure = 0
    for _ in range(25):
        try:
            trial = study.ask()
        except st.errors.NothingFits:
            break
        context = study.context
        if trial.number >= 8:
            mean, variance = context.cost.log_cost(SPACE.encode(trial.config)[None, :])
            unsure += bool(mean[0] + SURE * math.sqrt(variance[0]) > math.log(30 - study.result.spent) + 0.05)
        outcome = train(trial.config)
        study.tell(trial, outcome.value, cost=outcome.cost)
    assert unsure <= 1  # where nothing is sure to fit, the expected cost counts
    assert study.result.spent <= 30 * 1.1
