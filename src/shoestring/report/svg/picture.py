"""``draw``: the picture of a view, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .charts import Drawn, View, bars, chart, lanes, panels
from .elements import FONT, WIDTH, cut, label, number, safe, tag, text_width, wrapped
from .heatmap import heatmap
from .line_bundle import line_bundle
from .palette import CSS
from .scales import LINE

KINDS: dict[str, Callable[[View], Drawn]] = {
    "chart": chart, "panels": panels, "bars": bars, "heatmap": heatmap, "parallel": line_bundle, "timeline": lanes,
}  # fmt: skip
MAX_RUNNING_SHOWN = 8


def draw(view: Mapping[str, Any], *, standalone: bool = False) -> str:
    """The picture of a view as an SVG element, for the body of a page that has ``CSS`` in its style sheet.

    standalone   with the style sheet in it: for a file of its own
    """
    if view.get("empty"):
        content, height = empty(str(view["empty"]))
    elif view["kind"] == "facts":
        content, height = facts(view)
    else:
        content, height = KINDS[view["kind"]](view)
    style = tag("style", safe(CSS)) if standalone else ""
    words = tag("title", safe(str(view["title"]))) + tag("desc", safe(str(view["caption"])))
    return tag(
        "svg", words + style + content, xmlns="http://www.w3.org/2000/svg", class_=f"st-chart st-{view['kind']}", role="img",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}", data_view=str(view.get("name", "")),
    )  # fmt: skip


def empty(why: str) -> Drawn:
    """A sentence in place of a picture."""
    lines = wrapped(why, WIDTH - 40.0)
    height = LINE * (len(lines) + 3)
    parts = [label(line, 0.5 * WIDTH, LINE * (place + 2.2), class_="note") for place, line in enumerate(lines)]
    return "".join(parts), height


def facts(view: View) -> Drawn:
    """Facts in rows: the label, and the text beside it."""
    found = [(each["label"], each["text"]) for each in view["facts"]]
    for each in view["running"][:MAX_RUNNING_SHOWN]:
        found.append((f"trial {each['number']}", f"for {each['elapsed_text']}, predicted cost {each['predicted_text']}"))
    left = min(max((text_width(name) for name, _ in found), default=0.0) + 16.0, 0.5 * WIDTH)
    parts, y = [], 1.4 * LINE
    for name, text in found:
        parts.append(label(cut(name, left - 12.0), 4, y, anchor="start", class_="note", full=name))
        for line in wrapped(text, WIDTH - left - 8.0) or [""]:
            parts.append(label(line, left, y, anchor="start", class_="name"))
            y += LINE
        y += 0.25 * FONT
    return "".join(parts), y
