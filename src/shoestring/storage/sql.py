"""The storage in a SQL database: the contract of ``base``, in transactions.

A transaction that writes to a study first locks the study's row (in SQLite, the file). It advances the study's clock by one and
updates the totals and the checksum of the trials in the same row. A transaction that reads sees one snapshot.

A storage remembers the last state of each study that it has read or written (``StudyVersion``). If a later transaction finds an
older or another state, the database was replaced under the running program: the call is refused, and nothing is written.

A transaction may be repeated after its answer was lost. So each write has an idempotency key: for a trial the token of its lease,
for a new study and for other calls a key that is stored with what they wrote.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from types import EllipsisType
from typing import Any, TypeVar

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from ..data.trial import State, Trial
from ..errors import StorageError
from . import maintenance, rows, trial_lifecycle
from .base import Changes, Lease, Limits, QueuedConfig, Settings, StoredTrial, StudyRecord
from .clocks import LeaseSeen, LeaseWatch, steady_seconds
from .codec import decode_trial, encode_json, encode_queued, encode_trial, read_queued, read_trial, require_name
from .connections import Backend
from .heartbeat import lease_length
from .rows import StudyVersion, TrialChange, advance_clock, lock_study, new_key, read_totals, read_trial_row
from .transactions import Database
from .trial_lifecycle import Revision, StudyFields, Totals, require_amount, trial_totals, usable_estimate

log = logging.getLogger("shoestring")

Result = TypeVar("Result")


class SQLStorage:
    """A SQLite file or a PostgreSQL database; ``open_storage`` makes it. It can be pickled and opened again elsewhere."""

    def __init__(self, backend: Backend) -> None:
        self._database = Database(backend)
        self._lease_watches: dict[int, LeaseWatch] = {}  # by study
        self._known: dict[int, StudyVersion] = {}  # the last state of each study that was read or written here
        self._warned: set[str] = set()  # what was logged already
        try:
            self._upgrade = maintenance.create_or_migrate(self._database)
            self._database.backend.start_clock(self._database.read, self._database.write)
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

    def _write(self, study: int, work: Callable[[Connection, Row[Any]], tuple[Result, StudyVersion | None]]) -> Result:
        """Run ``work`` with the study's row, locked. It returns its result, and the new version of the study if that changed."""
        known = self._known.get(study)  # before the transaction: another thread may write meanwhile

        def checked(connection: Connection) -> tuple[Result, StudyVersion]:
            study_row = lock_study(connection, study, self.url)
            self._require_same(study_row, known)
            result, version = work(connection, study_row)
            return result, version or StudyVersion.of(study_row)

        result, version = self._database.write(checked)
        self._remember(study, version)
        return result

    def _require_same(self, study_row: Row[Any] | None, known: StudyVersion | None) -> None:
        """A StorageError if the database was replaced by another one since this process has used it last."""
        if study_row is not None and known is not None and not StudyVersion.of(study_row).can_follow(known):
            raise StorageError(
                f"{self.url}: study {study_row.id} is not the one that this program has worked on (its clock was {known.clock}, "
                f"now it is {study_row.clock}): the database was replaced by an older or another copy while it was in use; "
                "nothing was written; put the newer one back, or end this program and start again to go on with this one"
            )

    def _remember(self, study: int, version: StudyVersion) -> None:
        known = self._known.get(study)
        if known is None or version.clock >= known.clock:
            self._known[study] = version

    # -- studies -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, settings: Settings) -> tuple[StudyRecord, bool]:
        require_name(name, "a study's name")
        text, key = encode_json(settings, f"the settings of study {name!r}"), new_key()
        row = {"name": name, "settings": text, "checksum": rows.study_checksum(name, text, None), "made_by": key, "halted": None}
        row |= {"halts": 0, "seconds": 0.0, "clock": 0, "waiting": 0, **rows.totals_columns(Totals())}
        row |= {"trials_checksum": 0, "checksum_clock": 0}

        def work(connection: Connection) -> tuple[StudyRecord, bool]:
            self._database.backend.lock_creation(connection)
            found = self._find(connection, name)
            if found is None:
                connection.execute(rows.INSERT_STUDY, row)
                found = connection.execute(rows.SELECT_STUDY_BY_NAME, {"name_": name}).one()
            return rows.read_study(found, self.url), found.made_by == key

        known = self.find(name)
        return (known, False) if known is not None else self._database.write(work)

    def find(self, name: str) -> StudyRecord | None:
        try:
            require_name(name, "a study's name")
        except StorageError:  # no study has such a name
            return None
        found = self._database.read(lambda connection: self._find(connection, name))
        return None if found is None else rows.read_study(found, self.url)

    def _find(self, connection: Connection, name: str) -> Row[Any] | None:
        found = connection.execute(rows.SELECT_STUDY_BY_NAME, {"name_": name}).first()
        if found is None:  # a study with a damaged name or index must not look like a study that never existed
            every = connection.execute(rows.SELECT_STUDIES).all()
            found = next((row for row in every if rows.read_study(row, self.url).name == name), None)
        return found

    def studies(self) -> list[StudyRecord]:
        every = self._database.read(lambda connection: connection.execute(rows.SELECT_STUDIES).all())
        return [rows.read_study(row, self.url) for row in every]

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

        def work(connection: Connection, study_row: Row[Any]) -> tuple[None, StudyVersion | None]:
            if key is not None and rows.has_key(connection, key):
                return None, None
            rows.read_study(study_row, self.url)  # a damaged row must not get a new checksum
            before = StudyFields(study_row.settings, study_row.halted, study_row.halts, study_row.seconds)
            after = revision.apply(before)
            if after == before:
                return None, None
            if key is not None:
                rows.insert_key(connection, key)
            new_checksum = rows.study_checksum(study_row.name, after.settings, after.halted)
            return None, advance_clock(connection, study_row, **asdict(after), checksum=new_checksum)

        self._write(study, work)

    def delete(self, study: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(rows.LOCK_STUDY, {"study_": study})
            for statement in rows.DELETE_STUDY:
                connection.execute(statement, {"study_": study})

        self._database.write(work)
        self._known.pop(study, None)

    # -- trials ------------------------------------------------------------------------------------------------------

    def changes_since(self, study: int, clock: int) -> Changes:
        known = self._known.get(study)

        def work(connection: Connection) -> tuple[Changes, StudyVersion]:
            study_row = connection.execute(rows.SELECT_STUDY, {"study_": study}).first()
            if study_row is None:
                raise trial_lifecycle.no_study(study, self.url)
            self._require_same(study_row, known)
            if study_row.clock - clock > rows.ROWS_PER_READ:
                self._database.backend.allow_slowness(connection)
            changes = Changes(
                clock=study_row.clock,
                trials=rows.read_trials_since(connection, study_row, clock, self.url) if study_row.clock > clock else [],
                queue=self._read_queue(connection, study_row) if study_row.waiting else [],
                halted=rows.read_halted(study_row, self.url),
                halts=study_row.halts,
                seconds=study_row.seconds,
                settings_hash=study_row.checksum,
            )
            return changes, StudyVersion.of(study_row)

        changes, version = self._database.read(work)
        self._remember(study, version)
        return changes

    def _read_queue(self, connection: Connection, study_row: Row[Any]) -> list[QueuedConfig]:
        """The queued configs that can be read. The others stay where they are, and are logged once."""
        found, where = [], f"study {study_row.id} in {self.url}"
        every = connection.execute(rows.SELECT_QUEUE, {"study_": study_row.id}).all()
        for row in every:
            if (entry := read_queued(row.entry, row.checksum)) is not None:
                found.append(QueuedConfig(row.id, *entry))
            else:
                self._warn_once(f"queued config {row.id} of {where} cannot be read, and is not evaluated")
        if len(every) != study_row.waiting:
            self._warn_once(f"{where} has {len(every)} queued configs, and its row says {study_row.waiting}: some were lost")
        return found

    def _warn_once(self, said: str) -> None:
        if said not in self._warned:
            self._warned.add(said)
            log.warning("%s; the study goes on; see: shoestring db check", said)

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
        token, worker, seconds = (new_key(), None, None) if lease is None else (lease.token, lease.worker, lease.seconds)
        row |= {"token": token, "worker": worker, "lease_": seconds}

        def work(connection: Connection, study_row: Row[Any]) -> tuple[StoredTrial, StudyVersion | None]:
            if trial.number != study_row.trials:
                known = rows.find_trial_row(connection, study, trial.number)
                if known is not None and known.token == token:
                    return read_trial_row(known, self.url), None
                raise trial_lifecycle.number_conflict(trial.number, study_row.trials)
            if queued is not None and not connection.execute(rows.DELETE_QUEUED, {"study_": study, "entry_": queued}).rowcount:
                raise trial_lifecycle.queue_conflict(queued)
            totals = read_totals(study_row)
            totals.require_room(limits)
            clocks = trial_lifecycle.clocks_when_opened(trial.state, study_row.clock + 1)
            columns = rows.trial_columns(trial, text, clocks, study_row.clock + 1)
            connection.execute(rows.INSERT_TRIAL, row | columns)
            changed = [TrialChange(trial.number, None, columns["checksum"])]
            waiting = study_row.waiting - (queued is not None)
            version = advance_clock(connection, study_row, totals + part, changed, waiting=waiting)
            return StoredTrial(decode_trial(text), *clocks), version

        return self._write(study, work)

    def close(self, study: int, trial: Trial, *, at_target: bool = True, again: bool = False) -> StoredTrial:
        trial_lifecycle.require_result(trial)
        text, cost = encode_trial(trial), require_amount(trial.cost, "a trial's cost")
        queued = [encode_queued(trial.config, trial.suggestion)] if again else []

        def work(connection: Connection, study_row: Row[Any]) -> tuple[StoredTrial, StudyVersion | None]:
            row = rows.find_trial_row(connection, study, trial.number)
            if row is None:
                raise trial_lifecycle.no_trial(trial.number, study_row.trials)
            before = read_trial_row(row, self.url)
            if not trial_lifecycle.can_become(before.trial, trial.state):
                return before, None
            clocks = trial_lifecycle.clocks_when_closed(before.clocks, trial.state, study_row.clock + 1)
            changed = [rows.update_trial(connection, study_row, row, trial, text, clocks, at_target)]
            rows.insert_queued(connection, study_row, queued, first=True)
            part = trial_totals(trial.state, cost, row.expected)
            totals = read_totals(study_row).replaced(rows.read_trial_totals(row), part)
            version = advance_clock(connection, study_row, totals, changed, waiting=study_row.waiting + len(queued))
            return StoredTrial(decode_trial(text), *clocks), version

        return self._write(study, work)

    def report(self, study: int, number: int, token: str, reports: Sequence[Mapping[str, Any]]) -> bool:
        encode_json(list(reports), f"a report of trial {number}")
        known = self._known.get(study)

        def work(connection: Connection) -> bool:
            study_row = connection.execute(rows.LOCK_STUDY, {"study_": study}).first()
            self._require_same(study_row, known)
            row = rows.find_trial_row(connection, study, number)
            if study_row is None or row is None or row.state != State.RUNNING or row.token != token:
                return False
            before = read_trial_row(row, self.url)
            trial = replace(before.trial, reports=tuple(reports))
            changed = [rows.update_trial(connection, study_row, row, trial, encode_trial(trial), before.clocks, row.at_target)]
            advance_clock(connection, study_row, changed=changed)
            return True

        return self._database.write(work)

    def enqueue(self, study: int, config: Mapping[str, Any], suggestion: Mapping[str, Any], *, first: bool = False) -> None:
        text, key = encode_queued(config, suggestion), new_key()

        def work(connection: Connection, study_row: Row[Any]) -> tuple[None, StudyVersion | None]:
            if rows.has_key(connection, key):
                return None, None
            rows.insert_key(connection, key)
            rows.insert_queued(connection, study_row, [text], first)
            return None, advance_clock(connection, study_row, waiting=study_row.waiting + 1)

        self._write(study, work)

    def best(self, study: int, maximize: bool) -> Trial | None:
        statement, known = (rows.SELECT_HIGHEST if maximize else rows.SELECT_LOWEST), self._known.get(study)

        def work(connection: Connection) -> Trial | None:
            study_row = connection.execute(rows.SELECT_STUDY, {"study_": study}).first()
            if study_row is None:
                raise trial_lifecycle.no_study(study, self.url)
            self._require_same(study_row, known)
            for at_target in (True, False):
                row = connection.execute(statement, {"study_": study, "at_target_": at_target}).first()
                if row is not None:
                    return read_trial(row, self.url).trial
            return None

        return self._database.read(work)

    # -- leases ------------------------------------------------------------------------------------------------------

    def renew(self, study: int, held: Mapping[int, str], seconds: float) -> set[int]:
        if not held:
            return set()
        lease, known = require_amount(seconds, "the length of a lease"), self._known.get(study)
        values = {"study_": study, "numbers_": list(held), "held_": list(held.items()), "lease_": lease}

        def work(connection: Connection) -> set[int]:
            self._require_same(connection.execute(rows.LOCK_STUDY, {"study_": study}).first(), known)
            return set(held) - set(connection.execute(rows.RENEW_LEASES, values).scalars())

        return self._database.write(work)

    def holders(self, study: int) -> dict[int, str]:
        def work(connection: Connection) -> dict[int, str]:
            return {row.number: row.worker for row in connection.execute(rows.SELECT_HOLDERS, {"study_": study})}

        return self._database.read(work)

    def reap(self, study: int, price: float | None) -> list[Trial]:
        price = require_amount(price, "the price of a second")
        watch = self._lease_watches.setdefault(study, LeaseWatch())

        def look(connection: Connection) -> dict[int, float]:
            asked_at = steady_seconds()
            found = connection.execute(rows.SELECT_LEASES, {"study_": study}).all()
            leases = [LeaseSeen(row.number, row.leased_until, lease_length(row.worker or "")) for row in found]
            over = watch.expired(leases, found[0].now if found else None, asked_at, steady_seconds())
            return {lease.number: lease.until for lease in over}

        expired = self._database.read(look)
        if not expired:  # the usual case, without a lock
            return []

        def work(connection: Connection, study_row: Row[Any]) -> tuple[list[Trial], StudyVersion | None]:
            totals, gone, changed = read_totals(study_row), list[Trial](), list[TrialChange]()
            for row in connection.execute(rows.SELECT_LEASED, {"study_": study}).all():
                if expired.get(row.number) != row.leased_until:  # also one that was renewed meanwhile
                    continue
                before = read_trial_row(row, self.url)
                trial = trial_lifecycle.abandon(before.trial, row.lease_seconds, price)
                clocks = trial_lifecycle.clocks_when_closed(before.clocks, trial.state, study_row.clock + 1)
                changed.append(rows.update_trial(connection, study_row, row, trial, encode_trial(trial), clocks, row.at_target))
                totals = totals.replaced(rows.read_trial_totals(row), trial_totals(trial.state, trial.cost, row.expected))
                gone.append(trial)
            if not gone:
                return gone, None
            queued = [encode_queued(trial.config, trial.suggestion) for trial in gone if trial.state is State.ABANDONED]
            rows.insert_queued(connection, study_row, queued, first=True)
            return gone, advance_clock(connection, study_row, totals, changed, waiting=study_row.waiting + len(queued))

        return self._write(study, work)

    # -- the database ------------------------------------------------------------------------------------------------

    def ask_lock(self, study: int) -> AbstractContextManager[None]:
        return self._database.backend.ask_lock(self._database.engine, study)

    def close_connections(self) -> None:
        self._database.close()

    def merge_log(self) -> None:
        """Make the file of a SQLite database complete without its log (-wal), as each run does at its end."""
        try:
            self._database.backend.merge_log(self._database.engine)
        except DBAPIError as error:
            raise self._database.backend.explain(error) from None

    def backup(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Copy the whole database to a new file. Others may write meanwhile."""
        self._database.backend.backup(path, overwrite)

    def check(self) -> list[str]:
        """The problems of the database in words; none if all that was written is there and the totals are right."""
        return maintenance.check(self._database)

    def upgrade(self) -> str:
        """What was done to the tables when the database was opened, in words: older tables are migrated then."""
        return str(self._upgrade)
