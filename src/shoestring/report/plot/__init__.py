"""Pictures of a study; each function draws one kind, and needs matplotlib (``pip install "shoestring[plots]"``).

All take a Result or a Study, and ``path=`` (save there) or ``ax=`` (draw there); they return the Axes. With a path the
picture is made without pyplot, so it needs no display; your backend is never changed and nothing is ever shown for you.
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
