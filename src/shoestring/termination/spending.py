"""The budget as a stopping rule."""

from __future__ import annotations

from ..budget import Budget
from ..history import History
from ..wording import amount, plural
from .verdict import Verdict


def check_budget(budget: Budget, history: History, seconds: float, unit: str = "s") -> Verdict:
    """Whether the budget is used up; running trials count as trials, so that many workers do not overshoot."""
    evidence = {"trials": float(history.counted), "seconds": seconds, "cost": history.spent}
    for name, limit in (("trials", budget.trials), ("seconds", budget.seconds), ("cost", budget.cost)):
        if limit is not None and evidence[name] >= limit:
            counted = (budget.unit or unit) if name == "cost" else "s"
            whole = plural(int(limit), "trial") if name == "trials" else amount(limit, counted)
            return Verdict(True, f"the budget of {whole} is used up", evidence | {"limit": float(limit)}, kind="budget")
    return Verdict(False, "budget is left", evidence, kind="budget")
