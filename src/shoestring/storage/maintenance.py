"""Opening a database (creating or migrating its tables), and checking that it is consistent."""

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
from .rows import read_trial_row
from .schema import queue, studies, trials
from .transactions import Database, wait_limit

log = logging.getLogger("shoestring")


@dataclass(frozen=True)
class SchemaUpgrade:
    """What happened to the tables when a database was opened.

    before  their version before, None if there were no tables
    now     their version now
    backup  the path of the copy that was made of the older tables
    """

    before: int | None
    now: int
    backup: str | None = None

    def __str__(self) -> str:
        if self.before == self.now:
            return f"the tables are of version {self.now}, which is this program's"
        if self.before is None:
            return f"the tables were made, of version {self.now}"
        kept = "in one transaction" if self.backup is None else f"the older ones are kept in {self.backup}"
        return f"the tables were brought from version {self.before} to version {self.now}; {kept}"


def create_or_migrate(database: Database) -> SchemaUpgrade:
    """Create the tables, or migrate older ones. Any number of processes may call it at once."""
    backend = database.backend
    with wait_limit(backend.first_wait_seconds):
        found = database.read(lambda connection: schema.find_version(connection, backend.url))
    schema.require_readable(found, backend.url)
    try:
        backend.set_up(database.engine)
    except DBAPIError as error:
        raise backend.explain(error) from None
    if found == schema.VERSION:
        return SchemaUpgrade(found, found)

    def work(connection: Connection) -> SchemaUpgrade:
        backend.lock_creation(connection)
        found = schema.find_version(connection, backend.url)  # another process may have been faster
        schema.require_readable(found, backend.url)
        if found is None:
            schema.create_tables(connection)
        elif found < schema.VERSION:
            backup = backend.backup_before_upgrade(found)
            log.info("%s: tables of version %s become version %s (copy: %s)", backend.url, found, schema.VERSION, backup)
            schema.migrate(connection, found)
            return SchemaUpgrade(found, schema.VERSION, backup)
        return SchemaUpgrade(found, schema.VERSION)

    return database.write(work)


def check(database: Database) -> list[str]:
    """The problems of a database in words: damaged records, and totals that differ from the trials."""
    where = database.backend.url

    def work(connection: Connection) -> list[str]:
        problems = database.backend.integrity_errors(connection)
        for study_row in connection.execute(select(studies)).all():
            found = [*_wrong_totals(connection, study_row), *_damaged_trials(connection, study_row, where)]
            problems += [f"study {study_row.id}: {problem}" for problem in found]
        return problems

    try:
        return database.read(work)
    except StorageError as error:
        return [str(error)]


def _wrong_totals(connection: Connection, study_row: Row[Any]) -> list[str]:
    """Where the study's row differs from the sums over its trials and its queue."""
    running = trials.c.state == str(State.RUNNING)
    sums_of_trials = select(
        func.count().label("trials"),
        func.sum(case((trials.c.state == str(State.ABANDONED), 0), else_=1)).label("counted"),
        func.sum(case((running, 1), else_=0)).label("running"),
        func.sum(trials.c.cost).label("spent"),
        func.sum(case((running, trials.c.expected))).label("reserved"),
    ).where(trials.c.study == study_row.id)
    sums = {name: value or 0 for name, value in connection.execute(sums_of_trials).one()._mapping.items()}
    queued = select(func.count()).select_from(queue).where(queue.c.study == study_row.id)
    sums["waiting"] = connection.execute(queued).scalar() or 0
    stored = study_row._mapping
    return [
        f"its row says {name} = {stored[name]}, its trials {value}"
        for name, value in sums.items()
        if not math.isclose(stored[name], value, rel_tol=1e-6, abs_tol=1e-9)
    ]


def _damaged_trials(connection: Connection, study_row: Row[Any], where: str) -> list[str]:
    """Trials that cannot be read, or whose columns differ from their record."""
    rows = connection.execute(
        select(trials).where(trials.c.study == study_row.id).order_by(trials.c.number), execution_options={"yield_per": 1000}
    )
    problems = []
    for row in rows:
        try:
            trial = read_trial_row(row, where).trial
        except StorageError as error:
            problems.append(str(error))
            continue
        if (row.state, row.value, row.cost) != (str(trial.state), trial.value, None if trial.added else trial.cost):
            problems.append(f"trial {row.number}: its columns differ from its record")
    return problems
