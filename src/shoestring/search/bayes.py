"""Bayesian optimization: form a belief, maximize an acquisition under it, within what is left to spend."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._format import amount
from ..acquisition.base import Acquisition, surface_of
from ..acquisition.cost_aware import NO_BUDGET, negative_log_cost
from ..acquisition.optimize.constrained import maximize_where
from ..acquisition.optimize.optimizer import Chosen, Seeker, Surface
from ..cost.base import expected_log_cost
from ..data.trial import Suggestion
from ..errors import MethodError, NothingFits
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import Situation, believe, seeker_for
from .initial_design import start
from .pareto import short_front


@dataclass(frozen=True)
class Bayes:
    """An acquisition made into a search method: a space-filling start, then the acquisition's choice each time."""

    acquisition: Acquisition

    def suggest(self, situation: Situation) -> Suggestion:
        seen, name = situation.seen, type(self.acquisition).__name__
        if situation.spending is None and getattr(self.acquisition, "needs_budget", False):
            raise MethodError(NO_BUDGET)  # now, not after the start has been paid for
        free = getattr(self.acquisition, "free_fidelities", False) and bool(situation.space.fidelities)
        begun = start(situation, name, self._thrifty, free)
        if begun is not None:
            return begun
        weighs = self._thrifty and not (free and situation.costs_go_unnoticed)
        belief = believe(situation, costs=weighs or situation.cost_limited)
        seeker = replace(seeker_for(situation), fidelities=free)
        chosen = choose(self.acquisition, belief, seeker)
        u = within_budget(chosen.u, surface_of(self.acquisition, belief, seeker.rng), belief, seeker, situation)
        return Suggestion(
            situation.space.decode(u),
            by=name,
            why=f"highest {name} under a model of {seen.finished} trials",
            **expectations(u, belief, situation),
            model=belief.knowledge(len(seen.y)) | carried(belief) | dict(chosen.remember),
            front=short_front(belief, seeker, u) if belief.cost is not None and not free else None,
        )

    @property
    def _thrifty(self) -> bool:
        """Whether the acquisition weighs cost."""
        return getattr(self.acquisition, "uses_cost", False)


def carried(belief: Belief) -> dict[str, Any]:
    """What a method that takes turns with others has to know at its next turn."""
    return {name: belief.remembered[name] for name in ("log_price",) if name in belief.remembered}


def choose(acquisition: Acquisition, belief: Belief, seeker: Seeker) -> Chosen:
    """By the acquisition's own way of choosing, if it has one, or where its surface is highest.

    Where hyperparameters are integrated out, its own way must be one that looks at all sets of them.
    """
    own = getattr(acquisition, "choose", None)
    if own is not None and (not belief.alternatives or getattr(acquisition, "over_sets", False)):
        return own(belief, seeker)  # type: ignore[no-any-return]
    return Chosen(seeker.highest(surface_of(acquisition, belief, seeker.rng)).u)


def within_budget(u: Array, surface: Surface, belief: Belief, seeker: Seeker, situation: Situation) -> Array:
    """u, or if its expected cost does not fit into what is left, the best point that does.

    Raises NothingFits when there is none.
    """
    spending, cost = situation.spending, belief.cost
    if spending is None or not situation.cost_limited or cost is None:
        return u
    left = spending.left - situation.reserved
    if left > 0.0 and float(expected_log_cost(cost, u[None, :])[0]) <= math.log(left):
        return u
    cheapness = negative_log_cost(belief)
    pool = seeker.highest(cheapness).U
    bound = -math.log(left) if left > 0.0 else math.inf
    fitting = maximize_where(surface, cheapness, bound, pool, seeker.encoding, seeker.rng, seeker.seen)
    if fitting is None:
        least = float(np.exp(expected_log_cost(cost, pool)).min())
        raise NothingFits(
            f"{amount(max(left, 0.0), situation.unit)} of the budget are left, and the cheapest trial is expected to cost "
            f"{amount(least, situation.unit)}"
        )
    return fitting


def expectations(u: Array, belief: Belief, situation: Situation) -> dict[str, Any]:
    """What the model expects of a point, in the user's units."""
    z, answer = (situation.encoding.features(point) for point in (u[None, :], situation.space.at_target(u[None, :])))
    expected = {
        "predicted": situation.seen.sign * float(belief.output.inverse(belief.moments(z)[0])[0]), "gain": belief.gain(answer),
    }
    if belief.cost is not None:
        expected["cost"] = float(np.exp(expected_log_cost(belief.cost, u[None, :])[0]))
    return expected
