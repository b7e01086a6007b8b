"""Rules that can be joined: ``RegretBound(0.01) | Patience(30)`` stops when either says so, ``&`` when both do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..history import History
from ..space import Space
from .verdict import Rule, Verdict


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
