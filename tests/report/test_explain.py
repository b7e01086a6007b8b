"""``study.explain()``: the method of the next trial, the reason, what was rejected, and the last trial's expectations."""

import json

import pytest

import shoestring as st

SPACE = st.Space(x=st.Float(0, 1), n=st.Int(1, 100, log=True))


def told(trials, *, cost=lambda config: 0.5 * config["n"], space=SPACE, **options):
    study = st.Study(space, seed=1, initial=4, **options)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, (trial.config["x"] - 0.3) ** 2 + 1 / trial.config["n"], cost=cost(trial.config))
    return study


def test_before_the_first_results_it_is_the_initial_design():
    found = told(1, budget=30).explain()
    assert found.method == "initial design"
    assert "1 of 4" in found.why
    assert found.last is None
    assert found.budget == "1 of 30 trials"


def test_costs_that_differ_are_weighed_and_plain_ei_is_rejected():
    found = told(7).explain()
    assert "costs differ" in found.why
    assert "EI" in found.rejected
    assert "cost" in found.last
    assert "expected improvement" in found.last


def test_equal_costs_are_left_out_and_it_is_said_why():
    found = told(7, cost=lambda config: 2.0).explain()
    assert found.method == "LogEI()"
    assert "nearly equal" in found.why
    assert "nearly equal" in str(found)


def test_costs_that_nothing_predicts_are_left_out():
    draws = iter([1.0, 50.0, 1.5, 40.0, 60.0, 1.2, 55.0, 1.1, 45.0, 1.3])
    assert "cannot predict" in told(10, cost=lambda config: next(draws)).explain().why


def test_the_reason_is_stored_with_each_suggestion_of_the_model_and_nothing_else(tmp_path):
    address = tmp_path / "tune.db"
    study = told(6, storage=address, name="s")
    study.close()
    trials = st.Study.load(address, "s").history
    assert [("decision" in trial.suggestion) for trial in trials] == [False] * 4 + [True] * 2
    assert set(trials[-1].suggestion["decision"]) == {"why", "rejected"}


@pytest.mark.parametrize("method", [st.EI(), st.TPE(), st.Random()], ids=["EI", "TPE", "Random"])
def test_a_method_of_your_choice_is_named_as_that(method):
    found = told(6, method=method).explain()
    assert type(method).__name__ in found.method
    assert "you chose it" in found.why


def test_fidelities_failures_running_trials_and_the_rule_are_named():
    space = st.Space(x=st.Float(0, 1), n=st.Fidelity(1, 100))
    study = told(6, space=space, stop=st.Patience(30))
    study.tell(study.ask(), error="no memory")
    study.ask()
    found = study.explain()
    assert "fidelities" in found.why
    assert "1 failed trial" in found.model
    assert "1 running trial" in found.model
    assert "Patience" in found.stop


def test_it_is_ready_for_json_and_for_print():
    found = told(6, budget=st.Budget(cost=500, unit="USD"), unit="USD", stop=None).explain()
    assert json.loads(json.dumps(found.to_dict()))["budget"].endswith("left")
    text = str(found)
    assert text.startswith("next trial")
    assert "USD" in text
    assert "stop=None" in text
