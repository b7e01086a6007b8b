"""Results as a study records and returns them: what it returns is a copy, and nothing done to it reaches the study."""

import json
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import shoestring as st
from shoestring.numerics import one_thread
from tests.problems import abandon

SPACE = st.Space(x=st.Float(0, 1), layers=st.Choice([64, 64], [32]), epochs=st.Fidelity(1, 9))


def value(config):
    return (config["x"] - 0.3) ** 2 + len(config["layers"])


def spoil(trial):
    trial.config.clear()
    trial.suggestion.clear()
    trial.fidelity.clear()


def test_no_record_that_is_handed_out_can_spoil_the_study():
    clean, handled = (st.Study(SPACE, st.EI(), seed=1, initial=4) for _ in range(2))
    expected = clean.minimize(value, 8).to_dicts()
    result = handled.minimize(value, 6, callbacks=lambda study, trial: spoil(trial))
    kept = handled.to_json()
    spoil(result.best)
    spoil(handled.best)
    spoil(handled.history[3])
    for record in result.to_dicts():
        record["config"].clear()
    assert handled.to_json() == kept
    result = handled.minimize(value, 8)
    assert [trial.config for trial in result.history] == [record["config"] for record in expected]


def test_a_result_stays_what_it_was_when_its_study_goes_on():
    study = st.Study(SPACE, seed=0)
    early = study.minimize(value, 5)
    study.minimize(value, 10)
    assert len(early.history) == 5
    assert early.study.recommend(early.history, tried=True).number < 5
    assert "5" in str(early).splitlines()[0]


def test_a_trial_of_another_study_is_refused():
    study, other = st.Study(SPACE), st.Study(SPACE)
    study.ask()
    with pytest.raises(st.TrialError, match="another study"):
        study.tell(other.ask(), 0.5)


@pytest.mark.parametrize("number", ["0", 0.9, None, True, -1, 7])
def test_a_number_that_is_not_a_trial_is_refused(number):
    study = st.Study(SPACE)
    study.ask()
    with pytest.raises(st.TrialError, match="no trial"):
        study.tell(number, 0.5)


def test_a_second_result_that_differs_is_refused_in_value_cost_or_error():
    study = st.Study(SPACE)
    trial = study.ask()
    study.tell(trial, 0.5, cost=2.0)
    assert study.tell(trial, 0.5).cost == study.tell(trial, 0.5, cost=2.0).cost == 2.0
    for change in ({"value": 0.6}, {"value": 0.5, "cost": 3.0}, {"error": "no"}):
        with pytest.raises(st.TrialError, match="already done"):
            study.tell(trial, **change)


def test_the_late_result_of_an_abandoned_trial_is_kept():
    study = st.Study(SPACE)
    trial = study.ask()
    assert abandon(study, trial.number)
    assert study.history[0].state is st.State.ABANDONED
    study.tell(trial, 0.5)
    assert study.history[0].state is st.State.DONE
    assert study.history[0].value == 0.5


def test_trials_left_open_by_another_process_are_evaluated_on_resuming():
    study = st.Study(SPACE, seed=3)
    study.minimize(value, 4)
    left = study.ask()
    again = st.Study.from_json(study.to_json())
    result = again.minimize(value, 6)
    assert [trial.state for trial in result.history] == ["done"] * 4 + ["abandoned"] + ["done"] * 2
    assert result.history[5].config == left.config


def test_a_trial_told_in_another_process_is_charged_the_seconds_since_it_was_asked():
    study = st.Study(SPACE)
    study.ask()
    again = st.Study.from_json(study.to_json())
    told = again.tell(0, 0.5)
    assert told.cost == told.seconds
    assert told.cost >= 0


def test_folds_that_are_not_finite_survive_the_way_through_json():
    study = st.Study(SPACE)
    study.tell(study.ask(), 0.3, folds=[0.1, float("nan")])
    text = study.to_json()
    json.loads(text, parse_constant=pytest.fail)
    folds = st.Study.from_json(text).history[0].folds
    assert folds[0] == 0.1
    assert np.isnan(folds[1])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"shoestring": 99}', '{"shoestring": 1}', '{"shoestring": 1, "space": {}, "trials": 3}']
)
def test_text_that_is_not_a_study_is_refused_with_the_reason(text):
    with pytest.raises(st.ShoestringError):
        st.Study.from_json(text)


def test_an_exception_that_ends_minimize_carries_the_study():
    def stop(study, trial):
        if trial.number == 4:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as caught:
        st.minimize(value, SPACE, 9, callbacks=[stop])
    assert len(caught.value.study.history) == 5


def test_ctrl_c_while_a_rule_is_checked_keeps_what_was_learnt():
    class Slow:
        def check(self, history, belief=None):
            if len(history) == 6:
                raise KeyboardInterrupt
            return st.Verdict(False, "go on")

    result = st.minimize(value, SPACE, 9, stop=Slow(), on_interrupt="return")
    assert len(result.history) == 6
    assert result.stop.kind == "interrupted"
    assert "asked again" not in result.stop.reason


def test_costs_in_one_unit_are_not_counted_in_another():
    study = st.Study(SPACE)
    study.minimize(lambda config: st.Outcome(value(config), cost=3.0), st.Budget(cost=9, unit="USD"))
    with pytest.raises(st.BudgetError, match="USD"):
        study.minimize(value, "20 EUR")
    assert study.minimize(value, st.Budget(trials=4)).unit == "USD"


def test_the_thread_cap_is_lifted_when_the_last_thread_leaves():
    """Overlapping caps in several threads once left the user's BLAS on one thread for good."""
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    inside, leave = threading.Barrier(3), threading.Event()

    def hold():
        with one_thread():
            inside.wait(10)
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    during = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    leave.set()
    for thread in threads:
        thread.join()
    after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert set(during) == {1}
    assert after == before


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_a_cost_of_zero_is_a_cost_and_keeps_the_value(database):
    study = st.Study(SPACE, st.EIpu(), storage=database.open(), budget=st.Budget(cost=100.0), initial=3)
    for number in range(8):
        trial = study.ask()
        study.tell(trial, value(trial.config), cost=0.0 if number % 2 else 3.0)
    assert [trial.state for trial in study.history] == [st.State.DONE] * 8
    assert [trial.cost for trial in st.Study.load(database.open()).history] == [3.0, 0.0] * 4
    assert study.history.spent == 12.0
    log_cost = study.context.data.log_cost
    assert np.allclose(np.exp(log_cost), [3.0, 0.3] * 4)
    free = st.minimize(lambda config: st.Outcome(value(config), cost=0), SPACE, 9, method=st.EIpu(), progress=False)
    assert (free.history.number_of(st.State.DONE), free.spent) == (9, 0.0)
