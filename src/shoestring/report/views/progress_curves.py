"""The best value so far, against the cost and against the number of trials."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._format import amount, plural, rounded
from ...data.history import History
from ...data.trial import State
from ...numerics import Array
from .base import (
    MAX_POINTS,
    Rows,
    Source,
    View,
    axis,
    axis_label,
    cost_axis,
    make_view,
    series,
    spread_out,
    thinned,
    trial_texts,
    value_axis,
)


def best_against_cost(source: Source) -> View:
    """The best value so far against the cost spent, with every trial."""
    x, unit = cost_axis(source.history, source.unit)
    return best_so_far(source, x, f"Best value against {'time' if source.unit == 's' else 'cost'}", "spent", unit)


def best_against_trials(source: Source) -> View:
    """The best value so far against the number of the trial, with every trial."""
    return best_so_far(source, np.arange(len(source.history), dtype=float), "Best value against trials", "trial", "")


def best_so_far(source: Source, x: Array, title: str, label: str, unit: str) -> View:
    """Values over some x, with the steps of the best one, and what has no value as marks at the axis."""
    history = source.history
    table, count = history.table, len(history)
    values, done = table.value[:count], table.having(State.DONE)
    pool = comparable(history)
    found: list[dict[str, Any]] = []
    pruned = np.zeros(count, dtype=bool)
    pruned[[row for row in table.pruned if row < count]] = True
    at_target = np.zeros(count, dtype=bool)
    at_target[pool] = True
    for name, role, mark, mask in (
        ("lower fidelity", "lower", "rings", done & ~at_target & ~pruned), ("pruned", "pruned", "triangles", done & pruned),
        ("trial", "trial", "dots", at_target & ~pruned),
    ):  # fmt: skip
        if mask.any():
            rows = thinned(x, values, np.flatnonzero(mask))
            found.append(points(history, rows, x, values, name=name, role=role, mark=mark))
    if len(pool):
        rows, best = incumbents(values, pool, history.maximize)
        rows, best = rows[kept := spread_out(np.arange(len(rows)))], best[kept]
        at, heights = np.append(x[rows], x[-1]), np.append(best, best[-1])  # a level line up to the last trial
        found.append(series("best so far", "best", "step", at, heights, number=[*rows.tolist(), None]))
    if history.best is not None:
        row = np.array([history.best.number])
        found.append(points(history, row, x, values, name="best", role="star", mark="star"))
    for state, role in ((State.FAILED, "failed"), (State.RUNNING, "running")):
        rows = spread_out(np.flatnonzero(table.having(state)), MAX_POINTS // 2)
        if len(rows):
            text = [failure_text(history, row) if state is State.FAILED else f"trial {row} runs" for row in rows.tolist()]
            found.append({"name": str(state), "role": role, "mark": "rug", "x": x[rows].tolist(), "y": None,
                          "number": rows.tolist(), "text": text})  # fmt: skip
    whole = label == "trial"
    ends = (-0.5, max(count, 1) - 0.5) if whole else None
    bottom = axis(axis_label(label, unit), [0.0, *x[-1:].tolist()], unit=unit, whole=whole, zero=not whole, ends=ends)
    view = make_view(
        "chart", title, best_caption(source), history, x=bottom, y=value_axis(history), series=found,
        shown=sum(len(each["x"]) for each in found if each["mark"] != "step"),
    )  # fmt: skip
    if not found:
        return view | {"empty": "There are no trials yet."}
    return view if len(pool) else view | {"empty": view["caption"]}  # an axis of values would be invented


def points(history: History, rows: Rows, x: Array, values: Array, *, name: str, role: str, mark: str) -> dict[str, Any]:
    """Trials as points."""
    return series(name, role, mark, x[rows], values[rows], number=rows, text=trial_texts(history, rows))


def comparable(history: History) -> Rows:
    """The finished trials at the target fidelity; those at any fidelity while there is none at the target."""
    done = history.table.having(State.DONE)
    at_target = done & history.table.at_target[: len(history)]
    return np.flatnonzero(at_target if at_target.any() else done)


def incumbents(values: Array, pool: Rows, maximize: bool) -> tuple[Rows, Array]:
    """The trials that were the best one when they ended, and their values."""
    best = (np.maximum if maximize else np.minimum).accumulate(values[pool])
    new = np.append(True, best[1:] != best[:-1])
    return pool[new], best[new]


def failure_text(history: History, row: int) -> str:
    """Why a trial has failed, in a few words."""
    error = (history[row].error or "no reason is known").strip().partition("\n")[0]
    return f"trial {row} failed: {error[:80]}"


def best_caption(source: Source) -> str:
    """The best value in a sentence, with what was spent up to it."""
    history, best = source.history, source.history.best
    failed = history.number_of(State.FAILED)
    failures = f"; {failed} failed" if failed else ""
    if best is None:
        return f"Nothing has succeeded yet, after {plural(history.trials_started, 'trial')}{failures}."
    elsewhere = bool(history.table.added[: len(history)].all())  # then the axis shows what they have cost there
    paid = " from elsewhere" if elsewhere else f" for {amount(history.spent, source.unit)}"
    trials = plural(history.trials_started, "trial")
    return f"The best value is {rounded(best.value)} (trial {best.number}), after {trials}{paid}{failures}."
