"""Anchors: trials at the target fidelity of what is recommended, asked between those that are cheap.

The knowledge gradient per unit of cost may buy nothing at the target for a whole study. Then the recommendation rests on
extrapolation, nothing can be pruned, since a forecast is compared with what has finished at the target, and what a trial
there costs is not known. So from time to time what is recommended is evaluated there:

    p       what was paid since the last trial at the target, or since the start
    c       what the recommended config is expected to cost at the target
    when the next suggestion costs NEAR c or more, the ladder is nearly there, and p >= NEAR_PERIOD c; else when p >= PERIOD c

While costs are not known, they are those that CFKG assumes. A config that was evaluated at the target is no anchor, nor is one
that does not fit into the budget.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..acquisition.kg_fidelity import assumed_negative_log_cost
from ..acquisition.optimize.candidates import is_visited
from ..cost.base import expected_log_cost
from ..data.dataset import on_target
from ..data.trial import Suggestion
from ..numerics import Array
from .base import MIN_COSTS_FOR_PREDICTION, SearchContext
from .bayes import expectations
from .recommend import recommend

ANCHORS = "evaluates at the target fidelity what is recommended"  # why a trial was asked
PERIOD = 6.0  # anchors take at most a seventh of what is paid
NEAR = 0.5
NEAR_PERIOD = 2.0


def anchored(suggestion: Suggestion, context: SearchContext) -> Suggestion:
    """The suggestion, or in its place an evaluation of what is recommended at the target, if one is due."""
    space, data = context.space, context.data
    if not space.fidelities or suggestion.model is None or not data.finished:
        return suggestion
    paid, prices = costs_so_far(context)
    since = float(paid.sum())
    if since < NEAR_PERIOD * prices(space.at_target(data.U[data.best(1)]))[0]:  # a first look, without a search
        return suggestion
    point = space.encode(suggestion.config)[None, :]
    if on_target(point, space)[0]:
        return suggestion
    found = recommend(context, to_confirm=True)
    if found is None or found.row is not None or is_visited(found.u[None, :], context.visited)[0]:
        return suggestion
    price, next_price = prices(np.vstack([found.u, point]))
    due = since >= PERIOD * price or (next_price >= NEAR * price and since >= NEAR_PERIOD * price)
    if not due or (context.cost_limited and context.cost is not None and price > context.affordable):
        return suggestion
    belief = context.belief(costs=suggestion.cost is not None)
    model = {name: value for name, value in suggestion.model.items() if name != "log_gain"}
    expected = {"predicted": None, "gain": None, "cost": None} | expectations(found.u, belief, context)
    return replace(suggestion, config=space.decode(found.u), why=ANCHORS, model=model, front=None, **expected)


class Prices:
    """What points are expected to cost: by the cost model, or as CFKG assumes while there is none."""

    def __init__(self, context: SearchContext) -> None:
        known = context.cost_is_known or len(context.data.log_cost) >= MIN_COSTS_FOR_PREDICTION
        self.cost = context.cost if known and not context.costs_go_unnoticed else None
        self.assumed = assumed_negative_log_cost(context.space)

    def __call__(self, U: Array) -> Array:
        log_cost = -self.assumed(U, False)[0] if self.cost is None else expected_log_cost(self.cost, U)
        return np.asarray(np.exp(log_cost))


def costs_so_far(context: SearchContext) -> tuple[Array, Prices]:
    """What each trial since the last one at the target has cost, running ones included, and the prices."""
    space, prices = context.space, Prices(context)
    table = context.history.table
    U = table.U[: table.count]
    target = np.flatnonzero(on_target(U, space))
    first = int(target[-1]) + 1 if len(target) else 0
    if first == len(U):
        return np.zeros(0), prices
    expected = prices(U[first:])
    if prices.cost is None:
        return expected, prices
    paid = [trial.charge or guess for trial, guess in zip(context.history[first:], expected, strict=True)]
    return np.array(paid), prices
