"""Studies in memory: the reference of the contract, in plain Python. They end with the process, and belong to it alone.

What is kept is text, as in a database, so that nobody shares anything with the storage and both refuse the same things.
"""

from __future__ import annotations

import bisect
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

from ..data.trial import State, Trial
from . import trial_lifecycle as life
from .base import Changes, Lease, Limits, Settings, Stored, StudyRecord, Waiting
from .codec import entry_text, many_at_once, plain_name, read_trials, sealed, to_text, trial_text
from .locks import ThreadTurns
from .trial_lifecycle import Standing, Totals, amount, guess, revision, share


@dataclass(slots=True)
class _Row:
    """A trial as text, and what is known of it without reading that."""

    text: str
    state: State
    value: float | None
    share: Totals
    at_target: bool
    expected: float | None
    clocks: tuple[int, int | None, int | None]  # opened, abandoned, closed
    token: str | None
    worker: str | None
    leased_until: float | None
    asked: float


@dataclass(slots=True)
class _Book:
    """A study."""

    id: int
    name: str
    standing: Standing
    created_at: float
    clock: int = 0
    totals: Totals = field(default_factory=Totals)
    rows: list[_Row] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    queue: list[tuple[int, str]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)  # the clock of each change of a trial, rising
    changed: list[int] = field(default_factory=list)  # the number of that trial


class MemoryStorage:
    """Thread-safe. ``now`` is the clock of the leases, in seconds."""

    url = "memory://"

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._books: dict[int, _Book] = {}
        self._made = 0  # studies, and
        self._entries = 0  # waiting configs: ids are not used twice
        self._lock = threading.RLock()
        self._turns = ThreadTurns()

    def __repr__(self) -> str:
        return "MemoryStorage()"

    # -- studies -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        plain_name(name, "a study's name")
        text = to_text(settings, f"the settings of study {name!r}")
        with self._lock:
            found = self.find(name)
            if found is not None:
                return found, False
            self._made += 1
            book = self._books[self._made] = _Book(self._made, name, Standing(text), time.time())
            return _record(book), True

    def find(self, name: str) -> StudyRecord | None:
        with self._lock:
            return next((_record(book) for book in self._books.values() if book.name == name), None)

    def studies(self) -> list[StudyRecord]:
        with self._lock:
            return [_record(book) for book in self._books.values()]

    def revise(
        self,
        study: int,
        settings: Settings | None = None,
        halted: str | EllipsisType | None = ...,
        seconds: float = 0.0,
        *,
        if_still: Settings | None = None,
    ) -> None:
        wanted = revision(settings, halted, seconds, if_still, study)
        with self._lock:
            book = self._book(study)
            after = wanted.of(book.standing)
            if after != book.standing:
                book.standing = after
                book.clock += 1

    def delete(self, study: int) -> None:
        with self._lock:
            self._books.pop(study, None)

    # -- trials ------------------------------------------------------------------------------------------------------

    def since(self, study: int, clock: int) -> Changes:
        with self._lock:
            book = self._book(study)
            new = sorted(set(book.changed[bisect.bisect_right(book.ticks, clock) :]))
            queue = [Waiting(entry, **json.loads(text)) for entry, text in book.queue]
            now = book.standing
            return Changes(book.clock, self._read(book, new), queue, _reason(now), now.halts, now.seconds, hash(now.settings))

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
    ) -> Stored:
        text, expected = trial_text(trial), guess(expected)
        part = share(trial.state, amount(trial.cost, "a trial's cost"), expected)
        life.require_lease(lease)
        token = None if lease is None else lease.token
        with self._lock:
            book = self._book(study)
            worker = None if lease is None else lease.worker or None
            if trial.number != len(book.rows):
                if token is not None and 0 <= trial.number < len(book.rows) and book.rows[trial.number].token == token:
                    return self._read(book, [trial.number])[0]
                raise life.behind(trial.number, len(book.rows))
            if queued is not None and queued not in (entry for entry, _ in book.queue):
                raise life.taken(queued)
            book.totals.require_room(limits)
            now, until = self._now(), None if lease is None else self._now() + lease.seconds
            clocks = life.opened(trial, book.clock + 1).clocks
            book.queue = [item for item in book.queue if item[0] != queued]
            book.rows.append(_Row(text, trial.state, trial.value, part, at_target, expected, clocks, token, worker, until, now))
            book.totals += part
            return self._changed(book, [trial.number])[0]

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> Stored:
        life.require_result(trial)
        text, cost = trial_text(trial), amount(trial.cost, "a trial's cost")
        entry = entry_text(trial.config, trial.suggestion)
        with self._lock:
            book = self._book(study)
            if not 0 <= trial.number < len(book.rows):
                raise life.no_trial(trial.number, len(book.rows))
            before = self._read(book, [trial.number])[0]
            if not life.open_to(before.trial, trial.state):
                return before
            self._close(book, trial, text, cost, at_target)
            if again:
                self._enqueue(book, entry, first=True)
            return self._changed(book, [trial.number])[0]

    def _close(self, book: _Book, trial: Trial, text: str, cost: float | None, at_target: bool) -> None:
        row = book.rows[trial.number]
        part = share(trial.state, cost, row.expected)
        book.totals = book.totals.changed(row.share, part)
        row.clocks = life.closed(Stored(trial, *row.clocks), trial, book.clock + 1).clocks
        row.text, row.state, row.value, row.share, row.at_target = text, trial.state, trial.value, part, at_target

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        to_text(list(reports), f"a report of trial {number}")
        with self._lock:
            book = self._books.get(study)
            if book is None or not self._owns(book, number, token):
                return False
            trial = self._read(book, [number])[0].trial
            book.rows[number].text = trial_text(replace(trial, reports=tuple(reports)))
            self._changed(book, [number])
            return True

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        text = entry_text(config, suggestion)
        with self._lock:
            book = self._book(study)
            self._enqueue(book, text, first)
            book.clock += 1

    def best(self, study: int, maximize: bool) -> Trial | None:
        with self._lock:
            book = self._book(study)
            done = [number for number, row in enumerate(book.rows) if row.state is State.DONE]
            eligible = [number for number in done if book.rows[number].at_target] or done
            sign = -1.0 if maximize else 1.0
            found = min(eligible, key=lambda number: sign * (book.rows[number].value or 0.0), default=None)
            return None if found is None else self._read(book, [found])[0].trial

    # -- leases ------------------------------------------------------------------------------------------------------

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        with self._lock:
            book = self._books.get(study)
            kept = {number for number, token in held.items() if book is not None and self._owns(book, number, token)}
            for number in kept:
                self._books[study].rows[number].leased_until = self._now() + seconds
            return set(held) - kept

    def holders(self, study: int) -> dict[int, str]:
        with self._lock:
            book = self._book(study)
            workers = {number: book.rows[number].worker for number in sorted(book.running)}
            return {number: worker for number, worker in workers.items() if worker is not None}

    def reap(self, study: int, price: float | None) -> list[Trial]:
        price = amount(price, "the price of a second")
        with self._lock:
            book, now = self._books.get(study), self._now()
            if book is None:
                return []
            leases = [(number, book.rows[number].leased_until) for number in sorted(book.running)]
            late = [number for number, until in leases if until is not None and until < now]
            if not late:
                return []
            gone = [life.abandon(each.trial, _held(book.rows[each.trial.number]), price) for each in self._read(book, late)]
            for trial in gone:
                self._close(book, trial, trial_text(trial), trial.cost, book.rows[trial.number].at_target)
            for trial in reversed([each for each in gone if each.state is State.ABANDONED]):
                self._enqueue(book, entry_text(trial.config, trial.suggestion), first=True)
            return [each.trial for each in self._changed(book, late)]

    def asking(self, study: int) -> AbstractContextManager[None]:
        return self._turns.turn(study)

    def close_connections(self) -> None:
        """There are none."""

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _book(self, study: int) -> _Book:
        if study not in self._books:
            raise life.no_study(study, self.url)
        return self._books[study]

    def _owns(self, book: _Book, number: int, token: str) -> bool:
        return number in book.running and book.rows[number].token == token

    def _enqueue(self, book: _Book, text: str, first: bool) -> None:
        self._entries += 1
        book.queue.insert(0 if first else len(book.queue), (self._entries, text))

    def _changed(self, book: _Book, numbers: Sequence[int]) -> list[Stored]:
        """Let the clock tick: these trials have just changed."""
        book.clock += 1
        for number in numbers:
            book.ticks.append(book.clock)
            book.changed.append(number)
            (book.running.add if book.rows[number].state is State.RUNNING else book.running.discard)(number)
        return self._read(book, numbers)

    def _read(self, book: _Book, numbers: Iterable[int]) -> list[Stored]:
        rows = [(book.rows[number].text, number, book.rows[number].clocks) for number in numbers]
        with many_at_once():
            return read_trials([(text, sealed(text, *clocks), number, *clocks) for text, number, clocks in rows], self.url)


def _record(book: _Book) -> StudyRecord:
    now, trials, waiting = book.standing, book.totals.trials, len(book.queue)
    settings = json.loads(now.settings)
    return StudyRecord(
        book.id, book.name, settings, _reason(now), now.halts, now.seconds, book.clock, book.created_at, trials, waiting
    )


def _reason(standing: Standing) -> str | None:
    return None if standing.halted is None else str(json.loads(standing.halted))


def _held(row: _Row) -> float:
    """Seconds from its asking to the end of its lease."""
    return 0.0 if row.leased_until is None else row.leased_until - row.asked
