"""``stop="auto"``: the rule that the trials allow, and how ``stop=`` is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._validation import number_between
from ..cost.base import CostModel
from ..data.history import History
from ..search.base import Method
from ..search.bayes import Bayes
from ..surrogate.belief import Belief
from .base import Joined, Rule, StopRule, Verdict, check_rule_class
from .cost_benefit import WorthIt
from .regret import RegretBound, SureBound, check_sizes


@dataclass(frozen=True)
class AutoStop(StopRule):
    """What ``stop="auto"`` is: a regret bound where trials have folds, cost-benefit stopping where there is a price.

    Where there is neither, the budget alone decides. Write it out to give the parts their options.

    price                    see ``WorthIt``; ``method=Gittins(price)`` brings it along
    tolerance                see ``RegretBound``; with a tolerance no folds are needed
    fold_sizes, train_sizes  see ``RegretBound``
    cost_model               see ``WorthIt``

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), stop=st.AutoStop(tolerance=0.01))
    >>> study.result.stop.stop
    False
    """

    price: float | None = None
    tolerance: float | None = None
    fold_sizes: tuple[int, ...] | None = None
    train_sizes: tuple[int, ...] | None = None
    cost_model: CostModel | None = None

    def __post_init__(self) -> None:
        for field in ("price", "tolerance"):
            number_between(getattr(self, field), f"AutoStop: {field}", 0.0, low_included=False, optional=True)
        check_sizes("AutoStop", self.fold_sizes, self.train_sizes)

    @property
    def bound(self) -> SureBound:
        return SureBound(self.tolerance, fold_sizes=self.fold_sizes, train_sizes=self.train_sizes)

    @property
    def wants_cost(self) -> bool:
        return self.price is not None

    def needs_belief(self, history: History) -> bool:
        return any(rule.needs_belief(history) for rule in self.rules_for(history))

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        verdict = Verdict(False, "without folds, a tolerance or a price the budget alone decides")
        for rule in self.rules_for(history):
            verdict = rule.check(history, belief)
            if verdict.stop:
                break
        return verdict

    def rules_for(self, history: History) -> list[StopRule]:
        """The rules that apply to what the trials have."""
        rules: list[StopRule] = []
        best = history.best if self.tolerance is None else None
        if self.tolerance is not None or (best is not None and best.folds is not None):
            rules.append(self.bound)
        if self.price is not None:
            rules.append(WorthIt(self.price, cost_model=self.cost_model))
        return rules


def find_bound(rule: Rule | None) -> RegretBound | None:
    """The regret bound that a rule is, contains or would use."""
    if isinstance(rule, RegretBound):
        return rule
    if isinstance(rule, AutoStop):
        return rule.bound
    inner = rule.rules if isinstance(rule, Joined) else ()
    return next((found for part in inner if (found := find_bound(part)) is not None), None)


def read_rule(stop: Any, method: Method) -> Rule | None:
    """``stop=`` as a rule: ``"auto"`` (which takes the price of a method that has one), None, or a rule."""
    if stop is None:
        return None
    if isinstance(stop, str) and stop == "auto":
        return AutoStop(price=method.acquisition.price if isinstance(method, Bayes) else None)
    check_rule_class(stop)
    return stop  # type: ignore[no-any-return]
