"""The plot of a regret bound."""

import numpy as np
import pytest

import shoestring as st
from tests.problems import bowl, plane, told_study

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("against", [pytest.param("trials", marks=pytest.mark.slow), "cost"])
def test_stopping_draws_bound_threshold_and_regret(tmp_path, against):
    study = told_study(plane(2), bowl, 30, stop=st.Patience(50) | st.RegretBound(0.01))
    ax = st.plot.stopping(study, tmp_path / "stopping.png", optimum=0.0, against=against)
    labels = [line.get_label() for line in ax.get_lines()]
    assert labels == ["bound", "threshold", "true regret"]
    bound, threshold, regret = (line.get_ydata() for line in ax.get_lines())
    assert len(bound) == 11
    assert (np.array(threshold) == 0.01).all()
    assert (np.diff(regret) <= 0).all()
    assert (tmp_path / "stopping.png").stat().st_size > 1000


def test_stopping_with_one_checked_point_shows_it():
    study = told_study(plane(1), bowl, 5, stop=st.RegretBound(0.01, after=5))
    ax = st.plot.stopping(study, ax=st.plot.new_axes(), optimum=0.0)
    assert [(len(line.get_xdata()), line.get_marker()) for line in ax.get_lines()] == [(1, "o")] * 3
    study.add({"x0": 0.1}, 0.04)
    assert st.plot.stopping(study, ax=st.plot.new_axes()).get_lines()[0].get_marker() == "None"


def test_stopping_with_few_trials_says_so(tmp_path):
    ax = st.plot.stopping(told_study(plane(1), bowl, 5), tmp_path / "early.png")
    assert "20 evaluations" in ax.get_title(loc="left")
