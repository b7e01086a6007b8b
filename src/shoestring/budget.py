"""Budgets: limits on the trials, the wall-clock time and the cost of a study."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from ._validation import SECONDS_OF, is_number, plain, seconds_of
from .errors import BudgetError


@dataclass(frozen=True)
class Budget:
    """The limits of a whole study, earlier runs included. The study ends at the first limit that it reaches.

    Use it for several limits at once, or for costs. For one limit a text or a number is enough: "10m", "20 USD", 40.

    trials    the number of trials; failed and running ones count, abandoned ones and results from elsewhere do not
    seconds   wall-clock time inside ``minimize``, the optimizer's own work included, with any number of workers; for processes
              that share a study, the time during which any of them runs
    cost      the sum of the trials' costs, in ``unit``
    unit      the unit of costs; the study's unit if it is None
    per_hour  the price of an hour in that unit; trials that report no cost are charged for their time

    >>> budget = st.Budget(cost=5, seconds=3600, unit="USD")
    >>> result = st.minimize(lambda c: st.Outcome(c["x"], cost=1), st.Space(x=st.Float(0, 1)), budget, method=st.Random())
    >>> len(result.history), result.unit
    (5, 'USD')
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
        if self.trials is not None:
            object.__setattr__(self, "trials", int(self.trials))


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


HOW_TO_WRITE = 'give "10m" (time), "20 USD" (cost), a number of trials, or st.Budget(...)'
MIN_LIKENESS = 0.7  # of a unit to a word for time, from which it is taken for a typing error
_AMOUNT = re.compile(r"\s*(?P<number>\d+\.?\d*|\.\d+)\s*(?P<unit>[^\W\d_]{2,}|[CG]PU-[sh]|J|[$€£¥])\s*")
UNITS_IN_WORDS = ("credits", "dollars", "euros", "joules", "points", "tokens", "units")  # others have a capital: USD, kWh


def read_budget(budget: Any) -> Budget:
    """The Budget for ``"10m"`` (wall-clock time), ``"20 USD"`` (cost), ``40`` or ``"40 trials"``, or for a Budget itself."""
    if isinstance(budget, Budget):
        return budget
    budget = plain(budget)
    if isinstance(budget, bool) or budget is None:
        raise BudgetError(f"a budget is needed; {HOW_TO_WRITE}")
    if isinstance(budget, int):
        return Budget(trials=budget)
    if isinstance(budget, str):
        return read_budget_text(budget)
    if isinstance(budget, float):
        raise BudgetError(f"budget={budget!r} has no unit: is it time or cost? {HOW_TO_WRITE[0].upper()}{HOW_TO_WRITE[1:]}")
    raise BudgetError(f"budget={budget!r} cannot be read; {HOW_TO_WRITE}")


def read_budget_text(text: str, unit: str | None = None) -> Budget:
    """A budget from ``10m`` or ``10 minutes`` (time), ``40`` or ``40 trials``, or ``20 USD`` (cost in a unit).

    A unit that looks like an ordinary word is refused, unless it is the given ``unit`` of costs: "40 trails" is no cost.
    """
    words = text.strip()
    if words.isdecimal():
        return Budget(trials=int(words))
    try:
        return Budget(seconds=seconds_of(words))
    except BudgetError:
        found = _AMOUNT.fullmatch(words)
        if found is None:
            raise BudgetError(f"budget={text!r} cannot be read; {HOW_TO_WRITE}") from None
        word = found["unit"]
        if difflib.get_close_matches(word.lower(), SECONDS_OF, cutoff=MIN_LIKENESS) and word != unit:  # "10 minuts" is no cost
            raise
    if found["unit"].lower() in ("trial", "trials"):
        return Budget(trials=float(found["number"]))  # type: ignore[arg-type]  # checked there
    if word.islower() and word != unit and word not in UNITS_IN_WORDS:
        raise BudgetError(
            f"budget={text!r} cannot be read: {word} is no time and no known unit; for trials write {found['number']!r}, "
            f"for a cost in {word} st.Budget(cost={found['number']}, unit={word!r})"
        )
    return Budget(cost=float(found["number"]), unit=word)
