"""The axes of parameters in plots, and what a study or a result knows. The prediction itself is in ``views/prediction``."""

from __future__ import annotations

import math
from typing import Any

from ...search.base import SearchContext
from ...space.parameters import Choice
from ...study import Study
from ..result import Result
from ..views.prediction import ParameterAxis, option_labels
from .style import FONT

MAX_TICKS = 10  # options at an axis that have a label
MAX_TICK_CHARACTERS = 26  # of all options at a horizontal axis: longer texts are turned


def context_of(study: Result | Study) -> SearchContext:
    """What the study knows: now, or for a result at its end."""
    if isinstance(study, Study):
        study.refresh()
        return study.context
    owner: Any = study.study
    found: SearchContext = owner.suggester.context(study.history)
    return found


def apply_axis(axis: ParameterAxis, ax: Any, which: str, limits: tuple[float, float] | None = None) -> None:
    """Set scale, limits, ticks and label of the "x" or "y" axis."""
    if axis.is_log:
        ax.set(**{f"{which}scale": "log"})
    ax.set(**{f"{which}lim": axis.limits() if limits is None else limits})
    getattr(ax, f"set_{which}label")(axis.name, fontsize=FONT)
    if isinstance(axis.parameter, Choice):
        labels = option_labels(axis.parameter)
        shown = range(0, len(labels), math.ceil(len(labels) / MAX_TICKS))
        turned = which == "x" and sum(len(labels[level]) for level in shown) > MAX_TICK_CHARACTERS
        turn = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        getattr(ax, f"set_{which}ticks")(list(shown), [labels[level] for level in shown], **turn)
    elif axis.parameter.whole and not axis.is_log:
        (ax.xaxis if which == "x" else ax.yaxis).get_major_locator().set_params(integer=True)
