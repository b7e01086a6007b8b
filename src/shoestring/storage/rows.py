"""What a storage asks of a database: each statement once, compiled once, its values bound by name and never written into it.

A study's row while it is one's turn to write, and the rows of its trials and its queue.

``turn`` locks the row until the end of the transaction; ``tick`` moves the clock on and must come last. All of it happens in the
transaction of the connection.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Integer, Row, Select, bindparam, delete, func, insert, select, tuple_, update

from ..data.trial import State, Trial
from . import rows as statements
from . import trial_lifecycle as life
from .base import Clocks, Stored
from .codec import read_trial, sealed
from .schema import RUNNING, now, queue, receipts, studies, trials
from .trial_lifecycle import Totals, share

study, number = bindparam("study_", type_=Integer), bindparam("number_", type_=Integer)
ONE = (trials.c.study == study) & (trials.c.number == number)
STORED = (trials.c.record, trials.c.seal, trials.c.number, trials.c.opened, trials.c.abandoned, trials.c.closed)

# -- studies

ALL_STUDIES = select(studies).order_by(studies.c.id)
STUDY = select(studies).where(studies.c.id == study)
STUDY_NAMED = select(studies).where(studies.c.name == bindparam("name_"))
TURN = STUDY.with_for_update(key_share=True)  # whoever has it writes next; SQLite locks the whole file instead
NEW_STUDY = insert(studies).values(created_at=now())
SET_STUDY = update(studies).where(studies.c.id == study)
DELETE = [
    delete(trials).where(trials.c.study == study),
    delete(queue).where(queue.c.study == study),
    delete(studies).where(studies.c.id == study),
]

# -- trials

TRIAL = select(trials).where(ONE)
TRIALS = select(*STORED).where(trials.c.study == study).order_by(trials.c.number)
TRIALS_SINCE = TRIALS.where(trials.c.changed > bindparam("clock_"))
NEW_TRIAL = insert(trials).values(asked=now(), leased_until=now() + bindparam("lease_"))  # no lease, no end: now + NULL is NULL
SET_TRIAL = update(trials).where(ONE)


def best(maximize: bool) -> Select[Any]:
    """By the index alone: the best value, and of those that have it the first."""
    eligible = (trials.c.study == study) & (trials.c.state == "done") & (trials.c.at_target == bindparam("at_target_"))
    value = select((func.max if maximize else func.min)(trials.c.value)).where(eligible).scalar_subquery()
    return select(*STORED).where(eligible, trials.c.value == value).order_by(trials.c.number).limit(1)


LOWEST, HIGHEST = best(False), best(True)

# -- leases

RENEW = (
    update(trials)
    .where(trials.c.study == study, RUNNING)
    .where(trials.c.number.in_(bindparam("numbers_", expanding=True)))  # which has an index; the pair has none
    .where(tuple_(trials.c.number, trials.c.token).in_(bindparam("held_", expanding=True)))
    .values(leased_until=now() + bindparam("lease_"))
    .returning(trials.c.number)
)
HELD = select(trials.c.number, trials.c.worker).where(
    (trials.c.study == study) & RUNNING & trials.c.worker.is_not(None)
)
LATE = (trials.c.study == study) & RUNNING & (trials.c.leased_until < now())
ANY_LATE = select(trials.c.number).where(LATE).limit(1)
ALL_LATE = select(trials, (trials.c.leased_until - trials.c.asked).label("open_for")).where(LATE).order_by(trials.c.number)

# -- queue

WAITING = select(queue.c.id, queue.c.entry, queue.c.seal).where(queue.c.study == study).order_by(queue.c.position)
FRONT = select(func.min(queue.c.position)).where(queue.c.study == study)
BACK = select(func.max(queue.c.position)).where(queue.c.study == study)
ENQUEUE = insert(queue)
TAKE = delete(queue).where(queue.c.id == bindparam("entry_"), queue.c.study == study)

# -- receipts

RECEIPT = select(receipts.c.key).where(receipts.c.key == bindparam("key_"))
KEEP_RECEIPT = insert(receipts).values(at=now())
DROP_RECEIPTS = delete(receipts).where(receipts.c.at < now() - 3600.0)  # seconds; a call is repeated for less than a minute


def turn(connection: Connection, study: int, where: str) -> Row[Any]:
    """The study's row, which nobody else changes until the end of the transaction."""
    book = connection.execute(statements.TURN, {"study_": study}).first()
    if book is None:
        raise life.no_study(study, where)
    return book


def tick(connection: Connection, book: Row[Any], sums: Totals | None = None, **columns: Any) -> None:
    """Let the clock tick, and write what has changed in the study's row."""
    changed = {} if sums is None else totals_columns(sums)
    connection.execute(statements.SET_STUDY, {"study_": book.id, "clock": book.clock + 1, **changed, **columns})


def totals(book: Row[Any]) -> Totals:
    return Totals(book.trials, book.counted, book.running, book.spent, book.reserved)


def totals_columns(sums: Totals) -> dict[str, float]:
    return {item.name: getattr(sums, item.name) for item in fields(sums)}


# -- trials ------------------------------------------------------------------------------------------------------------


def trial_row(connection: Connection, study: int, number: int) -> Row[Any] | None:
    return connection.execute(statements.TRIAL, {"study_": study, "number_": number}).first()


def stored(row: Row[Any], where: str) -> Stored:
    return read_trial((row.record, row.seal, row.number, row.opened, row.abandoned, row.closed), where)


def share_of(row: Row[Any]) -> Totals:
    return share(State(row.state), row.cost, row.expected)


def columns(trial: Trial, text: str, clocks: Clocks, changed: int) -> dict[str, Any]:
    """The record, and beside it what is searched for."""
    opened, abandoned, closed = clocks
    return {
        "changed": changed,
        "opened": opened,
        "abandoned": abandoned,
        "closed": closed,
        "state": str(trial.state),
        "value": None if trial.value is None else float(trial.value),
        "cost": None if trial.cost is None else float(trial.cost),
        "record": text,
        "seal": sealed(text, *clocks),
    }


def rewrite(connection: Connection, book: Row[Any], trial: Trial, text: str, clocks: Clocks, at_target: bool) -> None:
    """A trial that has changed."""
    which = {"study_": book.id, "number_": trial.number, "at_target": bool(at_target)}
    connection.execute(statements.SET_TRIAL, which | columns(trial, text, clocks, book.clock + 1))


# -- the queue and the receipts ------------------------------------------------------------------------------------------


def enqueue(connection: Connection, book: Row[Any], texts: Sequence[str], first: bool) -> None:
    """In this order, before or after all that waits."""
    if texts:
        end = connection.execute(statements.FRONT if first else statements.BACK, {"study_": book.id}).scalar() or 0
        start = end - len(texts) if first else end + 1
        positions = enumerate(texts, start)
        rows = [{"study": book.id, "position": at, "entry": text, "seal": sealed(text)} for at, text in positions]
        connection.execute(statements.ENQUEUE, rows)


def new_key() -> str:
    """By which a call that is repeated knows what it did before."""
    return uuid.uuid4().hex


def carried_out(connection: Connection, key: str) -> bool:
    """Whether there is a receipt for a call."""
    return connection.execute(statements.RECEIPT, {"key_": key}).first() is not None


def keep_receipt(connection: Connection, key: str) -> None:
    """As part of the transaction that carries a call out."""
    connection.execute(statements.DROP_RECEIPTS)
    connection.execute(statements.KEEP_RECEIPT, {"key": key})


def first_time(connection: Connection, key: str) -> bool:
    """Whether a call has not been carried out yet; if so, the receipt for it is now part of the transaction."""
    if carried_out(connection, key):
        return False
    keep_receipt(connection, key)
    return True
