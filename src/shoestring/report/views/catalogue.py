"""The views by name, computed from a study and kept until it changes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any

from ...data.trial import State
from ...errors import StudyError
from .base import Source, View, ViewedStudy, plain
from .cost_curves import COST_TITLE, FRONT_TITLE, LADDER_TITLE, cost_prediction, fidelity_ladder, front
from .live_line import live_line
from .parameter_effects import IMPORTANCE_TITLE, MAP_TITLE, SLICES_TITLE, contour, parameter_importance, slices
from .progress_curves import best_against_cost, best_against_trials
from .stopping_curve import TITLE as STOPPING_TITLE
from .stopping_curve import stopping_curve
from .trial_lines import TITLE as LINES_TITLE
from .trial_lines import parallel
from .worker_lanes import TITLE as TIMELINE_TITLE
from .worker_lanes import timeline

VIEWS: dict[str, Callable[..., View]] = {
    "live": live_line,
    "best_against_cost": best_against_cost,
    "best_against_trials": best_against_trials,
    "stopping": stopping_curve,
    "front": front,
    "cost_prediction": cost_prediction,
    "importance": parameter_importance,
    "slices": slices,
    "contour": contour,
    "parallel": parallel,
    "fidelity_ladder": fidelity_ladder,
    "timeline": timeline,
}
TITLES = {  # until a picture is drawn: a title may then say more
    "live": "Now", "best_against_cost": "Best value against cost", "best_against_trials": "Best value against trials",
    "stopping": STOPPING_TITLE, "front": FRONT_TITLE, "cost_prediction": COST_TITLE, "importance": IMPORTANCE_TITLE,
    "slices": SLICES_TITLE, "contour": MAP_TITLE, "parallel": LINES_TITLE, "fidelity_ladder": LADDER_TITLE,
    "timeline": TIMELINE_TITLE,
}  # fmt: skip
CHANGING = ("live",)  # with time, so they are not kept
NEEDS_A_MODEL = ("stopping", "importance", "slices", "contour")  # the others are the same with and without a fit
IDLE_SECONDS = 60.0  # a stored study in which nothing runs and nothing has ended for so long does not run
LAST_TRIALS = 100  # of these, one has ended last
MAX_KEPT_VIEWS = 256
_kept: OrderedDict[tuple[Any, ...], View] = OrderedDict()
_lock = Lock()


def view(study: ViewedStudy, name: str, *, fit: bool | None = None, **options: Any) -> View:
    """One picture of a study as plain data, ready for JSON. The name is one of ``VIEWS``.

    fit   whether a model may be fitted for it; None: if the study does not run. Without, only what the trials store is used

    A view is computed once and kept until the study changes, so it is not to be changed by the caller.
    """
    if name not in VIEWS:
        raise StudyError(f"there is no view {name!r}; choose from {', '.join(VIEWS)}")
    source = source_of(study, fit)
    fitted = source.fit and name in NEEDS_A_MODEL
    stopped = source.checked is not None and source.checked.stop
    moment = (study.id, study.state.clock, study.state.table.version, source.unit, stopped, repr(source.rule))
    key = (moment, fitted, name, repr(sorted(options.items())))
    with _lock:
        if key in _kept and name not in CHANGING:
            _kept.move_to_end(key)
            return _kept[key]
    with study.state.lock:
        found: View = plain({"name": name, **VIEWS[name](source, **options)})
    with _lock:
        _kept[key] = found
        while len(_kept) > MAX_KEPT_VIEWS:
            _kept.popitem(last=False)
    return found


def source_of(study: ViewedStudy, fit: bool | None = None) -> Source:
    """What the views of a study are computed from, at this moment."""
    study.refresh()
    now = time.time()
    return Source(
        history=study.log, unit=study.unit, name=study.name, budget=study.budget, rule=study.rule, checked=study.checked,
        halted=study.halted, seconds=study.seconds, fit=is_idle(study, now) if fit is None else fit,
        context=lambda: study.context, now=now,
    )  # fmt: skip


def is_idle(study: ViewedStudy, now: float) -> bool:
    """Whether no process works on a study: nothing runs, and in a storage nothing has ended for a while."""
    history = study.log
    if history.number_of(State.RUNNING):
        return False
    if study.state.heartbeat is None or not len(history):
        return True
    ended = max((trial.asked_at or 0.0) + (trial.seconds or 0.0) for trial in history[-LAST_TRIALS:])
    return now - ended > IDLE_SECONDS


class StudyViews(Mapping[str, View]):
    """What the pictures of a study show, by name: ``study.views["importance"]`` is a dict that is ready for JSON.

    Call it to give options: ``study.views("contour", parameters=["lr", "depth"])``.
    """

    def __init__(self, study: ViewedStudy) -> None:
        self._study = study

    def __call__(self, name: str, *, fit: bool | None = None, **options: Any) -> View:
        return view(self._study, name, fit=fit, **options)

    def __getitem__(self, name: str) -> View:
        if name not in VIEWS:
            raise KeyError(f"there is no view {name!r}; choose from {', '.join(VIEWS)}")
        return view(self._study, name)

    def __iter__(self) -> Iterator[str]:
        return iter(VIEWS)

    def __len__(self) -> int:
        return len(VIEWS)

    def __repr__(self) -> str:
        return f"views of study {self._study.name!r}: {', '.join(VIEWS)}"
