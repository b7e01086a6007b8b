"""Cost-adjusted EI: cost counts where there is little to gain, for budgets in trials.

Notation
    EI(x), EI*      expected improvement in the model's units, and the highest of it
    c(x)            the expected cost of an evaluation
    c_first         the mean cost of the first trials
    gain            the improvement above which the cost of a trial of cost c_first does not count

    EI(x) / (1 + (gain / EI*) c(x) / c_first)^power

As long as there is much to gain, this is EI. Once the highest EI has fallen below the gain, it weighs cost as EI_alpha with
alpha = power does. Up to EARLY_TRIALS trials it is EI whatever there is to gain: while few trials are known, a good model of the
objective is worth more than a cheap trial, and the highest EI is not well known.

The form and its three numbers were chosen on tuning problems (``benchmarks.problems.with_costs``), among EI_alpha with a fixed
and a falling alpha, contextual EI, the Gittins index and others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import number_between
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import Acquisition
from .cost_aware import negative_log_cost
from .improvement import LogEI
from .optimize.optimizer import AcquisitionOptimizer, Selection, Surface

EARLY_TRIALS = 20  # trials up to which cost does not count
FIRST_COSTS = 8  # costs whose mean is c_first: those of the initial design, which no method has chosen


@dataclass(frozen=True)
class CostAdjustedEI(Acquisition):
    """Expected improvement, with costs that count more the less there is to gain.

    What ``method="auto"`` uses where costs differ and the budget is in trials.

    gain   the expected improvement above which costs hardly count, in standard deviations of the values
    power  how much they count once there is less to gain than that: alpha in EI / cost^alpha

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> result = st.minimize(lambda c: st.Outcome(1 / c["epochs"], cost=c["epochs"]), space, 9, method=st.CostAdjustedEI())
    >>> result.best.value < 0.1
    True
    """

    gain: float = 0.05
    power: float = 2.0
    uses_cost: ClassVar[bool] = True
    cheap_to_average: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", number_between(self.gain, "CostAdjustedEI: gain", 0, low_included=False))
        object.__setattr__(self, "power", number_between(self.power, "CostAdjustedEI: power", 0))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return LogEI().surface(belief, rng)

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        log_ei = LogEI().averaged_surface(belief, optimizer.rng)
        data, cost = belief.data, belief.cost
        highest = optimizer.maximize(log_ei)
        if cost is None or not len(data.log_cost) or belief.n_trials < EARLY_TRIALS or not math.isfinite(highest.value):
            return Selection(highest.u)
        log_first = math.log(float(np.exp(data.log_cost[:FIRST_COSTS]).mean()))
        weighed = adjusted(log_ei, belief, math.log(self.gain) - highest.value - log_first, self.power)
        return Selection(optimizer.maximize_from(weighed, highest.U).u)


def adjusted(log_gain: Surface, belief: Belief, log_rate: float, power: float) -> Surface:
    """log gain - power log(1 + rate c)."""
    negative_cost = negative_log_cost(belief)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        total, slope = log_gain(U, gradient)
        cheap, d_cheap = negative_cost(U, gradient)
        loss = power * np.logaddexp(0.0, log_rate - cheap)
        if slope is None or d_cheap is None:
            return total - loss, None
        weight = power / (1.0 + np.exp(np.clip(cheap - log_rate, -700.0, 700.0)))
        return total - loss, slope + weight[:, None] * d_cheap

    return value
