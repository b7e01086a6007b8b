"""What all views share: where their numbers come from, and the plain data that they consist of.

A view is a dict that is ready for JSON: what one picture shows, in numbers and words, without a colour or a position on a screen.

    name, title, caption   the caption says in one sentence what is to be seen
    kind      "chart", "panels", "bars", "heatmap", "parallel", "timeline" or "facts"
    x, y      axes: {"label", "unit", "scale": "linear" | "log" | "options", "low", "high", "whole", "options"}
    series    [{"name", "role", "mark", "x", "y", ...}]: the role says what it is ("best", "trial", "failed", "running", ...), so
              that the same thing has the same colour everywhere; the mark says how it is drawn ("step", "line", "dots", ...)
    empty     a sentence if there is nothing to draw, else None
    trials    how many trials there are;   shown  how many points are left of them after thinning

A number that is not finite becomes None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._format import rounded
from ...budget import Budget
from ...data.history import History
from ...data.trial import State, Trial
from ...numerics import Array
from ...search.base import SearchContext
from ...state.study_state import StudyState
from ...state.suggester import Suggester
from ...surrogate.output_transform import middle_and_spread
from ...termination.base import Rule, Verdict

View = dict[str, Any]
Rows = NDArray[np.intp]

MAX_POINTS = 2000  # of one series: more are thinned
EXTREMES_SHARE = 0.2  # of the points that are left after thinning: the highest and the lowest ones of stretches of the x axis
WIDE = 50.0  # positive values whose largest is more than this factor above the smallest are drawn on a log scale
MAX_SPREADS_SHOWN = 4.0  # bad values further from the median than this are drawn at the edge
AXIS_MARGIN = 0.06  # of an axis beyond what is drawn, as a share of its range
MAX_TEXTS = 300  # points of a series that have a text
MAX_TEXT_CHARACTERS = 60  # of a text beside a point


class ViewedStudy(Protocol):
    """The part of a study that views use."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def budget(self) -> Budget | None: ...
    @property
    def rule(self) -> Rule | None: ...
    @property
    def checked(self) -> Verdict | None: ...
    @property
    def log(self) -> History: ...
    @property
    def context(self) -> SearchContext: ...
    @property
    def halted(self) -> str | None: ...
    @property
    def seconds(self) -> float: ...
    state: StudyState
    suggester: Suggester

    def refresh(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a view is computed from: the trials, and a way to the models.

    context   what the study knows; its models are fitted when they are first looked at, so it is called with ``fit`` only
    fit       whether a model may be fitted; without it, only what the trials store is used
    now       seconds since 1970
    """

    history: History
    unit: str
    name: str = ""
    budget: Budget | None = None
    rule: Rule | None = None
    checked: Verdict | None = None
    halted: str | None = None
    seconds: float = 0.0
    fit: bool = False
    context: Callable[[], SearchContext] | None = None
    now: float = 0.0

    @property
    def fitted(self) -> SearchContext | None:
        """What the study knows, where a model may be fitted."""
        return self.context() if self.fit and self.context is not None else None


# -- the parts of a view ---------------------------------------------------------------------------------------------


def make_view(kind: str, title: str, caption: str, history: History, **parts: Any) -> View:
    """A view of some kind; ``parts`` are its axes, series and whatever else the kind has."""
    return {"kind": kind, "title": title, "caption": caption, "empty": None, "trials": history.trials_started, **parts}


def empty_view(kind: str, title: str, why: str, history: History) -> View:
    """A view without anything to draw; ``why`` is a sentence."""
    return {
        "kind": kind, "title": title, "caption": why, "empty": why, "trials": history.trials_started,
        "x": axis("", []), "y": axis("", []), "series": [],
    }  # fmt: skip


def axis(
    label: str,
    values: Iterable[float],
    *,
    unit: str = "",
    log: bool = False,
    whole: bool = False,
    zero: bool = False,
    ends: tuple[float, float] | None = None,
    options: Sequence[str] | None = None,
) -> dict[str, Any]:
    """An axis that holds some values; ``zero``: it begins at 0; ``ends``: its range, if that is given."""
    finite = [value for value in values if math.isfinite(value) and (value > 0.0 or not log)]
    if options is not None:
        low, high = -0.5, len(options) - 0.5
    elif ends is not None:
        low, high = ends
    else:
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        low, high = padded(low, high, log=log, zero=zero)
    scale = "options" if options is not None else "log" if log else "linear"
    found: dict[str, Any] = {"label": label, "unit": unit, "scale": scale, "low": low, "high": high, "whole": whole}
    return found if options is None else found | {"options": list(options)}


def padded(low: float, high: float, *, log: bool = False, zero: bool = False) -> tuple[float, float]:
    """A range with some space on both sides; of a range without a width, some space is made."""
    if log:
        low, high = max(low, 1e-299), min(high, 1e299)  # no number at the edge overflows
        if high <= low * (1.0 + 1e-9):
            return low / 2.0, high * 2.0
        factor = math.exp(AXIS_MARGIN * (math.log(high) - math.log(low)))
        return max(low / factor, 1e-300), min(high * factor, 1e300)
    if zero:
        low = min(low, 0.0)
    width = min(high, 1e300) / 2.0 - max(low, -1e300) / 2.0  # half of it: the whole one may overflow
    if not width > 1e-12 * max(abs(low), abs(high)):
        half = max(0.5 * abs(high), 0.5) if high == 0.0 or abs(high) > 1e-6 else 0.5 * abs(high)
        return (0.0 if zero and low == 0.0 else low - half), high + half
    margin = 2.0 * AXIS_MARGIN * width
    return (low if zero and low == 0.0 else low - margin), high + margin


def axis_label(what: str, unit: str) -> str:
    """The text of an axis, with its unit in brackets."""
    return f"{what} ({unit})" if unit else what


def series(name: str, role: str, mark: str, x: Any, y: Any, **further: Any) -> dict[str, Any]:
    """A series of points; ``further``: columns of the same length, and facts about the whole."""
    columns = {key: column(value) if isinstance(value, np.ndarray) else value for key, value in further.items()}
    return {"name": name, "role": role, "mark": mark, "x": column(x), "y": column(y), **columns}


def column(values: Any) -> list[Any]:
    """Values as a list of plain numbers; what is not finite is None."""
    if isinstance(values, np.ndarray):
        listed = values.tolist()
        if values.dtype.kind in "iub" or bool(np.isfinite(values).all()):
            return list(listed)
        values = listed
    return [None if isinstance(each, float) and not math.isfinite(each) else each for each in values]


def plain(found: Any) -> Any:
    """The same, ready for JSON: tuples are lists, NumPy's numbers are Python's, and what is not finite is None."""
    if isinstance(found, dict):
        return {str(key): plain(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, np.ndarray | np.generic):
        return plain(found.tolist())
    return None if isinstance(found, float) and not math.isfinite(found) else found


# -- trials ----------------------------------------------------------------------------------------------------------


def thinned(x: Array, y: Array, rows: Rows, most: int = MAX_POINTS) -> Rows:
    """At most ``most`` of some rows: evenly spaced ones, and of each stretch of x those with the lowest and the highest y.

    Extremes alone would show two clouds where there is one; without them, rare values could not be seen.
    """
    if len(rows) <= most:
        return rows
    order = rows[np.argsort(x[rows], kind="stable")]
    stretches = np.array_split(order, max(int(0.5 * EXTREMES_SHARE * most), 1))
    ends = [end for part in stretches for end in (part[int(np.argmin(y[part]))], part[int(np.argmax(y[part]))])]
    return np.union1d(np.array(ends, dtype=np.intp), spread_out(rows, most - len(ends)))


def spread_out(rows: Rows, most: int = MAX_POINTS) -> Rows:
    """At most ``most`` of some rows, evenly spaced, with the first and the last one."""
    if len(rows) <= most:
        return rows
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).round().astype(np.intp))]


def trial_text(trial: Trial) -> str:
    """A trial in a few words, for the text that appears above a point."""
    shown = ", ".join(f"{name} {short(value)}" for name, value in list(trial.config.items())[:4])
    return f"trial {trial.number}: {shown}"


def trial_texts(history: History, rows: Rows, *, value: bool = False) -> list[str] | None:
    """The texts of some trials, with their values if wanted; None for many: points so close are not pointed at one by one."""
    if len(rows) > MAX_TEXTS:
        return None
    found = [history[row] for row in rows.tolist()]
    return [f"{trial_text(each)}; value {rounded(each.value)}" if value else trial_text(each) for each in found]


def short(value: Any) -> str:
    """A value in a few characters."""
    text = rounded(value) if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[: MAX_TEXT_CHARACTERS - 3] + "..."


def values_of(history: History) -> Array:
    """The values of the finished trials."""
    return np.asarray(history.table.value[: len(history)][history.table.having(State.DONE)])


def value_range(values: Array, maximize: bool) -> tuple[float, float]:
    """The range of values to draw: all good values, and bad ones up to MAX_SPREADS_SHOWN spreads from the median.

    Values outside are drawn at the edge, so that one value of 1e300 does not flatten all others.
    """
    if not len(values):
        return -math.inf, math.inf
    signed = np.clip(-values if maximize else values, -1e300, 1e300)
    middle, spread = middle_and_spread(signed)
    limit = float(min(middle + MAX_SPREADS_SHOWN * spread, signed.max()))
    return (-limit, math.inf) if maximize else (-math.inf, limit)


def is_wide(values: Array) -> bool:
    """Whether values are drawn on a log scale."""
    return bool(len(values) and values.min() > 0 and values.max() > WIDE * values.min())


def value_axis(history: History, *further: Array) -> dict[str, Any]:
    """The axis of values: all finished trials up to ``value_range``, and ``further`` values."""
    low, high = value_range(values_of(history), history.maximize)
    shown = np.clip(values_of(history), max(low, -1e300), min(high, 1e300))
    everything = np.concatenate([shown, *(np.clip(np.ravel(each), max(low, -1e300), min(high, 1e300)) for each in further)])
    return axis(value_label(history.maximize), everything.tolist(), log=is_wide(everything))


def value_label(maximize: bool, what: str = "value") -> str:
    """The label of an axis of values, which says which direction is better."""
    return f"{what} (higher is better)" if maximize else f"{what} (lower is better)"


def cost_axis(history: History, unit: str) -> tuple[Array, str]:
    """The cost spent up to the end of each trial, and its unit: seconds become minutes or hours where people would say so.

    Results from elsewhere cost nothing, as in the summary. If all trials are from elsewhere, their own costs are used.
    """
    cost, added = history.table.cost[: len(history)], history.table.added[: len(history)]
    with np.errstate(over="ignore"):
        spent = np.cumsum(cost if added.all() else np.where(added, 0.0, cost))
    scale, shown = time_unit(float(spent[-1]) if len(spent) else 0.0) if unit == "s" else (1.0, unit)
    return np.minimum(spent, 1e300) / scale, shown


def time_unit(seconds: float) -> tuple[float, str]:
    """The scale and the unit of a time axis: milliseconds, seconds up to two minutes, then minutes, hours."""
    if 0 < seconds < 0.1:
        return 1e-3, "ms"
    if seconds < 120:
        return 1.0, "s"
    return (60.0, "min") if seconds < 7200 else (3600.0, "h")
