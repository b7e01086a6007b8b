"""What a storage asks of a database: each statement once, compiled once, its values bound by name and never written into it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, Select, bindparam, delete, func, insert, select, tuple_, update

from .schema import RUNNING, now, queue, receipts, studies, trials

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
