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
from ..views.base import cost_axis
from .style import BAD, FONT, INK, SavePath, axes_for, finish_axes


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

    Look at it to see how far a study is from stopping by itself.

    rule     a RegretBound; the study's own one unless given
    optimum  the best value that is possible; if it is given, the true regret is drawn too
    against  the x axis: the number of trials, or the cost spent

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), stop=st.RegretBound(0.01))
    >>> ax = st.plot.stopping(study, ax=st.plot.new_axes())  # or path="stopping.png"
    >>> ax.get_title(loc="left")
    'no bound before 20 evaluations'
    """
    history = study.history
    owner: Any = getattr(study, "study", study)
    if rule is None:
        rule = find_bound(owner.rule) or SureBound()
    found = np.cumsum([trial.state is State.DONE and history.at_target(trial) for trial in history])
    steps = [n for n in range(1, len(history) + 1) if found[n - 1] >= rule.after]
    spent, unit = cost_axis(history, study.unit)
    x = [n if against == "trials" else spent[n - 1] for n in steps]
    ax = axes_for(path, ax)
    past = [history.head(n) for n in steps]
    beliefs = [owner.suggester.context(earlier).belief(costs=False) for earlier in past]  # those that the study's rule looks at
    bounds = [rule.bound(earlier, belief).regret for earlier, belief in zip(past, beliefs, strict=True)]
    dot = {"marker": "o"} if len(steps) == 1 else {}  # a line through one point cannot be seen
    ax.plot(x, bounds, color=INK, linewidth=2.0, label="bound", zorder=3, **dot)
    limits = [rule.threshold(earlier)[0] for earlier in past]
    if any(limit is not None for limit in limits):
        heights = [math.nan if limit is None else limit for limit in limits]
        ax.plot(x, heights, "--", color=BAD, label="threshold", zorder=2, **dot)
    if optimum is not None:
        best = [float(earlier.best.value or 0.0) if earlier.best else math.nan for earlier in past]
        ax.plot(x, np.abs(np.array(best) - optimum), color="#555555", linewidth=1.4, label="true regret", zorder=2, **dot)
    if steps:
        ax.set_yscale("log")
    ax.set_xlabel("trials" if against == "trials" else f"spent ({unit})", fontsize=FONT)
    ax.set_ylabel("regret", fontsize=FONT)
    title = f"regret bound, {plural(len(history), 'trial')}" if steps else f"no bound before {plural(rule.after, 'evaluation')}"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    return finish_axes(ax, path, legend="upper right")
