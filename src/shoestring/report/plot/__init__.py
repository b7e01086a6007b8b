"""Plots of a study. They need matplotlib (``pip install "shoestring[plots]"``).

Each function takes a Result or a Study, and ``path=`` (the file to save to) or ``ax=`` (the Axes to draw on), and returns the
Axes. ``slice`` and ``lookahead`` have several panels: they take and return a list of Axes. With a path the plot is made without
pyplot, so that no display is needed. The matplotlib backend is never changed, and no window is opened.
"""

from __future__ import annotations

from ..views.base import WIDE
from .contour import contour
from .convergence import convergence, history
from .costs import costs, pareto
from .lookahead import lookahead
from .parallel_coordinates import parallel
from .sensitivity import importance, slice
from .spending import compare, ladder
from .stopping import stopping
from .style import BAD, DOTS, DPI, FONT, INK, SIZE, new_axes
from .timeline import timeline

__all__ = [
    "history", "convergence", "importance", "slice", "contour", "parallel", "timeline",
    "pareto", "costs", "ladder", "stopping", "lookahead", "compare",
    "new_axes", "INK", "DOTS", "BAD", "SIZE", "DPI", "FONT", "WIDE",
]  # fmt: skip
