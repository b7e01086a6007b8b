"""The map of a value over two parameters: cells in steps of colour, with a bar that says what the colours mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .axes import Frame, draw_frame, draw_legend, legend_entries, make_frame, short_name
from .charts import CHART_HEIGHT, Drawn, View, in_order
from .elements import WIDTH, group, label, number, tag, text_width
from .marks import draw_series
from .palette import LEVELS
from .scales import LINE, Scale, ticks

BAR_WIDTH, BAR_GAP = 14.0, 10.0  # of the bar of colours


def heatmap(view: View) -> Drawn:
    """The map with its trials, a legend above and the bar of colours on the right."""
    cells = view.get("cells")
    keys, used = draw_legend(legend_entries(view["series"]), 8.0, WIDTH - 8.0, 0.0)
    height = CHART_HEIGHT + used
    space = BAR_WIDTH + BAR_GAP + bar_label_width(cells["axis"]) + LINE if cells else 0.0
    frame = make_frame(view["x"], view["y"], left=0.0, top=used, right=WIDTH - space, bottom=height)
    parts = [keys]
    if cells:
        parts.append(draw_cells(cells, frame, view["maximize"]))
        parts.append(draw_colours(cells["axis"], frame, view["maximize"]))
    parts.append(draw_frame(frame, view["x"], view["y"], grid=not cells))
    parts += [draw_series(each, frame.x, frame.y) for each in in_order(view["series"])]
    return "".join(parts), height


def level_of(share: float, maximize: bool) -> int:
    """The step of colour of a value that lies at a share of the range; 0 is the best one."""
    place = 1.0 - share if maximize else share
    return min(int(place * LEVELS), LEVELS - 1)


def draw_cells(cells: Mapping[str, Any], frame: Frame, maximize: bool) -> str:
    """The cells, those of one colour as one path; neighbours in a row are joined."""
    xs, ys = ([scale.at(edge) for edge in edges] for scale, edges in ((frame.x, cells["x_edges"]), (frame.y, cells["y_edges"])))
    scale = Scale.of(cells["axis"], 0.0, 1.0)
    drawn: dict[str, list[str]] = {}
    for row, values in enumerate(cells["values"]):
        levels = ["none" if value is None else f"h{level_of(scale.share(value), maximize)}" for value in values]
        top, bottom = sorted((ys[row], ys[row + 1]))
        for first, last in runs(levels):
            wide = f"M{number(xs[first])} {number(top)}H{number(xs[last + 1])}V{number(bottom)}H{number(xs[first])}Z"
            drawn.setdefault(levels[first], []).append(wide)
    paths = [tag("path", class_=level, d="".join(parts)) for level, parts in sorted(drawn.items())]
    return group(paths, shape_rendering="crispEdges")


def runs(levels: Sequence[str]) -> list[tuple[int, int]]:
    """The first and the last place of each stretch of equal entries."""
    found, first = [], 0
    for place in range(1, len(levels) + 1):
        if place == len(levels) or levels[place] != levels[first]:
            found.append((first, place - 1))
            first = place
    return found


def bar_label_width(axis: Mapping[str, Any]) -> float:
    """The space that the labels of the bar need."""
    scale = Scale.of(axis, 200.0, 0.0)
    return max((text_width(tick.text) for tick in ticks(axis, scale, upright=True)), default=0.0) + 8.0


def draw_colours(axis: Mapping[str, Any], frame: Frame, maximize: bool) -> str:
    """The bar of colours, with labels on its right."""
    left = frame.right + BAR_GAP + 6.0
    scale = Scale.of(axis, frame.bottom, frame.top)
    height = (frame.bottom - frame.top) / LEVELS
    parts = [
        tag("rect", class_=f"h{level_of((place + 0.5) / LEVELS, maximize)}", x=left, y=frame.bottom - (place + 1) * height,
            width=BAR_WIDTH, height=height + 0.5)
        for place in range(LEVELS)
    ]  # fmt: skip
    marks = ticks(axis, scale, upright=True)
    parts += [label(tick.text, left + BAR_WIDTH + 5, tick.at + 0.35 * 12, anchor="start") for tick in marks]
    name = label(short_name(axis["label"], frame.bottom - frame.top + LINE), 0, 0, class_="name", full=axis["label"])
    where = f"translate({number(WIDTH - 0.3 * LINE)} {number(0.5 * (frame.top + frame.bottom))})rotate(-90)"
    return group([*parts, tag("g", name, transform=where)])
