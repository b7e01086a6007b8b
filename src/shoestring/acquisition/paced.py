"""A budget in cost, spread over the trials to come: spare nothing that there is enough of.

    allowance = left / max(trials - n, FEWEST)     what the next trial may cost if the budget is to last for ``trials`` of them

Where even the highest EI costs no more than that, it is taken: saving would buy nothing. Where it costs more, the choice is
the one of the Gittins index, or the highest EI within the allowance where the index is content with less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..cost.base import expected_log_cost
from ..surrogate.belief import Belief
from .base import Acquisition
from .cost_aware import negative_log_cost
from .gittins import Gittins
from .improvement import LogEI
from .optimize.constrained import maximize_constrained
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

FEWEST = 20  # trials that the rest of a budget is to last for, however many there were


@dataclass(frozen=True)
class PacedGittins(Acquisition):
    """Gittins' choice, or where more may be spent on a trial, the highest EI within that."""

    trials: int = 100
    uses_cost: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return LogEI().surface(belief, rng)

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        thrifty = Gittins()
        if belief.cost is None or belief.spending is None or belief.spending.left <= 0.0:
            return thrifty.select(belief, optimizer)
        allowance = math.log(belief.spending.left / max(self.trials - belief.trials, FEWEST))
        gain = self.averaged_surface(belief, optimizer.rng)
        optimum = optimizer.maximize(gain)
        if expected_log_cost(belief.cost, optimum.u[None, :])[0] <= allowance:
            return Selection(optimum.u, {"log_price": thrifty.log_price(belief)})  # as it was: nothing was priced this time
        chosen = thrifty.select(belief, optimizer)
        if expected_log_cost(belief.cost, chosen.u[None, :])[0] >= allowance:
            return chosen
        u = maximize_constrained(gain, negative_log_cost(belief), -allowance, optimum.U, optimizer.encoding, optimizer.rng, optimizer.visited)
        return chosen if u is None else Selection(u, chosen.warm_start)
