"""Making a database ready when it is opened, and looking whether all is well with it."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, case, func, select
from sqlalchemy.exc import DBAPIError

from ..data.trial import State
from ..errors import StorageError
from . import schema
from .codec import read_trials
from .patience import patience
from .schema import queue, studies, trials
from .transactions import Database

log = logging.getLogger("shoestring")


@dataclass(frozen=True)
class Opened:
    """The version of the tables before (None: there were none) and now, and where the copy is that was kept of the older ones."""

    before: int | None
    now: int
    backup: str | None = None

    @property
    def in_words(self) -> str:
        if self.before == self.now:
            return f"the tables are of version {self.now}, which is this program's"
        if self.before is None:
            return f"the tables were made, of version {self.now}"
        kept = "in one transaction" if self.backup is None else f"the older ones are kept in {self.backup}"
        return f"the tables were brought from version {self.before} to version {self.now}; {kept}"


def prepare(database: Database) -> Opened:
    """Make the tables, or bring older ones up to date; for any number of processes at once."""
    backend = database.backend
    with patience(backend.first_patience):
        found = database.read(lambda connection: schema.version(connection, backend.url))
    schema.require_readable(found, backend.url)
    try:
        backend.settle(database.engine)
    except DBAPIError as error:
        raise backend.explain(error) from None
    if found == schema.VERSION:
        return Opened(found, found)

    def work(connection: Connection) -> Opened:
        backend.alone(connection)
        found = schema.version(connection, backend.url)  # somebody else may have been faster
        schema.require_readable(found, backend.url)
        if found is None:
            schema.create(connection)
        elif found < schema.VERSION:
            kept = backend.keep_copy(found)
            log.info("%s: tables of version %s become version %s (copy: %s)", backend.url, found, schema.VERSION, kept)
            schema.step_up(connection, found)
            return Opened(found, schema.VERSION, kept)
        return Opened(found, schema.VERSION)

    return database.write(work)


def check(database: Database) -> list[str]:
    """What is wrong: every record is read, and what the studies' rows say is compared with their trials."""
    where = database.backend.url

    def work(connection: Connection) -> list[str]:
        problems = database.backend.examine(connection)
        for book in connection.execute(select(studies)).all():
            found = [*_sums(connection, book), *_records(connection, book, where)]
            problems += [f"study {book.id}: {problem}" for problem in found]
        return problems

    try:
        return database.read(work)
    except StorageError as error:
        return [str(error)]


def _sums(connection: Connection, book: Row[Any]) -> list[str]:
    """Where the study's row differs from what its trials and its queue add up to."""
    running = trials.c.state == str(State.RUNNING)
    added = select(
        func.count().label("trials"),
        func.sum(case((trials.c.state == str(State.ABANDONED), 0), else_=1)).label("counted"),
        func.sum(case((running, 1), else_=0)).label("running"),
        func.sum(trials.c.cost).label("spent"),
        func.sum(case((running, trials.c.expected))).label("reserved"),
    ).where(trials.c.study == book.id)
    sums = {name: value or 0 for name, value in connection.execute(added).one()._mapping.items()}
    sums["waiting"] = connection.execute(select(func.count()).select_from(queue).where(queue.c.study == book.id)).scalar() or 0
    said = book._mapping
    return [
        f"its row says {name} = {said[name]}, its trials {value}"
        for name, value in sums.items()
        if not math.isclose(said[name], value, rel_tol=1e-6, abs_tol=1e-9)
    ]


def _records(connection: Connection, book: Row[Any], where: str) -> list[str]:
    """Trials that cannot be read, or whose columns differ from their record."""
    rows = connection.execute(
        select(trials).where(trials.c.study == book.id).order_by(trials.c.number), execution_options={"yield_per": 1000}
    )
    problems = []
    for row in rows:
        try:
            trial = read_trials([(row.record, row.seal, row.number, row.opened, row.abandoned, row.closed)], where)[0].trial
        except StorageError as error:
            problems.append(str(error))
            continue
        if (row.state, row.value, row.cost) != (str(trial.state), trial.value, trial.cost):
            problems.append(f"trial {row.number}: its columns differ from its record")
    return problems
