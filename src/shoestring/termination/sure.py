"""The regret bound that two models agree on: the default.

``RegretBound`` as published looks at the best half of the evaluations only. Those say little of how far down the rest of
the space may go, and on the HPOBench tables (the tuning set, GP searcher, tolerance 0.01) a quarter of the runs that it stops
are not within the tolerance; the bound lies below the true regret in two steps of five. Here the bound is the larger of two:

    best half of the evaluations, beta doubled                              everything, beta as it is

On the same runs all that are stopped are within the tolerance, three of four are stopped, and the bound is below the true
regret in one step of seventy. A check costs no more as long as the first bound is above the threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..history import History
from ..space import Space
from .lookout import Lookout
from .regret import Bound, RegretBound, regret_bound

CAUTION = 2.0  # factor of beta for the best half


@dataclass(frozen=True)
class SureBound(RegretBound):
    """``SureBound(tolerance=None, top=0.5, delta=0.1, after=20)``: as ``RegretBound``, with the more careful bound."""

    def bound(self, history: History, space: Space, enough: float = math.inf) -> Bound:
        lookout = Lookout.over(history, space)
        narrow = regret_bound(lookout, self.top, self.delta, enough, caution=CAUTION)
        if narrow.regret > enough:
            return narrow
        wide = regret_bound(lookout, 1.0, self.delta, enough)
        return max(narrow, wide, key=lambda bound: bound.regret)
