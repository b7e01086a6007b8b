import csv
import dataclasses
import io
import json

import numpy as np
import pytest

import shoestring as st
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
    assert {"trials", "spent", "best", "config", "stopped", "go on"} <= set(labels)
    assert len(labels) <= 9
    failed = sum(trial.state is st.State.FAILED for trial in result.history)
    assert failed > 0
    assert "15" in text.splitlines()[0]
    assert f"{failed} failed" in text.splitlines()[0]
    assert f"{result.best.value:.4g} (trial {result.best.number})" in text
    assert "the budget of 15 trials is used up" in text
    assert "study.minimize" in text


def test_the_summary_of_a_study_in_which_nothing_succeeded():
    result = st.Study(SPACE, st.Random()).minimize(lambda config: None, 3)
    assert "nothing has succeeded" in str(result)
    assert "NoneType" in str(result)
    with pytest.raises(st.StudyError, match="NoneType"):
        _ = result.best
    assert result.history.best is None
    assert result.recommended is None
    assert "<table>" in result._repr_html_()


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
        ([1.0, 1e-6], 1.0, "1 USD of 1 USD, 1e-06 USD over"),
    ],
)
def test_the_summary_ignores_rounding_errors_of_a_budget_that_is_spent_exactly(costs, limit, text):
    study = st.Study(SPACE, st.Random(), unit="USD")
    for k, cost in enumerate(costs):
        study.add({"x": k / 20, "c": "a,b"}, 1.0, cost=cost)
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
    assert page.count("<table>") == page.count("</table>") == 2


def test_html_of_names_is_escaped():
    space = st.Space({"<img src=x>": st.Float(0, 1)})
    assert "<img" not in st.Study(space, st.Random()).minimize(lambda config: 1.0, 2)._repr_html_()


def test_the_recommendation_among_tried_configs_is_an_evaluated_one(result):
    recommended = result.study.recommend(tried=True)
    assert recommended.evaluated
    assert recommended.config == result.history[recommended.number].config
    assert recommended.value == pytest.approx(result.history[recommended.number].value, abs=0.1)


def test_the_recommendation_is_where_the_mean_is_lowest_over_the_whole_space():
    """Against a fine grid; expected to be no worse than any tried config, and said to be new if it is."""
    study = st.Study(st.Space(x=st.Float(0, 1)), seed=0)
    for x in (0.05, 0.2, 0.45, 0.8):
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
    assert "result.study.rule = None" in rows["go on"]
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
