"""The loop: ask, have it evaluated, tell, until there is a reason to stop.

Whoever evaluates (a ``Crew``) has some trials in hand; whenever they are fewer than it can take, the next one is asked, with what
is known by then. With one worker that is: ask, evaluate, tell.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .budget import Allowance, Budget
from .confirming import confirmed, usable
from .errors import BudgetError, NothingFits, SpaceExhausted
from .evaluate import LiveTrial
from .execution.crew import Crew, Finished
from .execution.retrying import try_again
from .execution.signals import Terminated, interruptible, shielded
from .keeping import save
from .progress import progress_for
from .result import Result
from .storage import Limits
from .termination.rule import StopRule
from .termination.spending import check_budget
from .termination.verdict import Verdict
from .trial import Trial
from .wording import listed

if TYPE_CHECKING:
    from .study import Study

log = logging.getLogger("shoestring")
Callback = Callable[["Study", Trial], object]


def run(
    study: Study,
    budget: Budget,
    crew: Crew,
    callbacks: Callback | Iterable[Callback] = (),
    progress: bool | None = None,
    confirm: bool = False,
    retries: int = 0,
) -> Result:
    """Evaluate trials until the budget is used up, a rule says stop, the space is exhausted, or somebody interrupts.

    Trials that run when there is a reason to stop are waited for: they are paid for, and their results are data. After an
    interruption or an error they are ended, and asked again if the study goes on.

    confirm   the last of the budget is for an evaluation of what is recommended
    retries   how often a config that failed by an exception or a crash is tried again
    """
    callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
    settle_unit(study, budget)
    study.refresh()
    study.halted, study.budget = None, budget
    study.limits = Limits(budget.trials, budget.cost)
    save(study)
    for trial in reversed(study.ledger.orphans()):  # left open by a process that is gone
        study.give_back(trial.number)
    others, clock = study.ledger.here, Clock(study, crew.now)
    running, arrived = dict[int, LiveTrial](), deque[Finished]()

    def begin() -> None:
        """Ask, and hand over."""
        trial = study.ask()
        clock.tick()
        running[trial.number] = live(study, trial, study.budget or budget, clock)
        shown.update(study, budget)
        crew.start(trial, running[trial.number])

    def note(done: Finished) -> Trial:
        """Tell the study."""
        trial = study.record(done.trial, done.seen)
        running.pop(trial.number, None)
        if done.seen.passing:
            try_again(study, trial, retries)
        return trial

    def finish() -> None:
        """Wait until somebody is done, and tell what came of it."""
        arrived.extend(crew.wait())
        while arrived:
            with shielded():
                trial = note(arrived[0])
                arrived.popleft()
            clock.tick()
            mind_the_unit(study, trial)
            shown.update(study, budget)
            for callback in callbacks:
                callback(study, trial.detached())

    def fill() -> Verdict:
        """Begin until nobody is free, or there is a reason to stop."""
        while len(running) < crew.workers:
            if verdict := reason_to_stop(study, usable(study, budget) if confirm else budget):
                return verdict
            try:
                begin()
            except SpaceExhausted as end:
                return Verdict(not running, str(end), kind="exhausted")
            except NothingFits as end:
                return Verdict(not running, str(end), kind="budget")  # what runs may turn out cheaper than expected
        return Verdict(False, "all are at work")

    def one() -> None:
        begin()
        while running:
            finish()

    def give_up() -> list[int]:
        """Keep the results that are here, end all else, and have it asked again.

        A storage that does not answer is left alone: the leases run out by themselves.
        """
        with contextlib.suppress(Exception):  # a crew that is broken has nothing more to say
            arrived.extend(crew.wait(0.0))
        crew.cancel()
        for done in arrived:
            note(done)
        left = sorted(study.ledger.here - others, reverse=True)  # the last one first: each goes to the head of the queue
        return [number for number in left if study.give_back(number, running[number].reports if number in running else ())]

    with interruptible(), crew:
        try:
            with progress_for(progress) as shown:
                verdict = fill()
                while running:
                    finish()
                    verdict = verdict or fill()
                study.budget = budget
                if confirm and verdict.kind != "halted":
                    retries = 0  # what is recommended after a failure is evaluated in any case
                    verdict = confirmed(study, budget, verdict, one)
        except BaseException as stopped:
            with shielded(forget=True):
                again = give_up()
            if not isinstance(stopped, KeyboardInterrupt):
                raise
            verdict = Verdict(True, interrupted(stopped, again), kind="interrupted")
        finally:
            study.limits = None
            study.ledger.save_seconds()
    return Result(study, study.history, verdict, study.unit, study.optimizer_seconds, budget)


def interrupted(by: KeyboardInterrupt, again: Sequence[int]) -> str:
    """interrupted; trials 3, 4 and 5 will be asked again"""
    how = "interrupted by SIGTERM" if isinstance(by, Terminated) else "interrupted"
    numbers = listed([str(number) for number in sorted(again)])
    return f"{how}; {'trial' if len(again) == 1 else 'trials'} {numbers} will be asked again" if again else how


class Clock:
    """The wall-clock time of a run, added to that of its study."""

    def __init__(self, study: Study, now: Callable[[], float]) -> None:
        self.study, self.now, self.since = study, now, now()

    def tick(self) -> None:
        self.study.seconds, self.since = self.total, self.now()

    @property
    def total(self) -> float:
        """The study's seconds up to this moment."""
        return self.study.seconds + self.now() - self.since


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
    study.refresh()
    if study.halted is not None:
        return Verdict(True, study.halted, kind="halted")
    spent = check_budget(budget, study.log, study.seconds, study.unit)
    if spent or study.rule is None or study.ledger.queue:  # what was enqueued is evaluated first
        return spent
    history = study.log if isinstance(study.rule, StopRule) else study.history  # a copy for strangers
    study.checked = study.rule.check(history, study.space)
    return study.checked


def live(study: Study, trial: Trial, budget: Budget, clock: Clock) -> LiveTrial:
    """The trial as its objective sees it."""

    def left() -> Allowance:
        cost = None if budget.cost is None else budget.cost - study.log.spent
        return Allowance(cost, None if budget.seconds is None else budget.seconds - clock.total, study.price_of_a_second)

    def folder() -> Path:
        return study.checkpoint_dir(trial.number)  # by the record: the objective may have changed its own copy of the config

    def hopeless(reports: Sequence[Mapping[str, Any]]) -> str | None:
        found = study.prospect(trial.number, reports)
        return found.reason if found is not None and found.hopeless else None

    def told(report: Mapping[str, Any]) -> None:
        study.ledger.report(trial.number, found.reports)

    found = LiveTrial(trial.number, trial.config, dict(trial.fidelity), study.space, left, folder, hopeless, told, clock.now)
    return found
