"""The start by successive halving: its rungs, when it applies, failures, workers, interruptions, evidence."""

import math

import pytest

import shoestring as st
from shoestring.search.halving_start import CONFIGS, EVIDENCE, EVIDENCE_RUNS, MAX_CONFIGS, MAX_REPLACED, is_start, plan_of

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27))
COST = 60 * 27.0
RUNGS = {1: 15, 3: 5, 9: 2, 27: 1}  # configs on each, of 27 epochs
LENGTH = sum(RUNGS.values()) + EVIDENCE_RUNS


def value_at(config, epoch):
    return (config["x"] - 0.3) ** 2 + math.exp(-epoch / 6)


def train(config, trial, *, sign=1.0, reports=True, fails=lambda config: False):
    before = 0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"]
    for epoch in range(before + 1, config["epochs"] + 1):
        value = sign * value_at(config, epoch)
        if reports:
            trial.report(value, epochs=epoch, cost=float(epoch - before))
        if trial.should_stop():
            break
    return st.Outcome(math.nan if fails(config) else value, cost=float(epoch - before))


def new(space=SPACE, cost=COST, direction="minimize", **settings):
    budget = 30 if cost is None else st.Budget(cost=cost)
    return st.Study(space, seed=1, stop=None, initial=4, direction=direction, budget=budget, **settings)


def until(study, objective, trials=LENGTH + 2):
    """Run so many trials."""

    def halt(study, trial):
        if len(study.history) >= trials:
            study.halt("enough")

    run = study.minimize if study.direction == "minimize" else study.maximize
    run(objective, study.budget, callbacks=[halt], progress=False)
    return study


def studied(cost=COST, trials=LENGTH + 2, space=SPACE, direction="minimize", method="auto", prune=None, **settings):
    study = new(space, cost, direction, method=method, prune=prune)
    sign = 1.0 if direction == "minimize" else -1.0
    return until(study, lambda config, trial: train(config, trial, sign=sign, **settings), trials)


def starts(study):
    return [trial for trial in study.history if is_start(trial)]


def on_rung(study, epochs):
    return [trial for trial in starts(study) if trial.config["epochs"] == epochs and not plan_of(trial).get(EVIDENCE)]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_third_of_each_rung_goes_on(direction):
    study = studied(direction=direction)
    assert [is_start(trial) for trial in study.history] == [number < LENGTH for number in range(LENGTH + 2)]
    for epochs, below in ((3, 1), (9, 3), (27, 9)):
        best = sorted(abs(trial.config["x"] - 0.3) for trial in on_rung(study, below))[: RUNGS[epochs]]
        assert sorted(abs(trial.config["x"] - 0.3) for trial in on_rung(study, epochs)) == pytest.approx(best)
    assert {epochs: len(on_rung(study, epochs)) for epochs in RUNGS} == RUNGS
    assert "number 1 of 15 goes on" in on_rung(study, 3)[0].suggestion["why"]


def test_configs_from_the_middle_and_the_end_of_the_lowest_rung_go_to_the_target_too():
    study = studied()
    evidence = [trial for trial in study.history if plan_of(trial).get(EVIDENCE)]
    assert [trial.number for trial in evidence] == [LENGTH - 2, LENGTH - 1]
    ranked = sorted(abs(trial.config["x"] - 0.3) for trial in on_rung(study, 1))
    for number, trial in enumerate(evidence, start=1):
        assert trial.config["epochs"] == 27
        assert abs(trial.config["x"] - 0.3) in ranked[number * CONFIGS // 3 : (number + 1) * CONFIGS // 3]
        assert "to see how runs end" in trial.suggestion["why"]


def test_of_the_middle_the_cheapest_is_taken():
    """The cost of a run grows with x, and the values do not depend on it much."""
    space = st.Space(x=st.Float(0, 1), width=st.Float(1, 9), epochs=st.Fidelity(1, 27))

    def train_wide(config, trial):
        for epoch in range(1, config["epochs"] + 1):
            trial.report(value_at(config, epoch), epochs=epoch, cost=epoch * config["width"])
        return st.Outcome(value_at(config, epoch), cost=epoch * config["width"])

    study = until(new(space, 60 * 27 * 5.0), train_wide, LENGTH)
    evidence, _ = [trial for trial in study.history if plan_of(trial).get(EVIDENCE)]
    ranked = sorted(on_rung(study, 1), key=lambda trial: trial.value)
    middle = [trial.config["width"] for trial in ranked[CONFIGS // 3 : 2 * CONFIGS // 3]]
    assert evidence.config["width"] == min(middle)


def test_a_config_whose_full_run_takes_too_much_of_the_budget_is_not_tried():
    space = st.Space(x=st.Float(0, 1), size=st.Float(1, 1000, log=True), epochs=st.Fidelity(1, 27))

    def train_sized(config, trial):
        cost = float(config["epochs"] * config["size"])
        trial.report(value_at(config, config["epochs"]), epochs=config["epochs"], cost=cost)
        return st.Outcome(value_at(config, config["epochs"]), cost=cost)

    study = until(new(space, 60 * 27 * 30.0), train_sized, LENGTH)
    later = [trial.config["size"] for trial in starts(study)[5:]]  # by then its costs are known
    assert max(later) < 200  # 1 / 20 of the budget is a full run of 90


@pytest.mark.parametrize("settings", [
    {"cost": None}, {"reports": False}, {"cost": 200.0},
    {"space": st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27), rows=st.Fidelity(1, 9))}, {"method": st.CFKG()},
    {"space": st.Space(x=st.Choice(0.1, 0.3, 0.9), epochs=st.Fidelity(1, 27))}, {"prune": False},
], ids=["trials", "no reports", "small budget", "two fidelities", "another method", "few configs", "prune=False"])
def test_where_it_does_not_apply_there_is_no_such_start(settings):  # fmt: skip
    assert not [trial for trial in starts(studied(trials=8, **settings)) if trial.number > 2]


def test_the_first_trial_is_cheap_so_that_it_shows_whether_trials_report():
    (first,) = studied(trials=1).history
    assert first.config["epochs"] == 1
    assert is_start(first)


def test_a_limit_of_trials_has_to_leave_room():
    for trials, applies in ((4 * LENGTH - 1, False), (4 * LENGTH, True)):
        study = new()
        study.minimize(
            train, st.Budget(cost=COST, trials=trials), progress=False, callbacks=[lambda study, trial: study.halt("enough")]
        )
        assert bool(starts(study)) == applies


def test_results_from_elsewhere_take_its_place():
    study = new()
    for number in range(CONFIGS):
        study.add({"x": number / CONFIGS, "epochs": 27}, number / CONFIGS, cost=27.0)
    study.budget = st.Budget(cost=2 * COST)
    assert not is_start(study.ask())


def test_a_failed_run_is_not_promoted_and_the_next_best_replaces_it():
    study = studied(trials=LENGTH + 3, fails=lambda config: config["epochs"] == 27 and abs(config["x"] - 0.3) < 0.1)
    ended = on_rung(study, 27)
    assert [trial.state for trial in ended] == [st.State.FAILED] * (len(ended) - 1) + [ended[-1].state]
    assert 1 < len(ended) <= 1 + MAX_REPLACED
    assert len({trial.config["x"] for trial in ended}) == len(ended)


def test_where_all_fail_the_start_ends():
    study = new(method="auto")
    with pytest.raises(st.ObjectiveError):
        until(study, lambda config, trial: train(config, trial, fails=lambda config: True), LENGTH)
    study = new()
    options = {"progress": False, "fail_fast": False, "max_failures": 40}
    study.minimize(lambda config, trial: train(config, trial, fails=lambda config: True), st.Budget(cost=40.0), **options)
    assert all(trial.state is st.State.FAILED for trial in study.history)


def test_a_study_that_was_stored_goes_on_as_if_it_had_not_been():
    whole, part = studied(trials=LENGTH), studied(trials=17)
    rest = st.Study.from_json(part.to_json())
    rest.budget = st.Budget(cost=COST)
    until(rest, train, LENGTH)
    assert [trial.config for trial in rest.history] == [trial.config for trial in whole.history]
    assert whole.replay().first_difference is None


@pytest.mark.parametrize("killed", [0, 2, 16, 23])
def test_an_interrupted_run_keeps_its_place(killed, tmp_path):
    def interrupted(config, trial):
        if trial.number == killed:
            raise KeyboardInterrupt
        return train(config, trial)

    whole, part = studied(trials=LENGTH), new(storage=tmp_path / "t.db", name="t")
    with pytest.raises(KeyboardInterrupt):
        part.minimize(interrupted, part.budget, progress=False)
    until(part, train, LENGTH + 1)
    done = [trial for trial in part.history if trial.state is st.State.DONE]
    assert {epochs: len([t for t in done if t.config["epochs"] == epochs and is_start(t)]) for epochs in (3, 9)} == {3: 5, 9: 2}
    assert [trial.config for trial in done][:killed] == [trial.config for trial in whole.history][:killed]


def test_one_rung_is_no_start():
    study = new(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(20, 27)))
    assert not is_start(study.ask())


def test_workers_that_would_wait_try_more_configs_and_the_start_goes_on_later():
    study = until(new(), train, 1)
    study.budget = st.Budget(cost=COST)
    waiting = study.ask_many(MAX_CONFIGS)
    assert sum(trial.config["epochs"] == 1 for trial in waiting if is_start(trial)) == MAX_CONFIGS - 1
    for trial in waiting:
        study.tell(trial, value_at(trial.config, trial.config["epochs"]), cost=float(trial.config["epochs"]))
    following = study.ask()
    assert is_start(following)
    assert following.config["epochs"] == 3


def test_runs_in_several_threads_fill_the_rungs():
    study = new()
    study.minimize(train, st.Budget(cost=COST, trials=4 * LENGTH), workers=3, progress=False)
    assert {epochs: len(on_rung(study, epochs)) for epochs in (3, 9)} == {3: 5, 9: 2}
    assert len(on_rung(study, 27)) == 1


def test_it_is_explained():
    study = studied(trials=3)
    study.budget = st.Budget(cost=COST)
    said = study.explain()
    assert said.method == "successive halving"
    assert "the best third go on" in said.why


def test_runs_that_can_go_on_pay_for_the_rest_alone():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27, resumable=True))
    study = studied(space=space)
    promoted = [trial for trial in starts(study) if trial.config["epochs"] > 1]
    assert all(trial.resumed_from is not None for trial in promoted)
    assert sum(trial.cost for trial in starts(study)) == 15 * 1 + 5 * 2 + 2 * 6 + 18 + 2 * 26
    assert study.recommend().config["x"] == pytest.approx(0.3, abs=0.15)


@pytest.mark.parametrize("space", [
    st.Space(k=st.Choice("a", "b"), x=st.Float(0, 1, when={"k": "a"}), epochs=st.Fidelity(1, 27)),
    st.Space(x=st.Int(1, 200, log=True), epochs=st.Fidelity(1, 27)),
], ids=["conditional", "whole numbers"])  # fmt: skip
def test_no_config_is_tried_twice_on_a_rung(space):
    study = new(space)
    until(study, lambda config, trial: train({"x": 0.9, **config}, trial), LENGTH)
    assert len(starts(study)) > CONFIGS
    assert len({tuple(sorted(trial.config.items())) for trial in study.history}) == len(study.history)


def test_costs_of_zero_are_no_reason_to_end():
    study = until(new(), lambda config, trial: st.Outcome(train(config, trial).value, cost=0.0), LENGTH)
    assert len(starts(study)) == LENGTH


def test_a_run_that_does_not_fit_into_the_budget_ends_the_start():
    """The cost grows with the square of the epochs: that is seen when the first runs have gone on."""

    def squared(config, trial):
        for epoch in range(1, config["epochs"] + 1):
            trial.report(value_at(config, epoch), epochs=epoch, cost=float(epoch**2))
        return st.Outcome(value_at(config, epoch), cost=float(epoch**2))

    study = new(cost=1100.0)
    study.minimize(squared, study.budget, progress=False)
    assert starts(study)
    assert not any("at random" in trial.suggestion["why"] for trial in study.history)
    assert study.history.spent <= 1100.0


@pytest.mark.parametrize("workers", [2, 3])
def test_runs_beside_each_other_hold_up_no_rung(workers):
    """Workers ask and tell as their runs end; those of higher rungs take longer."""
    study = until(new(), train, 1)
    study.budget = st.Budget(cost=COST)
    clock, running = 0.0, []
    while len(study.history) < 60:
        while len(running) < workers:
            trial = study.ask()
            running.append((clock + trial.config["epochs"], trial))
        running.sort(key=lambda each: each[0])
        clock, trial = running.pop(0)
        study.tell(trial, value_at(trial.config, trial.config["epochs"]), cost=float(trial.config["epochs"]))
    assert {epochs: len(on_rung(study, epochs)) for epochs in (3, 9, 27)} == {3: 5, 9: 2, 27: 1}
    before = [trial for trial in on_rung(study, 1) if trial.number < on_rung(study, 3)[0].number]
    assert len(before) < CONFIGS + workers
    assert sum(bool(plan_of(trial).get(EVIDENCE)) for trial in study.history) == EVIDENCE_RUNS


def test_what_was_enqueued_on_a_rung_is_not_asked_again():
    study = studied(trials=CONFIGS)
    best = min(study.history, key=lambda trial: trial.value)
    study.enqueue({**best.config, "epochs": 3})
    until(study, train, LENGTH)
    assert len({tuple(sorted(trial.config.items())) for trial in study.history}) == len(study.history)


def test_an_extended_space_has_a_start_of_its_own(tmp_path):
    def train_on(config, trial):
        for epoch in range(3, config["epochs"] + 1) if config["epochs"] >= 3 else [config["epochs"]]:
            trial.report(value_at(config, epoch), epochs=epoch, cost=float(epoch))
        return st.Outcome(value_at(config, epoch), cost=float(epoch))

    kept = {"storage": tmp_path / "t.db", "name": "t"}
    until(new(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(3, 27)), **kept), train_on, 20)
    study = until(new(SPACE, extend=True, **kept), train_on, LENGTH)
    assert len({tuple(sorted(trial.config.items())) for trial in study.history}) == LENGTH
