"""The contract of an executor, which evaluates the trials of a run: ``shoestring.execution.executor.TrialExecutor``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..acquisition.improvement import EI
from ..budget import Allowance
from ..data.outcome import Outcome
from ..data.trial import State, Trial
from ..execution.evaluate import LiveTrial, Objective
from ..execution.executor import CompletedTrial, TrialExecutor
from ..study import Study
from .problems import SPACES, configs, cost_of, objective

MAX_WAIT_SECONDS = 30.0  # for anything that must happen
POLL_SECONDS = 0.01
SLEEP_SECONDS = 0.02  # of an objective whose time is measured
SETTLE_SECONDS = 0.2  # for something to happen that must not
STUDY_TRIALS, INITIAL = 6, 3


# -- trials and objectives -----------------------------------------------------------------------------------------------


def trial_of(number: int) -> Trial:
    """A trial whose config follows from its number."""
    return Trial(number, {"x": number / 8, "y": 0.5}, suggestion={"by": "random"})


def live_trial(trial: Trial) -> LiveTrial:
    """A live trial with an unlimited budget."""
    folder = Path(tempfile.gettempdir())
    return LiveTrial(trial.number, dict(trial.config), {}, SPACES["numbers"], Allowance, lambda: folder)


def outcome(config: dict[str, Any]) -> Outcome:
    return Outcome(objective(config), cost=cost_of(config))


def outcome_with_reports(config: dict[str, Any], trial: LiveTrial) -> Outcome:
    trial.report(2.0, cost=0.25)
    time.sleep(SLEEP_SECONDS)
    trial.report(1.0, cost=0.5)
    return outcome(config)


def outcome_or_error(config: dict[str, Any]) -> Outcome:
    """The trials 1 and 4 raise an exception."""
    if config["x"] in (1 / 8, 4 / 8):
        raise ValueError("it broke")
    return outcome(config)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the condition did not hold within {MAX_WAIT_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


@contextmanager
def signal_files() -> Iterator[Path]:
    """A folder for empty files by which the objectives and the checks signal to each other."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def blocking_objective(folder: Path) -> Objective:
    """An objective that makes the file ``started``, waits for the file ``release``, and makes the file ``finished``."""

    def blocking(config: dict[str, Any]) -> Outcome:
        (folder / "started").touch()
        until((folder / "release").exists)
        (folder / "finished").touch()
        return outcome(config)

    return blocking


def start(executor: TrialExecutor, *trials: Trial) -> None:
    for trial in trials:
        executor.start(trial, live_trial(trial))


def results_of(executor: TrialExecutor, trials: Sequence[Trial]) -> list[CompletedTrial]:
    """Evaluate trials as a run does: start one whenever a worker is free. The results by number, each of them once."""
    waiting, found = list(trials), list[CompletedTrial]()
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while len(found) < len(trials):
        while waiting and len(trials) - len(waiting) - len(found) < executor.workers:
            start(executor, waiting.pop(0))
        found += executor.wait(1.0)
        assert time.monotonic() < deadline, f"{len(found)} of {len(trials)} results after {MAX_WAIT_SECONDS:g} s"
    assert executor.wait(0.0) == []
    assert sorted(each.trial.number for each in found) == [trial.number for trial in trials]
    return sorted(found, key=lambda each: each.trial.number)


class ExecutorContract:
    """The checks that every executor must pass: derive a test class and define ``make``.

    Use it to test an executor of your own with pytest, alone and in the run of a study. The checks and the objectives share a
    file system.

    workers             how many workers the checks ask for
    runs_in_background  ``start`` returns before the trial has ended; False if ``start`` evaluates the trial itself
    ends_running        ``cancel`` ends the evaluations that run; False if it can only discard their results

    >>> from shoestring.testing import ExecutorContract
    >>> from shoestring.execution.executor import SerialExecutor
    >>> class TestMine(ExecutorContract):
    ...     workers, runs_in_background, ends_running = 1, False, False
    ...     def make(self, objective, workers):
    ...         return SerialExecutor(objective)
    >>> TestMine().test_it_is_a_context_manager()
    """

    workers = 2
    runs_in_background = True
    ends_running = True

    def make(self, objective: Objective, workers: int) -> TrialExecutor:
        raise NotImplementedError("return the executor to test")

    def make_raising(self, objective: Objective, workers: int) -> TrialExecutor | None:
        """The executor with ``raise_errors``. None if it has no such option: then this is not checked."""
        return None

    def study(self) -> Study:
        return Study(SPACES["numbers"], EI(), stop=None, seed=1, initial=INITIAL)

    def test_it_is_a_context_manager(self) -> None:
        executor = self.make(outcome, self.workers)
        with executor as entered:
            assert entered is executor
            assert executor.wait(0.0) == []

    def test_it_has_the_workers_that_were_asked_for_and_a_clock(self) -> None:
        for workers in {1, self.workers}:
            with self.make(outcome, workers) as executor:
                assert executor.workers == workers
                assert executor.now() <= executor.now()

    def test_each_trial_comes_back_once_with_value_cost_seconds_and_reports(self) -> None:
        trials = [trial_of(number) for number in range(self.workers + 1)]
        with self.make(outcome_with_reports, self.workers) as executor:
            for trial, completed in zip(trials, results_of(executor, trials), strict=True):
                evaluation = completed.evaluation
                assert completed.trial == trial
                assert evaluation.error is None
                assert evaluation.outcome == outcome(trial.config)
                assert evaluation.seconds >= SLEEP_SECONDS
                assert [report["value"] for report in evaluation.reports] == [2.0, 1.0]
                assert [report["cost"] for report in evaluation.reports] == [0.25, 0.5]

    def test_an_exception_of_the_objective_is_the_error_of_its_trial_alone(self) -> None:
        with self.make(outcome_or_error, self.workers) as executor:
            for completed in results_of(executor, [trial_of(number) for number in range(6)]):
                trial, evaluation = completed.trial, completed.evaluation
                if trial.number in (1, 4):
                    assert evaluation.outcome.value is None
                    assert (evaluation.error or "").startswith("ValueError: it broke")
                    assert evaluation.transient
                else:
                    assert (evaluation.error, evaluation.outcome) == (None, outcome(trial.config))

    def test_results_are_not_lost_when_another_trial_raises(self) -> None:
        if self.runs_in_background and self.workers < 2:
            return
        with signal_files() as folder:

            def leaves_file(config: dict[str, Any]) -> Outcome:
                (folder / f"{8 * config['x']:g}").touch()
                return outcome_or_error(config)

            executor = self.make_raising(leaves_file, self.workers)
            if executor is None:
                return
            found, raised = list[int](), 0
            with executor:
                for number in (0, 1):  # 1 raises after 0 has ended, and before any call of wait
                    try:
                        start(executor, trial_of(number))
                    except ValueError:
                        raised += 1
                    until((folder / str(number)).exists)
                time.sleep(SETTLE_SECONDS if self.runs_in_background else 0.0)
                deadline = time.monotonic() + MAX_WAIT_SECONDS
                while (found, raised) != ([0], 1) and time.monotonic() < deadline:
                    try:
                        found += [completed.trial.number for completed in executor.wait(0.1)]
                    except ValueError:
                        raised += 1
            assert (found, raised) == ([0], 1)

    def test_wait_returns_in_time(self) -> None:
        if not self.runs_in_background:
            return
        with signal_files() as folder, self.make(blocking_objective(folder), self.workers) as executor:
            start(executor, trial_of(0))
            try:
                assert executor.wait(0.0) == []
                assert executor.wait(0.05) == []
            finally:
                (folder / "release").touch()
            assert [completed.trial for completed in executor.wait()] == [trial_of(0)]

    def test_nothing_comes_back_after_cancel(self) -> None:
        with signal_files() as folder, self.make(blocking_objective(folder), self.workers) as executor:
            if not self.runs_in_background:
                (folder / "release").touch()
            try:
                start(executor, trial_of(0))
                until((folder / "started").exists)
                executor.cancel()
            finally:
                (folder / "release").touch()
            time.sleep(SETTLE_SECONDS if self.runs_in_background else 0.0)
            assert executor.wait(0.0) == []
            assert executor.wait(POLL_SECONDS) == []
            if self.runs_in_background and self.ends_running:
                assert not (folder / "finished").exists()
            executor.cancel()

    def test_a_study_runs_over_it(self) -> None:
        result = self.study().run(self.make(outcome, self.workers), STUDY_TRIALS, progress=False)
        assert [trial.state for trial in result.history] == [State.DONE] * STUDY_TRIALS
        assert [trial.value for trial in result.history] == [objective(dict(trial.config)) for trial in result.history]

    def test_with_one_worker_the_trials_are_those_of_minimize(self) -> None:
        study, local = self.study(), self.study()
        study.run(self.make(outcome, 1), STUDY_TRIALS, progress=False)
        local.minimize(outcome, STUDY_TRIALS, progress=False)
        assert configs(study) == configs(local)
