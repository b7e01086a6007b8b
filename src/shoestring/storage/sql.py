"""The storage in a SQL database: the contract of ``base``, in transactions.

A transaction that writes to a study first locks the study's row (in SQLite, the file). It advances the study's clock by one and
updates the totals of the trials in the same row. A transaction that reads sees one snapshot.

A transaction may be repeated after its answer was lost. So each write has an idempotency key: for a trial the token of its lease,
for a new study and for other calls a key that is stored with what they wrote.
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
from . import maintenance, rows, trial_lifecycle
from .base import Changes, Lease, Limits, QueuedConfig, Settings, StoredTrial, StudyRecord
from .codec import (
    checksum,
    damaged,
    decode_json,
    decode_trial,
    encode_json,
    encode_queued,
    encode_trial,
    read_trial,
    read_trials,
    require_name,
)
from .rows import advance_clock, lock_study, new_key, read_totals, read_trial_row, read_trial_totals, update_trial
from .transactions import Backend, Database
from .trial_lifecycle import Revision, StudyFields, Totals, require_amount, trial_totals, usable_estimate

ROWS_PER_READ = 1000  # rows in memory as text while many trials are read


class SQLStorage:
    """A SQLite file or a PostgreSQL database; ``open_storage`` makes it. It can be pickled and opened again elsewhere."""

    def __init__(self, backend: Backend) -> None:
        self._database = Database(backend)
        try:
            self._upgrade = maintenance.create_or_migrate(self._database)
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
        require_name(name, "a study's name")
        text = encode_json(settings, f"the settings of study {name!r}")
        key = new_key()
        row = {"name": name, "settings": text, "checksum": _study_checksum(name, text, None), "made_by": key, "halted": None}
        row |= {"halts": 0, "seconds": 0.0, "clock": 0, "waiting": 0, **rows.totals_columns(Totals())}

        def work(connection: Connection) -> tuple[StudyRecord, bool]:
            self._database.backend.lock_creation(connection)
            found = self._find(connection, name)
            if found is None:
                connection.execute(rows.INSERT_STUDY, row)
                found = connection.execute(rows.SELECT_STUDY_BY_NAME, {"name_": name}).one()
            return self._record(found), found.made_by == key

        known = self.find(name)
        return (known, False) if known is not None else self._database.write(work)

    def find(self, name: str) -> StudyRecord | None:
        try:
            require_name(name, "a study's name")
        except StorageError:  # no study has such a name
            return None
        found = self._database.read(lambda connection: self._find(connection, name))
        return None if found is None else self._record(found)

    def _find(self, connection: Connection, name: str) -> Row[Any] | None:
        found = connection.execute(rows.SELECT_STUDY_BY_NAME, {"name_": name}).first()
        if found is None:  # a study with a damaged name or index must not look like a study that never existed
            every = connection.execute(rows.SELECT_STUDIES).all()
            found = next((row for row in every if self._record(row).name == name), None)
        return found

    def studies(self) -> list[StudyRecord]:
        every = self._database.read(lambda connection: connection.execute(rows.SELECT_STUDIES).all())
        return [self._record(row) for row in every]

    def _record(self, row: Row[Any]) -> StudyRecord:
        where = f"study {row.id} in {self.url}"
        numbers = (row.halts, row.seconds, row.clock, row.created_at, row.trials, row.waiting)
        texts = (row.name, row.settings, row.halted or "")
        if not all(isinstance(each, int | float) for each in numbers) or not all(isinstance(each, str) for each in texts):
            raise damaged(where)
        if row.checksum != _study_checksum(*texts):
            raise damaged(where)
        return StudyRecord(row.id, row.name, decode_json(row.settings, where), _read_halted(row, where), *numbers)

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
        key = None if revision.is_idempotent else new_key()

        def work(connection: Connection) -> None:
            study_row = lock_study(connection, study, self.url)
            if key is not None and rows.has_key(connection, key):
                return
            self._record(study_row)  # a damaged row must not get a new checksum
            before = StudyFields(study_row.settings, study_row.halted, study_row.halts, study_row.seconds)
            after = revision.apply(before)
            if after == before:
                return
            if key is not None:
                rows.insert_key(connection, key)
            new_checksum = _study_checksum(study_row.name, after.settings, after.halted)
            advance_clock(connection, study_row, **asdict(after), checksum=new_checksum)

        self._database.write(work)

    def delete(self, study: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(rows.LOCK_STUDY, {"study_": study})
            for statement in rows.DELETE_STUDY:
                connection.execute(statement, {"study_": study})

        self._database.write(work)

    # -- trials ------------------------------------------------------------------------------------------------------

    def changes_since(self, study: int, clock: int) -> Changes:
        def work(connection: Connection) -> Changes:
            study_row = connection.execute(rows.SELECT_STUDY, {"study_": study}).first()
            if study_row is None:
                raise trial_lifecycle.no_study(study, self.url)
            return Changes(
                clock=study_row.clock,
                trials=self._read_trials(connection, study_row, clock) if study_row.clock > clock else [],
                queue=self._read_queue(connection, study_row) if study_row.waiting else [],
                halted=_read_halted(study_row, self.url),
                halts=study_row.halts,
                seconds=study_row.seconds,
                settings_hash=study_row.checksum,
            )

        return self._database.read(work)

    def _read_trials(self, connection: Connection, study_row: Row[Any], clock: int) -> list[StoredTrial]:
        statement = rows.SELECT_TRIALS_SINCE if clock > 0 else rows.SELECT_TRIALS
        in_parts = {"yield_per": ROWS_PER_READ} if study_row.clock - clock > ROWS_PER_READ else {}
        result = connection.execute(statement, {"study_": study_row.id, "clock_": clock}, execution_options=in_parts)
        found: list[StoredTrial] = []
        for part in result.partitions(ROWS_PER_READ):
            found += read_trials(part, f"study {study_row.id} of {self.url}")
        if clock <= 0 and [each.trial.number for each in found] != list(range(study_row.trials)):
            raise damaged(f"study {study_row.id} in {self.url}, of whose {study_row.trials} trials {len(found)} are there,")
        return found

    def _read_queue(self, connection: Connection, study_row: Row[Any]) -> list[QueuedConfig]:
        where = f"the queue of study {study_row.id} in {self.url}"
        found = connection.execute(rows.SELECT_QUEUE, {"study_": study_row.id}).all()
        if len(found) != study_row.waiting:
            raise damaged(where)
        return [QueuedConfig(row.id, **decode_json(row.entry, where, row.checksum)) for row in found]

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
        row: dict[str, Any] = {"study": study, "number": trial.number, "at_target": bool(at_target), "expected": expected}
        trial_lifecycle.require_lease(lease)
        token = new_key() if lease is None else lease.token
        row |= {"token": token, "worker": None if lease is None else lease.worker}
        row["lease_"] = None if lease is None else lease.seconds

        def work(connection: Connection) -> StoredTrial:
            study_row = lock_study(connection, study, self.url)
            if trial.number != study_row.trials:
                known = rows.find_trial_row(connection, study, trial.number)
                if known is not None and known.token == token:
                    return read_trial_row(known, self.url)
                raise trial_lifecycle.number_conflict(trial.number, study_row.trials)
            if queued is not None and not connection.execute(rows.DELETE_QUEUED, {"study_": study, "entry_": queued}).rowcount:
                raise trial_lifecycle.queue_conflict(queued)
            totals = read_totals(study_row)
            totals.require_room(limits)
            clocks = trial_lifecycle.clocks_when_opened(trial.state, study_row.clock + 1)
            connection.execute(rows.INSERT_TRIAL, row | rows.trial_columns(trial, text, clocks, study_row.clock + 1))
            advance_clock(connection, study_row, totals + part, waiting=study_row.waiting - (queued is not None))
            return StoredTrial(decode_trial(text), *clocks)

        return self._database.write(work)

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> StoredTrial:
        trial_lifecycle.require_result(trial)
        text, cost = encode_trial(trial), require_amount(trial.cost, "a trial's cost")
        queued = [encode_queued(trial.config, trial.suggestion)] if again else []

        def work(connection: Connection) -> StoredTrial:
            study_row = lock_study(connection, study, self.url)
            row = rows.find_trial_row(connection, study, trial.number)
            if row is None:
                raise trial_lifecycle.no_trial(trial.number, study_row.trials)
            before = read_trial_row(row, self.url)
            if not trial_lifecycle.can_become(before.trial, trial.state):
                return before
            clocks = trial_lifecycle.clocks_when_closed(before.clocks, trial.state, study_row.clock + 1)
            update_trial(connection, study_row, trial, text, clocks, at_target)
            rows.insert_queued(connection, study_row, queued, first=True)
            part = trial_totals(trial.state, cost, row.expected)
            totals = read_totals(study_row).replaced(read_trial_totals(row), part)
            advance_clock(connection, study_row, totals, waiting=study_row.waiting + len(queued))
            return StoredTrial(decode_trial(text), *clocks)

        return self._database.write(work)

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        encode_json(list(reports), f"a report of trial {number}")

        def work(connection: Connection) -> bool:
            study_row = connection.execute(rows.LOCK_STUDY, {"study_": study}).first()
            row = rows.find_trial_row(connection, study, number)
            if study_row is None or row is None or row.state != State.RUNNING or row.token != token:
                return False
            before = read_trial_row(row, self.url)
            trial = replace(before.trial, reports=tuple(reports))
            update_trial(connection, study_row, trial, encode_trial(trial), before.clocks, row.at_target)
            advance_clock(connection, study_row)
            return True

        return self._database.write(work)

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        text, key = encode_queued(config, suggestion), new_key()

        def work(connection: Connection) -> None:
            study_row = lock_study(connection, study, self.url)
            if not rows.has_key(connection, key):
                rows.insert_key(connection, key)
                rows.insert_queued(connection, study_row, [text], first)
                advance_clock(connection, study_row, waiting=study_row.waiting + 1)

        self._database.write(work)

    def best(self, study: int, maximize: bool) -> Trial | None:
        statement = rows.SELECT_HIGHEST if maximize else rows.SELECT_LOWEST

        def work(connection: Connection) -> Trial | None:
            for at_target in (True, False):
                row = connection.execute(statement, {"study_": study, "at_target_": at_target}).first()
                if row is not None:
                    return read_trial(row, self.url).trial
            if connection.execute(rows.SELECT_STUDY, {"study_": study}).first() is None:
                raise trial_lifecycle.no_study(study, self.url)
            return None

        return self._database.read(work)

    # -- leases ------------------------------------------------------------------------------------------------------

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        if not held:
            return set()
        values = {"study_": study, "numbers_": list(held), "held_": list(held.items())}
        values["lease_"] = require_amount(seconds, "the length of a lease")

        def work(connection: Connection) -> set[int]:
            connection.execute(rows.LOCK_STUDY, {"study_": study})
            return set(held) - set(connection.execute(rows.RENEW_LEASES, values).scalars())

        return self._database.write(work)

    def holders(self, study: int) -> dict[int, str]:
        def work(connection: Connection) -> dict[int, str]:
            return {row.number: row.worker for row in connection.execute(rows.SELECT_HOLDERS, {"study_": study})}

        return self._database.read(work)

    def reap(self, study: int, price: float | None) -> list[Trial]:
        price = require_amount(price, "the price of a second")
        expired = self._database.read(lambda connection: connection.execute(rows.SELECT_ANY_EXPIRED, {"study_": study}).first())
        if expired is None:  # the usual case, without a lock
            return []

        def work(connection: Connection) -> list[Trial]:
            study_row = lock_study(connection, study, self.url)
            totals, gone = read_totals(study_row), list[Trial]()
            for row in connection.execute(rows.SELECT_EXPIRED, {"study_": study}).all():
                before = read_trial_row(row, self.url)
                trial = trial_lifecycle.abandon(before.trial, row.lease_seconds, price)
                clocks = trial_lifecycle.clocks_when_closed(before.clocks, trial.state, study_row.clock + 1)
                update_trial(connection, study_row, trial, encode_trial(trial), clocks, row.at_target)
                totals = totals.replaced(read_trial_totals(row), trial_totals(trial.state, trial.cost, row.expected))
                gone.append(trial)
            if gone:
                queued = [encode_queued(trial.config, trial.suggestion) for trial in gone if trial.state is State.ABANDONED]
                rows.insert_queued(connection, study_row, queued, first=True)
                advance_clock(connection, study_row, totals, waiting=study_row.waiting + len(queued))
            return gone

        return self._database.write(work)

    # -- the database ------------------------------------------------------------------------------------------------

    def ask_lock(self, study: int) -> AbstractContextManager[None]:
        return self._database.backend.ask_lock(self._database.engine, study)

    def close_connections(self) -> None:
        self._database.close()

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Copy the whole database to a new file. Others may write meanwhile."""
        self._database.backend.backup(path, overwrite)

    def check(self) -> list[str]:
        """The problems of the database in words; none if all that was written is there and the totals are right."""
        return maintenance.check(self._database)

    def upgrade(self) -> str:
        """What was done to the tables when the database was opened, in words: older tables are migrated then."""
        return str(self._upgrade)


def _study_checksum(name: str, settings: str, halted: str | None) -> int:
    """The checksum of the texts in a study's row."""
    return checksum("\n".join((name, settings, halted or "")))


def _read_halted(study_row: Row[Any], where: str) -> str | None:
    """The reason of a requested stop."""
    return None if study_row.halted is None else str(decode_json(study_row.halted, where))
