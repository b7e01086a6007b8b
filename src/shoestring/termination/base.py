"""What a stopping rule is asked and what it answers.

Rules that can be joined: ``RegretBound(0.01) | Patience(30)`` stops when either says so, ``&`` when both do.

The budget as a stopping rule.

What a rule sees: a history as arrays, a model of it, and where to look for something better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from .._format import amount, plural
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, OptimizerOptions
from ..budget import Budget
from ..cost.base import CostModel
from ..data.dataset import Dataset, to_dataset
from ..data.history import History
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.belief import Belief, Spending, fit_belief, fit_cost
from ..surrogate.gp import GP


@dataclass(frozen=True)
class Verdict:
    """Stop or not, the reason in words, the evidence in numbers, and for programs what kind of reason it is."""

    stop: bool
    reason: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    kind: str = "rule"

    def __bool__(self) -> bool:
        return self.stop


class Rule(Protocol):
    """A stopping rule: from what happened to a verdict, whatever the search method."""

    def check(self, history: History, space: Space) -> Verdict: ...


class StopRule(ABC):
    """A rule of this library: a frozen specification that looks at a history and changes nothing."""

    @abstractmethod
    def check(self, history: History, space: Space) -> Verdict:
        """Whether to stop, why, and the numbers behind it."""

    def __or__(self, other: Rule) -> Joined:
        return Joined((self, other), every=False)

    def __and__(self, other: Rule) -> Joined:
        return Joined((self, other), every=True)

    def __ror__(self, other: Rule) -> Joined:
        return Joined((other, self), every=False)

    def __rand__(self, other: Rule) -> Joined:
        return Joined((other, self), every=True)


@dataclass(frozen=True)
class Joined(StopRule):
    """Several rules; ``every``: all of them have to say stop. Rules that can no longer change the outcome are not asked."""

    rules: tuple[Rule, ...]
    every: bool

    def __repr__(self) -> str:
        return f"({(' & ' if self.every else ' | ').join(map(repr, self.rules))})"

    def check(self, history: History, space: Space) -> Verdict:
        verdicts = []
        for rule in self.rules:
            verdicts.append(rule.check(history, space))
            if verdicts[-1].stop != self.every:
                break
        evidence: dict[str, float] = {}
        for rule, verdict in zip(self.rules, verdicts, strict=False):
            for name, value in verdict.evidence.items():
                evidence[name if name not in evidence else f"{type(rule).__name__} {name}"] = value
        if verdicts[-1].stop == self.every:  # nobody broke the row
            return Verdict(self.every, ("; and " if self.every else "; ").join(v.reason for v in verdicts), evidence)
        return Verdict(verdicts[-1].stop, verdicts[-1].reason, evidence)


def check_budget(budget: Budget, history: History, seconds: float, unit: str = "s") -> Verdict:
    """Whether the budget is used up; running trials count as trials, so that many workers do not overshoot."""
    evidence = {"trials": float(history.counted), "seconds": seconds, "cost": history.spent}
    for name, limit in (("trials", budget.trials), ("seconds", budget.seconds), ("cost", budget.cost)):
        if limit is not None and evidence[name] >= limit:
            counted = (budget.unit or unit) if name == "cost" else "s"
            whole = plural(int(limit), "trial") if name == "trials" else amount(limit, counted)
            return Verdict(True, f"the budget of {whole} is used up", evidence | {"limit": float(limit)}, kind="budget")
    return Verdict(False, "budget is left", evidence, kind="budget")


EFFORT = OptimizerOptions(raw_samples=256, local_samples=128, restarts=6, rounds=2)  # a bound is asked for after every trial
GLANCE = OptimizerOptions(raw_samples=128, local_samples=64, restarts=0, rounds=0)
AROUND = 5  # best trials whose neighbourhood is searched
SEED = 0x5709  # the same candidates whenever the same history is looked at


@dataclass(frozen=True)
class Lookout:
    """A history, ready to be modelled. Nothing in it depends on how the trials were chosen."""

    history: History
    encoding: Encoding
    data: Dataset

    @classmethod
    def over(cls, history: History, space: Space) -> Lookout:
        return cls(history, Encoding(space), to_dataset(history))

    def optimizer(self, *, anywhere: bool) -> AcquisitionOptimizer:
        """``anywhere``: points that were tried count too."""
        seen = self.data
        tried = np.empty((0, seen.U.shape[1])) if anywhere else seen.visited
        rng = np.random.default_rng([SEED, len(seen.y)])
        return AcquisitionOptimizer(self.encoding, rng, tried, seen.U[seen.order[:AROUND]], EFFORT)

    def glance(self) -> AcquisitionOptimizer:
        """A few candidates only, tried points included."""
        return replace(self.optimizer(anywhere=True), options=GLANCE)

    @property
    def start(self) -> dict[str, Any] | None:
        """Hyperparameters from which a fit may start: those of the last suggestion."""
        known = self.history.warm_start
        return {"theta": known["theta"], "trials": len(self.data.y)} if known and known.get("theta") else None

    def belief(self, model: GP, cost_model: CostModel | None = None, spending: Spending | None = None) -> Belief:
        """The model fitted to everything, starting from what the last suggestion knew where there is such."""
        known = self.history.warm_start
        cost = None if cost_model is None else fit_cost(self.data, self.encoding, cost_model, (known or {}).get("cost"))
        return fit_belief(self.data, self.encoding, model, known, cost, spending)
