"""What a stopping rule is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..history import History
from ..space import Space


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
