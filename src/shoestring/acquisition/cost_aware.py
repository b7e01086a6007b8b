"""Cost-aware expected improvement: EI per unit cost, EI_alpha, EI-cool and contextual EI.

Sources: Guinet, Perrone and Archambeau, "Pareto-efficient acquisition functions for cost-aware Bayesian optimization" (2020), for
equations 1 and 2; Lee et al., "Cost-aware Bayesian optimization" (2020), for EI-cool.

Notation
    c(x)        the expected cost E[c] = exp(m + v / 2) of the belief's cost model, whose log cost is N(m, v)
    tau         the budget, tau_k what is spent of it, tau_init what the initial design cost

    EI_alpha(x) = EI(x) / c(x)^alpha                                                        (equation 1)
    EI-cool: EI_alpha with alpha = (tau - tau_k) / (tau - tau_init), from 1 at the start to 0 at the end of the budget
    CEI_lam(x) = -c(x) where EI(x) >= (1 - lam) max EI, else -infinity                      (equation 2)

Everything is computed in logarithms. While no cost is known, each of these is plain EI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._validation import number_between
from ..cost.base import expected_log_cost, expected_log_cost_with_gradient
from ..errors import MethodError
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import Acquisition
from .improvement import LogEI, log_ei_in_units
from .optimize.constrained import maximize_constrained
from .optimize.optimizer import AcquisitionOptimizer, Optimum, Selection, Surface

NO_BUDGET = '{} needs to know the budget: Study(..., budget="10m"), or minimize(f, budget="10m")'


class CostWeightedEI(Acquisition):
    """EI / cost^alpha, with an alpha that ``exponent`` gives: what the weighted methods have in common."""

    uses_cost: ClassVar[bool] = True
    cheap_to_average: ClassVar[bool] = True

    def exponent(self, belief: Belief) -> float:
        raise NotImplementedError

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return cost_weighted_surface(LogEI().surface(belief, rng), belief, self.exponent(belief))

    def averaged_surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return cost_weighted_surface(LogEI().averaged_surface(belief, rng), belief, self.exponent(belief))


@dataclass(frozen=True)
class EIAlpha(CostWeightedEI):
    """EI / cost^alpha: between expected improvement (0) and expected improvement per unit of cost (1).

    Use it where costs differ and you know how much they matter. ``method="auto"`` is ``EIAlpha(1.5)`` for budgets in cost.

    alpha  how much cost counts

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> result = st.minimize(lambda c: st.Outcome(1 / c["epochs"], cost=c["epochs"]), space, 9, method=st.EIAlpha(0.5))
    >>> result.best.value < 0.1
    True
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_between(self.alpha, "EIAlpha: alpha", 0))

    def exponent(self, belief: Belief) -> float:
        return float(self.alpha)


@dataclass(frozen=True)
class EIpu(CostWeightedEI):
    """Expected improvement per unit of cost, the plainest cost-aware method.

    It prefers cheap configs to the end. ``EICool`` starts like this and then spends more; ``CEI`` gives up only a set share of
    EI.

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> result = st.minimize(lambda c: st.Outcome(1 / c["epochs"], cost=c["epochs"]), space, 9, method=st.EIpu())
    >>> result.best.value < 0.1
    True
    """

    def exponent(self, belief: Belief) -> float:
        return 1.0


@dataclass(frozen=True)
class EICool(CostWeightedEI):
    """EI / cost^alpha with alpha falling from 1 to 0 as the budget is spent: cheap evaluations first, expensive ones later.

    Use it with a budget in cost or time; it needs one.

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> def train(config):
    ...     return st.Outcome(1 / config["epochs"], cost=config["epochs"])
    >>> st.minimize(train, space, st.Budget(cost=120), method=st.EICool()).spent <= 120
    True
    """

    needs_budget: ClassVar[bool] = True

    def exponent(self, belief: Belief) -> float:
        if belief.spending is None:
            raise MethodError(NO_BUDGET.format("EICool"))
        return belief.spending.left_share


@dataclass(frozen=True)
class CEI(Acquisition):
    """Contextual EI: the cheapest config that has at least (1 - lam) of the highest expected improvement.

    Use it to say how much improvement you would give up for a cheaper trial. The share is one of EI in the units of your values,
    whatever transform the model works with. Its choice is always on the Pareto front of EI and cost.

    lam  the share of EI to give up: 0 is EI, 1 the cheapest config

    >>> space = st.Space(epochs=st.Int(1, 50))
    >>> result = st.minimize(lambda c: st.Outcome(1 / c["epochs"], cost=c["epochs"]), space, 9, method=st.CEI(0.2))
    >>> result.best.value < 0.1
    True
    """

    lam: float = 0.1
    uses_cost: ClassVar[bool] = True
    cheap_to_average: ClassVar[bool] = True
    averages_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", number_between(self.lam, "CEI: lam", 0, 1))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return LogEI().surface(belief, rng)

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        if belief.cost is None or self.lam == 0.0:
            return Selection(optimizer.maximize(LogEI().averaged_surface(belief, optimizer.rng)).u)
        log_ei = log_ei_in_units(belief)
        return Selection(maximize_contextual_ei(log_ei, belief, optimizer, optimizer.maximize(log_ei), float(self.lam)))


def cost_weighted_surface(log_gain: Surface, belief: Belief, alpha: float) -> Surface:
    """log gain - alpha log E[c] (equation 1, in logarithms); the gain alone while no cost is known."""
    if belief.cost is None or alpha == 0.0:
        return log_gain
    negative_cost = negative_log_cost(belief)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        total, slope = log_gain(U, gradient)
        cheap, d_cheap = negative_cost(U, gradient)
        return total + alpha * cheap, None if slope is None or d_cheap is None else slope + alpha * d_cheap

    return value


def maximize_contextual_ei(
    log_ei: Surface, belief: Belief, optimizer: AcquisitionOptimizer, optimum: Optimum, lam: float
) -> Array:
    """The maximum of CEI_lam (equation 2), given that of log EI."""
    if belief.cost is None or lam == 0.0 or not math.isfinite(optimum.value):
        return optimum.u
    negative_cost = negative_log_cost(belief)
    if lam == 1.0:  # any EI will do
        return optimizer.maximize(negative_cost).u
    bound = optimum.value + math.log1p(-lam)  # log((1 - lam) max EI)
    u = maximize_constrained(negative_cost, log_ei, bound, optimum.U, optimizer.encoding, optimizer.rng, optimizer.visited)
    return optimum.u if u is None else u


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
