"""Stop when no evaluation is worth its cost.

Source: Xie et al., "Cost-aware stopping for Bayesian optimization" (ICML 2026). Stop when

    EI(x) <= price c(x)    for every x

price being the improvement that one unit of cost must buy. EI per unit cost is maximised here: it is at most the price everywhere
when its maximum is. Where values are modelled as they are, this is the moment at which the Gittins index of every x is above the
incumbent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._format import rounded
from .._validation import number_between, whole_number
from ..acquisition.cost_aware import EIpu
from ..cost.auto import AutoCost
from ..cost.base import CostModel, expected_log_cost
from ..data.dataset import to_dataset
from ..data.history import History
from ..errors import SpaceExhausted
from ..numerics import Array, single_threaded
from ..surrogate.belief import Belief
from ..surrogate.gp import GP
from .base import CANDIDATES_ONLY, RULE_OPTIONS, StopRule, Verdict, belief_of, rule_optimizer, with_cost

DEFAULT_MODEL = GP()  # of a rule that is called with a history alone


@dataclass(frozen=True)
class WorthIt(StopRule):
    """Cost-benefit stopping: stop when no config's expected gain is worth its expected cost.

    Use it where you know what an improvement is worth; it fits ``method=st.Gittins(price)``, which searches by the same price.
    Pending trials count as if they had come out a little worse than expected.

    price       the improvement, in the objective's units, that one unit of cost must buy
    after       evaluations before the first check
    cost_model  what the costs are predicted by; None: the study's own

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: st.Outcome(c["x"], cost=1), space, 10, method=st.Sobol()).history
    >>> st.WorthIt(price=0.5).check(history).stop
    True
    """

    price: float
    after: int = 10
    cost_model: CostModel | None = None
    uses_cost: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number_between(self.price, "WorthIt: price", 0.0, low_included=False)
        whole_number(self.after, "WorthIt: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    @single_threaded
    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        found = history.evaluations
        if found < self.after:
            return Verdict(False, f"{found} of the {self.after} evaluations are there after which gain and cost are compared")
        searches = (RULE_OPTIONS,) if belief is None else (CANDIDATES_ONLY, RULE_OPTIONS)
        if belief is None:
            belief = belief_of(history, DEFAULT_MODEL, self.cost_model or AutoCost())
        elif self.cost_model is not None:
            belief = with_cost(belief, history, self.cost_model)
        if belief.cost is None:
            return Verdict(False, "no trial has a cost yet that its gain could be compared with")
        data, gain, cost = to_dataset(history), 0.0, 1.0
        for options in searches:  # a few candidates first: where one of them is worth its cost, there is nothing more to find out
            optimizer = rule_optimizer(data, belief.encoding, anywhere=False, options=options)
            try:
                optimum = optimizer.maximize(EIpu().averaged_surface(belief, optimizer.rng))
            except SpaceExhausted as end:
                return Verdict(True, str(end))
            gain, cost = gain_and_cost(belief, optimum.u)
            if gain > self.price * cost:
                break
        pending = expected_log_cost(belief.cost, data.pending) if len(data.pending) else np.empty(0)
        evidence = {
            "gain": gain, "cost": cost, "price": self.price, "worth": gain / cost, "pending_cost": float(np.exp(pending).sum()),
        }
        what = f"the best buy is a gain of {rounded(gain)} for a cost of {rounded(cost)}"
        if gain <= self.price * cost:
            reason = f"nothing is worth its cost any more: {what}; the price is {rounded(self.price)} a unit"
            return Verdict(True, reason, evidence)
        return Verdict(False, f"it is still worth while: {what}, {rounded(gain / cost)} a unit", evidence)


def gain_and_cost(belief: Belief, u: Array) -> tuple[float, float]:
    """Expected improvement in the objective's units, probability of failure counted, and expected cost at one point."""
    assert belief.cost is not None
    Z = belief.encoding.features(u[None, :])
    gain = belief.gain(Z)
    if belief.feasibility is not None:
        gain *= float(np.exp(belief.feasibility.log_probability(Z)[0]))
    return gain, float(np.exp(expected_log_cost(belief.cost, u[None, :])[0]))
