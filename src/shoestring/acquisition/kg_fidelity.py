"""The knowledge gradient over continuous fidelities: what an observation says of the answer, for each unit of its cost.

Source: "Continuous-fidelity Bayesian optimization with knowledge gradient", equations 3.2 to 3.5.

    cfKG(x, s) = ( min_x' mu(x', 1) - E[ min_x' mu_new(x', 1) ] ) / cost(x, s)                                  (3.2)

maximised over x and all fidelities s together (3.3). Of a batch, the cost is that of its dearest member where all run at the same
time (3.4), or the sum: with g what the others bring and c what they cost, a further member has

    ( g + KG(x, s | the others) ) / max(c, cost(x, s))              batch = "max", the default
    KG(x, s | the others) / cost(x, s)                              batch = "sum"

so that under "max" whatever costs no more than the others is free. The numerator is that of ``knowledge``, exact over a set of
points at the target fidelity; the cost is E[c] of the study's cost model. ``StochasticKG`` is the paper's own estimator, for
reference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np

from ..errors import MethodError
from ..numerics import Array
from ..space.parameters import Fidelity
from ..space.space import Space
from ..surrogate.belief import Belief
from .cost_aware import negative_log_cost, per_cost
from .knowledge_gradient import KG
from .optimize.optimizer import Surface

OVERHEAD = 0.01  # of the cost at the target: what an evaluation is taken to cost at fidelity 0 while costs are not known


@dataclass(frozen=True)
class CFKG(KG):
    """Knowledge per unit of cost, over configurations and fidelities together. Without fidelities: KG per unit of cost.

    batch   what several trials at once (``ask_many``) cost: "max", their time, or "sum"
    """

    batch: Literal["max", "sum"] = "max"
    others: tuple[float, float] | None = field(default=None, repr=False)  # what they bring and cost, while a batch is chosen
    uses_cost: ClassVar[bool] = True
    chooses_fidelity: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.batch not in ("max", "sum"):
            raise MethodError(f'{type(self).__name__}: batch must be "max" (the dearest trial) or "sum", not {self.batch!r}')

    def weighed(self, gain: Surface, belief: Belief) -> Surface:
        if belief.cost is None:
            return per_share(gain, belief.encoding.space) if belief.encoding.space.fidelities else gain
        return per_cost(gain, belief, 1.0) if self.others is None else beside(gain, negative_log_cost(belief), *self.others)

    def as_batch_member(self, brought: float, paid: float) -> Self:
        """As a further member of a batch that brings and costs so much."""
        return replace(self, others=(brought, paid)) if self.batch == "max" else self


def beside(gain: Surface, cheapness: Surface, brought: float, paid: float) -> Surface:
    """log (brought + KG) - log max(paid, cost)."""
    log_brought, log_paid = np.log(max(brought, 1e-300)), np.log(paid)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found, slope = gain(U, gradient)
        cheap, d_cheap = cheapness(U, gradient)
        total = np.logaddexp(log_brought, found)
        worth = total + np.minimum(cheap, -log_paid)
        if slope is None or d_cheap is None:
            return worth, None
        return worth, np.exp(found - total)[:, None] * slope + np.where(cheap < -log_paid, 1.0, 0.0)[:, None] * d_cheap

    return value


def per_share(gain: Surface, space: Space) -> Surface:
    """gain - log cost while nothing is known of costs: in proportion to each fidelity's share of its target."""
    goals = {j: each for j, each in enumerate(space.values()) if isinstance(each, Fidelity)}

    def cheapness(U: Array) -> Array:
        total = np.zeros(len(U))
        for j, each in goals.items():
            total -= np.log(OVERHEAD + np.maximum(each.relaxed(U[:, j]) / each.goal, 0.0) if each.goal > 0 else np.ones(len(U)))
        return total

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found, slope = gain(U, gradient)
        if slope is not None:
            slope = slope.copy()
            for j in goals:  # by differences: one coordinate each, of a function that costs nothing
                move = np.zeros(U.shape[1])
                move[j] = 1e-4
                slope[:, j] += (cheapness(U + move) - cheapness(U - move)) / 2e-4
        return found + cheapness(U), slope

    return value
