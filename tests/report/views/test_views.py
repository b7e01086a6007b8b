"""Views: what pictures show, as plain data."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoestring as st
from shoestring.data.intermediate import PRUNED
from shoestring.report.views import VIEWS, compare, view
from shoestring.report.views.base import MAX_POINTS, plain, thinned
from shoestring.report.views.catalogue import is_idle
from shoestring.report.views.stopping_curve import watched_by
from tests.cli.programs import read
from tests.report.viewed_studies import KINDS, fidelities, made, many, one, ordinary, wide

SPACE = st.Space(x=st.Float(0, 1))
EVERY_STUDY = pytest.mark.parametrize("kind", KINDS)


def series_of(found: dict[str, Any], role: str) -> dict[str, Any]:
    return next(each for each in found["series"] if each["role"] == role)


@EVERY_STUDY
@pytest.mark.parametrize("fit", [True, False])
def test_every_view_is_json_with_words_and_finite_numbers(kind: str, fit: bool) -> None:
    study = KINDS[kind]()
    for name in VIEWS:
        found = view(study, name, fit=fit)
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert found["name"] == name
        assert found["title"]
        assert found["caption"].endswith(".")
        for axis in (found["x"], found["y"]):
            assert np.isfinite([axis["low"], axis["high"]]).all()
            assert axis["low"] < axis["high"]
        if not found["empty"] and found["kind"] in ("chart", "heatmap"):
            assert found["x"]["label"]
            assert found["y"]["label"]
            assert found["series"]


def test_the_numbers_are_those_of_the_study_and_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    with st.Study(SPACE, storage="shoestring.db", method=st.Random(), unit="USD", name="s") as study:
        for value in (3.0, 1.0, 2.0, 0.5):
            study.tell(study.ask(), value, cost=2 * value)
        study.tell(study.ask(), error="no")
        found, facts = view(study, "best_against_cost"), {each["label"]: each["value"] for each in view(study, "live")["facts"]}
    told = read("show", "s")
    best, star = series_of(found, "best"), series_of(found, "star")
    assert (star["number"], star["y"]) == ([told["best"]["number"]], [told["best"]["value"]])
    assert (facts["spent"], facts["best"], facts["trials"]) == (told["spent"], told["best"]["value"], told["trials"])
    assert found["trials"] == told["trials"] == 5
    assert (best["x"], best["y"], best["number"]) == ([6.0, 8.0, 13.0, told["spent"]], [3.0, 1.0, 0.5, 0.5], [0, 1, 3, None])
    assert facts["failed"] == told["states"]["failed"] == len(series_of(found, "failed")["x"])


def test_the_best_value_of_a_study_that_maximizes_rises() -> None:
    history = fidelities().log
    assert history.best is not None
    heights = series_of(view(fidelities(), "best_against_trials"), "best")["y"]
    assert heights == sorted(heights)
    assert heights[-1] == history.best.value
    assert series_of(view(fidelities(), "best_against_trials"), "running")["number"] == [len(history) - 1]


def test_each_suggestion_stores_what_the_rule_watched_so_the_curve_needs_no_model() -> None:
    study = ordinary()
    stored = {trial.number: trial.suggestion["rule"] for trial in study.log if "rule" in trial.suggestion}
    assert stored
    curve = view(study, "stopping", fit=False)
    bound, threshold = series_of(curve, "bound"), series_of(curve, "threshold")
    drawn = dict(zip(bound["x"], bound["y"], strict=True))
    assert {number: drawn[number] for number in stored} == {number: each["bound"] for number, each in stored.items()}
    assert set(threshold["y"]) == {0.01}
    longer = series_of(view(study, "stopping", fit=True), "bound")
    assert longer["x"] == [*stored, len(study.log)]  # the verdict of today belongs to no suggestion


def test_a_suggestion_of_an_older_history_stores_no_evidence() -> None:
    study = st.Study(SPACE, stop=st.Patience(50), method=st.Random())
    study.minimize(lambda config: config["x"], 3)
    assert "rule" not in study.ask().suggestion  # the rule has not looked at these trials
    assert study.log[2].suggestion["rule"] == {"unchanged": study.log[2].suggestion["rule"]["unchanged"], "patience": 50.0}


@pytest.mark.parametrize(
    ("evidence", "value", "threshold", "below"),
    [
        ({"bound": 0.3, "beta": 2.0, "threshold": 0.1}, 0.3, 0.1, True),
        ({"chance": 0.2, "tolerance": 0.1, "confidence": 0.75, "bound": 0.01}, 0.2, 0.25, True),
        ({"gain": 2.0, "cost": 4.0, "price": 0.1, "worth": 0.5}, 0.5, 0.1, True),
        ({"unchanged": 7.0, "patience": 30.0}, 7.0, 30.0, False),
        ({"expected improvement": 0.4, "threshold": 0.2}, 0.4, 0.2, True),
    ],
)
def test_every_rule_has_a_number_and_a_threshold(evidence: dict[str, float], value: float, threshold: float, below: bool) -> None:
    found = watched_by(evidence)
    assert found is not None
    assert (found.value, found.threshold, found.below) == (value, threshold, below)
    assert watched_by({"evaluations": 3.0}) is None


def test_the_front_is_the_one_that_the_suggestion_stored() -> None:
    study = ordinary()
    last = next(trial for trial in reversed(study.log.trials) if "front" in trial.suggestion)
    found, kept = view(study, "front"), last.suggestion["front"]
    assert (series_of(found, "star")["y"], series_of(found, "star")["x"]) == ([kept["chosen"][0]], [kept["chosen"][1]])
    points = zip(series_of(found, "front")["y"], series_of(found, "front")["x"], strict=True)
    assert sorted(points) == sorted(map(tuple, kept["front"]))
    with pytest.raises(st.StudyError, match="there is no trial 1000"):
        view(study, "front", trial=1000)


def test_costs_are_compared_with_what_was_predicted_when_the_trial_was_suggested() -> None:
    history = ordinary().log
    points = series_of(view(ordinary(), "cost_prediction"), "trial")
    assert points["x"] == [history[number].suggestion["cost"] for number in points["number"]]
    assert points["y"] == [history[number].cost for number in points["number"]]


def test_importance_says_by_which_method_and_fits_nothing_unless_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    study = ordinary()
    fitted = view(study, "importance", fit=True)
    assert {bar["label"]: bar["value"] for bar in fitted["bars"]} == pytest.approx(study.importance())
    assert "Sobol" in fitted["method"]
    monkeypatch.setattr(type(study.suggester), "context", lambda *given, **options: pytest.fail("a model was looked at"))
    for name in VIEWS:
        assert "Sobol" not in view(study, name, fit=False)["caption"]
    rough = view(study, "importance", fit=False)
    theta = study.log.warm_start["theta"]  # type: ignore[index]
    inverse = np.exp(-np.array(theta[: len(study.space)]))
    shares = {bar["label"]: bar["value"] for bar in rough["bars"]}
    assert shares == pytest.approx(dict(zip(study.space.names, inverse / inverse.sum(), strict=True)))
    assert "length scales" in rough["caption"]


def test_slices_and_the_map_are_predictions_through_the_best_trial() -> None:
    study = ordinary()
    panel = next(panel for panel in view(study, "slices", fit=True)["panels"] if panel["title"] == "depth")
    mean = series_of(panel, "best")
    assert mean["x"] == list(range(2, 13))
    assert all(low <= middle <= high for low, middle, high in zip(mean["low"], mean["y"], mean["high"], strict=True))
    found = view(study, "contour", fit=True, parameters=["depth", "lr"])
    cells = found["cells"]
    assert (len(cells["x_edges"]), len(cells["y_edges"])) == (len(cells["values"][0]) + 1, len(cells["values"]) + 1)
    assert study.best is not None
    row = next(k for k, edge in enumerate(cells["y_edges"]) if edge > study.best.config["lr"]) - 1
    shown = np.clip(mean["y"], cells["axis"]["low"], cells["axis"]["high"])
    assert cells["values"][row] == pytest.approx(shown, abs=0.1)  # the slice goes through the same config
    with pytest.raises(st.MethodError, match="two parameters"):
        view(study, "contour", parameters=["lr"])


def test_of_many_parameters_some_are_drawn_as_lines() -> None:
    found = view(wide(), "parallel")
    assert [each["name"] for each in found["axes"]] == [*wide().space.names[:8], "value"]
    assert "6 parameters not shown" in found["caption"]
    chosen = view(wide(), "parallel", parameters=wide().space.names[9:11])
    assert [each["name"] for each in chosen["axes"]] == [*wide().space.names[9:11], "value"]
    assert all(len(line["heights"]) == 3 for line in chosen["lines"])
    with pytest.raises(st.MethodError, match="choose from a long name"):
        view(wide(), "parallel", parameters=["nothing"])


def test_the_ladder_adds_up_to_what_was_spent() -> None:
    study = fidelities()
    bars = view(study, "fidelity_ladder")["bars"]
    assert sum(bar["value"] for bar in bars) == study.log.spent
    assert sum(bar["count"] for bar in bars) == len(study.log)
    assert view(ordinary(), "fidelity_ladder")["applies"] is False
    with pytest.raises(st.StudyError, match="no fidelity"):
        view(study, "fidelity_ladder", parameter="x")


def test_running_trials_are_in_the_live_line_with_their_time() -> None:
    running = view(fidelities(), "live")["running"]
    assert [each["number"] for each in running] == [16]
    assert running[0]["elapsed"] >= 0


def test_a_view_is_kept_until_the_study_changes_and_no_model_is_fitted_while_it_runs() -> None:
    study = st.Study(SPACE, method=st.Random())
    study.tell(study.ask(), 1.0)
    first = view(study, "best_against_cost")
    assert view(study, "best_against_cost") is first
    trial = study.ask()
    assert view(study, "best_against_cost") is not first
    assert "while the study runs" in view(study, "slices")["caption"]
    study.tell(trial, 2.0)
    assert "prediction" in view(study, "slices")["caption"]


def test_studies_offer_their_views() -> None:
    assert list(one().views) == list(VIEWS)
    assert len(one().views) == len(VIEWS)
    assert one().views["timeline"] is view(one(), "timeline")
    assert one().views("slices", parameters="x")["panels"][0]["title"] == "x"
    with pytest.raises(KeyError, match="there is no view 'nothing'"):
        one().views["nothing"]
    with pytest.raises(st.StudyError, match="choose from live, best_against_cost"):
        view(one(), "nothing")


def study_of(values: list[float], cost: float, **settings: Any) -> st.Study:
    trials = [st.Trial(k, {"x": 0.5}, st.State.DONE, value=value, cost=cost) for k, value in enumerate(values)]
    return made(SPACE, trials, unit="USD", **settings)


def test_groups_of_studies_are_compared_by_their_median_at_equal_cost() -> None:
    runs = [study_of([3.0 + k, 1.0 + k], 2.0) for k in range(3)]
    found = compare({"ours": runs, "other": study_of([5.0], 4.0)})
    ours, other = found["series"]
    assert (ours["x"][0], ours["y"][0], ours["low"][0], ours["high"][0]) == (2.0, 4.0, 3.0, 5.0)
    assert (ours["x"][-1], ours["y"][-1], ours["low"][-1], ours["high"][-1]) == (4.0, 2.0, 1.0, 3.0)
    assert (other["x"], other["y"]) == ([4.0, 4.0], [5.0, 5.0])
    assert "ours ends with the best value" in found["caption"]
    assert json.dumps(found, allow_nan=False)
    assert [each["name"] for each in compare(runs)["series"]] == ["study", "study (2)", "study (3)"]
    part = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), unit="USD")
    part.add({"x": 0.5, "epochs": 1}, 0.01, cost=1.0)
    both = compare({"whole": runs[0], "part": part})
    assert [each["name"] for each in both["series"]] == ["whole"]
    assert "part has no result to compare yet." in both["caption"]  # none at the target
    assert found["y"]["low"] <= 1.0  # bands are inside
    assert found["y"]["high"] >= 5.0
    with pytest.raises(st.StudyError, match="one unit"):
        compare([runs[0], st.Study(SPACE, unit="EUR")])
    with pytest.raises(st.StudyError, match="one direction"):
        compare([runs[0], st.Study(SPACE, unit="USD", direction="maximize")])
    with pytest.raises(st.StudyError, match="no study"):
        compare([])


def test_thinning_keeps_the_extremes_and_the_ends() -> None:
    x = np.arange(9_000.0)
    y = np.sin(x)
    y[4321] = 50.0
    kept = thinned(x, y, np.arange(len(x)))
    assert len(kept) <= MAX_POINTS
    assert {0, 4321, 8999} <= set(kept.tolist())


def test_ten_thousand_trials_take_less_than_a_second() -> None:
    source = many()
    began = time.process_time()
    found = {name: plain(make(source)) for name, make in VIEWS.items()}
    assert time.process_time() - began < 1.0
    assert len(json.dumps(found)) < 1_000_000
    for each in found.values():
        assert all(len(series["x"]) <= MAX_POINTS + 1 for series in each["series"])
        assert each["trials"] == 10_000
    assert source.history.best is not None
    assert series_of(found["best_against_cost"], "best")["y"][-1] == source.history.best.value


def test_a_stored_study_is_idle_when_nothing_has_ended_for_a_while(tmp_path: Path) -> None:
    with st.Study(SPACE, storage=str(tmp_path / "tune.db"), method=st.Random()) as study:
        assert is_idle(study, now := time.time())
        trial = study.ask()
        assert not is_idle(study, now + 1e6)  # it may run that long
        study.tell(trial, 1.0)
        assert not is_idle(study, now)  # another trial may be asked at any moment
        assert is_idle(study, now + 1e6)


def test_pruned_trials_and_those_of_lower_fidelities_are_marked() -> None:
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    pruned = {"asked": {"epochs": 9}, "stopped": {"kind": PRUNED}}
    trials = [
        st.Trial(0, {"x": 0.1, "epochs": 9}, st.State.DONE, value=0.5, cost=9.0, fidelity={"epochs": 9}),
        st.Trial(1, {"x": 0.2, "epochs": 3}, st.State.DONE, value=0.1, cost=3.0, fidelity={"epochs": 3}),
        st.Trial(2, {"x": 0.3, "epochs": 2}, st.State.DONE, value=0.9, cost=2.0, fidelity={"epochs": 2}, suggestion=pruned),
    ]
    found = view(made(space, trials), "best_against_trials")
    assert {each["role"]: each["number"] for each in found["series"]} == {
        "lower": [1], "pruned": [2], "trial": [0], "best": [0, None], "star": [0],
    }  # fmt: skip
    assert series_of(found, "best")["y"] == [0.5, 0.5]  # a lower value at a lower fidelity is not better
