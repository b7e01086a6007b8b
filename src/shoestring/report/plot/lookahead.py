"""What one more observation would teach: the surrogate, where its minimum may lie, and the acquisitions, along one parameter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._format import config_text, plural, rounded, value_text
from ...numerics import Array
from .lookahead_data import Slice, look_along
from .style import BAD, DOTS, FONT, INK, WIDE, SavePath, finished, mark_on_axis, panels_for, window

if TYPE_CHECKING:
    from ...study import Study
    from ..result import Result

THEN, DARK = "#d9731a", "#333333"
CURVES = ("#2a8f5b", "#8e44ad", "#6d5a33", "#1593b0", "#b8417a")  # of acquisitions: none of them now's or then's colour
SMALL, ROWS, LINE = FONT - 2, 2, 64  # the legend's letters and rows; how many letters a line of the title has
FEW = 60  # values of a parameter up to which each is marked, and its chance drawn as a step
ROOM = 0.4  # how far bands are drawn beyond trials and means, as a share of their range


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
    """The surrogate now and after an imagined observation, p_min of both, and the acquisitions now: three panels, one x axis.

    The observation is imagined ``at`` a config (what it leaves out is as recommended), with ``outcome`` as its value; unless
    given, where the first acquisition is highest, and one deviation better than predicted. ``method`` is an acquisition or a
    list of them: EI, KG and ES unless given, each drawn as a share of its maximum.

    With several parameters it is a slice ``along`` one number, the others as recommended; trials that lie elsewhere are pale.
    ``ax`` takes three Axes, and three are returned.
    """
    owner: Any = getattr(study, "study", study)
    history = study.history
    found = look_along(owner.suggester.context(history), along, at, outcome, method)
    panels = panels_for(path, ax)
    counted = plural(len(history), "trial")
    if found is None:
        panels[0].set_title(f"{counted}, nothing has succeeded yet", fontsize=FONT + 1, loc="left")
        panels[2].set_xlabel(along or "", fontsize=FONT)
    else:
        draw_surrogates(panels[0], found, history.maximize)
        draw_chances(panels[1], found, history.maximize)
        draw_acquisitions(panels[2], found)
        panels[2].set_xlabel(found.along + held_text(found), fontsize=FONT)
    for panel in panels:
        finished(panel, None, legend="best", size=SMALL)
        if found is not None:
            set_axis(panel, found)
    if found is not None:
        set_head(panels[0], f"{counted}, and one imagined: {rounded(found.outcome, 3)} at {place(found)}")
    if path is not None:
        panels[0].figure.savefig(path)
    return panels


def draw_surrogates(ax: Any, found: Slice, maximize: bool) -> None:
    """Mean and band now and then, the best mean of each, trials as dots, the imagined one as a ring."""
    low, high = window(found.done.values, maximize)
    values = np.clip(found.done.values, low, high)
    marked = "." if discrete(found) else ""
    for view, colour, when in ((found.now, INK, "now"), (found.then, THEN, "then")):
        ax.fill_between(found.x, view.low, view.high, color=colour, alpha=0.12, linewidth=0, zorder=1)
        for edge in (view.low, view.high):
            ax.plot(found.x, edge, color=colour, linewidth=0.6, alpha=0.6, zorder=2)
        ax.plot(found.x, view.mean, marker=marked, color=colour, linewidth=2.0, label=f"{when} ± 2 s.d.", zorder=3)
    inside = found.done.inside
    if not inside.all():
        ax.plot(found.done.x[~inside], values[~inside], "o", color=DOTS, markersize=4, label="elsewhere", zorder=2)
    if inside.any():
        ax.plot(found.done.x[inside], values[inside], "o", color=DARK, markersize=5, label="trial", zorder=5)
    for view, colour, label in ((found.then, THEN, None), (found.now, INK, "highest mean" if maximize else "lowest mean")):
        x, y = found.x[view.lowest], view.mean[view.lowest]
        ax.axhline(y, color=colour, linewidth=0.9, linestyle=":", zorder=2)  # the gap between the two is what KG expects
        ax.plot([x], [y], "D", color=colour, markeredgecolor="white", markersize=8, linestyle="none", label=label, zorder=6)
    outcome = float(np.clip(found.outcome, low, high))
    if found.along in found.at:
        ring = {"marker": "o", "markerfacecolor": "none", "markersize": 12, "markeredgewidth": 1.8, "linestyle": "none"}
        ax.plot([found.at[found.along]], [outcome], color=THEN, label="imagined", zorder=6, **ring)
    if len(found.failed.x):
        mark_on_axis(ax, found.failed.x, "x", "failed", color=BAD)
    if len(found.running.x):
        mark_on_axis(ax, found.running.x, "^", "running", color=DARK, markerfacecolor="none")
    set_range(ax, found, np.append(values, outcome))
    ax.set_ylabel("value (higher is better)" if maximize else "value (lower is better)", fontsize=FONT)


def set_range(ax: Any, found: Slice, values: Array) -> None:
    """So much of the y axis that trials and means are seen well; bands may reach far beyond them. In logs where it is wide."""
    core = np.concatenate([values, found.now.mean, found.then.mean])
    bands = np.concatenate([found.now.low, found.then.low, found.now.high, found.then.high])
    wide = bool(core.min() > 0 and core.max() > WIDE * core.min() and bands.min() > 0)
    if wide:
        ax.set_yscale("log")
        core, bands = np.log(core), np.log(bands)
    room = ROOM * max(float(np.ptp(core)), 1e-9 * float(np.abs(core).max()), 1e-300)
    low, high = max(bands.min(), core.min() - room), min(bands.max(), core.max() + room)
    edge = 0.05 * max(high - low, room)
    ends = np.array([min(low, core.min()) - edge, max(high, core.max()) + edge])
    ax.set_ylim(*(np.exp(ends) if wide else ends))


def draw_chances(ax: Any, found: Slice, maximize: bool) -> None:
    """p_min now and then, with the entropy that entropy search wants to bring down."""
    step = {"step": "mid"} if discrete(found) else {}
    style = "steps-mid" if discrete(found) else "default"
    for view, colour, when in ((found.now, INK, "now"), (found.then, THEN, "then")):
        ax.fill_between(found.x, view.p_min, color=colour, alpha=0.22, linewidth=0, zorder=1, **step)
        label = f"{when}, entropy {view.entropy:.2f}"
        ax.plot(found.x, view.p_min, color=colour, linewidth=1.4, drawstyle=style, label=label, zorder=2)
    ax.set_ylim(0.0, 1.08 * max(found.now.p_min.max(), found.then.p_min.max()))
    ax.set_ylabel(r"$p_{\max}$" if maximize else r"$p_{\min}$", fontsize=FONT)


def draw_acquisitions(ax: Any, found: Slice) -> None:
    """Each as a share of its maximum, which has a vertical line."""
    for number, (name, curve) in enumerate(found.acquisitions.items()):
        colour = CURVES[number % len(CURVES)]
        ax.plot(found.x, curve, marker="." if discrete(found) else "", color=colour, linewidth=1.8, label=name, zorder=3)
        ax.axvline(found.x[int(np.argmax(curve))], color=colour, linewidth=1.1, linestyle="--", zorder=2)
    ax.set_ylim(0.0, 1.08)
    ax.set_ylabel("acquisition\n(share of max.)", fontsize=FONT)


def set_head(ax: Any, title: str) -> None:
    """The title, and below it the legend: there is no free corner for so many entries inside."""
    count = len(ax.get_legend_handles_labels()[0])
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=math.ceil(count / ROWS), fontsize=SMALL, frameon=False,
        borderaxespad=0.2, columnspacing=1.4, handlelength=1.6, handletextpad=0.6,
    )  # fmt: skip
    ax.set_title("\n".join(textwrap.wrap(title, LINE)), fontsize=FONT + 1, loc="left", pad=1.65 * SMALL * ROWS + 6)


def set_axis(ax: Any, found: Slice) -> None:
    """The parameter's own scale, a little wider than its range."""
    if found.parameter.log:
        ax.set_xscale("log")
        edge = (found.x[-1] / found.x[0]) ** 0.02
        ax.set_xlim(found.x[0] / edge, found.x[-1] * edge)
    else:
        edge = 0.02 * (found.x[-1] - found.x[0])
        ax.set_xlim(found.x[0] - edge, found.x[-1] + edge)


def discrete(found: Slice) -> bool:
    return found.parameter.levels is not None and len(found.x) <= FEW


def place(found: Slice) -> str:
    """Where the observation is imagined: on the slice, its place along it; elsewhere, the whole config."""
    rest = {name: value for name, value in found.at.items() if name != found.along}
    return f"{found.along} = {value_text(found.at[found.along])}" if rest == found.held else config_text(found.at)


def held_text(found: Slice) -> str:
    """The other parameters, on a line or two of their own."""
    if not found.held:
        return ""
    return "\n" + "\n".join(textwrap.wrap(f"with {config_text(found.held)}", 72, max_lines=2, placeholder=" ..."))
