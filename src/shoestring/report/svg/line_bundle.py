"""Parallel coordinates: each trial as a line over upright axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .axes import draw_legend
from .charts import Drawn, View
from .elements import WIDTH, cut, label, number, path, tag, text_width, titled
from .heatmap import level_of
from .palette import LEVELS
from .scales import LINE

HEIGHT, TOP = 240.0, 14.0
MAX_LEVEL = LEVELS - 2  # the palest colour could not be seen as a line
STATES = {"failed": "s-failed", "running": "s-running thin"}


def line_bundle(view: View) -> Drawn:
    """The lines, with their axes and a legend above them."""
    axes = view["axes"]
    keys, used = draw_legend(legend_of(view["lines"]), 8.0, WIDTH - 8.0, 0.0)
    top = used + TOP
    last = max((text_width(tick["label"]) for tick in axes[-1]["ticks"]), default=0.0) + 12.0
    space = (WIDTH - 20.0 - last) / max(len(axes) - 1, 1)
    places = [16.0 + space * place for place in range(len(axes))]
    below = view["inactive"] if any(axis["conditional"] for axis in axes) else 0.0
    bottom = top + HEIGHT - below * HEIGHT

    def at(height: float) -> float:
        return top + (1.0 - height) * HEIGHT

    parts = [keys, *(draw_line(line, places, at) for line in view["lines"])]
    for place, axis in zip(places, axes, strict=True):
        parts.append(tag("path", class_="axis", d=f"M{number(place)} {number(top)}V{number(top + HEIGHT)}"))
        lowest = None
        for tick in sorted(axis["ticks"], key=lambda tick: -tick["at"]):
            if lowest is not None and at(tick["at"]) - lowest < LINE:
                continue  # it would overlap the one above it
            lowest = at(tick["at"])
            shown = cut(tick["label"], space - 10.0 if axis is not axes[-1] else last)
            parts.append(label(shown, place + 5, lowest + 0.35 * 12, anchor="start", class_="tick halo", full=tick["label"]))
        if axis["conditional"]:
            shown = cut("inactive", space - 10.0)
            where = {"x": place + 5, "y": at(below) + 0.35 * 12}
            parts.append(label(shown, **where, anchor="start", class_="tick halo", full="this parameter is not active"))
    names, rows = draw_names(axes, places, bottom, space)
    return "".join([*parts, *names]), bottom + (0.8 + rows) * LINE


def legend_of(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries of the legend, as far as there are such lines."""
    entries = [("trial", "trial", "line")] if any(line["state"] == "done" and not line["best"] for line in lines) else []
    entries += [("best", "star", "line")] if any(line["best"] for line in lines) else []
    entries += [("failed", "failed", "line")] if any(line["state"] == "failed" for line in lines) else []
    entries += [("running", "running", "dashes")] if any(line["state"] == "running" for line in lines) else []
    return [{"name": name, "role": role, "mark": mark, "x": [0]} for name, role, mark in entries]


def draw_names(axes: Sequence[Mapping[str, Any]], places: Sequence[float], bottom: float, space: float) -> tuple[list[str], int]:
    """The names below the axes, and the number of their rows: two where one has not enough space."""
    widths = [text_width(axis["name"]) for axis in axes]
    rows = 2 if widths[0] > 0.5 * space or max(widths) > space - 8.0 else 1
    parts = []
    for place, (x, axis) in enumerate(zip(places, axes, strict=True)):
        y = bottom + LINE * (1.1 + place % rows)
        shown = cut(axis["name"], 0.5 * rows * space + x - 12.0 if place == 0 else rows * space - 14.0, middle=True)
        if place == 0:
            start = max(x - 0.5 * text_width(shown), 4.0)
            parts.append(label(shown, start, y, anchor="start", class_="name", full=axis["name"]))
        else:
            half = 0.5 * text_width(shown)
            parts.append(label(shown, min(x, WIDTH - half - 2.0), y, class_="name", full=axis["name"]))
    return parts, rows


def draw_line(line: Mapping[str, Any], places: list[float], at: Any) -> str:
    """One trial."""
    points = [(x, at(height)) for x, height in zip(places, line["heights"], strict=False)]
    if line["state"] in STATES:
        class_ = f"bundle {STATES[line['state']]}"
    elif line["best"]:
        class_ = "bundle thick s-star"
    else:
        class_ = f"bundle k{min(level_of(line['share'], maximize=False), MAX_LEVEL)}"
    return tag("path", titled(line["text"]), class_=class_, d=path(points), data_trial=str(line["number"]))
