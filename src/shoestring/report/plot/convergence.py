"""The convergence plot: the best value so far against the cost spent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._format import plural, rounded
from ...data.trial import State
from ...study import Study
from ..result import Result
from .style import BAD, DOTS, FONT, INK, WIDE, SavePath, axes_for, finish_axes, mark_on_axis, time_unit, value_range, values_of


def convergence(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot the best value so far against the cost spent, each trial as a dot, and failed trials as marks on the x axis."""
    history, unit = study.history, study.unit
    ax = axes_for(path, ax)
    spent = np.cumsum([trial.cost or 0.0 for trial in history])
    scale, unit = time_unit(float(spent[-1]) if len(spent) else 0.0) if unit == "s" else (1.0, unit)
    done = np.array([trial.state is State.DONE for trial in history], dtype=bool)
    failed = np.array([trial.state is State.FAILED for trial in history], dtype=bool)
    x = spent / scale

    values = values_of(history.having(State.DONE))
    low, high = value_range(values, history.maximize)
    ax.plot(x[done], np.clip(values, low, high), "o", color=DOTS, markersize=5, label="trial", zorder=2)
    steps = history.bests()
    if steps:
        at, best = np.array(steps).T
        at, best = np.append(at / scale, x[-1]), np.append(best, best[-1])  # a level line up to the whole cost
        ax.step(at, np.clip(best, low, high), where="post", color=INK, linewidth=2.2, label="best so far", zorder=3)
        if values.min() > 0 and min(high, values.max()) > WIDE * values.min():
            ax.set_yscale("log")
    if failed.any():
        mark_on_axis(ax, x[failed], "x", "failed", color=BAD)
    ax.set_xlim(0.0, float(x[-1]) * 1.02 if len(x) and x[-1] > 0 else 1.0)
    ax.set_xlabel(f"spent ({unit})", fontsize=FONT)
    ax.set_ylabel("value (higher is better)" if history.maximize else "value (lower is better)", fontsize=FONT)
    found = history.best
    counted = plural(len(history), "trial")
    title = f"{counted}, best {rounded(found.value)}" if found else f"{counted}, nothing has succeeded yet"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return finish_axes(ax, path, legend="lower right" if history.maximize else "upper right")
