"""The frame of a picture: axes with labels, a grid, and a legend above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .elements import FONT, cut, group, label, number, tag, text_width
from .marks import symbol
from .scales import LINE, Scale, Tick, ticks

MIN_LEFT, MAX_LEFT = 34.0, 130.0  # space for the labels of the y axis
RIGHT, TOP, BOTTOM = 14.0, 8.0, 2.6 * LINE
NO_LABELS_LEFT = 26.0  # of a panel beside another one: half of a label of the x axis reaches there
LEGEND_GAP, SYMBOL = 14.0, 24.0  # between two entries; the width of a mark


@dataclass(frozen=True)
class Frame:
    """The place of a plot inside a picture, and its scales."""

    left: float
    top: float
    right: float
    bottom: float
    x: Scale
    y: Scale
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]


def make_frame(
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    *,
    left: float,
    top: float,
    right: float,
    bottom: float,
    y_labels: bool = True,
) -> Frame:
    """The frame between four edges, with space for the labels; without ``y_labels`` none is needed on the left."""
    upright = Scale.of(y, bottom - BOTTOM, top + TOP)
    marks = ticks(y, upright, upright=True)
    wide = max((text_width(tick.text) for tick in marks), default=0.0) + 10.0 if y_labels else NO_LABELS_LEFT
    start = left + (min(max(wide, MIN_LEFT), MAX_LEFT) + LINE if y_labels else wide)
    marks = [Tick(tick.at, cut(tick.text, MAX_LEFT), tick.full) for tick in marks]
    across = Scale.of(x, start, right - RIGHT)
    return Frame(start, top + TOP, right - RIGHT, bottom - BOTTOM, across, upright, ticks(x, across), marks if y_labels else [])


def draw_frame(frame: Frame, x: Mapping[str, Any], y: Mapping[str, Any], *, grid: bool = True) -> str:
    """Grid, axes, labels and names of the axes."""
    lines = "".join(f"M{number(frame.left)} {number(tick.at)}H{number(frame.right)}" for tick in frame.y_ticks)
    parts = [tag("path", class_="grid", d=lines)] if grid and lines else []
    edge = f"M{number(frame.left)} {number(frame.top)}V{number(frame.bottom)}H{number(frame.right)}"
    edge += "".join(f"M{number(tick.at)} {number(frame.bottom)}v4" for tick in frame.x_ticks)
    parts.append(tag("path", class_="axis", d=edge))
    parts += [inside_text(tick, frame) for tick in frame.x_ticks]
    parts += [label(tick.text, frame.left - 6, tick.at + 0.35 * 12, anchor="end", full=tick.full) for tick in frame.y_ticks]
    middle, width = 0.5 * (frame.left + frame.right), frame.right - frame.left
    if x["label"]:
        shown = cut(x["label"], width, middle=True)  # names often differ at their ends
        parts.append(label(shown, middle, frame.bottom + 2.35 * LINE, class_="name", full=x["label"]))
    if y["label"] and frame.y_ticks:
        parts.append(upright_name(y["label"], frame))
    return group(parts)


def inside_text(tick: Tick, frame: Frame) -> str:
    """A label of the x axis; one at the right edge ends there, so that it is not cut off."""
    half = 0.5 * text_width(tick.text)
    at = min(tick.at, frame.right + RIGHT - 2 - half)
    return label(tick.text, at, frame.bottom + 1.25 * LINE, full=tick.full)


def upright_name(text: str, frame: Frame) -> str:
    """The name of the y axis, turned, at the left edge."""
    widest = max((text_width(tick.text) for tick in frame.y_ticks), default=0.0)
    x, y = max(frame.left - 10.0 - widest - 0.4 * FONT, 0.8 * FONT), 0.5 * (frame.top + frame.bottom)
    shown = short_name(text, frame.bottom - frame.top + LINE)
    content = label(shown, 0, 0, class_="name", full=text)
    return tag("g", content, transform=f"translate({number(x)} {number(y)})rotate(-90)")


def short_name(text: str, room: float) -> str:
    """The name of an axis in some space: without what is in brackets, if it would be too long."""
    return cut(text if text_width(text) <= room else text.partition(" (")[0], room)


def legend_entries(series: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The series that a legend names, each name once."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in series:
        if each["x"]:
            found.setdefault(each["name"], each)
    return list(found.values())


def draw_legend(entries: Sequence[Mapping[str, Any]], left: float, right: float, top: float) -> tuple[str, float]:
    """The legend in rows from the top, and the height that it needs; a single entry needs none."""
    if len(entries) < 2:
        return "", 0.0
    parts, x, y = [], left, top + 0.5 * LINE + 2
    for each in entries:
        shown = cut(each["name"], right - left - SYMBOL)
        width = SYMBOL + text_width(shown)
        if x > left and x + width > right:
            x, y = left, y + LINE
        parts.append(symbol(each, x + 9, y))
        parts.append(label(shown, x + SYMBOL, y + 0.35 * 12, anchor="start", class_="key", full=each["name"]))
        x += width + LEGEND_GAP
    return group(parts), y + 0.5 * LINE + 4 - top
