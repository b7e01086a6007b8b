"""The look-ahead plot: the content of its three panels, and unusual studies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoestring as st
from shoestring.report.plot import lookahead_data as slices
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study
from tests.report.plot.pictures import line

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "PMIN_DRAWS", 2_048)


def three_axes() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots(3, 1, sharex=True)


def waves(**options: Any) -> st.Study:
    study = st.Study(st.Space(x=st.Float(0, 3)), initial=1, **options)
    for x in (0.1, 0.7, 1.25, 2.1, 2.8):
        study.add({"x": x}, math.sin(3 * x) + 0.6 * math.cos(7 * x), cost=1.0)
    return study


def labels(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_three_panels_share_the_parameter(tmp_path: Path) -> None:
    panels = st.plot.lookahead(waves(), tmp_path / "ahead.png")
    assert (tmp_path / "ahead.png").stat().st_size > 30_000
    assert [len(labels(ax)) for ax in panels] == [5, 2, 3]
    assert len({ax.get_xlim() for ax in panels}) == 1
    assert panels[2].get_xlabel() == "x"
    assert "lower is better" in panels[0].get_ylabel()
    assert panels[0].get_title(loc="left").startswith("5 trials, and one imagined: ")


def test_the_surrogate_now_and_then() -> None:
    panels = st.plot.lookahead(waves(), ax=three_axes(), at={"x": 1.8}, outcome=-2.0)
    x, now = line(panels[0], "now ± 2 s.d.")
    then = line(panels[0], "then ± 2 s.d.")[1]
    here = int(np.argmin(np.abs(np.array(x) - 1.8)))
    assert then[here] == pytest.approx(-2.0, abs=0.1) != pytest.approx(now[here], abs=0.1)
    assert line(panels[0], "imagined") == ([1.8], [-2.0])
    assert line(panels[0], "trial")[0] == pytest.approx([0.1, 0.7, 1.25, 2.1, 2.8])
    assert line(panels[0], "lowest mean") == ([x[int(np.argmin(now))]], [min(now)])
    assert "-2 at x = 1.8" in panels[0].get_title(loc="left")
    low, high = panels[0].get_ylim()
    assert low < -2.0 < max(now) < high


def test_p_min_and_acquisitions() -> None:
    panels = st.plot.lookahead(waves(), ax=three_axes(), method=[st.EI(), st.PES()])
    for text, name in zip(labels(panels[1]), ("now", "then"), strict=True):
        assert text.startswith(f"{name}, entropy ")
        assert sum(line(panels[1], text)[1]) == pytest.approx(1.0)
    assert labels(panels[2]) == ["EI", "PES"]
    x, curve = line(panels[2], "EI")
    upright = [float(entry.get_xdata()[0]) for entry in panels[2].lines if entry.get_linestyle() == "--"]
    assert upright[0] == x[int(np.argmax(curve))]
    assert len(upright) == 2


def test_larger_spaces_are_cut(tmp_path: Path) -> None:
    study = told_study(mixed_space(), mixed_value, 20, error_where=lambda config: config["depth"] == 1, direction="maximize")
    study.ask()
    panels = st.plot.lookahead(study, tmp_path / "slice.svg", method=st.EI())
    assert {"elsewhere", "highest mean", "failed", "running"} <= set(labels(panels[0]))
    assert [ax.get_xscale() for ax in panels] == ["log"] * 3
    assert panels[2].get_xlabel().startswith("rate\nwith depth = ")
    assert "higher is better" in panels[0].get_ylabel()
    assert "max" in panels[1].get_ylabel()
    panels = st.plot.lookahead(study, ax=three_axes(), along="depth", method=st.EI())
    assert panels[2].get_xlabel().startswith("depth\nwith rate = ")
    assert panels[0].get_xscale() == "linear"


def test_an_observation_imagined_elsewhere_is_named_in_full() -> None:
    study = told_study(plane(2), bowl, 12)
    panels = st.plot.lookahead(study, ax=three_axes(), at={"x0": 0.25, "x1": 0.75}, outcome=1.0, method=st.EI())
    assert "1 at x0 = 0.25, x1 = 0.75" in panels[0].get_title(loc="left")


def test_a_result_is_drawn_as_it_was() -> None:
    study = st.Study(plane(1), method=st.Random())
    result = study.minimize(bowl, 5)
    study.minimize(bowl, 9)
    assert st.plot.lookahead(result, ax=three_axes(), method=st.EI())[0].get_title(loc="left").startswith("5 trials")
    assert st.plot.lookahead(study, ax=three_axes(), method=st.EI())[0].get_title(loc="left").startswith("9 trials")


@pytest.mark.parametrize("error", [None, pytest.param("boom", marks=pytest.mark.slow)])
def test_the_title_says_that_nothing_has_succeeded(tmp_path: Path, error: str | None) -> None:
    study = st.Study(plane(1))
    if error:
        study.add({"x0": 0.5}, error=error)
    panels = st.plot.lookahead(study, tmp_path / "empty.png")
    assert "nothing has succeeded yet" in panels[0].get_title(loc="left")
    assert (tmp_path / "empty.png").is_file()


@pytest.mark.parametrize("values", [
    (1.0,), pytest.param((1.0, 1.0), marks=pytest.mark.slow), pytest.param((0.0, 0.0), marks=pytest.mark.slow),
    (3.0, 1e300, 2.0, 2.5, 1.0, 1.5), (1e4, 1.0, 1e-3, 30.0),
])  # fmt: skip
def test_odd_values_are_drawn_too(tmp_path: Path, values: tuple[float, ...]) -> None:
    study = st.Study(plane(1))
    for k, value in enumerate(values):
        study.add({"x0": (k + 0.5) / len(values)}, value)
    panels = st.plot.lookahead(study, tmp_path / "odd.png", method=st.EI())
    low, high = panels[0].get_ylim()
    assert low < min(values) < high < 1e9
    assert panels[0].get_yscale() == ("log" if max(values) == 1e4 else "linear")


def test_without_a_path_pyplot_owns_the_figure() -> None:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    panels = st.plot.lookahead(waves(), method=st.EI())
    assert pyplot.fignum_exists(panels[0].figure.number)
    pyplot.close(panels[0].figure)


def test_it_takes_three_axes() -> None:
    with pytest.raises(st.MethodError, match="three Axes"):
        st.plot.lookahead(waves(), ax=st.plot.new_axes(), method=st.EI())
