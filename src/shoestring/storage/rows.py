"""The SQL statements of the storage, and functions that read and write rows with them.

Each statement is built once, and SQLAlchemy compiles it once. Values are bound by name and never written into a statement. All
functions work in the transaction of the connection that they are given.

A transaction that writes to a study begins with ``lock_study``, which locks the study's row, and ends with ``advance_clock``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Integer, Row, Select, bindparam, delete, func, insert, select, tuple_, update

from ..data.trial import State, Trial
from .base import Clocks, StoredTrial
from .codec import checksum, read_trial
from .schema import RUNNING, idempotency_keys, now, queue, studies, trials
from .trial_lifecycle import Totals, no_study, trial_totals

KEY_SECONDS = 3600.0  # how long an idempotency key is kept; a call is repeated for about a minute

_study, _number = bindparam("study_", type_=Integer), bindparam("number_", type_=Integer)
_one_trial = (trials.c.study == _study) & (trials.c.number == _number)
_stored = (trials.c.record, trials.c.checksum, trials.c.number, trials.c.opened, trials.c.abandoned, trials.c.closed)

# -- statements: studies -----------------------------------------------------------------------------------------------

SELECT_STUDIES = select(studies).order_by(studies.c.id)
SELECT_STUDY = select(studies).where(studies.c.id == _study)
SELECT_STUDY_BY_NAME = select(studies).where(studies.c.name == bindparam("name_"))
LOCK_STUDY = SELECT_STUDY.with_for_update(key_share=True)  # SQLite locks the whole file instead
INSERT_STUDY = insert(studies).values(created_at=now())
UPDATE_STUDY = update(studies).where(studies.c.id == _study)
DELETE_STUDY = [
    delete(trials).where(trials.c.study == _study),
    delete(queue).where(queue.c.study == _study),
    delete(studies).where(studies.c.id == _study),
]

# -- statements: trials ------------------------------------------------------------------------------------------------

SELECT_TRIAL = select(trials).where(_one_trial)
SELECT_TRIALS = select(*_stored).where(trials.c.study == _study).order_by(trials.c.number)
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
_expired = (trials.c.study == _study) & RUNNING & (trials.c.leased_until < now())
SELECT_ANY_EXPIRED = select(trials.c.number).where(_expired).limit(1)
SELECT_EXPIRED = (
    select(trials, (trials.c.leased_until - trials.c.asked).label("lease_seconds")).where(_expired).order_by(trials.c.number)
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


def lock_study(connection: Connection, study: int, where: str) -> Row[Any]:
    """The study's row. No other transaction can change it before this one ends."""
    study_row = connection.execute(LOCK_STUDY, {"study_": study}).first()
    if study_row is None:
        raise no_study(study, where)
    return study_row


def advance_clock(connection: Connection, study_row: Row[Any], totals: Totals | None = None, **columns: Any) -> None:
    """Add one to the study's clock, and write what else has changed in its row."""
    changed = {} if totals is None else totals_columns(totals)
    connection.execute(UPDATE_STUDY, {"study_": study_row.id, "clock": study_row.clock + 1, **changed, **columns})


def read_totals(study_row: Row[Any]) -> Totals:
    return Totals(study_row.trials, study_row.counted, study_row.running, study_row.spent, study_row.reserved)


def totals_columns(totals: Totals) -> dict[str, float]:
    return {item.name: getattr(totals, item.name) for item in fields(totals)}


# -- rows of trials ----------------------------------------------------------------------------------------------------


def find_trial_row(connection: Connection, study: int, number: int) -> Row[Any] | None:
    return connection.execute(SELECT_TRIAL, {"study_": study, "number_": number}).first()


def read_trial_row(row: Row[Any], where: str) -> StoredTrial:
    return read_trial((row.record, row.checksum, row.number, row.opened, row.abandoned, row.closed), where)


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
    connection: Connection, study_row: Row[Any], trial: Trial, text: str, clocks: Clocks, at_target: bool
) -> None:
    which = {"study_": study_row.id, "number_": trial.number, "at_target": bool(at_target)}
    connection.execute(UPDATE_TRIAL, which | trial_columns(trial, text, clocks, study_row.clock + 1))


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
