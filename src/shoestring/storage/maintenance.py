"""Opening a database (creating or migrating its tables), and checking that it is consistent."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import DBAPIError

from ..errors import StorageError
from . import schema
from .codec import read_queued
from .rows import SELECT_QUEUE, known_checksum, read_trial_row, read_trial_totals, sum_of_links, totals_columns
from .schema import studies, trials
from .transactions import Database, wait_limit
from .trial_lifecycle import Totals

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
            backend.allow_slowness(connection)
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
        database.backend.allow_slowness(connection)
        problems = database.backend.integrity_errors(connection)
        for study_row in connection.execute(select(studies)).all():
            problems += [f"study {study_row.id}: {problem}" for problem in _study_problems(connection, study_row, where)]
        return problems

    try:
        return database.read(work)
    except StorageError as error:
        return [str(error)]


def _study_problems(connection: Connection, study_row: Row[Any], where: str) -> list[str]:
    """Trials and queued configs that cannot be read, and where the study's row differs from them."""
    problems: list[str] = []
    numbers, checksums, totals = list[int](), list[int](), Totals()
    rows = connection.execute(
        select(trials).where(trials.c.study == study_row.id).order_by(trials.c.number), execution_options={"yield_per": 1000}
    )
    for row in rows:
        numbers.append(row.number)
        checksums.append(row.checksum)
        try:
            trial = read_trial_row(row, where).trial
            totals += read_trial_totals(row)
        except (StorageError, TypeError, ValueError) as error:
            problems.append(str(error))
            continue
        if (row.state, row.value, row.cost) != (str(trial.state), trial.value, None if trial.added else trial.cost):
            problems.append(f"trial {row.number}: its columns differ from its record")
    queued = connection.execute(SELECT_QUEUE, {"study_": study_row.id}).all()
    unreadable = [row.id for row in queued if read_queued(row.entry, row.checksum) is None]
    problems += [f"queued config {entry} cannot be read, and is not evaluated" for entry in unreadable]
    sums, stored = totals_columns(totals) | {"trials": len(numbers), "waiting": len(queued)}, study_row._mapping
    problems += [
        f"its row says {name} = {stored[name]}, its {'queue' if name == 'waiting' else 'trials'} {value}"
        for name, value in sums.items()
        if not math.isclose(stored[name], value, rel_tol=1e-6, abs_tol=1e-9)
    ]
    known = known_checksum(study_row)
    if known is not None and known != sum_of_links(numbers, checksums):
        problems.append("a write to one of its trials is missing: its trials are not all as they were written last")
    return problems
