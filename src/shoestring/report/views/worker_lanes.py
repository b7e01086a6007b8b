"""The timeline: when each trial ran, and how many ran at once."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

from ..._format import amount, plural
from ...data.history import History
from ...data.trial import State
from .base import Source, View, axis, axis_label, empty_view, make_view, time_unit, trial_text

CLOCK_ERROR = 1e-3  # seconds: two trials that overlap by less than this ran one after the other
MIN_BAR_SHARE = 1e-3  # of the time axis: of many trials, short neighbours of one state are one bar
MAX_BARS = 800  # more are put together further
TITLE = "When trials ran"


@dataclass(frozen=True)
class Bar:
    """One trial on the timeline: its lane, start and end in seconds since the first trial was asked."""

    number: int
    state: State
    lane: int
    start: float
    end: float


def timeline(source: Source) -> View:
    """The trials as bars over time, those that ran at the same time in different lanes."""
    history = source.history
    found = timeline_bars(history)
    if not found:
        why = "No trial of this study has a time." if len(history) else "There are no trials yet."
        return empty_view("timeline", TITLE, why, history)
    last, lanes = max(bar.end for bar in found), max(bar.lane for bar in found) + 1
    scale, unit = time_unit(last)
    best = None if history.best is None else history.best.number
    parts, shortest = [[bar] for bar in found], MIN_BAR_SHARE * last
    while len(parts) > MAX_BARS and shortest <= last:
        parts, shortest = merged(found, shortest), 2.0 * shortest
    bars = [bar_dict(part, history, scale, best) for part in parts]
    busy = sum(bar.end - bar.start for bar in found)
    share = f"; they were busy {busy / (lanes * last):.0%} of the time" if last > 0 else ""
    untimed = len(history) - len(found)
    without = f"; {untimed} without a time" if untimed else ""
    caption = f"{plural(len(found), 'trial')} in {amount(last, 's')} on {plural(lanes, 'worker')}{share}{without}."
    return make_view(
        "timeline", TITLE, caption, history, bars=bars, series=[], shown=len(bars), lanes=lanes,
        x=axis(axis_label("time since the first trial", unit), [0.0, last / scale], unit=unit, zero=True),
        y=axis("worker", [], whole=True, ends=(0.5, lanes + 0.5)),
    )  # fmt: skip


def bar_dict(part: list[Bar], history: History, scale: float, best: int | None) -> dict[str, Any]:
    """Neighbouring trials as one bar; most often it is a single one."""
    first, last = part[0], part[-1]
    numbers = f"trials {first.number} to {last.number}" if len(part) > 1 else trial_text(history[first.number])
    return {
        "lane": first.lane + 1, "start": first.start / scale, "end": last.end / scale, "state": str(first.state),
        "number": first.number if len(part) == 1 else None, "count": len(part), "best": any(bar.number == best for bar in part),
        "text": f"{numbers}: {first.state}, {amount(last.end - first.start, 's')}",
    }  # fmt: skip


def merged(bars: list[Bar], shortest: float) -> list[list[Bar]]:
    """Bars put together, where they are short, neighbours in one lane and of one state."""
    parts: list[list[Bar]] = []
    open_part: dict[int, list[Bar]] = {}
    for bar in bars:
        part = open_part.get(bar.lane)
        near = part is not None and part[-1].state is bar.state and bar.start - part[-1].end <= shortest
        if part is not None and near and bar.end - part[0].start <= shortest * 2:
            part.append(bar)
        else:
            open_part[bar.lane] = [bar]
            parts.append(open_part[bar.lane])
    return parts


def timeline_bars(history: History) -> list[Bar]:
    """The trials as bars, by their start. Each is in the lowest lane that is free when it starts."""
    timed = [
        trial
        for trial in history
        if trial.asked_at is not None and not trial.added and (trial.seconds is not None or trial.state is State.RUNNING)
    ]
    if not timed:
        return []
    first = min(float(trial.asked_at or 0.0) for trial in timed)
    last = max(float(trial.asked_at or 0.0) + (trial.seconds or 0.0) for trial in timed) - first
    bars: list[Bar] = []
    free: list[int] = []  # lanes that were in use and are free again
    busy: list[tuple[float, int]] = []  # (end, lane)
    for trial in sorted(timed, key=lambda trial: (float(trial.asked_at or 0.0), trial.number)):
        start = float(trial.asked_at or 0.0) - first
        end = last if trial.seconds is None else start + trial.seconds
        while busy and busy[0][0] <= start + CLOCK_ERROR:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        bars.append(Bar(trial.number, trial.state, lane, start, end))
    return bars
