"""Series as marks: lines, steps, bands, dots and so on. Each function returns elements of SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..._format import rounded
from .elements import group, number, path, tag, titled
from .scales import Scale

MAX_SINGLE_MARKS = 300  # of a series: more are one path, without a text for each
MAX_RUG_MARKS = 60  # at the axis: more are short lines, as one path
DOT, STAR = 2.8, 7.0  # radii

Series = Mapping[str, Any]


def draw_series(each: Series, x: Scale, y: Scale) -> str:
    """One series, in the way that its mark says."""
    return MARKS[each["mark"]](each, x, y)


def known(each: Series, *names: str) -> list[tuple[int, tuple[float, ...]]]:
    """The points of a series that have all these columns, with their places in it."""
    rows = enumerate(zip(*(each[name] for name in names), strict=True))
    return [(place, values) for place, values in rows if None not in values]


def text_of(each: Series, place: int) -> str:
    """What a point says when the mouse is over it."""
    told = each.get("text")
    value = each["y"][place] if each.get("y") else None
    shown = told[place] if told else each["name"]
    return shown if value is None or "value" in str(shown) else f"{shown}; {rounded(value)}"


def step_points(found: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points with a corner between each two: a value holds until the next one."""
    points = list(found[:1])
    for (_, before), (at, height) in pairwise(found):
        points += [(at, before), (at, height)]
    return points


def line(each: Series, x: Scale, y: Scale, *, steps: bool = False, class_: str = "l") -> str:
    """A line through the points; a single point is a dot, which could not be seen as a line."""
    found = [(x.at(a), y.at(b)) for _, (a, b) in known(each, "x", "y")]
    if not found:
        return ""
    if len(set(found)) == 1:
        return tag("circle", titled(text_of(each, 0)), class_=f"f-{each['role']}", cx=found[0][0], cy=found[0][1], r=DOT)
    drawn = tag("path", titled(each["name"]), class_=f"{class_} s-{each['role']}", d=path(step_points(found) if steps else found))
    if len(found) > MAX_SINGLE_MARKS or not each.get("number"):
        return drawn
    return drawn + hover_points(each, x, y)


def hover_points(each: Series, x: Scale, y: Scale) -> str:
    """Points of a line that say their numbers when the mouse is over them; they are not seen."""
    return group(
        tag("circle", titled(point_text(each, place, a, b)), cx=x.at(a), cy=y.at(b), r=5, fill="transparent")
        for place, (a, b) in known(each, "x", "y")
        if each["number"][place] is not None
    )


def point_text(each: Series, place: int, a: float, b: float) -> str:
    told = each.get("number")
    which = f", trial {told[place]}" if told and told[place] is not None else ""
    return f"{each['name']}{which}: {rounded(b)} at {rounded(a)}"


def step(each: Series, x: Scale, y: Scale) -> str:
    return line(each, x, y, steps=True)


def dashes(each: Series, x: Scale, y: Scale) -> str:
    return line(each, x, y, class_="l dashes")


def band(each: Series, x: Scale, y: Scale, *, steps: bool = False) -> str:
    """A line with a band around it."""
    found = known(each, "x", "low", "high")
    low, high = ([(x.at(row[0]), y.at(row[end])) for _, row in found] for end in (1, 2))
    if steps:
        low, high = step_points(low), step_points(high)
    area = tag("path", class_=f"band f-{each['role']}", d=path([*low, *reversed(high)]) + "Z") if len(found) > 1 else ""
    return area + line(each, x, y, steps=steps)


def stepband(each: Series, x: Scale, y: Scale) -> str:
    return band(each, x, y, steps=True)


def error_bars(each: Series, x: Scale, y: Scale) -> str:
    """For the options of a choice: a mark at each mean, and a bar from the low to the high end."""
    parts = []
    for _, (a, b, low, high) in known(each, "x", "y", "low", "high"):
        at, top, bottom = x.at(a), y.at(high), y.at(low)
        foot = number(at - 6)
        ends = f"M{number(at)} {number(top)}V{number(bottom)}M{foot} {number(top)}h12M{foot} {number(bottom)}h12"
        told = titled(f"{each['name']}: {rounded(b)}, from {rounded(low)} to {rounded(high)}")
        parts.append(tag("path", told, class_=f"l s-{each['role']}", d=ends))
        parts.append(tag("path", told, class_=f"f-{each['role']}", d=diamond(at, y.at(b))))
    return group(parts)


def diamond(x: float, y: float, r: float = 5.0) -> str:
    return f"M{number(x)} {number(y - r)}l{number(r)} {number(r)}l{number(-r)} {number(r)}l{number(-r)} {number(-r)}Z"


def dots(each: Series, x: Scale, y: Scale) -> str:
    """Dots; many of them are one path."""
    found = known(each, "x", "y")
    if len(found) > MAX_SINGLE_MARKS:
        points = "".join(f"M{number(x.at(a))} {number(y.at(b))}h0" for _, (a, b) in found)
        return tag("path", titled(each["name"]), class_=f"many s-{each['role']}", d=points)
    return marked(each, found, x, y, lambda at, height: ("circle", {"cx": at, "cy": height, "r": DOT}), f"f-{each['role']}")


def rings(each: Series, x: Scale, y: Scale) -> str:
    """Empty dots; many of them are one path of full ones."""
    found = known(each, "x", "y")
    if len(found) > MAX_SINGLE_MARKS:
        return dots(each, x, y)
    class_ = f"hollow s-{each['role']}"
    return marked(each, found, x, y, lambda at, height: ("circle", {"cx": at, "cy": height, "r": DOT}), class_)


def triangles(each: Series, x: Scale, y: Scale) -> str:
    found = known(each, "x", "y")
    return marked(each, found, x, y, lambda at, height: ("path", {"d": triangle(at, height)}), f"hollow s-{each['role']}")


def crosses(each: Series, x: Scale, y: Scale) -> str:
    found = known(each, "x", "y")
    return marked(each, found, x, y, lambda at, height: ("path", {"d": cross(at, height)}), f"cross s-{each['role']}")


def star(each: Series, x: Scale, y: Scale) -> str:
    found = known(each, "x", "y")
    return marked(each, found, x, y, lambda at, height: ("path", {"d": star_path(at, height)}), f"edged f-{each['role']}")


def rug(each: Series, x: Scale, y: Scale) -> str:
    """Marks on the x axis, for what has no value: a cross, or a triangle for what still runs."""
    form, how = (triangle, "hollow") if each["role"] == "running" else (cross, "cross")
    found = [(place, x.at(value)) for place, value in enumerate(each["x"]) if value is not None]
    if len(found) > MAX_RUG_MARKS:
        fence = "".join(f"M{number(at)} {number(y.start - 4)}v8" for _, at in found)
        return tag("path", titled(f"{each['name']}: {len(found)}"), class_=f"fence s-{each['role']}", d=fence)
    class_ = f"{how} s-{each['role']}"
    return group(
        tag("path", titled(text_of(each, place)), class_=class_, d=form(at, y.start), data_trial=trial_of(each, place))
        for place, at in found
    )


def marked(
    each: Series,
    found: Sequence[tuple[int, tuple[float, ...]]],
    x: Scale,
    y: Scale,
    form: Callable[[float, float], tuple[str, dict[str, Any]]],
    class_: str,
) -> str:
    """One element for each point, with its text and its trial."""
    parts = []
    for place, (a, b) in found:
        name, attributes = form(x.at(a), y.at(b))
        parts.append(tag(name, titled(text_of(each, place)), class_=class_, data_trial=trial_of(each, place), **attributes))
    return group(parts)


def trial_of(each: Series, place: int) -> str | None:
    """The number of a point's trial, for a script."""
    numbers = each.get("number")
    return None if not numbers or numbers[place] is None else str(numbers[place])


def stepdots(each: Series, x: Scale, y: Scale) -> str:
    return step(each, x, y) + dots(each, x, y)


def triangle(x: float, y: float, r: float = 4.5) -> str:
    return f"M{number(x - r)} {number(y + 0.8 * r)}h{number(2 * r)}l{number(-r)} {number(-1.7 * r)}Z"


def cross(x: float, y: float, r: float = 3.4) -> str:
    return f"M{number(x - r)} {number(y - r)}l{number(2 * r)} {number(2 * r)}m0 {number(-2 * r)}l{number(-2 * r)} {number(2 * r)}"


def star_path(x: float, y: float, r: float = STAR) -> str:
    corners = [((-0.5 + 0.2 * k) * math.pi, 0.45 * r if k % 2 else r) for k in range(10)]
    return path((x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn, radius in corners) + "Z"


MARKS: dict[str, Callable[[Series, Scale, Scale], str]] = {
    "line": line, "dashes": dashes, "step": step, "stepdots": stepdots, "band": band, "stepband": stepband, "bars": error_bars,
    "dots": dots, "rings": rings, "triangles": triangles, "crosses": crosses, "star": star, "rug": rug,
}  # fmt: skip


def symbol(each: Series, x: float, y: float) -> str:
    """The mark of a series in a legend, 18 units wide, around a place."""
    mark, role = each["mark"], each["role"]
    if mark in ("line", "step", "band", "stepband", "stepdots", "dashes"):
        drawn = tag("path", class_=f"l s-{role}" + (" dashes" if mark == "dashes" else ""), d=f"M{number(x - 9)} {number(y)}h18")
        area = f"M{number(x - 9)} {number(y - 5)}h18v10h-18Z"
        return drawn + (tag("path", class_=f"band f-{role}", d=area) if "band" in mark else "")
    if mark == "rings":
        return tag("circle", class_=f"hollow s-{role}", cx=x, cy=y, r=DOT)
    if mark == "triangles" or (mark == "rug" and role == "running"):
        return tag("path", class_=f"hollow s-{role}", d=triangle(x, y))
    if mark in ("rug", "crosses"):
        return tag("path", class_=f"cross s-{role}", d=cross(x, y))
    if mark == "lane":
        return tag("rect", class_=f"hollow s-{role}" if role == "running" else f"f-{role}", x=x - 7, y=y - 4, width=14, height=8)
    if mark in ("bars", "star"):
        form = diamond(x, y) if mark == "bars" else star_path(x, y)
        return tag("path", class_=f"edged f-{role}", d=form)
    return tag("circle", class_=f"f-{role}", cx=x, cy=y, r=DOT)
