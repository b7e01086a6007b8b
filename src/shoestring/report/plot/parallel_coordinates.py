"""Parallel coordinates: every trial as a line over all parameters, coloured by its value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._format import plural, rounded
from ...data.history import History
from ...data.trial import State
from ...numerics import Array
from ...space.space import Parameter
from ...study import Study
from ..result import Result
from ..views.base import value_range, values_of
from ..views.trial_lines import INACTIVE_HEIGHT, line_heights, ticks_of
from .style import ACCENT, BAD, FONT, GREY, SavePath, axes_for, finish_axes, set_title_and_legend, value_colours

MAX_NAME_CHARACTERS = 12  # of a parameter below its axis
MAX_FLAT_CHARACTERS = 44  # of all names: with more, they are turned
WORST = "#cfd9e6"  # the colour of the worst line
CROWDED = 8.0  # the lines of more than about a hundred trials are transparent: by this, over the root of their number
TEXT_GAP = 0.03  # between an axis and its labels, as a share of the distance of two axes


def parallel(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot every trial as a line from parameter to parameter to its value; the better the value, the darker the line.

    Look at it to see what good trials have in common.

    Log scales are drawn as such. The line of a trial in which a parameter is not active passes below its axis. Failed and
    running trials have no value: their lines (red, grey and dashed) end at the last parameter.

    >>> study = st.Study(st.Space(x=st.Float(0, 1), kind=st.Choice("a", "b")))
    >>> for x in (0.9, 0.1, 0.4):
    ...     added = study.add({"x": x, "kind": "a"}, (x - 0.3) ** 2)
    >>> ax = st.plot.parallel(study, ax=st.plot.new_axes())  # or path="parallel.png"
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x', 'kind', 'value']
    """
    history = study.history
    ax = axes_for(path, ax)
    names, places = history.space.names, np.arange(len(history.space) + 1)
    heights = line_heights(history)
    values = values_of(history)
    low, high = value_range(values, history.maximize)
    colours, norm = value_colours(np.clip(values, low, high), history.maximize, worst=WORST)
    done = history.table.having(State.DONE)
    last = np.clip(history.table.value[: len(history)][done], low, high)
    draw_lines(ax, np.column_stack([heights[done], norm(last)]), last, colours=colours, norm=norm, best=best_row(history, done))
    for state, style in ((State.FAILED, {"color": BAD, "linewidth": 0.9}),
                         (State.RUNNING, {"color": GREY, "linewidth": 1.2, "linestyle": "--"})):  # fmt: skip
        for number, row in enumerate(heights[history.table.having(state)]):
            ax.plot(places[:-1], row, alpha=0.8, label=None if number else str(state), zorder=2, **style)
    for place, name in enumerate(names):
        draw_axis(ax, place, history.space[name], conditional=bool(history.space.parents(name)))
    draw_value_axis(ax, len(names), norm)
    best, counted = history.best, plural(len(history), "trial")
    title = f"{counted}, nothing has succeeded yet" if best is None else f"{counted}, best {rounded(best.value)}"
    finish_axes(ax, None, legend="lower left")
    set_title_and_legend(ax, title)
    labels = [*(short_name(name) for name in names), "value"]
    turn = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, labels)) > MAX_FLAT_CHARACTERS else {}
    ax.set_xticks(places, labels, **turn)
    ax.set_xlim(-0.15, len(names) + 0.55)
    ax.set_ylim(-0.22 if any(map(history.space.parents, names)) else -0.06, 1.06)
    ax.set_yticks([])
    ax.grid(False)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    if path is not None:
        ax.figure.savefig(path)
    return ax


def best_row(history: History, done: NDArray[np.bool_]) -> int | None:
    """The row of the best trial among the finished ones."""
    best = history.best
    return None if best is None else int(np.count_nonzero(done[: best.number]))


def draw_lines(ax: Any, heights: Array, values: Array, *, colours: Any, norm: Any, best: int | None) -> None:
    """Draw the lines of finished trials, the best ones on top; the best one is thick and orange."""
    from matplotlib.collections import LineCollection

    if best is None:
        return
    x = np.arange(heights.shape[1])
    order = np.argsort(-np.abs(values - values[best]), kind="stable")
    lines = np.stack([np.broadcast_to(x, heights.shape), heights], axis=2)[order]
    alpha = min(0.85, CROWDED / np.sqrt(len(values)))
    many = LineCollection(list(lines), array=values[order], cmap=colours, norm=norm, linewidth=1.1, alpha=alpha, zorder=1)
    ax.add_collection(many)
    ax.plot(x, heights[best], color=ACCENT, linewidth=2.4, label="best", zorder=3)


def draw_axis(ax: Any, place: int, parameter: Parameter, *, conditional: bool) -> None:
    """Draw the axis of one parameter, with its ends or its options, and the place of inactive values."""
    draw_scale(ax, place, {tick["at"]: tick["label"] for tick in ticks_of(parameter)})
    if conditional:
        draw_scale(ax, place, {INACTIVE_HEIGHT: "not active"}, line=False)


def draw_value_axis(ax: Any, place: int, norm: Any) -> None:
    """Draw the axis of values."""
    marks = {share: rounded(float(norm.inverse(share)), 3) for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
    draw_scale(ax, place, marks)


def draw_scale(ax: Any, place: int, marks: dict[float, str], *, line: bool = True) -> None:
    """Draw a vertical line, and texts at heights beside it."""
    if line:
        ax.plot([place, place], [0.0, 1.0], color="#777777", linewidth=1.0, zorder=4)
    for height, text in marks.items():
        ax.text(
            place + TEXT_GAP, height, text, fontsize=FONT - 3, va="center", ha="left", color="#222222", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.8},
        )  # fmt: skip


def short_name(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARACTERS else name[: MAX_NAME_CHARACTERS - 3] + "..."
