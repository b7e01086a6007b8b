"""Continuous-fidelity knowledge gradient (cfKG): KG at the target fidelity per unit of cost, over points and fidelities together.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), equations 3.2 to 3.5.

Notation
    x, s, cost(x, s)    a configuration, its fidelities, the expected cost of the study's cost model;  s = 1 is the target
    mu, mu_new          the posterior mean before and after an observation at (x, s)

    cfKG(x, s) = ( min_x' mu(x', 1) - E[ min_x' mu_new(x', 1) ] ) / cost(x, s)                                    (3.2)
    maximized over x and all fidelities s together                                                                (3.3)

The numerator is the KG of ``knowledge_gradient``, exact over a discretization at the target fidelity. The cost of a batch is
that of its most expensive member where all run at the same time (3.4), or the sum. A further member of a batch, whose other
members have KG g and cost c, is valued by

    ( g + KG(x, s | the others) ) / max(c, cost(x, s))              batch = "max", the default: (3.4)
    KG(x, s | the others) / cost(x, s)                              batch = "sum"

so that under "max" a trial that costs no more than the others is free. ``StochasticKG`` has the paper's own estimator.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np

from ..cost.incremental import StartedRuns, started_runs
from ..errors import MethodError
from ..numerics import Array
from ..space.parameters import Fidelity
from ..space.space import Space
from ..surrogate.belief import Belief
from .cost_aware import cost_weighted_surface, negative_log_cost
from .knowledge_gradient import KG
from .optimize.optimizer import Surface

ASSUMED_OVERHEAD = 0.01  # of the cost at the target: what a trial at fidelity 0 is assumed to cost while no cost is known
DIFFERENCE_STEP = 1e-4  # of the unit cube, for the derivative of the assumed cost


@dataclass(frozen=True)
class CFKG(KG):
    """The knowledge gradient per unit of cost, over configs and fidelities together.

    What ``method="auto"`` uses in a space with fidelities. Without fidelities it is the knowledge gradient per unit of cost.

    batch  the cost of several trials at once (``ask_many``): "max", that of the most expensive one (their time), or "sum"

    >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), method=st.CFKG())
    >>> trial = study.ask()
    >>> trial.fidelity["epochs"] == trial.config["epochs"]
    True
    >>> study.tell(trial, 0.31, cost=2.5).state
    <State.DONE: 'done'>
    """

    batch: Literal["max", "sum"] = "max"
    others: tuple[float, float] | None = field(default=None, repr=False)  # KG and cost of the other members of a batch
    uses_cost: ClassVar[bool] = True
    chooses_fidelity: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.batch not in ("max", "sum"):
            raise MethodError(
                f'{type(self).__name__}: batch must be "max" (the cost of the most expensive trial) or "sum", not {self.batch!r}'
            )

    def cost_weighted(self, log_kg: Surface, belief: Belief) -> Surface:
        """log cfKG, given log KG (3.2); as a further member of a batch, (3.4)."""
        space, data = belief.encoding.space, belief.data
        if belief.cost is None and not space.fidelities:
            return log_kg
        if belief.cost is None and self.others is None:
            return assumed_cost_weighted_surface(log_kg, space, started_runs(data, space))
        if self.others is None:
            return cost_weighted_surface(log_kg, belief, 1.0)
        assumed = belief.cost is None
        cheapness = assumed_negative_log_cost(space, started_runs(data, space)) if assumed else negative_log_cost(belief)
        return batch_member_surface(log_kg, cheapness, *self.others)

    def as_batch_member(self, gain: float, cost: float) -> Self:
        return replace(self, others=(gain, cost)) if self.batch == "max" else self


def batch_member_surface(log_kg: Surface, negative_cost: Surface, gain: float, cost: float) -> Surface:
    """log (gain + KG) - log max(cost, expected cost), given log KG and -log expected cost (3.4)."""
    log_gain, log_cost = np.log(max(gain, 1e-300)), np.log(cost)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found, slope = log_kg(U, gradient)
        cheap, d_cheap = negative_cost(U, gradient)
        joint = np.logaddexp(log_gain, found)
        total = joint + np.minimum(cheap, -log_cost)
        if slope is None or d_cheap is None:
            return total, None
        return total, np.exp(found - joint)[:, None] * slope + np.where(cheap < -log_cost, 1.0, 0.0)[:, None] * d_cheap

    return value


def assumed_cost_weighted_surface(log_gain: Surface, space: Space, started: StartedRuns | None = None) -> Surface:
    """log gain - log cost while no cost is known (``assumed_negative_log_cost``)."""
    cheapness = assumed_negative_log_cost(space, started)

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found, slope = log_gain(U, gradient)
        cheap, d_cheap = cheapness(U, gradient)
        return found + cheap, None if slope is None or d_cheap is None else slope + d_cheap

    return value


def assumed_negative_log_cost(space: Space, started: StartedRuns | None = None) -> Surface:
    """-log cost while no cost is known: the cost is assumed proportional to each fidelity's share of its target.

    Where a point would continue one of the ``started`` runs, the cost is that of the rest.
    """
    fidelities = {j: each for j, each in enumerate(space.values()) if isinstance(each, Fidelity)}

    def negative_cost(U: Array) -> Array:
        total = negative_cost_from_start(U)
        rows, runs = (np.empty(0, dtype=np.intp),) * 2 if started is None else started.match(U)
        if started is not None and len(rows):
            reached = -negative_cost_from_start(started.points[runs])
            total[rows] -= started.log_rest(U[rows], runs, -total[rows], reached)
        return total

    def negative_cost_from_start(U: Array) -> Array:
        total = np.zeros(len(U))
        for j, each in fidelities.items():
            share = each.relaxed(U[:, j]) / each.goal if each.goal > 0 else None
            total -= np.log(np.ones(len(U)) if share is None else ASSUMED_OVERHEAD + np.maximum(share, 0.0))
        return total

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        slope = np.zeros_like(U) if gradient else None
        for j in fidelities if slope is not None else ():  # by central differences: it costs nothing, each is one coordinate
            move = np.zeros(U.shape[1])
            move[j] = DIFFERENCE_STEP
            slope[:, j] = (negative_cost(U + move) - negative_cost(U - move)) / (2.0 * DIFFERENCE_STEP)  # type: ignore[index]
        return negative_cost(U), slope

    return value
