"""The life of a trial: what may follow what, and when it happened by the study's clock.

    running -> done, failed             told
    running -> abandoned                its worker is gone, or gave it back
    running -> failed                   its worker is gone, as were those that had the same config before
    abandoned -> done, failed           a late result is a result
    done, failed                        for good
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Behind, StorageError, TrialError
from ..trial import State, Trial
from .base import Lease, Stored
from .text import plain_name
from .totals import amount

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


def behind(number: int, trials: int) -> Behind:
    return Behind(f"trial {number} cannot be written: the next one is {trials}; look again")


def taken(entry: int) -> Behind:
    return Behind(f"the waiting config {entry} has been taken by somebody else; look again")
