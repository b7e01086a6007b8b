"""What all plots share: figures and Axes, colours and sizes, and the range of values that is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ...data.trial import Trial
from ...errors import MethodError
from ...numerics import Array
from ...surrogate.output_transform import middle_and_spread

SavePath = str | PathLike[str]

INK, DOTS, BAD = "#1b4f8f", "#9db4d0", "#c0392b"
SIZE, DPI, FONT = (6.4, 4.2), 200, 12  # inches, dots per inch, points: 1280 x 840 pixels, with text that can be read on a phone
PANELS_SIZE, PANEL_HEIGHT_RATIOS = (6.4, 7.6), (2.3, 1.0, 1.0)  # inches; three panels, one above the other
WIDE = 50.0  # positive values whose largest is more than this factor above the smallest are drawn on a log scale
MAX_SPREADS_SHOWN = 4.0  # bad values further from the median than this are drawn at the edge


def new_axes() -> Any:
    """Axes on a figure outside pyplot: for saving to a file, with or without a display."""
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


def values_of(trials: Sequence[Trial]) -> Array:
    """The trials' values as an array."""
    return np.array([trial.value for trial in trials], dtype=float)


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


def mark_on_axis(ax: Any, x: Array, marker: str, label: str, **style: Any) -> None:
    """Mark trials that have no value on the x axis."""
    ax.plot(
        x, np.zeros(len(x)), marker, markersize=7, markeredgewidth=1.8, label=label, zorder=4,
        transform=ax.get_xaxis_transform(), clip_on=False, linestyle="none", **style,
    )  # fmt: skip


def time_unit(seconds: float) -> tuple[float, str]:
    """The scale and the unit of a time axis: seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return 1.0, "s"
    return (60.0, "min") if seconds < 7200 else (3600.0, "h")
