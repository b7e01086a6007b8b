"""Studies with little or nothing to draw: every plot draws them, and the title says what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from tests.problems import mixed_space
from tests.report.plot.pictures import drawn

pytest.importorskip("matplotlib")

KINDS = ["history", "importance", "slice", "contour", "parallel", "timeline", "convergence"]
CONFIG = {"rate": 0.01, "depth": 3, "kind": "c", "extra": 0.1, "mode": [1, 2]}


def study_of(what: str) -> st.Study:
    study = st.Study(mixed_space(), method=st.Random())
    if what == "running":
        study.ask()
    elif what == "failed":
        study.add(CONFIG, error="boom")
    elif what == "one trial":
        study.add(CONFIG, 1.0)
    elif what == "equal":
        for depth in range(1, 7):
            study.add(CONFIG | {"depth": depth}, 2.0)
        study.add({"rate": 0.1, "depth": 3, "kind": "a"}, 2.0)
    elif what == "huge":
        for depth, value in enumerate((3.0, 1e300, 2.0, -1e300, 1.0, 1.5), start=1):
            study.add(CONFIG | {"depth": depth}, value)
    return study


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_draws_them(kind: str) -> None:
    for what in ("empty", "running", "failed", "one trial", "equal", "huge"):
        study: Any = study_of(what)
        for each in (study, study.result) if what == "empty" else (study,):
            if kind == "slice":
                ax = st.plot.slice(each, ax=figure_of(6))[0]
            else:
                ax = getattr(st.plot, kind)(each, ax=st.plot.new_axes())
            if what == "equal":
                drawn(ax)
            if what in ("empty", "running", "failed") and kind != "timeline":
                assert "nothing has succeeded yet" in ax.get_title(loc="left"), what


def figure_of(count: int) -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots(1, count)


@pytest.mark.parametrize(("kind", "names"), [("slice", ["rate"]), ("contour", ["depth", "kind"])])
def test_a_plot_of_several_axes_is_saved(kind: str, names: list[str], tmp_path: Path) -> None:
    getattr(st.plot, kind)(study_of("equal"), path=tmp_path / f"{kind}.svg", parameters=names)
    assert (tmp_path / f"{kind}.svg").stat().st_size > 5_000
