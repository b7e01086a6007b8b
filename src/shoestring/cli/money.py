"""What a run may spend, from the words of a command line: ``10m``, ``40`` (trials), ``20 USD``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from ..budget import Budget, read_budget, seconds_of
from ..errors import BudgetError

_PRICE = re.compile(r"\s*(?P<number>\d+\.?\d*|\.\d+)\s*(?P<unit>[^\d\s.,+-]\S*)\s*")


def make_budget(given: Mapping[str, Any]) -> Budget:
    """``--budget``, ``--max-trials``, ``--max-time``, ``--unit`` and ``--per-hour`` as one budget."""
    if not any(key in given for key in ("budget", "max_trials", "max_time")):
        raise click.UsageError("how much may it spend? give --budget 10m, --budget 40 (trials) or --budget '20 USD'")
    unit, per_hour = given.get("unit"), given.get("per_hour")
    limits: dict[str, Any] = {"trials": given.get("max_trials"), "seconds": seconds(given, "max_time")}
    try:
        total = budget_of(given["budget"]) if "budget" in given else None
        if total is not None and total.cost is not None:
            if unit is not None and total.unit != unit:
                raise BudgetError(f"costs are counted in {unit}, so write --budget '20 {unit}'; --max-time is for the clock")
            limits |= {"cost": total.cost, "unit": total.unit}
        elif total is not None:
            limits["trials"] = min(total.trials or 0, limits["trials"] or total.trials or 0)
        if per_hour is not None and limits.get("unit", unit) in (None, "s"):
            raise BudgetError("--per-hour is the price of an hour in what? give --unit USD")
        return Budget(**{"unit": unit, "per_hour": per_hour} | limits)
    except BudgetError as error:
        raise click.UsageError(str(error)) from None


def budget_of(text: Any) -> Budget:
    """``10m``, ``40``, ``20 USD``."""
    words = str(text).strip()
    if words.isdecimal():
        return Budget(trials=int(words))
    price = _PRICE.fullmatch(words)
    try:
        return read_budget(words)
    except BudgetError:
        if price is None:
            raise
    return Budget(cost=float(price["number"]), unit=price["unit"])


def seconds(given: Mapping[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is None or isinstance(value, float):
        return value
    try:
        return seconds_of(str(value))
    except BudgetError:
        raise click.UsageError(f"{key.replace('_', '-')} {value!r} cannot be read; write it like 90s, 5m or 2h") from None
