"""Pictures of views as SVG: ``draw(view)`` is a text that a page can hold as it is.

    draw(view)   the picture;   CSS  its colours, light and dark, for the page's style sheet
"""

from __future__ import annotations

from .palette import CSS
from .picture import draw

__all__ = ["CSS", "draw"]
