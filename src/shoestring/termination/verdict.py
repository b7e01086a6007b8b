"""What a stopping rule answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Verdict:
    """Stop or not, the reason in words, and the evidence in numbers."""

    stop: bool
    reason: str
    evidence: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.stop
