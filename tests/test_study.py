import numpy as np
import pytest

import shoestring as st
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study


def configs_of(history):
    return [trial.config for trial in history if trial.state is not st.State.ABANDONED]


# -- tell, add, enqueue ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [{}, {"value": "low"}, {"value": True}, {"value": 1.0, "cost": -1}, {"folds": [1.0]}, {"value": 1.0, "gradient": {"z": 1.0}}],
)
def test_a_bad_result_raises_and_leaves_the_trial_open(told):
    study = st.Study(plane())
    trial = study.ask()
    with pytest.raises(st.OutcomeError):
        study.tell(trial, **told)
    assert study.history[0].state is st.State.RUNNING
    study.tell(trial, 0.5, cost=1.0)
    assert study.best.value == 0.5


def test_the_same_result_twice_changes_nothing_and_another_one_is_refused():
    study = st.Study(plane())
    trial = study.ask()
    first = study.tell(trial, 0.5, cost=1.0)
    assert study.tell(trial, 0.5, cost=1.0) == first
    with pytest.raises(st.TrialError, match="trial 0"):
        study.tell(trial, 0.6)
    with pytest.raises(st.TrialError, match="trial 0"):
        study.tell(trial, error="no")
    assert study.history[0] == first
    other = study.ask()
    failed = study.tell(other, float("nan"), cost=1.0)
    assert study.tell(other, float("nan"), cost=1.0) == failed


@pytest.mark.parametrize("number", [-1, 5])
def test_a_trial_that_was_never_asked_is_refused(number):
    study = st.Study(plane())
    study.ask()
    with pytest.raises(st.TrialError, match=str(number)):
        study.tell(number, 1.0)


def test_a_cost_given_beside_an_outcome_is_kept():
    study = st.Study(plane())
    assert study.tell(study.ask(), st.Outcome(0.5), cost=7.0).cost == 7.0


@pytest.mark.parametrize("config", [{"x0": 0.5, "x1": 2.0}, {"x0": 0.5, "x1": 0.5, "z": 1}, None, [0.5, 0.5]])
def test_a_bad_config_is_neither_enqueued_nor_added(config):
    study = st.Study(plane())
    with pytest.raises(st.ConfigError):
        study.enqueue(config)
    with pytest.raises(st.ConfigError):
        study.add(config, 1.0)
    assert len(study.history) == 0
    study.ask()
    assert study.history[0].suggestion["why"] != "enqueued"


def test_a_bad_result_is_not_added():
    study = st.Study(plane())
    with pytest.raises(st.OutcomeError):
        study.add({"x0": 0.5, "x1": 0.5}, "low")
    assert len(study.history) == 0
    assert study.add({"x0": 0.5, "x1": 0.5}, 1.0).number == 0


def test_failures_can_be_added():
    study = st.Study(plane())
    assert study.add({"x0": 0.5, "x1": 0.5}, error="diverged", cost=3.0).state is st.State.FAILED
    assert study.add({"x0": 0.5, "x1": 0.6}, float("nan")).state is st.State.FAILED


def test_enqueued_configs_are_asked_in_their_order_and_evaluated():
    study = st.Study(plane())
    for x in (0.1, 0.2, 0.3):
        study.enqueue({"x0": x, "x1": np.float32(0.5)})
    result = study.minimize(bowl, 4)
    assert [trial.config["x0"] for trial in result.history][:3] == [0.1, 0.2, 0.3]


def test_what_is_done_to_a_config_that_was_asked_does_not_change_the_study():
    study = st.Study(st.Space(x=st.Float(0, 1), layers=st.Choice([64, 64], [32])))
    trial = study.ask()
    expected = {"x": trial.config["x"], "layers": list(trial.config["layers"])}
    trial.config["layers"].append(1)
    trial.config.pop("x")
    study.tell(trial, 0.5)
    assert study.history[0].config == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"space": {"x": 1}}, {"method": "best"}, {"method": st.EI}, {"stop": "never"}, {"direction": "up"},
        {"initial": 0}, {"seed": -1},
    ],
    ids=str,
)
def test_a_study_that_cannot_be_is_refused(wrong):
    with pytest.raises(st.ShoestringError):
        st.Study(**{"space": plane(), **wrong})


# -- budgets -----------------------------------------------------------------------------------------------------------


def test_a_cost_budget_is_not_overshot_once_costs_are_known():
    result = st.minimize(lambda config: st.Outcome(0.5, cost=3.0), plane(), st.Budget(cost=10.0, unit="USD"))
    assert result.spent == 9.0
    assert "1 USD of the budget" in result.stop.reason


def test_a_time_is_a_time_of_the_study_its_own_work_included():
    result = st.minimize(bowl, plane(), "100ms")
    assert result.budget == st.Budget(seconds=0.1)
    assert "100 ms" in result.stop.reason
    assert result.study.seconds >= 0.1
    assert result.spent < 0.1


def test_a_budget_of_seconds_counts_the_clock():
    result = st.minimize(bowl, plane(), st.Budget(seconds=0.05), method=st.Random())
    assert "budget" in result.stop.reason
    assert result.study.seconds >= 0.05


def test_a_budget_counts_what_was_spent_before():
    study = st.Study(plane(), st.Random())
    study.minimize(bowl, 3)
    assert len(study.minimize(bowl, 5).history) == 5
    assert len(study.minimize(bowl, 5).history) == 5


@pytest.mark.parametrize("budget", [None, "soon", 0, 2.5])
def test_a_bad_budget_is_refused_before_anything_runs(budget):
    calls = []
    with pytest.raises(st.BudgetError):
        st.minimize(calls.append, plane(), budget)
    assert calls == []


# -- failures ----------------------------------------------------------------------------------------------------------


def test_raise_errors_raises_and_the_study_can_go_on():
    study = st.Study(plane())

    def broken(config):
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        study.minimize(broken, 3, raise_errors=True)
    assert len(study.minimize(bowl, 3).history.having(st.State.DONE)) == 3


def test_a_failed_outcome_is_charged_the_cost_it_states():
    for outcome in (st.Outcome(None, cost=5.0), st.Outcome("low", cost=5.0), st.Outcome(float("nan"), cost=5.0)):
        trial = st.minimize(lambda config: outcome, plane(), 1, fail_fast=False).history[0]  # noqa: B023
        assert trial.state is st.State.FAILED
        assert trial.cost == 5.0


def test_a_cost_that_cannot_be_fails_the_trial_and_says_so():
    trial = st.minimize(lambda config: st.Outcome(0.5, cost=-1.0), plane(), 1).history[0]
    assert trial.state is st.State.FAILED
    assert "cost" in trial.error
    assert trial.cost > 0


def test_a_failed_config_is_not_asked_again():
    space = st.Space(n=st.Int(0, 9))
    result = st.minimize(lambda config: 1 / 0, space, 30, fail_fast=False)
    assert sorted(trial.config["n"] for trial in result.history) == list(range(10))
    assert "10" in result.stop.reason


# -- stopping, callbacks -----------------------------------------------------------------------------------------------


def test_callbacks_see_every_finished_trial_and_may_halt():
    seen = []

    def watch(study, trial):
        seen.append((trial.number, trial.state, len(study.history)))
        if trial.number == 3:
            study.halt("good enough")

    result = st.minimize(bowl, plane(), 10, callbacks=[watch])
    assert seen == [(i, "done", i + 1) for i in range(4)]
    assert result.stop.reason == "good enough"
    assert len(result.study.minimize(bowl, 6).history) == 6


def test_a_rule_ends_the_study_with_its_reason():
    class Enough:
        def check(self, history, belief=None):
            found = history.best is not None and history.best.value < 0.1
            return st.Verdict(found, "below 0.1", {"best": 0.0})

    result = st.minimize(bowl, plane(), 50, stop=Enough())
    assert result.best.value < 0.1
    assert result.stop.reason == "below 0.1"
    assert all(trial.value >= 0.1 for trial in result.history[:-1])


def test_a_study_begun_one_way_up_cannot_be_turned_over():
    study = st.Study(plane())
    study.minimize(bowl, 2)
    with pytest.raises(st.MethodError, match="minimize"):
        study.maximize(bowl, 4)


# -- invariances -------------------------------------------------------------------------------------------------------


def test_maximizing_is_minimizing_the_negative():
    up = st.maximize(lambda config: -mixed_value(config), mixed_space(), 12, seed=2, initial=5)
    down = st.minimize(mixed_value, mixed_space(), 12, seed=2, initial=5)
    assert configs_of(up.history) == configs_of(down.history)
    assert up.best.value == -down.best.value
    assert up.recommended.value == -down.recommended.value


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**20])
def test_suggestions_do_not_feel_a_factor_of_the_values(factor):
    """A power of two, so that rounding is the same and configs are equal to the last bit."""
    plain = st.minimize(bowl, plane(), 10, initial=4, model=st.GP(output="standard"))
    scaled = st.minimize(lambda config: factor * bowl(config), plane(), 10, initial=4, model=st.GP(output="standard"))
    assert configs_of(plain.history) == configs_of(scaled.history)


@pytest.mark.parametrize(("factor", "shift"), [(3.0, 0.0), (1e-6, 5.0), (1e4, -1e3)])
def test_the_next_suggestion_does_not_feel_an_affine_change_of_the_values(factor, shift):
    values = (bowl, lambda config: factor * bowl(config) + shift)
    plain, changed = (told_study(plane(), value, 10, model=st.GP(output="standard")) for value in values)
    np.testing.assert_allclose(list(plain.ask().config.values()), list(changed.ask().config.values()), atol=0.02)


def test_in_a_finite_space_the_order_of_the_parameters_does_not_change_the_suggestion():
    space = st.Space(n=st.Int(0, 6), m=st.Int(0, 9), c=st.Choice("a", "b", "c"))
    turned = st.Space({name: space[name] for name in ("c", "m", "n")})

    def value(config):
        return (config["n"] - 2.2) ** 2 + 0.1 * (config["m"] - 7.1) ** 2 + 3 * (config["c"] == "b")

    study = told_study(space, value, 14)
    other = st.Study(turned)
    for trial in study.history:
        other.add(trial.config, trial.value, cost=1.0)
    assert study.ask().config == other.ask().config


def test_seeds():
    def configs(seed):
        return configs_of(st.minimize(bowl, plane(), 8, seed=seed, initial=4).history)

    assert configs(1) == configs(1)
    assert configs(1) != configs(2)
    assert configs(None) != configs(None)


# -- fidelity ----------------------------------------------------------------------------------------------------------


def test_trials_are_asked_at_the_target_and_low_fidelities_do_not_become_best():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(0.1, 1.0, target=0.5))
    study = st.Study(space, method=st.EI(), initial=3)
    for x in (0.1, 0.5, 0.9):
        study.add({"x": x, "epochs": 1, "rows": 0.1}, -100.0 + x, cost=1.0)
    assert study.best.fidelity == {"epochs": 1, "rows": 0.1}
    result = study.minimize(lambda config: (config["x"] - 0.3) ** 2, 9)
    for trial in result.history[3:]:
        assert trial.fidelity == {"epochs": 9, "rows": 0.5}
    assert result.best.number >= 3
    assert study.recommend(tried=True).number >= 3
    assert {name: result.recommended.config[name] for name in ("epochs", "rows")} == {"epochs": 9, "rows": 0.5}


def test_missing_fidelities_of_an_added_trial_are_at_the_target():
    study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)))
    assert study.add({"x": 0.5}, 1.0).fidelity == {"epochs": 9}
