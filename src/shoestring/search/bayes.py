"""Bayesian optimization: fit a belief, maximize an acquisition under it, within what is left of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..acquisition.base import Acquisition
from ..acquisition.cost_aware import NO_BUDGET, negative_log_cost
from ..acquisition.improvement import LogEI
from ..acquisition.optimize.constrained import maximize_constrained
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, Selection, Surface
from ..cost.base import expected_log_cost
from ..data.trial import Suggestion
from ..errors import MethodError
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import SearchContext, SearchMethod
from .initial_design import initial_suggestion
from .pareto import short_front

SURE = 2.0  # deviations of log cost: 97.5 % of trials cost less


@dataclass(frozen=True)
class Bayes(SearchMethod):
    """An acquisition as a search method: a space-filling initial design, then the acquisition's choice each time.

    cautious  under a budget in cost, a trial has to fit into what is left even if it costs SURE deviations more than expected
    """

    acquisition: Acquisition
    cautious: bool = False

    def suggest(self, context: SearchContext) -> Suggestion:
        acquisition, name = self.acquisition, type(self.acquisition).__name__
        if context.spending is None and acquisition.needs_budget:
            raise MethodError(NO_BUDGET.format(name))  # now, not after the initial design has been paid for
        free = acquisition.chooses_fidelity and bool(context.space.fidelities)
        if context.in_initial_design:
            return initial_suggestion(context, name, free)
        weighs = acquisition.uses_cost and not (free and context.costs_go_unnoticed)
        hurried = context.effort == "reduced" and context.far_from_limit  # then no cost model is fitted for the limit alone
        belief = context.belief(costs=weighs or (context.cost_limited and not hurried))
        optimizer = context.optimizer(fidelities=free)
        selection = select(acquisition, belief, optimizer)
        u = selection.u
        if context.cost_limited:
            valued = acquisition if acquisition.has_surface else LogEI()  # one that only selects says nothing of other points
            surface = valued.averaged_surface(belief, optimizer.rng)
            u = within_budget(u, surface, belief, optimizer, context, SURE if self.cautious else 0.0)
        return Suggestion(
            context.space.decode(u),
            by=name,
            why=f"highest {name} under a model of {context.fits.learnt.finished} trials",
            **expectations(u, belief, context),
            model=belief.to_warm_start(belief.n_trials) | carried_warm_start(belief) | dict(selection.warm_start),
            front=short_front(belief, optimizer, u) if belief.cost is not None and not free else None,
        )


def carried_warm_start(belief: Belief) -> dict[str, Any]:
    """What a method that takes turns with others has to know at its next turn."""
    return {name: belief.warm_start[name] for name in ("log_price",) if name in belief.warm_start}


def select(acquisition: Acquisition, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
    """The point that the acquisition selects in its own way, or else where its surface is highest.

    Its own way counts where it looks at all hyperparameter samples, or there is only one.
    """
    several = bool(belief.hyperparameter_samples)
    if type(acquisition).select is not Acquisition.select and not (several and not acquisition.averages_samples):
        return acquisition.select(belief, optimizer)
    surface = acquisition.averaged_surface if several else acquisition.surface
    return Selection(optimizer.maximize(surface(belief, optimizer.rng)).u)


def within_budget(
    u: Array, surface: Surface, belief: Belief, optimizer: AcquisitionOptimizer, context: SearchContext, deviations: float = 0.0
) -> Array:
    """u, or if its cost does not fit into what is left, the best point that does.

    The cost is the expected one, or that many deviations above its median if this is higher: nothing with an unknown cost can
    then take the budget. Where nothing is as sure to fit, the expected cost counts. Raises NothingFits when there is none.
    """
    cost, left = belief.cost, context.affordable
    if not context.cost_limited or cost is None:
        return u
    bound = -math.log(left) if left > 0.0 else math.inf
    cheapness = negative_log_cost(belief)
    sure = negative_high_log_cost(belief, deviations) if deviations else cheapness
    if left > 0.0 and min(cheapness(u[None, :], False)[0][0], sure(u[None, :], False)[0][0]) >= bound:
        return u
    pool = optimizer.maximize(cheapness).U
    for limited in (sure, cheapness) if deviations else (cheapness,):
        fitting = maximize_constrained(surface, limited, bound, pool, optimizer.encoding, optimizer.rng, optimizer.visited)
        if fitting is not None:
            return fitting
    raise context.nothing_fits(float(np.exp(expected_log_cost(cost, pool)).min()))


def negative_high_log_cost(belief: Belief, deviations: float) -> Surface:
    """-(m + deviations sqrt v), the negative logarithm of a cost that is rarely exceeded."""
    cost = belief.cost
    assert cost is not None

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        if not gradient:
            mean, variance = cost.log_cost(U)
            return -(mean + deviations * np.sqrt(variance)), None
        mean, variance, d_mean, d_variance = cost.log_cost_with_gradient(U)
        deviation = np.sqrt(np.maximum(variance, 1e-12))
        return -(mean + deviations * deviation), -(d_mean + (0.5 * deviations / deviation)[:, None] * d_variance)

    return value


def expectations(u: Array, belief: Belief, context: SearchContext) -> dict[str, Any]:
    """What the model expects of a point, in the user's units: value, expected improvement, cost."""
    z, answer = (context.encoding.features(point) for point in (u[None, :], context.space.at_target(u[None, :])))
    expected = {
        "predicted": context.data.sign * float(belief.output.inverse(belief.moments(z)[0])[0]), "gain": belief.gain(answer),
    }
    if belief.cost is not None:
        expected["cost"] = float(np.exp(expected_log_cost(belief.cost, u[None, :])[0]))
    return expected
