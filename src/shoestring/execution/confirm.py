"""The last of a budget, kept for one evaluation of what is recommended at the target fidelity.

A search over fidelities may end with a recommendation that nobody has evaluated. With ``confirm=True`` the study stops a little
earlier and finds out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..budget import Budget
from ..data.trial import State
from ..errors import NothingFits, SpaceExhausted
from ..search.budget_filter import MIN_COSTS_FOR_PREDICTION
from ..search.recommend import CONFIRMS
from ..space.space import Config
from ..termination.base import Verdict

if TYPE_CHECKING:
    from ..study import Study

TIMES = 3  # a confirmation that disappoints makes another recommendation
MARGIN = 1.25  # cost models are off by about so much after a dozen trials
FEW = 3  # best trials whose config at the target sets what is kept


def usable(study: Study, budget: Budget) -> Budget:
    """The budget without what a confirmation is expected to take; the study's own budget becomes that too."""
    price = price_of_an_answer(study)
    trials = None if budget.trials is None else max(budget.trials - 1, 1)
    cost = None if budget.cost is None else max(budget.cost - price, 1e-9 * budget.cost)
    seconds = budget.seconds
    if seconds is not None and study.unit == "s":
        seconds = max(seconds - price, 1e-9 * seconds)
    study.budget = replace(budget, trials=trials, cost=cost, seconds=seconds)
    return study.budget


def price_of_an_answer(study: Study) -> float:
    """What an evaluation of one of the best configs at the target is expected to cost; 0 while nothing is known of costs."""
    context = study.context
    seen = context.data
    if not seen.finished or context.cost is None or not (context.cost_is_known or len(seen.log_cost) >= MIN_COSTS_FOR_PREDICTION):
        return 0.0
    best = study.space.at_target(seen.U[np.argsort(seen.y[: seen.finished], kind="stable")[:FEW]])
    return MARGIN * float(np.exp(context.cost.log_cost(best)[0]).max())  # the median: with few costs the mean is far above it


def confirmed(study: Study, budget: Budget, verdict: Verdict, one: Callable[[], None]) -> Verdict:
    """Evaluate what is recommended (``one`` asks and tells), and what is recommended after that, while the budget allows it."""
    for _ in range(TIMES):
        if (config := unconfirmed(study, budget)) is None:
            break
        study.state.enqueue(config, {"by": "you", "why": CONFIRMS}, first=True)
        try:
            one()
        except (NothingFits, SpaceExhausted):  # others that work on the study were quicker
            break
    found = study.recommend()
    last = study.log[-1] if len(study.log) else None
    if last is None or last.suggestion.get("why") != CONFIRMS:
        return verdict
    if found is not None and found.evaluated:
        return replace(verdict, reason=f"{verdict.reason}; what is recommended was then evaluated")
    what = "failed" if last.state is State.FAILED else "was worse than expected"
    return replace(verdict, reason=f"{verdict.reason}; what was recommended was then evaluated, and {what}")


def unconfirmed(study: Study, budget: Budget) -> Config | None:
    """The recommended config, if it was not evaluated and an evaluation still fits into the budget."""
    found = study.recommend()
    if found is None or found.evaluated:
        return None
    if budget.trials is not None and study.log.counted >= budget.trials:
        return None
    if budget.cost is not None or budget.seconds is not None:
        cost = study.context.cost
        price = 0.0 if cost is None else float(np.exp(cost.log_cost(study.space.encode(found.config)[None, :])[0][0]))
        if budget.cost is not None and study.log.spent + price > budget.cost:
            return None
        seconds = price if study.unit == "s" else 0.0  # costs in another unit say nothing of time
        if budget.seconds is not None and study.seconds + seconds > budget.seconds:
            return None
    return found.config
