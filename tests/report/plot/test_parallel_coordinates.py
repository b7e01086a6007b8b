"""Parallel coordinates: heights, colours and inactive parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shoestring as st
from shoestring.report.plot.parallel_coordinates import INACTIVE_HEIGHT, line_heights
from tests.problems import mixed_space, mixed_value, told_study
from tests.report.plot.pictures import drawn, line

pytest.importorskip("matplotlib")

SPACE = st.Space(
    rate=st.Float(1e-4, 1, log=True), depth=st.Int(1, 5), kind=st.Choice("a", "b", "c"), extra=st.Float(0, 2, when={"kind": "b"})
)


def study_of(direction: Any = "minimize") -> st.Study:
    study = st.Study(SPACE, direction=direction)
    study.add({"rate": 1e-4, "depth": 1, "kind": "a"}, 1.0)
    study.add({"rate": 1e-2, "depth": 3, "kind": "b", "extra": 0.5}, 3.0)
    study.add({"rate": 1.0, "depth": 5, "kind": "c"}, 2.0)
    study.add({"rate": 1.0, "depth": 4, "kind": "c"}, error="boom")
    return study


def test_every_trial_is_a_line_over_the_ranges() -> None:
    study = study_of()
    study.ask()
    wanted = [[0, 0, 0, INACTIVE_HEIGHT], [0.5, 0.5, 0.5, 0.25], [1, 1, 1, INACTIVE_HEIGHT], [1, 0.75, 1, INACTIVE_HEIGHT]]
    assert line_heights(study.history)[:4] == pytest.approx(np.array(wanted))
    ax = drawn(st.plot.parallel(study, ax=st.plot.new_axes()))
    (lines,) = ax.collections
    assert sorted(float(segment[-1, 1]) for segment in lines.get_segments()) == [0.0, 0.5, 1.0]
    assert line(ax, "best")[1] == pytest.approx([*wanted[0], 0.0])
    assert line(ax, "failed")[1] == pytest.approx(wanted[3])
    assert len(line(ax, "running")[0]) == 4  # it has no value
    assert [label.get_text() for label in ax.get_xticklabels()] == ["rate", "depth", "kind", "extra", "value"]
    texts = {text.get_text() for text in ax.texts}
    assert {"0.0001", "0.01", "1", "5", "a", "b", "c", "not active", "3"} <= texts


@pytest.mark.parametrize(("direction", "best"), [("minimize", 1.0), ("maximize", 3.0)])
def test_the_best_line_is_the_darkest_and_on_top(direction: Any, best: float) -> None:
    ax = st.plot.parallel(study_of(direction), ax=st.plot.new_axes())
    (lines,) = ax.collections
    assert lines.get_array()[-1] == best
    brightness = lines.to_rgba(lines.get_array())[:, :3].sum(axis=1)
    assert int(np.argmin(brightness)) == len(brightness) - 1


def test_a_mixed_space_with_lists_as_options_is_drawn() -> None:
    ax = st.plot.parallel(told_study(mixed_space(), mixed_value, 12), ax=st.plot.new_axes())
    assert {"None", "[1, 2]"} <= {text.get_text() for text in ax.texts}
