"""The study behind ``ShoestringSearch``, driven as Ray Tune drives a searcher, without Ray."""

import json
import math
from types import SimpleNamespace

import pytest

import shoestring as st
from shoestring.budget import read_budget
from shoestring.integrations.distributions import Translation
from shoestring.integrations.ray_spaces import read_ray_space
from shoestring.integrations.ray_study import FINISHED, TIME_TOTAL, TuneStudy, check_cost_key, check_state

SPACE = {"lr": st.Float(0.0, 1.0), "model": {"depth": st.Int(1, 5)}, "seed": 7}


def tune(space=None, metric="loss", cost=TIME_TOTAL, **options):
    """A study that is random in its choices, unless told otherwise."""
    translation = read_ray_space(SPACE) if space is None else Translation(space, {name: (name, None) for name in space})
    return TuneStudy(translation, metric=metric, cost=cost, options={"method": st.Random(), "stop": None, **options})


def run(tuned, trial_id, **more):
    """One trial from its suggestion to its end."""
    config = tuned.suggest(trial_id)
    if isinstance(config, dict):
        loss = (config["lr"] - 0.3) ** 2 + 0.01 * config["model"]["depth"]
        tuned.complete(trial_id, {"loss": loss, TIME_TOTAL: 2.0, **more}, error=False)
    return config


def test_a_suggestion_is_a_nested_config_without_the_constants():
    config = tune().suggest("a")
    assert set(config) == {"lr", "model"}
    assert set(config["model"]) == {"depth"}


def test_the_same_id_gets_the_same_config_and_no_second_trial():
    tuned = tune()
    assert tuned.suggest("a") == tuned.suggest("a")
    assert len(tuned.study.log) == 1


def test_values_and_seconds_reach_the_study():
    tuned = tune()
    config = run(tuned, "a")
    trial = tuned.study.log[0]
    assert trial.config == {"lr": config["lr"], "model/depth": config["model"]["depth"]}
    assert trial.value == pytest.approx((config["lr"] - 0.3) ** 2 + 0.01 * config["model"]["depth"])
    assert (trial.cost, trial.seconds) == (2.0, 2.0)


def test_the_direction_is_that_of_the_mode():
    tuned = tune(direction="maximize")
    for trial_id, score in (("a", 0.1), ("b", 0.9)):
        tuned.suggest(trial_id)
        tuned.complete(trial_id, {"loss": score}, error=False)
    assert tuned.study.best.value == 0.9


def test_a_cost_is_read_from_the_key_that_is_named():
    tuned = tune(cost="dollars", unit="USD")
    run(tuned, "a", dollars=0.25)
    assert tuned.study.log[0].cost == 0.25
    assert tuned.study.log[0].seconds == 2.0


def test_seconds_have_a_price_where_an_hour_has_one():
    tuned = tune(unit="USD", per_hour=3600.0)
    run(tuned, "a", time_total_s=5.0)
    assert tuned.study.log[0].cost == 5.0
    tuned = tune(unit="USD", per_hour=7200.0)
    run(tuned, "a", time_total_s=5.0)
    assert tuned.study.log[0].cost == 10.0


@pytest.mark.parametrize(("budget", "unit"), [("5 USD", None), (None, "USD"), (9, "USD")])
def test_seconds_do_not_count_as_another_unit_without_a_price(budget, unit):
    budget = None if budget is None else read_budget(budget)
    how = r'costs are in USD, but cost=.time_total_s. counts seconds; name the key of the results .* cost="dollars" .* per_hour='
    with pytest.raises(st.MethodError, match=how):
        check_cost_key(TIME_TOTAL, budget, unit, None)
    check_cost_key(TIME_TOTAL, budget, unit, 2.5)
    check_cost_key("dollars", budget, unit, None)


@pytest.mark.parametrize("budget", ["2h", 9, st.Budget(cost=4.0), st.Budget(cost=5.0, unit="USD", per_hour=2.0)])
def test_a_budget_that_seconds_can_be_counted_in_needs_no_key(budget):
    check_cost_key(TIME_TOTAL, read_budget(budget), None, None)


def whole_state():
    tuned = tune()
    run(tuned, "a")
    return tuned.state()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (dict.fromkeys(("metric", "cost", "numbers", "reports", "study")), "metric, numbers, reports and study"),
        ({"study": {}}, "study"),
        ({"study": {"space": {}, "direction": "sideways"}}, "study"),
        ({"numbers": {"a": "first"}}, "numbers"),
        ({"reports": {"a": None}}, "reports"),
    ],
)
def test_a_state_of_which_parts_are_missing_is_refused_and_named(damage, named):
    state = {name: value for name, value in {**whole_state(), **damage}.items() if value is not None}
    with pytest.raises(st.StudyError, match=rf"not complete: {named} missing or damaged; give the file that save\(\) wrote"):
        check_state(state)


def test_a_state_that_names_a_trial_it_does_not_have_is_refused():
    with pytest.raises(st.StudyError, match="names a trial that is not among its 1"):
        tune().set_state({**whole_state(), "numbers": {"a": 7}})


def test_a_cost_that_is_named_and_never_reported_is_an_error_at_the_first_result():
    tuned = tune(cost="dollars")
    tuned.suggest("a")
    with pytest.raises(st.MethodError, match=r"a result has no 'dollars', which cost= names.*it has: loss"):
        tuned.result("a", {"loss": 1.0})


def test_without_the_time_of_tune_the_time_since_the_suggestion_counts():
    tuned = tune()
    tuned.suggest("a")
    tuned.complete("a", {"loss": 1.0}, error=False)
    assert 0.0 <= tuned.study.log[0].cost < 10.0


# -- the end -----------------------------------------------------------------------------------------------------------


def test_it_is_finished_when_the_budget_in_trials_is_spent_and_running_trials_count():
    tuned = tune(budget=2)
    assert isinstance(tuned.suggest("a"), dict)
    assert isinstance(tuned.suggest("b"), dict)
    assert tuned.suggest("c") == FINISHED
    assert tuned.verdict.reason == "the budget of 2 trials is used up"


def test_it_is_finished_when_the_budget_in_cost_is_spent():
    tuned = tune(budget=st.Budget(cost=4.0))
    assert [isinstance(run(tuned, str(i)), dict) for i in range(3)] == [True, True, False]
    assert tuned.verdict.kind == "budget"


def test_it_is_finished_when_the_time_is_up(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("shoestring.integrations.ray_study.time", SimpleNamespace(monotonic=lambda: now[0]))
    tuned = tune(budget="10m")
    assert isinstance(run(tuned, "a"), dict)
    now[0] += 601.0
    assert tuned.suggest("b") == FINISHED
    assert tuned.verdict.reason == "the budget of 10 m 00 s is used up"


def test_it_is_finished_when_the_rule_says_so():
    tuned = tune(stop=st.Patience(3))
    said = [run(tuned, str(i)) for i in range(60)]
    assert FINISHED in said
    assert tuned.verdict.kind != "budget"
    assert "3 trials" in tuned.verdict.reason


def test_it_is_finished_when_all_configs_were_tried():
    tuned = tune(st.Space(n=st.Choice("a", "b")))
    for trial_id in "ab":
        tuned.suggest(trial_id)
        tuned.complete(trial_id, {"loss": 1.0}, error=False)
    assert tuned.suggest("c") == FINISHED
    assert tuned.verdict.kind == "exhausted"


def test_it_is_finished_when_a_stop_was_requested():
    tuned = tune()
    tuned.study.halt("seen enough")
    assert tuned.suggest("a") == FINISHED
    assert tuned.verdict.reason == "seen enough"


def test_it_waits_while_nothing_fits_into_the_budget_and_something_runs(monkeypatch):
    tuned = tune(budget=st.Budget(cost=100.0))
    assert isinstance(tuned.suggest("a"), dict)
    asked = []

    def nothing_fits():
        asked.append(1)
        raise st.NothingFits("nothing fits into what is left")

    monkeypatch.setattr(tuned.study, "ask", nothing_fits)
    assert tuned.suggest("b") is None
    assert tuned.suggest("b") is None
    assert len(asked) == 1  # not computed again before something has changed
    tuned.complete("a", {"loss": 1.0, TIME_TOTAL: 1.0}, error=False)
    assert tuned.suggest("b") == FINISHED
    assert tuned.verdict.reason == "nothing fits into what is left"


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_trial_that_failed_is_charged_and_named():
    tuned = tune()
    tuned.suggest("a1b2")
    tuned.complete("a1b2", {TIME_TOTAL: 3.0}, error=True)
    trial = tuned.study.log[0]
    assert (trial.state, trial.cost) == (st.State.FAILED, 3.0)
    assert trial.error == "the trial failed: trial a1b2 of Ray Tune"


def test_a_failure_without_a_result_is_charged_what_was_reported():
    tuned = tune()
    tuned.suggest("a")
    tuned.result("a", {"loss": 1.0, TIME_TOTAL: 4.0})
    tuned.complete("a", None, error=True)
    assert (tuned.study.log[0].state, tuned.study.log[0].cost) == (st.State.FAILED, 4.0)
    assert len(tuned.study.log[0].reports) == 1


def test_a_metric_that_is_nan_or_missing_is_a_failed_trial():
    tuned = tune()
    for trial_id, result in (("a", {"loss": math.nan}), ("b", {"accuracy": 1.0}), ("c", None)):
        tuned.suggest(trial_id)
        tuned.complete(trial_id, result, error=False)
    assert [trial.state for trial in tuned.study.log] == [st.State.FAILED] * 3
    assert "nan" in tuned.study.log[0].error
    assert "its result has no 'loss'" in tuned.study.log[1].error
    assert "ended without a result" in tuned.study.log[2].error


def test_a_metric_that_is_no_number_is_an_error():
    tuned = tune()
    tuned.suggest("a")
    with pytest.raises(st.MethodError, match="the metric 'loss' must be a number"):
        tuned.complete("a", {"loss": "low"}, error=False)


def test_a_failed_trial_that_tune_runs_again_adds_its_result():
    tuned = tune()
    tuned.suggest("a")
    tuned.complete("a", None, error=True)
    tuned.complete("a", {"loss": 0.5, TIME_TOTAL: 1.0}, error=False)
    assert [trial.state for trial in tuned.study.log] == [st.State.FAILED, st.State.DONE]
    assert tuned.study.log[1].added
    tuned.complete("a", None, error=True)
    assert len(tuned.study.log) == 2


def test_a_trial_of_another_searcher_is_left_alone():
    tuned = tune()
    tuned.result("unknown", {"loss": 1.0})
    tuned.complete("unknown", {"loss": 1.0}, error=False)
    assert len(tuned.study.log) == 0


# -- intermediate results and fidelities -------------------------------------------------------------------------------

EPOCHS = st.Space(lr=st.Float(0, 1), epochs=st.Fidelity(1, 10))


def test_intermediate_results_are_kept_with_the_trial_and_the_last_one_is_the_value():
    tuned = tune()
    tuned.suggest("a")
    for step, loss in enumerate([3.0, math.nan, 1.0], start=1):
        tuned.result("a", {"loss": loss, "training_iteration": step, TIME_TOTAL: float(step)})
    tuned.complete("a", {"loss": 1.0, "training_iteration": 3, TIME_TOTAL: 3.0}, error=False)
    trial = tuned.study.log[0]
    assert [(report["value"], report["cost"]) for report in trial.reports] == [(3.0, 1.0), (1.0, 3.0)]
    assert (trial.value, trial.cost) == (1.0, 3.0)


@pytest.mark.parametrize("key", ["epochs", "training_iteration"])
def test_a_trial_that_a_scheduler_cut_short_is_one_of_the_fidelity_that_it_reached(key):
    tuned = tune(EPOCHS)
    assert tuned.suggest("a")["epochs"] == 10
    for epoch in range(1, 5):
        tuned.result("a", {"loss": 1.0 / epoch, key: epoch, TIME_TOTAL: float(epoch)})
    tuned.complete("a", {"loss": 0.25, key: 4, TIME_TOTAL: 4.0}, error=False)
    trial = tuned.study.log[0]
    assert (trial.fidelity, trial.value, trial.cost) == ({"epochs": 4}, 0.25, 4.0)
    assert trial.suggestion["stopped"]["kind"] == "scheduler"
    assert [report["fidelity"]["epochs"] for report in trial.reports] == [1, 2, 3, 4]


def test_a_trial_that_ran_to_its_end_has_the_fidelity_that_was_asked():
    tuned = tune(EPOCHS)
    tuned.suggest("a")
    tuned.complete("a", {"loss": 0.1, "epochs": 10}, error=False)
    assert tuned.study.log[0].fidelity == {"epochs": 10}
    assert "stopped" not in tuned.study.log[0].suggestion


def test_a_paused_trial_that_is_ended_has_its_last_report_as_its_value():
    tuned = tune(EPOCHS)
    tuned.suggest("a")
    tuned.result("a", {"loss": 0.5, "epochs": 2, TIME_TOTAL: 2.0})
    tuned.complete("a", None, error=False)
    assert (tuned.study.log[0].value, tuned.study.log[0].fidelity, tuned.study.log[0].cost) == (0.5, {"epochs": 2}, 2.0)


def test_a_trial_that_begins_again_reports_again():
    tuned = tune(EPOCHS)
    tuned.suggest("a")
    for epoch in (1, 2, 3, 1, 2):
        tuned.result("a", {"loss": 1.0 / epoch, "epochs": epoch})
    tuned.complete("a", {"loss": 0.5, "epochs": 2}, error=False)
    assert [report["fidelity"]["epochs"] for report in tuned.study.log[0].reports] == [1, 2]


# -- results and configs from elsewhere --------------------------------------------------------------------------------


def test_configs_to_try_first_come_first():
    tuned = tune()
    tuned.enqueue({"lr": 0.5, "model": {"depth": 2}})
    tuned.enqueue({"lr": 0.25})
    assert tuned.suggest("a") == {"lr": 0.5, "model": {"depth": 2}}
    assert tuned.suggest("b")["lr"] == 0.25


def test_a_result_from_elsewhere_is_learned_from_and_not_charged():
    tuned = tune(budget=1)
    tuned.add({"lr": 0.5, "model": {"depth": 2}, "seed": 7}, 0.1, error=False)
    assert (tuned.study.best.value, tuned.study.log.spent) == (0.1, 0.0)
    assert isinstance(tuned.suggest("a"), dict)


# -- saved and restored ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [st.Random(), st.EI()], ids=["Random", "EI"])
def test_a_restored_study_makes_the_same_next_suggestion(method):
    tuned = tune(method=method, initial=4)
    for i in range(6):
        run(tuned, str(i))
    tuned.suggest("runs")
    tuned.result("runs", {"loss": 0.7, TIME_TOTAL: 1.0})
    saved = json.loads(json.dumps(tuned.state()))
    again = tune(method=method, initial=4)
    again.set_state(saved)
    assert again.suggest("next") == tuned.suggest("next")
    for each in (tuned, again):  # a trial that ran then ends now
        each.complete("runs", {"loss": 0.6, TIME_TOTAL: 2.0}, error=False)
    assert again.study.log[6].value == 0.6
    assert len(again.study.log[6].reports) == 1
    assert again.suggest("one more") == tuned.suggest("one more")


def test_what_was_spent_counts_after_a_restore_and_the_budget_may_be_raised():
    tuned = tune(budget=2)
    assert [isinstance(run(tuned, str(i)), dict) for i in range(3)] == [True, True, False]
    same, larger = tune(budget=2), tune(budget=3)
    for each in (same, larger):
        each.set_state(tuned.state())
    assert run(same, "3") == FINISHED
    assert isinstance(run(larger, "3"), dict)
    assert run(larger, "4") == FINISHED


def test_a_state_of_another_search_is_refused():
    saved = tune().state()
    with pytest.raises(st.StudyError, match="has another space"):
        tune(st.Space(x=st.Float(0, 1))).set_state(saved)
    with pytest.raises(st.StudyError, match="is of the metric 'loss' to minimize, this one of 'score' to minimize"):
        tune(metric="score").set_state(saved)
    with pytest.raises(st.StudyError, match="is of the metric 'loss' to minimize, this one of 'loss' to maximize"):
        tune(direction="maximize").set_state(saved)
    with pytest.raises(st.StudyError, match="not the state of a ShoestringSearch"):
        tune().set_state({"some": "thing"})


@pytest.mark.parametrize("cost", ["much", -1.0, math.nan, True])
def test_a_cost_that_is_no_amount_is_an_error_at_the_result(cost):
    study = tune(cost="usd")
    study.suggest("a")
    with pytest.raises(st.MethodError, match=r"a result has 'usd': .*, which cost= names; report a number"):
        study.result("a", {"loss": 1.0, "usd": cost})
