"""The look-ahead plot: surrogate and p_min before and after one more observation, and the acquisitions, along one parameter."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._format import config_text, plural, rounded, value_text
from ...study import Study
from ..result import Result
from ..views.base import value_label, value_range
from .lookahead_data import Slice, surrogate_slice
from .style import (
    ACCENT,
    BAD,
    DOTS,
    FONT,
    INK,
    LEGEND_FONT,
    TRIAL_COLOUR,
    SavePath,
    finish_axes,
    mark_on_axis,
    panels_for,
    set_title_and_legend,
    set_value_axis,
)

THEN_COLOUR = ACCENT
ACQUISITION_COLOURS = ("#2a8f5b", "#8e44ad", "#6d5a33", "#1593b0", "#b8417a")
LEGEND_ROWS = 2
LABEL_CHARACTERS = 72  # per line
MAX_DISCRETE_VALUES = 60  # up to so many values of a parameter, each is marked and p_min is drawn in steps


def lookahead(
    study: Result | Study,
    path: SavePath | None = None,
    ax: Any = None,
    *,
    at: Mapping[str, Any] | None = None,
    outcome: float | None = None,
    along: str | None = None,
    method: Any = None,
) -> Any:
    """Plot the surrogate now and after an imagined observation, p_min of both, and the acquisitions now, on three panels.

    Look at it to understand what a method sees in one more trial.

    at       the config of the imagined observation, or a part of it (the rest is as recommended); where the first acquisition
             is highest unless given
    outcome  its value; one deviation better than predicted unless given
    along    the parameter on the x axis; the others are as recommended, and trials outside this slice are drawn pale
    method   an acquisition or a list of them, each drawn as a share of its maximum; EI, KG and ES unless given

    ``ax`` takes three Axes, and three are returned.

    >>> study = st.Study(st.Space(x=st.Int(0, 9)))
    >>> for x in (1, 4, 9):
    ...     added = study.add({"x": x}, (x - 3) ** 2)
    >>> surrogate, p_min, acquisitions = st.plot.lookahead(study, path="lookahead.png", method=st.EI())
    >>> acquisitions.get_xlabel()
    'x'
    """
    owner: Any = getattr(study, "study", study)
    history = study.history
    found = surrogate_slice(owner.suggester.context(history), along, at, outcome, method)
    panels = panels_for(path, ax)
    counted = plural(len(history), "trial")
    if found is None:
        panels[0].set_title(f"{counted}, nothing has succeeded yet", fontsize=FONT + 1, loc="left")
        panels[2].set_xlabel(along or "", fontsize=FONT)
    else:
        draw_surrogates(panels[0], found, history.maximize)
        draw_p_min(panels[1], found, history.maximize)
        draw_acquisitions(panels[2], found)
        panels[2].set_xlabel(found.along + held_text(found), fontsize=FONT)
    for panel in panels:
        finish_axes(panel, None, legend="best", size=LEGEND_FONT)
        if found is not None:
            set_x_axis(panel, found)
    if found is not None:
        title = f"{counted}, and one imagined: {rounded(found.outcome, 3)} at {place_text(found)}"
        set_title_and_legend(panels[0], title, rows=LEGEND_ROWS)
    if path is not None:
        panels[0].figure.savefig(path)
    return panels


def draw_surrogates(ax: Any, found: Slice, maximize: bool) -> None:
    """Draw mean and band now and then, the best mean of each, the trials as dots and the imagined observation as a ring."""
    low, high = value_range(found.done.values, maximize)
    values = np.clip(found.done.values, low, high)
    marked = "." if discrete(found) else ""
    for view, colour, when in ((found.now, INK, "now"), (found.then, THEN_COLOUR, "then")):
        ax.fill_between(found.x, view.low, view.high, color=colour, alpha=0.12, linewidth=0, zorder=1)
        for edge in (view.low, view.high):
            ax.plot(found.x, edge, color=colour, linewidth=0.6, alpha=0.6, zorder=2)
        ax.plot(found.x, view.mean, marker=marked, color=colour, linewidth=2.0, label=f"{when} ± 2 s.d.", zorder=3)
    inside = found.done.inside
    if not inside.all():
        ax.plot(found.done.x[~inside], values[~inside], "o", color=DOTS, markersize=4, label="elsewhere", zorder=2)
    if inside.any():
        ax.plot(found.done.x[inside], values[inside], "o", color=TRIAL_COLOUR, markersize=5, label="trial", zorder=5)
    for view, colour, label in ((found.then, THEN_COLOUR, None), (found.now, INK, "highest mean" if maximize else "lowest mean")):
        x, y = found.x[view.lowest], view.mean[view.lowest]
        ax.axhline(y, color=colour, linewidth=0.9, linestyle=":", zorder=2)  # KG is the expected gap between the two lines
        ax.plot([x], [y], "D", color=colour, markeredgecolor="white", markersize=8, linestyle="none", label=label, zorder=6)
    outcome = float(np.clip(found.outcome, low, high))
    if found.along in found.at:
        ring = {"marker": "o", "markerfacecolor": "none", "markersize": 12, "markeredgewidth": 1.8, "linestyle": "none"}
        ax.plot([found.at[found.along]], [outcome], color=THEN_COLOUR, label="imagined", zorder=6, **ring)
    if len(found.failed.x):
        mark_on_axis(ax, found.failed.x, "x", "failed", color=BAD)
    if len(found.running.x):
        mark_on_axis(ax, found.running.x, "^", "running", color=TRIAL_COLOUR, markerfacecolor="none")
    core = np.concatenate([values, [outcome], found.now.mean, found.then.mean])
    set_value_axis(ax, core, np.concatenate([found.now.low, found.then.low, found.now.high, found.then.high]))
    ax.set_ylabel(value_label(maximize), fontsize=FONT)


def draw_p_min(ax: Any, found: Slice, maximize: bool) -> None:
    """Draw p_min now and then, with its entropy, which entropy search reduces."""
    step = {"step": "mid"} if discrete(found) else {}
    style = "steps-mid" if discrete(found) else "default"
    for view, colour, when in ((found.now, INK, "now"), (found.then, THEN_COLOUR, "then")):
        ax.fill_between(found.x, view.p_min, color=colour, alpha=0.22, linewidth=0, zorder=1, **step)
        label = f"{when}, entropy {view.entropy:.2f}"
        ax.plot(found.x, view.p_min, color=colour, linewidth=1.4, drawstyle=style, label=label, zorder=2)
    ax.set_ylim(0.0, 1.08 * max(found.now.p_min.max(), found.then.p_min.max()))
    ax.set_ylabel(r"$p_{\max}$" if maximize else r"$p_{\min}$", fontsize=FONT)


def draw_acquisitions(ax: Any, found: Slice) -> None:
    """Draw each acquisition as a share of its maximum, with a vertical line at the maximum."""
    for number, (name, curve) in enumerate(found.acquisitions.items()):
        colour = ACQUISITION_COLOURS[number % len(ACQUISITION_COLOURS)]
        ax.plot(found.x, curve, marker="." if discrete(found) else "", color=colour, linewidth=1.8, label=name, zorder=3)
        ax.axvline(found.x[int(np.argmax(curve))], color=colour, linewidth=1.1, linestyle="--", zorder=2)
    ax.set_ylim(0.0, 1.08)
    ax.set_ylabel("acquisition\n(share of max.)", fontsize=FONT)


def set_x_axis(ax: Any, found: Slice) -> None:
    """Set the x axis: the scale of the parameter, a little wider than its range."""
    if found.parameter.log:
        ax.set_xscale("log")
        edge = (found.x[-1] / found.x[0]) ** 0.02
        ax.set_xlim(found.x[0] / edge, found.x[-1] * edge)
    else:
        edge = 0.02 * (found.x[-1] - found.x[0])
        ax.set_xlim(found.x[0] - edge, found.x[-1] + edge)


def discrete(found: Slice) -> bool:
    """Whether the parameter has so few values that each one is marked."""
    return found.parameter.levels is not None and len(found.x) <= MAX_DISCRETE_VALUES


def place_text(found: Slice) -> str:
    """The place of the imagined observation: one value if it lies on the slice, else the whole config."""
    rest = {name: value for name, value in found.at.items() if name != found.along}
    return f"{found.along} = {value_text(found.at[found.along])}" if rest == found.held else config_text(found.at)


def held_text(found: Slice) -> str:
    """The values of the other parameters, on one or two lines."""
    if not found.held:
        return ""
    return "\n" + "\n".join(textwrap.wrap(f"with {config_text(found.held)}", LABEL_CHARACTERS, max_lines=2, placeholder=" ..."))
