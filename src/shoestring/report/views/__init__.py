"""What the pictures of a study show, as plain data: one source for the page, the report and the plots.

    view(study, name, fit=None, **options)   one picture as a dict that is ready for JSON
    VIEWS                                    the pictures by name, in the order in which they are shown
    TITLES                                   their titles
    compare(groups)                          several studies in one picture
"""

from __future__ import annotations

from .catalogue import TITLES, VIEWS, StudyViews, view
from .comparison import compare

__all__ = ["TITLES", "VIEWS", "StudyViews", "compare", "view"]
