"""The budget filter: no trial is started that is not expected to fit into a budget in cost.

For methods that know nothing of costs. A method that looks at the budget itself gives its suggestions an expected cost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..acquisition.optimize.candidates import is_visited, quasi_random
from ..cost.base import CostPosterior
from ..data.trial import Suggestion
from .base import MIN_COSTS_FOR_PREDICTION, SearchContext

CANDIDATES = 512
LOG_COST_TOLERANCE = 1e-3  # a cost that fits but for this, fits


def log_affordable(context: SearchContext) -> float:
    """The logarithm of what the next trial may cost."""
    return float(np.log(context.affordable)) if context.affordable > 0.0 else -np.inf


def limiting_cost(suggestion: Suggestion, context: SearchContext) -> CostPosterior | None:
    """The cost posterior by which a suggestion does not fit into the budget; None where it fits, or where none can tell.

    By the median, not the expected cost: with a few data the latter is so much higher that a good part of a budget stays unused.
    """
    if not context.cost_limited or suggestion.cost is not None or context.far_from_limit:
        return None
    cost = context.cost if context.cost_is_known or len(context.data.log_cost) >= MIN_COSTS_FOR_PREDICTION else None
    if cost is None:
        return None
    median = cost.log_cost(context.space.encode(suggestion.config)[None, :])[0][0]
    return None if median <= log_affordable(context) + LOG_COST_TOLERANCE else cost


def filter_by_budget(suggestion: Suggestion, context: SearchContext) -> Suggestion:
    """The suggestion, or a random one that fits where it is not expected to; NothingFits where there is none."""
    cost = limiting_cost(suggestion, context)
    if cost is None:
        return suggestion
    space, log_left = context.space, log_affordable(context)
    spread = quasi_random(CANDIDATES, len(space), context.rng)
    lower = suggestion.plan is not None or any(suggestion.config[name] != goal for name, goal in space.target.items())
    for pool in (spread, space.at_target(spread)) if lower else (space.at_target(spread),):  # a method that buys low fidelities
        U = space.snap(pool)
        U = U[~is_visited(U, context.visited)]
        expected = cost.log_cost(U)[0]
        fits = U[expected <= log_left]
        if len(fits):
            break
    if not len(fits):
        kind = "trial at the target" if space.fidelities and not lower else "trial"
        raise context.nothing_fits(float(np.exp(expected.min())) if len(U) else None, kind)
    why = f"{suggestion.why}; at random among what fits into the budget"
    return replace(suggestion, config=space.decode(fits[0]), why=why, plan=None)  # another config has no place in the plan
