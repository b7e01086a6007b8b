"""Plots of where the budget goes."""

from __future__ import annotations

import pytest

import shoestring as st
from tests.report.plot.pictures import drawn

pytest.importorskip("matplotlib")

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))


def finished(*epochs: int) -> st.Study:
    study = st.Study(SPACE, unit="USD")
    for each in epochs:
        study.enqueue({"x": 0.5, "epochs": each})
        study.tell(study.ask(), 1 / each, cost=2.0 * each)
    return study


def test_the_ladder_has_a_bar_for_each_fidelity() -> None:
    ax = drawn(st.plot.ladder(finished(1, 3, 1, 9), ax=st.plot.new_axes()))
    assert [bar.get_width() for bar in ax.patches] == [4.0, 6.0, 18.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "3", "9"]
    assert ax.texts[0].get_text() == "4 USD, 2 trials"
    assert st.plot.ladder(finished(), ax=st.plot.new_axes()).get_title(loc="left") == "no trials yet"
    other = st.Study(st.Space(x=st.Float(0, 1)))
    assert st.plot.ladder(other, ax=st.plot.new_axes()).get_title(loc="left") == "this study has no fidelity"


def test_groups_are_drawn_with_bands_and_results_are_taken_too() -> None:
    ax = drawn(st.plot.compare({"ours": [finished(9, 9), finished(9).result], "other": finished(9)}, ax=st.plot.new_axes()))
    assert ax.get_legend_handles_labels()[1] == ["ours", "other"]
    assert len(ax.collections) == 1
    assert ax.get_title(loc="left") == "3 runs"
    assert st.plot.compare([finished()], ax=st.plot.new_axes()).get_title(loc="left") == "nothing has succeeded yet"
