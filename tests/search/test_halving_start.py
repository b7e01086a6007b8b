"""The start by successive halving: which runs go on, when it applies, and what it does where trials do not ask."""

import math

import pytest

import shoestring as st
from shoestring.search.halving_start import ETA, LENGTH, RAN_IN_VAIN, HalvingForecast, is_start, rung_of

INITIAL = 4
SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27))
COST = 60 * 27.0


def train(config, trial, *, sign=1.0, asks=True, reports=True):
    value, spent = math.nan, 0
    for epoch in range(1, config["epochs"] + 1):
        value, spent = sign * ((config["x"] - 0.3) ** 2 + math.exp(-epoch / 6)), epoch
        if reports:
            trial.report(value, epochs=epoch, cost=float(epoch))
        if asks and trial.should_stop():
            break
    return st.Outcome(value, cost=float(spent))


def new(space=SPACE, cost=COST, trials=LENGTH * INITIAL + 2, method="auto", direction="minimize"):
    budget = st.Budget(cost=cost, trials=trials)
    return st.Study(space, method, seed=1, stop=None, initial=INITIAL, direction=direction, budget=budget)


def studied(cost=COST, trials=LENGTH * INITIAL + 2, space=SPACE, direction="minimize", method="auto", **settings):
    study = new(space, cost, trials, method, direction)
    sign = 1.0 if direction == "minimize" else -1.0
    run = study.minimize if direction == "minimize" else study.maximize
    run(lambda config, trial: train(config, trial, sign=sign, **settings), study.budget, progress=False)
    return study


def starts(study):
    return [trial for trial in study.history if is_start(trial)]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_most_runs_end_early_and_the_best_reach_the_target(direction):
    study = studied(direction=direction)
    runs = starts(study)
    assert len(runs) == LENGTH * INITIAL - 1  # the first trial shows that there are reports
    ended_early = [trial for trial in runs if trial.config["epochs"] < 27]
    assert len(ended_early) > len(runs) / 2
    best = min(runs, key=lambda trial: abs(trial.config["x"] - 0.3))
    assert best.config["epochs"] == 27
    assert all("runs that have got as far" in trial.suggestion["stopped"]["reason"] for trial in ended_early)
    assert not any(is_start(trial) for trial in study.history[LENGTH * INITIAL :])


def test_a_run_goes_on_if_it_is_in_the_best_third_or_the_best_of_all():
    def kept(count):
        return [rank for rank in range(1, count + 1) if not HalvingForecast(rank=rank, count=count).should_prune]

    assert [kept(count) for count in (1, 2, 5, 6, 9)] == [[1], [1], [1], [1, 2], [1, 2, 3]]


def test_rungs_are_powers_of_eta():
    reached = [rung_of(epoch / 27) for epoch in range(1, 28)]
    assert [epoch for epoch in range(2, 28) if reached[epoch - 1] != reached[epoch - 2]] == [3, 9, 27]
    assert rung_of(0.0) == math.inf
    assert ETA == 3


def test_between_rungs_nothing_is_said():
    study = studied(trials=3)
    study.budget = st.Budget(cost=COST)
    trial = study.ask()
    assert is_start(trial)
    points = [{"fidelity": {"epochs": epoch}, "value": 9.0} for epoch in range(1, 5)]
    asked = [study.pruning_forecast(trial, points[:end]) for end in range(1, 5)]
    assert [each is not None for each in asked] == [True, False, True, False]  # at 1 and at 3 epochs
    assert asked[0].should_prune
    assert asked[0].rank == asked[0].count > 1


@pytest.mark.parametrize("settings", [
    {"cost": None}, {"reports": False}, {"cost": 100.0},
    {"space": st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27), rows=st.Fidelity(1, 9))}, {"method": st.CFKG()},
], ids=["trials", "no reports", "small budget", "two fidelities", "another method"])  # fmt: skip
def test_where_it_does_not_apply_runs_have_fixed_lengths(settings):
    assert not starts(studied(trials=6, **settings))


def test_where_trials_do_not_ask_it_ends_after_a_few_runs():
    study = studied(asks=False)
    assert len(starts(study)) == RAN_IN_VAIN
    assert all(trial.config["epochs"] == 27 for trial in starts(study))


def test_failed_runs_count_and_running_ones_are_compared():
    study = new()

    def objective(config, trial):
        found = train(config, trial)
        return st.Outcome(math.nan, cost=found.cost) if trial.number in (2, 3) else found

    study.minimize(objective, study.budget, progress=False)
    assert len(starts(study)) == LENGTH * INITIAL - 1
    assert [trial.state for trial in study.history[2:4]] == [st.State.FAILED] * 2
    with_workers = new(trials=12)
    with_workers.minimize(train, with_workers.budget, workers=2, threads=True, progress=False)
    assert any(trial.config["epochs"] < 27 for trial in starts(with_workers))


def test_a_study_that_was_stored_goes_on_as_if_it_had_not_been():
    whole, part = studied(trials=8), studied(trials=4)
    rest = st.Study.from_json(part.to_json())
    rest.minimize(train, st.Budget(cost=COST, trials=8), progress=False)
    assert [trial.config for trial in rest.history] == [trial.config for trial in whole.history]
    assert whole.replay().first_difference is None


def test_runs_that_can_go_on_are_stopped_and_gone_on_with():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27, resumable=True))
    study = studied(space=space, trials=20)
    assert len(starts(study)) >= LENGTH * INITIAL - 1
    assert study.recommend().config["x"] == pytest.approx(0.3, abs=0.15)
