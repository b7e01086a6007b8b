"""What a stopping rule is: a function from the history and the belief to a verdict, with its reason.

To write one, derive from ``StopRule`` and define ``check(history, belief)``:

    @dataclass(frozen=True)
    class EnoughTrials(st.StopRule):
        most: int = 100

        def check(self, history, belief=None):
            return st.Verdict(len(history) >= self.most, f"{len(history)} of {self.most} trials")

Rules are joined by ``|`` (either says stop) and ``&`` (both do). ``belief`` is the one that the next suggestion uses: the study's
own surrogate, fitted once a step; for a rule from outside it is fitted when the rule first looks at it. A rule that is called by
hand with a history alone may fit one for itself (``belief_of``).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from ..acquisition.optimize.optimizer import AcquisitionOptimizer, OptimizerOptions
from ..cost.base import CostModel
from ..data.dataset import Dataset, to_dataset
from ..data.history import History
from ..errors import MethodError
from ..space.encoding import Encoding
from ..surrogate.base import Surrogate
from ..surrogate.belief import Belief, fit_belief, fit_cost

RULE_OPTIONS = OptimizerOptions(raw_samples=256, local_samples=128, restarts=6, rounds=2)  # a rule is checked after every trial
CANDIDATES_ONLY = OptimizerOptions(raw_samples=128, local_samples=64, restarts=0, rounds=0)
BEST_TRIALS_SEARCHED = 5  # best trials whose neighbourhood is searched
RULE_STREAM = 0x5709  # the same candidates whenever the same history is looked at


@dataclass(frozen=True)
class Verdict:
    """Whether to stop, and why: what a stopping rule answers, and what ``result.stop`` holds.

    stop      whether to stop; a verdict is also True or False by itself
    reason    in words
    evidence  in numbers, by name
    kind      for programs: "rule", "budget", ...

    >>> verdict = st.Verdict(True, "the error is below 0.05", {"error": 0.04})
    >>> bool(verdict), verdict.reason
    (True, 'the error is below 0.05')
    """

    stop: bool
    reason: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    kind: str = "rule"

    def __bool__(self) -> bool:
        return self.stop


class Rule(Protocol):
    """A stopping rule: from what happened and what is believed to a verdict, whatever the search method."""

    def check(self, history: History, belief: Belief | None = None) -> Verdict: ...


class StopRule(ABC):
    """Base class of stopping rules: looks at a history and a belief, and changes nothing.

    Derive from it to write a rule of your own: define ``check``. Rules are joined by ``|`` (either) and ``&`` (both).

    uses_cost  whether it looks at ``belief.cost``

    >>> class GoodEnough(st.StopRule):
    ...     def check(self, history, belief=None):
    ...         return st.Verdict(bool(history.best and history.best.value < 0.5), "good enough")
    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: c["x"], space, 20, method=st.Sobol(), stop=GoodEnough()).stop.reason
    'good enough'
    """

    uses_cost: ClassVar[bool] = False

    @abstractmethod
    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        """Whether to stop, why, and the numbers behind it."""

    def needs_belief(self, history: History) -> bool:
        """Whether ``check`` looks at the belief this time; where it does not, none is computed."""
        return True

    @property
    def wants_cost(self) -> bool:
        return self.uses_cost

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
    """Several rules; ``every``: all of them have to say stop. Rules that can no longer change the outcome are not checked."""

    rules: tuple[Rule, ...]
    every: bool

    def __repr__(self) -> str:
        return f"({(' & ' if self.every else ' | ').join(map(repr, self.rules))})"

    def needs_belief(self, history: History) -> bool:
        return any(not isinstance(rule, StopRule) or rule.needs_belief(history) for rule in self.rules)

    @property
    def wants_cost(self) -> bool:
        return any(not isinstance(rule, StopRule) or rule.wants_cost for rule in self.rules)

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        verdicts = []
        for rule in self.rules:
            verdicts.append(rule.check(history, belief))
            if verdicts[-1].stop != self.every:
                break
        evidence: dict[str, float] = {}
        for rule, verdict in zip(self.rules, verdicts, strict=False):
            for name, value in verdict.evidence.items():
                evidence[name if name not in evidence else f"{type(rule).__name__} {name}"] = value
        if verdicts[-1].stop == self.every:  # all rules were checked
            return Verdict(self.every, ("; and " if self.every else "; ").join(v.reason for v in verdicts), evidence)
        return Verdict(verdicts[-1].stop, verdicts[-1].reason, evidence)


def stored_text(rule: Any, added: tuple[str, ...]) -> str:
    """The repr of a dataclass, without those of the ``added`` fields that have their default.

    A rule is stored as its repr. So a field that was added later does not change what is stored of rules that do not use it.
    """
    shown = [each for each in fields(rule) if each.name not in added or getattr(rule, each.name) != each.default]
    return f"{type(rule).__name__}({', '.join(f'{each.name}={getattr(rule, each.name)!r}' for each in shown)})"


def check_rule_class(rule: Any) -> None:
    """A MethodError that names the method to write, unless this can be used as a rule."""
    if isinstance(rule, type):
        raise MethodError(f"stop={rule.__name__} is a class; write {rule.__name__}(...)")
    if not callable(getattr(rule, "check", None)):
        raise MethodError(
            f'stop={rule!r} is not a rule; give "auto", None, st.RegretBound(0.01), st.Patience(30), ..., '
            "or an object with check(history, belief)"
        )
    try:
        parameters = list(inspect.signature(rule.check).parameters.values())
    except (TypeError, ValueError):  # some callables have no signature
        return
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    enough = len(positional) >= 2 or any(each.kind is each.VAR_POSITIONAL for each in parameters)
    needed = sum(each.default is each.empty for each in positional)
    if not enough or needed > 2 or any(each.name == "space" for each in positional[1:2]):
        name = type(rule).__name__
        raise MethodError(f"{name}.check must be check(self, history, belief); the space is history.space")


# -- what rules look at ------------------------------------------------------------------------------------------------


def belief_of(history: History, model: Surrogate, cost_model: CostModel | None = None) -> Belief:
    """A belief for a rule that was called with a history alone: the model fitted to everything."""
    data, encoding, known = to_dataset(history), Encoding(history.space), history.warm_start
    belief = fit_belief(data, encoding, model, known)
    if cost_model is None:
        return belief
    return with_cost(belief, history, cost_model)


def with_cost(belief: Belief, history: History, cost_model: CostModel) -> Belief:
    """The belief with a cost model of the rule's own."""
    cost = fit_cost(to_dataset(history), belief.encoding, cost_model, (history.warm_start or {}).get("cost"))
    return replace(belief, cost=cost)


def rule_optimizer(
    data: Dataset, encoding: Encoding, *, anywhere: bool, options: OptimizerOptions = RULE_OPTIONS
) -> AcquisitionOptimizer:
    """The optimizer of a rule; ``anywhere``: evaluated points count too. Nothing in it depends on how the trials were chosen."""
    visited = np.empty((0, data.U.shape[1])) if anywhere else data.visited
    rng = np.random.default_rng([RULE_STREAM, len(data.y)])
    return AcquisitionOptimizer(encoding, rng, visited, data.U[data.best(BEST_TRIALS_SEARCHED)], options)
