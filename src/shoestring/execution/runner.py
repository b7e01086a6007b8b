"""The loop: ask, have it evaluated, tell, until there is a reason to stop.

Whoever evaluates (a ``TrialExecutor``) has some trials in hand; whenever they are fewer than it can take, the next one is asked, with what
is known by then. With one worker that is: ask, evaluate, tell.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .._format import listed
from ..budget import Budget
from ..data.trial import Trial
from ..errors import NothingFits, SpaceExhausted, StorageError
from ..report.progress import progress_for
from ..report.result import Result
from ..state.persistence import save
from ..storage import Limits
from ..storage.patience import SHORT, patience
from ..termination.base import StopRule, Verdict, check_budget
from ..units import mind_the_unit, settle_unit
from .confirm import confirmed, usable
from .evaluate import LiveTrial
from .executor import CompletedTrial, TrialExecutor
from .live import Clock, live
from .retry import OutageGuard, retry_trial, tell_command
from .signals import Terminated, interruptible, shielded

if TYPE_CHECKING:
    from ..study import Study

log = logging.getLogger("shoestring")
Callback = Callable[["Study", Trial], object]


def run(
    study: Study,
    budget: Budget,
    crew: TrialExecutor,
    callbacks: Callback | Iterable[Callback] = (),
    progress: bool | None = None,
    confirm: bool = False,
    retries: int = 0,
) -> Result:
    """Evaluate trials until the budget is used up, a rule says stop, the space is exhausted, or somebody interrupts.

    Trials that run when there is a reason to stop are waited for: they are paid for, and their results are data. After an
    interruption or an error they are ended, and asked again if the study goes on. While the storage does not answer, they go on
    and their results are held.

    confirm   the last of the budget is for an evaluation of what is recommended
    retries   how often a config that failed by an exception or a crash is tried again
    """
    callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks)
    study.reap()
    study.refresh()
    settle_unit(study, budget)
    study.halted, study.budget = None, budget
    study.limits = Limits(budget.trials, budget.cost)
    save(study)
    for trial in reversed(study.state.orphans()):  # left open by a process that is gone
        study.give_back(trial.number, died=study.state.heart is not None)
    others, clock = study.state.here, Clock(study, crew.now)
    running, arrived = dict[int, LiveTrial](), deque[CompletedTrial]()

    def begin() -> None:
        """Ask, and hand over."""
        trial = outage.bridge(study.ask)
        clock.tick()
        running[trial.number] = live(study, trial, study.budget or budget, clock)
        shown.update(study, budget)
        crew.start(trial, running[trial.number])

    def note() -> Trial:
        """Tell the study of the first result that is here; it stays until that is done."""
        with shielded():
            done = arrived[0]
            trial = study.record(done.trial, done.seen)
            if done.seen.passing:
                retry_trial(study, trial, retries)
            running.pop(trial.number, None)
            arrived.popleft()
        return trial

    def hear(seconds: float | None) -> None:
        arrived.extend(crew.wait(seconds))

    def finish() -> None:
        """Wait until somebody is done, and tell what came of it."""
        if not arrived:
            hear(None)
        while arrived:
            trial = outage.bridge(note)
            clock.tick()
            mind_the_unit(study, trial)
            shown.update(study, budget)
            for callback in callbacks:
                callback(study, trial.detached())

    def fill() -> Verdict:
        """Begin until nobody is free, or there is a reason to stop."""
        while len(running) < crew.workers:
            if verdict := outage.bridge(lambda: reason_to_stop(study, usable(study, budget) if confirm else budget)):
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
            hear(0.0)
        crew.cancel()
        again = list[int]()
        try:
            with patience(SHORT):
                while arrived:
                    note()
                for number in sorted(study.state.here - others, reverse=True):  # the last first: each goes to the queue's head
                    if study.give_back(number, running[number].reports if number in running else ()):
                        again.append(number)
                study.state.run_status.save_seconds()
        except StorageError as error:
            for number in study.state.here - others:
                study.state.let_go(number)
            log.warning("%s; trials that ran are asked again when their leases have ended", error)
            for done in arrived:
                log.error("the result of trial %d is not kept; to tell it later: %s", done.trial.number, tell_command(study, done))
        return again

    outage = OutageGuard(hear, study.state.after_outage)

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
                outage.bridge(study.state.run_status.save_seconds)
        except BaseException as stopped:
            with shielded(forget=True):
                again = give_up()
            if not isinstance(stopped, KeyboardInterrupt):
                raise
            verdict = Verdict(True, interrupted(stopped, again), kind="interrupted")
        finally:
            study.limits = None
    return Result(study, study.detached(), verdict, study.unit, study.optimizer_seconds, budget)


def interrupted(by: KeyboardInterrupt, again: Sequence[int]) -> str:
    """interrupted; trials 3, 4 and 5 will be asked again"""
    how = "interrupted by SIGTERM" if isinstance(by, Terminated) else "interrupted"
    numbers = listed([str(number) for number in sorted(again)])
    return f"{how}; {'trial' if len(again) == 1 else 'trials'} {numbers} will be asked again" if again else how


def reason_to_stop(study: Study, budget: Budget) -> Verdict:
    """The first of: a halt that was asked for, the budget, the study's rule."""
    study.refresh()
    if (why := study.state.run_status.called_off) is not None:
        return Verdict(True, why, kind="halted")
    spent = check_budget(budget, study.log, study.seconds, study.unit)
    if spent or study.rule is None or study.state.queue:  # what was enqueued is evaluated first
        return spent
    history = study.log if isinstance(study.rule, StopRule) else study.detached()  # a copy for strangers
    study.checked = study.rule.check(history, study.space)
    return study.checked
