"""The plots of importance and of slices through the best config."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shoestring as st
from shoestring.report.plot.response_surface import context_of
from shoestring.report.views.prediction import predict
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study
from tests.report.plot.pictures import drawn, line

pytest.importorskip("matplotlib")


def axes(count: int) -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots(1, count, squeeze=False)[0]


def test_importance_has_a_bar_for_each_share_with_the_largest_on_top() -> None:
    study = told_study(plane(3), lambda config: config["x0"] + 2 * config["x1"], 12)
    ax = st.plot.importance(study, ax=st.plot.new_axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x1", "x0", "x2"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(list(study.importance().values()))
    assert [text.get_text() for text in ax.texts] == ["81 %", "19 %", "0 %"]  # 80, 20 and 0 with more trials
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.get_title(loc="left") == "importance, 12 finished trials"


def test_importance_of_a_result_is_that_of_its_trials() -> None:
    study = told_study(plane(2), lambda config: config["x0"], 8)
    result = study.result
    study.add({"x0": 0.5, "x1": 0.5}, 5.0)
    assert st.plot.importance(result, ax=st.plot.new_axes()).get_title(loc="left").endswith("8 finished trials")
    assert st.plot.importance(study, ax=st.plot.new_axes()).get_title(loc="left").endswith("9 finished trials")


def test_importance_shows_the_most_important_of_many_parameters() -> None:
    study = told_study(plane(25), lambda config: config["x3"], 26)
    ax = st.plot.importance(study, ax=st.plot.new_axes())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert (len(labels), labels[0], labels[-1]) == (20, "x3", "6 others")
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(1.0)


def test_importance_says_why_there_is_none() -> None:
    few, equal = told_study(plane(5), bowl, 3), told_study(plane(2), lambda config: 1.0, 5)
    assert st.plot.importance(few, ax=st.plot.new_axes()).get_title(loc="left") == "importance needs 6 finished trials (now 3)"
    assert st.plot.importance(equal, ax=st.plot.new_axes()).get_title(loc="left").endswith("all values equal")


def test_a_slice_is_the_prediction_through_the_best_config() -> None:
    study = told_study(plane(2), bowl, 12)
    panels = st.plot.slice(study, ax=axes(2))
    x, mean = line(panels[1], "mean, 95 % band")
    best = study.best
    assert best is not None
    U = np.column_stack([np.full(len(x), best.config["x0"]), x])
    assert mean == pytest.approx(predict(context_of(study), U).mean.tolist())
    assert line(panels[1], "best") == ([best.config["x1"]], [best.value])
    assert line(panels[1], "trial")[0] == pytest.approx([trial.config["x1"] for trial in study.history])
    assert [ax.get_xlabel() for ax in panels] == ["x0", "x1"]


def test_the_band_of_a_slice_holds_95_percent() -> None:
    study = told_study(plane(1), bowl, 6, model=st.GP(output="standard"))
    context, U = context_of(study), np.array([[0.05], [0.5], [0.95]])
    found, belief = predict(context, U), context.belief(costs=False)
    draws = belief.fit.posterior.sample(U, 20_000, np.random.default_rng(0))
    low, high = belief.output.inverse(np.quantile(draws, [0.025, 0.975], axis=0))
    assert found.low == pytest.approx(low, abs=0.05 * (high - low).max())
    assert found.high == pytest.approx(high, abs=0.05 * (high - low).max())


def test_slices_of_a_mixed_space() -> None:
    study = told_study(mixed_space(), mixed_value, 25, error_where=lambda config: config["depth"] == 1, direction="maximize")
    study.ask()
    panels = dict(zip(study.space, st.plot.slice(study, ax=axes(6)), strict=True))
    drawn(panels["rate"])
    assert panels["rate"].get_xscale() == "log"
    assert [label.get_text() for label in panels["kind"].get_xticklabels()] == ["a", "b", "c"]
    assert len(panels["kind"].containers[0].lines[0].get_xdata()) == 3
    assert line(panels["depth"], "failed")[0] == [1.0] * study.history.number_of(st.State.FAILED)
    active = sum("deep" in trial.config for trial in study.history.having(st.State.DONE))
    assert len(line(panels["deep"], "trial")[0]) == active
    legend = [text.get_text() for text in panels["rate"].get_legend().get_texts()]
    assert legend == ["mean, 95 % band", "trial", "best", "failed", "running"]
    assert "higher is better" in panels["rate"].get_ylabel()


def test_a_parameter_that_is_not_active_at_the_best_config_is_drawn_through_another_trial() -> None:
    space = st.Space(kind=st.Choice("a", "b", "c"), x=st.Float(0, 1, when={"kind": "b"}), z=st.Float(0, 1, when={"kind": "c"}))
    study = st.Study(space)
    study.add({"kind": "a"}, 0.0)
    for x in (0.1, 0.5, 0.9):
        study.add({"kind": "b", "x": x}, 1.0 + x)
    panels = st.plot.slice(study, ax=axes(3))
    x, mean = line(panels[1], "mean, 95 % band")
    assert mean[-1] > mean[0] > 0.5
    assert "best" not in [entry.get_label() for entry in panels[1].lines]
    assert list(panels[2].lines) == []  # no trial has a z


def test_slices_of_lower_fidelities_are_rings() -> None:
    study = st.Study(st.Space(epochs=st.Fidelity(1, 9), x=st.Float(0, 1)))
    for k in range(6):
        study.add({"epochs": 9 if k % 2 else 3, "x": k / 5}, k / 5)
    (panel,) = st.plot.slice(study, ax=axes(1))
    assert (len(line(panel, "lower fidelity")[0]), len(line(panel, "trial")[0])) == (3, 3)


def test_named_parameters_and_their_number_of_panels() -> None:
    study = told_study(plane(14), bowl, 5)
    assert [ax.get_xlabel() for ax in st.plot.slice(study, ax=axes(2), parameters=["x5", "x2"])] == ["x5", "x2"]
    assert len(st.plot.slice(study, ax=axes(12))) == 12
    for options, message in (
        ({"parameters": ["y"]}, "'y' cannot be drawn; choose from x0"),
        ({"parameters": []}, "names nothing"),
        ({"parameters": ["x1", "x1"]}, "twice"),
        ({"parameters": "x1", "ax": axes(2)}, "must be 1 Axes here"),
    ):
        with pytest.raises(st.MethodError, match=message):
            st.plot.slice(study, **options)
