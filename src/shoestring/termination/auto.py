"""``stop="auto"``: whatever the trials allow to be said about when more would not pay."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..history import History
from ..space import Space
from ..surrogate.cost.auto import AutoCost
from ..surrogate.cost.base import CostModel
from .folds import check_sizes
from .regret import RegretBound, check_number
from .rule import Joined, StopRule
from .sure import SureBound
from .verdict import Rule, Verdict
from .worth import WorthIt


@dataclass(frozen=True)
class AutoStop(StopRule):
    """The regret bound where the best trial has folds, the worth of a further trial where there is a price, else nothing.

    price        see ``WorthIt``; ``method=Gittins(price)`` brings it along
    tolerance, fold_sizes, train_sizes    see ``RegretBound``; with a tolerance no folds are needed
    """

    price: float | None = None
    tolerance: float | None = None
    fold_sizes: tuple[int, ...] | None = None
    train_sizes: tuple[int, ...] | None = None
    cost_model: CostModel = field(default_factory=AutoCost)

    def __post_init__(self) -> None:
        check_number("AutoStop", "price", self.price, 0.0, math.inf, optional=True)
        check_number("AutoStop", "tolerance", self.tolerance, 0.0, math.inf, optional=True)
        check_sizes("AutoStop", self.fold_sizes, self.train_sizes)

    @property
    def bound(self) -> SureBound:
        return SureBound(self.tolerance, fold_sizes=self.fold_sizes, train_sizes=self.train_sizes)

    def check(self, history: History, space: Space) -> Verdict:
        best = history.best
        rules: list[StopRule] = []
        if self.tolerance is not None or (best is not None and best.folds is not None):
            rules.append(self.bound)
        if self.price is not None:
            rules.append(WorthIt(self.price, cost_model=self.cost_model))
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
        return rule.bound
    inner = rule.rules if isinstance(rule, Joined) else ()
    return next((found for part in inner if (found := find_bound(part)) is not None), None)
