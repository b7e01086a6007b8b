"""What all plots share: figures and Axes, colours and sizes, and the range of values that is drawn."""

from __future__ import annotations

import math
import textwrap
from os import PathLike
from typing import Any

import numpy as np

from ...errors import MethodError
from ...numerics import Array
from ..views.base import WIDE

SavePath = str | PathLike[str]

INK, DOTS, BAD = "#1b4f8f", "#9db4d0", "#c0392b"
ACCENT, TRIAL_COLOUR, GREY = "#d9731a", "#333333", "#b5b5b5"
PALE = "#f3f6fa"  # the worst values of a surface, where values are colours; the best ones are INK
SIZE, DPI, FONT = (6.4, 4.2), 200, 12  # inches, dots per inch, points: 1280 x 840 pixels, with text that can be read on a phone
PANELS_SIZE, PANEL_HEIGHT_RATIOS = (6.4, 7.6), (2.3, 1.0, 1.0)  # inches; three panels, one above the other
GRID_COLUMNS, GRID_PANEL_HEIGHT, GRID_HEADING = 2, 2.3, 0.7  # small panels side by side; heights in inches
BAND_MARGIN = 0.4  # how far bands are drawn beyond trials and means, as a share of their range
LEGEND_FONT, TITLE_CHARACTERS = FONT - 2, 64  # of a legend outside the plot; per line


def new_axes() -> Any:
    """Axes on a figure outside pyplot: for saving to a file, with or without a display.

    Use it to draw into a plot, or to change it before it is saved.

    >>> ax = st.plot.new_axes()
    >>> dots = ax.plot([1, 2], [3, 4], "o")
    >>> ax.figure.savefig("mine.png")
    """
    return _new_figure(SIZE).add_subplot()


def _new_figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib, which is not installed: pip install "shoestring[plots]"') from None
    return Figure(figsize=size, dpi=DPI, layout="constrained")


def _figure_for(path: SavePath | None, size: tuple[float, float]) -> Any:
    """A figure outside pyplot if there is a path; else one of pyplot, so that notebooks and plt.show() find it."""
    if path is not None:
        return _new_figure(size)
    try:
        from matplotlib import pyplot
    except ImportError:
        return _new_figure(size)  # raises the error that says what is missing
    return pyplot.figure(figsize=size, layout="constrained")


def axes_for(path: SavePath | None, ax: Any) -> Any:
    """The given Axes, or new Axes."""
    return ax if ax is not None else _figure_for(path, SIZE).add_subplot()


def panels_for(path: SavePath | None, ax: Any) -> list[Any]:
    """The given three Axes, or three new ones that share their x axis; the first one is the tallest."""
    if ax is None:
        return list(_figure_for(path, PANELS_SIZE).subplots(3, 1, sharex=True, height_ratios=PANEL_HEIGHT_RATIOS))
    panels = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(panels) != 3:
        raise MethodError(f"ax= must be three Axes here, not {len(panels)}; write ax=pyplot.subplots(3, 1, sharex=True)[1]")
    return panels


def grid_for(path: SavePath | None, ax: Any, count: int) -> list[Any]:
    """The given Axes, one for each of ``count`` panels, or new ones side by side that share their y axis."""
    if ax is not None:
        panels = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(panels) != count:
            what = f"{count} Axes here, one for each parameter, not {len(panels)}"
            raise MethodError(f"ax= must be {what}; or name parameters=[...] for the Axes there are")
        return panels
    columns = min(count, GRID_COLUMNS)
    rows = math.ceil(count / columns)
    figure = _figure_for(path, (SIZE[0], SIZE[1] if count == 1 else GRID_PANEL_HEIGHT * rows + GRID_HEADING))
    panels = list(np.ravel(figure.subplots(rows, columns, sharey=True, squeeze=False)))
    for spare in panels[count:]:
        spare.remove()
    return panels[:count]


def finish_axes(ax: Any, path: SavePath | None, legend: str, size: int = FONT - 1) -> Any:
    """Set ticks, grid, spines and legend as in all plots; save the figure if there is a path."""
    ax.tick_params(labelsize=FONT - 1)
    ax.grid(True, color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc=legend, frameon=True, framealpha=0.85, edgecolor="none", fontsize=size)
    if path is not None:
        ax.figure.savefig(path)
    return ax


def set_title_and_legend(ax: Any, title: str, rows: int = 1, *, in_layout: bool = True) -> None:
    """Set the title and below it the legend, outside the plot: there it hides nothing.

    ``in_layout=False``: the legend may be wider than its Axes, because nothing is beside it.
    """
    handles = ax.get_legend_handles_labels()[0]
    if handles:
        legend = ax.legend(
            loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=math.ceil(len(handles) / rows), fontsize=LEGEND_FONT,
            frameon=False, borderaxespad=0.2, columnspacing=1.4, handlelength=1.6, handletextpad=0.6,
        )  # fmt: skip
        legend.set_in_layout(in_layout)
    pad = 1.65 * LEGEND_FONT * rows + 6 if handles else None
    ax.set_title("\n".join(textwrap.wrap(title, TITLE_CHARACTERS)), fontsize=FONT + 1, loc="left", pad=pad)


def mark_on_axis(ax: Any, x: Array, marker: str, label: str, **style: Any) -> None:
    """Mark trials that have no value on the x axis."""
    ax.plot(
        x, np.zeros(len(x)), marker, markersize=7, markeredgewidth=1.8, label=label, zorder=4,
        transform=ax.get_xaxis_transform(), clip_on=False, linestyle="none", **style,
    )  # fmt: skip


def mark_best(ax: Any, x: float, y: float) -> None:
    """Mark the best trial by a star."""
    ax.plot(
        [x], [y], "*", color=ACCENT, markeredgecolor="white", markeredgewidth=0.8, markersize=15, label="best", zorder=6,
        clip_on=False, linestyle="none",
    )  # fmt: skip


def set_value_axis(ax: Any, core: Array, bands: Array) -> None:
    """Set the y axis so that trials and means (``core``) are seen well; bands may reach far beyond. A log scale if it is wide."""
    wide = bool(core.min() > 0 and core.max() > WIDE * core.min() and bands.min() > 0)
    if wide:
        ax.set_yscale("log")
        core, bands = np.log(core), np.log(bands)
    margin = BAND_MARGIN * max(float(np.ptp(core)), 1e-9 * float(np.abs(core).max()), 1e-300)
    low, high = max(bands.min(), core.min() - margin), min(bands.max(), core.max() + margin)
    edge = 0.05 * max(high - low, margin)
    ends = np.array([min(low, core.min()) - edge, max(high, core.max()) + edge])
    ax.set_ylim(*(np.exp(ends) if wide else ends))


def value_colours(values: Array, maximize: bool, *, worst: str = PALE, log: bool = True) -> tuple[Any, Any]:
    """A colour map from INK (best) to ``worst``, and the matplotlib norm for these values.

    log   whether the norm may be logarithmic: it is if the values are wide
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    colours = LinearSegmentedColormap.from_list("shoestring", [worst, DOTS, INK] if maximize else [INK, DOTS, worst])
    if log and low > 0 and high > WIDE * low:
        return colours, LogNorm(low, high)
    if high <= low:
        low, high = low - 0.5 * max(abs(low), 1e-9), high + 0.5 * max(abs(high), 1e-9)
    return colours, Normalize(low, high)
