"""What the trials of a study amount to, kept up to date with each of them, so that a limit is one comparison away.

A trial's share in it is taken out and put back when the trial changes: an abandoned trial's charge gives way to the cost of its
late result.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from ..errors import OverBudget, StorageError
from ..trial import State
from .base import Limits

MOST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Totals:
    """counted: trials that are not abandoned;   reserved: what those that run are expected to cost."""

    trials: int = 0
    counted: int = 0
    running: int = 0
    spent: float = 0.0
    reserved: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        running = self.running + other.running
        return Totals(
            self.trials + other.trials,
            self.counted + other.counted,
            running,
            min(max(self.spent + other.spent, 0.0), MOST),
            min(max(self.reserved + other.reserved, 0.0), MOST) if running else 0.0,  # no dust of rounding stays behind
        )

    def __neg__(self) -> Totals:
        return Totals(-self.trials, -self.counted, -self.running, -self.spent, -self.reserved)

    def changed(self, before: Totals, after: Totals) -> Totals:
        """With one trial's share replaced."""
        return self + -before + after

    def require_room(self, limits: Limits | None) -> None:
        """Raise OverBudget if the limits leave no room for another trial."""
        if limits is None:
            return
        if limits.trials is not None and self.counted >= limits.trials:
            raise OverBudget(f"the study has {self.counted} of {limits.trials} trials")
        if limits.cost is not None and self.spent + self.reserved >= limits.cost:
            running = f", and {self.reserved:g} are expected of the {self.running} that run" if self.running else ""
            raise OverBudget(f"the study has spent {self.spent:g} of {limits.cost:g}{running}")


def share(state: State, cost: float | None, expected: float | None) -> Totals:
    """What one trial adds."""
    running = state is State.RUNNING
    return Totals(1, int(state is not State.ABANDONED), int(running), cost or 0.0, (expected or 0.0) if running else 0.0)


def guess(value: float | None) -> float | None:
    """What a trial is expected to cost; a guess that is not a finite number is none."""
    return float(value) if value is not None and math.isfinite(value) and value >= 0 else None


def amount(value: float | None, what: str) -> float | None:
    """A cost or a time as a float, or a StorageError: one NaN would make every sum NaN, and a limit is never reached."""
    if value is None:
        return None
    if not math.isfinite(value) or value < 0:
        raise StorageError(f"{what} must be a finite number of 0 or more, not {value!r}")
    return float(value)
