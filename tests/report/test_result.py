import csv
import dataclasses
import io
import json
import logging
import sys

import numpy as np
import pytest

import shoestring as st
from shoestring.report.summary import summary_text
from tests.problems import mixed_space, mixed_value, plane

SPACE = st.Space(x=st.Float(0, 1), c=st.Choice("<script>alert(1)</script>", "a,b"))


def objective(config):
    if config["x"] > 0.8:
        raise MemoryError('too "big", <b>really</b>')
    return st.Outcome((config["x"] - 0.3) ** 2, cost=2.0)


@pytest.fixture(scope="module")
def result():
    return st.Study(SPACE, st.Random(), seed=1).minimize(objective, 15)


def test_the_summary_says_what_matters_in_a_few_rounded_lines(result):
    text = str(result)
    assert repr(result).startswith("Result(best=")
    assert "\n" not in repr(result)
    labels = [line.split("  ")[0] for line in text.splitlines()]
    assert {"trials", "spent", "best", "config", "failed", "stopped", "next"} <= set(labels)
    assert len(labels) <= 10
    failed = sum(trial.state is st.State.FAILED for trial in result.history)
    assert failed > 0
    assert "15" in text.splitlines()[0]
    assert f"{failed} failed" in text.splitlines()[0]
    assert f"{result.best.value:.4g} (trial {result.best.number})" in text
    assert "the budget of 15 trials is used up" in text
    assert "study.minimize" in text


def test_the_summary_of_a_study_in_which_nothing_succeeded():
    result = st.Study(SPACE, st.Random()).minimize(lambda config: None, 3, fail_fast=False)
    rows = dict(result.rows())
    assert rows["best"] == "nothing has succeeded yet"
    assert rows["failed"].startswith("3 times: the objective returned None")
    assert rows["next"].startswith("look at result.study.history[2].traceback, then result.study.minimize(")
    with pytest.raises(st.StudyError, match="returned None"):
        _ = result.best
    assert result.history.best is None
    assert result.recommended is None
    assert "<table" in result._repr_html_()


def at_low_fidelities(budget, method):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50))

    def train(config):
        return st.Outcome((config["x"] - 0.3) ** 2 + 0.1 / config["epochs"], cost=config["epochs"])

    return dict(st.minimize(train, space, budget, method=method, stop=None, seed=0).rows())


def test_the_summary_says_that_a_budget_in_trials_buys_cheap_ones():
    rows = at_low_fidelities(20, st.CFKG())
    low, _, rest = rows["fidelity"].partition(" of ")
    assert 9 <= int(low) <= 12
    assert rest.startswith("12 trials that the model chose were below the target")
    assert "budget in cost or in time" in rest


@pytest.mark.parametrize(
    ("budget", "method"),
    [(st.Budget(trials=20, cost=1e6), st.CFKG()), (20, st.Hyperband()), (20, st.EI()), (12, st.CFKG())],
    ids=["cost", "brackets", "at the target", "few"],
)
def test_it_does_not_say_so_without_a_reason(budget, method):
    assert "fidelity" not in at_low_fidelities(budget, method)


def test_the_unit_of_the_budget_is_the_unit_of_the_summary():
    result = st.Study(SPACE, st.Random(), seed=2).minimize(objective, st.Budget(cost=5.0, unit="USD"))
    assert "USD" in next(line for line in str(result).splitlines() if line.startswith("spent"))


@pytest.mark.parametrize(
    ("costs", "limit", "text"),
    [
        ([1.1, 2.2], 3.3, "3.3 USD of 3.3 USD"),  # the sum is 4.4e-16 above
        ([0.7, 0.1, 0.1, 0.1], 1.0, "1 USD of 1 USD"),  # the sum is 1.1e-16 below
        ([1.0, 2.0], 4.0, "3 USD of 4 USD, 1 USD left"),
        ([1.0, 2.0], 2.5, "3 USD of 2.5 USD, 0.5 USD over"),
        ([1.0, 1e-6], 1.0, "1 USD of 1 USD"),  # what is shown is the same
        ([9.9996], 10.0, "10 USD of 10 USD"),
    ],
)
def test_the_summary_names_no_difference_that_vanishes_when_it_is_rounded(costs, limit, text):
    study = st.Study(SPACE, st.Random(), unit="USD")
    for cost in costs:
        study.tell(study.ask(), 1.0, cost=cost)
    result = dataclasses.replace(study.result, budget=st.Budget(cost=limit, unit="USD"))
    assert dict(result.rows())["spent"] == text


def test_to_dicts_is_json_and_comes_back(result):
    records = json.loads(json.dumps(result.to_dicts()))
    assert [st.Trial.from_dict(record) for record in records] == list(result.history)


def test_to_csv_reads_back_row_by_row(result, tmp_path):
    text = result.to_csv(tmp_path / "trials.csv")
    assert (tmp_path / "trials.csv").read_text(encoding="utf-8") == text == result.to_csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(result.history)
    for row, trial in zip(rows, result.history, strict=True):
        assert int(row["number"]) == trial.number
        assert row["state"] == trial.state
        assert row["c"] == trial.config["c"]
        assert float(row["x"]) == trial.config["x"]
        assert (float(row["value"]) if row["value"] else None) == trial.value
        assert (row["error"] or None) == trial.error


def test_absent_parameters_are_empty_cells():
    result = st.Study(mixed_space(), st.Random()).minimize(mixed_value, 10)
    for row, trial in zip(csv.DictReader(io.StringIO(result.to_csv())), result.history, strict=True):
        assert (row["extra"] == "") == ("extra" not in trial.config)


def test_html_is_escaped(result):
    page = result._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<table") == page.count("</table>") == 2


def test_the_best_value_of_folds_has_its_standard_error():
    study = st.Study(SPACE, st.Random())
    study.tell(study.ask(), folds=[0.1, 0.2, 0.15])
    assert dict(study.result.rows())["best"] == "0.150 ± 0.037 (trial 0)"


def test_a_study_that_has_not_ended_has_no_reason_to_stop():
    study = st.Study(SPACE, st.Random())
    study.tell(study.ask(), 1.0)
    assert "stopped" not in str(study.result)
    assert "stopped" in dict(study.minimize(lambda config: 1.0, 2).rows())


def test_html_of_names_is_escaped():
    space = st.Space({"<img src=x>": st.Float(0, 1)})
    assert "<img" not in st.Study(space, st.Random()).minimize(lambda config: 1.0, 2)._repr_html_()


def test_the_recommendation_among_tried_configs_is_an_evaluated_one(result):
    recommended = result.study.recommend(tried=True)
    assert recommended.evaluated
    assert recommended.config == result.history[recommended.number].config
    assert recommended.value == pytest.approx(result.history[recommended.number].value, abs=0.1)


def test_the_recommendation_is_where_the_mean_is_lowest_over_the_whole_space():
    """Against a fine grid, where the model is sure; expected to be no worse than any tried config, and said to be new."""
    study = st.Study(st.Space(x=st.Float(0, 1)), seed=0)
    for x in (0.05, 0.12, 0.2, 0.28, 0.38, 0.5, 0.65, 0.8):
        study.add({"x": x}, (x - 0.32) ** 2)
    found = study.recommend()
    belief = study.context.belief(costs=False)
    grid = np.linspace(0, 1, 4001)
    means = belief.output.inverse(belief.objective.mean_at(belief.encoding.features(grid[:, None])))
    assert found.value <= means.min() + 1e-9
    assert found.config["x"] == pytest.approx(grid[np.argmin(means)], abs=1e-3)
    assert found.number is None
    assert not found.evaluated
    assert found.value <= study.recommend(tried=True).value
    assert "not evaluated yet" in str(study.result)


def test_places_that_are_likelier_to_fail_than_not_are_not_recommended():
    study = st.Study(st.Space(x=st.Float(0, 1)), seed=0)
    for i in range(20):
        x = i / 19
        study.add({"x": x}, 1.0 - x) if x < 0.6 else study.add({"x": x}, error="too large")
    assert study.recommend().config["x"] < 0.65


def test_the_recommendation_is_not_fooled_by_one_lucky_value():
    study = st.Study(st.Space(x=st.Float(0, 1)))
    for i in range(40):
        x = i / 39
        study.add({"x": x}, (x - 0.3) ** 2 + (0.2 if i % 2 else -0.2))
    study.add({"x": 0.95}, -0.16)
    assert abs(study.recommend().config["x"] - 0.3) < 0.25


def test_a_rule_that_stops_says_what_it_saved_and_how_to_go_on():
    result = st.minimize(lambda config: 1.0, plane(1), budget=50, stop=st.Patience(6), method=st.Random(), seed=0)
    rows = dict(result.rows())
    assert rows["stopped"] == "the best value has not changed for 6 trials"
    assert rows["saved"].startswith("43 trials of the budget, about ")
    assert rows["next"] == "result.study.minimize(objective, budget=...) after result.study.rule = None"
    result.study.rule = None
    assert len(result.study.minimize(lambda config: 1.0, budget=10).history) == 10
    dollars = st.Budget(cost=100, unit="USD")
    priced = st.minimize(lambda c: st.Outcome(1.0, cost=2.0), plane(1), budget=dollars, stop=st.Patience(3), method=st.Random())
    assert dict(priced.rows())["saved"] == "92 USD of the budget"
    assert "saved" not in dict(st.minimize(lambda config: 1.0, plane(1), budget=5, method=st.Random()).rows())


def test_a_budget_that_ends_a_study_with_a_rule_says_what_the_rule_thought():
    result = st.minimize(mixed_value, mixed_space(), budget=24, stop=st.SureBound(1e-9), method=st.Random(), seed=0)
    rows = dict(result.rows())
    assert result.stop.kind == "budget"
    assert "left to gain" in rows["rule"]


def test_a_rule_that_stops_when_the_budget_is_spent_but_for_a_rounding_error_has_saved_nothing():
    study = st.Study(SPACE, st.Random(), unit="USD")
    for cost in (0.7, 0.1, 0.1, 0.1):  # the sum is 1.1e-16 below 1
        study.tell(study.ask(), 1.0, cost=cost)
    stopped = dataclasses.replace(study.result, stop=st.Verdict(True, "enough"), budget=st.Budget(cost=1.0, unit="USD"))
    assert stopped.spent < 1.0
    assert stopped.saved() == ""


def test_a_budget_in_time_shows_the_time():
    result = dataclasses.replace(st.Study(SPACE).result, budget=st.Budget(seconds=600), seconds=597.8)
    rows = dict(result.rows())
    assert rows["time"] == "9 m 58 s of 10 m 00 s"
    assert [label for label, _ in result.rows()][1:3] == ["spent", "time"]
    assert "time" not in dict(st.Study(SPACE).result.rows())


def test_the_number_of_trials_is_that_of_the_budget_and_says_what_else_there_is():
    study = st.Study(SPACE, st.Random())
    for k in range(3):
        study.add({"x": k / 20, "c": "a,b"}, 1.0, cost=1000.0)

    def interrupted(config, trial):
        if trial.number == 4:
            raise KeyboardInterrupt
        return 1.0

    result = study.minimize(interrupted, 5, on_interrupt="return")
    assert dict(result.rows())["trials"] == "4, 3 of them from elsewhere; 1 more was interrupted"
    result = study.minimize(interrupted, 5)
    rows = dict(result.rows())
    assert rows["trials"] == "8, 3 of them from elsewhere; 1 more was interrupted"
    assert result.history.trials_used == 5
    assert result.spent < 1000.0  # results from elsewhere are not spent by this study
    assert rows["stopped"] == "the budget of 5 trials is used up"


def test_a_run_with_nothing_to_do_says_so(caplog):
    study = st.Study(SPACE, st.Random())
    first = study.minimize(lambda config: 1.0, 3)
    assert (first.before, dict(first.rows())["trials"]) == (0, "3")
    with caplog.at_level(logging.WARNING, "shoestring"):
        again = study.minimize(lambda config: 1.0, 3)
    assert again.before == 3
    assert dict(again.rows())["trials"] == "0 new trials: 3 were there"
    assert "0 new trials: 3 were there; the budget of 3 trials is used up" in caplog.text


def test_the_most_frequent_errors_are_listed_with_a_trial_each():
    study = st.Study(SPACE, st.Random())
    odd = "ValueError: {} is odd"
    for error in (odd.format(17), "no memory\nat line 3", odd.format(19), "c (log: a/trial-00003.err)", "d", "e", "d"):
        study.tell(study.ask(), error=error)
    assert dict(study.result.rows())["failed"].splitlines() == [
        "2 times: ValueError: 17 is odd, first in trial 0", "2 times: d, first in trial 4", "1 time: no memory, trial 1",
        "2 times: other errors",
    ]  # fmt: skip
    lines = str(study.result).splitlines()
    assert lines[lines.index(next(line for line in lines if line.startswith("failed"))) + 1].startswith(" " * 9)
    assert "<br>" in study.result._repr_html_()


def test_less_effort_is_said_with_its_reason():
    study = st.Study(SPACE, st.Random())
    study.minimize(lambda config: 1.0, 4)
    trials = [
        dataclasses.replace(trial, seconds=4e-4, basis={"effort": level})
        for trial, level in zip(study.history, ("full", "reduced", "random", "random"), strict=True)
    ]
    history = dataclasses.replace(study.history, trials=tuple(trials), shared_table=None)
    result = dataclasses.replace(study.result, history=history, effort_seconds={"full": 0.012})
    assert dict(result.rows())["effort"] == (
        "1 trial suggested with less effort, 2 at random; "
        "a suggestion of the model takes longer than it saves: 12 ms, and a trial takes 0.4 ms"
    )
    assert "effort" not in dict(study.result.rows())


def test_the_time_of_a_suggestion_is_that_of_this_process(tmp_path):
    study = st.Study(SPACE, st.Random(), storage=tmp_path / "a.db")
    study.minimize(lambda config: 1.0, 6)
    assert dict(study.result.rows())["suggestions"].endswith("s each")
    opened = st.Study.load(tmp_path / "a.db")
    assert "suggestions" not in dict(opened.result.rows())  # it has computed none
    opened.ask()
    assert opened.result.suggestions == 1


def next_of(study, stop, ending="returned"):
    return dict(dataclasses.replace(study.result, stop=stop).rows(ending))["next"]


def test_every_summary_ends_with_the_next_step(tmp_path):
    spent, rule = st.Verdict(True, "", kind="budget"), st.Verdict(True, "", kind="rule")
    interrupted, exhausted = st.Verdict(True, "", kind="interrupted"), st.Verdict(True, "", kind="exhausted")
    study = st.Study(SPACE, st.Random(), direction="maximize")
    call = "result.study.maximize(objective, budget=...)"
    assert next_of(study, st.Verdict(False, "not stopped")) == call
    assert next_of(study, interrupted) == call
    assert next_of(study, spent) == f"{call} with a larger budget"
    assert next_of(study, rule) == f"{call} after result.study.rule = None"
    assert "prior=[result.study]" in next_of(study, exhausted)
    assert next_of(study, interrupted, "raised").startswith("error.study.maximize(objective, budget=...), where error is")
    assert "ends with the process" in next_of(study, interrupted, "terminated")
    stored = st.Study(SPACE, st.Random(), storage=tmp_path / "a.db", name="train")
    place = f"study 'train' is in sqlite:///{tmp_path / 'a.db'}"
    assert next_of(stored, spent) == f"the same call with a larger budget; {place}"
    assert next_of(stored, rule) == f"the same call with stop=None; {place}"
    for ending in ("returned", "raised", "terminated"):
        assert next_of(stored, interrupted, ending) == f"the same call again; {place}"
    assert "extend=True" in next_of(stored, exhausted)


def test_ctrl_c_prints_how_to_go_on_and_that_works(capsys):
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 1.0

    with pytest.raises(KeyboardInterrupt) as caught:
        st.minimize(objective, SPACE, 4, method=st.Random())
    printed = capsys.readouterr().err
    assert "interrupted; trial 2 will be asked again" in printed
    assert "error.study.minimize(objective, budget=...)" in printed
    assert caught.value.study.minimize(objective, budget=4).history.trials_used == 4


# -- tables ------------------------------------------------------------------------------------------------------------


def told_study():
    """Trials with all that a table shows."""
    space = st.Space(x=st.Float(0, 1), value=st.Int(1, 9), deep=st.Int(2, 5, when={"kind": "b"}), kind=st.Choice("a", "b"))
    study = st.Study(space, st.Random(), unit="USD")
    study.enqueue({"x": 0.5, "value": 3, "kind": "b", "deep": 4})
    study.enqueue({"x": 0.25, "value": 4, "kind": "a"})
    study.tell(study.ask(), folds=[1.0, 3.0], cost=2.0, metrics={"accuracy": 0.93}, attrs={"host": "gpu3", "sizes": [1, 2]})
    study.tell(study.ask(), error="out of memory", cost=1.0)
    study.tell(study.ask(), 0.5, cost=1.0, metrics={"accuracy": float("nan"), "loss": 2})
    study.add({"x": 0.75, "value": 5, "kind": "a"}, 0.1)
    return study


def test_to_dataframe_has_one_flat_row_a_trial():
    study = told_study()
    study.ask()
    frame = study.to_dataframe()
    assert list(frame.columns) == [
        "number", "state", "value", "cost", "seconds", "x", "param_value", "deep", "kind", "metric_accuracy", "metric_loss",
        "fold_0", "fold_1", "attr_host", "attr_sizes", "predicted", "predicted_cost", "expected_gain", "by", "why", "effort",
        "added", "error", "asked_at",
    ]  # fmt: skip
    assert frame["number"].tolist() == [0, 1, 2, 3, 4]
    assert frame["state"].tolist() == ["done", "failed", "done", "done", "running"]
    assert frame["value"].tolist()[:1] == [2.0]
    assert frame["value"].isna().tolist() == [False, True, False, False, True]
    assert frame["param_value"].tolist()[:2] == [3, 4]
    assert frame["deep"].tolist()[:1] == [4.0]
    assert frame["deep"].isna().tolist()[:2] == [False, True]
    assert frame["metric_accuracy"].isna().tolist() == [False, True, True, True, True]
    assert frame[["fold_0", "fold_1"]].iloc[0].tolist() == [1.0, 3.0]
    assert frame["attr_sizes"][0] == [1, 2]
    assert frame["added"].tolist() == [False, False, False, True, False]
    assert frame["effort"].tolist()[2] == "full"
    assert frame["effort"].isna().tolist() == [True, True, False, True, False]
    assert frame["error"][1] == "out of memory"
    assert frame["asked_at"][0].timestamp() == pytest.approx(study.history[0].asked_at)
    kinds = {"number": "i", "value": "f", "param_value": "i", "deep": "f", "metric_loss": "f", "added": "b", "asked_at": "M"}
    assert {name: frame[name].dtype.kind for name in kinds} == kinds
    assert study.result.to_dataframe().equals(frame)


def test_to_dataframe_of_a_study_without_trials_has_its_columns():
    frame = st.Study(SPACE).to_dataframe()
    assert frame.empty
    assert {"x", "c", "value", "asked_at"} <= set(frame.columns)


def test_to_dataframe_without_pandas_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        st.Study(SPACE).to_dataframe()


def test_to_csv_has_metrics_folds_and_attributes_after_the_columns_that_were_always_there():
    rows = list(csv.reader(io.StringIO(told_study().result.to_csv())))
    assert rows[0] == [
        "number", "state", "value", "cost", "seconds", "x", "param_value", "deep", "kind", "error",
        "metric_accuracy", "metric_loss", "fold_0", "fold_1", "attr_host", "attr_sizes", "added",
    ]  # fmt: skip
    assert rows[1][-7:] == ["0.93", "", "1.0", "3.0", "gpu3", "[1, 2]", "false"]
    assert rows[4][-1] == "true"


def test_further_lines_of_a_text_stand_below_its_first_one():
    assert summary_text([("a", "one\ntwo"), ("long", "three")]) == "a     one\n      two\nlong  three"
