"""A study's row while it is one's turn to write, and the rows of its trials and its queue.

``turn`` locks the row until the end of the transaction; ``tick`` moves the clock on and must come last. All of it happens in the
transaction of the connection.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row

from ..trial import State, Trial
from . import life, statements
from .base import Clocks, Stored
from .text import read_trial, sealed
from .totals import Totals, share


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
