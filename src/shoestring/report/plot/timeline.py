"""The timeline: when each trial ran, and how many ran at once."""

from __future__ import annotations

from typing import Any

from ..._format import plural
from ...data.history import History
from ...data.trial import State
from ...study import Study
from ..result import Result
from ..views.base import time_unit
from ..views.worker_lanes import timeline_bars
from .style import (
    BAD,
    DOTS,
    FONT,
    GREY,
    TRIAL_COLOUR,
    SavePath,
    axes_for,
    finish_axes,
    mark_best,
    set_title_and_legend,
)

MAX_NUMBERED_BARS = 40  # trials up to this many have their number in the bar
MIN_NUMBERED_SHARE = 0.03  # of the time axis: shorter bars have no number
BAR_HEIGHT, MIN_LANES = 0.7, 3  # of 1; lanes that have space, so that a single bar is not huge
COLOURS = {State.DONE: DOTS, State.FAILED: BAD, State.ABANDONED: GREY, State.RUNNING: "white"}


def timeline(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot each trial as a bar from the moment it was asked to its end; failed, running and abandoned ones are marked.

    Look at it to see whether all workers are busy, and which trials take long.

    Trials that ran at the same time are in different lanes, so there are as many lanes as trials that ran at once. A running
    trial reaches to the last moment that the study knows of. Results from elsewhere have no time and are left out.

    >>> result = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 3, method=st.Random())
    >>> ax = st.plot.timeline(result, ax=st.plot.new_axes())  # or path="timeline.png"
    >>> ax.get_title(loc="left")
    '3 trials'
    """
    history = study.history
    ax = axes_for(path, ax)
    bars = timeline_bars(history)
    last = max((bar.end for bar in bars), default=0.0)
    scale, unit = time_unit(last)
    lanes = max((bar.lane for bar in bars), default=0) + 1
    for state in (State.DONE, State.FAILED, State.ABANDONED, State.RUNNING):
        drawn = [bar for bar in bars if bar.state is state]
        if drawn:
            ax.barh(
                [bar.lane + 1 for bar in drawn], [(bar.end - bar.start) / scale for bar in drawn], BAR_HEIGHT,
                left=[bar.start / scale for bar in drawn], color=COLOURS[state], label=str(state), zorder=2, linewidth=0.8,
                edgecolor=TRIAL_COLOUR if state is State.RUNNING else "white", hatch="///" if state is State.RUNNING else None,
            )  # fmt: skip
    best = history.best
    for bar in bars:
        x = 0.5 * (bar.start + bar.end) / scale
        if best is not None and bar.number == best.number:
            mark_best(ax, x, bar.lane + 1)
        elif len(bars) <= MAX_NUMBERED_BARS and bar.end - bar.start >= MIN_NUMBERED_SHARE * last:
            style = {"ha": "center", "va": "center", "color": "white" if bar.state is State.FAILED else TRIAL_COLOUR}
            ax.text(x, bar.lane + 1, str(bar.number), fontsize=FONT - 3, clip_on=True, zorder=4, **style)
    ax.set_xlim(0.0, 1.02 * last / scale if last > 0 else 1.0)
    ax.set_ylim(max(lanes, MIN_LANES) + 0.6, 0.4)
    ax.set_yticks(range(1, lanes + 1) if lanes <= 12 else range(1, lanes + 1, -(-lanes // 12)))
    ax.set_xlabel(f"time since the first trial ({unit})", fontsize=FONT)
    ax.set_ylabel("trials at once", fontsize=FONT)
    finish_axes(ax, None, legend="upper right")
    ax.grid(False, axis="y")
    set_title_and_legend(ax, title_of(history, len(bars)))
    if path is not None:
        ax.figure.savefig(path)
    return ax


def title_of(history: History, drawn: int) -> str:
    """How many trials there are, and how many have no time."""
    if not len(history):
        return "no trials yet"
    untimed = len(history) - drawn
    return plural(len(history), "trial") + (f", {untimed} without a time" if untimed else "")
