"""What a study knows of its trials, and the ways in which results enter: told, added from elsewhere, recorded by the loop.

Bad input is refused here, before anything is written; a result is written once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from .._validation import plain
from ..data.history import History
from ..data.outcome import Outcome, finish_trial, is_cost
from ..data.trial import State, Trial
from ..errors import MethodError, OutcomeError, TrialError
from ..execution.evaluate import Evaluation
from ..space.space import Space
from ..storage.trial_lifecycle import awaits_late_result
from .study_state import StudyState

log = logging.getLogger("shoestring")


class Records:
    """The trials of a study. ``unit`` is that of costs, ``per_hour`` what an hour costs in it, None if nobody said."""

    def __init__(
        self, space: Space, direction: Literal["minimize", "maximize"], unit: str, per_hour: float | None
    ) -> None:
        self.space, self.direction, self.unit, self.per_hour = space, direction, unit, per_hour
        self.state: StudyState
        self._lock = threading.RLock()

    @property
    def history(self) -> History:
        """The trials so far: a copy, which is yours to change."""
        self.refresh()
        return self.detached()

    def detached(self) -> History:
        """A copy of the trials that this process knows of."""
        return History(tuple(trial.detached() for trial in self.state.trials), self.space, self.direction == "maximize")

    @property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        if self.state.heart is not None and not len(self.state):  # no need to read all the others
            self.state.look_again()
            return self.state.storage.best(self.state.study, self.direction == "maximize")
        self.refresh()
        found = self.log.best
        return None if found is None else found.detached()

    def refresh(self) -> None:
        """Learn what other processes have written."""
        with self._lock:
            self.state.refresh()

    @property
    def log(self) -> History:
        """The trials that this process knows of, shared with the study: to look at, not to change."""
        return self.state.history(self.direction == "maximize")

    def tell(
        self,
        trial: Trial | int,
        value: float | Outcome | None = None,
        *,
        cost: float | None = None,
        folds: Sequence[float] | None = None,
        gradient: Mapping[str, float] | None = None,
        error: str | None = None,
        censored: bool = False,
    ) -> Trial:
        """Record what came of a trial: a value (or the folds it is the mean of), or an error.

        ``censored=True``: the evaluation was cut off, so the cost is a lower bound.

        A NaN or infinite value is a failed trial. Without a cost, the seconds since ``ask`` are the cost. Bad input
        raises OutcomeError and leaves the trial open; telling the same result twice changes nothing.
        """
        with self._lock:
            opened = self._find(trial)
            told = value if isinstance(value, Outcome) else Outcome(value)
            given: dict[str, Any] = {"cost": cost, "folds": folds, "gradient": gradient}
            told = replace(told, **{name: item for name, item in given.items() if item is not None})
            return self._close(opened, told, error, self.state.seconds_open(opened), censored=censored).detached()

    def enqueue(self, config: Mapping[str, Any]) -> None:
        """Have a config asked next (after those enqueued before it)."""
        with self._lock:
            self.state.enqueue(self.space.check(config), {"by": "you", "why": "enqueued"})

    def add(self, config: Mapping[str, Any], value: float | None = None, **results: Any) -> Trial:
        """A result from elsewhere: ``study.add(config, 0.05, cost=9.0)``; ``folds=``, ``gradient=``, ``error=`` as for tell."""
        with self._lock:
            error, censored = results.pop("error", None), results.pop("censored", False)
            told = replace(value if isinstance(value, Outcome) else Outcome(value), **results)
            draft = self.state.draft(self.space.check(config), {"by": "you", "why": "added"})
            finished = finish_trial(draft, told, error, None, censored=censored, space=self.space)
            return self.state.write(finished).detached()

    @property
    def price_of_a_second(self) -> float:
        """What a second counts as in the study's unit."""
        return 1.0 if self.per_hour is None else self.per_hour / 3600.0

    def _find(self, trial: Trial | int) -> Trial:
        number = trial.number if isinstance(trial, Trial) else plain(trial)
        if isinstance(number, int) and number >= len(self.state):  # else the storage tells if others were quicker
            self.state.refresh()
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.state):
            raise TrialError(f"there is no trial {number!r} in this study; it has {len(self.state)}")
        found = self.state.trials[number]
        if isinstance(trial, Trial) and trial.asked_at != found.asked_at:
            raise TrialError(f"trial {number} was asked by another study, not by this one")
        return found

    def _close(
        self,
        trial: Trial,
        told: Outcome,
        error: str | None,
        seconds: float | None,
        reports: Sequence[Any] = (),
        censored: bool = False,
        stopped: Mapping[str, str] | None = None,
    ) -> Trial:
        finished = finish_trial(trial, told, error, seconds, reports, censored, self.price_of_a_second, self.space, stopped)
        late = trial.state is State.RUNNING or awaits_late_result(trial)  # a late result is a result
        kept = self.state.close(finished) if late else trial
        same = (kept.state, kept.value, kept.error) == (finished.state, finished.value, finished.error)
        if same and (told.cost is None or kept.cost == finished.cost):
            return kept
        raise TrialError(f"trial {trial.number} is already {kept.state} with value {kept.value}; it cannot be changed")

    def record(self, trial: Trial, seen: Evaluation) -> Trial:
        """Record an evaluation; a result that cannot be read is a failed trial."""
        with self._lock:
            opened = self.state.trials[trial.number]
            try:
                return self._close(opened, seen.outcome, seen.error, seen.seconds, seen.reports, seen.censored, seen.stopped)
            except OutcomeError as error:
                cost = seen.outcome.cost if is_cost(seen.outcome.cost) else None
                return self._close(opened, Outcome(None, cost), str(error), seen.seconds, seen.reports)
            except TrialError as error:  # somebody else has told another result: no reason to end the others
                log.warning("%s; what was found now is not kept", error)
                return self.state.trials[trial.number]

    def give_back(self, number: int, reports: Sequence[Mapping[str, Any]] = (), died: bool = False) -> bool:
        """Abandon a trial that was interrupted, charge it, and have its config asked first; False if it has finished.

        ``died``: its worker did. A config with which that happens again and again has failed.
        """
        with self._lock:
            trial = self.state.trials[number]
            if trial.finished:
                return False
            seconds = self.state.seconds_open(trial)
            priced = seconds is not None and (self.unit == "s" or self.per_hour is not None)
            self.state.give_back(trial, (seconds or 0.0) * self.price_of_a_second if priced else None, reports, died)
            return True

    def _set_direction(self, direction: Literal["minimize", "maximize"]) -> None:
        self.refresh()  # another process may have settled it
        if direction == self.direction:
            return
        if any(trial.state is State.DONE for trial in self.state.trials):
            raise MethodError(f"this study was begun to {self.direction}; its results cannot be read the other way up")
        self.direction = direction
        self.state.storage.revise(self.state.study, {"direction": direction})
