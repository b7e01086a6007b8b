"""Budgets: limits on the trials, the wall-clock time and the cost of a study."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ._validation import is_number, plain, seconds_of
from .errors import BudgetError


@dataclass(frozen=True)
class Budget:
    """The limits of a whole study, earlier runs included. The study ends at the first limit that it reaches.

    trials    the number of trials; failed and running ones count, abandoned ones do not
    seconds   wall-clock time inside ``minimize``; for processes that share a study, the time during which any of them runs
    cost      the sum of the trials' costs, in ``unit``
    unit      the unit of costs; the study's unit if it is None
    per_hour  the price of an hour in that unit; trials that report no cost are charged for their time
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
            if not is_number(limit) or not 0 < limit < math.inf:
                raise BudgetError(f"{name}= must be a positive number, not {limit!r}")
        if self.trials is not None and self.trials != int(self.trials):
            raise BudgetError(f"trials= must be a whole number, not {self.trials!r}")


@dataclass(frozen=True)
class Allowance:
    """The rest of a budget at one moment, for a trial that is running; None where there is no limit.

    cost     the budget in cost, less the costs of all other trials
    seconds  the wall-clock time left from that moment on
    price    the cost of one second, for a trial that reports no cost
    """

    cost: float | None = None
    seconds: float | None = None
    price: float = 1.0

    def exceeded(self, cost: float, elapsed: float) -> bool:
        """Whether a trial with this cost so far, or after these ``elapsed`` seconds if the cost is 0, has used it up."""
        so_far = cost or elapsed * self.price
        return (self.cost is not None and so_far >= self.cost) or (self.seconds is not None and self.seconds <= 0.0)

    def later(self, elapsed: float) -> Allowance:
        """The allowance ``elapsed`` seconds later, if nothing else was spent."""
        return self if self.seconds is None else replace(self, seconds=self.seconds - elapsed)


def read_budget(budget: Any) -> Budget:
    """The Budget for ``"10m"`` (a cost in seconds), for an int (trials), or for a Budget itself."""
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
