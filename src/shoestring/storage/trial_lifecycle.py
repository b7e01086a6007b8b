"""The rules of a trial's life and of a study's totals, which are the same in every storage.

    running -> done, failed             its result was reported
    running -> abandoned                its worker is gone, or gave it back
    running -> failed                   its worker is gone, and so are earlier workers of the same config
    abandoned -> done, failed           a late result counts
    done, failed                        final; a trial that failed since its workers were lost still takes a late result

``Totals`` are sums over the trials of a study. They are updated with each trial, so that a limit is checked by one comparison. If
a trial changes, its part is subtracted and added again: so the charge of an abandoned trial is replaced by the cost of its late
result.

``Revision`` is what ``Storage.revise`` changes. A storage reads the present ``StudyFields``, applies the revision and writes the
new ones, all in one transaction: so no process overwrites what another has written meanwhile.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

from ..data.trial import State, Trial
from ..errors import Conflict, OverBudget, StorageError, TrialError
from .base import Clocks, Lease, Limits, Settings
from .codec import encode_json, require_name

LOST_WORKER = "its worker was lost"  # the beginning of the error of a trial that failed for that reason
MAX_LOST_WORKERS = 5  # by one config; then the config itself is taken for the cause, and its trial has failed
MAX_RETRIES = MAX_LOST_WORKERS - 1  # of a config whose workers were lost, unless the user says otherwise by ``max_retries=``
MAX_TOTAL = sys.float_info.max


# -- states and clocks -------------------------------------------------------------------------------------------------


def clocks_when_opened(state: State, clock: int) -> Clocks:
    """The clocks of a new trial. It may be finished already, if it was evaluated elsewhere."""
    if state is State.RUNNING:
        return clock, None, None
    return (clock, clock, None) if state is State.ABANDONED else (clock, None, clock)


def clocks_when_closed(before: Clocks, state: State, clock: int) -> Clocks:
    """The clocks of a trial that gets its result now. A late result keeps the clock at which the trial was given up."""
    opened, abandoned, closed = before
    if state is State.ABANDONED:
        return opened, clock, None
    return opened, closed if abandoned is None else abandoned, clock


def can_become(before: Trial, after: State) -> bool:
    """Whether a trial can still get this state."""
    return before.state is State.RUNNING or (awaits_late_result(before) and after is not State.ABANDONED)


def awaits_late_result(trial: Trial) -> bool:
    """Whether a trial without a worker would still take a result: it is abandoned, or failed since its workers were lost."""
    return trial.state is State.ABANDONED or (trial.state is State.FAILED and (trial.error or "").startswith(LOST_WORKER))


def abandon(trial: Trial, seconds: float, price: float | None) -> Trial:
    """A running trial, abandoned after ``seconds``. If a second has a price, the charge is a lower bound of the trial's cost."""
    seconds = max(0.0, seconds)
    cost = None if price is None else min(seconds * price, MAX_TOTAL)
    return count_lost_worker(trial.finish(State.ABANDONED, seconds=seconds, cost=cost, censored=cost is not None))


def count_lost_worker(trial: Trial, max_retries: int | None = None) -> Trial:
    """An abandoned trial with the number of workers that its config has lost; a failed one if these are too many.

    ``max_retries`` is how often the config may be asked again. By default it is what the trial was opened with (its suggestion
    says so, and every process can read it), or else one less than MAX_LOST_WORKERS.
    """
    times = int(trial.suggestion.get("lost", 0)) + 1
    if max_retries is None:
        max_retries = int(trial.suggestion.get("max_retries", MAX_LOST_WORKERS - 1))
    noted = replace(trial, suggestion={**trial.suggestion, "lost": times})
    if times <= max_retries:
        return noted
    often = "once" if times == 1 else f"{times} times"
    return noted.finish(State.FAILED, error=f"{LOST_WORKER} {often}; perhaps this config is the cause")


# -- checks of arguments, and errors -----------------------------------------------------------------------------------


def require_result(trial: Trial) -> None:
    """A TrialError for a trial that is still running."""
    if not trial.finished:
        raise TrialError(f"trial {trial.number} still runs: only a trial that is done, failed or abandoned can be closed")


def require_lease(lease: Lease | None) -> None:
    """A StorageError for a lease that cannot be stored."""
    if lease is not None:
        require_name(lease.token, "a lease's token")
        require_name(lease.worker, "a worker's name")
        require_amount(lease.seconds, "the length of a lease")


def require_amount(value: float | None, what: str) -> float | None:
    """A cost or a time as a float, or a StorageError: with one NaN the sums would be NaN, and no limit would ever be reached."""
    if value is None:
        return None
    if not math.isfinite(value) or value < 0:
        raise StorageError(f"{what} must be a finite number of 0 or more, not {value!r}")
    return float(value)


def usable_estimate(value: float | None) -> float | None:
    """The expected cost of a trial; None for an estimate that is not finite or below 0."""
    return float(value) if value is not None and math.isfinite(value) and value >= 0 else None


def no_study(study: int, where: str) -> StorageError:
    return StorageError(f"there is no study {study} in {where}; it may have been deleted, see: shoestring ls")


def no_trial(number: int, trials: int) -> TrialError:
    return TrialError(f"there is no trial {number!r} in this study; it has {trials}")


def number_conflict(number: int, trials: int) -> Conflict:
    return Conflict(f"trial {number} cannot be written: the next one is {trials}; read the changes and try again")


def queue_conflict(entry: int) -> Conflict:
    return Conflict(f"the queued config {entry} has been taken by another worker; read the changes and try again")


# -- totals ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the trials of a study.

    trials    all trials
    counted   trials that are not abandoned
    running   trials that are running
    spent     the cost of all trials, without results from elsewhere
    reserved  the expected cost of the running trials
    """

    trials: int = 0
    counted: int = 0
    running: int = 0
    spent: float = 0.0
    reserved: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        running = self.running + other.running
        return Totals(
            self.trials + other.trials,
            self.counted + other.counted,
            running,
            min(max(self.spent + other.spent, 0.0), MAX_TOTAL),
            min(max(self.reserved + other.reserved, 0.0), MAX_TOTAL) if running else 0.0,  # without rounding errors at zero
        )

    def __neg__(self) -> Totals:
        return Totals(-self.trials, -self.counted, -self.running, -self.spent, -self.reserved)

    def replaced(self, before: Totals, after: Totals) -> Totals:
        """The totals after the part of one trial has changed."""
        return self + -before + after

    def require_room(self, limits: Limits | None) -> None:
        """Raise OverBudget if the limits leave no room for another trial."""
        if limits is None:
            return
        if limits.trials is not None and self.counted >= limits.trials:
            raise OverBudget(f"the study has {self.counted} of {limits.trials} trials")
        if limits.cost is not None and self.spent + self.reserved >= limits.cost:
            running = f", and {self.reserved:g} are expected of the {self.running} that run" if self.running else ""
            raise OverBudget(f"the study has spent {self.spent:g} of {limits.cost:g}{running}")


def trial_totals(state: State, cost: float | None, expected: float | None) -> Totals:
    """The part of one trial in the totals."""
    running = state is State.RUNNING
    return Totals(1, int(state is not State.ABANDONED), int(running), cost or 0.0, (expected or 0.0) if running else 0.0)


# -- revisions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StudyFields:
    """The fields of a study that can be revised. ``settings`` and ``halted`` are JSON texts."""

    settings: str
    halted: str | None = None
    halts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Revision:
    """The arguments of ``Storage.revise``, checked before anything is locked. ``halted`` is JSON, or ``...`` for no change."""

    settings: Mapping[str, Any]
    if_still: Mapping[str, Any]
    halted: str | EllipsisType | None
    seconds: float

    @classmethod
    def checked(
        cls, study: int, settings: Settings | None, halted: str | EllipsisType | None, seconds: float, if_still: Settings | None
    ) -> Revision:
        """A StorageError for what cannot be stored."""
        given = json.loads(encode_json({**(settings or {})}, f"the settings of study {study}"))
        still = json.loads(encode_json({**(if_still or {})}, f"the settings of study {study}"))
        reason = halted if halted is None or isinstance(halted, EllipsisType) else encode_json(halted, "the reason to stop")
        return cls(given, still, reason, require_amount(seconds, "seconds") or 0.0)

    @property
    def is_idempotent(self) -> bool:
        """Whether to apply it twice is the same as once, whatever others write in between."""
        return not self.settings and not self.if_still and isinstance(self.halted, EllipsisType)

    def apply(self, before: StudyFields) -> StudyFields:
        """The fields afterwards; equal ones if nothing changes. Raises Conflict if a setting is not what ``if_still`` says."""
        after = replace(before, seconds=max(before.seconds, self.seconds))
        if self.settings or self.if_still:
            known = json.loads(before.settings)
            self._require_unchanged(known)
            after = replace(after, settings=encode_json({**known, **self.settings}, "the settings of a study"))
        if not isinstance(self.halted, EllipsisType):
            after = replace(after, halted=self.halted, halts=before.halts + (self.halted is not None))
        return after

    def _require_unchanged(self, known: Mapping[str, Any]) -> None:
        for name, value in self.if_still.items():
            if known.get(name) != value:
                raise Conflict(f"the study's {name} has been changed by another program; read it and try again")
