"""The start of a search along learning curves: space-filling runs for the target, most of which end after their first epochs.

Asynchronous successive halving (Li et al. 2020, "A system for massively parallel hyperparameter tuning"), without a plan of how
many go on: at the rungs target / ETA^k, k = RUNGS, ..., 1, a run goes on if its value is among the best 1 / ETA of those that
have got there. The best so far always goes on. So a few long runs show what the best configs reach, and many short ones show
where to look.

Why: on the tuning tables of recorded curves the regret at a twentieth, a tenth and a quarter of the budget was 1.94, .95 and .50
with this start, and 3.41, 1.20 and .52 with runs of fixed lengths (48 runs each). A longer start was no better.

Ranks may mislead: curves cross, or a bias turns their order round. Where complete runs show that, no more runs end early. To have
such evidence, after each initial design's length one run goes on to the target whatever its rank, if too few have got there.

It needs a budget in cost or time (else a run of one epoch counts as much as a full one), reports, and trials that ask
``trial.should_stop()``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.intermediate import SAME_FIDELITY
from ..data.trial import State, Suggestion, Trial
from ..surrogate.curves_evidence import ranks_agree
from ..surrogate.curves_study import traced_fidelity
from .base import SearchContext
from .initial_design import affordable_space_filling, costs_are_known, linear_cost, space_filling
from .pruning import PruningForecast

ETA = 3.0
RUNGS = 4  # the lowest is 1 / 81 of the target: before it, a value of a long run says too little
LENGTH = 2  # runs, in units of the study's initial design
LARGEST_RUN = 0.1  # of what is left of the budget: where a full run is expected to cost more, runs have fixed lengths
SHARE_OF_TRIALS = 8  # at most one in so many of the trials that a budget has room for is a run of the start
CONFIGS_PER_RUN = 10  # a space with fewer is searched without this start, which leaves most of what it tries unfinished
RAN_IN_VAIN = 2  # runs that went on to the target although their rank was too low: it seems that trials do not ask
PLAN = {"start": "halving"}
EVIDENCE = {**PLAN, "evidence": True}  # of a run that goes on to the target whatever its rank

Reports = Sequence[Mapping[str, Any]]


def halving_suggestion(context: SearchContext) -> Suggestion | None:
    """The next run of the start; None where it does not apply, and when it is over."""
    if context.warm_start is not None or not context.prunes or not context.cost_limited or not costs_are_known(context):
        return None
    space, data, spending = context.space, context.data, context.spending
    count, number = LENGTH * context.initial, data.finished + len(data.failed) + len(data.pending)
    if spending is not None and spending.trials is not None:
        count = min(count, int(spending.trials) // SHARE_OF_TRIALS)
    if number >= count or len(space.fidelities) != 1 or space.cardinality() < CONFIGS_PER_RUN * count:
        return None
    if traced_fidelity(context.history.trials, space) is None or trials_do_not_ask(context):
        return None
    u, limit = space_filling(context), math.log(max(LARGEST_RUN * context.affordable, 1e-300))
    if linear_cost(context, u[None, :])[0] > limit:
        u = affordable_space_filling(context, limit)
        if linear_cost(context, u[None, :])[0] > limit:
            return None
    why = f"space-filling start, {number + 1} of {count}: "
    if is_evidence(context, number):
        return Suggestion(space.decode(u), by="Halving", why=why + "it goes on to the target, to see how runs end", plan=EVIDENCE)
    return Suggestion(space.decode(u), by="Halving", why=why + "it goes on while it is among the best third", plan=PLAN)


def is_start(trial: Trial) -> bool:
    """Whether a trial is a run of this start."""
    return trial.suggestion.get("plan") in (PLAN, EVIDENCE)


def is_evidence(context: SearchContext, number: int) -> bool:
    """Whether a run of the start, of which there were ``number``, is to go on to the target whatever its rank."""
    turn, rest = divmod(number + 1, context.initial)
    curves = context.curves_so_far
    return rest == 0 and (curves is None or int(curves.at_target.sum()) < turn)


def trials_do_not_ask(context: SearchContext) -> bool:
    """Whether several runs have reached the target that should have ended at a rung, by the runs before them."""
    name = next(iter(context.space.fidelities))
    found = 0
    for trial in context.history.trials:
        ended = is_start(trial) and trial.state is State.DONE and trial.config[name] == context.space.target[name]
        if ended:
            earlier = [(other.number, other.reports) for other in compared(context) if other.number < trial.number]
            ranked = ranks(context, trial.reports, earlier)
            found += any(each.should_prune for each in ranked) and not goes_on(context, trial)
    return found >= RAN_IN_VAIN


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


def halving_forecast(
    context: SearchContext, trial: Trial, reports: Reports, live: Mapping[int, Reports] | None = None
) -> HalvingForecast | None:
    """The forecast for a run of this start at the highest rung that it has reached; None before the first.

    None too where a run goes on whatever its rank.

    live   what running trials of this process have reported so far
    """
    known = {other.number: other.reports for other in compared(context)} | dict(live or {})
    others = [(number, found) for number, found in known.items() if number != trial.number]
    found = next(ranks(context, reports, others), None)
    return None if found is not None and found.should_prune and goes_on(context, trial) else found


def goes_on(context: SearchContext, trial: Trial) -> bool:
    """Whether a run of the start goes on to the target whatever its rank: as evidence, or since ranks were seen to mislead.

    By the trials before it that have ended.
    """
    if trial.suggestion.get("plan") == EVIDENCE:
        return True
    curves = context.curves_so_far
    return curves is not None and not ranks_agree([points for run, points in curves.ended.items() if run < trial.number])


def compared(context: SearchContext) -> Iterator[Trial]:
    """The trials whose reports count. The config of an interrupted one is asked again, and must not be compared with itself."""
    return (trial for trial in context.history.trials if trial.state is not State.ABANDONED)


def ranks(context: SearchContext, reports: Reports, others: Sequence[tuple[int, Reports]]) -> Iterator[HalvingForecast]:
    """Where a run stands at each rung that it has reached below the target, the highest one first."""
    name = next(iter(context.space.fidelities))
    goal, sign = float(context.space.target[name]), -1.0 if context.history.maximize else 1.0
    for k in range(1, RUNGS + 1):
        at = next((each for each in reports if time_of(each, name, goal) >= ETA**-k - SAME_FIDELITY), None)
        if at is None or time_of(at, name, goal) > 1.0 - SAME_FIDELITY:
            continue
        now = time_of(at, name, goal)
        values = [sign * value for _, found in others if (value := value_at(found, name, goal, now)) is not None]
        yield HalvingForecast(rank=1 + sum(value < sign * float(at["value"]) for value in values), count=len(values) + 1)


def time_of(report: Mapping[str, Any], name: str, goal: float) -> float:
    """When a report was made, as a share of the target; below 0 if it does not say."""
    return float(report["fidelity"][name]) / goal if name in report["fidelity"] else -1.0


def value_at(reports: Reports, name: str, goal: float, time: float) -> float | None:
    """The last value until a time; None if the run has not got so far."""
    if not reports or time_of(reports[-1], name, goal) < time - SAME_FIDELITY:
        return None
    for report in reversed(reports):
        if 0.0 <= time_of(report, name, goal) <= time + SAME_FIDELITY:
            return float(report["value"])
    return None
