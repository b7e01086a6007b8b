"""Studies in a database: making them, finding them, changing and deleting them, and looking after the database.

The trials are ``sql``'s.

Studies in a database: the contract of ``base``, in transactions.

Every write to a study begins by taking its turn: the study's row is locked (in SQLite, the file), the clock moves on by one, and
what the trials amount to is brought up to date in the same row. What is read is of one moment.

A transaction may be repeated after its answer was lost, so each knows its own traces: a trial the token of its lease, a study the
key of the call that made it, other calls a receipt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from types import EllipsisType
from typing import Any

from sqlalchemy import Connection, Row

from ..data.trial import State, Trial
from ..errors import StorageError
from . import maintenance as upkeep
from . import rows as statements
from . import trial_lifecycle as life
from .base import Changes, Lease, Limits, Settings, Stored, StudyRecord, Waiting
from .codec import damaged, entry_text, from_text, many_at_once, plain_name, read_trial, read_trials, sealed, to_text, trial_text
from .rows import (
    carried_out,
    columns,
    enqueue,
    first_time,
    keep_receipt,
    new_key,
    rewrite,
    share_of,
    stored,
    tick,
    totals,
    totals_columns,
    trial_row,
    turn,
)
from .transactions import Backend, Database
from .trial_lifecycle import Standing, Totals, amount, guess, revision, share


class SQLStudies:
    """A SQLite file or a PostgreSQL database, and the studies in it. It can be pickled, to be opened again elsewhere."""

    def __init__(self, backend: Backend) -> None:
        self._database = Database(backend)
        try:
            self._opened = upkeep.prepare(self._database)
        except BaseException:
            self._database.close()
            raise

    @property
    def url(self) -> str:
        return self._database.backend.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._database.backend,)

    # -- studies -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        plain_name(name, "a study's name")
        text = to_text(settings, f"the settings of study {name!r}")
        key = new_key()
        row = {"name": name, "settings": text, "seal": seal(name, text, None), "made_by": key, "halted": None}
        row |= {"halts": 0, "seconds": 0.0, "clock": 0, "waiting": 0, **totals_columns(Totals())}

        def work(connection: Connection) -> tuple[StudyRecord, bool]:
            self._database.backend.alone(connection)
            found = self._find(connection, name)
            if found is None:
                connection.execute(statements.NEW_STUDY, row)
                found = connection.execute(statements.STUDY_NAMED, {"name_": name}).one()
            return self._record(found), found.made_by == key

        there = self.find(name)
        return (there, False) if there is not None else self._database.write(work)

    def find(self, name: str) -> StudyRecord | None:
        try:
            plain_name(name, "a study's name")
        except StorageError:  # no study has such a name
            return None
        found = self._database.read(lambda connection: self._find(connection, name))
        return None if found is None else self._record(found)

    def _find(self, connection: Connection, name: str) -> Row[Any] | None:
        found = connection.execute(statements.STUDY_NAMED, {"name_": name}).first()
        if found is None:  # a name or an index that was damaged must not look like a study that never was
            rows = connection.execute(statements.ALL_STUDIES).all()
            found = next((row for row in rows if self._record(row).name == name), None)
        return found

    def studies(self) -> list[StudyRecord]:
        rows = self._database.read(lambda connection: connection.execute(statements.ALL_STUDIES).all())
        return [self._record(row) for row in rows]

    def _record(self, row: Row[Any]) -> StudyRecord:
        where = f"study {row.id} in {self.url}"
        numbers = (row.halts, row.seconds, row.clock, row.created_at, row.trials, row.waiting)
        texts = (row.name, row.settings, row.halted or "")
        if not all(isinstance(each, int | float) for each in numbers) or not all(isinstance(each, str) for each in texts):
            raise damaged(where)
        if row.seal != seal(*texts):
            raise damaged(where)
        return StudyRecord(row.id, row.name, from_text(row.settings, where), read_halted(row, where), *numbers)

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
        key = None if wanted.repeatable else new_key()

        def work(connection: Connection) -> None:
            book = turn(connection, study, self.url)
            if key is not None and carried_out(connection, key):
                return
            self._record(book)  # what is damaged must not get a new seal
            before = Standing(book.settings, book.halted, book.halts, book.seconds)
            after = wanted.of(before)
            if after == before:
                return
            if key is not None:
                keep_receipt(connection, key)
            tick(connection, book, **asdict(after), seal=seal(book.name, after.settings, after.halted))

        self._database.write(work)

    def delete(self, study: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(statements.TURN, {"study_": study})
            for statement in statements.DELETE:
                connection.execute(statement, {"study_": study})

        self._database.write(work)

    # -- the database ------------------------------------------------------------------------------------------------

    def asking(self, study: int) -> AbstractContextManager[None]:
        return self._database.backend.turn(self._database.engine, study)

    def close_connections(self) -> None:
        self._database.close()

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """A copy of everything, to a new file, while others go on writing."""
        self._database.backend.copy(path, overwrite)

    def check(self) -> list[str]:
        """What is wrong, in words: whether all that was written is there and adds up."""
        return upkeep.check(self._database)

    def upgrade(self) -> str:
        """What was done when it was opened, in words: older tables are brought up to date then."""
        return self._opened.in_words


def seal(name: str, settings: str, halted: str | None) -> int:
    """Of the texts of a study's row."""
    return sealed("\n".join((name, settings, halted or "")))


def read_halted(row: Row[Any], where: str) -> str | None:
    """Why somebody wants the study to stop."""
    return None if row.halted is None else str(from_text(row.halted, where))


AT_ONCE = 1000  # rows in memory as text while many are read


class SQLStorage(SQLStudies):
    """A SQLite file or a PostgreSQL database; ``open_storage`` makes it."""

    # -- trials ------------------------------------------------------------------------------------------------------

    def since(self, study: int, clock: int) -> Changes:
        def work(connection: Connection) -> Changes:
            book = connection.execute(statements.STUDY, {"study_": study}).first()
            if book is None:
                raise life.no_study(study, self.url)
            trials = self._trials(connection, book, clock) if book.clock > clock else []
            rows = connection.execute(statements.WAITING, {"study_": study}).all() if book.waiting else []
            queue = [Waiting(row.id, **from_text(row.entry, f"what waits in {self.url}", row.seal)) for row in rows]
            if len(queue) != book.waiting:
                raise damaged(f"the queue of study {study} in {self.url}")
            return Changes(book.clock, trials, queue, read_halted(book, self.url), book.halts, book.seconds, book.seal)

        return self._database.read(work)

    def _trials(self, connection: Connection, book: Row[Any], clock: int) -> list[Stored]:
        statement = statements.TRIALS_SINCE if clock > 0 else statements.TRIALS
        in_parts = {"yield_per": AT_ONCE} if book.clock - clock > AT_ONCE else {}
        rows = connection.execute(statement, {"study_": book.id, "clock_": clock}, execution_options=in_parts)
        found: list[Stored] = []
        with many_at_once():
            for part in rows.partitions(AT_ONCE):
                found += read_trials(part, f"study {book.id} of {self.url}")
        if clock <= 0 and [each.trial.number for each in found] != list(range(book.trials)):
            raise damaged(f"study {book.id} in {self.url}, of whose {book.trials} trials {len(found)} are there,")
        return found

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
        row: dict[str, Any] = {"study": study, "number": trial.number, "at_target": bool(at_target), "expected": expected}
        life.require_lease(lease)
        held = Lease("", new_key(), 0.0) if lease is None else lease
        row |= {"token": held.token, "worker": held.worker or None, "lease_": None if lease is None else held.seconds}

        def work(connection: Connection) -> Stored:
            book = turn(connection, study, self.url)
            if trial.number != book.trials:
                there = trial_row(connection, study, trial.number)
                if there is not None and there.token == held.token:
                    return stored(there, self.url)
                raise life.behind(trial.number, book.trials)
            if queued is not None and not connection.execute(statements.TAKE, {"study_": study, "entry_": queued}).rowcount:
                raise life.taken(queued)
            sums = totals(book)
            sums.require_room(limits)
            clocks = life.opened(trial, book.clock + 1).clocks
            connection.execute(statements.NEW_TRIAL, row | columns(trial, text, clocks, book.clock + 1))
            tick(connection, book, sums + part, waiting=book.waiting - (queued is not None))
            return read_trial((text, sealed(text, *clocks), trial.number, *clocks), self.url)

        return self._database.write(work)

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> Stored:
        life.require_result(trial)
        text, cost = trial_text(trial), amount(trial.cost, "a trial's cost")
        waiting = [entry_text(trial.config, trial.suggestion)] if again else []

        def work(connection: Connection) -> Stored:
            book = turn(connection, study, self.url)
            row = trial_row(connection, study, trial.number)
            if row is None:
                raise life.no_trial(trial.number, book.trials)
            before = stored(row, self.url)
            if not life.open_to(before.trial, trial.state):
                return before
            clocks = life.closed(before, trial, book.clock + 1).clocks
            rewrite(connection, book, trial, text, clocks, at_target)
            enqueue(connection, book, waiting, first=True)
            sums = totals(book).changed(share_of(row), share(trial.state, cost, row.expected))
            tick(connection, book, sums, waiting=book.waiting + len(waiting))
            return read_trial((text, sealed(text, *clocks), trial.number, *clocks), self.url)

        return self._database.write(work)

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        to_text(list(reports), f"a report of trial {number}")

        def work(connection: Connection) -> bool:
            book = connection.execute(statements.TURN, {"study_": study}).first()
            row = trial_row(connection, study, number)
            if book is None or row is None or row.state != State.RUNNING or row.token != token:
                return False
            before = stored(row, self.url)
            trial = replace(before.trial, reports=tuple(reports))
            rewrite(connection, book, trial, trial_text(trial), before.clocks, row.at_target)
            tick(connection, book)
            return True

        return self._database.write(work)

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        text, key = entry_text(config, suggestion), new_key()

        def work(connection: Connection) -> None:
            book = turn(connection, study, self.url)
            if first_time(connection, key):
                enqueue(connection, book, [text], first)
                tick(connection, book, waiting=book.waiting + 1)

        self._database.write(work)

    def best(self, study: int, maximize: bool) -> Trial | None:
        statement = statements.HIGHEST if maximize else statements.LOWEST

        def work(connection: Connection) -> Trial | None:
            for at_target in (True, False):
                row = connection.execute(statement, {"study_": study, "at_target_": at_target}).first()
                if row is not None:
                    return read_trial(row, self.url).trial
            if connection.execute(statements.STUDY, {"study_": study}).first() is None:
                raise life.no_study(study, self.url)
            return None

        return self._database.read(work)

    # -- leases ------------------------------------------------------------------------------------------------------

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        if not held:
            return set()
        values = {"study_": study, "numbers_": list(held), "held_": list(held.items()), "lease_": amount(seconds, "a lease")}

        def work(connection: Connection) -> set[int]:
            connection.execute(statements.TURN, {"study_": study})
            return set(held) - set(connection.execute(statements.RENEW, values).scalars())

        return self._database.write(work)

    def holders(self, study: int) -> dict[int, str]:
        def work(connection: Connection) -> dict[int, str]:
            return {row.number: row.worker for row in connection.execute(statements.HELD, {"study_": study})}

        return self._database.read(work)

    def reap(self, study: int, price: float | None) -> list[Trial]:
        price = amount(price, "the price of a second")
        if self._database.read(lambda connection: connection.execute(statements.ANY_LATE, {"study_": study}).first()) is None:
            return []

        def work(connection: Connection) -> list[Trial]:
            book = turn(connection, study, self.url)
            sums, gone = totals(book), list[Trial]()
            for row in connection.execute(statements.ALL_LATE, {"study_": study}).all():
                before = stored(row, self.url)
                trial = life.abandon(before.trial, row.open_for, price)
                clocks = life.closed(before, trial, book.clock + 1).clocks
                rewrite(connection, book, trial, trial_text(trial), clocks, row.at_target)
                sums = sums.changed(share_of(row), share(trial.state, trial.cost, row.expected))
                gone.append(trial)
            if gone:
                again = [entry_text(trial.config, trial.suggestion) for trial in gone if trial.state is State.ABANDONED]
                enqueue(connection, book, again, first=True)
                tick(connection, book, sums, waiting=book.waiting + len(again))
            return gone

        return self._database.write(work)
