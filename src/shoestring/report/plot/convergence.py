"""Plots of values over a study: the best value so far against the cost, and the value of every trial."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..._format import plural, rounded
from ...data.history import History
from ...data.trial import State
from ...errors import MethodError
from ...numerics import Array
from ...study import Study
from ..result import Result
from ..views.base import cost_axis, is_wide, value_label, value_range
from .style import (
    BAD,
    DOTS,
    FONT,
    INK,
    TRIAL_COLOUR,
    SavePath,
    axes_for,
    finish_axes,
    mark_best,
    mark_on_axis,
    set_title_and_legend,
)


def convergence(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot the best value so far against the cost spent, each trial as a dot, and failed trials as marks on the x axis.

    Look at it to see whether more budget would help. ``history`` shows the same by the number of the trial.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> for x in (0.9, 0.1, 0.4):
    ...     added = study.add({"x": x}, (x - 0.3) ** 2, cost=2.0)
    >>> ax = st.plot.convergence(study, ax=st.plot.new_axes())  # or path="convergence.png"
    >>> ax.get_title(loc="left")
    '3 trials, best 0.01'
    """
    trials = study.history
    ax = axes_for(path, ax)
    x, unit = cost_axis(trials, study.unit)
    draw_values(ax, trials, x, rings=False)
    ax.set_xlim(0.0, float(x[-1]) * 1.02 if len(x) and x[-1] > 0 else 1.0)
    ax.set_xlabel(f"spent ({unit})", fontsize=FONT)
    return finish_axes(ax, path, legend="lower right" if trials.maximize else "upper right")


def history(
    study: Result | Study,
    path: SavePath | None = None,
    ax: Any = None,
    *,
    against: Literal["trials", "cost"] = "trials",
) -> Any:
    """Plot the value of every trial in order, the best value so far, and the best trial; failed and running ones are marked.

    Look at it first. With fidelities, trials below the target are drawn as rings: their values are not compared with the others.

    against   the x axis: the number of the trial, or the cost of all trials up to its end

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> for x in (0.9, 0.1, 0.4):
    ...     added = study.add({"x": x}, (x - 0.3) ** 2, cost=2.0)
    >>> ax = st.plot.history(study, ax=st.plot.new_axes())  # or path="history.png"
    >>> ax.get_xlabel()
    'trial'
    """
    if against not in ("trials", "cost"):
        raise MethodError(f'against must be "trials" or "cost", not {against!r}')
    trials = study.history
    ax = axes_for(path, ax)
    if against == "trials":
        x, label, limits = np.arange(len(trials), dtype=float), "trial", (-0.5, max(len(trials), 1) - 0.5)
    else:
        x, unit = cost_axis(trials, study.unit)
        label, limits = f"spent ({unit})", (0.0, float(x[-1]) * 1.02 if len(x) and x[-1] > 0 else 1.0)
    draw_values(ax, trials, x, rings=True)
    ax.set_xlim(*limits)
    ax.set_xlabel(label, fontsize=FONT)
    if against == "trials":
        ax.xaxis.get_major_locator().set_params(integer=True)
    found, running = trials.best, trials.table.having(State.RUNNING)
    if found is not None:
        values = trials.table.value[: len(trials)]
        low, high = value_range(values[trials.table.having(State.DONE)], trials.maximize)
        mark_best(ax, float(x[found.number]), float(np.clip(values[found.number], low, high)))
    if running.any():
        mark_on_axis(ax, x[running], "^", "running", color=TRIAL_COLOUR, markerfacecolor="none")
    finish_axes(ax, None, legend="best")
    set_title_and_legend(ax, ax.get_title(loc="left"))
    if path is not None:
        ax.figure.savefig(path)
    return ax


def draw_values(ax: Any, trials: History, x: Array, *, rings: bool) -> None:
    """Draw values, the best one so far, failures, the y axis and the title; ``rings``: for trials below the target fidelity."""
    table, count = trials.table, len(trials)
    done, target, failed = table.having(State.DONE), table.at_target[:count], table.having(State.FAILED)
    low, high = value_range(table.value[:count][done], trials.maximize)
    values = np.clip(table.value[:count], low, high)
    ring = done & ~target if rings else np.zeros(count, dtype=bool)
    if ring.any():
        style = {"color": DOTS, "markerfacecolor": "none"}
        ax.plot(x[ring], values[ring], "o", markersize=5, label="lower fidelity", zorder=2, **style)
    if (done & ~ring).any():
        ax.plot(x[done & ~ring], values[done & ~ring], "o", color=DOTS, markersize=5, label="trial", zorder=2)
    comparable = np.flatnonzero(done & target)
    if len(comparable):
        best = (np.maximum if trials.maximize else np.minimum).accumulate(values[comparable])
        at, best = np.append(x[comparable], x[-1]), np.append(best, best[-1])  # a level line up to the last trial
        ax.step(at, best, where="post", color=INK, linewidth=2.2, label="best so far", zorder=3)
        if is_wide(values[done]):
            ax.set_yscale("log")
    if failed.any():
        mark_on_axis(ax, x[failed], "x", "failed", color=BAD)
    ax.set_ylabel(value_label(trials.maximize), fontsize=FONT)
    found, counted = trials.best, plural(count, "trial")
    title = f"{counted}, nothing has succeeded yet" if found is None else f"{counted}, best {rounded(found.value)}"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
