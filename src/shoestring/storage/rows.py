"""The SQL statements of the storage, and functions that read and write rows with them.

Each statement is built once, and SQLAlchemy compiles it once. Values are bound by name and never written into a statement. All
functions work in the transaction of the connection that they are given.

A transaction that writes to a study begins with ``lock_study``, which locks the study's row, and ends with ``advance_clock``.

The study's row holds a checksum over the checksums of its trials: the sum of ``link`` over all trials, modulo 2^63. A write adds
the trial's new link and subtracts the old one, so it costs the same for any number of trials. If one write to a trial is missing,
or an older state of one row came back, the sum differs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Integer, Row, Select, bindparam, delete, func, insert, select, tuple_, update

from ..data.trial import State, Trial
from .base import Clocks, StoredTrial, StudyRecord
from .codec import checksum, damaged, decode_json, read_trial, read_trials
from .schema import RUNNING, idempotency_keys, now, queue, studies, time_of_day, trials
from .trial_lifecycle import Totals, no_study, trial_totals

MODULUS = 1 << 63  # of the checksum over all trials: a BIGINT holds it
MASK = (1 << 64) - 1
FIRST_FACTOR, SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9  # of SplitMix64, which spreads each bit over all
ROWS_PER_READ = 1000  # rows in memory as text while many trials are read
KEY_SECONDS = 3600.0  # how long an idempotency key is kept; a call is repeated for about a minute

_study, _number = bindparam("study_", type_=Integer), bindparam("number_", type_=Integer)
_one_trial = (trials.c.study == _study) & (trials.c.number == _number)
_stored = (trials.c.record, trials.c.checksum, trials.c.number, trials.c.opened, trials.c.abandoned, trials.c.closed)

# -- statements: studies -----------------------------------------------------------------------------------------------

SELECT_STUDIES = select(studies).order_by(studies.c.id)
SELECT_STUDY = select(studies).where(studies.c.id == _study)
SELECT_STUDY_BY_NAME = select(studies).where(studies.c.name == bindparam("name_"))
LOCK_STUDY = SELECT_STUDY.with_for_update(key_share=True)  # SQLite locks the whole file instead
INSERT_STUDY = insert(studies).values(created_at=time_of_day())
UPDATE_STUDY = update(studies).where(studies.c.id == _study)
DELETE_STUDY = [
    delete(trials).where(trials.c.study == _study),
    delete(queue).where(queue.c.study == _study),
    delete(studies).where(studies.c.id == _study),
]

# -- statements: trials ------------------------------------------------------------------------------------------------

SELECT_TRIAL = select(trials).where(_one_trial)
SELECT_TRIALS = select(*_stored).where(trials.c.study == _study).order_by(trials.c.number)
SELECT_CHECKSUMS = select(trials.c.number, trials.c.checksum).where(trials.c.study == _study)
SELECT_TRIALS_SINCE = SELECT_TRIALS.where(trials.c.changed > bindparam("clock_"))
INSERT_TRIAL = insert(trials).values(asked=now(), leased_until=now() + bindparam("lease_"))  # without a lease: now + NULL is NULL
UPDATE_TRIAL = update(trials).where(_one_trial)


def _select_best(maximize: bool) -> Select[Any]:
    """The first trial with the best value. The index alone answers it."""
    eligible = (trials.c.study == _study) & (trials.c.state == "done") & (trials.c.at_target == bindparam("at_target_"))
    value = select((func.max if maximize else func.min)(trials.c.value)).where(eligible).scalar_subquery()
    return select(*_stored).where(eligible, trials.c.value == value).order_by(trials.c.number).limit(1)


SELECT_LOWEST, SELECT_HIGHEST = _select_best(False), _select_best(True)

# -- statements: leases ------------------------------------------------------------------------------------------------

RENEW_LEASES = (
    update(trials)
    .where(trials.c.study == _study, RUNNING)
    .where(trials.c.number.in_(bindparam("numbers_", expanding=True)))  # which has an index; the pair has none
    .where(tuple_(trials.c.number, trials.c.token).in_(bindparam("held_", expanding=True)))
    .values(leased_until=now() + bindparam("lease_"))
    .returning(trials.c.number)
)
SELECT_HOLDERS = select(trials.c.number, trials.c.worker).where(
    (trials.c.study == _study) & RUNNING & trials.c.worker.is_not(None)
)
_leased = (trials.c.study == _study) & RUNNING & trials.c.leased_until.is_not(None)
SELECT_LEASES = select(trials.c.number, trials.c.leased_until, trials.c.worker, now().label("now")).where(_leased)
SELECT_LEASED = (
    select(trials, (trials.c.leased_until - trials.c.asked).label("lease_seconds")).where(_leased).order_by(trials.c.number)
)

# -- statements: the queue and the idempotency keys --------------------------------------------------------------------

SELECT_QUEUE = select(queue.c.id, queue.c.entry, queue.c.checksum).where(queue.c.study == _study).order_by(queue.c.position)
SELECT_FIRST_POSITION = select(func.min(queue.c.position)).where(queue.c.study == _study)
SELECT_LAST_POSITION = select(func.max(queue.c.position)).where(queue.c.study == _study)
INSERT_QUEUED = insert(queue)
DELETE_QUEUED = delete(queue).where(queue.c.id == bindparam("entry_"), queue.c.study == _study)

SELECT_KEY = select(idempotency_keys.c.key).where(idempotency_keys.c.key == bindparam("key_"))
INSERT_KEY = insert(idempotency_keys).values(at=now())
DELETE_OLD_KEYS = delete(idempotency_keys).where(idempotency_keys.c.at < now() - KEY_SECONDS)


# -- a study's row -----------------------------------------------------------------------------------------------------


class StudyVersion(NamedTuple):
    """Which state of which study a row is: the key of the call that made the study, its clock, and the checksum of its trials."""

    made_by: str
    clock: int
    trials_checksum: int | None  # None if it is not known

    @classmethod
    def of(cls, study_row: Row[Any]) -> StudyVersion:
        return cls(study_row.made_by, study_row.clock, known_checksum(study_row))

    def can_follow(self, before: StudyVersion) -> bool:
        """Whether a database that was in the state ``before`` can be in this one."""
        if self.made_by != before.made_by or self.clock < before.clock:
            return False
        unknown = self.trials_checksum is None or before.trials_checksum is None
        return self.clock > before.clock or unknown or self.trials_checksum == before.trials_checksum


class TrialChange(NamedTuple):
    """The checksum of a trial before and after a write. ``before`` is None for a new trial."""

    number: int
    before: int | None
    after: int


def lock_study(connection: Connection, study: int, where: str) -> Row[Any]:
    """The study's row. No other transaction can change it before this one ends."""
    study_row = connection.execute(LOCK_STUDY, {"study_": study}).first()
    if study_row is None:
        raise no_study(study, where)
    return study_row


def advance_clock(
    connection: Connection,
    study_row: Row[Any],
    totals: Totals | None = None,
    changed: Iterable[TrialChange] = (),
    **columns: Any,
) -> StudyVersion:
    """Add one to the study's clock, and write what else has changed in its row. ``changed``: the trials that were written."""
    values = {} if totals is None else totals_columns(totals)
    clock, known = study_row.clock + 1, known_checksum(study_row)
    if known is None:  # of an older program: begin with what is there
        rows = connection.execute(SELECT_CHECKSUMS, {"study_": study_row.id}).all()
        after = sum_of_links([row.number for row in rows], [row.checksum for row in rows])
    else:
        after = known
        for number, old, new in changed:
            after += link(number, new) - (0 if old is None else link(number, old))
        after %= MODULUS
    values |= {"study_": study_row.id, "clock": clock, "trials_checksum": after, "checksum_clock": clock}
    connection.execute(UPDATE_STUDY, values | columns)
    return StudyVersion(study_row.made_by, clock, after)


def known_checksum(study_row: Row[Any]) -> int | None:
    """The checksum over all trials; None if an older program has written since it was computed."""
    known = study_row.trials_checksum
    return known if isinstance(known, int) and study_row.checksum_clock == study_row.clock else None


def link(number: int, trial_checksum: int) -> int:
    """The part of one trial in the checksum over all trials."""
    mixed = ((number << 32) + trial_checksum + 1) * FIRST_FACTOR & MASK
    mixed = (mixed ^ mixed >> 32) * SECOND_FACTOR & MASK
    return mixed ^ mixed >> 29


def sum_of_links(numbers: Sequence[int], checksums: Sequence[int]) -> int:
    """The checksum over all trials: the sum of ``link``, for 100,000 trials in some milliseconds."""
    pairs = (np.array(numbers, np.uint64) << np.uint64(32)) + np.array(checksums, np.uint64)
    mixed = (pairs + np.uint64(1)) * np.uint64(FIRST_FACTOR)
    mixed = (mixed ^ mixed >> np.uint64(32)) * np.uint64(SECOND_FACTOR)
    return int(np.sum(mixed ^ mixed >> np.uint64(29), dtype=np.uint64)) % MODULUS


def read_study(row: Row[Any], where: str) -> StudyRecord:
    """A study without its trials. A StorageError if its row is damaged."""
    where = f"study {row.id} in {where}"
    numbers = (row.halts, row.seconds, row.clock, row.created_at, row.trials, row.waiting, row.counted, row.running, row.spent)
    texts = (row.name, row.settings, row.halted or "")
    if not all(isinstance(each, int | float) for each in numbers) or not all(isinstance(each, str) for each in texts):
        raise damaged(where)
    if row.checksum != study_checksum(*texts):
        raise damaged(where)
    return StudyRecord(row.id, row.name, decode_json(row.settings, where), read_halted(row, where), *numbers)


def study_checksum(name: str, settings: str, halted: str | None) -> int:
    """The checksum of the texts in a study's row."""
    return checksum("\n".join((name, settings, halted or "")))


def read_halted(study_row: Row[Any], where: str) -> str | None:
    """The reason of a requested stop."""
    return None if study_row.halted is None else str(decode_json(study_row.halted, where))


def read_totals(study_row: Row[Any]) -> Totals:
    return Totals(study_row.trials, study_row.counted, study_row.running, study_row.spent, study_row.reserved)


def totals_columns(totals: Totals) -> dict[str, float]:
    return {item.name: getattr(totals, item.name) for item in fields(totals)}


# -- rows of trials ----------------------------------------------------------------------------------------------------


def find_trial_row(connection: Connection, study: int, number: int) -> Row[Any] | None:
    return connection.execute(SELECT_TRIAL, {"study_": study, "number_": number}).first()


def read_trial_row(row: Row[Any], where: str) -> StoredTrial:
    return read_trial((row.record, row.checksum, row.number, row.opened, row.abandoned, row.closed), where)


def read_trials_since(connection: Connection, study_row: Row[Any], clock: int, where: str) -> list[StoredTrial]:
    """The trials that were changed after this clock. For clock 0 these are all: then none may be missing."""
    where = f"study {study_row.id} in {where}"
    statement = SELECT_TRIALS_SINCE if clock > 0 else SELECT_TRIALS
    in_parts = {"yield_per": ROWS_PER_READ} if study_row.clock - clock > ROWS_PER_READ else {}
    result = connection.execute(statement, {"study_": study_row.id, "clock_": clock}, execution_options=in_parts)
    found: list[StoredTrial] = []
    checksums: list[int] = []
    for part in result.partitions(ROWS_PER_READ):
        found += read_trials(part, where)
        checksums += [row.checksum for row in part]
    if clock <= 0:
        numbers, known = [each.trial.number for each in found], known_checksum(study_row)
        if numbers != list(range(study_row.trials)):
            raise damaged(f"{where}, of whose {study_row.trials} trials {len(found)} are there,")
        if known is not None and known != sum_of_links(numbers, checksums):
            raise damaged(f"{where}, which lacks a write to one of its trials,")
    return found


def read_trial_totals(row: Row[Any]) -> Totals:
    return trial_totals(State(row.state), row.cost, row.expected)


def trial_columns(trial: Trial, text: str, clocks: Clocks, changed: int) -> dict[str, Any]:
    """The record, and the columns for searches."""
    opened, abandoned, closed = clocks
    return {
        "changed": changed,
        "opened": opened,
        "abandoned": abandoned,
        "closed": closed,
        "state": str(trial.state),
        "value": None if trial.value is None else float(trial.value),
        "cost": None if trial.cost is None or trial.added else float(trial.cost),  # its sum is what was spent
        "record": text,
        "checksum": checksum(text, *clocks),
    }


def update_trial(
    connection: Connection, study_row: Row[Any], row: Row[Any], trial: Trial, text: str, clocks: Clocks, at_target: bool
) -> TrialChange:
    """Write a trial over its row as it was read in this transaction."""
    which = {"study_": study_row.id, "number_": trial.number, "at_target": bool(at_target)}
    columns = trial_columns(trial, text, clocks, study_row.clock + 1)
    connection.execute(UPDATE_TRIAL, which | columns)
    return TrialChange(trial.number, row.checksum, columns["checksum"])


# -- the queue and the idempotency keys --------------------------------------------------------------------------------


def insert_queued(connection: Connection, study_row: Row[Any], texts: Sequence[str], first: bool) -> None:
    """Add entries to the queue in this order, before or after those that are in it."""
    if texts:
        end = connection.execute(SELECT_FIRST_POSITION if first else SELECT_LAST_POSITION, {"study_": study_row.id}).scalar() or 0
        start = end - len(texts) if first else end + 1
        positions = enumerate(texts, start)
        rows = [{"study": study_row.id, "position": at, "entry": text, "checksum": checksum(text)} for at, text in positions]
        connection.execute(INSERT_QUEUED, rows)


def new_key() -> str:
    """A new idempotency key, by which a repeated call recognizes what it did before."""
    return uuid.uuid4().hex


def has_key(connection: Connection, key: str) -> bool:
    """Whether the call with this key was carried out."""
    return connection.execute(SELECT_KEY, {"key_": key}).first() is not None


def insert_key(connection: Connection, key: str) -> None:
    """Store the key of a call, in the transaction that carries the call out."""
    connection.execute(DELETE_OLD_KEYS)
    connection.execute(INSERT_KEY, {"key": key})
