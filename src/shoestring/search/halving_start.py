"""The start of a search along learning curves: space-filling runs for the target, most of which end after their first epochs.

Asynchronous successive halving (Li et al. 2020, "A system for massively parallel hyperparameter tuning"), without a plan of how
many go on: at the rungs target / ETA^k a run goes on if its value is among the best 1 / ETA of those that have got there. The
best so far always goes on. So a few full runs show what the best configs reach, and many short ones show where to look.

Why: on the tuning tables of recorded curves the regret at a twentieth, a tenth and a quarter of the budget was 1.94, .95 and .50
with this start, and 3.41, 1.20 and .52 with runs of fixed lengths (48 runs each). A longer start was no better.

It needs a budget in cost or time (else a run of one epoch counts as much as a full one), reports, and trials that ask
``trial.should_stop()``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.intermediate import SAME_FIDELITY
from ..data.trial import State, Suggestion, Trial
from ..surrogate.curves_study import points_of, traced_fidelity
from .base import SearchContext
from .initial_design import costs_are_known, linear_cost, space_filling
from .pruning import PruningForecast

ETA = 3.0
LENGTH = 2  # runs, in units of the study's initial design
LARGEST_RUN = 0.1  # of what is left of the budget: where a full run is expected to cost more, runs have fixed lengths
RAN_IN_VAIN = 3  # runs of this start that all reached the target: it seems that trials do not ask whether to stop
PLAN = {"start": "halving"}


def halving_suggestion(context: SearchContext) -> Suggestion | None:
    """The next run of the start; None where it does not apply, and when it is over."""
    history, data = context.history, context.data
    ended = data.finished + len(data.failed)
    count = LENGTH * context.initial
    number = ended + len(data.pending)
    if number >= count or len(context.space.fidelities) != 1 or not context.cost_limited or not costs_are_known(context):
        return None
    if traced_fidelity(history.trials, context.space) is None or runs_are_never_stopped(context):
        return None
    u = space_filling(context)
    if linear_cost(context, u[None, :])[0] > math.log(max(LARGEST_RUN * context.affordable, 1e-300)):
        return None
    why = f"space-filling start, {number + 1} of {count}: it goes on while it is among the best third"
    return Suggestion(context.space.decode(u), by="Halving", why=why, plan=PLAN)


def runs_are_never_stopped(context: SearchContext) -> bool:
    """Whether several runs of this start have reached the target, and none was stopped before."""
    done = [trial for trial in context.history.trials if trial.state is State.DONE and is_start(trial)]
    return not context.history.table.pruned and len(done) >= RAN_IN_VAIN


def is_start(trial: Trial) -> bool:
    """Whether a trial is a run of this start."""
    return trial.suggestion.get("plan") == PLAN


@dataclass(frozen=True, kw_only=True)
class HalvingForecast(PruningForecast):
    """Where a run stands among those that have got as far; nothing is said about its chance to become the best.

    rank, count   its place among so many runs, its own included: 1 is the best
    """

    probability: float = math.nan
    rank: int
    count: int

    @property
    def should_prune(self) -> bool:
        return self.rank > max(1, math.floor(self.count / ETA))

    @property
    def reason(self) -> str:
        return f"its value is number {self.rank} of the {self.count} runs that have got as far"


def halving_forecast(context: SearchContext, trial: Trial, reports: Sequence[Mapping[str, Any]]) -> HalvingForecast | None:
    """The forecast for a run of this start at a rung; None between rungs."""
    space = context.space
    name = next(iter(space.fidelities))
    goal, sign = float(space.target[name]), -1.0 if context.history.maximize else 1.0
    own = points_of(reports, name, goal)
    if not own:
        return None
    now = max(own)
    before = max((time for time in own if time < now), default=0.0)
    if now > 1.0 - SAME_FIDELITY or rung_of(now) == rung_of(before):
        return None
    others = []
    for other in context.history.trials:
        points = points_of(other.reports, name, goal) if other.number != trial.number else {}
        as_far = [time for time in points if time <= now + SAME_FIDELITY]
        if as_far and max(points) >= now - SAME_FIDELITY:
            others.append(sign * points[max(as_far)])
    rank = 1 + int(np.sum(np.array(others) < sign * own[now]))
    return HalvingForecast(rank=rank, count=len(others) + 1)


def rung_of(time: float) -> float:
    """The highest rung that a run has reached, as the k of target / ETA^k; infinite before its first epoch."""
    return math.inf if time <= 0.0 else float(math.ceil(-math.log(time + SAME_FIDELITY) / math.log(ETA)))
