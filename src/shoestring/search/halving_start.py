"""The start of a search along learning curves: successive halving of space-filling configs.

One bracket, as Hyperband has them (Li et al. 2018, see ``hyperband``): CONFIGS configs get target / ETA^3 each, the best third of
them three times as much, and so on, until one of them reaches the target. So many configs are seen for the cost of four or five
full runs, before a model is asked. A config that is promoted begins anew, unless its run can go on.

Why: on the tuning tables of recorded curves the regret at a twentieth, a tenth and a quarter of the budget was 1.30, .94 and .45
with it. It was 1.86, 1.29 and .58 where each run went on at once while it was among the best third of those before it, since the
first ones, with none to be compared with, all went on (24 runs each). With 27 configs it was worse than with 15.

Ranks may mislead: curves cross, or a bias turns their order round. So two more configs go to the target: one from the middle
third of the lowest rung and one from the last third, each the one that is expected to cost least. If they end better than those
that were ahead of them, early values mislead (``surrogate.curves_evidence``). With the first of them alone the regret on the
tuning tables was .43 at a quarter, but that on planted curves that cross was three times that of whole runs. With the second
alone it was .59 and 1.9 times.

It needs a budget in cost or time (else a run of one epoch counts as much as a full one) and trials that report. The first trials
show whether they do. The state of the start is read from the history, since each suggestion carries a plan with its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..acquisition.optimize.candidates import is_visited
from ..data.trial import State, Suggestion, Trial
from ..errors import SpaceExhausted
from ..numerics import Array
from ..space.parameters import Fidelity
from ..surrogate.curves_study import traced_fidelity
from .base import SearchContext
from .budget_filter import limiting_cost
from .hyperband import HyperbandState, Job, Rung, resource_amounts
from .initial_design import affordable_space_filling, cheaper_by_names, costs_are_known, linear_cost, space_filling

ETA = 3.0
PROMOTIONS = 3  # the lowest rung is 1 / 27 of the target
CONFIGS = 15  # on the lowest rung
LARGEST_RUN = 0.05  # of what is left of the budget: a config whose full run is expected to cost more is not tried
SHARE_OF_TRIALS = 4  # at most one in so many of the trials that a budget has room for is a run of the start
CONFIGS_PER_RUN = 10  # a space with fewer is searched without this start, which leaves most of what it tries unfinished
MAX_REPLACED = 2  # failed runs of a rung for which the next best configs are promoted
MAX_CONFIGS = 2 * CONFIGS  # on the lowest rung, where workers would else wait for the runs of a rung
SCHEME = "start by halving"
EVIDENCE_RUNS = 2  # the first from the middle third of the lowest rung, the second from the last third
EVIDENCE = "evidence"  # in the plan of the run that goes to the target whatever its rank
WHY = "start by successive halving: "


def halving_suggestion(context: SearchContext) -> Suggestion | None:
    """The next run of the start; None where it does not apply, and when it is over.

    While workers wait for the runs of a rung, further configs are tried on the lowest one. Then a model takes over, and the start
    goes on as soon as the rung has ended.
    """
    space, data = context.space, context.data
    if not context.prunes or not context.cost_limited or len(space.fidelities) != 1:
        return None
    rungs = rungs_of_start(context)
    if rungs is None or space.cardinality() < CONFIGS_PER_RUN * CONFIGS:
        return None
    state, known = HyperbandState(context.history, scheme(rungs)), data.finished + len(data.failed)
    modelled, configs = context.warm_start is not None, len(state.trials(0, 0))
    if not configs and (modelled or known >= CONFIGS):
        return None
    if known and traced_fidelity(context.history.trials, space) is None:
        return None
    if configs < CONFIGS:
        return None if modelled else new_run(context, state, rungs)
    for number in range(1, len(rungs)):
        there = state.trials(0, number)
        lost = min(sum(trial.state is State.FAILED for trial in there.values()), MAX_REPLACED)
        if len(there) >= rungs[number].count + lost:
            continue
        if is_waiting(state, number - 1):
            return None if modelled or configs >= MAX_CONFIGS else new_run(context, state, rungs)
        job = promotion(context, state, rungs, number, rungs[number].count + lost)
        if job is not None and job.promoted is not None:
            rank, among = job.rank
            why = f"{WHY}number {rank} of {among} goes on, to rung {number + 1} of {len(rungs)}"
            return if_it_fits(suggestion(context, job.promoted.config, job, rungs, why), context)
    return None if is_waiting(state, len(rungs) - 1) else evidence_run(context, state, rungs)


def is_waiting(state: HyperbandState, rung: int) -> bool:
    """Whether a run is not over that decides who goes on from a rung. Configs that workers try while they wait do not."""
    return any(not trial.finished and (rung > 0 or config < CONFIGS) for config, trial in state.trials(0, rung).items())


def if_it_fits(run: Suggestion, context: SearchContext) -> Suggestion | None:
    """A run, if it is expected to fit into what is left of the budget; else the start is over."""
    return run if limiting_cost(run, context) is None else None


def scheme(rungs: list[Rung]) -> str:
    """The start as a text: a space that was extended has other rungs."""
    return f"{SCHEME}: {', '.join(f'{rung.amount:g}' for rung in rungs)}"


def rungs_of_start(context: SearchContext) -> list[Rung] | None:
    """From the lowest to the target; None where there are too few amounts, or where the budget has room for too few trials."""
    (name,) = context.space.fidelities
    fidelity, spending = context.space[name], context.spending
    assert isinstance(fidelity, Fidelity)
    if fidelity.goal <= 0:
        return None
    amounts = sorted(set(resource_amounts(fidelity, name, ETA)[: PROMOTIONS + 1]))
    if len(amounts) < 2:
        return None
    rungs = [Rung(math.ceil(CONFIGS / ETA**k), amount) for k, amount in enumerate(amounts[:-1])] + [Rung(1, amounts[-1])]
    trials = spending.trials if spending is not None else None
    total = sum(rung.count for rung in rungs) + EVIDENCE_RUNS
    return None if trials is not None and SHARE_OF_TRIALS * total > trials else rungs


def new_run(context: SearchContext, state: HyperbandState, rungs: list[Rung]) -> Suggestion | None:
    """A new config on the lowest rung; None where full runs are too expensive for this start."""
    tried = [trial for trial in context.history.trials if trial.state is not State.ABANDONED]
    if tried:  # a config is new if it was tried at no fidelity
        context = replace(context, visited=context.visited.with_points(targets(context, tried)))
    try:
        u = space_filling(context)
    except SpaceExhausted:
        return None
    if not costs_are_known(context):
        u, _ = cheaper_by_names(context, u)
    else:
        limit = largest_log_cost(context)
        if full_run_cost(context, u[None, :], rungs)[0] > limit:
            u = affordable_space_filling(context, limit, lambda pool: full_run_cost(context, pool, rungs))
            if full_run_cost(context, u[None, :], rungs)[0] > limit:
                return None
    job = state.new_configuration(0)
    why = f"{WHY}config {job.config + 1} of {max(CONFIGS, job.config + 1)} on the lowest rung; the best third go on"
    return suggestion(context, context.space.decode(u), job, rungs, why)


def promotion(context: SearchContext, state: HyperbandState, rungs: list[Rung], number: int, size: int) -> Job | None:
    """Of the ``size`` best on the rung below, the first that is not on this one.

    Configs whose full runs are too expensive do not count, unless all are.
    """
    ranked, below, there = state.ranked(0, number - 1), state.trials(0, number - 1), state.trials(0, number)
    if not ranked:
        return None
    points = targets(context, [below[config] for config in ranked])
    fits = full_run_cost(context, points, rungs) <= largest_log_cost(context)
    kept = [config for config, fit in zip(ranked, fits, strict=True) if fit or config in there] if fits.any() else ranked
    here = points.copy()
    here[:, resource(context)] = unit_of(context, rungs[number])
    done = dict(zip(ranked, is_visited(context.space.snap(here), context.visited), strict=True))  # it may have been enqueued
    config = next((config for config in kept[:size] if config not in there and not done[config]), None)
    return None if config is None else Job(0, number, config, below[config], (ranked.index(config) + 1, len(ranked)))


def targets(context: SearchContext, trials: list[Trial]) -> Array:
    """The points of trials' configs at the target."""
    return context.space.at_target(np.array([context.space.encode(trial.config) for trial in trials]))


def largest_log_cost(context: SearchContext) -> float:
    """The logarithm of what a full run of this start may cost."""
    return math.log(max(LARGEST_RUN * context.affordable, 1e-300))


def full_run_cost(context: SearchContext, U: Array, rungs: list[Rung]) -> Array:
    """Log of the expected cost at the target, at most in proportion to that of the lowest rung.

    While all runs have ended on that rung, a model of costs cannot know how they grow, and expects too much.
    """
    if not costs_are_known(context):  # costs of 0 count for nothing
        return np.full(len(U), -np.inf)
    low, expected = U.copy(), linear_cost(context, U)
    if context.cost_is_known:
        return expected
    low[:, resource(context)] = unit_of(context, rungs[0])
    return np.minimum(expected, linear_cost(context, low) + math.log(rungs[-1].amount / rungs[0].amount))


def resource(context: SearchContext) -> int:
    """The column of the fidelity."""
    (name,) = context.space.fidelities
    return context.space.names.index(name)


def unit_of(context: SearchContext, rung: Rung) -> float:
    """A rung's amount of the resource, in the unit cube."""
    (name,) = context.space.fidelities
    return float(context.space[name].to_unit(rung.amount))


def evidence_run(context: SearchContext, state: HyperbandState, rungs: list[Rung]) -> Suggestion | None:
    """A config from the middle or the end of the lowest rung, at the target, whatever its rank; None if there were enough."""
    count = sum(bool(plan_of(trial).get(EVIDENCE)) for trial in context.history.trials if trial.state is not State.ABANDONED)
    if count >= EVIDENCE_RUNS:
        return None
    ranked, lowest, ended = state.ranked(0, 0), state.trials(0, 0), state.trials(0, len(rungs) - 1)
    third = len(ranked) / ETA
    part = ranked[math.floor((count + 1) * third) : math.ceil((count + 2) * third)]  # the middle third, then the last one
    candidates = [config for config in part if config not in ended]
    if len(ranked) < ETA or not candidates:
        return None
    cost = full_run_cost(context, targets(context, [lowest[config] for config in candidates]), rungs)
    config = candidates[int(cost.argmin())]
    rank = ranked.index(config) + 1
    why = f"{WHY}number {rank} of {len(ranked)} goes to the target too, to see how runs end"
    job = Job(0, len(rungs) - 1, config, lowest[config], (rank, len(ranked)))
    return if_it_fits(suggestion(context, lowest[config].config, job, rungs, why, evidence=True), context)


def suggestion(
    context: SearchContext, config: Mapping[str, Any], job: Job, rungs: list[Rung], why: str, *, evidence: bool = False
) -> Suggestion:
    """A config on the rung of a job."""
    (name,) = context.space.fidelities
    plan = job.plan(scheme(rungs)) | ({EVIDENCE: True} if evidence else {})
    return Suggestion({**config, name: rungs[job.rung].amount}, by="Halving", why=why, plan=plan)


def plan_of(trial: Trial) -> Mapping[str, Any]:
    return trial.suggestion.get("plan") or {}


def is_start(trial: Trial) -> bool:
    """Whether a trial is a run of this start: it ends where it was asked to end. Earlier versions wrote another plan."""
    return str(plan_of(trial).get("scheme", "")).startswith(SCHEME) or plan_of(trial).get("start") == "halving"
