"""Parallel coordinates: every trial as a line over all parameters to its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._format import plural, rounded
from ...data.history import History
from ...data.trial import State
from ...errors import MethodError
from ...numerics import Array
from ...space.parameters import Choice
from ...space.space import Parameter
from .base import Rows, Source, View, axis, empty_view, is_wide, make_view, spread_out, trial_text, value_range, values_of
from .parameter_effects import stored_importance
from .prediction import option_labels

INACTIVE_HEIGHT = -0.14  # below the axis: where the lines of trials go in which the parameter is not active
MAX_OPTIONS_NAMED = 8  # of a choice with more, some have a label
MAX_AXES = 8  # parameters: more could not be read
MAX_LINES = 400  # finished trials that are drawn: half of them the best ones, the others spread over the study
MAX_LINES_WITHOUT_VALUE = 50  # failed ones, and running ones
TITLE = "All parameters of each trial"


def parallel(source: Source, parameters: Sequence[str] | None = None) -> View:
    """Each trial as a line from parameter to parameter to its value. ``parameters``: in this order, and no others."""
    history = source.history
    if not len(history):
        return empty_view("parallel", TITLE, "There are no trials yet.", history)
    names = shown_parameters(history, parameters)
    table, heights = history.table, line_heights(history)[:, [history.space.names.index(name) for name in names]]
    shares, ends = value_shares(history)
    done = np.flatnonzero(table.having(State.DONE))
    lines: list[dict[str, Any]] = []
    for state, most in ((State.FAILED, MAX_LINES_WITHOUT_VALUE), (State.RUNNING, MAX_LINES_WITHOUT_VALUE)):
        for row in spread_out(np.flatnonzero(table.having(state)), most).tolist():
            lines.append({"number": row, "state": str(state), "heights": heights[row].tolist(), "share": None, "best": False,
                          "text": f"{trial_text(history[row])}; {state}"})  # fmt: skip
    best = None if history.best is None else history.best.number
    for row in best_last(history, done):
        lines.append({"number": row, "state": "done", "heights": [*heights[row].tolist(), float(shares[row])],
                      "share": float(1.0 - shares[row] if history.maximize else shares[row]), "best": row == best,
                      "text": f"{trial_text(history[row])}; value {rounded(history[row].value)}"})  # fmt: skip
    axes = [
        {"name": name, "ticks": ticks_of(history.space[name]), "conditional": bool(history.space.parents(name))} for name in names
    ]
    if len(done):
        axes.append({"name": "value", "ticks": value_ticks(ends, is_wide(values_of(history))), "conditional": False})
    left = len(done) - sum(line["state"] == "done" for line in lines)
    part = f"; {left} of {len(done)} finished trials are left out" if left > 0 else ""
    hidden = len(history.space) - len(names)
    fewer = f"; {plural(hidden, 'parameter')} not shown" if hidden else ""
    what = "the stronger its colour the better; the best one is orange" if len(done) else "nothing has succeeded yet"
    caption = f"Each line is a trial, {what}{part}{fewer}."
    return make_view(
        "parallel", TITLE, caption, history, axes=axes, lines=lines, shown=len(lines), series=[], maximize=history.maximize,
        x=axis("", []), y=axis("", []), inactive=INACTIVE_HEIGHT, trials_text=plural(len(lines), "line"),
    )  # fmt: skip


def shown_parameters(history: History, wanted: Sequence[str] | None) -> list[str]:
    """The parameters to draw: the wanted ones, or all; of many, those that the last stored model found important."""
    names = list(history.space.names)
    if wanted is not None:
        if not wanted or any(name not in names for name in wanted):
            raise MethodError(f"parameters={list(wanted)} cannot be drawn; choose from {', '.join(names)}")
        return list(dict.fromkeys(wanted))
    if len(names) <= MAX_AXES:
        return names
    shares = stored_importance(history)
    kept = set(sorted(names, key=lambda name: -shares.get(name, 0.0))[:MAX_AXES])
    return [name for name in names if name in kept]


def best_last(history: History, done: Rows) -> list[int]:
    """The finished trials to draw, from the worst to the best: the last is drawn on top of the others."""
    values = history.table.value[done]
    order = np.argsort(values if history.maximize else -values, kind="stable")
    if len(done) > MAX_LINES:
        half = MAX_LINES // 2
        kept = np.union1d(order[-half:], spread_out(np.arange(len(done)), half))
        order = order[np.isin(order, kept)]
    found = done[order].tolist()
    best = history.best
    return [*(row for row in found if best is None or row != best.number), *([best.number] if best is not None else [])]


def value_shares(history: History) -> tuple[Array, tuple[float, float]]:
    """Where each trial's value lies between the lowest and the highest that is drawn, from 0 to 1; and these two."""
    values = history.table.value[: len(history)]
    known = values_of(history)
    if not len(known):
        return np.zeros(len(history)), (0.0, 1.0)
    low, high = value_range(known, history.maximize)
    shown = np.clip(known, max(low, -1e300), min(high, 1e300))
    ends = float(shown.min()), float(shown.max())
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled, scaled_ends = (np.log(values), np.log(ends)) if is_wide(known) else (values, np.array(ends))
        width = scaled_ends[1] - scaled_ends[0]
        shares = np.clip((scaled - scaled_ends[0]) / width, 0.0, 1.0) if width > 0 else np.full(len(values), 0.5)
    return np.nan_to_num(shares, nan=0.5), ends


def value_ticks(ends: tuple[float, float], log: bool) -> list[dict[str, Any]]:
    """Five values along the axis of values; one if all are equal."""
    low, high = ends
    if not high > low:
        return [{"at": 0.5, "label": tick_text(low, 3)}]
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    at = [low * (high / low) ** share if log and low > 0 else low * (1.0 - share) + high * share for share in shares]
    return [{"at": share, "label": tick_text(value, 3)} for share, value in zip(shares, at, strict=True)]


def tick_text(value: float, digits: int) -> str:
    """A number beside an axis, with a power of ten as on the axes of the other pictures: "1e-5", not "1e-05"."""
    front, e, power = rounded(value, digits).partition("e")
    return f"{front}e{int(power)}" if e else front


def line_heights(history: History) -> Array:
    """The height of each trial's line at each parameter: 0 is the low end of its axis, 1 the high end."""
    U = history.table.U[: len(history)]
    active = history.space.active(U)
    heights = np.empty(U.shape)
    for column, parameter in enumerate(history.space.parameters):
        low, high = end_units(parameter)
        heights[:, column] = (U[:, column] - low) / (high - low) if high > low else 0.5
    return np.where(active, heights, INACTIVE_HEIGHT)


def end_units(parameter: Parameter) -> tuple[float, float]:
    """The unit coordinates of the lowest and the highest value."""
    if isinstance(parameter, Choice):
        return float(parameter.to_unit(0)), float(parameter.to_unit(parameter.levels - 1))
    return float(parameter.to_unit(parameter.low)), float(parameter.to_unit(parameter.high))


def ticks_of(parameter: Parameter) -> list[dict[str, Any]]:
    """Heights along the axis of a parameter that have a label: its options, or its ends and its middle."""
    low, high = end_units(parameter)
    if isinstance(parameter, Choice):
        labels, units = option_labels(parameter), parameter.grid_units()
        shown = range(0, len(labels), math.ceil(len(labels) / MAX_OPTIONS_NAMED))
        marks = [(float((units[k] - low) / (high - low)) if high > low else 0.5, labels[k]) for k in shown]
    else:
        digits = 6 if parameter.whole else 3
        marks = [(0.0, tick_text(parameter.low, digits)), (1.0, tick_text(parameter.high, digits))]
        if parameter.levels is None:
            marks.insert(1, (0.5, tick_text(float(parameter.values(np.array(0.5 * (low + high)))), 2)))
    return [{"at": height, "label": label} for height, label in marks]
