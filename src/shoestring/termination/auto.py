"""``stop="auto"``: whatever the trials allow to be said about when more would not pay."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..history import History
from ..space import Space
from .regret import RegretBound, check_number
from .rule import Joined, StopRule
from .sure import SureBound
from .verdict import Rule, Verdict
from .worth import WorthIt


@dataclass(frozen=True)
class AutoStop(StopRule):
    """The regret bound where the best trial has folds, the worth of a further trial where there is a price, else nothing.

    price        see ``WorthIt``; ``method=Gittins(price)`` brings it along
    fold_sizes   see ``RegretBound``
    """

    price: float | None = None
    fold_sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_number("AutoStop", "price", self.price, 0.0, math.inf, optional=True)

    def check(self, history: History, space: Space) -> Verdict:
        best = history.best
        rules: list[StopRule] = []
        if best is not None and best.folds is not None:
            rules.append(SureBound(fold_sizes=self.fold_sizes))
        if self.price is not None:
            rules.append(WorthIt(self.price))
        verdict = Verdict(False, "without folds, a tolerance or a price the budget alone decides")
        for rule in rules:
            verdict = rule.check(history, space)
            if verdict:
                break
        return verdict


def find_bound(rule: Rule | None) -> RegretBound | None:
    """The regret bound that a rule is, contains or would use."""
    if isinstance(rule, RegretBound):
        return rule
    if isinstance(rule, AutoStop):
        return SureBound(fold_sizes=rule.fold_sizes)
    inner = rule.rules if isinstance(rule, Joined) else ()
    return next((found for part in inner if (found := find_bound(part)) is not None), None)
