"""The loop: ask, evaluate, tell, until there is a reason to stop."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .budget import Budget
from .errors import SpaceExhausted
from .evaluate import LiveTrial, Objective, evaluate
from .progress import progress_for
from .result import Result
from .termination.spending import check_budget
from .termination.verdict import Verdict
from .trial import Trial

if TYPE_CHECKING:
    from .study import Study

Callback = Callable[["Study", Trial], object]


def run(
    study: Study, objective: Objective, budget: Budget, callbacks: tuple[Callback, ...], raise_errors: bool, progress: bool | None
) -> Result:
    """Evaluate trials until the budget is used up, a rule says stop, the space is exhausted, or somebody interrupts."""
    study.halted = None
    study.unit = budget.unit or study.unit
    with progress_for(progress) as shown:
        while not (verdict := reason_to_stop(study, budget)):
            began, trial = time.perf_counter(), None
            try:
                trial = study.ask()
                shown.update(study, budget)
                trial = study.record(trial, evaluate(objective, trial, live(study, trial, budget), raise_errors=raise_errors))
                shown.update(study, budget)
                for callback in callbacks:
                    callback(study, trial)
            except SpaceExhausted as end:
                verdict = Verdict(True, str(end), kind="exhausted")
                break
            except BaseException as stopped:
                if trial is not None:
                    study.give_back(trial)  # unless it has finished
                if not isinstance(stopped, KeyboardInterrupt):
                    raise
                verdict = Verdict(True, "interrupted; a trial that was running will be asked again", kind="interrupted")
                break
            finally:
                study.seconds += time.perf_counter() - began
    return Result(study, study.history, verdict)


def reason_to_stop(study: Study, budget: Budget) -> Verdict:
    """The first of: a halt that was asked for, the budget, the study's rule."""
    if study.halted is not None:
        return Verdict(True, study.halted, kind="halted")
    spent = check_budget(budget, study.history, study.seconds, study.unit)
    return spent if spent or study.rule is None else study.rule.check(study.history, study.space)


def live(study: Study, trial: Trial, budget: Budget) -> LiveTrial:
    """The trial as its objective sees it."""
    began, before = time.perf_counter(), study.history.spent

    def over(cost: float) -> bool:
        seconds = time.perf_counter() - began
        return (budget.cost is not None and before + (cost or seconds) >= budget.cost) or (
            budget.seconds is not None and study.seconds + seconds >= budget.seconds
        )

    return LiveTrial(trial.number, copy.deepcopy(trial.config), dict(trial.fidelity), study.space, over)
