"""The storage in memory: the reference implementation of the contract, in plain Python. It ends with its process.

Trials are kept as JSON text, as in a database. So the caller and the storage share no object, and what JSON cannot hold is
refused here too. A write encodes a trial once and decodes it once, for the copy that it returns. Text in memory has no checksum.
"""

from __future__ import annotations

import bisect
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

from ..data.trial import State, Trial
from . import trial_lifecycle
from .base import Changes, Clocks, Lease, Limits, QueuedConfig, Settings, StoredTrial, StudyRecord
from .codec import decode_trial, decode_trials, encode_json, encode_queued, encode_trial, require_name
from .transactions import hold_seconds
from .trial_lifecycle import Revision, StudyFields, Totals, require_amount, trial_totals, usable_estimate


@dataclass(slots=True, kw_only=True)
class _TrialRow:
    """A trial as text, and what must be known without decoding it."""

    text: str
    state: State
    value: float | None
    totals: Totals  # its part in those of the study
    at_target: bool
    expected: float | None
    clocks: Clocks
    token: str | None
    worker: str | None
    leased_until: float | None
    asked: float

    @property
    def lease_seconds(self) -> float:
        """From the start of the trial to the end of its lease."""
        return 0.0 if self.leased_until is None else self.leased_until - self.asked


@dataclass(slots=True)
class _StudyRow:
    """A study with its trials and its queue."""

    id: int
    name: str
    fields: StudyFields
    created_at: float
    clock: int = 0
    totals: Totals = field(default_factory=Totals)
    trials: list[_TrialRow] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    queue: list[tuple[int, str]] = field(default_factory=list)  # id and text
    change_clocks: list[int] = field(default_factory=list)  # the clock of each change of a trial, ascending
    changed_trials: list[int] = field(default_factory=list)  # the number of that trial

    @property
    def halted(self) -> str | None:
        return None if self.fields.halted is None else str(json.loads(self.fields.halted))

    @property
    def record(self) -> StudyRecord:
        return StudyRecord(
            id=self.id,
            name=self.name,
            settings=json.loads(self.fields.settings),
            halted=self.halted,
            halts=self.fields.halts,
            seconds=self.fields.seconds,
            clock=self.clock,
            created_at=self.created_at,
            trials=len(self.trials),
            waiting=len(self.queue),
            counted=self.totals.counted,
            running=self.totals.running,
            spent=self.totals.spent,
        )

    def changed(self, *numbers: int) -> None:
        """Advance the clock: these trials have just changed."""
        self.clock += 1
        for number in numbers:
            self.change_clocks.append(self.clock)
            self.changed_trials.append(number)
            if self.trials[number].state is State.RUNNING:
                self.running.add(number)
            else:
                self.running.discard(number)

    def stored(self, number: int) -> StoredTrial:
        row = self.trials[number]
        return StoredTrial(decode_trial(row.text), *row.clocks)

    def holds(self, number: int, token: str) -> bool:
        """Whether the trial is running under this token."""
        return number in self.running and self.trials[number].token == token


class _AskLock:
    """The ask lock of a study, held by one thread at a time. Who has waited for two leases goes on without it: only speed
    depends on the lock, and the thread that holds it may never return."""

    __slots__ = ("_held", "_lock")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._held = lock, False

    def __enter__(self) -> None:
        self._held = self._lock.acquire(blocking=False) or self._lock.acquire(timeout=2 * hold_seconds())

    def __exit__(self, *error: object) -> None:
        if self._held:
            self._lock.release()


class MemoryStorage:
    """A storage in the memory of this process. Thread-safe. ``now`` is the clock of the leases, in seconds."""

    url = "memory://"

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._studies: dict[int, _StudyRow] = {}
        self._last_study = self._last_entry = 0  # ids are not used again
        self._lock = threading.RLock()
        _storages.add(self)
        self._ask_locks: dict[tuple[int, int], threading.Lock] = {}  # by process too: a lock that was held at a fork stays locked

    def __repr__(self) -> str:
        return "MemoryStorage()"

    # -- studies -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        require_name(name, "a study's name")
        text = encode_json(settings, f"the settings of study {name!r}")
        with self._lock:
            found = self.find(name)
            if found is not None:
                return found, False
            self._last_study += 1
            row = self._studies[self._last_study] = _StudyRow(self._last_study, name, StudyFields(text), time.time())
            return row.record, True

    def find(self, name: str) -> StudyRecord | None:
        with self._lock:
            return next((row.record for row in self._studies.values() if row.name == name), None)

    def studies(self) -> list[StudyRecord]:
        with self._lock:
            return [row.record for row in self._studies.values()]

    def revise(
        self,
        study: int,
        settings: Settings | None = None,
        halted: str | EllipsisType | None = ...,
        seconds: float = 0.0,
        *,
        if_still: Settings | None = None,
    ) -> None:
        revision = Revision.checked(study, settings, halted, seconds, if_still)
        with self._lock:
            row = self._study(study)
            after = revision.apply(row.fields)
            if after != row.fields:
                row.fields = after
                row.changed()

    def delete(self, study: int) -> None:
        with self._lock:
            self._studies.pop(study, None)

    # -- trials ------------------------------------------------------------------------------------------------------

    def changes_since(self, study: int, clock: int) -> Changes:
        with self._lock:
            row = self._study(study)
            news = sorted(set(row.changed_trials[bisect.bisect_right(row.change_clocks, clock) :]))
            rows = [row.trials[number] for number in news]
            decoded = decode_trials([each.text for each in rows]) if rows else []
            trials = [StoredTrial(trial, *each.clocks) for trial, each in zip(decoded, rows, strict=True)]
            queue = [QueuedConfig(entry, **json.loads(text)) for entry, text in row.queue]
            fields = row.fields
            return Changes(row.clock, trials, queue, row.halted, fields.halts, fields.seconds, hash(fields.settings))

    def write(
        self,
        study: int,
        trial: Trial,
        *,
        lease: Lease | None = None,
        limits: Limits | None = None,
        queued: int | None = None,
        at_target: bool = True,
        expected: float | None = None,
    ) -> StoredTrial:
        text, expected = encode_trial(trial), usable_estimate(expected)
        cost = require_amount(trial.cost, "a trial's cost")
        part = trial_totals(trial.state, None if trial.added else cost, expected)
        trial_lifecycle.require_lease(lease)
        token = None if lease is None else lease.token
        with self._lock:
            row = self._study(study)
            if trial.number != len(row.trials):
                if token is not None and 0 <= trial.number < len(row.trials) and row.trials[trial.number].token == token:
                    return row.stored(trial.number)
                raise trial_lifecycle.number_conflict(trial.number, len(row.trials))
            if queued is not None and queued not in (entry for entry, _ in row.queue):
                raise trial_lifecycle.queue_conflict(queued)
            row.totals.require_room(limits)
            if queued is not None:
                row.queue = [item for item in row.queue if item[0] != queued]
            row.totals += part
            now = self._now()
            row.trials.append(
                _TrialRow(
                    text=text,
                    state=trial.state,
                    value=trial.value,
                    totals=part,
                    at_target=at_target,
                    expected=expected,
                    clocks=trial_lifecycle.clocks_when_opened(trial.state, row.clock + 1),
                    token=token,
                    worker=None if lease is None else lease.worker,
                    leased_until=None if lease is None else now + lease.seconds,
                    asked=now,
                )
            )
            row.changed(trial.number)
            return row.stored(trial.number)

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> StoredTrial:
        trial_lifecycle.require_result(trial)
        text, cost = encode_trial(trial), require_amount(trial.cost, "a trial's cost")
        entry = encode_queued(trial.config, trial.suggestion) if again else None
        with self._lock:
            row = self._study(study)
            if not 0 <= trial.number < len(row.trials):
                raise trial_lifecycle.no_trial(trial.number, len(row.trials))
            if trial.number not in row.running:
                before = row.stored(trial.number)
                if not trial_lifecycle.can_become(before.trial, trial.state):
                    return before
            self._close(row, trial, text, cost, at_target)
            if entry is not None:
                self._enqueue(row, entry, first=True)
            row.changed(trial.number)
            return row.stored(trial.number)

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        encode_json(list(reports), f"a report of trial {number}")
        with self._lock:
            row = self._studies.get(study)
            if row is None or not row.holds(number, token):
                return False
            trial = row.stored(number).trial
            row.trials[number].text = encode_trial(replace(trial, reports=tuple(reports)))
            row.changed(number)
            return True

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        text = encode_queued(config, suggestion)
        with self._lock:
            row = self._study(study)
            self._enqueue(row, text, first)
            row.changed()

    def best(self, study: int, maximize: bool) -> Trial | None:
        with self._lock:
            row = self._study(study)
            done = [number for number, each in enumerate(row.trials) if each.state is State.DONE]
            eligible = [number for number in done if row.trials[number].at_target] or done
            sign = -1.0 if maximize else 1.0
            found = min(eligible, key=lambda number: sign * (row.trials[number].value or 0.0), default=None)
            return None if found is None else row.stored(found).trial

    # -- leases ------------------------------------------------------------------------------------------------------

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        with self._lock:
            row = self._studies.get(study)
            if row is None:
                return set(held)
            kept = {number for number, token in held.items() if row.holds(number, token)}
            for number in kept:
                row.trials[number].leased_until = self._now() + seconds
            return set(held) - kept

    def holders(self, study: int) -> dict[int, str]:
        with self._lock:
            row = self._studies.get(study)
            if row is None:
                return {}
            workers = {number: row.trials[number].worker for number in sorted(row.running)}
            return {number: worker for number, worker in workers.items() if worker is not None}

    def reap(self, study: int, price: float | None) -> list[Trial]:
        price = require_amount(price, "the price of a second")
        with self._lock:
            row, now = self._studies.get(study), self._now()
            if row is None:
                return []
            leases = [(number, row.trials[number].leased_until) for number in sorted(row.running)]
            late = [number for number, until in leases if until is not None and until < now]
            if not late:
                return []
            for number in late:
                trial = trial_lifecycle.abandon(row.stored(number).trial, row.trials[number].lease_seconds, price)
                self._close(row, trial, encode_trial(trial), trial.cost, row.trials[number].at_target)
            row.changed(*late)
            gone = [row.stored(number).trial for number in late]
            for trial in reversed([each for each in gone if each.state is State.ABANDONED]):
                self._enqueue(row, encode_queued(trial.config, trial.suggestion), first=True)
            return gone

    def ask_lock(self, study: int) -> AbstractContextManager[Any]:
        return _AskLock(self._ask_locks.setdefault((os.getpid(), study), threading.Lock()))

    def close_connections(self) -> None:
        """There are none."""

    # -- helpers, called with the lock held --------------------------------------------------------------------------

    def _study(self, study: int) -> _StudyRow:
        if study not in self._studies:
            raise trial_lifecycle.no_study(study, self.url)
        return self._studies[study]

    def _close(self, study: _StudyRow, trial: Trial, text: str, cost: float | None, at_target: bool) -> None:
        row = study.trials[trial.number]
        part = trial_totals(trial.state, cost, row.expected)
        study.totals = study.totals.replaced(row.totals, part)
        row.clocks = trial_lifecycle.clocks_when_closed(row.clocks, trial.state, study.clock + 1)
        row.text, row.state, row.value, row.totals, row.at_target = text, trial.state, trial.value, part, at_target

    def _enqueue(self, study: _StudyRow, text: str, first: bool) -> None:
        self._last_entry += 1
        study.queue.insert(0 if first else len(study.queue), (self._last_entry, text))


_storages: weakref.WeakSet[MemoryStorage] = weakref.WeakSet()
_locked: list[MemoryStorage] = []  # during a fork, so that the child has no half of a change


def _before_fork() -> None:
    _locked.extend(storage for storage in list(_storages) if storage._lock.acquire(timeout=1.0))


def _after_fork() -> None:
    while _locked:
        _locked.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
