"""Confirmation: the last of a budget, kept for one evaluation of what is recommended at the target fidelity.

A search over fidelities may end with a recommendation that was never evaluated. With ``confirm=True`` the study stops a little
earlier and finds out. What is kept is the predicted cost of what would be confirmed now. If that does not fit in the end, the
next best config that does is evaluated. Where there is nothing to confirm, the search goes on with what was kept, one trial for
each worker at a time. After each time it is looked again whether there is something to confirm.

After a confirmation the search goes on while another one fits beside it. What is left then is not used: a few more cheap trials
may make another config look best, and that could not be evaluated any more. So no more is kept than is needed: the margin is a
standard deviation of the predicted cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._format import amount
from ..budget import Budget
from ..data.trial import State, Trial
from ..numerics import Array
from ..search.base import MIN_COSTS_FOR_PREDICTION, SearchContext
from ..search.recommend import CONFIRMS, RecommendedPoint, affordable_alternative, recommend
from ..space.space import Config
from ..state.suggester import Suggester, price_of_a_second
from ..termination.base import Verdict

MAX_CONFIRMATIONS = 3  # in a row: a confirmation that disappoints makes another recommendation
MAX_COST_MARGIN = 1.25  # with few data a cost model says little of how far it is off: about so much after a dozen trials


@dataclass(frozen=True)
class ToConfirm:
    """The config to evaluate at the target, or None and why: in words, and whether the rest is free for the search."""

    config: Config | None
    why_not: str = ""
    search_on: bool = False


def without_confirmation(suggester: Suggester, budget: Budget) -> Budget:
    """The budget without what a confirmation is expected to take."""
    price = confirmation_price(suggester, budget)
    trials = None if budget.trials is None else max(budget.trials - 1, 1)
    cost = None if budget.cost is None else max(budget.cost - price, 1e-9 * budget.cost)
    seconds = budget.seconds
    if seconds is not None:
        seconds = max(seconds - seconds_for(price, suggester), 1e-9 * seconds)
    return replace(budget, trials=trials, cost=cost, seconds=seconds)


def confirmation_price(suggester: Suggester, budget: Budget) -> float:
    """What an evaluation of what would be confirmed now is expected to cost; 0 while nothing is known of costs."""
    context = suggester.context(budget=budget)
    known = context.cost_is_known or len(context.data.log_cost) >= MIN_COSTS_FOR_PREDICTION
    if (budget.cost is None and budget.seconds is None) or not context.data.finished or context.cost is None or not known:
        return 0.0
    with suggester.state.lock:
        found = recommend(context, to_confirm=True)
    if found is None:
        return 0.0
    mean, variance = context.cost.log_cost(context.space.at_target(found.u[None, :]))
    return float(np.exp(mean[0] + min(np.sqrt(variance[0]), np.log(MAX_COST_MARGIN))))


def predicted_costs(context: SearchContext, U: Array) -> Array:
    """The median cost of points at the target fidelity: with few costs the mean is far above it. 0 while none is known."""
    if context.cost is None:
        return np.zeros(len(U))
    return np.asarray(np.exp(context.cost.log_cost(context.space.at_target(U))[0]))


def seconds_for(price: float, suggester: Suggester) -> float:
    """How long a trial of this cost is expected to take; 0 while that is not known."""
    a_second = price_of_a_second(suggester.state.history, suggester.state.settings)
    return price / a_second if a_second else 0.0


def config_to_confirm(suggester: Suggester, budget: Budget) -> ToConfirm:
    """What is worth an evaluation at the target, or the next best config that the budget still allows."""
    state = suggester.state
    history, context = state.history, suggester.context(budget=budget)
    latest = [trial for trial in history if trial.state is not State.ABANDONED][-MAX_CONFIRMATIONS:]  # those are asked again
    if len(latest) == MAX_CONFIRMATIONS and all(is_confirmation(trial) for trial in latest):
        return ToConfirm(None, "the last three trials evaluated what was recommended", search_on=True)
    with state.lock:
        found = recommend(context, to_confirm=True)
    if found is None:
        return ToConfirm(None, "nothing has succeeded that could be confirmed")
    rest, price = what_is_left(suggester, budget), float(predicted_costs(context, found.u[None, :])[0])
    if found.row is not None:
        number = history.having(State.DONE)[found.row].number
        free = price <= rest or not any(map(is_confirmation, history))
        return ToConfirm(None, f"what is recommended was evaluated before (trial {number})", search_on=free)
    if budget.trials is not None and history.trials_used >= budget.trials:
        return ToConfirm(None, "no trial is left to evaluate what is recommended")
    if price <= rest:
        return ToConfirm(state.space.decode(found.u))
    with state.lock:
        other = affordable_alternative(context, lambda U: predicted_costs(context, U) <= rest)
    if other is not None:
        return ToConfirm(state.space.decode(other))
    unit = state.settings.unit
    costs = f"it is expected to cost {amount(price, unit)}, and {amount(max(rest, 0.0), unit)} are left"
    why_not = f"what is recommended was not evaluated at the target: {costs}"
    if not any(map(is_confirmation, history)):
        return ToConfirm(None, why_not, search_on=True)
    with state.lock:  # what would be confirmed is not always what is recommended
        answer = recommend(context)
    return ToConfirm(None, why_not, search_on=answer is None or answer.row is None)


def what_is_left(suggester: Suggester, budget: Budget) -> float:
    """What a trial may cost."""
    history, state = suggester.state.history, suggester.state
    money = np.inf if budget.cost is None else budget.cost - history.spent
    a_second = price_of_a_second(history, state.settings)
    if budget.seconds is None or not a_second:
        return money
    return min(money, (budget.seconds - state.run_status.seconds) * a_second)


def is_confirmation(trial: Trial) -> bool:
    """Whether a trial was asked to confirm a recommendation."""
    return trial.suggestion.get("why") == CONFIRMS


def confirmed_verdict(suggester: Suggester, verdict: Verdict, recommended: RecommendedPoint | None, why_not: str = "") -> Verdict:
    """The verdict of a run, with what the confirmation found, or why there was none."""
    history = suggester.state.history
    last = history[-1] if len(history) and is_confirmation(history[-1]) else None
    number = None
    if recommended is not None and recommended.row is not None:
        number = history.having(State.DONE)[recommended.row].number
    found = why_not
    if number is not None:
        now = last is not None and last.number == number
        found = f"what is recommended was {'then evaluated' if now else f'evaluated before (trial {number})'}"
    if last is not None and last.number != number:
        what = "failed" if last.state is State.FAILED else "was worse than expected"
        found = "; ".join(filter(None, [f"what was recommended was then evaluated, and {what}", found]))
    return replace(verdict, reason=f"{verdict.reason}; {found}") if found else verdict
