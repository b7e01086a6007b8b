"""Several studies in one picture: best value against cost, with bands over the runs of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._format import listed, plural, rounded
from ...data.history import History
from ...data.trial import State
from ...errors import StudyError
from ...numerics import Array
from .base import View, ViewedStudy, axis, axis_label, cost_axis, is_wide, plain, series, time_unit, value_label
from .progress_curves import comparable, incumbents

GRID_POINTS = 201  # along the axis of cost, where a group has several runs
QUARTILE_RUNS = 4  # from so many runs on, the band is from the first to the third quartile; with fewer it holds all runs
TITLE = "Best value against cost, several studies"

Studies = Mapping[str, ViewedStudy | Sequence[ViewedStudy]] | Sequence[ViewedStudy]


def compare(studies: Studies) -> View:
    """The best value against the cost for several studies, or for groups of studies by name: the seeds of one method, say.

    A group is drawn as the median of its runs, with a band. A run that has ended keeps its last value.
    """
    groups = grouped(studies)
    members = [each for runs in groups.values() for each in runs]
    if not members:
        raise StudyError("there is no study to compare; give st.Study objects, or lists of them by name")
    units, directions = {each.unit for each in members}, {each.log.maximize for each in members}
    if len(units) > 1:
        raise StudyError(f"the studies count cost in {listed(sorted(units))}; compare studies with one unit of cost")
    if len(directions) > 1:
        raise StudyError("some studies minimize and some maximize; compare studies with one direction")
    for each in members:
        each.refresh()
    unit, maximize = units.pop(), directions.pop()
    at_target = any(has_target(each.log) for each in members)  # then trials at other fidelities are not compared with them
    runs = {
        name: [steps_of(each.log) for each in group if has_target(each.log) or not at_target] for name, group in groups.items()
    }
    longest = max((float(cost[-1]) for group in runs.values() for cost, _ in group if len(cost)), default=0.0)
    scale, shown = time_unit(longest) if unit == "s" else (1.0, unit)
    lines: list[dict[str, Any]] = []
    for place, (name, group) in enumerate(runs.items()):
        lines += group_series(name, place, [run for run in group if len(run[0])], longest, scale)
    values = np.array([value for each in lines for name in ("y", "low", "high") for value in each.get(name, ())])
    count = sum(len(group) for group in runs.values())
    view = {
        "name": "compare", "kind": "chart", "title": TITLE, "caption": caption_of(lines, runs, maximize), "series": lines,
        "empty": None if lines else "Nothing has succeeded yet in these studies.",
        "trials": sum(each.log.trials_started for each in members),
        "x": axis(axis_label("spent", shown), [0.0, longest / scale], unit=shown, zero=True),
        "y": axis(value_label(maximize, "best value"), values.tolist(), log=is_wide(values)), "runs": count,
    }  # fmt: skip
    found: View = plain(view)
    return found


def grouped(studies: Studies) -> dict[str, list[ViewedStudy]]:
    """The studies by the name of their group; each one by itself if they are a list."""
    if isinstance(studies, Mapping):
        return {name: list(each) if isinstance(each, Sequence) else [each] for name, each in studies.items()}
    found: dict[str, list[ViewedStudy]] = {}
    for each in studies:
        name, number = each.name, 2
        while name in found:
            name, number = f"{each.name} ({number})", number + 1
        found[name] = [each]
    return found


def has_target(history: History) -> bool:
    """Whether a trial at the target fidelity has finished."""
    return bool((history.table.having(State.DONE) & history.table.at_target[: len(history)]).any())


def steps_of(history: History) -> tuple[Array, Array]:
    """The cost at which each new best value was found, and the value; the last point is the end of the run."""
    pool = comparable(history)
    if not len(pool):
        return np.empty(0), np.empty(0)
    spent, _ = cost_axis(history, "")  # in the study's own unit
    rows, best = incumbents(history.table.value[: len(history)], pool, history.maximize)
    return np.append(spent[rows], spent[-1]), np.append(best, best[-1])


def group_series(name: str, place: int, runs: list[tuple[Array, Array]], longest: float, scale: float) -> list[dict[str, Any]]:
    """One run as its steps; several runs as their median and a band."""
    if not runs:
        return []
    role = f"study{place % 8}"
    if len(runs) == 1:
        cost, best = runs[0]
        return [series(name, role, "step", cost / scale, best, runs=1)]
    begins = max(float(cost[0]) for cost, _ in runs)  # from here on each run has a value
    grid = np.linspace(begins, max(longest, begins), GRID_POINTS)
    values = np.array([best[np.searchsorted(cost, grid, side="right") - 1] for cost, best in runs])
    ends = (25, 75) if len(runs) >= QUARTILE_RUNS else (0, 100)
    low, middle, high = np.percentile(values, [ends[0], 50, ends[1]], axis=0)
    return [series(name, role, "stepband", grid / scale, middle, low=low, high=high, runs=len(runs))]


def caption_of(lines: list[dict[str, Any]], runs: Mapping[str, list[tuple[Array, Array]]], maximize: bool) -> str:
    """Which one is best at the end, and what a band is."""
    if not lines:
        return "Nothing has succeeded yet in these studies."
    ends = {each["name"]: each["y"][-1] for each in lines}
    first = (max if maximize else min)(ends, key=lambda name: ends[name])
    most = max((len(group) for group in runs.values()), default=0)
    width = "hold all runs" if most < QUARTILE_RUNS else "are from the first to the third quartile"
    band = f"; bands {width}" if most > 1 else ""
    what = ", the median over the runs," if most > 1 else ","
    missing = [name for name in runs if name not in ends]
    without = f" {listed(missing)} {'has' if len(missing) == 1 else 'have'} no result to compare yet." if missing else ""
    return f"Of {plural(len(lines), 'line')}, {first} ends with the best value{what} {rounded(ends[first])}{band}.{without}"
