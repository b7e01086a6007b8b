"""Helpers that read data back from a plot."""

from __future__ import annotations

from typing import Any


def line(ax: Any, label: str) -> tuple[list[float], list[float]]:
    """The x and y of the one line with this label."""
    (found,) = (entry for entry in ax.lines if entry.get_label() == label)
    return [float(x) for x in found.get_xdata()], [float(y) for y in found.get_ydata()]


def drawn(ax: Any) -> Any:
    """The Axes, after matplotlib has laid the figure out: this finds mistakes that are hidden until a plot is saved."""
    ax.figure.draw_without_rendering()
    return ax
