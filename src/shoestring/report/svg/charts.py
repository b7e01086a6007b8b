"""Charts with two axes: one of them, or several panels side by side; bars, and bars in lanes over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .axes import Frame, draw_frame, draw_legend, legend_entries, make_frame
from .elements import FONT, WIDTH, cut, group, label, number, tag, text_width, titled
from .marks import draw_series
from .scales import LINE, Scale, ticks

CHART_HEIGHT = 290.0
PANEL_COLUMNS, PANEL_HEIGHT = 2, 190.0
BAR_HEIGHT, BAR_SHARE = 26.0, 0.66
MAX_NAME_WIDTH = 150.0  # of a bar's name
LANE_STATES = ("done", "failed", "abandoned", "running")
ALL_LANES = 200.0  # the height of all lanes together, if they are neither few nor many
MIN_LANE, MAX_LANE, MIN_LANE_WITH_NUMBERS = 3.0, 48.0, 20.0
LANE_SHARE = 0.72  # of a lane that a bar fills
NARROW = 4.0  # a bar with less width has no edge
BEHIND = ("band", "stepband", "bars")  # they are drawn first
BEFORE = ("step", "star")  # they are drawn last

View = Mapping[str, Any]
Drawn = tuple[str, float]  # elements, and the height of the picture


def in_order(series: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Series in the order in which they are drawn: what must be seen comes last."""
    return sorted(series, key=lambda each: 0 if each["mark"] in BEHIND else 2 if each["mark"] in BEFORE else 1)


def chart(view: View) -> Drawn:
    """A chart with a legend above it."""
    keys, used = draw_legend(legend_entries(view["series"]), 8.0, WIDTH - 8.0, 0.0)
    height = CHART_HEIGHT + used
    frame = make_frame(view["x"], view["y"], left=0.0, top=used, right=WIDTH, bottom=height)
    parts = [keys, draw_frame(frame, view["x"], view["y"])]
    parts += [draw_series(each, frame.x, frame.y) for each in in_order(view["series"])]
    return "".join(parts), height


def panels(view: View) -> Drawn:
    """Small charts in two columns, which share the y axis."""
    found = view["panels"]
    keys, used = draw_legend(legend_entries(each for panel in found for each in panel["series"]), 8.0, WIDTH - 8.0, 0.0)
    columns = min(PANEL_COLUMNS, len(found))
    tall = CHART_HEIGHT if len(found) == 1 else PANEL_HEIGHT
    labels = text_width("0.000") + LINE  # more space for the panels on the left, which have the labels
    width = (WIDTH - labels) / columns
    parts = [keys]
    for place, panel in enumerate(found):
        row, column = divmod(place, columns)
        left, right = (0.0, labels + width) if column == 0 else (labels + column * width, labels + (column + 1) * width)
        top = used + row * tall
        frame = make_frame(panel["x"], panel["y"], left=left, top=top, right=right, bottom=top + tall, y_labels=column == 0)
        drawn = [draw_series(each, frame.x, frame.y) for each in in_order(panel["series"])]
        parts.append(group([draw_frame(frame, panel["x"], panel["y"]), *drawn]))
    return "".join(parts), used + tall * -(-len(found) // columns)


def bars(view: View) -> Drawn:
    """Bars from the left, with their names before them and their texts after them."""
    found = view["bars"]
    names = [cut(bar["label"], MAX_NAME_WIDTH, middle=True) for bar in found]
    after = max((text_width(bar["text"]) for bar in found), default=0.0) + 12.0
    left = max((text_width(name) for name in names), default=0.0) + 14.0
    bottom = 6.0 + BAR_HEIGHT * len(found)
    left += LINE if text_width(view["y"]["label"]) <= bottom + LINE else 0.0
    scale = Scale.of(view["x"], left, max(WIDTH - after, left + 80.0))
    marks = ticks(view["x"], scale)
    grid = "".join(f"M{number(tick.at)} 4V{number(bottom)}" for tick in marks)
    parts = [tag("path", class_="grid", d=grid)] if grid else []
    for place, (bar, name) in enumerate(zip(found, names, strict=True)):
        middle = 6.0 + BAR_HEIGHT * (place + 0.5)
        end = scale.at(bar["value"])
        parts.append(label(name, left - 8, middle + 0.35 * 12, anchor="end", class_="name", full=bar["label"]))
        told, tall = titled(f"{bar['label']}: {bar['text']}"), BAR_SHARE * BAR_HEIGHT
        place_of = {"x": left, "y": middle - 0.5 * tall, "width": max(end - left, 1.0), "height": tall, "rx": 2}
        parts.append(tag("rect", told, class_=f"f-{view.get('role', 'best')}", **place_of))
        parts.append(label(bar["text"], max(end, left + 1.0) + 6, middle + 0.35 * 12, anchor="start", class_="name halo"))
    parts.append(tag("path", class_="axis", d=f"M{number(left)} 2V{number(bottom)}"))
    parts += [label(tick.text, tick.at, bottom + LINE, full=tick.full) for tick in marks]
    middle = 0.5 * (scale.start + scale.end)
    room = 2.0 * min(middle, WIDTH - middle)
    parts.append(label(cut(view["x"]["label"], room), middle, bottom + 2.15 * LINE, class_="name", full=view["x"]["label"]))
    if view["y"]["label"] and text_width(view["y"]["label"]) <= bottom + LINE:
        turned = label(view["y"]["label"], 0, 0, class_="name")
        middle = max(0.5 * bottom, 0.5 * text_width(view["y"]["label"]) + 2.0)  # beside few bars, it begins at the top
        parts.append(tag("g", turned, transform=f"translate({number(0.9 * FONT)} {number(middle)})rotate(-90)"))
    return "".join(parts), bottom + 2.6 * LINE


def lanes(view: View) -> Drawn:
    """The timeline: bars in lanes, one lane for each worker, with a legend above them."""
    found, count = view["bars"], view["lanes"]
    states = {bar["state"] for bar in found}
    entries = [{"name": state, "role": state, "mark": "lane", "x": [0]} for state in LANE_STATES if state in states]
    entries += [{"name": "best", "role": "star", "mark": "lane", "x": [0]}] if any(bar["best"] for bar in found) else []
    keys, used = draw_legend(entries, 8.0, WIDTH - 8.0, 0.0)
    tall = min(max(ALL_LANES / count, MIN_LANE), MAX_LANE)
    height = used + 8.0 + tall * count + 2.6 * LINE
    frame = make_frame(view["x"], view["y"], left=0.0, top=used, right=WIDTH, bottom=height)
    parts = [keys, draw_frame(frame, view["x"], view["y"], grid=False)]
    ordered = sorted(found, key=lambda bar: (bar["best"], bar["state"] == "failed"))  # what is rare is drawn last
    return "".join([*parts, *(draw_bar(bar, frame, tall) for bar in ordered)]), height


def draw_bar(bar: Mapping[str, Any], frame: Frame, tall: float) -> str:
    """One bar, with the number of its trial if there is space."""
    left, right = frame.x.at(bar["start"]), frame.x.at(bar["end"])
    middle = frame.bottom - (bar["lane"] - 0.5) * tall
    role = "star" if bar["best"] else bar["state"]
    wide = right - left
    class_ = f"hollow s-{role}" if bar["state"] == "running" else f"f-{role}" + (" edged" if wide > NARROW else "")
    text = None if bar["number"] is None else str(bar["number"])
    place = {"x": left, "y": middle - 0.5 * LANE_SHARE * tall, "width": max(wide, 0.8), "height": LANE_SHARE * tall}
    drawn = tag("rect", titled(bar["text"]), class_=class_, data_trial=text, **place)
    if text and tall >= MIN_LANE_WITH_NUMBERS and wide > text_width(text) + 4.0 and bar["state"] != "running":
        drawn += label(text, 0.5 * (left + right), middle + 0.3 * FONT, class_="inside")
    return drawn
