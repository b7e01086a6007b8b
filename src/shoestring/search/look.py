"""From a situation to a belief about it, and to where to look."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..acquisition.maximize import Seeker
from ..surrogate.belief import Belief, form_belief
from .method import Situation

AROUND = 5  # best trials whose neighbourhood is searched
CHAIN = 0xC4A1  # hyperparameters are drawn with randomness of their own: the search for the maximum does not depend on it


def believe(situation: Situation, *, costs: bool) -> Belief:
    """The model fitted to what was seen; with ``costs``, the cost model too."""
    cost, spending = situation.cost if costs else None, situation.spending
    if spending is not None and spending.in_cost and cost is not None:
        spending = replace(spending, spent=spending.spent + situation.reserved)  # running trials will be paid for too
    return form_belief(
        situation.seen, situation.encoding, situation.model, situation.known, cost, spending,
        np.random.default_rng([situation.seed, situation.number, CHAIN]), situation.seed,
    )


def seeker_for(situation: Situation) -> Seeker:
    seen = situation.seen
    return Seeker(situation.encoding, situation.rng, situation.taken, seen.U[seen.best(AROUND)])
