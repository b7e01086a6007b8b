"""Plots of how the value depends on each parameter: their importance, and slices through the best config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._format import plural, rounded
from ...data.history import History
from ...errors import StudyError
from ...numerics import Array
from ...search.base import SearchContext
from ...space.parameters import Choice
from ...study import Study
from ..importance import importance as parameter_shares
from ..result import Result
from ..views.base import value_label, value_range, values_of
from ..views.prediction import (
    IntArray,
    ParameterAxis,
    Prediction,
    by_importance,
    drawn_parameters,
    points_through,
    predict,
    reference_trial,
    rows_by_kind,
)
from .response_surface import apply_axis, context_of
from .style import (
    BAD,
    DOTS,
    FONT,
    GRID_COLUMNS,
    INK,
    TRIAL_COLOUR,
    SavePath,
    axes_for,
    finish_axes,
    grid_for,
    mark_best,
    mark_on_axis,
    set_title_and_legend,
    set_value_axis,
)

MAX_BARS = 20  # parameters that are shown, the most important ones; the others are one bar
MAX_PANELS = 12  # of a slice plot, unless parameters are named
SLICE_POINTS = 101  # along one parameter
MAX_MARKED_LEVELS = 12  # a number with at most so many values has a mark at each


def importance(study: Result | Study, path: SavePath | None = None, ax: Any = None) -> Any:
    """Plot the importance of each parameter (``study.importance()``) as bars, the largest on top.

    Look at it to see which parameters are worth tuning, and which could be fixed.

    >>> study = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)))
    >>> for x in (0.0, 0.5, 1.0):
    ...     for y in (0.0, 0.5, 1.0):
    ...         added = study.add({"x": x, "y": y}, x + 2 * y)
    >>> ax = st.plot.importance(study, ax=st.plot.new_axes())  # or path="importance.png"
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['y', 'x']
    """
    context = context_of(study)
    ax = axes_for(path, ax)
    finished = context.data.finished
    try:
        shares = parameter_shares(context)
        equal = ", all values equal" if context.data.y.min() == context.data.y.max() else ""
        title = f"importance, {plural(finished, 'finished trial')}{equal}"
    except StudyError as error:
        shares = {}
        title = f"{str(error).partition(';')[0]} (now {finished})" if finished else "nothing has succeeded yet"
    ax.set_title(title, fontsize=FONT + 1, loc="left")
    if len(shares) > MAX_BARS:
        kept = list(shares.items())[: MAX_BARS - 1]
        shares = dict(kept) | {f"{len(shares) - len(kept)} others": 1.0 - sum(share for _, share in kept)}
    bars = ax.barh(range(len(shares)), list(shares.values()), color=INK, height=0.66, zorder=2)
    ax.bar_label(bars, [f"{100 * share:.0f} %" for share in shares.values()], padding=4, fontsize=FONT - 1)
    ax.set_yticks(range(len(shares)), list(shares))
    ax.set_ylim(max(len(shares), 1) - 0.4, -0.6)
    ax.set_xlim(0.0, min(1.0, 1.15 * max(shares.values(), default=1.0)) * 1.02)
    ax.set_xlabel("share in the variance of the predicted value", fontsize=FONT)
    return finish_axes(ax, path, legend="lower right")


def slice(
    study: Result | Study,
    path: SavePath | None = None,
    ax: Any = None,
    *,
    parameters: Sequence[str] | str | None = None,
) -> Any:
    """Plot the predicted value along each parameter, with its 95 % band, through the best config; and all trials as dots.

    Look at it to see how sensitive the best config is, and whether a range should be wider.

    parameters   the names to draw; all unless given, or the 12 most important ones if there are more

    There is one panel for each parameter. Trials differ in the other parameters too, so they are not on the line. A parameter
    that is not active at the best config is drawn through the best trial in which it is. ``ax`` takes as many Axes as there
    are panels, and a list of them is returned.

    >>> study = st.Study(st.Space(x=st.Float(0, 1), kind=st.Choice("a", "b")))
    >>> for x in (0.9, 0.1, 0.4):
    ...     added = study.add({"x": x, "kind": "a"}, (x - 0.3) ** 2)
    >>> panels = st.plot.slice(study, path="slice.png")
    >>> [ax.get_xlabel() for ax in panels]
    ['x', 'kind']
    """
    context = context_of(study)
    space, history = context.space, context.history
    names = drawn_parameters(space, parameters)
    if parameters is None and len(names) > MAX_PANELS:
        names = by_importance(context, names)[:MAX_PANELS]
    panels = grid_for(path, ax, len(names))
    axes = [ParameterAxis.of(space, name) for name in names]
    found = [slice_prediction(context, axis) for axis in axes]
    for panel, axis, along in zip(panels, axes, found, strict=True):
        draw_slice(panel, axis, along, history)
        finish_axes(panel, None, legend="best")
        if panel.get_legend() is not None:
            panel.get_legend().remove()
        apply_axis(axis, panel, "x")
    set_range_of_slices(panels, [along for _, along in filter(None, found)], history)
    for panel in panels[:: GRID_COLUMNS if ax is None else len(panels)]:
        panel.set_ylabel(value_label(history.maximize), fontsize=FONT - 1)
    best, counted = history.best, plural(len(history), "trial")
    title = f"{counted}, nothing has succeeded yet" if best is None else f"{counted}, best {rounded(best.value)}"
    set_title_and_legend(panels[0], title, in_layout=ax is not None)
    if path is not None:
        panels[0].figure.savefig(path)
    return panels


def slice_prediction(context: SearchContext, axis: ParameterAxis) -> tuple[Array, Prediction] | None:
    """Positions along an axis and the prediction there; None while no finished trial has a value of this parameter."""
    reference = reference_trial(context.history, [axis.name])
    if reference is None:
        return None
    units = axis.grid(SLICE_POINTS)
    return axis.positions(units), predict(context, points_through(context.space, reference, [axis], [units]))


def draw_slice(ax: Any, axis: ParameterAxis, found: tuple[Array, Prediction] | None, history: History) -> None:
    """Draw prediction and trials along one parameter."""
    if found is not None:
        x, along = found
        if isinstance(axis.parameter, Choice):
            reach = np.array([along.mean - along.low, along.high - along.mean])
            ax.errorbar(x, along.mean, reach, fmt="D", color=INK, markersize=6, capsize=6, label="mean, 95 % band", zorder=3)
        else:
            marker = "." if axis.parameter.levels is not None and len(x) <= MAX_MARKED_LEVELS else ""
            ax.fill_between(x, along.low, along.high, color=INK, alpha=0.14, linewidth=0, zorder=1)
            ax.plot(x, along.mean, marker=marker, color=INK, linewidth=2.0, label="mean, 95 % band", zorder=3)
    table, rows = history.table, rows_by_kind(history, [axis.column])
    low, high = value_range(values_of(history), history.maximize)

    def at(numbers: IntArray) -> Array:
        return axis.scattered(table.U[numbers, axis.column], numbers)

    for kind, fill in (("lower fidelity", "none"), ("trial", DOTS)):
        if kind in rows:
            y = np.clip(table.value[rows[kind]], low, high)
            ax.plot(at(rows[kind]), y, "o", color=DOTS, markerfacecolor=fill, markersize=4, label=kind, zorder=2)
    if "best" in rows:
        mark_best(ax, float(at(rows["best"])[0]), float(np.clip(table.value[rows["best"]], low, high)[0]))
    if "failed" in rows:
        mark_on_axis(ax, at(rows["failed"]), "x", "failed", color=BAD)
    if "running" in rows:
        mark_on_axis(ax, at(rows["running"]), "^", "running", color=TRIAL_COLOUR, markerfacecolor="none")


def set_range_of_slices(panels: Sequence[Any], drawn: Sequence[Prediction], history: History) -> None:
    """Set one y axis for all panels, by the values of the trials and the means."""
    values = values_of(history)
    if not len(values):
        return
    low, high = value_range(values, history.maximize)
    core = np.clip(np.concatenate([values, *(each.mean for each in drawn)]), low, high)
    bands = np.concatenate([core, *(each.low for each in drawn), *(each.high for each in drawn)])
    for panel in panels:
        set_value_axis(panel, core, bands)
