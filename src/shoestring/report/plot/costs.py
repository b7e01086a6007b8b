"""Plots of costs: the Pareto front of expected improvement and cost, and predicted against actual costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._format import plural, rounded
from ...study import Study
from ..result import Result
from ..views.base import WIDE
from ..views.cost_curves import predicted_costs, typical_factor
from .style import DOTS, FONT, INK, SavePath, axes_for, finish_axes


def pareto(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot the Pareto front of EI and expected cost for the next trial, and the point that each method would choose on it.

    Look at it where trials differ in cost, to choose a method. It needs finished trials with costs.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> for x in (0.9, 0.1, 0.4):
    ...     added = study.add({"x": x}, (x - 0.3) ** 2, cost=1 + x)
    >>> ax = st.plot.pareto(study, ax=st.plot.new_axes())  # or path="front.png"
    >>> ax.get_ylabel()
    'expected improvement'
    """
    owner: Any = getattr(study, "study", study)
    front = owner.pareto_front()
    ax = axes_for(path, ax)
    cost, ei = np.array([(point.cost, point.ei) for point in front.points]).T
    ax.step(cost, ei, where="post", color=DOTS, linewidth=1.6, zorder=1)
    ax.plot(cost, ei, "o", color=DOTS, markersize=4, label="front", zorder=2)
    for number, (name, point) in enumerate(front.landings.items()):
        marker = "sDv^<>PX*"[number % 9]
        label = f"{name}, alpha {rounded(front.alphas[name], 2)}"
        ax.plot([point.cost], [point.ei], marker, color=f"C{number % 10}", markersize=8, label=label, zorder=3)
    if cost.max() > WIDE / 5 * cost.min():
        ax.set_xscale("log")
    ax.set_xlabel(f"expected cost ({front.unit})", fontsize=FONT)
    ax.set_ylabel("expected improvement", fontsize=FONT)
    ax.set_title(f"EI-cost front after {plural(len(owner.log), 'trial')}", fontsize=FONT + 1, loc="left")
    return finish_axes(ax, path, legend="upper left", size=FONT - 4)


def costs(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot the actual against the expected cost, for every trial whose cost was predicted when it was suggested.

    Look at it to see whether the cost model can be trusted.

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> ax = st.plot.costs(study, ax=st.plot.new_axes())  # or path="costs.png"
    >>> ax.get_title(loc="left")
    'no cost was predicted yet'
    """
    expected, actual, _ = predicted_costs(study.history)
    ax = axes_for(path, ax)
    if len(expected):
        ends = np.array([min(expected.min(), actual.min()), max(expected.max(), actual.max())])
        ax.plot(ends, ends, color="#777777", linestyle="--", linewidth=1.2, label="as expected", zorder=1)
        ax.plot(expected, actual, "o", color=INK, alpha=0.7, markersize=5, label="trial", zorder=2)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(f"typically off by a factor of {typical_factor(expected, actual):.2f}", fontsize=FONT + 1, loc="left")
    else:
        ax.set_title("no cost was predicted yet", fontsize=FONT + 1, loc="left")
    ax.set_xlabel(f"expected cost ({study.unit})", fontsize=FONT)
    ax.set_ylabel(f"actual cost ({study.unit})", fontsize=FONT)
    return finish_axes(ax, path, legend="upper left")
