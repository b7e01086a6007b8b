"""A time is wall-clock time: of all workers, the optimizer's own work included."""

import math
import time

import pytest

import shoestring as st
from shoestring.data.trial import State, Trial
from shoestring.execution.simulated import simulate
from shoestring.state.effort import Effort, counts_time
from tests.problems import bowl, plane

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0, 1))


def slow(config):
    """Takes 10 to 100 seconds."""
    return st.Outcome((config["x"] - 0.3) ** 2, cost=10.0 + 90.0 * config["y"])


def test_a_plain_time_ends_a_microsecond_objective_in_time():
    began = time.perf_counter()
    result = st.minimize(bowl, plane(), "300ms", stop=None, progress=False)
    assert time.perf_counter() - began < 10.0  # it ran for minutes when only the objective's time was counted
    assert result.study.seconds >= 0.3
    assert result.stop.kind == "budget"


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_no_trial_is_started_that_is_not_expected_to_end_in_time(workers):
    study = st.Study(SPACE, st.EI(), stop=None, cost_model=st.KnownCost(lambda config: 10.0 + 90.0 * config["y"]))
    run = simulate(study, slow, st.Budget(seconds=350.0), workers=workers)
    assert run.seconds <= 350.0
    assert run.seconds > 350.0 - 15.0  # what is left is not enough for the cheapest
    assert run.result.spent > 0.8 * workers * 350.0  # all workers were at work until the end


def test_with_both_limits_the_first_one_ends_it():
    cheap = simulate(st.Study(SPACE, st.EI()), slow, st.Budget(cost=300.0, seconds=1e6), workers=2).result
    assert cheap.spent <= 300.0
    quick = simulate(st.Study(SPACE, st.EI()), slow, st.Budget(cost=1e6, seconds=300.0), workers=2)
    assert quick.seconds <= 300.0


def test_where_costs_are_money_time_is_counted_at_the_price_that_was_paid_for_it():
    study = st.Study(SPACE, st.EI(), unit="USD", budget=st.Budget(seconds=100.0))
    assert study.context.spending.in_cost is False  # nothing is known of what a second costs
    for _ in range(2):
        trial = study.ask()
        study.state.close(trial.finish(State.DONE, value=1.0, cost=6.0, seconds=3.0))
    spending = study.context.spending
    assert (spending.total, spending.most, spending.timed) == (200.0, 200.0, True)


def test_a_budget_in_trials_is_never_hurried():
    study = st.Study(SPACE, st.EI())
    study.suggester.effort.seconds = {"full": 1e9}
    study.minimize(bowl_xy, 12)
    assert not any("effort" in trial.basis for trial in study.history)


def bowl_xy(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.5) ** 2


def test_where_a_suggestion_takes_longer_than_it_saves_it_gets_cheaper_and_can_be_replayed():
    study = st.Study(SPACE, st.EI(), initial=4)
    study.minimize(bowl_xy, 8)
    levels = {"full": {}, "reduced": {"full": 1e9}, "random": {"full": 1e9, "reduced": 1e9}}
    for level, seconds in levels.items():
        effort = study.suggester.effort
        effort.seconds, effort.guided = dict(seconds), math.inf
        trial = study.suggester.ask(budget=st.Budget(seconds=3600.0))[0]
        assert trial.basis.get("effort", "full") == level
        assert trial.suggestion["by"] == ("Random" if level == "random" else "EI")
        study.tell(trial, bowl_xy(trial.config))
    assert study.replay().first_difference is None


def history_of(seconds, count=5):
    trials = [Trial(i, {"x": 0.1 * i, "y": 0.5}, State.DONE, value=1.0, cost=seconds, seconds=seconds) for i in range(count)]
    return st.History(tuple(trials), SPACE)


def test_the_level_follows_from_the_times_of_trials_and_suggestions():
    effort = Effort()
    assert effort.choose(history_of(1e-6), 1, in_time=True) == "full"  # not measured yet: it is tried
    effort.add("full", 0.02)
    assert effort.choose(history_of(0.01), 1, in_time=True) == "full"  # it takes as long as two trials
    assert effort.choose(history_of(0.01), 8, in_time=True) == "reduced"  # while eight workers wait for it
    effort.add("reduced", 0.01)
    effort.guided = math.inf  # the model had its half of the time
    assert effort.choose(history_of(1e-6), 1, in_time=True) == "random"
    assert effort.choose(history_of(0.001), 1, in_time=True) == "reduced"
    effort.add("random", 0.001)  # a random trial takes time too
    assert effort.choose(history_of(1e-6), 1, in_time=True) == "reduced"
    assert effort.choose(history_of(1e-6), 1, in_time=False) == "random"  # but not under a budget in cost
    assert effort.choose(history_of(1.0, count=0), 1, in_time=True) == "full"


def test_time_counts_under_a_budget_in_time_or_in_measured_seconds():
    measured = history_of(0.1)
    paid = st.History((Trial(0, {"x": 0.1, "y": 0.5}, State.DONE, value=1.0, cost=3.0, seconds=0.1),), SPACE)
    assert counts_time(st.Budget(seconds=9), paid)
    assert counts_time(st.Budget(cost=9), measured)
    assert not counts_time(st.Budget(cost=9), paid)
    assert not counts_time(st.Budget(trials=9), measured)
    assert not counts_time(None, measured)


def test_a_budget_in_cost_with_a_microsecond_objective_is_not_spent_on_thinking():
    study = st.Study(SPACE, st.EI(), None, initial=4)
    study.minimize(bowl_xy, st.Budget(cost=0.04, trials=120), progress=False)  # slow machines have fewer trials
    later = [trial.basis.get("effort", "full") for trial in study.history][20:]
    assert later.count("full") == 0
    assert later.count("random") > 0
    assert study.replay().first_difference is None
