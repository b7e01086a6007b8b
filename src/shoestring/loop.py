"""The loop: ask, evaluate, tell, until there is a reason to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .budget import Budget
from .confirming import confirmed, usable
from .errors import BudgetError, NothingFits, SpaceExhausted
from .evaluate import LiveTrial, Objective, evaluate
from .progress import progress_for
from .result import Result
from .termination.rule import StopRule
from .termination.spending import check_budget
from .termination.verdict import Verdict
from .trial import Trial

if TYPE_CHECKING:
    from .study import Study

log = logging.getLogger("shoestring")
Callback = Callable[["Study", Trial], object]


def run(
    study: Study,
    objective: Objective,
    budget: Budget,
    callbacks: Callback | Iterable[Callback],
    raise_errors: bool,
    progress: bool | None,
    confirm: bool = False,
) -> Result:
    """Evaluate trials until the budget is used up, a rule says stop, the space is exhausted, or somebody interrupts.

    ``confirm``: the last of the budget is for an evaluation of what is recommended.
    """
    callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
    settle_unit(study, budget)
    study.halted, study.budget = None, budget
    for trial in reversed(study.ledger.orphans()):  # left open by a process that is gone
        study.give_back(trial.number)
    running: LiveTrial | None = None

    def one() -> None:
        """Ask, evaluate, tell."""
        nonlocal running
        began = time.perf_counter()
        trial = study.ask()
        running = live(study, trial, study.budget or budget)
        shown.update(study, budget)
        trial = study.record(trial, evaluate(objective, trial, running, raise_errors=raise_errors))
        study.seconds += time.perf_counter() - began
        mind_the_unit(study, trial)
        shown.update(study, budget)
        for callback in callbacks:
            callback(study, trial.detached())

    try:
        with progress_for(progress) as shown:
            while not (verdict := reason_to_stop(study, usable(study, budget) if confirm else budget)):
                try:
                    one()
                except SpaceExhausted as end:
                    verdict = Verdict(True, str(end), kind="exhausted")
                    break
                except NothingFits as end:
                    verdict = Verdict(True, str(end), kind="budget")
                    break
            study.budget = budget
            if confirm and verdict.kind != "halted":
                verdict = confirmed(study, budget, verdict, one)
    except BaseException as stopped:
        again = running is not None and study.give_back(running.number, running.reports)
        if not isinstance(stopped, KeyboardInterrupt):
            raise
        kept = f"; trial {running.number} will be asked again" if running is not None and again else ""
        verdict = Verdict(True, f"interrupted{kept}", kind="interrupted")
    return Result(study, study.history, verdict, study.unit, study.optimizer_seconds, budget)


def settle_unit(study: Study, budget: Budget) -> None:
    """The budget's unit becomes the study's, unless costs in another one are there already."""
    study.per_hour = budget.per_hour if budget.per_hour is not None else study.per_hour
    if budget.unit is None or budget.unit == study.unit:
        return
    if any(trial.cost is not None for trial in study.ledger.trials):
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


def reason_to_stop(study: Study, budget: Budget) -> Verdict:
    """The first of: a halt that was asked for, the budget, the study's rule."""
    if study.halted is not None:
        return Verdict(True, study.halted, kind="halted")
    spent = check_budget(budget, study.log, study.seconds, study.unit)
    if spent or study.rule is None or study.ledger.queue:  # what was enqueued is evaluated first
        return spent
    history = study.log if isinstance(study.rule, StopRule) else study.history  # a copy for strangers
    study.checked = study.rule.check(history, study.space)
    return study.checked


def live(study: Study, trial: Trial, budget: Budget) -> LiveTrial:
    """The trial as its objective sees it."""
    began, before = time.perf_counter(), study.log.spent

    def over(cost: float) -> bool:
        seconds = time.perf_counter() - began
        so_far = cost or seconds * study.price_of_a_second
        return (budget.cost is not None and before + so_far >= budget.cost) or (
            budget.seconds is not None and study.seconds + seconds >= budget.seconds
        )

    def folder() -> Path:
        return study.checkpoint_dir(trial.number)  # by the record: the objective may have changed its own copy of the config

    def hopeless(reports: Sequence[Mapping[str, Any]]) -> str | None:
        found = study.prospect(trial.number, reports)
        return found.reason if found is not None and found.hopeless else None

    return LiveTrial(trial.number, trial.config, dict(trial.fidelity), study.space, over, folder, hopeless)
