"""The contour plot: the predicted value over two parameters, with the trials."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..._format import plural, rounded
from ...data.history import History
from ...errors import MethodError
from ...numerics import Array
from ...search.base import SearchContext
from ...space.parameters import Choice
from ...study import Study
from ..result import Result
from ..views.base import value_label, value_range, values_of
from ..views.prediction import (
    ParameterAxis,
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
    FONT,
    TRIAL_COLOUR,
    SavePath,
    axes_for,
    finish_axes,
    mark_best,
    set_title_and_legend,
    value_colours,
)

GRID_POINTS = 61  # along each parameter
LEVELS = 13  # boundaries between colours, about, if both parameters are numbers
NO_VALUE = "#e4e4e4"  # where a parameter is not active


def contour(
    study: Result | Study,
    path: SavePath | None = None,
    ax: Any = None,
    *,
    parameters: Sequence[str] | None = None,
) -> Any:
    """Plot the predicted value over two parameters in colours, the darker the better, with the trials and the best one.

    Look at it to see whether two parameters must be changed together, and where nothing has been tried.

    parameters   two names, for the x and the y axis; the two most important parameters unless given

    The other parameters are as in the best trial in which both are active. Choices are drawn as rows or columns, with the
    trials of one option spread a little. Where one of the two parameters is not active, the plot is grey.

    >>> study = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)))
    >>> for x, y in ((0.9, 0.2), (0.1, 0.7), (0.4, 0.5)):
    ...     added = study.add({"x": x, "y": y}, (x - 0.3) ** 2 + y)
    >>> ax = st.plot.contour(study, ax=st.plot.new_axes(), parameters=["y", "x"])  # or path="contour.png"
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('y', 'x')
    """
    context = context_of(study)
    space, history = context.space, context.history
    names = chosen_pair(context, parameters)
    axes = [ParameterAxis.of(space, name) for name in names]
    reference = reference_trial(history, names)
    ax = axes_for(path, ax)
    counted = plural(len(history), "trial")
    if reference is None:
        missing = "nothing has succeeded yet" if history.best is None else f"none with both {names[0]} and {names[1]}"
        title = f"{counted}, {missing}"
    else:
        units = [axis.grid(GRID_POINTS) for axis in axes]
        U = points_through(space, reference, axes, units)
        values = values_of(history)
        mean = np.clip(predict(context, U).mean, *value_range(values, history.maximize))
        shown = space.active(U)[:, [axis.column for axis in axes]].all(axis=1)
        shape = [len(each) for each in units]
        surface = np.ma.array(mean, mask=~shown).reshape(shape).T
        colours = value_colours(surface.compressed(), history.maximize, log=values.min() > 0.0)
        drawn = draw_surface(ax, axes, units, surface, colours)
        bar = ax.figure.colorbar(drawn, ax=ax, format=lambda value, _: rounded(value, 3))
        bar.set_label(value_label(history.maximize, "predicted value"), fontsize=FONT - 1)
        bar.ax.tick_params(labelsize=FONT - 2)
        bar.outline.set_visible(False)
        is_best = history.best is not None and reference.number == history.best.number
        through = "best" if is_best else f"through trial {reference.number}:"
        title = f"{counted}, {through} {rounded(reference.value)}"
    draw_trials(ax, axes, history)
    finish_axes(ax, None, legend="best")
    set_title_and_legend(ax, title)
    ax.grid(False)
    ends = ax.get_xlim(), ax.get_ylim()
    for axis, which, limits in zip(axes, "xy", ends, strict=True):
        apply_axis(axis, ax, which, None if reference is None else limits)
    if path is not None:
        ax.figure.savefig(path)
    return ax


def chosen_pair(context: SearchContext, parameters: Sequence[str] | None) -> list[str]:
    """The two parameters to draw: the most important ones that are active together in a finished trial, unless given."""
    names = drawn_parameters(context.space, parameters)
    if len(names) < 2 and parameters is None:
        raise MethodError(f"a contour needs two parameters, and this space has one; st.plot.slice draws along {names[0]}")
    if parameters is not None:
        if len(names) != 2:
            raise MethodError(f'parameters= must name two parameters, such as ["{names[0]}", ...], not {len(names)}')
        return names
    ranked = by_importance(context, names)
    pairs = sorted(combinations(range(len(ranked)), 2), key=sum)
    found = next((pair for pair in pairs if reference_trial(context.history, [ranked[i] for i in pair])), (0, 1))
    return [ranked[i] for i in found]


def draw_surface(ax: Any, axes: Sequence[ParameterAxis], units: Sequence[Array], mean: Any, colours: tuple[Any, Any]) -> Any:
    """Draw the prediction (rows are y) in the colours of a map and a norm, set the limits of the axes, return what was drawn."""
    cmap, norm = colours
    if any(isinstance(axis.parameter, Choice) for axis in axes):
        x, y = (axis.edges(each) for axis, each in zip(axes, units, strict=True))
        drawn = ax.pcolormesh(x, y, mean, cmap=cmap, norm=norm, rasterized=True, zorder=0)
    else:
        levels = colour_levels(norm)
        x, y = (axis.positions(each) for axis, each in zip(axes, units, strict=True))
        drawn = ax.contourf(x, y, mean, levels=levels, cmap=cmap, norm=norm, zorder=0)
        crossed = levels[(levels > mean.min()) & (levels < mean.max())]
        if len(crossed):  # matplotlib warns if there is no line to draw
            ax.contour(x, y, mean, levels=crossed, colors="white", linewidths=0.5, alpha=0.7, zorder=1)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    ax.set_facecolor(NO_VALUE)
    return drawn


def colour_levels(norm: Any) -> Array:
    """Boundaries between colours that cover the range: round numbers, or on a log scale equal factors."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    if isinstance(norm, LogNorm):
        low, high = float(norm.vmin or 0.0), float(norm.vmax or 0.0)
        levels = np.geomspace(low, high, LEVELS)
        levels[0], levels[-1] = low, high  # without rounding errors
        return levels
    return np.asarray(MaxNLocator(LEVELS).tick_values(norm.vmin, norm.vmax))


def draw_trials(ax: Any, axes: Sequence[ParameterAxis], history: History) -> None:
    """Draw the trials in which both parameters are active."""
    rows = rows_by_kind(history, [axis.column for axis in axes])
    white = {"markeredgecolor": TRIAL_COLOUR, "markeredgewidth": 0.8}
    styles: dict[str, dict[str, Any]] = {
        "lower fidelity": {"marker": ".", "color": TRIAL_COLOUR, "markersize": 4},
        "trial": {"marker": "o", "color": "white", "markersize": 5, **white},
        "failed": {"marker": "x", "color": BAD, "markersize": 7, "markeredgewidth": 1.8},
        "running": {"marker": "^", "markerfacecolor": "none", "markersize": 7, **white},
    }
    for kind, style in styles.items():
        if kind in rows:
            x, y = (axis.scattered(history.table.U[rows[kind], axis.column], rows[kind], j) for j, axis in enumerate(axes))
            ax.plot(x, y, label=kind, linestyle="none", zorder=3, clip_on=False, **style)
    if "best" in rows:
        best = rows["best"]
        x, y = (axis.scattered(history.table.U[best, axis.column], best, j) for j, axis in enumerate(axes))
        mark_best(ax, float(x[0]), float(y[0]))
