"""Replay: whether a study's suggestions can be computed again from what is stored.

Each trial stores what its suggestion was made from (``basis``): which trials it has ``seen`` (the study's clock then), how many
``reports`` there were of those without a result, its ``spending``, its place in a ``batch``, and its ``space`` if the study was
extended. From these, the seed and the code it must come out the same, in any process and with any number of workers.

The same means bit for bit on the same processor and with the same versions of NumPy and SciPy. Another processor may use another
kernel of the linear algebra library, which rounds differently: then numbers may differ by about 1e-15. So a suggestion agrees if
it is within REPLAY_TOLERANCE, and those that are equal bit for bit are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..data.history import History
from ..data.trial import State, Trial
from ..search.base import SearchContext
from ..search.batch import suggest_many
from ..search.budget_filter import filter_by_budget
from ..search.random import Random
from ..space.space import Config, Space
from ..storage.base import StoredTrial
from ..surrogate.belief import Spending
from .suggester import Suggester

REPLAY_TOLERANCE = 1e-6  # of a parameter's range: rounding is amplified by the search for a maximum, but never as far as this


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    checked           suggestions that were computed again;   passed_over  trials that were not suggested: enqueued or added
    first_difference  the first trial that comes out differently, and how; None if there is none
    identical         suggestions that are equal bit for bit: the others differ by less than REPLAY_TOLERANCE
    """

    checked: int
    passed_over: int
    first_difference: tuple[int, str] | None
    identical: int = 0


def replay(suggester: Suggester) -> Replay:
    """Compute every suggestion again, in order, until one differs."""
    state, checked, passed_over, identical = suggester.state, 0, 0, 0
    stored = state.storage.changes_since(state.study, 0).trials
    for trial in [each.trial for each in stored]:
        if "seen" not in trial.basis:
            passed_over += 1
            continue
        config, again = as_suggested(trial), suggest_again(suggester, trial, stored)
        checked += 1
        identical += config == again
        if config != again and not agree(config, again, suggester.state.spaces[-1]):
            return Replay(checked, passed_over, (trial.number, describe_difference(config, again)), identical)
    return Replay(checked, passed_over, None, identical)


def agree(one: Config, other: Config, space: Space) -> bool:
    """Whether two configs are the same but for rounding: each number by its coordinate in the unit cube."""
    if one.keys() != other.keys():
        return False
    return bool(np.abs(space.encode(one) - space.encode(other)).max(initial=0.0) <= REPLAY_TOLERANCE)


def as_suggested(trial: Trial) -> Config:
    """The config as it was suggested, also of a trial that was pruned before it got there."""
    return {**trial.config, **trial.suggestion.get("asked", {})}


def suggest_again(suggester: Suggester, trial: Trial, stored: Sequence[StoredTrial]) -> Config:
    context = context_then(suggester, trial, stored)
    method = Random() if trial.basis.get("effort") == "random" else suggester.method
    if "batch" in trial.basis:
        place, count = trial.basis["batch"]
        found = suggest_many(method, context, count)[place]
    else:
        found = filter_by_budget(method.suggest(context), context)
    config: Config = found.config
    return config


def context_then(suggester: Suggester, trial: Trial, stored: Sequence[StoredTrial]) -> SearchContext:
    """All that the method could look at when it suggested the trial."""
    past, spaces = known_at(stored, trial.basis["seen"], trial.basis.get("reports", {})), suggester.state.spaces
    space = spaces[min(trial.basis.get("space", 0), len(spaces) - 1)]
    history = History(tuple(past), space, suggester.state.settings.maximize)
    spending = trial.basis.get("spending")
    effort: Literal["full", "reduced"] = "reduced" if "effort" in trial.basis else "full"
    context = replace(suggester.context(history, effort=effort), spending=None if spending is None else Spending(*spending))
    return replace(context, prunes=trial.basis.get("prunes", True))


def known_at(stored: Sequence[StoredTrial], clock: int, reports: Mapping[str, int]) -> Iterable[Trial]:
    """The trials as they were at an earlier clock; ``reports`` as ``reports_seen`` gave them then."""
    for each in stored:
        trial, (opened, abandoned, closed) = each.trial, each.clocks
        if opened > clock:
            return
        count = reports.get(str(trial.number), 0)
        if closed is not None and closed <= clock:
            yield trial
        elif abandoned is not None and abandoned <= clock:
            yield trial if trial.state is State.ABANDONED else without_result(trial, State.ABANDONED, count)
        else:
            yield without_result(trial, State.RUNNING, count)


def without_result(trial: Trial, state: State, count: int) -> Trial:
    """A trial as it was before its result was known, when it had reported ``count`` times."""
    fidelity = trial.suggestion.get("asked", trial.fidelity)  # of one that was pruned, what it was asked for
    suggestion = {name: value for name, value in trial.suggestion.items() if name not in ("asked", "stopped")}
    config, reports = {**trial.config, **fidelity}, trial.reports[:count]
    return Trial(trial.number, config, state, fidelity=fidelity, suggestion=suggestion, asked_at=trial.asked_at, reports=reports)


def describe_difference(stored: Config, again: Config) -> str:
    """lr was 0.013 and is 0.012"""
    changed = [name for name in {**stored, **again} if stored.get(name) != again.get(name)]
    return "; ".join(f"{name} was {shown(stored, name)} and is {shown(again, name)}" for name in changed)


def shown(config: Config, name: str) -> Any:
    return repr(config[name]) if name in config else "not there"
