"""Improvement weighed against cost: EI per unit cost, EI_alpha, EI-cool, contextual EI.

Source: Guinet, Perrone, Archambeau, "Pareto-efficient acquisition functions for cost-aware Bayesian optimization" (2020).

    EI_alpha(x) = EI(x) / c(x)^alpha                                                        (equation 1)
    EI-cool: alpha = (tau - tau_k) / (tau - tau_init), from 1 at the start to 0 at the end of the budget tau
    CEI_lam(x) = -c(x) where EI(x) >= (1 - lam) max EI, else -infinity                      (equation 2)

c(x) is the expected cost E[c] = exp(m + v / 2) of the belief's cost model, everything in logarithms. While nothing is known
of costs, each of these is plain EI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import plain
from ..cost.base import expected_log_cost, expected_log_cost_with_gradient
from ..errors import MethodError
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import Acquisition
from .improvement import LogEI
from .optimize.constrained import maximize_constrained
from .optimize.optimizer import AcquisitionOptimizer, Optimum, Selection, Surface

NO_BUDGET = '{} needs to know the budget: Study(..., budget="10m"), or minimize(f, budget="10m")'


def negative_log_cost(belief: Belief) -> Surface:
    """-log E[c]."""
    cost = belief.cost
    assert cost is not None

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        if not gradient:
            return -expected_log_cost(cost, U), None
        total, slope = expected_log_cost_with_gradient(cost, U)
        return -total, -slope

    return value


def per_cost(gain: Surface, belief: Belief, alpha: float) -> Surface:
    """log EI - alpha log E[c]."""
    if belief.cost is None or alpha == 0.0:
        return gain
    cheapness = negative_log_cost(belief)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        total, slope = gain(U, gradient)
        cheap, d_cheap = cheapness(U, gradient)
        return total + alpha * cheap, None if slope is None or d_cheap is None else slope + alpha * d_cheap

    return value


@dataclass(frozen=True)
class EIAlpha(Acquisition):
    """EI / cost^alpha: 0 is EI, 1 is EI per unit cost."""

    alpha: float = 0.5
    uses_cost: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", plain(self.alpha))
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 <= self.alpha < math.inf:
            raise MethodError(f"EIAlpha: alpha must be a number >= 0, not {self.alpha!r}")

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return per_cost(LogEI().surface(belief, rng), belief, float(self.alpha))


@dataclass(frozen=True)
class EIpu(Acquisition):
    """Expected improvement per unit of cost."""

    uses_cost: ClassVar[bool] = True

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return per_cost(LogEI().surface(belief, rng), belief, 1.0)


@dataclass(frozen=True)
class EICool(Acquisition):
    """EI / cost^alpha with alpha falling from 1 to 0 as the budget is spent: cheap evaluations first, dear ones later."""

    uses_cost: ClassVar[bool] = True
    needs_budget: ClassVar[bool] = True

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        if belief.spending is None:
            raise MethodError(NO_BUDGET.format("EICool"))
        return per_cost(LogEI().surface(belief, rng), belief, belief.spending.left_share)


@dataclass(frozen=True)
class CEI(Acquisition):
    """Contextual EI: the cheapest point among those with at least (1 - lam) of the highest EI; on the EI-cost front."""

    lam: float = 0.1
    uses_cost: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", plain(self.lam))
        if isinstance(self.lam, bool) or not isinstance(self.lam, int | float) or not 0 <= self.lam <= 1:
            raise MethodError(f"CEI: lam must lie in [0, 1], not {self.lam!r}")

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return LogEI().surface(belief, rng)

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        gain = self.averaged_surface(belief, optimizer.rng)
        return Selection(cheapest_of_the_good(gain, belief, optimizer, optimizer.maximize(gain), float(self.lam)))


def cheapest_of_the_good(gain: Surface, belief: Belief, optimizer: AcquisitionOptimizer, optimum: Optimum, lam: float) -> Array:
    """Equation 2, given the highest EI."""
    if belief.cost is None or lam == 0.0 or not math.isfinite(optimum.value):
        return optimum.u
    cheapness = negative_log_cost(belief)
    if lam == 1.0:  # no improvement is asked for
        return optimizer.maximize(cheapness).u
    bound = optimum.value + math.log1p(-lam)
    u = maximize_constrained(cheapness, gain, bound, optimum.U, optimizer.encoding, optimizer.rng, optimizer.visited)
    return optimum.u if u is None else u
