"""A budget in cost, kept by methods that know nothing of costs: no trial is started that is not expected to fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._format import amount
from ..acquisition.optimize.candidates import known, quasi_random
from ..data.trial import Suggestion
from ..errors import NothingFits
from .base import Situation

ENOUGH = 3  # costs from which on a prediction is worth acting on
CANDIDATES = 512
ROUNDING = 1e-3  # what fits but for this, fits


def keep_to_budget(suggestion: Suggestion, situation: Situation) -> Suggestion:
    """The suggestion, or a random one that fits where it is not expected to; NothingFits where there is none.

    A suggestion with an expected cost comes from a method that has looked at the budget itself.
    """
    spending = situation.spending
    if spending is None or not situation.cost_limited or suggestion.cost is not None:
        return suggestion
    cost = situation.cost if situation.cost_is_known or len(situation.seen.gamma) >= ENOUGH else None
    if cost is None:
        return suggestion
    space, left = situation.space, spending.left - situation.reserved
    log_left = float(np.log(left)) if left > 0.0 else -np.inf
    # the median, not the expected cost: with a few data the latter is so much higher that a good part of a budget would be left
    if cost.log_cost(space.encode(suggestion.config)[None, :])[0][0] <= log_left + ROUNDING:
        return suggestion
    spread = quasi_random(CANDIDATES, len(space), situation.rng)
    lower = suggestion.plan is not None or any(suggestion.config[name] != goal for name, goal in space.target.items())
    for pool in (spread, space.at_target(spread)) if lower else (space.at_target(spread),):  # a method that buys low fidelities
        U = space.snap(pool)
        U = U[~known(U, situation.taken)]
        expected = cost.log_cost(U)[0]
        fits = U[expected <= log_left]
        if len(fits):
            break
    if not len(fits):
        there = f"{amount(max(left, 0.0), situation.unit)} of the budget are left"
        least = amount(float(np.exp(expected.min())), situation.unit) if len(U) else ""
        kind = "trial at the target" if space.fidelities and not lower else "trial"
        raise NothingFits(f"{there}, and the cheapest {kind} is expected to cost {least}" if least else there)
    why = f"{suggestion.why}; at random among what fits into the budget"
    return replace(suggestion, config=space.decode(fits[0]), why=why, plan=None)  # another config has no place in the plan
