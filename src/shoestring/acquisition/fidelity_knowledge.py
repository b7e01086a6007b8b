"""The knowledge gradient over continuous fidelities: what an observation says of the answer, for each unit of its cost.

Source: "Continuous-fidelity Bayesian optimization with knowledge gradient", equations 3.2 to 3.5.

    cfKG(x, s) = ( min_x' mu(x', 1) - E[ min_x' mu_new(x', 1) ] ) / cost(x, s)                                  (3.2)

maximised over x and all fidelities s together (3.3). The numerator is that of ``knowledge``, exact over a set of points at the
target fidelity; the cost is E[c] of the study's cost model. ``StochasticKG`` is the paper's own estimator, for reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import Array
from ..parameters import Fidelity
from ..space import Space
from ..surrogate.belief import Belief
from .cost_aware import per_cost
from .improvement import Surface
from .knowledge import KG

OVERHEAD = 0.01  # of the cost at the target: what an evaluation is taken to cost at fidelity 0 while costs are not known


@dataclass(frozen=True)
class CFKG(KG):
    """Knowledge per unit of cost, over configurations and fidelities together. Without fidelities: KG per unit of cost."""

    uses_cost: ClassVar[bool] = True
    free_fidelities: ClassVar[bool] = True

    def weighed(self, gain: Surface, belief: Belief) -> Surface:
        if belief.cost is not None:
            return per_cost(gain, belief, 1.0)
        return per_share(gain, belief.encoding.space) if belief.encoding.space.fidelities else gain


def per_share(gain: Surface, space: Space) -> Surface:
    """gain - log cost while nothing is known of costs: in proportion to each fidelity's share of its target."""
    goals = {j: each for j, each in enumerate(space.values()) if isinstance(each, Fidelity)}

    def cheapness(U: Array) -> Array:
        total = np.zeros(len(U))
        for j, each in goals.items():
            total -= np.log(OVERHEAD + np.maximum(each.values(U[:, j]) / each.goal, 0.0) if each.goal > 0 else np.ones(len(U)))
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
