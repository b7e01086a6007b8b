"""Plots of a study. They need matplotlib (``pip install "shoestring[plots]"``).

Each function takes a Result or a Study, and ``path=`` (the file to save to) or ``ax=`` (the Axes to draw on), and returns the
Axes. With a path the plot is made without pyplot, so that no display is needed. The matplotlib backend is never changed, and no
window is opened.
"""

from __future__ import annotations

from .convergence import convergence
from .costs import costs, pareto
from .lookahead import lookahead
from .stopping import stopping
from .style import BAD, DOTS, DPI, FONT, INK, SIZE, WIDE, new_axes

__all__ = [
    "convergence", "pareto", "costs", "stopping", "lookahead",
    "new_axes", "INK", "DOTS", "BAD", "SIZE", "DPI", "FONT", "WIDE",
]  # fmt: skip
