"""The loop: ask, have it evaluated, tell, until there is a reason to stop.

An executor evaluates some trials at once. Whenever fewer are running than it can take, the next one is asked, with what is known
by then. With one worker that is: ask, evaluate, tell.
"""

from __future__ import annotations

import contextlib
import logging
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._format import amount, listed, plural
from ..budget import Allowance, Budget
from ..data.history import History
from ..data.training_run import started_rows
from ..data.trial import State, Trial
from ..errors import Away, NothingFits, SpaceExhausted, StorageError
from ..report.progress import Progress, progress_for
from ..report.trial_log import configure_logging, log_trial
from ..search.recommend import CONFIRMS
from ..space.space import Config
from ..state.checkpoints import Checkpoints, read_limit, removes_files, size_text
from ..state.persistence import settings_to_dict
from ..state.results import Results
from ..state.study_state import RunStatus
from ..state.suggester import Suggester
from ..storage.base import Limits
from ..storage.transactions import SHORT_WAIT_SECONDS, wait_limit
from ..storage.trial_lifecycle import MAX_RETRIES
from ..termination.base import Verdict
from .confirm import config_to_confirm, confirmed_verdict, without_confirmation
from .evaluate import Evaluation, LiveTrial
from .executor import CompletedTrial, TrialExecutor, WorkersLost
from .failure_limit import FailureLimit
from .retry import OutageGuard, retry_suggestion, tell_command
from .signals import describe_interruption, interruptible, shielded

log = logging.getLogger("shoestring")


class Runner:
    """One run of a study: evaluates trials until the budget is used up, a rule says stop, or it is interrupted.

    Trials that run when there is a reason to stop are waited for: they are paid for, and their results are data. After an
    interruption or an error they are ended, and asked again if the study goes on. While the storage does not answer, they go on
    and their results are held.

    on_result  is called with each finished trial
    confirm    the last of the budget is for an evaluation of what is recommended: always, never, or as a function says
    retries    how often a config that failed by an exception or a crash is tried again
    max_retries  how often a config whose worker was lost, with its process or machine, is asked again
    failures   when failures end the run by an ObjectiveError
    log_trials whether a line is logged for each trial
    """

    def __init__(
        self,
        suggester: Suggester,
        results: Results,
        executor: TrialExecutor,
        budget: Budget,
        *,
        checkpoints: Checkpoints | None = None,
        on_result: Iterable[Callable[[Trial], object]] = (),
        progress: bool | None = None,
        confirm: bool | Callable[[], bool] = False,
        retries: int = 0,
        max_retries: int = MAX_RETRIES,
        failures: FailureLimit | None = None,
        log_trials: bool = True,
    ) -> None:
        self.suggester, self.results, self.state = suggester, results, suggester.state
        self.executor, self.budget, self.retries = executor, budget, retries
        self.failures, self.log_trials = FailureLimit() if failures is None else failures, log_trials
        self.interruption: KeyboardInterrupt | None = None
        self.handled: list[signal.Signals] = []  # signals that the run itself handles, and not its caller
        self.checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self.on_result, self.progress = tuple(on_result), progress
        self.confirm = confirm if callable(confirm) else lambda: confirm
        self.limits = Limits(budget.trials, budget.cost)
        self.state.max_retries = None if max_retries == MAX_RETRIES else max_retries
        self.suggester.workers = executor.workers
        self.planned = budget  # the budget that the next trial plans with: without what a confirmation is expected to take
        self.keeps_nothing = False  # whether nothing can be confirmed now, so that the next trial may use the whole budget
        self.running: dict[int, LiveTrial] = {}
        self.arrived: deque[CompletedTrial] = deque()  # results that are not recorded yet
        self.shown: Progress | None = None
        self.outage = OutageGuard(self.fetch_results, self.state.after_outage)

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> Verdict:
        """Run to the end; returns why it ended. After an interruption, ``interruption`` is what ended it."""
        self.begin()
        with interruptible() as self.handled, self.executor:
            try:
                with progress_for(self.progress) as self.shown:
                    verdict = self.search()
                    if self.confirm() and verdict.kind != "halted":
                        verdict = self.confirm_recommendation(verdict)
                    if len(self.state) > self.known:  # the last decision took time too; a run that does nothing writes nothing
                        self.clock.tick()
                    self.when_available(self.state.run_status.save_seconds)
            except BaseException as stopped:
                with shielded(forget=True):
                    again = self.end_running(died=isinstance(stopped, WorkersLost))
                if not isinstance(stopped, KeyboardInterrupt):
                    raise
                self.interruption = stopped
                verdict = Verdict(True, describe_interruption(stopped, again), kind="interrupted")
        self.state.merge_log()
        return verdict

    def search(self) -> Verdict:
        """Ask, have it evaluated and tell, until there is a reason to stop and nothing runs any more."""
        verdict = self.start_trials()
        while self.running:
            self.collect_results()
            verdict = verdict if verdict.stop else self.start_trials()
        return verdict

    def start_trials(self) -> Verdict:
        """Start trials until no worker is free, or there is a reason to stop."""
        while len(self.running) < self.executor.workers:
            found = self.when_available(self.ask_or_stop)
            if isinstance(found, Verdict):
                return found
            self.start(found)
        return Verdict(False, "all workers are busy")

    def collect_results(self) -> None:
        """Wait until a trial has ended, and record what came of it."""
        if not self.arrived:
            self.fetch_results(None)
        while self.arrived:
            done = self.arrived[0]
            trial = self.when_available(self.record_first)
            self.clock.tick()
            if self.log_trials and (trial.state is State.FAILED or log.isEnabledFor(logging.INFO)):
                log_trial(trial, self.state.history, self.state.settings.unit)
            self.show()
            if "saved" in trial.suggestion:
                self.tidy_checkpoints()
            for call in self.on_result:
                call(trial.detached())
            if trial.state is State.FAILED:
                self.count_failure(trial, done.evaluation)

    # -- its steps ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Store the budget, and have the trials of lost workers asked again."""
        if self.log_trials:
            configure_logging()
        state, settings = self.state, self.state.settings
        with state.lock:
            state.reap()
            state.refresh()
            state.settle_unit(self.budget)
            state.run_status.start_run()
            settings.budget = self.budget
            state.save_settings(settings_to_dict(settings))
            for trial in reversed(state.orphans()):
                self.results.give_back(trial.number, died=state.heartbeat is not None)
        self.known = len(state)  # trials that were there before
        if self.log_trials and self.known and state.heartbeat is not None:
            count = plural(state.history.trials_started, "trial")
            log.info("study %r in %s has %s: going on", state.name, state.storage.url, count)
        if state.space.resumable:
            read_limit()  # an error in it is raised now, and not after the first trial
            gone = [row for row in started_rows(state.history) if not state.holds_checkpoint(state.trials[row])]
            state.forget_checkpoints(gone)
        self.others = state.own_running  # trials of this process that are not of this run
        self.clock = RunClock(state.run_status, self.executor.now)

    def ask_or_stop(self) -> Trial | Verdict:
        """The next trial, or why none is started."""
        with self.state.asking():
            if len(self.state) > self.known:  # waiting for the lock took time; a run that does nothing writes nothing
                self.clock.tick()
            if recovered := self.state.recover_unconfirmed():  # it is running and counted already
                return recovered[0]
            keeps = self.confirm() and not self.keeps_nothing
            budget = without_confirmation(self.suggester, self.budget) if keeps else self.budget
            self.planned = budget
            verdict = self.reason_to_stop(budget)
            if verdict.stop and verdict.kind == "budget" and budget is not self.budget:
                if (spent := self.budget_used(self.budget)).stop:  # the kept part too
                    return spent
                known = {name: value for name, value in verdict.evidence.items() if name != "limit"}  # it is not the budget's
                return replace(verdict, reason="the rest of the budget is kept to evaluate what is recommended", evidence=known)
            if verdict.stop:
                return verdict
            try:
                return self.suggester.ask(budget=budget, limits=self.limits)[0]
            except SpaceExhausted as end:
                return Verdict(not self.running, str(end), kind="exhausted")
            except NothingFits as end:
                kept = ", beside what is kept to evaluate what is recommended" if keeps else ""
                return Verdict(not self.running, f"{end}{kept}", kind="budget")  # what runs may turn out cheaper than expected

    def budget_used(self, budget: Budget) -> Verdict:
        """Whether nothing of a budget is left."""
        return check_budget(budget, self.state.history, self.state.run_status.seconds, self.state.settings.unit)

    def reason_to_stop(self, budget: Budget) -> Verdict:
        """The first of: a stop that was requested, the budget, the study's rule."""
        status = self.state.run_status
        if (why := status.stop_reason) is not None:
            return Verdict(True, why, kind="halted")
        spent = self.budget_used(budget)
        if spent.stop or self.suggester.rule is None or self.state.queue:  # queued configs are evaluated first
            return spent
        if self.suggester.level(budget) == "random":  # no time for a model, so none for a rule that needs it
            return spent
        return self.suggester.check_rule(budget)

    def start(self, trial: Trial) -> None:
        """Hand a trial to the executor: a copy, since the objective may do with it what it likes."""
        trial = trial.detached()
        self.clock.tick()
        self.running[trial.number] = self.live_trial(trial)
        self.show()
        self.executor.start(trial, self.running[trial.number])

    def fetch_results(self, seconds: float | None) -> None:
        self.arrived.extend(self.executor.wait(seconds))

    def record_first(self) -> Trial:
        """Record the first result that has arrived; it stays there until that is done."""
        with shielded():
            done = self.arrived[0]
            trial = self.results.record(done.trial, done.evaluation)
            if done.evaluation.transient and (again := retry_suggestion(trial, self.retries)) is not None:
                self.state.storage.enqueue(self.state.study, trial.config, again, first=True)
            self.running.pop(trial.number, None)
            self.arrived.popleft()
        return trial

    def tidy_checkpoints(self) -> None:
        """Remove the checkpoints that are of no use any more, and some of the others where all take too much space."""
        state, limit = self.state, read_limit()
        if not removes_files(state.space):
            return
        self.checkpoints.tidy(state.history)
        if self.checkpoints.size() <= limit:
            return
        with contextlib.suppress(StorageError), state.asking():  # so that no other process goes on with one of them meanwhile
            removed = self.checkpoints.tidy(state.history, limit)
            state.forget_checkpoints(removed)
            if removed:
                numbers = listed([str(row) for row in sorted(removed)])
                which = f"{plural(len(removed), 'checkpoint')} (trial {numbers})"
                full = "a config that is asked with more pays in full again"
                log.info("the checkpoints take more than %s: removed %s; %s", size_text(limit), which, full)

    def count_failure(self, trial: Trial, evaluation: Evaluation) -> None:
        """Raise ObjectiveError if the objective is taken to be broken. A failure that is tried again does not count."""
        if evaluation.transient and not evaluation.fatal and retry_suggestion(trial, self.retries) is not None:
            return
        history = self.state.history
        succeeded = bool((history.table.having(State.DONE) & ~history.table.added[: len(history)]).any())
        free = trial.cost is None and self.budget.trials is None and self.budget.seconds is None
        spent = history.spent if free else None
        if (error := self.failures.count(trial, evaluation, succeeded=succeeded, spent=spent)) is not None:
            raise error

    def confirm_recommendation(self, verdict: Verdict) -> Verdict:
        """Evaluate what is recommended, search on with what is left, and look again, until neither starts a trial.

        Where the search has ended for another reason than the budget, it does not go on. What is done next depends on the history
        alone, so that a study which was interrupted meanwhile goes on with the same trials. It ends as any search does: each
        round starts a trial, which uses some of the budget.
        """
        why_not, in_budget = "", verdict.kind == "budget"
        while self.confirm():
            found = config_to_confirm(self.suggester, self.budget)
            why_not = found.why_not
            if found.config is not None:
                started = self.evaluate_recommended(found.config)
            else:
                started = in_budget and found.search_on and self.start_with_all_that_is_left()
            if not started:
                break
            if in_budget:
                before, after = len(self.state), self.search()
                if after.kind == "halted":
                    return after
                verdict = after if len(self.state) > before or found.config is None else verdict
                in_budget = after.kind == "budget"
        return confirmed_verdict(self.suggester, verdict, self.suggester.recommend(budget=self.budget), why_not)

    def evaluate_recommended(self, config: Config) -> bool:
        """Evaluate a config to confirm it; returns whether it was started."""
        queue = self.state.queue
        if not queue or queue[0].suggestion.get("why") != CONFIRMS:  # one that was interrupted is there
            self.state.enqueue(config, {"by": "you", "why": CONFIRMS}, first=True)
        self.planned = self.budget
        try:
            trial = self.when_available(self.ask)[0]
        except (NothingFits, SpaceExhausted):  # other processes that work on the study were faster
            return False
        retries, self.retries = self.retries, 0  # what is recommended after a failure is evaluated in any case
        self.start(trial)
        while self.running:
            self.collect_results()
        self.retries = retries
        return True

    def start_with_all_that_is_left(self) -> bool:
        """A trial for each worker, with nothing kept for a confirmation; returns whether there was any.

        No more of them at once: their results may change what is recommended, and whether it can be evaluated.
        """
        self.keeps_nothing = True
        self.start_trials()
        self.keeps_nothing, started = False, bool(self.running)
        while self.running:
            self.collect_results()
        return started

    def ask(self) -> list[Trial]:
        return self.suggester.ask(budget=self.budget, limits=self.limits)

    def when_available(self, step: Callable[[], Any]) -> Any:
        """Do a step that needs the storage, through an outage if there is one. A study in memory has no outages."""
        return step() if self.state.heartbeat is None else self.outage.bridge(step)

    def show(self) -> None:
        if self.shown is not None:
            self.shown.update(self.state, self.budget)

    def end_running(self, died: bool = False) -> list[int]:
        """Record the results that have arrived, end the other trials, and have them asked again; returns their numbers.

        ``died``: their workers did, which counts as one of the ``max_retries`` of each. Where the storage does not answer, the
        leases run out by themselves.
        """
        with contextlib.suppress(Exception):  # an executor that is broken has no more results
            self.fetch_results(0.0)
        self.executor.cancel()
        again, state = list[int](), self.state
        try:
            with wait_limit(SHORT_WAIT_SECONDS, strict=True):
                while self.arrived:
                    self.record_first()
                # the last first: each goes to the queue's head
                for number in sorted(state.own_running - self.others, reverse=True):
                    reports = self.running[number].reports if number in self.running else ()
                    if self.results.give_back(number, reports, died):
                        again.append(number)
                state.run_status.save_seconds()
            state.merge_log()
        except StorageError as error:
            for number in state.own_running - self.others:
                state.release(number)
            log.warning("%s; trials that ran are asked again when their leases have ended", error)
        finally:  # also if Ctrl-C is pressed again: no result is dropped without a word
            for done in self.arrived:
                command = tell_command(state.name, state.storage.url, state.settings.price_of_a_second, done)
                log.error("the result of trial %d is not stored; to tell it later: %s", done.trial.number, command)
        return again

    # -- what an objective may ask -----------------------------------------------------------------------------------

    def live_trial(self, trial: Trial) -> LiveTrial:
        """The trial as its objective sees it."""
        state, budget = self.state, self.planned

        def left() -> Allowance:
            cost = None if budget.cost is None else budget.cost - state.history.spent
            seconds = None if budget.seconds is None else budget.seconds - self.clock.total
            price = state.settings.price_of_a_second if state.settings.time_has_a_price else 0.0
            return Allowance(cost, seconds, price)

        def folder() -> Path:
            # by the record, since the objective may have changed its own copy of the config
            return self.checkpoints.trial_folder(state.trials[trial.number], state.space)

        def prune_reason(reports: Sequence[Mapping[str, Any]]) -> str | None:
            if trial.suggestion.get("why") == CONFIRMS:
                return None  # it is there to run to the end
            try:
                with wait_limit(SHORT_WAIT_SECONDS):
                    found = self.suggester.forecast(self.results.find(trial.number), reports, budget, live=True)
            except Away:
                return None  # unknown at the moment
            return found.reason if found is not None and found.should_prune else None

        def on_report(report: Mapping[str, Any]) -> None:
            state.report(trial.number, live.reports)

        live = LiveTrial(
            trial.number, trial.config, dict(trial.fidelity), state.space, left, folder, prune_reason, on_report, self.clock.now,
            resumed_from=trial.resumed_from if "resumed_from" in trial.suggestion else None,
        )  # fmt: skip
        return live


class RunClock:
    """The wall-clock time of a study while a run goes on: what was there before, and the time since.

    Other processes may be at work at the same time. What they have counted is the same time, not more of it: the larger number is
    right. So a study takes as long as any process is at work on it, however many they are.
    """

    def __init__(self, status: RunStatus, now: Callable[[], float]) -> None:
        self.status, self.now = status, now
        self._mark = status.seconds, now()  # the study's seconds, and when that was: one object, as other threads look at it

    def tick(self) -> None:
        now = self.now()
        self._mark = self._total_at(now), now
        self.status.set_seconds(self._mark[0])

    @property
    def total(self) -> float:
        """The study's seconds up to this moment."""
        return self._total_at(self.now())

    def _total_at(self, now: float) -> float:
        seconds, then = self._mark
        return max(self.status.seconds, seconds + now - then)


def check_budget(budget: Budget, history: History, seconds: float, unit: str = "s") -> Verdict:
    """Whether the budget is used up; running trials count as trials, so that many workers do not overshoot."""
    evidence = {"trials": float(history.trials_used), "seconds": seconds, "cost": history.spent}
    for name, limit in (("trials", budget.trials), ("seconds", budget.seconds), ("cost", budget.cost)):
        if limit is not None and evidence[name] >= limit:
            counted = (budget.unit or unit) if name == "cost" else "s"
            whole = plural(int(limit), "trial") if name == "trials" else amount(limit, counted)
            return Verdict(True, f"the budget of {whole} is used up", evidence | {"limit": float(limit)}, kind="budget")
    return Verdict(False, "budget is left", evidence, kind="budget")
