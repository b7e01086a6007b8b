"""Studies in a database: the contract of ``base``, in transactions.

Every write to a study begins by taking its turn: the study's row is locked (in SQLite, the file), the clock moves on by one, and
what the trials amount to is brought up to date in the same row. What is read is of one moment.

A transaction may be repeated after its answer was lost, so each knows its own traces: a trial the token of its lease, a study the
key of the call that made it, other calls a receipt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row

from ..trial import State, Trial
from . import life, statements
from .base import Changes, Lease, Limits, Stored, Waiting
from .book import columns, enqueue, first_time, new_key, rewrite, share_of, stored, tick, totals, trial_row, turn
from .sql_studies import SQLStudies, read_halted
from .text import damaged, entry_text, from_text, many_at_once, read_trial, read_trials, sealed, to_text, trial_text
from .totals import amount, guess, share

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
