"""The contour plot: its surface, its trials and the parameters it chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shoestring as st
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study
from tests.report.plot.pictures import drawn, line

pytest.importorskip("matplotlib")


def title(ax: Any) -> str:
    return str(ax.get_title(loc="left"))


def mixed(**options: Any) -> st.Study:
    return told_study(mixed_space(), mixed_value, 25, error_where=lambda config: config["depth"] == 1, **options)


def test_the_two_most_important_parameters_are_drawn() -> None:
    study = told_study(plane(3), lambda config: config["x0"] ** 2 + 3 * config["x2"], 14)
    study.ask()
    ax = st.plot.contour(study, ax=st.plot.new_axes())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x2", "x0")
    assert line(ax, "trial")[0] == pytest.approx([trial.config["x2"] for trial in study.history.having(st.State.DONE)])
    best = study.best
    assert best is not None
    assert line(ax, "best") == ([best.config["x2"]], [best.config["x0"]])
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 1))
    assert len(line(ax, "running")[0]) == 1
    assert title(ax).startswith("15 trials, best ")


def test_the_surface_is_the_prediction_through_the_best_config() -> None:
    study = mixed()
    ax = st.plot.contour(study, ax=st.plot.new_axes(), parameters=["kind", "depth"])
    (mesh,) = [each for each in ax.collections if hasattr(each, "get_coordinates")]
    shown = np.asarray(mesh.get_array()).reshape(6, 3)
    best = study.best
    assert best is not None
    config = {**best.config, "kind": "a", "depth": 2}
    u = study.space.snap(study.space.encode({name: config[name] for name in ("rate", "depth", "kind")})[None, :])
    belief = study.context.belief(costs=False)
    assert shown[1, 0] == pytest.approx(float(belief.output.inverse(belief.fitted_mean(belief.encoding.features(u)))[0]))
    assert ax.get_xlim() == (-0.5, 2.5)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert np.rint(line(ax, "failed")[1]).tolist() == [1.0] * study.history.number_of(st.State.FAILED)


def test_a_log_scale_and_maximizing() -> None:
    ax = st.plot.contour(mixed(direction="maximize"), ax=st.plot.new_axes(), parameters=["rate", "depth"])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    bar = next(each for each in ax.figure.axes if each is not ax)
    assert "higher is better" in bar.get_ylabel()


def test_where_a_parameter_is_not_active_nothing_is_drawn() -> None:
    study = mixed()
    ax = st.plot.contour(study, ax=st.plot.new_axes(), parameters=["extra", "kind"])
    (mesh,) = [each for each in ax.collections if hasattr(each, "get_coordinates")]
    hidden = np.ma.getmaskarray(mesh.get_array()).reshape(3, -1)
    assert [bool(row.all()) for row in hidden] == [True, False, False]
    assert len(line(ax, "trial")[0]) == sum("extra" in trial.config for trial in study.history.having(st.State.DONE))


def test_parameters_that_are_never_active_together_are_not_chosen() -> None:
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "a"}), z=st.Float(0, 1, when={"kind": "b"}))
    study = st.Study(space)
    for k in range(8):
        study.add({"kind": "ab"[k % 2], "xz"[k % 2]: k / 8}, k / 8 * (5 if k % 2 else 4))
    ax = st.plot.contour(study, ax=st.plot.new_axes())
    assert {ax.get_xlabel(), ax.get_ylabel()} - {"kind"} in ({"x"}, {"z"})
    assert title(st.plot.contour(study, ax=st.plot.new_axes(), parameters=["x", "z"])) == "8 trials, none with both x and z"


def test_wrong_parameters_are_refused() -> None:
    for study, parameters, message in (
        (told_study(plane(1), bowl, 5), None, "st.plot.slice draws along x0"),
        (told_study(plane(2), bowl, 5), ["x0"], "must name two"),
        (told_study(plane(2), bowl, 5), ["x0", "lr"], "'lr' cannot be drawn"),
    ):
        with pytest.raises(st.MethodError, match=message):
            st.plot.contour(study, parameters=parameters)


def test_a_surface_that_is_flat_or_not_through_the_best_trial() -> None:
    flat = told_study(plane(2), lambda config: 2.0, 5)
    assert title(drawn(st.plot.contour(flat, ax=st.plot.new_axes()))) == "5 trials, best 2"
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "b"}))
    study = st.Study(space)
    study.add({"kind": "a"}, 0.0)
    study.add({"kind": "b", "x": 0.5}, 1.0)
    assert title(st.plot.contour(study, ax=st.plot.new_axes())) == "2 trials, through trial 1: 1"


def test_values_over_many_powers_of_ten_get_a_log_scale() -> None:
    study = told_study(plane(2), lambda config: 10.0 ** (4 * config["x0"] + config["x1"]), 12)
    ax = drawn(st.plot.contour(study, ax=st.plot.new_axes()))
    bar = next(each for each in ax.figure.axes if each is not ax)
    assert bar.get_yscale() == "log"
