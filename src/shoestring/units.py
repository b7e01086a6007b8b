"""In what a study counts cost: settled when a run begins, and minded while it goes on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .budget import Budget
from .data.trial import Trial
from .errors import BudgetError

if TYPE_CHECKING:
    from .study import Study

log = logging.getLogger("shoestring")


def settle_unit(study: Study, budget: Budget) -> None:
    """The budget's unit becomes the study's, unless costs in another one are there already."""
    study.per_hour = budget.per_hour if budget.per_hour is not None else study.per_hour
    if budget.unit is None or budget.unit == study.unit:
        return
    if any(trial.cost is not None for trial in study.state.trials):
        raise BudgetError(
            f"this study counts cost in {study.unit}, not in {budget.unit}; "
            f'give st.Budget(cost=..., unit="{study.unit}"), or st.Budget(seconds=...) for wall-clock time, '
            f"or begin the study with Study(unit={budget.unit!r})"
        )
    study.unit = budget.unit


def mind_the_unit(study: Study, trial: Trial) -> None:
    """Say so once when seconds are counted as if they were the study's unit."""
    if study.unit != "s" and study.per_hour is None and trial.cost is not None and trial.cost == trial.seconds:
        if not study.minded:
            log.warning(
                "trial %d gave no cost, so its seconds are counted as %s; return st.Outcome(value, cost=...), "
                "or say what an hour costs: st.Budget(..., per_hour=...)", trial.number, study.unit,
            )
        study.minded = True
