"""The storage contract: what a class must do to keep studies.

A storage holds studies. A study has a name, settings, numbered trials, and a queue of configs to evaluate next. To write your own
storage, give a class the methods of ``Storage`` and pass an instance as ``storage=``. ``Storage`` is a protocol: there is nothing
to inherit. ``MemoryStorage`` is the shortest complete example.

What holds for every method:

    atomic       A call is one transaction. All of it happens, or none of it.
    durable      When a call returns, what it wrote survives the end of the process. (``MemoryStorage`` is the one exception.)
    concurrent   Any thread may call any method at any time. If several processes can open the same storage, so may they.
    idempotent   A caller may repeat a call whose answer was lost. The repeated call must not write a second time. Each method
                 says how it can tell. Two calls of ``enqueue`` or ``revise`` look the same: a storage that repeats them by
                 itself, for example after a dropped connection, needs an idempotency key for each call.
    by value     The storage keeps no object that it was given, and returns no object that it keeps. What it returns is a copy,
                 and the caller may change it.
    JSON only    Settings, configs, suggestions and trials are kept as JSON. What JSON cannot hold (NaN, a set, an object) is
                 refused with a StorageError that names it, before anything is written. NumPy scalars are stored as numbers and
                 tuples as lists. Floats come back exactly, with the sign of zero.

The clock of a study is a counter. It starts at 0, and every call that changes the study adds one; ``renew`` and ``delete`` do not
count. Each trial carries the clock of its last change, so that ``changes_since(clock)`` returns the news without reading the
rest. Each trial also carries the clocks at which it was opened, abandoned and closed. They tell later what was known at any
moment, and ``Study.replay`` is built on them.

The life of a trial: ``write`` opens it, ``close`` records its result. The trials of a study are numbered 0, 1, 2, ... without
gaps, and a number is never used again. If the worker of a trial is gone, the trial is abandoned and its config goes back to the
front of the queue. It is then evaluated under a new number. So a late result can never be mistaken for the result of the new
trial. ``trial_lifecycle`` holds these rules as functions; use them.

A lease says how long a running trial belongs to its worker. The worker renews it while it works. Leases are timed by the clock of
the storage, never by that of a worker, since the clocks of several machines differ.

Errors: a study that does not exist is a StorageError, a trial that does not exist is a TrialError. Methods that concern leases do
not raise if the study is gone: ``renew`` answers that all leases are lost, ``reap`` and ``holders`` return nothing, and
``report`` returns False. A storage that may answer later, such as a server that is down, raises StorageUnavailable. The run then
goes on and tries again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Protocol, runtime_checkable

from ..data.trial import Trial

Settings = Mapping[str, Any]  # JSON-ready
Clocks = tuple[int, int | None, int | None]  # the study's clock when a trial was opened, abandoned, closed


@dataclass(frozen=True)
class StudyRecord:
    """A study as the storage keeps it, without its trials.

    id          the number that the storage gave it; a number is not used again after a study was deleted
    settings    what the study was made with (space, direction, seed, ...), JSON-ready; the storage does not interpret them
    halted      why a stop was requested, or None
    halts       how many times a stop was requested
    seconds     wall-clock seconds during which at least one worker was running
    clock       the study's clock
    created_at  seconds since 1970, by the clock of the storage
    trials      how many trials there are
    waiting     how many configs are in the queue
    counted     how many trials there are, without abandoned ones
    running     how many trials are running
    spent       what the trials have cost so far, in the study's unit
    """

    id: int
    name: str
    settings: Settings
    halted: str | None
    halts: int
    seconds: float
    clock: int
    created_at: float
    trials: int
    waiting: int
    counted: int = 0
    running: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class QueuedConfig:
    """A config in the queue. ``id`` is the storage's, and ``write`` takes the config out of the queue by it."""

    id: int
    config: Mapping[str, Any]
    suggestion: Mapping[str, Any]


@dataclass(frozen=True)
class Lease:
    """The right of one worker to one trial for some seconds.

    worker   the name of the worker
    token    a text that is new for each lease. It proves that the trial is the worker's, and is the idempotency key of ``write``
    seconds  how long the lease lasts unless it is renewed
    """

    worker: str
    token: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """The budget of the whole study. It is checked in the transaction that opens a trial.

    trials  the largest number of trials; abandoned ones do not count
    cost    the largest total cost; a running trial counts with its expected cost

    A trial may be opened while the study is below its limits: the trial that reaches a limit is the last one.
    """

    trials: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A trial with the clocks at which it was opened, abandoned and closed.

    ``abandoned`` and ``closed`` are None until that happens. An abandoned trial whose result came late has both.
    """

    trial: Trial
    opened: int
    abandoned: int | None = None
    closed: int | None = None

    @property
    def clocks(self) -> Clocks:
        return self.opened, self.abandoned, self.closed


@dataclass(frozen=True)
class Changes:
    """What has changed in a study since a clock.

    clock           the study's clock now
    trials          the trials that were opened or changed since then, by number
    queue           the whole queue, in the order in which the configs are to be evaluated
    halted, halts, seconds   as in StudyRecord
    settings_hash   a number that is different after the settings were revised
    """

    clock: int
    trials: Sequence[StoredTrial]
    queue: Sequence[QueuedConfig]
    halted: str | None = None
    halts: int = 0
    seconds: float = 0.0
    settings_hash: int = 0


@runtime_checkable
class Storage(Protocol):
    """A place that keeps studies, for ``storage=``: a protocol, so there is nothing to inherit.

    Implement it to keep studies in a place of your own. The module ``shoestring.storage.base`` says what holds for every method,
    and ``shoestring.testing.StorageContract`` checks it.

    >>> storage = st.open_storage("memory")
    >>> study = st.Study(st.Space(x=st.Float(0, 1)), storage=storage, name="first")
    >>> isinstance(storage, st.Storage), [record.name for record in storage.studies()]
    (True, ['first'])
    """

    @property
    def url(self) -> str:
        """The address that opens this storage again, without a password."""
        ...

    # -- studies

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        """The study of this name and False; if there is none, a new study with these settings and True.

        If several processes call it at once, exactly one of them makes the study and gets True.
        """
        ...

    def find(self, name: str) -> StudyRecord | None:
        """The study of this name, or None."""
        ...

    def studies(self) -> list[StudyRecord]:
        """All studies, the oldest first."""
        ...

    def revise(
        self,
        study: int,
        settings: Settings | None = None,
        halted: str | EllipsisType | None = ...,
        seconds: float = 0.0,
        *,
        if_still: Settings | None = None,
    ) -> None:
        """Update what is stored about a study. If nothing would change, nothing is written and the clock stays.

        settings  are merged into the stored settings key by key. The value of a given key is replaced as a whole; the other keys
                  stay. So several programs can keep settings side by side. No key is ever removed.
        if_still  compare and set: some settings as the caller knows them. If one of them has another value by now, nothing is
                  changed and Conflict is raised.
        halted    a reason requests that all workers stop, and adds one to ``halts``, even if the reason is the same as before.
                  None removes the reason and keeps ``halts``: a run compares it with the count at its own start, and so knows
                  whether a stop was requested since then. ``...`` (the default) leaves both alone.
        seconds   the study has been running for at least this long: the larger of this and the stored value is kept.
        """
        ...

    def delete(self, study: int) -> None:
        """Delete a study with its trials and its queue. A study that does not exist is no error."""
        ...

    # -- trials

    def changes_since(self, study: int, clock: int) -> Changes:
        """All that changed after this clock; everything for clock 0. It must be cheap if nothing is new."""
        ...

    def write(
        self, study: int, trial: Trial, *, lease: Lease | None = None, limits: Limits | None = None, queued: int | None = None,
        at_target: bool = True, expected: float | None = None,
    ) -> StoredTrial:
        """Add a new trial and return it as it was stored: a running trial, or one that was finished elsewhere.

        lease      the worker that evaluates it. A running trial without a lease is never taken back.
        limits     OverBudget is raised if they leave no room for another trial.
        queued     the id of the queued config that the trial evaluates. It leaves the queue in the same transaction.
        at_target  whether the trial has the target fidelity, so that ``best`` prefers it.
        expected   an estimate of its cost. It counts against ``Limits.cost`` while the trial is running.

        Raises Conflict if the number of the trial is not the next one, or if the queued config is gone: another process was
        faster. Call ``changes_since`` and try again.

        Idempotent: if the trial of this number has the same lease token already, nothing is written and that trial is returned.
        """
        ...

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> StoredTrial:
        """Store the result of a trial that is running or abandoned, and return the trial as it is stored.

        ``again`` puts its config at the front of the queue.

        Idempotent: a trial that is done or failed stays as it is and is returned. So does an abandoned trial that is abandoned
        once more; its config is not queued a second time.
        """
        ...

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        """Store the intermediate values of a running trial. False if the trial does not belong to this token any more."""
        ...

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        """Add a config to the end of the queue, or with ``first`` to its front."""
        ...

    def best(self, study: int, maximize: bool) -> Trial | None:
        """The best finished trial at the target fidelity; if there is none, the best finished trial. The first of equal ones."""
        ...

    # -- leases

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        """Extend leases (trial number -> token) to ``seconds`` from now. Returns the numbers of the leases that are lost.

        A lease is lost if its trial is abandoned, closed, or held under another token.
        """
        ...

    def holders(self, study: int) -> dict[int, str]:
        """The workers of the running trials that have a lease, by trial number."""
        ...

    def reap(self, study: int, price: float | None) -> list[Trial]:
        """Abandon the running trials whose lease has expired, and return them as they are now, by number.

        Their configs go to the front of the queue, in the order of their numbers. A config that has lost its worker too many
        times (``trial_lifecycle.MAX_LOST_WORKERS``) is not queued again: its trial has failed.

        ``price`` is the cost of a second, or None if it is not known. A trial is charged for the time from its start to the end
        of its lease, not for the time until this call.
        """
        ...

    def ask_lock(self, study: int) -> AbstractContextManager[Any]:
        """A lock that a worker holds while it computes a suggestion, so that each suggestion sees the ones before it.

        It saves work; correctness does not depend on it, since ``write`` detects conflicts. So a worker that has waited for long
        may go on without it. The lock must end with the process that holds it.
        """
        ...

    def close_connections(self) -> None:
        """Close files and connections. They are opened again when they are needed."""
        ...
