"""Intermediate values as data: which of them, at which fidelities, and how much they help the model."""

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.data.intermediate import (
    MAX_VALUES_PER_STUDY,
    MAX_VALUES_PER_TRIAL,
    intermediate_values,
    reached_fidelity,
    spread_evenly,
)
from shoestring.space.encoding import Encoding
from shoestring.surrogate.belief import fit_belief, fit_cost

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50))
DONE, FAILED, ABANDONED, RUNNING = st.State.DONE, st.State.FAILED, st.State.ABANDONED, st.State.RUNNING


def report(value, cost=None, **fidelity):
    return {"value": value, "fidelity": fidelity, "cost": cost}


def trial_with(reports, state=DONE, number=0, space=SPACE, **config):
    config = space.check({"x": 0.25, **config})
    fidelity = {name: config[name] for name in space.fidelities}
    return st.Trial(number, config, state, 0.5 if state is DONE else None, 50.0, fidelity=fidelity, reports=tuple(reports))


def every_epoch(last=50, price=1.0, first=1):
    return [report(1 / epoch, cost=price * epoch, epochs=epoch) for epoch in range(first, last + 1)]


def epochs_of(values, space=SPACE):
    return [space.decode(each.u)["epochs"] for each in values]


def test_of_many_reports_a_few_of_the_second_half_of_the_run_are_used():
    found = intermediate_values(trial_with(every_epoch(49), epochs=49), SPACE)
    assert MAX_VALUES_PER_TRIAL == len(found) == 4
    assert epochs_of(found) == [25, 31, 37, 43]
    assert [each.value for each in found] == pytest.approx([1 / 25, 1 / 31, 1 / 37, 1 / 43])
    assert [each.cost for each in found] == [25.0, 31.0, 37.0, 43.0]
    assert all(SPACE.decode(each.u)["x"] == pytest.approx(0.25) for each in found)


def test_few_reports_are_all_used_and_at_the_end_the_result_itself():
    reports = [report(0.9, epochs=5), report(0.6, epochs=20), report(0.7, epochs=20), report(0.5, epochs=50)]
    found = intermediate_values(trial_with(reports), SPACE)
    assert epochs_of(found) == [5, 20]
    assert [each.value for each in found] == [0.9, 0.7]  # the last one at a place
    assert intermediate_values(trial_with(every_epoch(1), epochs=1), SPACE) == []


@pytest.mark.parametrize("state", [FAILED, ABANDONED, RUNNING])
def test_without_a_result_the_last_report_is_used_too(state):
    assert epochs_of(intermediate_values(trial_with(every_epoch(9), state), SPACE)) == [5, 6, 8, 9]


def test_reports_are_spread_evenly_on_the_scale_of_the_fidelity():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, log=True))
    found = intermediate_values(trial_with(every_epoch(), space=space), space)
    assert epochs_of(found, space) == [7, 12, 19, 31]  # about 50^(4/8), 50^(5/8), 50^(6/8), 50^(7/8)


def test_a_report_without_a_fidelity_is_no_observation_and_unnamed_fidelities_are_those_of_the_trial():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50), rows=st.Fidelity(100, 1000))
    reports = [report(0.9), report(0.8, epochs=10), report(0.7, epochs=20, rows=300), report(0.6, rows=500)]
    found = intermediate_values(trial_with(reports, space=space, rows=500), space)
    assert [space.decode(each.u) for each in found] == [
        {"x": 0.25, "epochs": 10, "rows": 500}, {"x": 0.25, "epochs": 20, "rows": 300},
    ]


def test_spread_evenly():
    assert spread_evenly(np.array([]), 4, 1.0) == []
    assert spread_evenly(np.array([0.0, 0.1, 0.2, 1.0]), 3, None) == [2, 3]
    assert spread_evenly(np.linspace(0, 1, 101), 4, None) == [50, 67, 83, 100]


def history(*trials, space=SPACE, maximize=False):
    return st.History(trials, space, maximize)


@pytest.mark.parametrize("maximize", [False, True])
def test_they_come_after_the_trials_in_the_dataset(maximize):
    ended, failed = every_epoch(50, first=2), every_epoch(9, 2.0)
    trials = [trial_with(ended), trial_with([], number=1, x=0.5), trial_with(failed, FAILED, 2, x=0.75)]
    seen = to_dataset(history(*trials, maximize=maximize))
    assert (seen.finished, seen.intermediate, len(seen.y), len(seen.U), len(seen.gradients)) == (2, 8, 10, 10, 10)
    np.testing.assert_allclose(seen.U[:2, 0], [0.25, 0.5])
    np.testing.assert_allclose(seen.y[[2, 9]] * seen.sign, [1 / 26, 1 / 9])
    assert seen.sign == (-1.0 if maximize else 1.0)
    assert seen.at_target.tolist() == [True] * 2 + [False] * 8
    assert np.isnan(seen.gradients).all()
    np.testing.assert_allclose(np.exp(seen.log_cost), [50, 50, 50, 26, 32, 38, 44, 10, 12, 16, 18])  # three trials, then reports
    assert len(seen.cost_points) == len(seen.censored) == len(seen.measured) == 11
    assert not seen.censored.any()


def test_rows_that_stand_for_trials_do_not_include_them():
    trials = [trial_with(every_epoch(20), epochs=20), trial_with(every_epoch(30), number=1, epochs=30, x=0.5)]
    seen = to_dataset(history(*trials))
    assert seen.eligible.tolist() == [0, 1]
    assert seen.order.tolist() == [0, 1]
    bare = seen.without_intermediate()
    assert (len(bare.y), len(bare.U), len(bare.gradients), bare.intermediate) == (2, 2, 2, 0)
    assert bare.without_intermediate() is bare
    part = seen.select(np.array([1, 3, 4]))
    assert (part.finished, part.intermediate) == (1, 2)
    assert len(seen.visited) == 10  # a point with an intermediate value need not be suggested


def test_those_of_an_abandoned_trial_are_used_until_its_config_is_suggested_again():
    lost = trial_with(every_epoch(10), ABANDONED)
    assert to_dataset(history(lost)).intermediate == MAX_VALUES_PER_TRIAL
    assert to_dataset(history(lost, trial_with([], RUNNING, 1, x=0.5))).intermediate == MAX_VALUES_PER_TRIAL
    for state in (RUNNING, DONE):
        assert to_dataset(history(lost, trial_with([], state, 1))).intermediate == 0
    assert to_dataset(history(lost, trial_with([], DONE, 1, epochs=7))).intermediate == 0  # stopped early


def test_there_is_a_limit_for_all_trials_together():
    for count in (10, 90, 150, 390, 410):
        trials = [trial_with(every_epoch(first=40), number=number, x=number / 500) for number in range(count)]
        expected = count * min(MAX_VALUES_PER_TRIAL, MAX_VALUES_PER_STUDY // count)
        assert to_dataset(history(*trials)).intermediate == expected <= MAX_VALUES_PER_STUDY


def test_the_fidelity_that_a_trial_has_reached():
    asked = trial_with([])
    assert reached_fidelity(asked, [report(0.5, epochs=17)]) == {"epochs": 17}
    assert reached_fidelity(asked, [report(0.5, epochs=17), report(0.4, epochs=50)]) is None
    assert reached_fidelity(asked, [report(0.5)]) is None
    assert reached_fidelity(asked, []) is None


def curve(config, epochs):
    """A learning curve: its limit, its height and its rate depend on the config."""
    return 0.1 + (config["x"] - 0.4) ** 2 + 0.5 * (config["z"] - 0.6) ** 2 + (0.5 + config["z"]) * epochs ** -(0.5 + config["x"])


def curves(log, seed, reporting):
    space = st.Space(x=st.Float(0, 1), z=st.Float(0, 1), epochs=st.Fidelity(1, 50, log=log))
    rng = np.random.default_rng(seed)
    configs = [{"x": rng.random(), "z": rng.random(), "epochs": int(rng.integers(5, 51))} for _ in range(10)]
    waiting = iter(configs)

    def objective(config, trial):
        for epoch in range(1, config["epochs"] + 1) if reporting else ():
            trial.report(curve(config, epoch), epochs=epoch, cost=(0.5 + config["z"]) * epoch)
        return st.Outcome(curve(config, config["epochs"]), cost=(0.5 + config["z"]) * config["epochs"])

    study = st.Study(space, st.Random(), seed=seed)
    for config in waiting:
        study.enqueue(config)
    study.minimize(objective, 10)
    return study


@pytest.mark.slow
@pytest.mark.parametrize("log", [False, True])
def test_a_model_with_intermediate_values_predicts_the_target_and_the_cost_better(log):
    errors = {True: [], False: []}
    for seed in range(6):
        for reporting in errors:
            study = curves(log, seed, reporting)
            encoding, seen = Encoding(study.space), to_dataset(study.log)
            belief = fit_belief(seen, encoding, st.GP(), None)
            U = study.space.at_target(np.random.default_rng(99).random((200, 3)))
            truth = np.array([curve(study.space.decode(u), 50) for u in U])
            costs = np.log(50 * (0.5 + U[:, 1]))
            cost = fit_cost(seen, encoding, st.LogGPCost())
            off = belief.output.inverse(belief.objective.mean_at(encoding.features(U))) - truth, cost.log_cost(U)[0] - costs
            errors[reporting].append([np.sqrt(np.mean(each**2)) for each in off])
    with_intermediate, without = np.mean(errors[True], axis=0), np.mean(errors[False], axis=0)
    assert with_intermediate[0] < 0.9 * without[0]
    assert with_intermediate[1] < without[1]
