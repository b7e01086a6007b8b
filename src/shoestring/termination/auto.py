"""``stop="auto"``: whatever the trials allow to be said about when more would not pay.

From what the user wrote as ``stop=`` to a rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..cost.auto import AutoCost
from ..cost.base import CostModel
from ..data.history import History
from ..errors import MethodError
from ..search.base import Method
from ..search.bayes import Bayes
from ..space.space import Space
from .base import Joined, Rule, StopRule, Verdict
from .cost_benefit import WorthIt
from .regret import RegretBound, SureBound, check_number, check_sizes


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


def choose_rule(stop: Any, method: Method, cost_model: CostModel) -> Rule | None:
    """``"auto"`` (which takes the price of a method that has one, and the study's cost model), None, or a rule."""
    if stop is None:
        return None
    if isinstance(stop, str) and stop == "auto":
        return AutoStop(price=method.acquisition.price if isinstance(method, Bayes) else None, cost_model=cost_model)
    if isinstance(stop, type):
        raise MethodError(f"stop={stop.__name__} is a class; write {stop.__name__}(...)")
    if not hasattr(stop, "check"):
        raise MethodError(
            f'stop={stop!r} is not a rule; give "auto", None, st.RegretBound(0.01), st.Patience(30), ..., '
            "or an object with check(history, space)"
        )
    return stop  # type: ignore[no-any-return]
