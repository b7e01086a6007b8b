"""The start by successive halving: which runs go on, when it applies, and what it does where trials do not ask."""

import math

import pytest

import shoestring as st
from shoestring.search.halving_start import EVIDENCE, LENGTH, RUNGS, SHARE_OF_TRIALS, HalvingForecast, is_start

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


def new(space=SPACE, cost=COST, direction="minimize", **settings):
    budget = 30 if cost is None else st.Budget(cost=cost)
    return st.Study(space, seed=1, stop=None, initial=INITIAL, direction=direction, budget=budget, **settings)


def until(study, objective, trials=LENGTH * INITIAL + 2):
    """Run so many trials."""

    def halt(study, trial):
        if len(study.history) >= trials:
            study.halt("enough")

    run = study.minimize if study.direction == "minimize" else study.maximize
    run(objective, study.budget, callbacks=[halt], progress=False)
    return study


def studied(cost=COST, trials=LENGTH * INITIAL + 2, space=SPACE, direction="minimize", method="auto", prune=None, **settings):
    study = new(space, cost, direction, method=method, prune=prune)
    sign = 1.0 if direction == "minimize" else -1.0
    return until(study, lambda config, trial: train(config, trial, sign=sign, **settings), trials)


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


def test_a_run_is_judged_at_its_highest_rung_and_not_before_the_first():
    study = studied(trials=3, space=st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 810)), cost=60 * 810.0)
    study.budget = st.Budget(cost=60 * 810.0)
    trial = study.ask()
    assert is_start(trial)
    points = [{"fidelity": {"epochs": epoch}, "value": 9.0} for epoch in range(1, 31)]
    asked = [study.pruning_forecast(trial, points[:end]) for end in range(1, 31)]
    assert [each is not None for each in asked] == [epoch >= 810 // 3**RUNGS for epoch in range(1, 31)]
    assert asked[9].should_prune
    assert asked[9].rank == asked[9].count > 1
    good = [{"fidelity": {"epochs": epoch}, "value": -1.0 if epoch == 30 else 9.0} for epoch in range(1, 31)]
    assert not study.pruning_forecast(trial, good).should_prune  # 30 is a rung


def test_it_need_not_ask_at_every_report():
    def rarely(config, trial):
        value = math.nan
        for epoch in range(1, config["epochs"] + 1):
            value = (config["x"] - 0.3) ** 2 + math.exp(-epoch / 6)
            trial.report(value, epochs=epoch, cost=float(epoch))
            if epoch % 5 == 0 and trial.should_stop():
                break
        return st.Outcome(value, cost=float(epoch))

    study = new()
    until(study, rarely)
    assert len(starts(study)) == LENGTH * INITIAL - 1
    assert any(trial.config["epochs"] in (5, 10) for trial in starts(study))


@pytest.mark.parametrize("settings", [
    {"cost": None}, {"reports": False}, {"cost": 100.0},
    {"space": st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27), rows=st.Fidelity(1, 9))}, {"method": st.CFKG()},
    {"space": st.Space(x=st.Choice(0.1, 0.3, 0.9), epochs=st.Fidelity(1, 27))}, {"prune": False},
], ids=["trials", "no reports", "small budget", "two fidelities", "another method", "few configs", "prune=False"])  # fmt: skip
def test_where_it_does_not_apply_runs_have_fixed_lengths(settings):
    assert not starts(studied(trials=6, **settings))


def test_where_trials_do_not_ask_it_ends_after_a_few_runs():
    study = studied(asks=False)
    assert 2 <= len(starts(study)) <= 4
    assert all(trial.config["epochs"] == 27 for trial in starts(study))
    assert not any(is_start(trial) for trial in study.history[6:])


def test_failed_runs_count():
    study = new()

    def objective(config, trial):
        found = train(config, trial)
        return st.Outcome(math.nan, cost=found.cost) if trial.number in (2, 3) else found

    until(study, objective)
    assert len(starts(study)) == LENGTH * INITIAL - 1
    assert [trial.state for trial in study.history[2:4]] == [st.State.FAILED] * 2


def test_a_study_that_was_stored_goes_on_as_if_it_had_not_been():
    whole, part = studied(trials=8), studied(trials=4)
    rest = st.Study.from_json(part.to_json())
    rest.budget = st.Budget(cost=COST)
    until(rest, train, 8)
    assert [trial.config for trial in rest.history] == [trial.config for trial in whole.history]
    assert whole.replay().first_difference is None


@pytest.mark.parametrize("killed", [2, 3, 5])
def test_an_interrupted_run_is_not_compared_with_itself(killed, tmp_path):
    def interrupted(config, trial):
        if trial.number == killed:
            trial.report(9.0, epochs=1, cost=1.0)
            raise KeyboardInterrupt
        return train(config, trial)

    whole, part = studied(trials=9), new(storage=tmp_path / "t.db", name="t")
    with pytest.raises(KeyboardInterrupt):
        part.minimize(interrupted, part.budget, progress=False)
    until(part, train, 10)
    done = [(trial.config, trial.value) for trial in part.history if trial.state is st.State.DONE]
    assert done[:9] == [(trial.config, trial.value) for trial in whole.history][:9]


def test_with_a_limit_of_trials_it_takes_a_small_part_of_them():
    study = new()
    study.minimize(train, st.Budget(cost=COST, trials=24), progress=False)
    assert len(starts(study)) < 24 // SHARE_OF_TRIALS


def test_runs_of_this_process_are_compared_while_they_run():
    study = studied(trials=3)
    study.budget = st.Budget(cost=COST)
    one, other = study.ask_many(2)
    assert is_start(one)
    assert is_start(other)
    point = {"fidelity": {"epochs": 1}, "value": 5.0}
    alone = study.pruning_forecast(one, [point])
    study.state.report(other.number, [{**point, "value": 4.0}])
    both = study.pruning_forecast(one, [point])
    assert (both.rank, both.count) == (alone.rank + 1, alone.count + 1)


def test_it_is_explained():
    study = studied(trials=3)
    study.budget = st.Budget(cost=COST)
    said = study.explain()
    assert said.method == "successive halving"
    assert "best third" in said.why


def test_runs_that_can_go_on_are_stopped_and_gone_on_with():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27, resumable=True))
    study = studied(space=space, trials=20)
    assert len(starts(study)) >= LENGTH * INITIAL - 1
    assert study.recommend().config["x"] == pytest.approx(0.3, abs=0.15)


def first_is_best(config, trial):
    """Of these, no later one goes on by its rank."""
    for epoch in range(1, config["epochs"] + 1):
        value = (0.0 if trial.number == 0 else 1.0 + config["x"]) + math.exp(-epoch / 6)
        trial.report(value, epochs=epoch, cost=float(epoch))
        if trial.should_stop():
            break
    return st.Outcome(value, cost=float(epoch))


def test_if_too_few_reach_the_target_some_go_on_whatever_their_rank():
    study = until(new(), first_is_best, LENGTH * INITIAL)
    assert [trial.number for trial in study.history if trial.suggestion.get("plan") == EVIDENCE] == [3, 7]
    assert [trial.config["epochs"] == 27 for trial in study.history[1:]] == [k in (3, 7) for k in range(1, 8)]
    assert "to see how runs end" in study.history[3].suggestion["why"]


def test_an_interruption_does_not_change_which_run_goes_on():
    study, interrupted = new(), []

    def objective(config, trial):
        if trial.number == 1 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return first_is_best(config, trial)

    with pytest.raises(KeyboardInterrupt):
        until(study, objective, LENGTH * INITIAL)
    until(study, objective, LENGTH * INITIAL + 1)
    whole = until(new(), first_is_best, LENGTH * INITIAL)
    kept = [trial.config for trial in study.history.trials if trial.state is not st.State.ABANDONED]
    assert kept == [trial.config for trial in whole.history]
