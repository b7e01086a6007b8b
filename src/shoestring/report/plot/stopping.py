"""The stopping plot: the bound on the simple regret and the threshold below which the study stops."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ..._format import plural
from ...data.trial import State
from ...study import Study
from ...termination.auto import find_bound
from ...termination.regret import RegretBound, SureBound
from ..result import Result
from .style import BAD, FONT, INK, SavePath, axes_for, finish_axes, time_unit


def stopping(
    study: Result | Study,
    path: SavePath | None = None,
    ax: Any = None,
    *,
    rule: RegretBound | None = None,
    optimum: float | None = None,
    against: Literal["trials", "cost"] = "trials",
) -> Any:
    """Plot the bound on the regret and its threshold after every trial, from the first check on.

    rule     a RegretBound; the study's own one unless given
    optimum  the best value that is possible; if it is given, the true regret is drawn too
    against  the x axis: the number of trials, or the cost spent
    """
    history = study.history
    owner: Any = getattr(study, "study", study)
    if rule is None:
        rule = find_bound(owner.rule) or SureBound()
    found = np.cumsum([trial.state is State.DONE and history.at_target(trial) for trial in history])
    steps = [n for n in range(1, len(history) + 1) if found[n - 1] >= rule.after]
    spent = np.cumsum([trial.cost or 0.0 for trial in history])
    scale, unit = time_unit(float(spent[-1]) if len(spent) else 0.0) if study.unit == "s" else (1.0, study.unit)
    x = [n if against == "trials" else spent[n - 1] / scale for n in steps]
    ax = axes_for(path, ax)
    past = [history.head(n) for n in steps]
    beliefs = [owner.suggester.context(earlier).belief(costs=False) for earlier in past]  # those that the study's rule looks at
    bounds = [rule.bound(earlier, belief).regret for earlier, belief in zip(past, beliefs, strict=True)]
    ax.plot(x, bounds, color=INK, linewidth=2.0, label="bound", zorder=3)
    limits = [rule.threshold(earlier)[0] for earlier in past]
    if any(limit is not None for limit in limits):
        ax.plot(x, [math.nan if limit is None else limit for limit in limits], "--", color=BAD, label="threshold", zorder=2)
    if optimum is not None:
        best = [float(earlier.best.value or 0.0) if earlier.best else math.nan for earlier in past]
        ax.plot(x, np.abs(np.array(best) - optimum), color="#555555", linewidth=1.4, label="true regret", zorder=2)
    if steps:
        ax.set_yscale("log")
    ax.set_xlabel("trials" if against == "trials" else f"spent ({unit})", fontsize=FONT)
    ax.set_ylabel("regret", fontsize=FONT)
    title = f"regret bound, {plural(len(history), 'trial')}" if steps else f"no bound before {plural(rule.after, 'evaluation')}"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return finish_axes(ax, path, legend="upper right")
