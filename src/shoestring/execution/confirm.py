"""Confirmation: the last of a budget, kept for one evaluation of what is recommended at the target fidelity.

A search over fidelities may end with a recommendation that was never evaluated. With ``confirm=True`` the study stops a little
earlier and finds out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..budget import Budget
from ..data.trial import State
from ..search.base import MIN_COSTS_FOR_PREDICTION
from ..search.recommend import CONFIRMS, RecommendedPoint
from ..space.space import Config
from ..state.suggester import Suggester, price_of_a_second
from ..termination.base import Verdict

MAX_CONFIRMATIONS = 3  # a confirmation that disappoints makes another recommendation
COST_MARGIN = 1.25  # cost models are off by about so much after a dozen trials
BEST_CONFIGS_PRICED = 3  # best trials whose config at the target sets what is kept


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
    """What an evaluation of one of the best configs at the target is expected to cost; 0 while nothing is known of costs."""
    context = suggester.context(budget=budget)
    data = context.data
    known = context.cost_is_known or len(data.log_cost) >= MIN_COSTS_FOR_PREDICTION
    if not data.finished or context.cost is None or not known:
        return 0.0
    best = np.argsort(data.y[: data.finished], kind="stable")[:BEST_CONFIGS_PRICED]
    median = np.exp(context.cost.log_cost(context.space.at_target(data.U[best]))[0])  # with few costs the mean is far above it
    return COST_MARGIN * float(median.max())


def seconds_for(price: float, suggester: Suggester) -> float:
    """How long a trial of this cost is expected to take; 0 while that is not known."""
    a_second = price_of_a_second(suggester.state.history, suggester.state.settings)
    return price / a_second if a_second else 0.0


def config_to_confirm(suggester: Suggester, budget: Budget) -> Config | None:
    """The recommended config, if it was not evaluated and an evaluation still fits into the budget."""
    state, found = suggester.state, suggester.recommend(budget=budget)
    if found is None or found.row is not None:
        return None
    history, config = state.history, state.space.decode(found.u)
    if budget.trials is not None and history.trials_used >= budget.trials:
        return None
    if budget.cost is not None or budget.seconds is not None:
        cost = suggester.context(budget=budget).cost
        price = 0.0 if cost is None else float(np.exp(cost.log_cost(state.space.encode(config)[None, :])[0][0]))
        if budget.cost is not None and history.spent + price > budget.cost:
            return None
        if budget.seconds is not None and state.run_status.seconds + seconds_for(price, suggester) > budget.seconds:
            return None
    return config


def confirmed_verdict(suggester: Suggester, verdict: Verdict, recommended: RecommendedPoint | None) -> Verdict:
    """The verdict of a run, with what the confirmation found."""
    history = suggester.state.history
    last = history[-1] if len(history) else None
    if last is None or last.suggestion.get("why") != CONFIRMS:
        return verdict
    if recommended is not None and recommended.row is not None:
        return replace(verdict, reason=f"{verdict.reason}; what is recommended was then evaluated")
    what = "failed" if last.state is State.FAILED else "was worse than expected"
    return replace(verdict, reason=f"{verdict.reason}; what was recommended was then evaluated, and {what}")
