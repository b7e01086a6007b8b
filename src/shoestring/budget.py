"""How much may be spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ._validation import plain, seconds_of
from .errors import BudgetError


@dataclass(frozen=True)
class Budget:
    """The whole of what a study may spend, what was spent before included; whichever limit is reached first ends it.

    trials   failed ones and those still open included, abandoned ones not
    seconds  of wall-clock time inside ``minimize``; of processes that share a study, while any of them is at work
    cost     the sum of the trials' costs, in ``unit`` (the study's unit when left out)
    per_hour what an hour costs in that unit: then trials that say nothing of their cost are charged for their time
    """

    trials: int | None = None
    seconds: float | None = None
    cost: float | None = None
    unit: str | None = None
    per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.trials is None and self.seconds is None and self.cost is None:
            raise BudgetError("a budget needs trials=, seconds= or cost=")
        for name in ("trials", "seconds", "cost", "per_hour"):
            limit = plain(getattr(self, name))
            object.__setattr__(self, name, limit)
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0:
                raise BudgetError(f"{name}= must be a positive number, not {limit!r}")
        if self.trials is not None and self.trials != int(self.trials):
            raise BudgetError(f"trials= must be a whole number, not {self.trials!r}")


@dataclass(frozen=True)
class Allowance:
    """What is left of a budget at a moment, for a trial that is running; None where there is no limit.

    cost     of what is left beside all that other trials have cost;   seconds  of wall-clock time from that moment on
    price    what a second counts as, for a trial that says nothing of its cost
    """

    cost: float | None = None
    seconds: float | None = None
    price: float = 1.0

    def exceeded(self, cost: float, elapsed: float) -> bool:
        """By a trial that has cost so much, or, if that is 0, has run for so many seconds."""
        so_far = cost or elapsed * self.price
        return (self.cost is not None and so_far >= self.cost) or (self.seconds is not None and self.seconds <= 0.0)

    def later(self, elapsed: float) -> Allowance:
        """The same so many seconds later, if nothing else has happened."""
        return self if self.seconds is None else replace(self, seconds=self.seconds - elapsed)


def read_budget(budget: Any) -> Budget:
    """``"10m"`` (cost counted in seconds), an int (trials), or a Budget."""
    if isinstance(budget, Budget):
        return budget
    budget = plain(budget)
    if isinstance(budget, bool) or budget is None:
        raise BudgetError('a budget is needed: "10m", a number of trials, or st.Budget(...)')
    if isinstance(budget, int):
        return Budget(trials=budget)
    if isinstance(budget, str):
        return Budget(cost=seconds_of(budget), unit="s")
    raise BudgetError(f'budget={budget!r} cannot be read; give "10m", "3h", "45s", a number of trials, or st.Budget(...)')
