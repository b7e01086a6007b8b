"""A warm start: the results of earlier studies, as far as they fit the space of a new one."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from .._format import plural
from ..data.history import History
from ..data.trial import State, Trial
from ..errors import ConfigError, StudyError
from ..space.space import Config, Space
from .study_state import StudyState

log = logging.getLogger("shoestring")

_BEYOND = re.compile(r"(?P<name>.+?) = .+ (?P<why>lies outside its bounds .*)")


class EarlierStudy(Protocol):
    """What is needed of an earlier study: a Study has it, and a Result has it."""

    @property
    def history(self) -> History: ...


def add_prior(state: StudyState, prior: Iterable[Any]) -> None:
    """Add the finished trials of earlier studies to a study that has none, and say which were left out and why.

    They count as results from elsewhere: they cost this study nothing. Costs are kept only where the unit is the same.
    """
    studies: list[Any] = [prior] if hasattr(prior, "history") else list(prior)
    for each in studies:
        if not isinstance(getattr(each, "history", None), History):
            raise StudyError(f"prior= takes studies or results, not {each!r}; write prior=[st.Study.load('old.db')]")
    if len(state):
        log.info("study %r has %s: prior= is for a new study, so nothing was added", state.name, plural(len(state), "trial"))
        return
    for each in studies:
        name = str(getattr(getattr(each, "study", each), "name", "another study"))
        same_unit = getattr(each, "unit", state.settings.unit) == state.settings.unit
        taken, left_out = 0, Counter[str]()
        if each.history.maximize != state.settings.maximize:
            own = f"this study is to {state.settings.direction}"
            raise StudyError(f"prior=: study {name!r} has values of the other direction: {own}; give direction=, or leave it out")
        for trial in each.history:
            try:
                state.add(adapted(trial, state, name, same_unit))
                taken += 1
            except Unusable as reason:
                left_out[str(reason)] += 1
        why = "; left out: " + ", ".join(f"{count} ({reason})" for reason, count in left_out.items()) if left_out else ""
        costs = "" if same_unit else f"; costs were not taken, since they are in {each.unit}"
        log.info("prior: %s of study %r taken%s%s", plural(taken, "trial"), name, why, costs)


class Unusable(Exception):
    """Why a trial of an earlier study is left out."""


def adapted(trial: Trial, state: StudyState, name: str, same_unit: bool) -> Trial:
    """A trial of an earlier study as a result from elsewhere, in the space of this one."""
    if trial.state not in (State.DONE, State.FAILED):
        raise Unusable(f"{trial.state}")
    config = fitting_config(trial.config, state.space)
    draft = state.draft(config, {"by": "prior", "why": f"trial {trial.number} of study {name!r}"})
    names = ("value", "error", "traceback", "folds", "gradient", "metrics", "attrs", "reports", "seconds", "censored")
    finished = draft.finish(trial.state, **{each: getattr(trial, each) for each in names})
    return replace(finished, added=True, cost=trial.cost if same_unit else None)


def fitting_config(config: Mapping[str, Any], space: Space) -> Config:
    """The config in another space; Unusable if it does not fit.

    A parameter that the new space does not have is unknown to the new objective, so the trial is not one of it.
    """
    extra = [name for name in config if name not in space]
    if extra:
        raise Unusable(f"{extra[0]} is not in the new space")
    try:
        return space.check(config)
    except ConfigError as error:
        bounds = _BEYOND.match(str(error))  # one reason for all values beyond the bounds, not one for each
        raise Unusable(f"{bounds['name']} {bounds['why']}" if bounds else str(error).split(";")[0]) from None
