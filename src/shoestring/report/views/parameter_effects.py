"""How the value depends on the parameters: their importance, slices through the best config, and a map over two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..._format import plural
from ...data.history import History
from ...errors import MethodError, StudyError
from ...numerics import Array
from ...search.base import SearchContext
from ...space.parameters import Choice
from ..importance import importance
from .base import (
    Source,
    View,
    axis,
    empty_view,
    is_wide,
    make_view,
    padded,
    series,
    spread_out,
    thinned,
    trial_texts,
    value_axis,
    value_label,
    value_range,
    values_of,
)
from .prediction import (
    ParameterAxis,
    Prediction,
    by_importance,
    drawn_parameters,
    points_through,
    predict,
    reference_trial,
    rows_by_kind,
)

MAX_BARS = 20  # parameters that are shown, the most important ones; the others are one bar
MAX_PANELS = 12  # of the slices, unless parameters are named
MAX_PANEL_POINTS = 600  # of one series in one panel
MAX_MARKED_FAILURES = 60  # on a map: more would hide the prediction
SLICE_POINTS, MAP_POINTS = 61, 41  # along one parameter; along each of two
BAND_REACH = 0.4  # how far the axis follows a band beyond trials and means, as a share of their range
IMPORTANCE_TITLE, SLICES_TITLE = "Importance of the parameters", "Value along each parameter"
MAP_TITLE = "Value over two parameters"
SOBOL = "total Sobol indices of the fitted model"
LENGTHS = "length scales of the model of the last suggestion"
MARKS = {"lower fidelity": ("lower", "rings"), "trial": ("trial", "dots"), "best": ("star", "star")}
RUGS = {"failed": "failed", "running": "running"}
MAP_MARKS = {**MARKS, "failed": ("failed", "crosses"), "running": ("running", "triangles")}


def parameter_importance(source: Source) -> View:
    """The share of each parameter in what makes the value change, largest first. The view says by which method."""
    history, context = source.history, source.fitted
    try:
        shares = stored_importance(history) if context is None else importance(context)
    except StudyError as error:
        text = str(error)
        return empty_view("bars", IMPORTANCE_TITLE, f"{text[0].upper()}{text[1:]}.", history)
    if not shares:
        why = "No suggestion has stored a model yet, and none is fitted while the study runs."
        return empty_view("bars", IMPORTANCE_TITLE, why, history)
    method = LENGTHS if context is None else SOBOL
    if len(shares) > MAX_BARS:
        kept = list(shares.items())[: MAX_BARS - 1]
        shares = dict(kept) | {f"{len(shares) - len(kept)} others": 1.0 - sum(share for _, share in kept)}
    bars: list[dict[str, Any]] = [{"label": name, "value": share, "text": f"{share:.0%}"} for name, share in shares.items()]
    first = next(iter(shares))
    rough = "; a rough guess, since no model is fitted while the study runs" if context is None else ""
    caption = f"{first} has {shares[first]:.0%} of the effect on the value, by the {method}{rough}."
    return make_view(
        "bars", IMPORTANCE_TITLE, caption, history, bars=bars, series=[], shown=len(bars), method=method, role="best",
        x=axis("share of the effect on the value", [], ends=(0.0, max(0.05, 1.02 * max(shares.values())))),
        y=axis("parameter", [], options=[bar["label"] for bar in bars]),
    )  # fmt: skip


def stored_importance(history: History) -> dict[str, float]:
    """Shares by the inverse length scales of the last stored model, largest first; empty if there is none.

    The shorter the length scale, the faster the value changes along a parameter. It says nothing about how much.
    """
    theta = (history.warm_start or {}).get("theta")
    space = history.space
    if not isinstance(theta, Sequence) or len(theta) < len(space):
        return {}
    free = [column for column, parameter in enumerate(space.parameters) if not parameter.fidelity]
    inverse = np.exp(-np.array([float(theta[column]) for column in free]))
    shares = inverse / inverse.sum()
    return {space.names[free[k]]: float(shares[k]) for k in np.argsort(-shares, kind="stable").tolist()}


# -- slices ----------------------------------------------------------------------------------------------------------


def slices(source: Source, parameters: Sequence[str] | str | None = None) -> View:
    """The predicted value along each parameter through the best config, with its 95 % band, and all trials."""
    history, context = source.history, source.fitted
    if not len(history):
        return empty_view("panels", SLICES_TITLE, "There are no trials yet.", history)
    if history.best is None:
        return empty_view("panels", SLICES_TITLE, "Nothing has succeeded yet, so there are no values to show.", history)
    names = drawn_parameters(history.space, parameters)
    if parameters is None and context is not None:
        names = by_importance(context, names)
    elif parameters is None and (stored := stored_importance(history)):
        names = sorted(names, key=lambda name: -stored.get(name, 0.0))
    names = names[:MAX_PANELS] if parameters is None else names
    axes = [ParameterAxis.of(history.space, name) for name in names]
    found = [None if context is None else slice_along(context, each) for each in axes]
    y = slice_axis(history, [along for _, along in filter(None, found)])
    panels: list[dict[str, Any]] = [
        {"title": each.name, "x": each.to_dict(), "y": y, "series": slice_series(each, along, history)}
        for each, along in zip(axes, found, strict=True)
    ]
    left = len(drawn_parameters(history.space, None)) - len(names)
    more = f" The {plural(left, 'less important parameter')} are left out." if left and parameters is None else ""
    if any(found):
        what = "Lines are predictions through the best config, with 95 % bands; dots are trials, which differ in all parameters."
    else:
        what = "Dots are trials; no model is fitted while the study runs."
    caption = what + more
    shown = sum(len(each["x"]) for panel in panels for each in panel["series"])
    return make_view("panels", SLICES_TITLE, caption, history, x=axis("", []), y=y, series=[], panels=panels, shown=shown)


def slice_along(context: SearchContext, along: ParameterAxis) -> tuple[Array, Prediction] | None:
    """Positions along an axis and the prediction there; None while no finished trial has a value of this parameter."""
    reference = reference_trial(context.history, [along.name])
    if reference is None:
        return None
    units = along.grid(SLICE_POINTS)
    return along.positions(units), predict(context, points_through(context.space, reference, [along], [units]))


def slice_axis(history: History, drawn: Sequence[Prediction]) -> dict[str, Any]:
    """One axis of values for all slices, by the trials and the means; bands may reach beyond it."""
    found = value_axis(history, *(each.mean for each in drawn))
    bands = np.array([end for each in drawn for end in (each.low.min(), each.high.max())])
    if not len(bands) or found["scale"] == "log":
        return found
    reach = BAND_REACH * (found["high"] - found["low"])
    low, high = max(bands.min(), found["low"] - reach), min(bands.max(), found["high"] + reach)
    return found | {"low": float(min(low, found["low"])), "high": float(max(high, found["high"]))}


def slice_series(along: ParameterAxis, found: tuple[Array, Prediction] | None, history: History) -> list[dict[str, Any]]:
    """Prediction and trials along one parameter."""
    lines: list[dict[str, Any]] = []
    if found is not None:
        x, predicted = found
        mark = "bars" if isinstance(along.parameter, Choice) else "band"
        lines.append(series("mean, 95 % band", "best", mark, x, predicted.mean, low=predicted.low, high=predicted.high))
    rows = rows_by_kind(history, [along.column])
    values = history.table.value[: len(history)]
    for kind, (role, mark) in MARKS.items():
        if kind in rows:
            kept = thinned(along.positions(history.table.U[: len(history), along.column]), values, rows[kind], MAX_PANEL_POINTS)
            x = along.scattered(history.table.U[kept, along.column], kept)
            lines.append(series(kind, role, mark, x, values[kept], number=kept, text=trial_texts(history, kept)))
    for kind, role in RUGS.items():
        if kind in rows:
            kept = spread_out(rows[kind], MAX_PANEL_POINTS)
            x = along.scattered(history.table.U[kept, along.column], kept)
            lines.append(series(kind, role, "rug", x, [], number=kept, text=trial_texts(history, kept)) | {"y": None})
    return lines


# -- the map ---------------------------------------------------------------------------------------------------------


def contour(source: Source, parameters: Sequence[str] | None = None) -> View:
    """The predicted value over two parameters, the most important ones unless given, with the trials."""
    history, context = source.history, source.fitted
    free = drawn_parameters(history.space, parameters)
    if parameters is not None and len(free) != 2:
        raise MethodError(f'parameters= must name two parameters, such as ["{free[0]}", ...], not {len(free)}')
    if len(free) < 2:
        why = "A map needs two parameters, and this space has one."
        return empty_view("heatmap", MAP_TITLE, why, history) | {"applies": False}
    if history.best is None:
        why = "Nothing has succeeded yet." if len(history) else "There are no trials yet."
        return empty_view("heatmap", MAP_TITLE, why, history)
    names = chosen_pair(history, context, free) if parameters is None else free
    axes = [ParameterAxis.of(history.space, name) for name in names]
    reference = reference_trial(history, names)
    if reference is None:
        return empty_view("heatmap", MAP_TITLE, f"No finished trial has both {names[0]} and {names[1]}.", history)
    if context is not None and np.ptp(np.clip(values_of(history), -1e300, 1e300)) == 0.0:
        why = "A map needs trials with different values: the prediction is the same everywhere."
        return empty_view("heatmap", MAP_TITLE, why, history)
    cells = None if context is None else map_cells(context, axes)
    lines = map_trials(axes, history)
    others = [name for name in reference.config if name not in names and not history.space[name].fidelity]
    rest = f"; the other parameters are as in trial {reference.number}" if others else ""
    caption = (
        f"Trials over {names[0]} and {names[1]}; no model is fitted while the study runs." if cells is None
        else f"The stronger the colour, the better is the predicted value over {names[0]} and {names[1]}{rest}."
    )  # fmt: skip
    return make_view(
        "heatmap", MAP_TITLE, caption, history, x=axes[0].to_dict(ends_of(axes[0])), y=axes[1].to_dict(ends_of(axes[1])),
        cells=cells, series=lines, shown=sum(len(each["x"]) for each in lines), maximize=history.maximize, parameters=names,
    )  # fmt: skip


def ends_of(along: ParameterAxis) -> tuple[float, float]:
    """The range of a map along one parameter."""
    ends = along.edges(along.grid(MAP_POINTS))
    return float(ends[0]), float(ends[-1])


def chosen_pair(history: History, context: SearchContext | None, names: list[str]) -> list[str]:
    """The two most important parameters that are active together in a finished trial."""
    stored = {} if context is not None else stored_importance(history)
    ranked = by_importance(context, names) if context is not None else sorted(names, key=lambda name: -stored.get(name, 0.0))
    pairs = sorted(combinations(range(len(ranked)), 2), key=sum)
    found = next((pair for pair in pairs if reference_trial(history, [ranked[i] for i in pair])), (0, 1))
    return [ranked[i] for i in found]


def map_cells(context: SearchContext, axes: Sequence[ParameterAxis]) -> dict[str, Any]:
    """The prediction over a grid: the edges of the cells, and their values by rows of y; None where nothing is active."""
    history = context.history
    reference = reference_trial(history, [each.name for each in axes])
    assert reference is not None
    units = [each.grid(MAP_POINTS) for each in axes]
    U = points_through(context.space, reference, axes, units)
    low, high = value_range(values_of(history), history.maximize)
    mean = np.clip(predict(context, U).mean, max(low, -1e300), min(high, 1e300))
    active = context.space.active(U)[:, [each.column for each in axes]].all(axis=1)
    grid = np.where(active, mean, np.nan).reshape([len(each) for each in units]).T
    inside = grid[np.isfinite(grid)]
    log = is_wide(inside) and bool(values_of(history).min() > 0)
    ends = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 1.0)
    if ends[0] >= ends[1]:
        ends = padded(*ends, log=log)
    return {
        "x_edges": axes[0].edges(units[0]), "y_edges": axes[1].edges(units[1]), "values": grid,
        "axis": axis(value_label(history.maximize, "predicted value"), [], log=log, ends=ends),
    }  # fmt: skip


def map_trials(axes: Sequence[ParameterAxis], history: History) -> list[dict[str, Any]]:
    """The trials in which both parameters are active."""
    rows, values, lines = rows_by_kind(history, [each.column for each in axes]), history.table.value[: len(history)], []
    for kind, (role, mark) in MAP_MARKS.items():
        if kind in rows:
            kept = rows[kind]
            if len(kept) > MAX_PANEL_POINTS and kind in ("trial", "lower fidelity"):
                order = np.argsort(-values[kept] if history.maximize else values[kept], kind="stable")
                kept = np.sort(np.union1d(kept[order[: MAX_PANEL_POINTS // 2]], spread_out(kept, MAX_PANEL_POINTS // 2)))
            kept = spread_out(kept, MAX_MARKED_FAILURES if kind == "failed" else MAX_PANEL_POINTS)
            x, y = (each.scattered(history.table.U[kept, each.column], kept, j) for j, each in enumerate(axes))
            value = [history[row].value for row in kept.tolist()]
            lines.append(series(kind, role, mark, x, y, number=kept, value=value, text=trial_texts(history, kept, value=True)))
    return lines
