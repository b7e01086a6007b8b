"""The life of a trial: what may follow what, and when it happened by the study's clock.

    running -> done, failed             told
    running -> abandoned                its worker is gone, or gave it back
    running -> failed                   its worker is gone, as were those that had the same config before
    abandoned -> done, failed           a late result is a result
    done, failed                        for good

What the trials of a study amount to, kept up to date with each of them, so that a limit is one comparison away.

A trial's share in it is taken out and put back when the trial changes: an abandoned trial's charge gives way to the cost of its
late result.

What ``revise`` makes of a study, worked out in one place so that no two storages differ in it.

A storage reads how the study stands, has it revised, and writes that down, all in one transaction: so nobody overwrites what
somebody else has written in the meantime.
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
from .base import Lease, Limits, Settings, Stored
from .codec import plain_name, to_text

LOST = "its worker was lost"
LOSSES = 5  # workers that a config may cost: after that it is taken for what kills them


def opened(trial: Trial, clock: int) -> Stored:
    """A trial that is new, and may have ended elsewhere."""
    ended = clock if trial.finished else None
    if trial.state is State.ABANDONED:
        return Stored(trial, clock, abandoned=ended)
    return Stored(trial, clock, closed=ended)


def closed(before: Stored, trial: Trial, clock: int) -> Stored:
    """What became of a trial, its result being written now."""
    if trial.state is State.ABANDONED:
        return Stored(trial, before.opened, abandoned=clock)
    return Stored(trial, before.opened, before.closed if before.abandoned is None else before.abandoned, closed=clock)


def open_to(before: Trial, after: State) -> bool:
    """Whether a trial can still become that."""
    return before.state is State.RUNNING or (awaits_late_result(before) and after is not State.ABANDONED)


def awaits_late_result(trial: Trial) -> bool:
    """Abandoned, or taken for failed since nobody has heard of its workers: should one of them be alive, its result counts."""
    return trial.state is State.ABANDONED or (trial.state is State.FAILED and (trial.error or "").startswith(LOST))


def require_result(trial: Trial) -> None:
    if not trial.finished:
        raise TrialError(f"trial {trial.number} still runs: only what came of a trial can be written, done, failed or abandoned")


def require_lease(lease: Lease | None) -> None:
    """A StorageError for one that cannot be kept."""
    if lease is not None:
        plain_name(lease.token, "a lease's token")
        plain_name(lease.worker, "a worker's name")
        amount(lease.seconds, "the length of a lease")


def abandon(trial: Trial, seconds: float, price: float | None) -> Trial:
    """A trial whose worker is gone, charged for its time if a second has a price: it may have cost more."""
    seconds = max(0.0, seconds)
    cost = None if price is None else seconds * price
    return lost(trial.finish(State.ABANDONED, seconds=seconds, cost=cost, censored=cost is not None))


def lost(trial: Trial) -> Trial:
    """An abandoned trial, with a note of how often its config has lost its worker; failed, if that was too often."""
    times = int(trial.suggestion.get("lost", 0)) + 1
    noted = replace(trial, suggestion={**trial.suggestion, "lost": times})
    if times < LOSSES:
        return noted
    return noted.finish(State.FAILED, error=f"{LOST} {times} times; perhaps it is what this config does to it")


# -- what goes wrong, in the words of every storage ---------------------------------------------------------------------


def no_study(study: int, where: str) -> StorageError:
    return StorageError(f"there is no study {study} in {where}; it may have been deleted, see: shoestring ls")


def no_trial(number: int, trials: int) -> TrialError:
    return TrialError(f"there is no trial {number!r} in this study; it has {trials}")


def behind(number: int, trials: int) -> Conflict:
    return Conflict(f"trial {number} cannot be written: the next one is {trials}; look again")


def taken(entry: int) -> Conflict:
    return Conflict(f"the waiting config {entry} has been taken by somebody else; look again")


MOST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Totals:
    """counted: trials that are not abandoned;   reserved: what those that run are expected to cost."""

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
            min(max(self.spent + other.spent, 0.0), MOST),
            min(max(self.reserved + other.reserved, 0.0), MOST) if running else 0.0,  # no dust of rounding stays behind
        )

    def __neg__(self) -> Totals:
        return Totals(-self.trials, -self.counted, -self.running, -self.spent, -self.reserved)

    def changed(self, before: Totals, after: Totals) -> Totals:
        """With one trial's share replaced."""
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


def share(state: State, cost: float | None, expected: float | None) -> Totals:
    """What one trial adds."""
    running = state is State.RUNNING
    return Totals(1, int(state is not State.ABANDONED), int(running), cost or 0.0, (expected or 0.0) if running else 0.0)


def guess(value: float | None) -> float | None:
    """What a trial is expected to cost; a guess that is not a finite number is none."""
    return float(value) if value is not None and math.isfinite(value) and value >= 0 else None


def amount(value: float | None, what: str) -> float | None:
    """A cost or a time as a float, or a StorageError: one NaN would make every sum NaN, and a limit is never reached."""
    if value is None:
        return None
    if not math.isfinite(value) or value < 0:
        raise StorageError(f"{what} must be a finite number of 0 or more, not {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True)
class Standing:
    """What can be revised of a study; ``settings`` and ``halted`` are JSON."""

    settings: str
    halted: str | None = None
    halts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Revision:
    """What somebody wants to be different, checked before anything is locked; ``halted`` is JSON, ... for as it is."""

    settings: Mapping[str, Any]
    if_still: Mapping[str, Any]
    halted: str | EllipsisType | None
    seconds: float

    @property
    def repeatable(self) -> bool:
        """Whether to do it twice is the same as to do it once, whatever others do in between."""
        return not self.settings and not self.if_still and isinstance(self.halted, EllipsisType)

    def of(self, before: Standing) -> Standing:
        """How the study stands afterwards: the same if there is nothing to change. Raises Behind."""
        after = replace(before, seconds=max(before.seconds, self.seconds))
        if self.settings or self.if_still:
            known = json.loads(before.settings)
            self._require_unchanged(known)
            after = replace(after, settings=to_text({**known, **self.settings}, "the settings of a study"))
        if not isinstance(self.halted, EllipsisType):
            after = replace(after, halted=self.halted, halts=before.halts + (self.halted is not None))
        return after

    def _require_unchanged(self, known: Mapping[str, Any]) -> None:
        for name, value in self.if_still.items():
            if known.get(name) != value:
                raise Conflict(f"the study's {name} has been changed by somebody else; look again")


def revision(
    settings: Settings | None, halted: str | EllipsisType | None, seconds: float, if_still: Settings | None, study: int
) -> Revision:
    """From the arguments of ``revise``; a StorageError for what cannot be kept."""
    given = json.loads(to_text({**(settings or {})}, f"the settings of study {study}"))
    still = json.loads(to_text({**(if_still or {})}, f"the settings of study {study}"))
    wish = halted if halted is None or isinstance(halted, EllipsisType) else to_text(halted, "the wish to stop")
    return Revision(given, still, wish, amount(seconds, "seconds") or 0.0)
