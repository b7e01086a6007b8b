"""The budget as a stopping rule."""

from __future__ import annotations

from ..budget import Budget
from ..history import History
from ..trial import State
from .verdict import Verdict


def check_budget(budget: Budget, history: History, seconds: float) -> Verdict:
    """Whether the budget is used up; running trials count as trials, so that many workers do not overshoot."""
    trials = len(history) - len(history.having(State.ABANDONED))
    evidence = {"trials": float(trials), "seconds": seconds, "cost": history.spent}
    limits = (("trials", budget.trials, "trials"), ("seconds", budget.seconds, "s"), ("cost", budget.cost, budget.unit))
    for name, limit, unit in limits:
        if limit is not None and evidence[name] >= limit:
            return Verdict(True, f"the budget of {limit:g} {unit} is used up", evidence | {"limit": float(limit)})
    return Verdict(False, "budget is left", evidence)
