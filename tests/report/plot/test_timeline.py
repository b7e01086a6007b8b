"""The timeline: bars, lanes and trials without a time."""

from __future__ import annotations

from typing import Any

import pytest

import shoestring as st
from shoestring.report.plot.timeline import timeline_bars
from tests.report.plot.pictures import drawn, line

pytest.importorskip("matplotlib")

SPACE = st.Space(x=st.Float(0, 1))
START = 1.7e9


def history_of(*trials: tuple[float | None, float | None, str]) -> st.History:
    """Trials by (seconds from the first one, seconds they took, state)."""
    made = [
        st.Trial(
            number, {"x": 0.5}, st.State(state), value=float(number) if state == "done" else None, seconds=seconds,
            asked_at=None if asked is None else START + asked,
        )
        for number, (asked, seconds, state) in enumerate(trials)
    ]  # fmt: skip
    return st.History(tuple(made), SPACE)


def plotted(history: st.History) -> Any:
    return st.plot.timeline(st.Result(st.Study(SPACE), history, st.Verdict(False, "")), ax=st.plot.new_axes())


def test_trials_that_run_at_once_are_in_different_lanes() -> None:
    history = history_of((0, 10, "done"), (1, 3, "failed"), (5, 4, "done"), (10, 2, "done"), (11, None, "running"))
    bars = timeline_bars(history)
    assert [bar.lane for bar in bars] == [0, 1, 1, 0, 1]
    assert [(bar.start, bar.end) for bar in bars] == [(0, 10), (1, 4), (5, 9), (10, 12), (11, 12)]


def test_one_worker_has_one_lane_in_spite_of_small_differences_of_clocks() -> None:
    assert {bar.lane for bar in timeline_bars(history_of(*((0.01 * k, 0.0100001, "done") for k in range(50))))} == {0}


def test_states_are_marked_and_time_has_a_unit() -> None:
    ax = drawn(plotted(history_of((0, 100, "done"), (10, 300, "failed"), (310, 50, "abandoned"), (320, None, "running"))))
    assert {each.get_label() for each in ax.containers} == {"done", "failed", "abandoned", "running"}
    assert ax.get_xlabel() == "time since the first trial (min)"
    assert line(ax, "best") == ([50 / 60], [1.0])
    assert {text.get_text() for text in ax.texts} == {"1", "2", "3"}


def test_trials_without_a_time_are_counted_in_the_title() -> None:
    study = st.Study(SPACE, method=st.Random())
    study.tell(study.ask(), 1.0)
    study.add({"x": 0.5}, 2.0, cost=9.0)
    assert st.plot.timeline(study, ax=st.plot.new_axes()).get_title(loc="left") == "2 trials, 1 without a time"
    assert plotted(history_of()).get_title(loc="left") == "no trials yet"
    assert len(plotted(history_of((None, 3.0, "done"), (0, 0, "done"))).patches) == 1
